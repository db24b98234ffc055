// Bindings of graphs and of the two engines that search them.
#include "bindings_neighbors.hpp"
#include "forest.hpp"
#include "hubs.hpp"
#include "network.hpp"
#include "search.hpp"
#include "topology.hpp"

namespace prodige {

namespace {

void check_call(const Array<Vertex>& sources, const Topology& topology, int n_jobs) {
    check_jobs(n_jobs);
    check_vertices("sources", view(sources), topology.n_vertices());
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

void bind_topology(nb::module_& m) {
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
                check_count("n_items", n_items, topology.n_vertices());
                const auto hubs = choose_hubs(topology, n_items);
                if (!hubs) return std::nullopt;
                return copy_out(*hubs);
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
                check_call(sources, network.topology(), n_jobs);
                return find_distances<T>(sources.size(), targets, n_columns, network.topology().n_vertices(),
                                         [&](auto to, Matrix<T> distances, Watch& watch) {
                                             search_distances<T>(network, view(sources), to, distances, n_jobs, watch);
                                         });
            },
            "sources"_a, "targets"_a.none(), "n_columns"_a, "n_jobs"_a)
        .def(
            "pair_distances",
            [](const N& network, Array<Vertex> i, Array<Vertex> j, int n_jobs) {
                return find_pair_distances<T>(i, j, network.topology().n_vertices(), n_jobs,
                                              [&](std::span<T> distances, Watch& watch) {
                                                  search_pairs<T>(network, view(i), view(j), distances, n_jobs, watch);
                                              });
            },
            "i"_a, "j"_a, "n_jobs"_a)
        .def(
            "neighbors",
            [](const N& network, Array<Vertex> sources, Vertex n_items, std::optional<std::size_t> k,
               std::optional<T> radius, int n_jobs) {
                check_call(sources, network.topology(), n_jobs);
                return find_neighbors<T>(network.topology().n_vertices(), n_items, k, radius,
                                         [&](const Stop<T>& stop, Watch& watch) {
                                             return search_neighbors<T>(network, view(sources), stop, n_jobs, watch);
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
                check_call(sources, topology, n_jobs);
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
                check_call(sources, hubs.network().topology(), n_jobs);
                return find_distances<T>(sources.size(), targets, n_columns, hubs.network().topology().n_vertices(),
                                         [&](auto to, Matrix<T> distances, Watch& watch) {
                                             hubs.distances(view(sources), to, distances, n_jobs, watch);
                                         });
            },
            "sources"_a, "targets"_a.none(), "n_columns"_a, "n_jobs"_a)
        .def(
            "pair_distances",
            [](const H& hubs, Array<Vertex> i, Array<Vertex> j, int n_jobs) {
                return find_pair_distances<T>(i, j, hubs.network().topology().n_vertices(), n_jobs,
                                              [&](std::span<T> distances, Watch& watch) {
                                                  hubs.pair_distances(view(i), view(j), distances, n_jobs, watch);
                                              });
            },
            "i"_a, "j"_a, "n_jobs"_a)
        .def(
            "neighbors",
            [](const H& hubs, Array<Vertex> sources, Vertex n_items, std::optional<std::size_t> k,
               std::optional<T> radius, int n_jobs) {
                check_call(sources, hubs.network().topology(), n_jobs);
                return find_neighbors<T>(hubs.network().topology().n_vertices(), n_items, k, radius,
                                         [&](const Stop<T>& stop, Watch& watch) {
                                             return hubs.neighbors(view(sources), stop, n_jobs, watch);
                                         });
            },
            "sources"_a, "n_items"_a, "k"_a.none(), "radius"_a.none(), "n_jobs"_a)
        .def(
            "search",
            [](const H& hubs, Array<Vertex> sources, std::optional<Array<T>> probabilities, std::uint64_t seed,
               std::optional<Array<std::uint64_t>> groups, int n_jobs) {
                const Topology& topology = hubs.network().topology();
                check_call(sources, topology, n_jobs);
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

}  // namespace

void bind_search(nb::module_& m) {
    bind_topology(m);
    bind_network<float>(m, "Network32");
    bind_network<double>(m, "Network64");
    bind_hub_network<float>(m, "HubNetwork32");
    bind_hub_network<double>(m, "HubNetwork64");
}

}  // namespace prodige
