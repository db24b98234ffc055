// Codes of a product of graphs while it is being fitted.
#include <algorithm>

#include "bindings.hpp"
#include "codes.hpp"

namespace prodige {

namespace {

void check_codes(const char* name, Matrix<const std::uint16_t> codes, std::span<const std::int32_t> n_hubs,
                 bool by_factor) {
    for (std::size_t r = 0; r < codes.rows; ++r)
        for (std::size_t c = 0; c < codes.columns; ++c)
            if (codes.row(r)[c] >= n_hubs[by_factor ? r : c])
                throw std::out_of_range(std::string(name) + ": there is no hub " + std::to_string(codes.row(r)[c]) +
                                        " in factor " + std::to_string(by_factor ? r : c));
}

void check_positions(const FactorTables& factors) {
    if (factors.n_dimensions.empty() && factors.positions.empty()) return;
    check_size("n_dimensions", factors.n_dimensions.size(), factors.n_factors());
    std::size_t n_coordinates = 0;
    for (std::size_t m = 0; m < factors.n_factors(); ++m) {
        const std::int32_t size = factors.n_dimensions[m];
        if (size < 0 || size > 1 << 16) throw std::invalid_argument("a factor has 0 to 65536 dimensions");
        n_coordinates += static_cast<std::size_t>(size) * factors.n_hubs[m];
    }
    check_size("positions", factors.positions.size(), n_coordinates);
}

// Everything a fit knows of its items; made once, used by every pass.
class CodeFit {
   public:
    CodeFit(Array<Vertex> sources, Grid<float> target, Grid<Vertex> near, Grid<float> near_target,
            Grid<float> near_weight, std::size_t first)
        : sources_(sources),
          target_(target),
          near_(near),
          near_target_(near_target),
          near_weight_(near_weight),
          first_(first) {
        const std::size_t n = target.shape(0);
        check_size("sources", sources.size(), target.shape(1));
        check_shape("near", near, n, near.shape(1));
        check_shape("near_target", near_target, n, near.shape(1));
        check_shape("near_weight", near_weight, n, near.shape(1));
        for (std::size_t e = 0; e < near.size(); ++e) farthest_ = std::max(farthest_, near.data()[e]);
    }

    // Checks what changes from pass to pass, and puts it beside what does not.
    CodeTask task(const Array<std::int32_t>& n_hubs, const Array<float>& tables, int quarters, float floor,
                  const Grid<std::uint16_t>& codes, const Array<float>& lengths,
                  const Grid<std::uint16_t>& source_codes, const Array<float>& source_lengths,
                  const Array<Vertex>& items) const {
        const std::size_t n = codes.shape(0), end = first_ + target_.shape(0);
        if (n < end) throw std::out_of_range("codes: there are distances of more items than these");
        if (farthest_ >= static_cast<std::int64_t>(n)) throw std::out_of_range("near: no such item");
        if (n_hubs.size() == 0) throw std::invalid_argument("a product needs a factor");
        std::size_t n_entries = 0;
        for (const std::int32_t size : view(n_hubs)) {
            if (size < 1 || size > 1 << 16) throw std::invalid_argument("a factor has 1 to 65536 hubs");
            n_entries += static_cast<std::size_t>(size) * size;
        }
        check_size("tables", tables.size(), n_entries);
        if (quarters < 4 || quarters > 8) throw std::invalid_argument("the gauge is between 4 and 8 quarters");
        check_shape("codes", codes, n, n_hubs.size());
        check_size("lengths", lengths.size(), n);
        check_shape("source_codes", source_codes, n_hubs.size(), sources_.size());
        check_size("source_lengths", source_lengths.size(), sources_.size());
        check_vertices("items", view(items), static_cast<Vertex>(end));
        for (const Vertex item : view(items))
            if (static_cast<std::size_t>(item) < first_)
                throw std::out_of_range("items: the distances of item " + std::to_string(item) + " are not here");
        check_codes("codes", matrix(codes), view(n_hubs), false);
        check_codes("source_codes", matrix(source_codes), view(n_hubs), true);
        return {{view(n_hubs), view(tables), quarters, floor},
                matrix(codes),
                view(lengths),
                view(sources_),
                matrix(source_codes),
                view(source_lengths),
                first_,
                matrix(target_),
                matrix(near_),
                matrix(near_target_),
                matrix(near_weight_),
                view(items)};
    }

   private:
    Array<Vertex> sources_;
    Grid<float> target_;
    Grid<Vertex> near_;
    Grid<float> near_target_, near_weight_;
    std::size_t first_;
    Vertex farthest_ = -1;  // the last item that is near to one
};

}  // namespace

void bind_codes(nb::module_& m) {
    nb::class_<CodeFit>(m, "CodeFit")
        .def(nb::init<Array<Vertex>, Grid<float>, Grid<Vertex>, Grid<float>, Grid<float>, std::size_t>(), "sources"_a,
             "target"_a, "near"_a, "near_target"_a, "near_weight"_a, "first"_a = 0)
        .def(
            "choose_codes",
            [](const CodeFit& fit, Array<std::int32_t> n_hubs, Array<float> tables, int quarters, float floor,
               Grid<std::uint16_t> codes, Array<float> lengths, Grid<std::uint16_t> source_codes,
               Array<float> source_lengths, Array<Vertex> items, float least, float step, int n_levels, int n_rounds,
               int n_jobs, std::optional<Array<std::int32_t>> n_dimensions, std::optional<Array<float>> positions) {
                check_jobs(n_jobs);
                CodeTask task =
                    fit.task(n_hubs, tables, quarters, floor, codes, lengths, source_codes, source_lengths, items);
                task.factors.n_dimensions = view(n_dimensions);
                task.factors.positions = view(positions);
                check_positions(task.factors);
                Codes found;
                run([&](Watch& watch) {
                    found = choose_codes(task, {least, step, n_levels}, n_rounds, n_jobs, watch);
                });
                return nb::make_tuple(copy_out(found.codes, {items.size(), n_hubs.size()}), copy_out(found.lengths),
                                      found.loss);
            },
            "n_hubs"_a, "tables"_a, "quarters"_a, "floor"_a, "codes"_a, "lengths"_a, "source_codes"_a,
            "source_lengths"_a, "items"_a, "least"_a, "step"_a, "n_levels"_a, "n_rounds"_a, "n_jobs"_a,
            "n_dimensions"_a = nb::none(), "positions"_a = nb::none())
        .def(
            "measure_factor",
            [](const CodeFit& fit, Array<std::int32_t> n_hubs, Array<float> tables, int quarters, float floor,
               Grid<std::uint16_t> codes, Array<float> lengths, Grid<std::uint16_t> source_codes,
               Array<float> source_lengths, Array<Vertex> items, std::size_t factor, int n_jobs) {
                check_jobs(n_jobs);
                const CodeTask task =
                    fit.task(n_hubs, tables, quarters, floor, codes, lengths, source_codes, source_lengths, items);
                if (factor >= n_hubs.size()) throw std::out_of_range("there is no factor " + std::to_string(factor));
                FactorSums sums;
                run([&](Watch& watch) { sums = measure_factor(task, factor, n_jobs, watch); });
                const auto size = static_cast<std::size_t>(view(n_hubs)[factor]);
                return nb::make_tuple(copy_out(sums.residuals, {size, size}), copy_out(sums.weights, {size, size}),
                                      sums.loss);
            },
            "n_hubs"_a, "tables"_a, "quarters"_a, "floor"_a, "codes"_a, "lengths"_a, "source_codes"_a,
            "source_lengths"_a, "items"_a, "factor"_a, "n_jobs"_a);
}

}  // namespace prodige
