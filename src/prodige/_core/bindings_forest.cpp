// Bindings of shortest-path trees: what they hold, and what is added up along them.
#include "bindings.hpp"
#include "forest.hpp"

namespace prodige {

namespace {

template <class T>
void bind_trees(nb::module_& m, const char* name) {
    using F = Forest<T>;
    const auto gather = [](const F& forest, auto member) {
        using Value = typename std::remove_cvref_t<decltype(forest.tree(0).*member)>::value_type;
        std::size_t total = 0;
        for (std::size_t r = 0; r < forest.n_sources(); ++r) total += (forest.tree(r).*member).size();
        Owned<Value> owned(total);
        Value* next = owned.data();
        for (std::size_t r = 0; r < forest.n_sources(); ++r)
            next = std::copy((forest.tree(r).*member).begin(), (forest.tree(r).*member).end(), next);
        return owned.release({total});
    };
    const auto offsets = [](const F& forest, auto member) {
        Owned<std::int64_t> owned(forest.n_sources() + 1);
        owned.data()[0] = 0;
        for (std::size_t r = 0; r < forest.n_sources(); ++r)
            owned.data()[r + 1] = owned.data()[r] + static_cast<std::int64_t>((forest.tree(r).*member).size());
        return owned.release({forest.n_sources() + 1});
    };
    const auto check_gradient = [](const F& forest, const char* what, const Grid<T>& grid,
                                   const std::optional<Array<Vertex>>& targets, int n_jobs) {
        check_jobs(n_jobs);
        check_vertices("targets", view(targets), forest.network().topology().n_vertices());
        if (grid.shape(0) != forest.n_sources())
            throw std::invalid_argument(std::string(what) + " has " + std::to_string(grid.shape(0)) + " rows for " +
                                        std::to_string(forest.n_sources()) + " sources");
        if (targets) check_size("a row of the gradient", grid.shape(1), targets->size());
        if (grid.shape(1) > static_cast<std::size_t>(forest.network().topology().n_vertices()) && !targets)
            throw std::invalid_argument(std::string(what) + " has more columns than there are vertices");
        return Matrix<const T>{grid.data(), grid.shape(0), grid.shape(1)};
    };
    const auto per_edge = [](const F& forest, auto&& fill) {
        Owned<T> out(forest.network().topology().n_edges());
        run([&](Watch& watch) { fill(out.span(), watch); });
        return out.release({out.span().size()});
    };

    nb::class_<F>(m, name)
        .def_prop_ro("n_sources", &F::n_sources)
        .def_prop_ro(
            "offsets", [=](const F& f) { return offsets(f, &TreeView<T>::vertices); }, nb::rv_policy::move)
        .def_prop_ro(
            "vertices", [=](const F& f) { return gather(f, &TreeView<T>::vertices); }, nb::rv_policy::move)
        .def_prop_ro(
            "settled_distances", [=](const F& f) { return gather(f, &TreeView<T>::distances); }, nb::rv_policy::move)
        .def_prop_ro(
            "parents", [=](const F& f) { return gather(f, &TreeView<T>::parents); }, nb::rv_policy::move)
        .def_prop_ro(
            "edges", [=](const F& f) { return gather(f, &TreeView<T>::edges); }, nb::rv_policy::move)
        .def_prop_ro("asked_all", [](const F& f) { return f.n_sources() > 0 && f.tree(0).asked_all; })
        .def_prop_ro(
            "asked_offsets", [=](const F& f) { return offsets(f, &TreeView<T>::asked); }, nb::rv_policy::move)
        .def_prop_ro(
            "asked", [=](const F& f) { return gather(f, &TreeView<T>::asked); }, nb::rv_policy::move)
        .def_prop_ro(
            "present", [=](const F& f) { return gather(f, &TreeView<T>::present); }, nb::rv_policy::move)
        .def_prop_ro("nbytes", &F::bytes)
        .def(
            "distances",
            [](const F& forest, std::optional<Array<Vertex>> targets, Vertex n_columns, int n_jobs) {
                check_jobs(n_jobs);
                return find_distances<T>(forest.n_sources(), targets, n_columns,
                                         forest.network().topology().n_vertices(),
                                         [&](auto to, Matrix<T> distances, Watch& watch) {
                                             forest.distances(to, distances, n_jobs, watch);
                                         });
            },
            "targets"_a.none(), "n_columns"_a, "n_jobs"_a)
        .def(
            "backward",
            [=](const F& forest, Grid<T> gradient, std::optional<Array<Vertex>> targets, int n_jobs) {
                const auto rows = check_gradient(forest, "gradient", gradient, targets, n_jobs);
                return per_edge(forest, [&](std::span<T> out, Watch& watch) {
                    forest.backward(view(targets), rows, out, n_jobs, watch);
                });
            },
            "gradient"_a, "targets"_a.none(), "n_jobs"_a)
        .def(
            "removal_cost",
            [=](const F& forest, Grid<T> gradient, Grid<T> curvature, std::optional<Array<Vertex>> targets,
                T unreachable, int n_jobs) {
                const auto rows = check_gradient(forest, "gradient", gradient, targets, n_jobs);
                const auto curves = check_gradient(forest, "curvature", curvature, targets, n_jobs);
                check_size("a row of the curvature", curves.columns, rows.columns);
                return per_edge(forest, [&](std::span<T> out, Watch& watch) {
                    forest.removal_cost(view(targets), rows, curves, unreachable, out, n_jobs, watch);
                });
            },
            "gradient"_a, "curvature"_a, "targets"_a.none(), "unreachable"_a, "n_jobs"_a)
        .def(
            "sum_answers",
            [](const F& forest, Array<T> if_present, Array<T> if_refused, int n_jobs) {
                check_jobs(n_jobs);
                check_size("if_present", if_present.size(), forest.network().topology().n_edges());
                check_size("if_refused", if_refused.size(), forest.network().topology().n_edges());
                Owned<T> out(forest.n_sources());
                run([&](Watch& watch) {
                    forest.sum_answers(view(if_present), view(if_refused), out.span(), n_jobs, watch);
                });
                return out.release({forest.n_sources()});
            },
            "if_present"_a, "if_refused"_a, "n_jobs"_a)
        .def(
            "score",
            [=](const F& forest, Array<T> factors, int n_jobs) {
                check_jobs(n_jobs);
                check_size("factors", factors.size(), forest.n_sources());
                return per_edge(
                    forest, [&](std::span<T> out, Watch& watch) { forest.score(view(factors), out, n_jobs, watch); });
            },
            "factors"_a, "n_jobs"_a)
        .def(
            "toggle",
            [=](const F& forest, Grid<T> gradient, std::optional<Array<Vertex>> targets, T unreachable, int n_jobs) {
                const auto rows = check_gradient(forest, "gradient", gradient, targets, n_jobs);
                if (!(unreachable < unreached<T>)) throw std::invalid_argument("unreachable must be finite");
                const std::size_t n_edges = forest.network().topology().n_edges();
                Owned<T> present(n_edges), refused(n_edges);
                run([&](Watch& watch) {
                    forest.toggle(view(targets), rows, unreachable, present.span(), refused.span(), n_jobs, watch);
                });
                return std::pair(present.release({n_edges}), refused.release({n_edges}));
            },
            "gradient"_a, "targets"_a.none(), "unreachable"_a, "n_jobs"_a);
}

}  // namespace

void bind_forest(nb::module_& m) {
    bind_trees<float>(m, "Forest32");
    bind_trees<double>(m, "Forest64");
}

}  // namespace prodige
