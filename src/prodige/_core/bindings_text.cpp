// What text classification needs of the core: distances to anchors, and pooled convolutions.
#include <nanobind/stl/shared_ptr.h>

#include "anchors.hpp"
#include "bindings.hpp"
#include "pooling.hpp"

namespace prodige {
namespace {

template <class T>
void check_shape(const char* name, const Grid<T>& grid, std::size_t rows, std::size_t columns) {
    if (grid.shape(0) != rows || grid.shape(1) != columns)
        throw std::invalid_argument(std::string(name) + " has shape [" + std::to_string(grid.shape(0)) + ", " +
                                    std::to_string(grid.shape(1)) + "], expected [" + std::to_string(rows) + ", " +
                                    std::to_string(columns) + "]");
}

template <class T>
Matrix<const T> matrix(const Grid<T>& grid) {
    return {grid.data(), grid.shape(0), grid.shape(1)};
}

template <class T>
void bind_anchors(nb::module_& m, const char* name) {
    using A = AnchorTrees<T>;
    nb::class_<A>(m, name)
        .def(
            "__init__",
            [](A* self, std::shared_ptr<HubNetwork<T>> hubs, Array<Vertex> anchors, int n_jobs) {
                check_jobs(n_jobs);
                check_vertices("anchors", view(anchors), hubs->network().topology().n_vertices());
                run([&](Watch& watch) { new (self) A(hubs, view(anchors), n_jobs, watch); });
            },
            "hubs"_a, "anchors"_a, "n_jobs"_a)
        .def(
            "distances",
            [](const A& trees, Array<Vertex> targets, int n_jobs) {
                check_jobs(n_jobs);
                check_vertices("targets", view(targets), trees.hubs().network().topology().n_vertices());
                Owned<T> out(trees.size() * targets.size());
                Owned<std::int32_t> arcs(trees.size() * targets.size());
                run([&](Watch& watch) {
                    trees.distances(view(targets), {out.data(), trees.size(), targets.size()},
                                    {arcs.data(), trees.size(), targets.size()}, n_jobs, watch);
                });
                return nb::make_tuple(out.release({trees.size(), targets.size()}),
                                      arcs.release({trees.size(), targets.size()}));
            },
            "targets"_a, "n_jobs"_a)
        .def(
            "backward",
            [](const A& trees, Array<Vertex> targets, Grid<T> gradient, Grid<std::int32_t> arcs, int n_jobs) {
                check_jobs(n_jobs);
                check_shape("gradient", gradient, trees.size(), targets.size());
                check_shape("arcs", arcs, trees.size(), targets.size());
                const auto n_arcs = static_cast<std::int32_t>(trees.hubs().layout().access_core().size());
                for (std::size_t a = 0; a < arcs.size(); ++a)
                    if (arcs.data()[a] >= n_arcs) throw std::out_of_range("arcs are not those of this search");
                Owned<T> out(trees.hubs().network().topology().n_edges());
                run([&](Watch& watch) {
                    trees.backward(view(targets), matrix(gradient), matrix(arcs), out.span(), n_jobs, watch);
                });
                return out.release({out.span().size()});
            },
            "targets"_a, "gradient"_a, "arcs"_a, "n_jobs"_a);
}

Texts make_texts(const Array<std::int32_t>& tokens, const Array<std::int64_t>& offsets, std::size_t n_rows) {
    if (offsets.size() == 0 || offsets.data()[0] != 0 ||
        offsets.data()[offsets.size() - 1] != static_cast<std::int64_t>(tokens.size()))
        throw std::invalid_argument("offsets must run from 0 to the number of tokens");
    for (std::size_t t = 1; t < offsets.size(); ++t)
        if (offsets.data()[t] < offsets.data()[t - 1]) throw std::invalid_argument("offsets must not fall");
    for (std::size_t p = 0; p < tokens.size(); ++p)
        if (tokens.data()[p] < 0 || static_cast<std::size_t>(tokens.data()[p]) >= n_rows)
            throw std::out_of_range("tokens[" + std::to_string(p) + "] = " + std::to_string(tokens.data()[p]) +
                                    " has no row: there are " + std::to_string(n_rows));
    return {view(tokens), view(offsets)};
}

void check_width(std::size_t width, std::size_t columns) {
    if (width == 0 || columns % width != 0)
        throw std::invalid_argument("width = " + std::to_string(width) + " does not divide " + std::to_string(columns));
}

void bind_pooling(nb::module_& m) {
    m.def(
        "pool",
        [](Array<std::int32_t> tokens, Array<std::int64_t> offsets, Grid<float> products, std::size_t width,
           int n_jobs) {
            check_jobs(n_jobs);
            check_width(width, products.shape(1));
            const Texts texts = make_texts(tokens, offsets, products.shape(0));
            const std::size_t n_filters = products.shape(1) / width;
            Owned<float> out(texts.size() * n_filters);
            Owned<std::int32_t> best(texts.size() * n_filters);
            run([&](Watch& watch) {
                pool(texts, matrix(products), width, {out.data(), texts.size(), n_filters},
                     {best.data(), texts.size(), n_filters}, n_jobs, watch);
            });
            return nb::make_tuple(out.release({texts.size(), n_filters}), best.release({texts.size(), n_filters}));
        },
        "tokens"_a, "offsets"_a, "products"_a, "width"_a, "n_jobs"_a);
    m.def(
        "pool_backward",
        [](Array<std::int32_t> tokens, Array<std::int64_t> offsets, Grid<float> gradient, Grid<std::int32_t> best,
           std::size_t width, std::size_t n_rows) {
            const Texts texts = make_texts(tokens, offsets, n_rows);
            const std::size_t n_filters = gradient.shape(1);
            check_shape("gradient", gradient, texts.size(), n_filters);
            check_shape("best", best, texts.size(), n_filters);
            check_width(width, width * n_filters);
            for (std::size_t t = 0; t < texts.size(); ++t)
                for (std::size_t f = 0; f < n_filters; ++f) {
                    const std::int64_t position = best.data()[t * n_filters + f];
                    const std::int64_t length = texts.offsets[t + 1] - texts.offsets[t];
                    if (position < 0 || (position > 0 && position >= length))
                        throw std::out_of_range("best is not that of these texts");
                }
            Owned<float> out(n_rows * width * n_filters);
            std::fill(out.span().begin(), out.span().end(), 0.0f);
            run([&](Watch&) {
                pool_backward(texts, matrix(gradient), matrix(best), width, {out.data(), n_rows, width * n_filters});
            });
            return out.release({n_rows, width * n_filters});
        },
        "tokens"_a, "offsets"_a, "gradient"_a, "best"_a, "width"_a, "n_rows"_a);
}

}  // namespace

void bind_text(nb::module_& m) {
    bind_anchors<float>(m, "AnchorTrees32");
    bind_anchors<double>(m, "AnchorTrees64");
    bind_pooling(m);
}

}  // namespace prodige
