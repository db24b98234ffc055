// The thin layer between Python and the core: arrays come in without a copy, the GIL is released while the core works,
// and Ctrl-C is noticed. Arguments a caller can get wrong are checked with better words in Python; what is checked
// here is only what would otherwise crash.
#include "bindings.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include "flows.hpp"
#include "forest.hpp"
#include "hubs.hpp"
#include "network.hpp"
#include "search.hpp"
#include "stress.hpp"
#include "topology.hpp"

namespace prodige {
namespace {

std::size_t count_columns(const std::optional<Array<Vertex>>& targets, Vertex n_columns, Vertex n_vertices) {
    if (targets) return targets->size();
    if (n_columns < 0 || n_columns > n_vertices)
        throw std::invalid_argument("n_columns = " + std::to_string(n_columns) + " is not between 0 and " +
                                    std::to_string(n_vertices));
    return n_columns;
}

template <class T>
Sampling<T> make_sampling(std::size_t n_sources, const std::optional<Array<T>>& probabilities, std::uint64_t seed,
                          const std::optional<Array<std::uint64_t>>& groups, Edge n_edges) {
    Sampling<T> sampling;
    if (!probabilities) return sampling;
    check_size("probabilities", probabilities->size(), n_edges);
    for (std::size_t e = 0; e < probabilities->size(); ++e)
        if (!(probabilities->data()[e] >= 0 && probabilities->data()[e] <= 1))
            throw std::invalid_argument("probabilities[" + std::to_string(e) +
                                        "] = " + std::to_string(probabilities->data()[e]) + " is not in [0, 1]");
    const auto p = view(*probabilities);
    sampling.probabilities.assign(p.begin(), p.end());
    sampling.seed = seed;
    if (groups) {
        check_size("groups", groups->size(), n_sources);
        sampling.groups.assign(groups->data(), groups->data() + groups->size());
    } else {
        for (std::size_t row = 0; row < n_sources; ++row) sampling.groups.push_back(row);
    }
    return sampling;
}

template <class T>
nb::tuple pack_neighbors(const std::vector<Neighbors<T>>& found) {
    std::size_t total = 0;
    for (const auto& row : found) total += row.vertices.size();
    Owned<std::int64_t> offsets(found.size() + 1);
    Owned<Vertex> vertices(total);
    Owned<T> distances(total);
    std::size_t next = 0;
    offsets.data()[0] = 0;
    for (std::size_t r = 0; r < found.size(); ++r) {
        std::copy(found[r].vertices.begin(), found[r].vertices.end(), vertices.data() + next);
        std::copy(found[r].distances.begin(), found[r].distances.end(), distances.data() + next);
        next += found[r].vertices.size();
        offsets.data()[r + 1] = static_cast<std::int64_t>(next);
    }
    return nb::make_tuple(offsets.release({found.size() + 1}), vertices.release({total}), distances.release({total}));
}

template <class T>
Stop<T> make_stop(Vertex n_vertices, Vertex n_items, std::optional<std::size_t> k, std::optional<T> radius,
                  std::span<const Vertex> targets, bool has_targets) {
    if (k.has_value() + radius.has_value() + has_targets > 1)
        throw std::invalid_argument("give at most one of targets, k and radius");
    if (n_items < 0 || n_items > n_vertices)
        throw std::invalid_argument("n_items = " + std::to_string(n_items) + " is not between 0 and " +
                                    std::to_string(n_vertices));
    Stop<T> stop;
    stop.n_items = n_items;
    if (k) {
        if (*k == 0) throw std::invalid_argument("k = 0 asks for nothing");
        stop.until = Until::nearest;
        stop.k = *k;
    } else if (radius) {
        stop.until = Until::radius;
        stop.radius = *radius;
    } else if (has_targets) {
        stop.until = Until::targets;
        stop.targets = targets;
    }
    return stop;
}

// Both engines answer these two in the same way.
template <class T, class Engine, class Find>
nb::tuple find_neighbors(const Engine& network, const Array<Vertex>& sources, Vertex n_items,
                         std::optional<std::size_t> k, std::optional<T> radius, int n_jobs, const Topology& topology,
                         Find&& find) {
    check_jobs(n_jobs);
    check_vertices("sources", view(sources), topology.n_vertices());
    if (!k && !radius) throw std::invalid_argument("give k or radius");
    const Stop<T> stop = make_stop<T>(topology.n_vertices(), n_items, k, radius, {}, false);
    std::vector<Neighbors<T>> found;
    run([&](Watch& watch) { found = find(network, view(sources), stop, watch); });
    return pack_neighbors(found);
}

template <class T>
void bind_forest(nb::module_& m, const char* name) {
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
                const Vertex n = forest.network().topology().n_vertices();
                check_jobs(n_jobs);
                check_vertices("targets", view(targets), n);
                const std::size_t columns = count_columns(targets, n_columns, n);
                Owned<T> out(forest.n_sources() * columns);
                if (columns > 0)
                    run([&](Watch& watch) {
                        forest.distances(view(targets), {out.data(), forest.n_sources(), columns}, n_jobs, watch);
                    });
                return out.release({forest.n_sources(), columns});
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

template <class T>
void bind_network(nb::module_& m, const char* name) {
    using N = Network<T>;
    nb::class_<N>(m, name)
        .def(
            "__init__",
            [](N* self, std::shared_ptr<Topology> topology, Array<T> weights, int n_jobs) {
                check_jobs(n_jobs);
                run([&](Watch& watch) { new (self) N(topology, view(weights), n_jobs, watch); });
            },
            "topology"_a, "weights"_a, "n_jobs"_a)
        .def(
            "with_weights",
            [](const N& network, Array<T> weights, int n_jobs) {
                check_jobs(n_jobs);
                std::shared_ptr<N> other;
                run([&](Watch& watch) { other = network.with_weights(view(weights), n_jobs, watch); });
                return other;
            },
            "weights"_a, "n_jobs"_a)
        .def_prop_ro("scratch_nbytes", [](const N& network) { return network.scratch().bytes(); })
        .def(
            "distances",
            [](const N& network, Array<Vertex> sources, std::optional<Array<Vertex>> targets, Vertex n_columns,
               int n_jobs) {
                const Vertex n = network.topology().n_vertices();
                check_jobs(n_jobs);
                check_vertices("sources", view(sources), n);
                check_vertices("targets", view(targets), n);
                const std::size_t columns = count_columns(targets, n_columns, n);
                Owned<T> out(sources.size() * columns);
                if (columns > 0)
                    run([&](Watch& watch) {
                        search_distances<T>(network, view(sources), view(targets),
                                            {out.data(), sources.size(), columns}, n_jobs, watch);
                    });
                return out.release({sources.size(), columns});
            },
            "sources"_a, "targets"_a.none(), "n_columns"_a, "n_jobs"_a)
        .def(
            "neighbors",
            [](const N& network, Array<Vertex> sources, Vertex n_items, std::optional<std::size_t> k,
               std::optional<T> radius, int n_jobs) {
                return find_neighbors<T>(network, sources, n_items, k, radius, n_jobs, network.topology(),
                                         [&](const N& self, auto from, const Stop<T>& stop, Watch& watch) {
                                             return search_neighbors<T>(self, from, stop, n_jobs, watch);
                                         });
            },
            "sources"_a, "n_items"_a, "k"_a.none(), "radius"_a.none(), "n_jobs"_a)
        .def(
            "search",
            [](std::shared_ptr<N> network, Array<Vertex> sources, std::optional<Array<Vertex>> targets,
               std::optional<std::size_t> k, std::optional<T> radius, Vertex n_items,
               std::optional<Array<T>> probabilities, std::uint64_t seed, std::optional<Array<std::uint64_t>> groups,
               int n_jobs) {
                const Topology& topology = network->topology();
                check_jobs(n_jobs);
                check_vertices("sources", view(sources), topology.n_vertices());
                check_vertices("targets", view(targets), topology.n_vertices());
                const Stop<T> stop =
                    make_stop<T>(topology.n_vertices(), n_items, k, radius, view(targets), targets.has_value());
                auto sampling = make_sampling<T>(sources.size(), probabilities, seed, groups, topology.n_edges());
                std::shared_ptr<Forest<T>> forest;
                run([&](Watch& watch) {
                    forest = search_forest<T>(network, {view(sources).begin(), view(sources).end()}, stop,
                                              std::move(sampling), n_jobs, watch);
                });
                return forest;
            },
            "sources"_a, "targets"_a.none() = nb::none(), "k"_a.none() = nb::none(), "radius"_a.none() = nb::none(),
            "n_items"_a = 0, "probabilities"_a.none() = nb::none(), "seed"_a = 0, "groups"_a.none() = nb::none(),
            "n_jobs"_a = 1);
}

template <class T>
void bind_hub_network(nb::module_& m, const char* name) {
    using H = HubNetwork<T>;
    nb::class_<H>(m, name)
        .def(
            "__init__",
            [](H* self, std::shared_ptr<Network<T>> network, std::shared_ptr<HubLayout> layout) {
                if (&network->topology() != &layout->topology())
                    throw std::invalid_argument("network and layout belong to different topologies");
                run([&](Watch& watch) { new (self) H(network, layout, nullptr, watch); });
            },
            "network"_a, "layout"_a)
        .def_prop_ro("n_shortcuts", &H::n_shortcuts)
        .def_prop_ro("network",
                     [](const H& hubs) { return std::const_pointer_cast<Network<T>>(hubs.shared_network()); })
        .def(
            "with_weights",
            [](const H& hubs, Array<T> weights, int n_jobs) {
                check_jobs(n_jobs);
                std::shared_ptr<H> other;
                run([&](Watch& watch) {
                    other = std::make_shared<H>(hubs.network().with_weights(view(weights), n_jobs, watch),
                                                hubs.shared_layout(), nullptr, watch);
                });
                return other;
            },
            "weights"_a, "n_jobs"_a)
        .def(
            "distances",
            [](const H& hubs, Array<Vertex> sources, std::optional<Array<Vertex>> targets, Vertex n_columns,
               int n_jobs) {
                const Vertex n = hubs.network().topology().n_vertices();
                check_jobs(n_jobs);
                check_vertices("sources", view(sources), n);
                check_vertices("targets", view(targets), n);
                const std::size_t columns = count_columns(targets, n_columns, n);
                Owned<T> out(sources.size() * columns);
                if (columns > 0)
                    run([&](Watch& watch) {
                        hubs.distances(view(sources), view(targets), {out.data(), sources.size(), columns}, n_jobs,
                                       watch);
                    });
                return out.release({sources.size(), columns});
            },
            "sources"_a, "targets"_a.none(), "n_columns"_a, "n_jobs"_a)
        .def(
            "neighbors",
            [](const H& hubs, Array<Vertex> sources, Vertex n_items, std::optional<std::size_t> k,
               std::optional<T> radius, int n_jobs) {
                return find_neighbors<T>(hubs, sources, n_items, k, radius, n_jobs, hubs.network().topology(),
                                         [&](const H& self, auto from, const Stop<T>& stop, Watch& watch) {
                                             return self.neighbors(from, stop, n_jobs, watch);
                                         });
            },
            "sources"_a, "n_items"_a, "k"_a.none(), "radius"_a.none(), "n_jobs"_a)
        .def(
            "search",
            [](const H& hubs, Array<Vertex> sources, std::optional<Array<T>> probabilities, std::uint64_t seed,
               std::optional<Array<std::uint64_t>> groups, int n_jobs) {
                const Topology& topology = hubs.network().topology();
                check_jobs(n_jobs);
                check_vertices("sources", view(sources), topology.n_vertices());
                auto sampling = make_sampling<T>(sources.size(), probabilities, seed, groups, topology.n_edges());
                std::shared_ptr<Forest<T>> forest;
                run([&](Watch& watch) {
                    forest = hub_forest<T>(hubs, {view(sources).begin(), view(sources).end()}, std::move(sampling),
                                           n_jobs, watch);
                });
                return forest;
            },
            "sources"_a, "probabilities"_a.none() = nb::none(), "seed"_a = 0, "groups"_a.none() = nb::none(),
            "n_jobs"_a = 1);
}

Wanted<float> make_wanted(const Array<Vertex>& sources, const Grid<float>& wanted) {
    check_size("sources", sources.size(), wanted.shape(1));
    if (sources.size() % lanes != 0)
        throw std::invalid_argument("sources has " + std::to_string(sources.size()) + " entries, not a multiple of " +
                                    std::to_string(lanes));
    return {view(sources), {wanted.data(), wanted.shape(0), wanted.shape(1)}};
}

// Compression works in single precision only: its targets have no more.
void bind_stress(nb::module_& m) {
    m.attr("LANES") = lanes;
    m.def(
        "measure_stress",
        [](const HubNetwork<float>& hubs, Array<Vertex> sources, Grid<float> wanted, Array<std::int32_t> blocks,
           float longest, bool with_flows, int n_jobs) {
            check_jobs(n_jobs);
            const Wanted<float> targets = make_wanted(sources, wanted);
            check_vertices("sources", view(sources), hubs.network().topology().n_vertices());
            if (wanted.shape(0) > static_cast<std::size_t>(hubs.network().topology().n_vertices()))
                throw std::invalid_argument("wanted has more rows than there are vertices");
            for (const std::int32_t block : view(blocks))
                if (block < 0 || static_cast<std::size_t>(block) >= sources.size() / lanes)
                    throw std::out_of_range("there is no block " + std::to_string(block));
            Stress<float> stress;
            run([&](Watch& watch) {
                stress = measure_stress<float>(hubs, targets, view(blocks), longest, with_flows, n_jobs, watch);
            });
            const auto out = [](const std::vector<double>& values) {
                return copy_out(std::span<const double>(values));
            };
            return nb::make_tuple(stress.loss, stress.n_pairs, out(stress.gradient), out(stress.uses), out(stress.cost),
                                  out(stress.flow_residuals), out(stress.flow_uses));
        },
        "hubs"_a, "sources"_a, "wanted"_a, "blocks"_a, "longest"_a, "with_flows"_a, "n_jobs"_a);
    m.def(
        "attach",
        [](Array<Vertex> items, Array<Vertex> sources, Grid<float> wanted, Grid<float> distances,
           std::size_t first_column, std::size_t n_arcs, int n_jobs) {
            check_jobs(n_jobs);
            const Wanted<float> targets = make_wanted(sources, wanted);
            check_vertices("items", view(items), static_cast<Vertex>(wanted.shape(0)));
            if (n_arcs == 0) throw std::invalid_argument("n_arcs = 0 asks for nothing");
            if (distances.shape(1) % lanes != 0 || first_column > sources.size() ||
                distances.shape(1) > sources.size() - first_column)
                throw std::invalid_argument("distances has " + std::to_string(distances.shape(1)) +
                                            " columns, which is no window of the sources");
            Attachments<float> found;
            run([&](Watch& watch) {
                found = attach<float>(view(items), targets, {distances.data(), distances.shape(0), distances.shape(1)},
                                      first_column, n_arcs, n_jobs, watch);
            });
            const std::size_t n = items.size(), k = found.n_arcs;
            Owned<std::int32_t> hubs(n * k);
            Owned<float> weights(n * k * k), errors(n * k);
            std::copy(found.hubs.begin(), found.hubs.end(), hubs.data());
            std::copy(found.weights.begin(), found.weights.end(), weights.data());
            std::copy(found.errors.begin(), found.errors.end(), errors.data());
            return nb::make_tuple(hubs.release({n, k}), weights.release({n, k, k}), errors.release({n, k}));
        },
        "items"_a, "sources"_a, "wanted"_a, "distances"_a, "first_column"_a, "n_arcs"_a, "n_jobs"_a);
}

// A community is a column of `reach`, or -1 where an edge may be missing.
void check_communities(const char* name, std::span<const std::int32_t> communities, std::size_t n, int least) {
    for (const std::int32_t g : communities)
        if (g < least || g >= static_cast<std::int64_t>(n))
            throw std::out_of_range(std::string(name) + ": there is no community " + std::to_string(g));
}

void bind_flows(nb::module_& m) {
    m.def(
        "measure_flows",
        [](Grid<float> reach, Array<std::int32_t> first, Array<float> first_weight, Array<std::int32_t> second,
           Array<float> second_weight, Grid<float> wanted, int n_jobs) {
            check_jobs(n_jobs);
            const std::size_t n_types = reach.shape(0), n_communities = reach.shape(1), n_items = first.size();
            if (wanted.shape(0) != n_types || wanted.shape(1) != n_items)
                throw std::invalid_argument("wanted must have a row for each type and a column for each item");
            check_size("first_weight", first_weight.size(), n_items);
            check_size("second", second.size(), n_items);
            check_size("second_weight", second_weight.size(), n_items);
            check_communities("first", view(first), n_communities, 0);
            check_communities("second", view(second), n_communities, -1);
            Flows flows;
            run([&](Watch& watch) {
                flows = measure_flows({reach.data(), n_types, n_communities},
                                      {view(first), view(second), view(first_weight), view(second_weight)},
                                      {wanted.data(), n_types, n_items}, n_jobs, watch);
            });
            const auto out = [](const std::vector<double>& values, std::size_t rows, std::size_t columns) {
                Owned<double> owned(values.size());
                std::copy(values.begin(), values.end(), owned.data());
                return owned.release({rows, columns});
            };
            return nb::make_tuple(flows.loss, out(flows.wanted, n_types, n_communities),
                                  out(flows.given, n_types, n_communities), out(flows.item_wanted, n_items, 2),
                                  out(flows.item_given, n_items, 2));
        },
        "reach"_a, "first"_a, "first_weight"_a, "second"_a, "second_weight"_a, "wanted"_a, "n_jobs"_a);
    m.def(
        "choose_second",
        [](Grid<float> wanted, Array<float> rate, Grid<float> reach, Array<std::int32_t> first,
           Grid<std::int32_t> candidates, Array<float> offsets, int n_jobs) {
            check_jobs(n_jobs);
            const std::size_t n_items = wanted.shape(0), n_types = wanted.shape(1), n_communities = reach.shape(0);
            check_size("rate", rate.size(), n_types);
            check_size("first", first.size(), n_items);
            if (reach.shape(1) != n_types || candidates.shape(0) != n_items)
                throw std::invalid_argument("reach must have a column for each type, candidates a row for each item");
            check_communities("first", view(first), n_communities, 0);
            check_communities("candidates", {candidates.data(), candidates.size()}, n_communities, 0);
            SecondEdges found;
            run([&](Watch& watch) {
                found = choose_second({wanted.data(), n_items, n_types}, view(rate),
                                      {reach.data(), n_communities, n_types}, view(first),
                                      {candidates.data(), n_items, candidates.shape(1)}, view(offsets), n_jobs, watch);
            });
            return nb::make_tuple(copy_out(std::span<const std::int32_t>(found.community)),
                                  copy_out(std::span<const float>(found.offset)),
                                  copy_out(std::span<const float>(found.gain)));
        },
        "wanted"_a, "rate"_a, "reach"_a, "first"_a, "candidates"_a, "offsets"_a, "n_jobs"_a);
}

}  // namespace
}  // namespace prodige

NB_MODULE(_core, m) {
    using namespace prodige;
    m.doc() = "Native search core of prodige.";
    nb::set_leak_warnings(false);  // objects alive at exit are no bug: the interpreter does not free everything

    nb::class_<Topology>(m, "Topology")
        .def(
            "__init__",
            [](Topology* self, Vertex n_vertices, Array<Vertex> tails, Array<Vertex> heads) {
                new (self) Topology(n_vertices, view(tails), view(heads));
            },
            "n_vertices"_a, "tails"_a, "heads"_a)
        .def_prop_ro("n_vertices", &Topology::n_vertices)
        .def_prop_ro("n_edges", &Topology::n_edges)
        .def_prop_ro("n_components", &Topology::n_components)
        .def_prop_ro(
            "components", [](const Topology& t) { return copy_out(t.components()); }, nb::rv_policy::move)
        .def_prop_ro(
            "degrees",
            [](const Topology& t) {
                Owned<std::int32_t> degrees(t.n_vertices());
                for (Vertex v = 0; v < t.n_vertices(); ++v) degrees.data()[v] = t.degree(v);
                return degrees.release({degrees.span().size()});
            },
            nb::rv_policy::move)
        .def(
            "choose_hubs",
            [](const Topology& topology, Vertex n_items) -> std::optional<Output<std::uint8_t>> {
                if (n_items < 0 || n_items > topology.n_vertices())
                    throw std::invalid_argument("n_items = " + std::to_string(n_items) + " is not between 0 and " +
                                                std::to_string(topology.n_vertices()));
                const auto hubs = choose_hubs(topology, n_items);
                if (!hubs) return std::nullopt;
                return copy_out(std::span<const std::uint8_t>(*hubs));
            },
            "n_items"_a);

    nb::class_<HubLayout>(m, "HubLayout")
        .def(
            "__init__",
            [](HubLayout* self, std::shared_ptr<Topology> topology, Array<std::uint8_t> is_hub) {
                new (self) HubLayout(topology, view(is_hub));
            },
            "topology"_a, "is_hub"_a)
        .def_prop_ro("n_hubs", &HubLayout::n_hubs)
        .def_prop_ro("n_core", &HubLayout::n_core);

    bind_forest<float>(m, "Forest32");
    bind_forest<double>(m, "Forest64");
    bind_network<float>(m, "Network32");
    bind_network<double>(m, "Network64");
    bind_hub_network<float>(m, "HubNetwork32");
    bind_hub_network<double>(m, "HubNetwork64");
    bind_stress(m);
    bind_flows(m);
    bind_text(m);
    bind_words(m);
}
