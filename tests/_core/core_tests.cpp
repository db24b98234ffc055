// Tests of the core without Python, for the sanitizers above all.
//
// Oracles are written the slow and obvious path and share no code with the core. Where weights are small integers every
// sum is exact, so both engines must agree with the oracle to the bit. Where they are real the general search must
// still do so: every path of running Dijkstra's algorithm takes the minimum over the same rounded sums. The hub engine
// adds in another order and gets a tolerance.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "checking.hpp"
#include "forest.hpp"
#include "hubs.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "network.hpp"
#include "parallel.hpp"
#include "queue.hpp"
#include "random.hpp"
#include "search.hpp"
#include "stress.hpp"
#include "topology.hpp"

namespace prodige {
namespace {

// -- graphs

struct Graph {
    std::string family;
    Vertex n = 0;
    Vertex n_items = 0;
    std::vector<Vertex> tails, heads;
    std::vector<double> weights;
    bool exact = false;  // weights are small integers

    Edge n_edges() const { return static_cast<Edge>(tails.size()); }

    void join(Vertex a, Vertex b, double weight) {
        if (a == b) return;
        tails.push_back(a);
        heads.push_back(b);
        weights.push_back(weight);
    }

    bool joins(Edge e, Vertex a, Vertex b) const {
        return (tails[e] == a && heads[e] == b) || (tails[e] == b && heads[e] == a);
    }
};

using Draw = double (*)(Random&);

double real(Random& random) { return 0.05 + random.unit(); }
double long_tailed(Random& random) { return 1 / (0.001 + random.unit()); }
double one(Random&) { return 1; }
double zero(Random&) { return 0; }
double few_values(Random& random) { return 1 + static_cast<double>(random.below(3)); }
double often_zero(Random& random) { return random.chance(0.5) ? 0 : 1 + static_cast<double>(random.below(4)); }
double many_values(Random& random) { return 1 + static_cast<double>(random.below(4096)); }

Graph empty_graph(const std::string& family, Vertex n, Draw draw) {
    Graph graph;
    graph.family = family;
    graph.n = graph.n_items = n;
    graph.exact = draw != real && draw != long_tailed;
    return graph;
}

Graph random_graph(const std::string& family, Random& random, Vertex n, std::size_t n_edges, Draw draw) {
    Graph graph = empty_graph(family, n, draw);
    for (std::size_t e = 0; e < n_edges; ++e) graph.join(random.vertex(n), random.vertex(n), draw(random));
    return graph;
}

Graph dense_graph(const std::string& family, Random& random, Vertex n, Draw draw) {
    Graph graph = empty_graph(family, n, draw);
    for (Vertex a = 0; a < n; ++a)
        for (Vertex b = 0; b < a; ++b)
            if (random.chance(0.4)) graph.join(a, b, draw(random));
    return graph;
}

Graph islands(const std::string& family, Random& random, Vertex n, Vertex n_islands, std::size_t n_edges, Draw draw) {
    Graph graph = empty_graph(family, n, draw);
    for (std::size_t e = 0; e < n_edges; ++e) {
        const Vertex a = random.vertex(n);
        const Vertex b = random.vertex(n);
        if (a % n_islands == b % n_islands) graph.join(a, b, draw(random));
    }
    return graph;
}

Graph random_tree(const std::string& family, Random& random, Vertex n, Draw draw) {
    Graph graph = empty_graph(family, n, draw);
    for (Vertex v = 1; v < n; ++v) graph.join(v, random.vertex(v), draw(random));
    return graph;
}

Graph star(const std::string& family, Random& random, Vertex n, Draw draw) {
    Graph graph = empty_graph(family, n, draw);
    for (Vertex v = 1; v < n; ++v) graph.join(0, v, draw(random));
    return graph;
}

Graph path(const std::string& family, Random& random, Vertex n, Draw draw) {
    Graph graph = empty_graph(family, n, draw);
    for (Vertex v = 1; v < n; ++v) graph.join(v - 1, v, draw(random));
    return graph;
}

// Items joined to a few hubs, some hubs joined to each other, a few items joined directly. Hubs come after items.
Graph hub_graph(const std::string& family, Random& random, Vertex n_items, Vertex n_hubs, Draw draw) {
    Graph graph = empty_graph(family, n_items + n_hubs, draw);
    graph.n_items = n_items;
    for (Vertex v = 0; v < n_items; ++v)
        for (std::uint64_t arc = random.below(4) + 1; arc > 0; --arc)
            graph.join(v, n_items + random.vertex(n_hubs), draw(random));
    for (Vertex h = 0; h < 2 * n_hubs; ++h)
        graph.join(n_items + random.vertex(n_hubs), n_items + random.vertex(n_hubs), draw(random));
    for (Vertex local = 0; local < n_items / 5; ++local)
        graph.join(random.vertex(n_items), random.vertex(n_items), draw(random));
    return graph;
}

Graph with_parallel_edges(const std::string& family, const Graph& single, Random& random, Draw draw) {
    Graph graph = empty_graph(family, single.n, draw);
    for (Edge e = 0; e < single.n_edges(); ++e)
        for (std::uint64_t copy = random.below(3) + 1; copy > 0; --copy)
            graph.join(single.heads[e], single.tails[e], draw(random));
    return graph;
}

double point_distance(const std::vector<std::array<double, 4>>& points, Vertex a, Vertex b) {
    double sum = 0;
    for (std::size_t d = 0; d < 4; ++d) sum += (points[a][d] - points[b][d]) * (points[a][d] - points[b][d]);
    return std::sqrt(sum);
}

// Every point is joined to the nearest half of some random others: about 40 edges each, of quite different lengths, so
// that all vertices get a tentative distance long before they are settled.
Graph point_graph(const std::string& family, Random& random, Vertex n) {
    Graph graph = empty_graph(family, n, real);
    std::vector<std::array<double, 4>> points(n);
    for (auto& point : points)
        for (double& coordinate : point) coordinate = random.unit();
    for (Vertex v = 0; v < n; ++v) {
        auto others = random.vertices(40, n);
        std::sort(others.begin(), others.end(),
                  [&](Vertex a, Vertex b) { return point_distance(points, v, a) < point_distance(points, v, b); });
        for (std::size_t k = 0; k < 20; ++k) graph.join(v, others[k], point_distance(points, v, others[k]));
    }
    return graph;
}

// A few far vertices are what the search's horizon is for.
Graph with_far_vertices(const std::string& family, Graph graph, Random& random, Vertex n_far) {
    graph.family = family;
    const Vertex n_near = graph.n;
    graph.n += n_far;
    graph.n_items = graph.n;
    for (Vertex v = n_near; v < graph.n; ++v)
        for (int arc = 0; arc < 3; ++arc) graph.join(v, random.vertex(n_near), 20 + 30 * random.unit());
    return graph;
}

// All spokes of the wheel tie, but the rim is lighter: nothing is final when it is first reached.
Graph wheel(const std::string& family, Vertex n, double spoke, double rim) {
    Graph graph = empty_graph(family, n, one);
    for (Vertex v = 1; v < n; ++v) graph.join(0, v, spoke);
    for (Vertex v = 1; v < n; ++v) graph.join(v, v + 1 < n ? v + 1 : 1, rim);
    return graph;
}

void add_small_graphs(std::vector<Graph>& graphs, Random& random, Vertex n) {
    const auto size = static_cast<std::size_t>(n);
    graphs.push_back(random_graph("sparse", random, n, size * 3 / 2, real));
    graphs.push_back(random_graph("sparse ties", random, n, size * 2, few_values));
    graphs.push_back(random_graph("sparse zeros", random, n, size * 2, often_zero));
    graphs.push_back(random_graph("all zero", random, n, size, zero));
    graphs.push_back(random_graph("long-tailed", random, n, size * 5, long_tailed));
    graphs.push_back(dense_graph("dense", random, n, real));
    graphs.push_back(dense_graph("dense ones", random, n, one));
    graphs.push_back(dense_graph("dense zeros", random, n, often_zero));
    graphs.push_back(islands("islands", random, n, 4, size * 6, real));
    graphs.push_back(random_tree("tree", random, n, real));
    graphs.push_back(star("star", random, n, few_values));
    graphs.push_back(path("path", random, n, many_values));
    graphs.push_back(with_parallel_edges("parallel", random_graph("", random, n, size * 2, one), random, few_values));
    graphs.push_back(empty_graph("no edges", n, one));
    graphs.push_back(hub_graph("hubs", random, n, 1 + n / 12, real));
    graphs.push_back(hub_graph("hubs ties", random, n, 1 + n / 20, few_values));
    graphs.push_back(hub_graph("hubs zeros", random, n, 1 + n / 8, often_zero));
}

void add_large_graphs(std::vector<Graph>& graphs, Random& random) {
    graphs.push_back(point_graph("points", random, 640));
    graphs.push_back(with_far_vertices("points and far ones", point_graph("", random, 700), random, 25));
    graphs.push_back(random_graph("large long-tailed", random, 650, 650 * 20, long_tailed));
    graphs.push_back(random_graph("large ties", random, 640, 640 * 20, few_values));
    graphs.push_back(random_graph("large ones", random, 620, 620 * 30, one));
    graphs.push_back(random_graph("large zeros", random, 620, 620 * 10, often_zero));
    graphs.push_back(islands("large islands", random, 1160, 2, 1160 * 25, real));
    graphs.push_back(hub_graph("many hubs", random, 700, 150, real));
    graphs.push_back(path("long path", random, 1200, few_values));
    graphs.push_back(wheel("wheel", 640, 8, 1));
    graphs.push_back(wheel("wheel of zeros", 640, 1, 0));
}

// The thread sanitizer makes everything ten times slower, and most tests have but one thread to look at.
#if defined(__SANITIZE_THREAD__)
constexpr bool looks_for_races = true;
#elif defined(__has_feature)
constexpr bool looks_for_races = __has_feature(thread_sanitizer);
#else
constexpr bool looks_for_races = false;
#endif

const std::vector<Graph>& all_graphs() {
    static const std::vector<Graph> graphs = [] {
        Random random(20240601);
        std::vector<Graph> all;
        if (looks_for_races) {
            for (const Vertex n : {1, 3, 20}) add_small_graphs(all, random, n);
            all.push_back(point_graph("points", random, 640));
        } else {
            for (const Vertex n : {1, 2, 3, 6, 17, 60, 180}) add_small_graphs(all, random, n);
            add_large_graphs(all, random);
        }
        return all;
    }();
    return graphs;
}

// Fewer sources and hubs for these, or the sanitizers take minutes.
bool is_large(const Graph& graph) { return graph.n > 500 || graph.n_edges() > 5000; }

std::string describe(const Graph& graph) {
    return graph.family + ", " + std::to_string(graph.n) + " vertices, " + std::to_string(graph.n_edges()) + " edges";
}

Vertex busiest_vertex(const Graph& graph) {
    std::vector<int> degrees(graph.n, 0);
    for (Edge e = 0; e < graph.n_edges(); ++e) {
        ++degrees[graph.tails[e]];
        ++degrees[graph.heads[e]];
    }
    return static_cast<Vertex>(std::max_element(degrees.begin(), degrees.end()) - degrees.begin());
}

// -- oracles

using Keep = std::function<bool(Edge)>;

bool keep_all(Edge) { return true; }

// Bellman-Ford from any start: relaxes every edge until nothing moves.
template <class T>
void relax(const Graph& graph, std::span<const T> weights, std::vector<T>& distances, const Keep& keep = keep_all) {
    std::vector<Edge> kept;
    for (Edge e = 0; e < graph.n_edges(); ++e)
        if (keep(e)) kept.push_back(e);
    bool moved = true;
    const auto pull = [&](Vertex from, Vertex into, T weight) {
        if (!(distances[from] + weight < distances[into])) return;
        distances[into] = distances[from] + weight;
        moved = true;
    };
    while (moved) {
        moved = false;
        for (const Edge e : kept) {
            pull(graph.tails[e], graph.heads[e], weights[e]);
            pull(graph.heads[e], graph.tails[e], weights[e]);
        }
        std::reverse(kept.begin(), kept.end());  // both directions: a path settles in two rounds
    }
}

template <class T>
std::vector<T> true_distances(const Graph& graph, std::span<const T> weights, Vertex source,
                              const Keep& keep = keep_all) {
    std::vector<T> distances(graph.n, unreached<T>);
    distances[source] = 0;
    relax(graph, weights, distances, keep);
    return distances;
}

template <class T>
std::vector<T> weights_of(const Graph& graph) {
    return {graph.weights.begin(), graph.weights.end()};
}

template <class T>
std::shared_ptr<const Network<T>> make_network(const Graph& graph, int n_jobs = 1) {
    Watch watch;
    const auto weights = weights_of<T>(graph);
    return std::make_shared<const Network<T>>(std::make_shared<const Topology>(graph.n, graph.tails, graph.heads),
                                              std::span<const T>(weights), n_jobs, watch);
}

// A graph, its network, and the truth from some sources.
template <class T>
struct Fixture {
    const Graph& graph;
    std::vector<T> weights;
    std::shared_ptr<const Network<T>> network;
    std::vector<Vertex> sources;
    std::vector<std::vector<T>> truth;  // a row per source

    // What a call with these targets, or with this many columns, has to answer.
    std::vector<T> answer(const std::vector<Vertex>& targets, std::size_t n_columns) const {
        std::vector<T> rows;
        for (const auto& row : truth)
            for (std::size_t c = 0; c < n_columns; ++c) rows.push_back(row[targets.empty() ? c : targets[c]]);
        return rows;
    }
};

template <class T>
Fixture<T> make_fixture(const Graph& graph, Random& random) {
    Fixture<T> fixture{graph, weights_of<T>(graph), make_network<T>(graph), {}, {}};
    // Not a multiple of the lanes of the hub engine, and some source comes twice.
    fixture.sources = random.vertices(is_large(graph) ? 5 : 17, graph.n);
    fixture.sources.push_back(busiest_vertex(graph));
    fixture.sources.push_back(fixture.sources.front());
    for (const Vertex source : fixture.sources)
        fixture.truth.push_back(true_distances<T>(graph, fixture.weights, source));
    return fixture;
}

template <class T>
const std::vector<Fixture<T>>& fixtures() {
    static const std::vector<Fixture<T>> all = [] {
        Random random(7);
        std::vector<Fixture<T>> made;
        for (const Graph& graph : all_graphs()) made.push_back(make_fixture<T>(graph, random));
        return made;
    }();
    return all;
}

// -- calls in the words of the tests

template <class T>
Stop<T> until_targets(const std::vector<Vertex>& targets) {
    Stop<T> stop;
    stop.until = Until::targets;
    stop.targets = targets;
    return stop;
}

template <class T>
Stop<T> until_nearest(std::size_t k, Vertex n_items) {
    Stop<T> stop;
    stop.until = Until::nearest;
    stop.k = k;
    stop.n_items = n_items;
    return stop;
}

template <class T>
Stop<T> until_radius(T radius, Vertex n_items) {
    Stop<T> stop;
    stop.until = Until::radius;
    stop.radius = radius;
    stop.n_items = n_items;
    return stop;
}

template <class T>
std::vector<T> distances_of(const Network<T>& network, const std::vector<Vertex>& sources,
                            const std::vector<Vertex>& targets, std::size_t n_columns, int n_jobs = 1) {
    Watch watch;
    std::vector<T> out(sources.size() * n_columns, T(-1));
    search_distances<T>(network, sources, targets, {out.data(), sources.size(), n_columns}, n_jobs, watch);
    return out;
}

template <class T>
std::vector<T> distances_of(const HubNetwork<T>& hubs, const std::vector<Vertex>& sources,
                            const std::vector<Vertex>& targets, std::size_t n_columns, int n_jobs = 1) {
    Watch watch;
    std::vector<T> out(sources.size() * n_columns, T(-1));
    hubs.distances(sources, targets, {out.data(), sources.size(), n_columns}, n_jobs, watch);
    return out;
}

template <class T>
std::vector<T> distances_of(const Forest<T>& forest, const std::vector<Vertex>& targets, std::size_t n_columns,
                            int n_jobs = 1) {
    Watch watch;
    std::vector<T> out(forest.n_sources() * n_columns, T(-1));
    forest.distances(targets, {out.data(), forest.n_sources(), n_columns}, n_jobs, watch);
    return out;
}

template <class T>
std::shared_ptr<Forest<T>> forest_of(std::shared_ptr<const Network<T>> network, const std::vector<Vertex>& sources,
                                     const Stop<T>& stop = {}, const Sampling<T>& sampling = {}, int n_jobs = 1) {
    Watch watch;
    return search_forest<T>(network, sources, stop, sampling, n_jobs, watch);
}

template <class T>
std::shared_ptr<Forest<T>> forest_of(const HubNetwork<T>& hubs, const std::vector<Vertex>& sources,
                                     const Sampling<T>& sampling = {}, int n_jobs = 1) {
    Watch watch;
    return hub_forest<T>(hubs, sources, sampling, n_jobs, watch);
}

using Mask = std::vector<std::uint8_t>;

template <class T>
HubNetwork<T> hubs_of(std::shared_ptr<const Network<T>> network, const Mask& is_hub) {
    Watch watch;
    return HubNetwork<T>(network, std::make_shared<const HubLayout>(network->shared_topology(), is_hub), nullptr,
                         watch);
}

// -- topology and network

void test_bad_topologies() {
    using Vertices = std::vector<Vertex>;
    const auto make = [](Vertex n, const Vertices& tails, const Vertices& heads) { Topology(n, tails, heads); };
    CHECK_THROWS(std::invalid_argument, make(-1, {}, {}));
    CHECK_THROWS(std::invalid_argument, make(0, {0}, {0}));
    CHECK_THROWS(std::invalid_argument, make(3, {0}, {3}));
    CHECK_THROWS(std::invalid_argument, make(3, {3}, {0}));
    CHECK_THROWS(std::invalid_argument, make(3, {0, -1}, {1, 2}));
    CHECK_THROWS(std::invalid_argument, make(3, {0, 1}, {1, -1}));
    CHECK_THROWS(std::invalid_argument, make(3, {0, 1}, {1, 1}));
    CHECK_THROWS(std::invalid_argument, make(3, {0, 1}, {1}));
    CHECK_THROWS(std::invalid_argument, make(3, {0}, {1, 2}));
    make(0, {}, {});
    make(3, {0, 0}, {1, 1});
}

template <class T>
void test_bad_weights() {
    Random random(1);
    const Graph graph = path("path", random, 3, one);
    const auto topology = std::make_shared<const Topology>(graph.n, graph.tails, graph.heads);
    Watch watch;
    const auto make = [&](const std::vector<T>& weights) { Network<T>(topology, weights, 1, watch); };
    const Network<T> good(topology, std::vector<T>{1, 2}, 1, watch);
    const T infinity = unreached<T>;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    const T tiny = std::numeric_limits<T>::denorm_min();
    for (const T bad : {nan, -nan, infinity, -infinity, T(-1), -tiny}) {
        CHECK_THROWS(std::invalid_argument, make({1, bad}));
        CHECK_THROWS(std::invalid_argument, make({bad, 1}));
        CHECK_THROWS(std::invalid_argument, good.with_weights(std::vector<T>{1, bad}, 1, watch));
    }
    CHECK_THROWS(std::invalid_argument, make({}));
    CHECK_THROWS(std::invalid_argument, make({1}));
    CHECK_THROWS(std::invalid_argument, make({1, 2, 3}));
    CHECK_THROWS(std::invalid_argument, good.with_weights(std::vector<T>{1}, 1, watch));
    make({0, tiny});
    make({T(-0.0), std::numeric_limits<T>::max()});
}

void test_bad_layouts() {
    const auto topology = std::make_shared<const Topology>(3, std::vector<Vertex>{0}, std::vector<Vertex>{1});
    CHECK_THROWS(std::invalid_argument, HubLayout(topology, Mask{1, 0}));
    CHECK_THROWS(std::invalid_argument, HubLayout(topology, Mask{1, 0, 0, 0}));
}

void check_arcs(const Graph& graph, const Topology& topology) {
    std::vector<int> times_seen(graph.tails.size(), 0);
    for (Vertex v = 0; v < graph.n; ++v)
        for (std::int32_t arc = topology.offsets()[v]; arc < topology.offsets()[v + 1]; ++arc) {
            const Edge e = topology.edges()[arc];
            CHECK(graph.joins(e, v, topology.targets()[arc]));
            CHECK(arc == topology.offsets()[v] || topology.edges()[arc - 1] < e);
            ++times_seen[e];
        }
    CHECK(topology.n_arcs() == 2 * graph.tails.size());
    CHECK(std::all_of(times_seen.begin(), times_seen.end(), [](int times) { return times == 2; }));
}

void check_components(const Graph& graph, const Topology& topology) {
    std::vector<Vertex> smallest(graph.n);  // smallest vertex of the component, by spreading it along the edges
    std::iota(smallest.begin(), smallest.end(), 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (Edge e = 0; e < graph.n_edges(); ++e) {
            Vertex& a = smallest[graph.tails[e]];
            Vertex& b = smallest[graph.heads[e]];
            moved |= a != b;
            a = b = std::min(a, b);
        }
    }
    std::set<Vertex> seen(smallest.begin(), smallest.end());
    CHECK(topology.n_components() == seen.size());
    for (Vertex v = 0; v < graph.n; ++v) {
        CHECK(topology.components()[v] == std::distance(seen.begin(), seen.find(smallest[v])));
        CHECK(topology.component_size(v) == std::count(smallest.begin(), smallest.end(), smallest[v]));
    }
}

void test_topology() {
    for (const Graph& graph : all_graphs()) {
        context = describe(graph);
        const Topology topology(graph.n, graph.tails, graph.heads);
        CHECK(topology.n_vertices() == graph.n);
        CHECK(topology.n_edges() == graph.n_edges());
        check_arcs(graph, topology);
        if (graph.n <= 200) check_components(graph, topology);
    }
}

template <class T>
void check_order_of_arcs(const Graph& graph, const Network<T>& network) {
    for (Vertex v = 0; v < graph.n; ++v)
        for (std::int32_t arc = network.begin(v); arc < network.end(v); ++arc) {
            const T weight = network.arcs()[arc].weight;
            const Edge edge = network.arc_edges()[arc];
            CHECK(graph.joins(edge, v, network.arcs()[arc].target));
            CHECK(weight == network.weights()[edge]);
            if (arc == network.begin(v)) continue;
            const T before = network.arcs()[arc - 1].weight;
            CHECK(before < weight || (before == weight && network.arc_edges()[arc - 1] < edge));
        }
}

template <class T>
void test_network() {
    Random random(3);
    Watch watch;
    for (const Fixture<T>& fixture : fixtures<T>()) {
        const Graph& graph = fixture.graph;
        context = describe(graph);
        check_order_of_arcs(graph, *fixture.network);
        // Once nearly in order, once not at all: the two paths of sorting.
        std::vector<T> weights = fixture.weights;
        for (T& weight : weights) weight *= static_cast<T>(1 + 0.01 * random.unit());
        check_order_of_arcs(graph, *fixture.network->with_weights(weights, 1, watch));
        for (T& weight : weights) weight = static_cast<T>(random.below(5));
        const auto other = fixture.network->with_weights(weights, 1, watch);
        check_order_of_arcs(graph, *other);
        const Vertex source = fixture.sources.front();
        CHECK(distances_of<T>(*other, {source}, {}, graph.n) == true_distances<T>(graph, weights, source));
    }
}

// Large enough that the arcs are sorted by several threads.
void test_large_network() {
    Random random(4);
    const Graph graph = random_graph("large", random, 900, 140000, few_values);
    context = describe(graph);
    const auto alone = make_network<float>(graph, 1);
    const auto together = make_network<float>(graph, 5);
    const std::size_t n_arcs = 2 * graph.tails.size();
    CHECK(std::equal(alone->arc_edges(), alone->arc_edges() + n_arcs, together->arc_edges()));
}

// Labels compare the bits of floats, where -0 would be larger than everything.
template <class T>
void test_negative_zero() {
    Random random(5);
    Graph graph = random_graph("negative zeros", random, 40, 160, often_zero);
    for (double& weight : graph.weights)
        if (weight == 0) weight = -0.0;
    context = describe(graph);
    const auto network = make_network<T>(graph);
    for (const T weight : network->weights()) CHECK(!std::signbit(weight));
    for (Vertex source = 0; source < graph.n; ++source)
        CHECK(distances_of<T>(*network, {source}, {}, graph.n) == true_distances<T>(graph, network->weights(), source));
}

// -- the small parts

template <class T>
void test_queue() {
    Random random(6);
    for (std::size_t size = 0; size < 120; ++size) {
        Queue<T> queue;
        std::vector<std::pair<T, Vertex>> expected;
        for (std::size_t i = 0; i < size; ++i) {
            expected.emplace_back(static_cast<T>(random.below(12)) / 4, random.vertex(50));
            queue.push(expected.back().first, expected.back().second);
        }
        std::sort(expected.begin(), expected.end());
        for (const auto& [distance, vertex] : expected) {
            const auto label = queue.pop();
            CHECK(label.distance() == distance && label.vertex() == vertex);
        }
        CHECK(queue.empty());
    }
}

template <class T>
void test_labels_order_by_distance_then_vertex() {
    const T tiny = std::numeric_limits<T>::denorm_min();
    const T huge = std::numeric_limits<T>::max();
    std::vector<Label<T>> labels;
    for (const T distance : {T(0), tiny, T(1), std::nextafter(T(1), T(2)), huge, unreached<T>})
        for (const Vertex vertex : {0, 1, 256, 65536, std::numeric_limits<Vertex>::max()})
            labels.emplace_back(distance, vertex);
    for (std::size_t a = 0; a < labels.size(); ++a)
        for (std::size_t b = 0; b < labels.size(); ++b) CHECK((labels[a] < labels[b]) == (a < b));
}

void test_parallel_for() {
    for (const int n_jobs : {-1, 0, 1, 2, 5, 40})
        for (const std::size_t count : {0, 1, 3, 100}) {
            Watch watch;
            std::vector<int> times(count, 0);
            parallel_for(count, n_jobs, watch, [&](std::size_t worker, std::size_t index) {
                if (worker < static_cast<std::size_t>(std::max(n_jobs, 1))) ++times[index];
            });
            CHECK(times == std::vector<int>(count, 1));
            parallel_ranges(count, n_jobs, watch, [&](std::size_t begin, std::size_t end) {
                for (std::size_t index = begin; index < end; ++index) ++times[index];
            });
            CHECK(times == std::vector<int>(count, 2));
        }
}

// One failure ends the call: the other workers leave jobs undone.
void test_failing_jobs() {
    constexpr int count = 3000;
    for (const int n_jobs : {1, 2, 5}) {
        Watch watch;
        std::atomic<int> n_done = 0;
        const auto job = [&](std::size_t, std::size_t index) {
            if (index == 10) throw std::runtime_error("job 10");
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            ++n_done;
        };
        CHECK_THROWS(std::runtime_error, parallel_for(count, n_jobs, watch, job));
        CHECK(n_done < count - 1);
    }
}

void test_memory() {
    Arena arena;
    std::vector<std::span<unsigned char>> pieces;
    for (const std::size_t bytes : {1, 0, 63, 64, 65, 20000, 1, 5 << 20, 100}) {
        pieces.emplace_back(static_cast<unsigned char*>(arena.allocate(bytes)), bytes);
        std::fill(pieces.back().begin(), pieces.back().end(), static_cast<unsigned char>(pieces.size()));
    }
    for (std::size_t p = 0; p < pieces.size(); ++p)
        CHECK(std::all_of(pieces[p].begin(), pieces[p].end(), [=](unsigned char byte) { return byte == p + 1; }));
    CHECK(arena.bytes() >= 5 << 20);
    LargeVector<double> large(700000, 1.0);
    CHECK(std::accumulate(large.begin(), large.end(), 0.0) == 700000);
    CHECK_THROWS(std::bad_alloc, LargeAllocator<double>().allocate(std::numeric_limits<std::size_t>::max() / 4));
}

// -- the general search

template <class T>
void test_distances() {
    Random random(11);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        const Graph& graph = fixture.graph;
        context = describe(graph);
        for (const Vertex n_columns : {graph.n, graph.n_items, Vertex(1)})
            CHECK(distances_of<T>(*fixture.network, fixture.sources, {}, n_columns) == fixture.answer({}, n_columns));
        for (const std::size_t n_targets : {1, 4, 50}) {
            auto targets = random.vertices(n_targets, graph.n);
            targets.push_back(targets.front());
            targets.push_back(fixture.sources.front());
            CHECK(distances_of<T>(*fixture.network, fixture.sources, targets, targets.size()) ==
                  fixture.answer(targets, targets.size()));
        }
    }
}

// Pairs of drawn sources and any vertices are what rows of the same sources say, to the bit.
template <class T, class FindPairs>
void check_pairs(const Fixture<T>& fixture, const std::vector<T>& rows, Random& random, FindPairs&& find_pairs) {
    std::vector<Vertex> i, j;
    std::vector<T> expected;
    for (int pair = 0; pair < 60; ++pair) {
        const std::size_t row = random.below(fixture.sources.size());
        i.push_back(fixture.sources[row]);
        j.push_back(pair % 10 ? random.vertex(fixture.graph.n) : i.back());
        expected.push_back(rows[row * fixture.graph.n + j.back()]);
    }
    for (const int n_jobs : {1, 3}) {
        Watch watch;
        std::vector<T> found(i.size());
        find_pairs(i, j, std::span<T>(found), n_jobs, watch);
        CHECK(same_bits(found, expected));
        find_pairs({}, {}, std::span<T>(), n_jobs, watch);
    }
}

template <class T>
void test_pairs() {
    Random random(12);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        context = describe(fixture.graph);
        check_pairs(fixture, distances_of<T>(*fixture.network, fixture.sources, {}, fixture.graph.n), random,
                    [&](const std::vector<Vertex>& i, const std::vector<Vertex>& j, std::span<T> out, int n_jobs,
                        Watch& watch) { search_pairs<T>(*fixture.network, i, j, out, n_jobs, watch); });
    }
}

// A tree is right when each of its entries is: the edge above exists, joins child and parent, and adds up.
template <class T>
void check_tree(const Fixture<T>& fixture, const TreeView<T>& tree, std::size_t row, std::span<const T> truth,
                bool exact, const Keep& keep = keep_all) {
    const Graph& graph = fixture.graph;
    if (!CHECK(tree.size() >= 1)) return;
    CHECK(tree.vertices[0] == fixture.sources[row] && tree.distances[0] == 0);
    CHECK(tree.parents[0] == no_position && tree.edges[0] == no_edge);
    std::vector<char> seen(graph.n, 0);
    for (std::size_t p = 0; p < tree.size(); ++p) {
        const Vertex v = tree.vertices[p];
        if (!CHECK(v >= 0 && v < graph.n && !seen[v])) return;
        seen[v] = 1;
        CHECK(agree(tree.distances[p], truth[v], exact));
        if (p == 0) continue;
        const auto parent = static_cast<std::size_t>(tree.parents[p]);
        const Edge edge = tree.edges[p];
        if (!CHECK(tree.parents[p] >= 0 && parent < p && edge >= 0 && edge < graph.n_edges())) return;
        CHECK(graph.joins(edge, tree.vertices[parent], v) && keep(edge));
        CHECK(agree(tree.distances[parent] + fixture.weights[edge], tree.distances[p], exact));
    }
}

template <class T>
bool is_complete(const TreeView<T>& tree, std::span<const T> truth) {
    return static_cast<std::ptrdiff_t>(tree.size()) ==
           std::count_if(truth.begin(), truth.end(), [](T distance) { return distance < unreached<T>; });
}

template <class T>
void test_forest() {
    Random random(12);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        const Graph& graph = fixture.graph;
        context = describe(graph);
        const auto forest = forest_of<T>(fixture.network, fixture.sources);
        for (std::size_t row = 0; row < fixture.sources.size(); ++row) {
            check_tree<T>(fixture, forest->tree(row), row, fixture.truth[row], true);
            CHECK(is_complete<T>(forest->tree(row), fixture.truth[row]));
        }
        CHECK(distances_of(*forest, {}, graph.n) == fixture.answer({}, graph.n));
        CHECK(distances_of(*forest, {}, graph.n_items) == fixture.answer({}, graph.n_items));
        const auto targets = random.vertices(9, graph.n);
        CHECK(distances_of(*forest, targets, 9) == fixture.answer(targets, 9));
    }
}

template <class T>
void test_forest_until_targets() {
    Random random(13);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        context = describe(fixture.graph);
        auto targets = random.vertices(3, fixture.graph.n);
        targets.push_back(targets.front());
        const auto forest = forest_of<T>(fixture.network, fixture.sources, until_targets<T>(targets));
        for (std::size_t row = 0; row < fixture.sources.size(); ++row)
            check_tree<T>(fixture, forest->tree(row), row, fixture.truth[row], true);
        CHECK(distances_of(*forest, targets, 4) == fixture.answer(targets, 4));
    }
}

// Every vertex within the radius is in the tree and no other.
template <class T>
void test_forest_until_radius() {
    Random random(14);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        context = describe(fixture.graph);
        const T some_distance = fixture.truth[0][random.vertex(fixture.graph.n)];
        for (const T radius : {T(0), some_distance, unreached<T>}) {
            const auto forest = forest_of<T>(fixture.network, fixture.sources, until_radius<T>(radius, 0));
            for (std::size_t row = 0; row < fixture.sources.size(); ++row) {
                const auto& truth = fixture.truth[row];
                check_tree<T>(fixture, forest->tree(row), row, truth, true);
                const auto within = std::count_if(truth.begin(), truth.end(), [&](T distance) {
                    return distance <= radius && distance < unreached<T>;
                });
                CHECK(forest->tree(row).size() == static_cast<std::size_t>(within));
            }
        }
    }
}

// Several starts at once, as the hub engine uses them.
template <class T>
void check_seeds(const Fixture<T>& fixture, const std::vector<Seed<T>>& seeds) {
    Watch watch;
    std::vector<T> truth(fixture.graph.n, unreached<T>);
    for (const Seed<T>& seed : seeds) truth[seed.vertex] = std::min(truth[seed.vertex], seed.distance);
    relax<T>(fixture.graph, fixture.weights, truth);
    Tree<T> tree;
    for (Tree<T>* grown : {&tree, static_cast<Tree<T>*>(nullptr)}) {
        const typename ScratchPool<T>::Lease lease(fixture.network->scratch());
        search<T>(*fixture.network, seeds, {}, nullptr, *lease, grown, watch);
        CHECK(std::equal(truth.begin(), truth.end(), (*lease).distances.begin()));
    }
    CHECK(tree.size == static_cast<std::size_t>(std::count_if(truth.begin(), truth.end(),
                                                              [](T distance) { return distance < unreached<T>; })));
    for (std::size_t p = 0; p < tree.size; ++p) {
        CHECK(tree.distances[p] == truth[tree.vertices[p]]);
        if (tree.parents[p] == no_position) continue;
        CHECK(static_cast<std::size_t>(tree.parents[p]) < p);
        CHECK(tree.distances[tree.parents[p]] + fixture.weights[tree.edges[p]] == tree.distances[p]);
    }
}

// Starts that tie, and starts far from zero and from each other: with the latter most vertices beyond the horizon are
// reached by a start first and by an edge later. In one component or in several.
template <class T>
void test_several_seeds() {
    Random random(15);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        context = describe(fixture.graph);
        const auto component = fixture.network->topology().components();
        for (const double share : {0.05, 0.5, 1.0})
            for (const bool tied : {true, false}) {
                const bool anywhere = random.chance(0.5);
                std::vector<Seed<T>> seeds{{fixture.sources[0], T(4), 0}};
                for (Vertex v = 0; v < fixture.graph.n; ++v)
                    if ((anywhere || component[v] == component[fixture.sources[0]]) && random.chance(share)) {
                        const double distance = tied ? few_values(random) : 3 + random.unit() + long_tailed(random) / 9;
                        seeds.push_back({v, static_cast<T>(distance), 0});
                    }
                check_seeds(fixture, seeds);
            }
    }
}

// Targets given twice are not waited for twice.
template <class T>
void test_targets_end_the_search() {
    Random random(17);
    const auto network = make_network<T>(path("path", random, 300, few_values));
    const std::vector<Vertex> targets{5, 3, 5, 0};
    CHECK(forest_of<T>(network, {0}, until_targets<T>(targets))->tree(0).size() == 6);
    const Sampling<T> certain{std::vector<T>(299, T(1)), 0, {0}};
    CHECK(forest_of<T>(network, {0}, until_targets<T>(targets), certain)->tree(0).size() == 6);
}

// -- neighbors

template <class T>
Neighbors<T> true_neighbors(std::span<const T> truth, Vertex source, Vertex n_items, std::size_t k, T radius) {
    std::vector<std::pair<T, Vertex>> found;
    for (Vertex v = 0; v < n_items; ++v)
        if (v != source && truth[v] < unreached<T> && truth[v] <= radius) found.emplace_back(truth[v], v);
    std::sort(found.begin(), found.end());
    found.resize(std::min(found.size(), k));
    Neighbors<T> neighbors;
    for (const auto& [distance, v] : found) {
        neighbors.distances.push_back(distance);
        neighbors.vertices.push_back(v);
    }
    return neighbors;
}

constexpr std::size_t everybody = std::numeric_limits<std::size_t>::max();

// Where sums are not exact, two vertices at about the same distance may change places.
template <class T>
void check_neighbors(const Fixture<T>& fixture, const std::vector<Neighbors<T>>& found, const Stop<T>& stop,
                     bool exact) {
    if (!CHECK(found.size() == fixture.sources.size())) return;
    for (std::size_t row = 0; row < found.size(); ++row) {
        const auto& [vertices, distances] = found[row];
        const auto expected = true_neighbors<T>(fixture.truth[row], fixture.sources[row], stop.n_items,
                                                stop.until == Until::nearest ? stop.k : everybody, stop.radius);
        CHECK(all_agree(distances, expected.distances, exact));
        if (exact) CHECK(vertices == expected.vertices);
        CHECK(vertices.size() == distances.size());
        if (exact) continue;  // the rest follows
        for (std::size_t i = 0; i < vertices.size(); ++i) {
            CHECK(vertices[i] < stop.n_items && vertices[i] != fixture.sources[row]);
            CHECK(close(distances[i], fixture.truth[row][vertices[i]]));
            CHECK(i == 0 || std::pair(distances[i - 1], vertices[i - 1]) < std::pair(distances[i], vertices[i]));
        }
    }
}

// Radii at which nothing lies, so that rounding cannot decide; and one at which something does.
template <class T>
std::vector<Stop<T>> neighbor_stops(const Fixture<T>& fixture, bool exact) {
    const Vertex n_items = fixture.graph.n_items;
    std::vector<Stop<T>> stops;
    for (const std::size_t k : {std::size_t(1), std::size_t(3), std::size_t(10), everybody})
        stops.push_back(until_nearest<T>(k, n_items));
    stops.push_back(until_nearest<T>(2, (n_items + 1) / 2));
    stops.push_back(until_radius<T>(unreached<T>, n_items));
    std::vector<T> sorted;
    for (const auto& row : fixture.truth) sorted.insert(sorted.end(), row.begin(), row.end());
    std::sort(sorted.begin(), sorted.end());
    const T middle = sorted[sorted.size() / 3];
    if (exact) {
        stops.push_back(until_radius<T>(middle, n_items));
        stops.push_back(until_radius<T>(0, n_items));
    }
    const auto next = std::find_if(sorted.begin(), sorted.end(),
                                   [&](T distance) { return distance > middle && !close(distance, middle); });
    if (next != sorted.end() && *next < unreached<T>)
        if (const T radius = (*std::prev(next) + *next) / 2; !close(radius, *next) && !close(radius, *std::prev(next)))
            stops.push_back(until_radius<T>(radius, n_items));
    return stops;
}

template <class T>
void test_neighbors() {
    Random random(16);
    Watch watch;
    for (const Fixture<T>& fixture : fixtures<T>()) {
        context = describe(fixture.graph);
        for (const Stop<T>& stop : neighbor_stops(fixture, true)) {
            if (fixture.graph.n > 100 && random.chance(0.5)) continue;
            const auto found = search_neighbors<T>(*fixture.network, fixture.sources, stop, 1, watch);
            check_neighbors(fixture, found, stop, true);
        }
    }
}

// The tree of a nearest search holds the k items and all that tie with the last of them.
template <class T>
void test_forest_until_nearest() {
    for (const Fixture<T>& fixture : fixtures<T>()) {
        context = describe(fixture.graph);
        for (const std::size_t k : {1, 5}) {
            const auto stop = until_nearest<T>(k, fixture.graph.n_items);
            const auto forest = forest_of<T>(fixture.network, fixture.sources, stop);
            for (std::size_t row = 0; row < fixture.sources.size(); ++row) {
                const auto& truth = fixture.truth[row];
                const auto near =
                    true_neighbors<T>(truth, fixture.sources[row], stop.n_items, k, unreached<T>).distances;
                const T reach = near.size() < k ? unreached<T> : near.back();
                const auto within = std::count_if(truth.begin(), truth.end(), [&](T distance) {
                    return distance <= reach && distance < unreached<T>;
                });
                check_tree<T>(fixture, forest->tree(row), row, truth, true);
                CHECK(forest->tree(row).size() == static_cast<std::size_t>(within));
            }
        }
    }
}

// -- the hubs

Mask random_mask(Random& random, Vertex n, double share) {
    Mask is_hub(n);
    for (auto& hub : is_hub) hub = random.chance(share);
    return is_hub;
}

// Sensible choices and odd ones: the answers may not depend on them.
std::vector<std::pair<std::string, Mask>> all_masks(const Graph& graph, const Topology& topology, Random& random) {
    std::vector<std::pair<std::string, Mask>> masks;
    Mask last(graph.n, 0);
    std::fill(last.begin() + graph.n_items, last.end(), 1);
    masks.emplace_back("from n_items on", last);
    masks.emplace_back("half", random_mask(random, graph.n, 0.5));
    // Not for a large wheel: its hub would leave a shortcut for every pair of vertices.
    if (!is_large(graph) || (graph.n < 730 && graph.n_edges() > 10 * graph.n)) {
        Mask all_but_one(graph.n, 1);
        all_but_one[busiest_vertex(graph)] = 0;
        masks.emplace_back("all but the busiest", all_but_one);
    }
    if (const auto chosen = choose_hubs(topology, graph.n_items)) masks.emplace_back("chosen", *chosen);
    if (is_large(graph)) return masks;
    masks.emplace_back("none", Mask(graph.n, 0));
    masks.emplace_back("all", Mask(graph.n, 1));
    masks.emplace_back("a tenth", random_mask(random, graph.n, 0.1));
    Mask single(graph.n, 0);
    single[busiest_vertex(graph)] = 1;
    masks.emplace_back("one", single);
    return masks;
}

// Runs `test` for every graph with every mask, or with half of them where that takes long.
template <class T, class Test>
void for_all_hubs(std::uint64_t seed, Test&& test) {
    Random random(seed);
    for (const Fixture<T>& fixture : fixtures<T>())
        for (const auto& [name, is_hub] : all_masks(fixture.graph, fixture.network->topology(), random)) {
            if ((looks_for_races || fixture.graph.n > 100) && random.chance(0.5)) continue;  // other tests draw others
            context = describe(fixture.graph) + ", hubs: " + name;
            test(fixture, hubs_of<T>(fixture.network, is_hub), random);
        }
}

void test_layouts() {
    Random random(21);
    for (const Graph& graph : all_graphs()) {
        const auto topology = std::make_shared<const Topology>(graph.n, graph.tails, graph.heads);
        for (const auto& [name, is_hub] : all_masks(graph, *topology, random)) {
            context = describe(graph) + ", hubs: " + name;
            const HubLayout layout(topology, is_hub);
            CHECK(layout.n_hubs() == static_cast<std::size_t>(std::count(is_hub.begin(), is_hub.end(), 1)));
            for (Vertex v = 0; v < graph.n; ++v) {
                if (is_hub[v]) CHECK(static_cast<std::size_t>(layout.core_index(v)) < layout.n_hubs());
                if (layout.is_core(v)) CHECK(layout.core_vertex(layout.core_index(v)) == v);
            }
            std::size_t n_core_edges = 0;
            for (Edge e = 0; e < graph.n_edges(); ++e) {
                CHECK(layout.is_core(graph.tails[e]) || layout.is_core(graph.heads[e]));  // no two spokes are joined
                n_core_edges += layout.is_core(graph.tails[e]) && layout.is_core(graph.heads[e]);
            }
            CHECK(layout.core_edges().size() == n_core_edges);
        }
    }
}

void test_choice_of_hubs() {
    Random random(22);
    const Graph hubs = hub_graph("hubs", random, 600, 12, real);
    const auto chosen = choose_hubs(Topology(hubs.n, hubs.tails, hubs.heads), hubs.n_items);
    CHECK(chosen && std::all_of(chosen->begin() + hubs.n_items, chosen->end(), [](auto hub) { return hub == 1; }));
    const auto found = choose_hubs(Topology(hubs.n, hubs.tails, hubs.heads), hubs.n);  // nobody says which they are
    CHECK(found && std::count(found->begin() + hubs.n_items, found->end(), 1) >= 11);
    const Graph dense = dense_graph("dense", random, 100, real);
    CHECK(!choose_hubs(Topology(dense.n, dense.tails, dense.heads), dense.n));
    const Graph nothing = empty_graph("nothing", 10, one);
    CHECK(!choose_hubs(Topology(nothing.n, nothing.tails, nothing.heads), nothing.n));
    CHECK(!choose_hubs(Topology(0, {}, {}), 0));
}

template <class T>
void test_hub_distances() {
    for_all_hubs<T>(23, [](const Fixture<T>& fixture, const HubNetwork<T>& hubs, Random& random) {
        const Graph& graph = fixture.graph;
        const Vertex n_columns = random.chance(0.5) ? graph.n : graph.n_items;
        CHECK(all_agree(distances_of<T>(hubs, fixture.sources, {}, n_columns), fixture.answer({}, n_columns),
                        graph.exact));
        auto targets = random.vertices(1 + random.below(40), graph.n);
        targets.push_back(targets.front());
        targets.push_back(fixture.sources.front());
        CHECK(all_agree(distances_of<T>(hubs, fixture.sources, targets, targets.size()),
                        fixture.answer(targets, targets.size()), graph.exact));
    });
}

template <class T>
void test_hub_pairs() {
    for_all_hubs<T>(27, [](const Fixture<T>& fixture, const HubNetwork<T>& hubs, Random& random) {
        check_pairs(fixture, distances_of<T>(hubs, fixture.sources, {}, fixture.graph.n), random,
                    [&](const std::vector<Vertex>& i, const std::vector<Vertex>& j, std::span<T> out, int n_jobs,
                        Watch& watch) { hubs.pair_distances(i, j, out, n_jobs, watch); });
    });
}

template <class T>
void test_hub_forest() {
    for_all_hubs<T>(24, [](const Fixture<T>& fixture, const HubNetwork<T>& hubs, Random&) {
        const auto forest = forest_of<T>(hubs, fixture.sources);
        for (std::size_t row = 0; row < fixture.sources.size(); ++row) {
            check_tree<T>(fixture, forest->tree(row), row, fixture.truth[row], fixture.graph.exact);
            CHECK(is_complete<T>(forest->tree(row), fixture.truth[row]));
        }
    });
}

template <class T>
void test_hub_neighbors() {
    for_all_hubs<T>(25, [](const Fixture<T>& fixture, const HubNetwork<T>& hubs, Random& random) {
        Watch watch;
        const auto stops = neighbor_stops(fixture, fixture.graph.exact);
        const Stop<T>& stop = stops[random.below(stops.size())];  // all of them in turn would take long
        check_neighbors(fixture, hubs.neighbors(fixture.sources, stop, 1, watch), stop, fixture.graph.exact);
    });
}

// All hubs and spokes of small graphs with every mask there is.
template <class T>
void test_every_mask() {
    Random random(26);
    for (int round = 0; round < 12; ++round) {
        const Graph graph = random_graph("tiny", random, 5, 3 + random.below(8), round % 2 ? few_values : often_zero);
        const auto fixture = make_fixture<T>(graph, random);
        for (unsigned bits = 0; bits < 32; ++bits) {
            context = describe(graph) + ", hubs: " + std::to_string(bits);
            Mask is_hub(5);
            for (unsigned v = 0; v < 5; ++v) is_hub[v] = bits >> v & 1;
            const auto hubs = hubs_of<T>(fixture.network, is_hub);
            CHECK(distances_of<T>(hubs, fixture.sources, {}, 5) == fixture.answer({}, 5));
            const auto forest = forest_of<T>(hubs, fixture.sources);
            for (std::size_t row = 0; row < fixture.sources.size(); ++row) {
                check_tree<T>(fixture, forest->tree(row), row, fixture.truth[row], true);
                CHECK(is_complete<T>(forest->tree(row), fixture.truth[row]));
            }
        }
    }
}

// -- gradients

// A value per source and vertex, small integers so that sums are exact.
template <class T>
std::vector<T> small_integers(Random& random, std::size_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(random.below(17)) - 8;
    return values;
}

template <class T>
std::vector<T> backward_of(const Forest<T>& forest, const std::vector<Vertex>& targets, const std::vector<T>& gradient,
                           int n_jobs = 1) {
    Watch watch;
    std::vector<T> out(forest.network().topology().n_edges(), T(-1));
    forest.backward(targets, {gradient.data(), forest.n_sources(), gradient.size() / forest.n_sources()}, out, n_jobs,
                    watch);
    return out;
}

template <class T>
std::vector<T> removal_cost_of(const Forest<T>& forest, const std::vector<Vertex>& targets,
                               const std::vector<T>& gradient, const std::vector<T>& curvature, T unreachable,
                               int n_jobs = 1) {
    Watch watch;
    const std::size_t n_columns = gradient.size() / forest.n_sources();
    std::vector<T> out(forest.network().topology().n_edges(), T(-1));
    forest.removal_cost(targets, {gradient.data(), forest.n_sources(), n_columns},
                        {curvature.data(), forest.n_sources(), n_columns}, unreachable, out, n_jobs, watch);
    return out;
}

// The changes of present edges, then those of refused ones.
template <class T>
std::vector<T> toggle_of(const Forest<T>& forest, const std::vector<Vertex>& targets, const std::vector<T>& gradient,
                         T unreachable, int n_jobs = 1) {
    Watch watch;
    const auto n_edges = static_cast<std::size_t>(forest.network().topology().n_edges());
    std::vector<T> out(2 * n_edges, T(-1));
    forest.toggle(targets, {gradient.data(), forest.n_sources(), gradient.size() / forest.n_sources()}, unreachable,
                  std::span(out).first(n_edges), std::span(out).last(n_edges), n_jobs, watch);
    return out;
}

// Walks from every target up to the source and leaves its gradient at every edge on the path.
template <class T>
std::vector<T> gradient_by_paths(const Forest<T>& forest, const std::vector<Vertex>& targets,
                                 const std::vector<T>& gradient) {
    const std::size_t n_columns = gradient.size() / forest.n_sources();
    std::vector<T> out(forest.network().topology().n_edges(), 0);
    for (std::size_t row = 0; row < forest.n_sources(); ++row) {
        const TreeView<T>& tree = forest.tree(row);
        for (std::size_t c = 0; c < n_columns; ++c) {
            const Vertex target = targets.empty() ? static_cast<Vertex>(c) : targets[c];
            const auto found = std::find(tree.vertices.begin(), tree.vertices.end(), target);
            if (found == tree.vertices.end()) continue;
            for (auto p = found - tree.vertices.begin(); tree.parents[p] != no_position; p = tree.parents[p])
                out[tree.edges[p]] += gradient[row * n_columns + c];
        }
    }
    return out;
}

template <class T>
void check_backward(const Forest<T>& forest, const std::vector<Vertex>& targets, std::size_t n_columns,
                    Random& random) {
    const auto gradient = small_integers<T>(random, forest.n_sources() * n_columns);
    CHECK(backward_of(forest, targets, gradient) == gradient_by_paths(forest, targets, gradient));
}

template <class T>
void test_backward() {
    Random random(31);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        const Graph& graph = fixture.graph;
        context = describe(graph);
        auto targets = random.vertices(7, graph.n);
        targets.push_back(targets.front());
        const auto whole = forest_of<T>(fixture.network, fixture.sources);
        check_backward(*whole, {}, graph.n_items, random);
        check_backward(*whole, targets, 8, random);
        const auto partial = forest_of<T>(fixture.network, fixture.sources, until_targets<T>(targets));
        check_backward(*partial, targets, 8, random);
        if (is_large(graph)) continue;
        const auto hubs = hubs_of<T>(fixture.network, random_mask(random, graph.n, 0.3));
        check_backward(*forest_of<T>(hubs, fixture.sources), targets, 8, random);
    }
}

// One sources's shortest paths where there is only one to each vertex, without a search tree of the core.
struct OnlyWays {
    std::vector<double> distances;
    std::vector<Edge> into;  // last edge of the path; no_edge at the source and where there is none
    std::vector<std::vector<std::uint8_t>> below;  // below[v][x]: the path to x runs through v
};

Vertex other_end(const Graph& graph, Edge e, Vertex v) { return graph.tails[e] == v ? graph.heads[e] : graph.tails[e]; }

// Nothing where some vertex has two shortest paths. Weights are positive integers, so equal means equal.
std::optional<OnlyWays> only_ways(const Graph& graph, Vertex source, const Keep& keep = keep_all) {
    OnlyWays paths;
    paths.distances = true_distances<double>(graph, graph.weights, source, keep);
    paths.into.assign(graph.n, no_edge);
    for (Edge e = 0; e < graph.n_edges(); ++e)
        for (const Vertex v : {graph.tails[e], graph.heads[e]}) {
            const double start = paths.distances[other_end(graph, e, v)];
            if (!keep(e) || start == unreached<double> || start + graph.weights[e] != paths.distances[v]) continue;
            if (paths.into[v] != no_edge) return std::nullopt;
            paths.into[v] = e;
        }
    paths.below.assign(graph.n, std::vector<std::uint8_t>(graph.n, 0));
    for (Vertex x = 0; x < graph.n; ++x) {
        Vertex v = x;
        for (; paths.into[v] != no_edge; v = other_end(graph, paths.into[v], v)) paths.below[v][x] = 1;
        paths.below[v][x] = 1;
    }
    return paths;
}

double sum_below(const OnlyWays& paths, Vertex v, std::span<const double> values) {
    return std::inner_product(values.begin(), values.end(), paths.below[v].begin(), 0.0);
}

// How far v and all below it move when the edge above is gone: the definition in forest.hpp, word by word.
double shift_without_edge(const Graph& graph, const OnlyWays& paths, Vertex v, double unreachable, const Keep& keep) {
    double best = unreached<double>;
    const bool whole = std::accumulate(paths.below[v].begin(), paths.below[v].end(), 0) <= searched_subtree;
    for (Edge e = 0; e < graph.n_edges(); ++e) {
        if (e == paths.into[v] || !keep(e)) continue;
        for (const Vertex x : {graph.tails[e], graph.heads[e]}) {
            const Vertex u = other_end(graph, e, x);
            if (!paths.below[v][x] || paths.below[v][u] || (x != v && !whole)) continue;
            best = std::min(best, paths.distances[u] + graph.weights[e] + paths.distances[x] - paths.distances[v]);
        }
    }
    return std::max(std::min(best, unreachable) - paths.distances[v], 0.0);
}

// The share of every source is rounded to the type of the result.
template <class T>
void add_removal_cost(const Graph& graph, const OnlyWays& paths, std::span<const double> gradient,
                      std::span<const double> curvature, double unreachable, const Keep& keep,
                      std::vector<double>& out) {
    for (Vertex v = 0; v < graph.n; ++v) {
        if (paths.into[v] == no_edge) continue;
        const double shift = shift_without_edge(graph, paths, v, unreachable, keep);
        const double cost = shift * sum_below(paths, v, gradient) + shift * shift / 2 * sum_below(paths, v, curvature);
        out[paths.into[v]] += static_cast<T>(std::isinf(shift) ? shift : cost);
    }
}

template <class T>
void add_toggle(const Graph& graph, const OnlyWays& paths, std::span<const double> gradient, double unreachable,
                const Keep& keep, std::vector<double>& out) {
    for (Vertex v = 0; v < graph.n; ++v) {
        if (paths.into[v] == no_edge) continue;
        const double shift = shift_without_edge(graph, paths, v, unreachable, keep);
        out[paths.into[v]] -= static_cast<T>(shift * sum_below(paths, v, gradient));
    }
    for (Edge e = 0; e < graph.n_edges(); ++e)
        for (const Vertex v : {graph.tails[e], graph.heads[e]}) {
            const double start = paths.distances[other_end(graph, e, v)];
            if (keep(e) || start == unreached<double>) continue;
            const bool reached = paths.distances[v] < unreached<double>;
            const double gain = (reached ? paths.distances[v] : unreachable) - start - graph.weights[e];
            const double pull = reached ? sum_below(paths, v, gradient) : gradient[v];
            if (gain > 0) out[graph.n_edges() + e] -= static_cast<T>(gain * pull);
        }
}

// A circle with a few chords: the subtrees are long, and there is a path back in at their ends.
Graph circle(const std::string& family, Random& random, Vertex n, Draw draw) {
    Graph graph = path(family, random, n, draw);
    graph.join(n - 1, 0, draw(random));
    for (int chord = 0; chord < 4; ++chord) graph.join(random.vertex(n), random.vertex(n), 20 * draw(random));
    return graph;
}

// Graphs whose shortest paths are nearly always unique, though all sums are exact.
std::vector<Graph> graphs_of_only_ways() {
    Random random(32);
    std::vector<Graph> graphs;
    for (const Vertex n : {2, 4, 12, 30, 60}) {
        if (looks_for_races && n > 20) break;
        const auto size = static_cast<std::size_t>(n);
        graphs.push_back(random_graph("sparse", random, n, size * 2, many_values));
        graphs.push_back(dense_graph("dense", random, n, many_values));
        graphs.push_back(islands("islands", random, n, 3, size * 6, many_values));
        graphs.push_back(random_tree("tree", random, n, many_values));
        graphs.push_back(hub_graph("hubs", random, n, 1 + n / 10, many_values));
        graphs.push_back(
            with_parallel_edges("parallel", random_graph("", random, n, size * 2, one), random, many_values));
        graphs.push_back(circle("circle", random, n == 60 ? 160 : n, many_values));
    }
    return graphs;
}

// Sources with unique paths, their paths, and a gradient and a curvature for each.
struct Task {
    std::vector<Vertex> sources;
    std::vector<OnlyWays> paths;
    std::vector<double> gradient, curvature;

    std::span<const double> row(const std::vector<double>& values, std::size_t r) const {
        const std::size_t n_columns = values.size() / sources.size();
        return std::span(values).subspan(r * n_columns, n_columns);
    }
};

// `keep_of` tells which edges the source in a row sees.
Task make_task(const Graph& graph, const std::vector<Vertex>& sources, const std::function<Keep(std::size_t)>& keep_of,
               Random& random) {
    Task task;
    for (const Vertex source : sources)
        if (auto paths = only_ways(graph, source, keep_of(task.sources.size()))) {
            task.sources.push_back(source);
            task.paths.push_back(std::move(*paths));
        }
    task.gradient = small_integers<double>(random, task.sources.size() * graph.n);
    task.curvature = small_integers<double>(random, task.sources.size() * graph.n);
    return task;
}

template <class T>
std::vector<T> cast(const std::vector<double>& values) {
    return {values.begin(), values.end()};
}

constexpr std::array prices = {0.0, 5000.0, 131072.0, unreached<double>};  // of being unreachable

// What the forests over a task have to answer at each price, by the definitions alone.
struct Costs {
    std::array<std::vector<double>, prices.size()> removal, toggle;
};

template <class T>
Costs true_costs(const Graph& graph, const Task& task, const std::function<Keep(std::size_t)>& keep_of) {
    Costs costs;
    for (std::size_t i = 0; i < prices.size(); ++i) {
        costs.removal[i].assign(graph.n_edges(), 0.0);
        costs.toggle[i].assign(2 * graph.n_edges(), 0.0);
        for (std::size_t r = 0; r < task.sources.size(); ++r) {
            const auto gradient = task.row(task.gradient, r);
            add_removal_cost<T>(graph, task.paths[r], gradient, task.row(task.curvature, r), prices[i], keep_of(r),
                                costs.removal[i]);
            add_toggle<T>(graph, task.paths[r], gradient, prices[i], keep_of(r), costs.toggle[i]);
        }
    }
    return costs;
}

template <class T>
void check_costs(const Forest<T>& forest, const Task& task, const Costs& costs) {
    const auto gradient = cast<T>(task.gradient);
    const auto curvature = cast<T>(task.curvature);
    for (std::size_t i = 0; i < prices.size(); ++i) {
        const T price = static_cast<T>(prices[i]);
        CHECK(removal_cost_of<T>(forest, {}, gradient, curvature, price) == cast<T>(costs.removal[i]));
        if (price == unreached<T>) continue;  // times a sum of zero it is no number: not a price to toggle at
        CHECK(toggle_of<T>(forest, {}, gradient, price) == cast<T>(costs.toggle[i]));
    }
}

// Both engines, the second with all kinds of hubs.
template <class T>
void check_costs_of_engines(const Graph& graph, const Task& task, const Costs& costs, const Sampling<T>& sampling,
                            Random& random) {
    context = describe(graph);
    const auto network = make_network<T>(graph);
    check_costs<T>(*forest_of<T>(network, task.sources, {}, sampling), task, costs);
    for (const auto& [name, is_hub] : all_masks(graph, network->topology(), random)) {
        context = describe(graph) + ", hubs: " + name;
        check_costs<T>(*forest_of<T>(hubs_of<T>(network, is_hub), task.sources, sampling), task, costs);
    }
}

template <class T>
void test_costs() {
    Random random(33);
    std::size_t n_sources = 0;
    const auto keep_of = [](std::size_t) { return Keep(keep_all); };
    for (const Graph& graph : graphs_of_only_ways()) {
        const Task task = make_task(graph, random.vertices(9, graph.n), keep_of, random);
        n_sources += task.sources.size();
        if (!task.sources.empty())
            check_costs_of_engines<T>(graph, task, true_costs<T>(graph, task, keep_of), {}, random);
    }
    CHECK(n_sources > 4 * graphs_of_only_ways().size());  // or the test says nothing
}

// The shift of a vertex is what a search without the edge above it finds: nothing in here knows of subtrees and paths
// in.
template <class T>
void test_shift_is_that_of_a_new_search() {
    Random random(37);
    constexpr double price = 131072;
    for (const Graph& graph : graphs_of_only_ways()) {
        if (graph.n > 40) continue;
        context = describe(graph);
        const Vertex source = random.vertex(graph.n);
        const auto paths = only_ways(graph, source);
        if (!paths) continue;
        const auto toggle =
            toggle_of<T>(*forest_of<T>(make_network<T>(graph), {source}), {}, std::vector<T>(graph.n, T(1)), T(price));
        for (Vertex v = 0; v < graph.n; ++v) {
            const Edge above = paths->into[v];
            if (above == no_edge) continue;
            const auto without =
                true_distances<double>(graph, graph.weights, source, [=](Edge e) { return e != above; });
            const double shift = std::min(without[v], price) - paths->distances[v];
            const auto n_below = std::accumulate(paths->below[v].begin(), paths->below[v].end(), 0);
            CHECK(toggle[above] == static_cast<T>(-shift * n_below));
        }
    }
}

// Columns by targets, some of them twice, are the same as columns by vertex.
template <class T>
void test_costs_of_targets() {
    Random random(34);
    for (const Graph& graph : graphs_of_only_ways()) {
        context = describe(graph);
        const auto targets = random.vertices(6, graph.n);
        const auto forest = forest_of<T>(make_network<T>(graph), random.vertices(4, graph.n));
        const auto gradient = small_integers<T>(random, 4 * 6);
        const auto curvature = small_integers<T>(random, 4 * 6);
        std::vector<T> by_vertex(4 * graph.n, 0), curvature_by_vertex(4 * graph.n, 0);
        for (std::size_t r = 0; r < 4; ++r)
            for (std::size_t c = 0; c < 6; ++c) {
                by_vertex[r * graph.n + targets[c]] += gradient[r * 6 + c];
                curvature_by_vertex[r * graph.n + targets[c]] += curvature[r * 6 + c];
            }
        CHECK(backward_of<T>(*forest, targets, gradient) == backward_of<T>(*forest, {}, by_vertex));
        CHECK(removal_cost_of<T>(*forest, targets, gradient, curvature, 99) ==
              removal_cost_of<T>(*forest, {}, by_vertex, curvature_by_vertex, 99));
        CHECK(toggle_of<T>(*forest, targets, gradient, 99) == toggle_of<T>(*forest, {}, by_vertex, 99));
    }
}

// Making an edge of a unique shortest path one unit shorter shortens exactly what the gradient says: no other path was
// closer than one unit, so the difference is the derivative.
template <class T>
void test_backward_is_the_derivative() {
    Random random(35);
    const auto keep_of = [](std::size_t) { return Keep(keep_all); };
    for (const Graph& graph : graphs_of_only_ways()) {
        if (graph.n > 20) continue;
        context = describe(graph);
        const Task task = make_task(graph, random.vertices(4, graph.n), keep_of, random);
        if (task.sources.empty()) continue;
        const auto gradient =
            backward_of<T>(*forest_of<T>(make_network<T>(graph), task.sources), {}, cast<T>(task.gradient));
        for (Edge e = 0; e < graph.n_edges(); ++e) {
            Graph shorter = graph;
            shorter.weights[e] -= 1;
            double change = 0;
            for (std::size_t r = 0; r < task.sources.size(); ++r) {
                const auto after = true_distances<double>(shorter, shorter.weights, task.sources[r]);
                for (Vertex v = 0; v < graph.n; ++v)
                    if (after[v] < unreached<double>)
                        change += task.row(task.gradient, r)[v] * (task.paths[r].distances[v] - after[v]);
            }
            CHECK(gradient[e] == static_cast<T>(change));
        }
    }
}

// With real weights the engines round differently; what they make of it must be close.
void test_costs_of_real_weights() {
    Random random(36);
    for (const Vertex n : {10, 60, 150})
        for (const Graph& graph : {random_graph("sparse", random, n, static_cast<std::size_t>(3 * n), real),
                                   hub_graph("hubs", random, n, 1 + n / 10, real)}) {
            context = describe(graph);
            const auto network = make_network<double>(graph);
            const auto sources = random.vertices(18, graph.n);
            const auto general = forest_of<double>(network, sources);
            const auto hubs = forest_of<double>(hubs_of<double>(network, random_mask(random, graph.n, 0.2)), sources);
            std::vector<double> gradient(18 * graph.n), curvature(18 * graph.n);
            for (double& value : gradient) value = random.unit() - 0.5;
            for (double& value : curvature) value = random.unit();
            const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
                return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                  [](double x, double y) { return std::abs(x - y) < 1e-9; });
            };
            CHECK(near(backward_of<double>(*general, {}, gradient), backward_of<double>(*hubs, {}, gradient)));
            CHECK(near(removal_cost_of<double>(*general, {}, gradient, curvature, 9.0),
                       removal_cost_of<double>(*hubs, {}, gradient, curvature, 9.0)));
            CHECK(near(toggle_of<double>(*general, {}, gradient, 9.0), toggle_of<double>(*hubs, {}, gradient, 9.0)));
        }
}

// -- sampling

bool is_near(std::size_t count, std::size_t trials, double probability) {
    const double deviation = std::sqrt(static_cast<double>(trials) * probability * (1 - probability));
    return std::abs(static_cast<double>(count) - static_cast<double>(trials) * probability) <= 5 * deviation;
}

template <class T>
void test_sample_frequencies() {
    constexpr std::size_t n_edges = 20000;
    for (const double p : {0.0, 0.01, 0.3, 0.5, 0.9, 1.0}) {
        context = "p = " + std::to_string(p);
        const std::vector<T> probabilities(n_edges, static_cast<T>(p));
        const double asked = static_cast<double>(static_cast<T>(p));
        for (const std::uint64_t seed : {std::uint64_t(0), std::uint64_t(1), ~std::uint64_t(0)}) {
            const Sample<T> sample(probabilities.data(), seed, 3);
            const Sample<T> next_group(probabilities.data(), seed, 4);
            const Sample<T> next_seed(probabilities.data(), seed + 1, 3);
            std::size_t alone = 0, with_next_edge = 0, with_next_group = 0, with_next_seed = 0;
            for (Edge e = 0; e + 1 < static_cast<Edge>(n_edges); ++e) {
                const bool present = sample.present(e);
                alone += present;
                with_next_edge += present && sample.present(e + 1);
                with_next_group += present && next_group.present(e);
                with_next_seed += present && next_seed.present(e);
            }
            CHECK(is_near(alone, n_edges - 1, asked));
            CHECK(is_near(with_next_group, n_edges - 1, asked * asked));
            CHECK(is_near(with_next_seed, n_edges - 1, asked * asked));
            CHECK(is_near(with_next_edge, n_edges - 1, asked * asked));
        }
    }
}

// The same edge over many groups is as random as many edges of one group.
template <class T>
void test_sample_groups() {
    const std::vector<T> probabilities{T(0.25), T(0.75), T(0), T(1)};
    std::array<std::size_t, 4> counts{};
    constexpr std::size_t n_groups = 20000;
    for (std::uint64_t group = 0; group < n_groups; ++group) {
        const Sample<T> sample(probabilities.data(), 42, group);
        for (Edge e = 0; e < 4; ++e) counts[e] += sample.present(e);
    }
    for (std::size_t e = 0; e < 4; ++e) CHECK(is_near(counts[e], n_groups, static_cast<double>(probabilities[e])));
}

// Certain, impossible and undecided edges; three sources share a group.
template <class T>
Sampling<T> random_sampling(const Graph& graph, std::size_t n_sources, Random& random) {
    Sampling<T> sampling;
    sampling.seed = random.below(1000);
    for (Edge e = 0; e < graph.n_edges(); ++e)
        sampling.probabilities.push_back(random.chance(0.2) ? T(0) : random.chance(0.3) ? T(1) : T(random.unit()));
    for (std::size_t row = 0; row < n_sources; ++row) sampling.groups.push_back(1000 - row / 3);
    return sampling;
}

template <class T>
Keep keep_sample(const Sampling<T>& sampling, std::size_t row) {
    if (!sampling.active()) return keep_all;
    return [sample = sampling.sample(row)](Edge e) { return sample.present(e); };
}

template <class T>
std::vector<std::vector<T>> sampled_truth(const Fixture<T>& fixture, const Sampling<T>& sampling) {
    std::vector<std::vector<T>> truth;
    for (std::size_t row = 0; row < fixture.sources.size(); ++row)
        truth.push_back(
            true_distances<T>(fixture.graph, fixture.weights, fixture.sources[row], keep_sample(sampling, row)));
    return truth;
}

// Asked once each, answered truthfully, and every refused edge that would have helped was asked.
template <class T>
void check_asked(const Fixture<T>& fixture, const TreeView<T>& tree, std::span<const T> truth, const Keep& keep) {
    const Graph& graph = fixture.graph;
    std::vector<std::uint8_t> asked(graph.n_edges(), 0);
    CHECK(!tree.asked_all && tree.asked.size() == tree.present.size());
    for (std::size_t a = 0; a < tree.asked.size(); ++a) {
        CHECK(!asked[tree.asked[a]]);
        asked[tree.asked[a]] = 1;
        CHECK((tree.present[a] == 1) == keep(tree.asked[a]));
    }
    for (std::size_t p = 1; p < tree.size(); ++p) CHECK(asked[tree.edges[p]]);
    for (Edge e = 0; e < graph.n_edges(); ++e) {
        const T near = std::min(truth[graph.tails[e]], truth[graph.heads[e]]);
        const T far = std::max(truth[graph.tails[e]], truth[graph.heads[e]]);
        if (near + fixture.weights[e] < far) CHECK(asked[e] && !keep(e));
    }
}

template <class T>
void test_sampled_forest() {
    Random random(41);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        context = describe(fixture.graph);
        const auto sampling = random_sampling<T>(fixture.graph, fixture.sources.size(), random);
        if (!sampling.active()) continue;
        const auto truth = sampled_truth(fixture, sampling);
        const auto forest = forest_of<T>(fixture.network, fixture.sources, {}, sampling);
        for (std::size_t row = 0; row < fixture.sources.size(); ++row) {
            const Keep keep = keep_sample(sampling, row);
            check_tree<T>(fixture, forest->tree(row), row, truth[row], true, keep);
            CHECK(is_complete<T>(forest->tree(row), truth[row]));
            check_asked<T>(fixture, forest->tree(row), truth[row], keep);
        }
    }
}

Graph kept_part(const Graph& graph, const Keep& keep) {
    Graph part = empty_graph(graph.family, graph.n, one);
    for (Edge e = 0; e < graph.n_edges(); ++e)
        if (keep(e)) part.join(graph.tails[e], graph.heads[e], graph.weights[e]);
    return part;
}

template <class T>
std::vector<T> by_vertex(const TreeView<T>& tree, Vertex n) {
    std::vector<T> distances(n, unreached<T>);
    for (std::size_t p = 0; p < tree.size(); ++p) distances[tree.vertices[p]] = tree.distances[p];
    return distances;
}

// A bounded search of a sample reaches what the same search of its edges alone reaches.
template <class T>
void test_bounded_sampled_forest() {
    Random random(42);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        const Graph& graph = fixture.graph;
        context = describe(graph);
        Sampling<T> sampling = random_sampling<T>(graph, 1, random);
        if (!sampling.active()) continue;
        const auto part = make_network<T>(kept_part(graph, keep_sample(sampling, 0)));
        const Vertex source = fixture.sources.front();
        const auto targets = random.vertices(3, graph.n);
        const T radius = fixture.truth[0][targets[0]];
        for (const Stop<T>& stop : {until_nearest<T>(4, graph.n_items), until_radius<T>(radius, 0)}) {
            const auto sampled = forest_of<T>(fixture.network, {source}, stop, sampling);
            const auto plain = forest_of<T>(part, {source}, stop);
            CHECK(by_vertex(sampled->tree(0), graph.n) == by_vertex(plain->tree(0), graph.n));
        }
        const auto sampled = forest_of<T>(fixture.network, {source}, until_targets<T>(targets), sampling);
        CHECK(distances_of(*sampled, targets, 3) == distances_of<T>(*part, {source}, targets, 3));
    }
}

template <class T>
void test_sampled_hub_forest() {
    for_all_hubs<T>(43, [](const Fixture<T>& fixture, const HubNetwork<T>& hubs, Random& random) {
        if (random.chance(0.5)) return;  // a core for every group: slow to build
        const auto sampling = random_sampling<T>(fixture.graph, fixture.sources.size(), random);
        if (!sampling.active()) return;
        const auto truth = distances_of(*forest_of<T>(fixture.network, fixture.sources, {}, sampling), {},
                                        static_cast<std::size_t>(fixture.graph.n));
        const auto forest = forest_of<T>(hubs, fixture.sources, sampling);
        for (std::size_t row = 0; row < fixture.sources.size(); ++row) {
            const auto expected = std::span(truth).subspan(row * fixture.graph.n, fixture.graph.n);
            check_tree<T>(fixture, forest->tree(row), row, expected, fixture.graph.exact, keep_sample(sampling, row));
            CHECK(is_complete<T>(forest->tree(row), expected));
            CHECK(forest->tree(row).asked_all);
        }
    });
}

template <class T>
void test_sampled_costs() {
    Random random(44);
    std::size_t n_sources = 0;
    for (const Graph& graph : graphs_of_only_ways()) {
        Sampling<T> sampling = random_sampling<T>(graph, 12, random);
        if (!sampling.active()) continue;
        const auto keep_of = [&](std::size_t row) { return keep_sample(sampling, row); };
        const Task task = make_task(graph, random.vertices(12, graph.n), keep_of, random);
        n_sources += task.sources.size();
        if (task.sources.empty()) continue;
        sampling.groups.resize(task.sources.size());
        check_costs_of_engines<T>(graph, task, true_costs<T>(graph, task, keep_of), sampling, random);
    }
    CHECK(n_sources > 4 * graphs_of_only_ways().size());
}

template <class T>
std::vector<T> answers_of(const Forest<T>& forest, const std::vector<T>& if_present, const std::vector<T>& if_refused,
                          int n_jobs = 1) {
    Watch watch;
    std::vector<T> out(forest.n_sources(), T(-1));
    forest.sum_answers(if_present, if_refused, out, n_jobs, watch);
    return out;
}

template <class T>
std::vector<T> score_of(const Forest<T>& forest, const std::vector<T>& factors, int n_jobs = 1) {
    Watch watch;
    std::vector<T> out(forest.network().topology().n_edges(), T(-1));
    forest.score(factors, out, n_jobs, watch);
    return out;
}

// Which edges count: those a general search asked about, or all of them in the hub engine.
template <class T>
void check_answers(const Forest<T>& forest, Random& random) {
    const Edge n_edges = forest.network().topology().n_edges();
    const auto if_present = small_integers<T>(random, n_edges);
    const auto if_refused = small_integers<T>(random, n_edges);
    const auto factors = small_integers<T>(random, forest.n_sources());
    std::vector<T> sums(forest.n_sources(), 0);
    std::vector<double> scores(n_edges, 0);
    for (std::size_t row = 0; row < forest.n_sources(); ++row) {
        const TreeView<T>& tree = forest.tree(row);
        const Keep keep = keep_sample(forest.sampling(), row);
        for (Edge e = 0; e < n_edges; ++e) {
            if (!tree.asked_all && std::count(tree.asked.begin(), tree.asked.end(), e) == 0) continue;
            sums[row] += keep(e) ? if_present[e] : if_refused[e];
            const double probability = forest.sampling().probabilities[e];
            scores[e] += static_cast<T>(factors[row] * ((keep(e) ? 1.0 : 0.0) - probability));
        }
    }
    CHECK(answers_of<T>(forest, if_present, if_refused) == sums);
    CHECK(score_of<T>(forest, factors) == cast<T>(scores));
}

template <class T>
void test_answers() {
    Random random(45);
    for (const Fixture<T>& fixture : fixtures<T>()) {
        const Graph& graph = fixture.graph;
        if (graph.n > 100) continue;
        context = describe(graph);
        const auto sampling = random_sampling<T>(graph, fixture.sources.size(), random);
        if (!sampling.active()) continue;
        check_answers<T>(*forest_of<T>(fixture.network, fixture.sources, {}, sampling), random);
        const auto hubs = hubs_of<T>(fixture.network, random_mask(random, graph.n, 0.3));
        check_answers<T>(*forest_of<T>(hubs, fixture.sources, sampling), random);
    }
}

// A certain edge is never refused and an impossible one never present, whatever rounding makes of its length.
template <class T>
void test_toggle_of_decided_edges() {
    Random random(46);
    const Graph graph = hub_graph("hubs", random, 150, 6, real);
    context = describe(graph);
    const auto network = make_network<T>(graph);
    const auto sources = random.vertices(30, graph.n);
    const auto sampling = random_sampling<T>(graph, sources.size(), random);
    const std::vector<T> ones(sources.size() * graph.n, T(1));
    const auto hubs = hubs_of<T>(network, random_mask(random, graph.n, 0.1));
    for (const auto& forest : {forest_of<T>(network, sources, {}, sampling), forest_of<T>(hubs, sources, sampling)}) {
        const auto toggle = toggle_of<T>(*forest, {}, ones, T(9));
        for (Edge e = 0; e < graph.n_edges(); ++e) {
            if (sampling.probabilities[e] == 0) CHECK(toggle[e] == 0);
            if (sampling.probabilities[e] == 1) CHECK(toggle[graph.n_edges() + e] == 0);
        }
    }
}

// -- threads

// Everything a forest answers, one after the other.
template <class T>
std::vector<T> all_answers(const Forest<T>& forest, const std::vector<T>& gradient, const std::vector<T>& curvature,
                           int n_jobs) {
    auto answers = distances_of(forest, {}, gradient.size() / forest.n_sources(), n_jobs);
    for (const auto& more :
         {backward_of<T>(forest, {}, gradient, n_jobs), removal_cost_of<T>(forest, {}, gradient, curvature, 7, n_jobs),
          toggle_of<T>(forest, {}, gradient, 7, n_jobs)})
        answers.insert(answers.end(), more.begin(), more.end());
    if (!forest.sampling().active()) return answers;
    const std::vector<T> values(gradient.begin(), gradient.begin() + forest.network().topology().n_edges());
    for (const auto& more : {answers_of<T>(forest, values, values, n_jobs), score_of<T>(forest, values, n_jobs)})
        answers.insert(answers.end(), more.begin(), more.end());
    return answers;
}

// Gradients of any sign and size: sums in another order would show in the last bits.
template <class T>
std::vector<T> rough_values(Random& random, std::size_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>((random.unit() - 0.5) * static_cast<double>(random.below(1000)));
    return values;
}

template <class T>
void check_jobs(const Graph& graph, const Mask& is_hub, Random& random) {
    context = describe(graph);
    const auto network = make_network<T>(graph);
    const auto hubs = hubs_of<T>(network, is_hub);
    const auto sources = random.vertices(45, graph.n);
    const auto sampling = random_sampling<T>(graph, sources.size(), random);
    auto few_groups = sampling;  // fewer than threads: the hub engine then splits the sources instead
    for (auto& group : few_groups.groups) group %= 2;
    const auto gradient = rough_values<T>(random, sources.size() * graph.n);
    const auto curvature = rough_values<T>(random, sources.size() * graph.n);

    const auto answers = [&](int n_jobs) {
        std::vector<std::vector<T>> all{distances_of<T>(*network, sources, {}, graph.n, n_jobs),
                                        distances_of<T>(*network, sources, {0, 1, 0}, 3, n_jobs),
                                        distances_of<T>(hubs, sources, {}, graph.n, n_jobs),
                                        distances_of<T>(hubs, sources, {0, 1, 0}, 3, n_jobs)};
        for (const auto& drawn : {Sampling<T>(), sampling, few_groups}) {
            all.push_back(all_answers(*forest_of<T>(network, sources, {}, drawn, n_jobs), gradient, curvature, n_jobs));
            all.push_back(all_answers(*forest_of<T>(hubs, sources, drawn, n_jobs), gradient, curvature, n_jobs));
        }
        return all;
    };
    const auto alone = answers(1);
    for (const int n_jobs : {2, 5}) {
        const auto together = answers(n_jobs);
        for (std::size_t a = 0; a < alone.size(); ++a) CHECK(same_bits(alone[a], together[a]));
    }
}

template <class T>
void test_jobs_do_not_change_bits() {
    Random random(51);
    const Graph hubs = hub_graph("hubs", random, 50, 5, real);
    Mask is_hub(hubs.n, 0);
    std::fill(is_hub.begin() + hubs.n_items, is_hub.end(), 1);
    check_jobs<T>(hubs, is_hub, random);
    const Graph ties = random_graph("ties", random, 40, 120, few_values);
    check_jobs<T>(ties, random_mask(random, ties.n, 0.4), random);
}

template <class T>
void test_neighbors_of_many_jobs() {
    Random random(52);
    const Graph graph = hub_graph("hubs", random, 150, 8, few_values);
    context = describe(graph);
    const auto network = make_network<T>(graph);
    const auto hubs = hubs_of<T>(network, random_mask(random, graph.n, 0.1));
    const auto sources = random.vertices(90, graph.n);
    Watch watch;
    for (const Stop<T>& stop : {until_nearest<T>(6, graph.n_items), until_radius<T>(3, graph.n_items)}) {
        const auto alone = search_neighbors<T>(*network, sources, stop, 1, watch);
        for (const int n_jobs : {1, 2, 5})
            for (const auto& found : {search_neighbors<T>(*network, sources, stop, n_jobs, watch),
                                      hubs.neighbors(sources, stop, n_jobs, watch)})
                for (std::size_t row = 0; row < sources.size(); ++row) {
                    CHECK(found[row].vertices == alone[row].vertices);
                    CHECK(found[row].distances == alone[row].distances);
                }
    }
}

// Two callers of the same objects at once. Results are compared afterwards: checks are not for several threads.
template <class T>
void test_two_callers() {
    Random random(53);
    const Graph graph = hub_graph("hubs", random, 120, 8, few_values);
    context = describe(graph);
    const auto network = make_network<T>(graph);
    const auto hubs = hubs_of<T>(network, random_mask(random, graph.n, 0.1));
    const auto sources = random.vertices(60, graph.n);
    const auto targets = random.vertices(20, graph.n);
    const auto gradient = small_integers<T>(random, sources.size() * graph.n);
    const auto answers = [&] {
        return std::vector<std::vector<T>>{
            distances_of<T>(*network, sources, {}, graph.n, 2),
            distances_of<T>(*network, sources, targets, targets.size()),
            distances_of<T>(hubs, sources, {}, graph.n, 2),
            distances_of<T>(hubs, sources, targets, targets.size()),
            all_answers(*forest_of<T>(network, sources), gradient, gradient, 2),
            all_answers(*forest_of<T>(hubs, sources, {}, 2), gradient, gradient, 1),
        };
    };
    const auto expected = answers();
    std::vector<std::vector<std::vector<T>>> found(2);
    {
        std::vector<std::jthread> callers;
        for (auto& results : found)
            callers.emplace_back([&] {
                for (int round = 0; round < 2; ++round) results = answers();
            });
    }
    CHECK(found[0] == expected && found[1] == expected);
}

// -- cancellation

// In the middle of a search, with its scratch memory and its targets in use.
template <class T>
void test_cancelled_search() {
    Random random(61);
    const Graph graph = path("long path", random, 4000, few_values);
    context = describe(graph);
    const auto network = make_network<T>(graph);
    const std::vector<Vertex> targets{3999, 2000, 1, 3999};
    Tree<T> tree;
    std::vector<Call> calls;
    for (Tree<T>* grown : {&tree, static_cast<Tree<T>*>(nullptr)})
        for (const Stop<T>& stop : {Stop<T>(), until_targets<T>(targets), until_nearest<T>(everybody, 4000),
                                    until_radius<T>(unreached<T>, 0)})
            calls.push_back([&network, grown, stop](Watch& watch) {
                const typename ScratchPool<T>::Lease lease(network->scratch());
                const Seed<T> seed{0, T(0), no_edge};
                search<T>(*network, {&seed, 1}, stop, nullptr, *lease, grown, watch);
            });
    check_cancelled(calls);
    const auto truth = true_distances<T>(graph, network->weights(), 5);
    CHECK(distances_of<T>(*network, {5}, {}, graph.n) == truth);
    // Marks left behind would end this search too early or never.
    CHECK(distances_of<T>(*network, {5}, {7, 3000}, 2) == std::vector<T>{truth[7], truth[3000]});
    CHECK(distances_of<T>(*network, {5}, targets, 4) ==
          std::vector<T>{truth[3999], truth[2000], truth[1], truth[3999]});
}

// Calls with so many sources that none can end before it is cancelled.
template <class T>
void test_cancelled_calls() {
    Random random(62);
    const Graph graph = hub_graph("hubs", random, 150, 5, few_values);
    context = describe(graph);
    const auto network = make_network<T>(graph);
    const auto hubs = hubs_of<T>(network, random_mask(random, graph.n, 0.1));
    const auto sources = random.vertices(20000, graph.n);
    const std::vector<Vertex> targets{0, 100};
    std::vector<T> out(sources.size() * 2);
    const Matrix<T> rows{out.data(), sources.size(), 2};
    const auto stop = until_nearest<T>(100, graph.n_items);
    for (const int n_jobs : {1, 3})
        check_cancelled({
            [&](Watch& watch) { search_distances<T>(*network, sources, targets, rows, n_jobs, watch); },
            [&](Watch& watch) { search_neighbors<T>(*network, sources, stop, n_jobs, watch); },
            [&](Watch& watch) { search_forest<T>(network, sources, {}, {}, n_jobs, watch); },
            [&](Watch& watch) { hubs.distances(sources, targets, rows, n_jobs, watch); },
            [&](Watch& watch) { hubs.neighbors(sources, stop, n_jobs, watch); },
            [&](Watch& watch) { hub_forest<T>(hubs, sources, {}, n_jobs, watch); },
            [&](Watch& watch) { network->with_weights(weights_of<T>(graph), n_jobs, watch); },
            [&](Watch& watch) { HubNetwork<T>(network, hubs.shared_layout(), nullptr, watch); },
        });

    const auto truth = true_distances<T>(graph, network->weights(), sources[0]);
    CHECK(distances_of<T>(*network, {sources[0]}, {}, graph.n) == truth);
    CHECK(distances_of<T>(*network, {sources[0]}, {9, 70}, 2) == std::vector<T>{truth[9], truth[70]});
    CHECK(distances_of<T>(hubs, {sources[0]}, {}, graph.n) == truth);
}

template <class T>
void test_cancelled_gradients() {
    Random random(63);
    const Graph graph = random_graph("sparse", random, 60, 150, few_values);
    context = describe(graph);
    const auto forest = forest_of<T>(make_network<T>(graph), random.vertices(800, graph.n));
    const std::vector<T> values(forest->n_sources() * graph.n, T(1));
    const Matrix<const T> rows{values.data(), forest->n_sources(), static_cast<std::size_t>(graph.n)};
    std::vector<T> per_edge(graph.n_edges()), per_refused_edge(graph.n_edges()), all(values.size());
    const Matrix<T> all_rows{all.data(), rows.rows, rows.columns};
    for (const int n_jobs : {1, 3})
        check_cancelled({
            [&](Watch& watch) { forest->backward({}, rows, per_edge, n_jobs, watch); },
            [&](Watch& watch) { forest->removal_cost({}, rows, rows, 9, per_edge, n_jobs, watch); },
            [&](Watch& watch) { forest->toggle({}, rows, 9, per_edge, per_refused_edge, n_jobs, watch); },
            [&](Watch& watch) { forest->distances({}, all_rows, n_jobs, watch); },
        });
    CHECK(backward_of<T>(*forest, {}, values) == gradient_by_paths<T>(*forest, {}, values));
}

void test_patient_watch() {
    Watch nobody;
    nobody.check();
    int n_questions = 0;
    Watch watch([&] { return ++n_questions > 100; });
    for (int round = 0; round < 1000; ++round) watch.check();
    CHECK(n_questions <= 1);  // not asked within the first 50 ms, unless the machine stood still
    nobody.stop();
    CHECK_THROWS(Cancelled, nobody.check());
}

// -- kernels

// Random paths into a random core, with absent edges, ties and vertices without any path.
template <class T>
struct Access {
    std::vector<std::int32_t> offsets{0}, core;
    std::vector<T> weights, distances;

    Access(Random& random, std::size_t n_vertices, std::size_t n_core) {
        for (std::size_t v = 0; v < n_vertices; ++v) {
            for (std::uint64_t arc = random.below(6); arc > 0; --arc) {
                core.push_back(static_cast<std::int32_t>(random.below(n_core)));
                weights.push_back(value(random));
            }
            offsets.push_back(static_cast<std::int32_t>(core.size()));
        }
        for (std::size_t d = 0; d < n_core * lanes; ++d) distances.push_back(value(random));
    }

    static T value(Random& random) {
        if (random.chance(0.15)) return unreached<T>;
        return random.chance(0.5) ? static_cast<T>(random.below(3)) : static_cast<T>(random.unit());
    }

    AccessView<T> view() const { return {offsets.data(), core.data(), weights.data()}; }
};

template <class T>
struct KernelResult {
    std::vector<T> nearest, nearest_by_arc;
    std::vector<std::int32_t> arcs;

    bool operator==(const KernelResult& other) const {
        return same_bits(nearest, other.nearest) && same_bits(nearest_by_arc, other.nearest_by_arc) &&
               same_bits(arcs, other.arcs);
    }
};

// Untouched entries keep the value they started with, so a write between the rows shows.
template <class T>
KernelResult<T> run_kernels(const Kernels<T>& kernels, const Access<T>& access, const std::vector<Vertex>* targets,
                            std::size_t first, std::size_t count, std::size_t stride) {
    KernelResult<T> result;
    result.nearest.assign(lanes * stride, T(-5));
    result.nearest_by_arc = result.nearest;
    result.arcs.assign(lanes * stride, -5);
    const Vertex* chosen = targets ? targets->data() : nullptr;
    kernels.nearest(access.view(), chosen, first, count, access.distances.data(), result.nearest.data(), stride);
    kernels.nearest_arc(access.view(), chosen, first, count, access.distances.data(), result.nearest_by_arc.data(),
                        result.arcs.data(), stride);
    return result;
}

template <class T>
KernelResult<T> expected_result(const Access<T>& access, const std::vector<Vertex>* targets, std::size_t first,
                                std::size_t count, std::size_t stride) {
    KernelResult<T> result;
    result.nearest.assign(lanes * stride, T(-5));
    result.arcs.assign(lanes * stride, -5);
    for (std::size_t lane = 0; lane < lanes; ++lane)
        for (std::size_t c = 0; c < count; ++c) {
            const std::size_t v = targets ? static_cast<std::size_t>((*targets)[c]) : first + c;
            T& least = result.nearest[lane * stride + c] = unreached<T>;
            std::int32_t& choice = result.arcs[lane * stride + c] = -1;
            for (std::int32_t arc = access.offsets[v]; arc < access.offsets[v + 1]; ++arc) {
                const T path =
                    access.distances[static_cast<std::size_t>(access.core[arc]) * lanes + lane] + access.weights[arc];
                if (!(path < least)) continue;
                least = path;
                choice = arc;
            }
        }
    result.nearest_by_arc = result.nearest;
    return result;
}

template <class T>
void test_kernels() {
    Random random(71);
    constexpr std::size_t n = 150;
    const Access<T> access(random, n, 9);
    for (const std::size_t count : {0, 1, 2, 15, 16, 17, 31, 32, 33, 100})
        for (const std::size_t gap : {0, 1, 5}) {
            context = std::to_string(count) + " targets";
            const auto targets = random.vertices(count, n);
            for (const auto* chosen : {&targets, static_cast<const std::vector<Vertex>*>(nullptr)}) {
                const std::size_t first = chosen ? 0 : 7 * gap;
                const auto expected = expected_result(access, chosen, first, count, count + gap);
                CHECK(run_kernels(generic_kernels<T>(), access, chosen, first, count, count + gap) == expected);
                CHECK(run_kernels(kernels<T>(), access, chosen, first, count, count + gap) == expected);
            }
        }
#if defined(__x86_64__)
    CHECK((&kernels<T>() == &generic_kernels<T>()) == !__builtin_cpu_supports("avx2"));
#endif
}

// -- stress

// One pass over vertices of many degrees, and what it leaves behind. Sums of small integers are exact.
template <class T>
struct Pass {
    static constexpr std::size_t n_core = 11, n_blocks = 3, n_columns = 5 * lanes;
    static constexpr std::size_t degrees[] = {0, 1, 2, 3, 4, 5, 6, 64};

    std::vector<std::int32_t> offsets{0}, core, columns{2 * lanes, 0, 4 * lanes}, sources;
    std::vector<T> weights, target, distances;
    T longest = 20;
    // Entries that nobody writes keep the value they started with.
    std::vector<T> residuals, uses, costs, core_residuals, core_uses, scratch;
    double loss = 0;

    Pass(Random& random, std::size_t n_vertices, bool exact) {
        const auto value = [&](std::uint64_t most) {
            return exact ? static_cast<T>(random.below(most))
                         : static_cast<T>(random.unit() * static_cast<double>(most));
        };
        for (std::size_t v = 0; v < n_vertices; ++v) {
            for (std::size_t arc = degrees[v % std::size(degrees)]; arc > 0; --arc) {
                core.push_back(static_cast<std::int32_t>(random.below(n_core)));
                weights.push_back(value(8));
            }
            offsets.push_back(static_cast<std::int32_t>(core.size()));
            for (std::size_t c = 0; c < n_columns; ++c) target.push_back(value(12));
        }
        sources = random.vertices(n_blocks * lanes, static_cast<Vertex>(n_vertices + 5));  // some are no target
        for (std::size_t d = 0; d < n_blocks * n_core * lanes; ++d)
            distances.push_back(random.chance(0.1) ? unreached<T> : value(16));
        residuals = uses = costs = std::vector<T>(core.size(), T(-5));
        core_residuals = core_uses = std::vector<T>(distances.size(), T(3));
        scratch.assign(3 * lanes * 64, T(7));
    }

    AccessView<T> access() const { return {offsets.data(), core.data(), weights.data()}; }

    void run(const Kernels<T>& kernels, std::size_t first, std::size_t last) {
        loss = kernels.stress({access(), n_core, n_blocks, target.data(), n_columns, columns.data(), sources.data(),
                               distances.data(), longest, residuals.data(), uses.data(), costs.data(),
                               core_residuals.data(), core_uses.data(), scratch.data()},
                              first, last);
    }

    void run_slowly(std::size_t first, std::size_t last) {
        for (std::size_t v = first; v < last; ++v) {
            for (std::int32_t arc = offsets[v]; arc < offsets[v + 1]; ++arc)
                residuals[arc] = uses[arc] = costs[arc] = 0;
            if (offsets[v] == offsets[v + 1]) continue;
            for (std::size_t block = 0; block < n_blocks; ++block)
                for (std::size_t lane = 0; lane < lanes; ++lane)
                    if (sources[block * lanes + lane] != static_cast<Vertex>(v)) add_pair(v, block, lane);
        }
    }

    void add_pair(std::size_t v, std::size_t block, std::size_t lane) {
        const auto cell = [&](std::int32_t arc) { return (block * n_core + core[arc]) * lanes + lane; };
        std::vector<std::pair<T, std::int32_t>> paths;
        for (std::int32_t arc = offsets[v]; arc < offsets[v + 1]; ++arc)
            paths.emplace_back(std::min(distances[cell(arc)] + weights[arc], longest), arc);
        std::sort(paths.begin(), paths.end());
        const auto [least, arc] = paths[0];
        const T goal = target[v * n_columns + columns[block] + lane];
        const T next = paths.size() > 1 ? paths[1].first : longest;
        loss += (least - goal) * (least - goal);
        residuals[arc] += least - goal;
        uses[arc] += 1;
        costs[arc] += (next - goal) * (next - goal) - (least - goal) * (least - goal);
        core_residuals[cell(arc)] += least - goal;
        core_uses[cell(arc)] += 1;
    }

    bool operator==(const Pass& other) const {
        return loss == other.loss && same_bits(residuals, other.residuals) && same_bits(uses, other.uses) &&
               same_bits(costs, other.costs) && same_bits(core_residuals, other.core_residuals) &&
               same_bits(core_uses, other.core_uses);
    }
};

template <class T>
bool nearly(const std::vector<T>& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](T x, T y) {
        return std::abs(x - y) <= 1024 * std::numeric_limits<T>::epsilon() * std::max(std::abs(y), T(100));
    });
}

template <class T>
void test_stress_kernels() {
    Random random(72);
    constexpr std::size_t n = 3 * std::size(Pass<T>::degrees) + 2;
    for (const bool exact : {true, false})
        for (const auto [first, last] : {std::pair<std::size_t, std::size_t>{0, n}, {5, 17}, {7, 8}, {8, 9}, {4, 4}}) {
            context = std::string(exact ? "integers" : "reals") + " from vertex " + std::to_string(first);
            const Pass<T> start(random, n, exact);
            Pass<T> generic = start, fast = start, slow = start;
            generic.run(generic_kernels<T>(), first, last);
            fast.run(kernels<T>(), first, last);
            slow.run_slowly(first, last);
            CHECK(generic == fast);
            if (exact) {
                CHECK(generic == slow);
            } else {
                CHECK(close(static_cast<T>(generic.loss), static_cast<T>(slow.loss)));
                CHECK(same_bits(generic.uses, slow.uses) && same_bits(generic.core_uses, slow.core_uses));
                CHECK(nearly(generic.residuals, slow.residuals) && nearly(generic.costs, slow.costs));
                CHECK(nearly(generic.core_residuals, slow.core_residuals));
            }
        }
}

template <class T>
void check_rows(const Kernels<T>& kernels, const std::vector<T>& target, const std::vector<T>& known,
                const std::vector<T>& from, T weight, bool exact) {
    T misfit = 0;
    Detour<T> expected{0, 0, 0};
    for (std::size_t c = 0; c < target.size(); ++c) {
        const T path = from[c] + weight;
        misfit += (target[c] - path) * (target[c] - path);
        if (!(path < known[c])) continue;
        expected.uses += 1;
        expected.slack += target[c] - from[c];
        expected.gain += (known[c] - target[c]) * (known[c] - target[c]) - (path - target[c]) * (path - target[c]);
    }
    const Detour<T> found = kernels.detour(target.data(), known.data(), from.data(), weight, target.size());
    const T found_misfit = kernels.misfit(target.data(), from.data(), weight, target.size());
    CHECK(found.uses == expected.uses);
    if (exact) {
        CHECK(found_misfit == misfit && found.slack == expected.slack && found.gain == expected.gain);
    } else {
        CHECK(nearly<T>({found_misfit, found.slack, found.gain}, {misfit, expected.slack, expected.gain}));
    }
}

// `misfit` and `detour`, for rows of any number of blocks.
template <class T>
void test_row_kernels() {
    Random random(73);
    for (const bool exact : {true, false})
        for (const std::size_t n_blocks : {0, 1, 2, 7, 64}) {
            context = std::to_string(n_blocks) + (exact ? " blocks of integers" : " blocks of reals");
            std::vector<T> target, known, from;
            for (std::vector<T>* row : {&target, &known, &from})
                for (std::size_t c = 0; c < n_blocks * lanes; ++c)
                    row->push_back(exact ? static_cast<T>(random.below(9)) : static_cast<T>(9 * random.unit()));
            for (const T weight : {T(0), exact ? T(2) : T(0.7), T(20)}) {
                check_rows(generic_kernels<T>(), target, known, from, weight, exact);
                check_rows(kernels<T>(), target, known, from, weight, exact);
                const std::size_t count = target.size();
                const auto values = [&](const Kernels<T>& k) {
                    const Detour<T> detour = k.detour(target.data(), known.data(), from.data(), weight, count);
                    const T misfit = k.misfit(target.data(), from.data(), weight, count);
                    return std::vector<T>{misfit, detour.uses, detour.slack, detour.gain};
                };
                CHECK(same_bits(values(generic_kernels<T>()), values(kernels<T>())));
            }
        }
}

// Target distances from some sources to the items of a graph, and hubs to measure them with.
struct StressTask {
    Graph graph;
    HubNetwork<float> hubs;
    std::vector<Vertex> sources;
    std::vector<float> distances;
    std::vector<std::int32_t> blocks;

    StressTask(Random& random, const Graph& from, std::size_t n_blocks)
        : graph(from),
          hubs(hubs_of<float>(make_network<float>(graph), hub_mask(graph))),
          sources(random.vertices(n_blocks * lanes, graph.n)) {
        for (std::size_t d = 0; d < sources.size() * graph.n_items; ++d)
            distances.push_back(graph.exact ? static_cast<float>(random.below(9))
                                            : static_cast<float>(3 * random.unit()));
        for (std::size_t b = 0; b < n_blocks; ++b) blocks.push_back(static_cast<std::int32_t>(b));
    }

    static Mask hub_mask(const Graph& graph) {
        Mask is_hub(graph.n, 0);
        std::fill(is_hub.begin() + graph.n_items, is_hub.end(), 1);
        return is_hub;
    }

    Targets<float> target() const {
        return {sources, {distances.data(), static_cast<std::size_t>(graph.n_items), sources.size()}};
    }

    Stress<float> measure(int n_jobs, Watch& watch) const {
        return measure_stress<float>(hubs, target(), blocks, 30.0f, true, n_jobs, watch);
    }
    Stress<float> measure(int n_jobs) const {
        Watch watch;
        return measure(n_jobs, watch);
    }
};

using prodige::same_bits;  // that of vectors, which the next one would hide

bool same_bits(const Stress<float>& a, const Stress<float>& b) {
    return a.loss == b.loss && a.n_pairs == b.n_pairs && same_bits(a.gradient, b.gradient) &&
           same_bits(a.uses, b.uses) && same_bits(a.cost, b.cost) && same_bits(a.flow_residuals, b.flow_residuals) &&
           same_bits(a.flow_uses, b.flow_uses);
}

std::vector<StressTask> stress_tasks() {
    Random random(74);
    std::vector<StressTask> tasks;
    tasks.emplace_back(random, hub_graph("one item", random, 1, 1, few_values), 1);
    tasks.emplace_back(random, hub_graph("few items", random, 5, 2, few_values), 3);
    tasks.emplace_back(random, hub_graph("hubs ties", random, 60, 6, few_values), 4);
    tasks.emplace_back(random, hub_graph("hubs zeros", random, 60, 6, often_zero), 2);
    tasks.emplace_back(random, hub_graph("hubs", random, looks_for_races ? 100 : 400, 12, real), 9);
    Graph wide = hub_graph("many arcs", random, 30, 70, real);
    for (Vertex h = 0; h < 64; ++h) wide.join(3, wide.n_items + h, real(random));
    tasks.emplace_back(random, wide, 2);
    tasks.emplace_back(random, hub_graph("no blocks", random, 10, 2, real), 0);
    return tasks;
}

void test_stress_of_graphs() {
    for (const StressTask& task : stress_tasks()) {
        context = describe(task.graph);
        const Stress<float> stress = task.measure(1);
        const auto weights = weights_of<float>(task.graph);
        double loss = 0, n_pairs = 0;
        for (std::size_t c = 0; c < task.sources.size(); ++c) {
            const auto truth = true_distances<float>(task.graph, weights, task.sources[c]);
            for (Vertex v = 0; v < task.graph.n_items; ++v) {
                if (v == task.sources[c]) continue;
                const double miss = std::min(truth[v], 30.0f) - task.distances[v * task.sources.size() + c];
                loss += miss * miss;
                n_pairs += 1;
            }
        }
        CHECK(stress.n_pairs == n_pairs);
        CHECK(agree(static_cast<float>(stress.loss), static_cast<float>(loss), task.graph.exact));
        for (const double uses : stress.uses) CHECK(uses >= 0 && uses == std::floor(uses));
    }
}

void test_stress_has_the_same_bits_for_any_jobs() {
    for (const StressTask& task : stress_tasks()) {
        context = describe(task.graph);
        const Stress<float> one = task.measure(1);
        for (const int n_jobs : {1, 2, 3, 5, 8, 13}) CHECK(same_bits(task.measure(n_jobs), one));
    }
}

// Hubs at random distances of the sources, the items among them.
struct AttachTask {
    static constexpr std::size_t n_items = 50, n_hubs = 40, n_columns = 6 * lanes, first = lanes, window = 3 * lanes;
    std::vector<Vertex> items, sources;
    std::vector<float> target, from;

    explicit AttachTask(Random& random, std::size_t n_wishes = 70)
        : items(random.vertices(n_wishes, n_items)), sources(random.vertices(n_columns, n_items + 10)) {
        sources[first] = -1;
        for (std::size_t d = 0; d < n_items * n_columns; ++d) target.push_back(static_cast<float>(3 * random.unit()));
        for (std::size_t d = 0; d < n_hubs * window; ++d) from.push_back(static_cast<float>(2 * random.unit()));
    }

    Attachments<float> attach(std::size_t n_arcs, int n_jobs, Watch& watch) const {
        return prodige::attach<float>(items, {sources, {target.data(), n_items, n_columns}},
                                      {from.data(), n_hubs, window}, first, n_arcs, n_jobs, watch);
    }

    // The least squared error of an item with one hub, whose best weight is the mean of what is missing.
    double least_error(Vertex item) const {
        double least = std::numeric_limits<double>::infinity();
        for (std::int32_t h = 0; h < static_cast<std::int32_t>(n_hubs); ++h) {
            double slack = 0, count = 0;
            for (std::size_t c = 0; c < window; ++c) {
                if (sources[first + c] == item) continue;
                slack += target[item * n_columns + first + c] - from[h * window + c];
                count += 1;
            }
            const float weight = static_cast<float>(std::max(slack / count, 0.0));
            least = std::min(least, error(item, {&h, 1}, &weight));
        }
        return least;
    }

    // The squared error of an item with some hubs.
    double error(Vertex item, std::span<const std::int32_t> hubs, const float* weights) const {
        double sum = 0;
        for (std::size_t c = 0; c < window; ++c) {
            if (sources[first + c] == item) continue;
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t a = 0; a < hubs.size(); ++a)
                least = std::min(least, static_cast<double>(from[hubs[a] * window + c]) + weights[a]);
            const double miss = least - target[item * n_columns + first + c];
            sum += miss * miss;
        }
        return sum;
    }
};

void test_attach() {
    Random random(75);
    const AttachTask task(random);
    Watch watch;
    for (const std::size_t n_arcs : {1, 2, 7, 16, 30}) {
        context = std::to_string(n_arcs) + " arcs";
        const auto found = task.attach(n_arcs, 1, watch);
        const std::size_t k = found.n_arcs;
        CHECK(k == std::min<std::size_t>(n_arcs, 16));
        CHECK(found.hubs.size() == task.items.size() * k && found.errors.size() == found.hubs.size());
        CHECK(found.weights.size() == found.hubs.size() * k);
        for (std::size_t i = 0; i < task.items.size(); ++i) {
            const std::span<const std::int32_t> hubs(&found.hubs[i * k], k);
            const std::size_t n_found = std::find(hubs.begin(), hubs.end(), -1) - hubs.begin();
            CHECK(n_found > 0);
            const double least = task.least_error(task.items[i]);
            CHECK(std::abs(found.errors[i * k] - least) <= 1e-4 * least);
            for (std::size_t a = 0; a < n_found; ++a) {
                const float error = found.errors[i * k + a];
                const double truth = task.error(task.items[i], hubs.first(a + 1), &found.weights[(i * k + a) * k]);
                CHECK(std::abs(error - truth) <= 1e-4 * truth + 1e-5);
                CHECK(a == 0 || error < found.errors[i * k + a - 1]);
            }
            for (std::size_t a = n_found; a < k; ++a)
                CHECK(hubs[a] == -1 && found.errors[i * k + a] == found.errors[i * k + n_found - 1]);
        }
        for (const int n_jobs : {2, 3, 8}) {
            const auto other = task.attach(n_arcs, n_jobs, watch);
            CHECK(same_bits(found.hubs, other.hubs) && same_bits(found.weights, other.weights) &&
                  same_bits(found.errors, other.errors));
        }
    }
    CHECK(AttachTask(random, 0).attach(3, 2, watch).hubs.empty());
}

void test_cancelled_stress() {
    Random random(76);
    const StressTask task(random, hub_graph("hubs", random, 300, 8, few_values), 30);
    const AttachTask attaching(random, 3000);
    context = describe(task.graph);
    const Stress<float> truth = task.measure(1);
    for (const int n_jobs : {1, 3}) {
        check_cancelled({
            [&](Watch& watch) { task.measure(n_jobs, watch); },
            [&](Watch& watch) { attaching.attach(4, n_jobs, watch); },
        });
        CHECK(same_bits(task.measure(n_jobs), truth));  // nothing is left behind
    }
}

// -- what once went or may go wrong

Graph graph_of(Vertex n, const std::vector<Vertex>& tails, const std::vector<Vertex>& heads,
               const std::vector<double>& weights) {
    Graph graph = empty_graph("by hand", n, one);
    for (std::size_t e = 0; e < tails.size(); ++e) graph.join(tails[e], heads[e], weights[e]);
    return graph;
}

template <class T>
void check_both_engines(const Graph& graph, const Mask& is_hub) {
    context = describe(graph);
    const auto network = make_network<T>(graph);
    const auto hubs = hubs_of<T>(network, is_hub);
    for (Vertex source = 0; source < graph.n; ++source) {
        const auto truth = true_distances<T>(graph, network->weights(), source);
        CHECK(distances_of<T>(*network, {source}, {}, graph.n) == truth);
        CHECK(distances_of<T>(hubs, {source}, {}, graph.n) == truth);
    }
}

// Both hubs have a single arc in the core, and the spoke reaches both at once, one of them not by its best path.
template <class T>
void test_leaves_that_are_seeds() {
    check_both_engines<T>(graph_of(3, {0, 0, 1}, {1, 2, 2}, {1, 10, 1}), {0, 1, 1});
}

// A spoke joined twice to the same item of the core: the two edges are no shortcut.
template <class T>
void test_twins_of_a_local_edge() {
    check_both_engines<T>(graph_of(2, {0, 0}, {1, 1}, {1, 2}), {0, 0});
    check_both_engines<T>(graph_of(4, {0, 0, 1, 0}, {1, 1, 2, 3}, {1, 2, 4, 1}), {0, 0, 0, 1});
}

// A sum beyond the largest number is no path, and no shortcut either: the hubs then are apart in the core.
template <class T>
void test_sums_beyond_the_largest_number() {
    const double huge = 0.9 * static_cast<double>(std::numeric_limits<T>::max());
    const double small = 0.05 * static_cast<double>(std::numeric_limits<T>::max());
    check_both_engines<T>(graph_of(4, {0, 0, 1}, {1, 2, 3}, {huge, huge, small}), {0, 1, 1, 1});
    check_both_engines<T>(graph_of(4, {0, 1, 2}, {1, 2, 3}, {huge, huge, small}), {0, 1, 0, 1});
}

// A search for no targets, or within less than nothing, settles nothing; its tree must still be fit to be asked.
template <class T>
void test_empty_trees() {
    Random random(81);
    const Graph graph = random_graph("sparse", random, 10, 20, few_values);
    context = describe(graph);
    const std::vector<Vertex> nothing;
    for (const Stop<T>& stop : {until_targets<T>(nothing), until_radius<T>(T(-1), graph.n)}) {
        const auto forest = forest_of<T>(make_network<T>(graph), {1, 2}, stop);
        const std::vector<T> values(2 * graph.n, T(1));
        const std::vector<T> zeros(graph.n_edges(), T(0));
        CHECK(backward_of<T>(*forest, {}, values) == zeros);
        CHECK(removal_cost_of<T>(*forest, {}, values, values, 9) == zeros);
        CHECK(toggle_of<T>(*forest, {}, values, 9) == std::vector<T>(2 * graph.n_edges(), T(0)));
    }
}

template <class T>
void test_no_sources_and_no_vertices() {
    const Graph nothing = empty_graph("nothing", 0, one);
    const auto network = make_network<T>(nothing);
    const auto hubs = hubs_of<T>(network, {});
    CHECK(distances_of<T>(*network, {}, {}, 0).empty());
    CHECK(distances_of<T>(hubs, {}, {}, 0).empty());
    CHECK(forest_of<T>(network, {})->n_sources() == 0);
    CHECK(forest_of<T>(hubs, {})->n_sources() == 0);
    Random random(82);
    const Graph graph = random_graph("sparse", random, 10, 20, few_values);
    const auto forest = forest_of<T>(make_network<T>(graph), {});
    Watch watch;
    std::vector<T> out(graph.n_edges(), T(3));
    forest->backward({}, {nullptr, 0, 0}, out, 2, watch);
    CHECK(out == std::vector<T>(out.size(), T(0)));
}

// -- running

int run_all() {
    Runner runner;
    RUN(test_bad_topologies);
    RUN_BOTH(test_bad_weights);
    RUN(test_bad_layouts);
    RUN(test_topology);
    RUN_BOTH(test_queue);
    RUN_BOTH(test_labels_order_by_distance_then_vertex);
    RUN(test_parallel_for);
    RUN(test_failing_jobs);
    RUN(test_memory);
    RUN_BOTH(test_kernels);
    RUN_BOTH(test_stress_kernels);
    RUN_BOTH(test_row_kernels);
    RUN(test_stress_of_graphs);
    RUN(test_stress_has_the_same_bits_for_any_jobs);
    RUN(test_attach);
    run_alternating_tests(runner);
    run_codes_tests(runner);
    run_placing_tests(runner);
    run_rows_tests(runner);
    run_flows_tests(runner);
    run_product_tests(runner);
    RUN_BOTH(test_leaves_that_are_seeds);
    RUN_BOTH(test_twins_of_a_local_edge);
    RUN_BOTH(test_sums_beyond_the_largest_number);
    RUN_BOTH(test_empty_trees);
    RUN_BOTH(test_no_sources_and_no_vertices);
    RUN_BOTH(test_network);
    RUN(test_large_network);
    RUN_BOTH(test_negative_zero);
    RUN_BOTH(test_distances);
    RUN_BOTH(test_pairs);
    RUN_BOTH(test_forest);
    RUN_BOTH(test_forest_until_targets);
    RUN_BOTH(test_forest_until_radius);
    RUN_BOTH(test_forest_until_nearest);
    RUN_BOTH(test_several_seeds);
    RUN_BOTH(test_targets_end_the_search);
    RUN_BOTH(test_neighbors);
    RUN(test_layouts);
    RUN(test_choice_of_hubs);
    RUN_BOTH(test_hub_distances);
    RUN_BOTH(test_hub_pairs);
    RUN_BOTH(test_hub_forest);
    RUN_BOTH(test_hub_neighbors);
    RUN_BOTH(test_every_mask);
    RUN_BOTH(test_backward);
    RUN_BOTH(test_backward_is_the_derivative);
    RUN_BOTH(test_costs);
    RUN_BOTH(test_shift_is_that_of_a_new_search);
    RUN_BOTH(test_costs_of_targets);
    RUN(test_costs_of_real_weights);
    RUN_BOTH(test_sample_frequencies);
    RUN_BOTH(test_sample_groups);
    RUN_BOTH(test_sampled_forest);
    RUN_BOTH(test_bounded_sampled_forest);
    RUN_BOTH(test_sampled_hub_forest);
    RUN_BOTH(test_sampled_costs);
    RUN_BOTH(test_answers);
    RUN_BOTH(test_toggle_of_decided_edges);
    RUN_BOTH(test_jobs_do_not_change_bits);
    RUN_BOTH(test_neighbors_of_many_jobs);
    RUN_BOTH(test_two_callers);
    RUN(test_patient_watch);
    RUN_BOTH(test_cancelled_search);
    RUN_BOTH(test_cancelled_calls);
    RUN_BOTH(test_cancelled_gradients);
    RUN(test_cancelled_stress);
    run_word_tests(runner);
    run_text_tests(runner);
    run_ngram_tests(runner);
    return runner.finish();
}

}  // namespace
}  // namespace prodige

int main() {
    signal(SIGALRM, prodige::give_up);
    alarm(120);
    return prodige::run_all();
}
