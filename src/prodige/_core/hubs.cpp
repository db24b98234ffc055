#include "hubs.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <stdexcept>

namespace prodige {

namespace {

constexpr std::size_t most_hubs = 1024;  // the table of shortcuts is quadratic in the hubs: 12 MiB

// Items that must stay in the core so that no two spokes are joined. Spokes are chosen greedily, those with the fewest
// local edges first; an item with many edges stays, its shortcuts would outnumber them.
std::vector<Vertex> cover_local_edges(const Topology& graph, std::span<const std::uint8_t> is_hub) {
    constexpr std::int32_t most_arcs = 16;
    std::vector<std::pair<std::int32_t, Vertex>> local;  // (local edges, item)
    for (Vertex v = 0; v < graph.n_vertices(); ++v) {
        if (is_hub[v]) continue;
        std::int32_t count = 0;
        for (std::int32_t arc = graph.offsets()[v]; arc < graph.offsets()[v + 1]; ++arc)
            count += !is_hub[graph.targets()[arc]];
        if (count > 0) local.emplace_back(count, v);
    }
    std::sort(local.begin(), local.end());
    std::vector<std::uint8_t> is_spoke(graph.n_vertices(), 0);
    std::vector<Vertex> cover;
    for (const auto& [count, v] : local) {
        bool free = graph.degree(v) <= most_arcs;
        for (std::int32_t arc = graph.offsets()[v]; arc < graph.offsets()[v + 1] && free; ++arc)
            free = !is_spoke[graph.targets()[arc]];
        is_spoke[v] = free;
        if (!free) cover.push_back(v);
    }
    return cover;
}

}  // namespace

HubLayout::HubLayout(std::shared_ptr<const Topology> topology, std::span<const std::uint8_t> is_hub)
    : topology_(std::move(topology)) {
    const Topology& graph = *topology_;
    const Vertex n = graph.n_vertices();
    if (is_hub.size() != static_cast<std::size_t>(n))
        throw std::invalid_argument("is_hub has " + std::to_string(is_hub.size()) + " entries for " +
                                    std::to_string(n) + " vertices");
    core_index_.assign(n, -1);
    const auto enter = [&](Vertex v) {
        if (core_index_[v] >= 0) return;
        core_index_[v] = static_cast<std::int32_t>(core_.size());
        core_.push_back(v);
    };
    for (Vertex v = 0; v < n; ++v)
        if (is_hub[v]) enter(v);
    n_hubs_ = core_.size();
    for (const Vertex v : cover_local_edges(graph, is_hub)) enter(v);
    for (Edge e = 0; e < graph.n_edges(); ++e)
        if (is_core(graph.tail(e)) && is_core(graph.head(e))) core_edges_.push_back(e);

    access_offsets_.push_back(0);
    for (Vertex v = 0; v < n; ++v) {
        if (is_core(v)) {
            access_core_.push_back(core_index_[v]);
            access_edges_.push_back(no_edge);
        } else {
            for (std::int32_t arc = graph.offsets()[v]; arc < graph.offsets()[v + 1]; ++arc) {
                access_core_.push_back(core_index_[graph.targets()[arc]]);
                access_edges_.push_back(graph.edges()[arc]);
            }
        }
        access_offsets_.push_back(static_cast<std::int32_t>(access_core_.size()));
    }
}

std::optional<std::vector<std::uint8_t>> choose_hubs(const Topology& topology, Vertex n_items) {
    const Vertex n = topology.n_vertices();
    constexpr std::int32_t least_cover = 8;  // a vertex that covers fewer edges is no hub
    std::vector<std::uint8_t> is_hub(n, 0);
    std::size_t n_hubs = 0;
    std::vector<std::int32_t> uncovered(n);
    for (Vertex v = 0; v < n; ++v) uncovered[v] = topology.degree(v);
    const auto take = [&](Vertex v) {
        is_hub[v] = 1;
        ++n_hubs;
        for (std::int32_t arc = topology.offsets()[v]; arc < topology.offsets()[v + 1]; ++arc)
            --uncovered[topology.targets()[arc]];
        uncovered[v] = 0;
    };

    if (static_cast<std::size_t>(n - n_items) <= most_hubs)
        for (Vertex v = n_items; v < n; ++v) take(v);

    // Greedy cover. Counts in the queue may be out of date, but only too high: look again before believing one.
    std::priority_queue<std::pair<std::int32_t, Vertex>> queue;
    for (Vertex v = 0; v < n; ++v)
        if (!is_hub[v] && uncovered[v] >= least_cover) queue.emplace(uncovered[v], -v);
    while (!queue.empty() && n_hubs < most_hubs) {
        const auto [count, minus_v] = queue.top();
        queue.pop();
        const Vertex v = -minus_v;
        if (uncovered[v] == count)
            take(v);
        else if (uncovered[v] >= least_cover)
            queue.emplace(uncovered[v], minus_v);
    }

    if (n_hubs == 0) return std::nullopt;
    const std::size_t n_core = n_hubs + cover_local_edges(topology, is_hub).size();
    if (4 * n_core > static_cast<std::size_t>(n)) return std::nullopt;  // the queue would keep too many vertices
    return is_hub;
}

template <class T>
HubNetwork<T>::HubNetwork(std::shared_ptr<const Network<T>> network, std::shared_ptr<const HubLayout> layout,
                          const Sample<T>* sample, Watch& watch)
    : network_(std::move(network)), layout_(std::move(layout)) {
    const auto edges = layout_->access_edges();
    access_weights_.resize(edges.size());
    for (std::size_t arc = 0; arc < edges.size(); ++arc) {
        const Edge edge = edges[arc];
        if (edge == no_edge)
            access_weights_[arc] = 0;
        else
            access_weights_[arc] = !sample || sample->present(edge) ? network_->weights()[edge] : unreached<T>;
    }
    build_core(sample, watch);
}

namespace {

// Upper bounds on the hub-to-hub distances, and the pair of arcs behind each where a spoke gave it.
template <class T>
class HubTable {
   public:
    explicit HubTable(std::size_t n_hubs)
        : n_(n_hubs), bounds_(n_hubs * n_hubs, unreached<T>), arcs_(n_hubs * n_hubs, {-1, -1}), largest_(n_hubs) {
        for (std::size_t h = 0; h < n_; ++h) bounds_[h * n_ + h] = 0;
    }

    T bound(std::size_t h, std::size_t g) const noexcept { return bounds_[h * n_ + g]; }
    std::pair<std::int32_t, std::int32_t> arcs(std::size_t h, std::size_t g) const noexcept {
        return arcs_[h * n_ + g];
    }

    void lower(std::size_t h, std::size_t g, T length) noexcept {
        bounds_[h * n_ + g] = bounds_[g * n_ + h] = std::min(bounds_[h * n_ + g], length);
    }
    void lower(std::size_t h, std::size_t g, T length, std::int32_t arc_h, std::int32_t arc_g) noexcept {
        if (!(length < bounds_[h * n_ + g])) return;
        bounds_[h * n_ + g] = bounds_[g * n_ + h] = length;
        arcs_[h * n_ + g] = {arc_h, arc_g};
        arcs_[g * n_ + h] = {arc_g, arc_h};
    }

    // Closes the direct edges under taking several in a row (Floyd-Warshall). Only prunes: a spoke that offers no
    // shorter path than known hub edges needs no shortcut. Skipped where it would cost more than it saves.
    void close() noexcept {
        if (n_ > 128) return;
        for (std::size_t k = 0; k < n_; ++k)
            for (std::size_t h = 0; h < n_; ++h) {
                const T to_k = bounds_[h * n_ + k];
                if (to_k == unreached<T>) continue;
                T* row = &bounds_[h * n_];
                const T* from_k = &bounds_[k * n_];
                for (std::size_t g = 0; g < n_; ++g) {
                    const T path = to_k + from_k[g];
                    row[g] = path < row[g] ? path : row[g];
                }
            }
    }

    // No shortcut of this length or longer can improve a row; out of date it is only too large.
    T largest(std::size_t h) const noexcept { return largest_[h]; }
    void refresh_largest() noexcept {
        for (std::size_t h = 0; h < n_; ++h)
            largest_[h] = *std::max_element(bounds_.begin() + h * n_, bounds_.begin() + (h + 1) * n_);
    }

   private:
    std::size_t n_;
    std::vector<T> bounds_;
    std::vector<std::pair<std::int32_t, std::int32_t>> arcs_;
    std::vector<T> largest_;
};

}  // namespace

template <class T>
void HubNetwork<T>::build_core(const Sample<T>* sample, Watch& watch) {
    const HubLayout& layout = *layout_;
    const Topology& graph = network_->topology();
    const std::size_t n_hubs = layout.n_hubs();
    std::vector<Vertex> tails, heads;
    std::vector<T> weights;
    HubTable<T> table(n_hubs);

    for (const Edge edge : layout.core_edges()) {
        if (sample && !sample->present(edge)) continue;
        const std::int32_t h = layout.core_index(graph.tail(edge));
        const std::int32_t g = layout.core_index(graph.head(edge));
        core_edges_.push_back(edge);
        tails.push_back(h);
        heads.push_back(g);
        weights.push_back(network_->weights()[edge]);
        if (std::max<std::size_t>(h, g) < n_hubs) table.lower(h, g, network_->weights()[edge]);
    }
    table.close();

    const auto offsets = layout.access_offsets();
    const auto hubs = layout.access_core();
    const auto is_hub = [&](std::int32_t c) { return static_cast<std::size_t>(c) < n_hubs; };
    const auto add_shortcut = [&](std::int32_t a, std::int32_t b, Vertex spoke, T length) {
        shortcuts_.push_back({a, b, spoke});
        tails.push_back(hubs[a]);
        heads.push_back(hubs[b]);
        weights.push_back(length);
    };
    for (Vertex v = 0; v < graph.n_vertices(); ++v) {
        if (v % 1024 == 0) {
            watch.check();
            table.refresh_largest();
        }
        const std::int32_t begin = offsets[v];
        const std::int32_t end = offsets[v + 1];
        if (layout.is_core(v) || end - begin < 2) continue;
        const bool spoke_of_hubs = std::all_of(hubs.begin() + begin, hubs.begin() + end, is_hub);
        const T least = *std::min_element(access_weights_.begin() + begin, access_weights_.begin() + end);
        for (std::int32_t a = begin; a < end; ++a) {
            const T weight = access_weights_[a];
            if (weight == unreached<T>) continue;
            const bool from_hub = is_hub(hubs[a]);
            if (from_hub && spoke_of_hubs && weight + least >= table.largest(hubs[a])) continue;
            for (std::int32_t b = a + 1; b < end; ++b) {
                const T length = weight + access_weights_[b];
                if (from_hub && is_hub(hubs[b]))
                    table.lower(hubs[a], hubs[b], length, a, b);
                else if (length != unreached<T> && hubs[a] != hubs[b])  // parallel edges join nothing
                    add_shortcut(a, b, v, length);
            }
        }
    }

    for (std::size_t h = 0; h < n_hubs; ++h)
        for (std::size_t g = h + 1; g < n_hubs; ++g) {
            const auto [arc_h, arc_g] = table.arcs(h, g);
            if (arc_h < 0) continue;
            const auto after = std::upper_bound(offsets.begin(), offsets.end(), arc_h);
            add_shortcut(arc_h, arc_g, static_cast<Vertex>(after - offsets.begin()) - 1, table.bound(h, g));
        }
    core_ = std::make_unique<const Network<T>>(
        std::make_shared<const Topology>(static_cast<Vertex>(layout.n_core()), tails, heads),
        std::span<const T>(weights), 1, watch);
}

template <class T>
void HubNetwork<T>::search_core(Vertex source, Scratch<T>& scratch, Tree<T>* tree, Watch& watch) const {
    std::vector<Seed<T>> seeds;
    if (layout_->is_core(source)) {
        seeds.push_back({layout_->core_index(source), T(0), no_edge});
    } else {
        const auto offsets = layout_->access_offsets();
        for (std::int32_t arc = offsets[source]; arc < offsets[source + 1]; ++arc)
            if (access_weights_[arc] != unreached<T>)
                seeds.push_back({layout_->access_core()[arc], access_weights_[arc], arc});
    }
    search<T>(*core_, seeds, {}, nullptr, scratch, tree, watch);
}

template <class T>
void HubNetwork<T>::distances(std::span<const Vertex> sources, std::span<const Vertex> targets, Matrix<T> out,
                              int n_jobs, Watch& watch) const {
    struct Bench {
        std::vector<T> core, rows;
    };
    std::vector<Bench> benches(std::max(n_jobs, 1));
    WorkerScratch<T> scratch(core_->scratch(), n_jobs);
    const std::size_t n_blocks = (sources.size() + lanes - 1) / lanes;
    parallel_for(n_blocks, n_jobs, watch, [&](std::size_t worker, std::size_t block) {
        Bench& bench = benches[worker];
        const std::size_t first = block * lanes;
        const std::size_t width = std::min(lanes, sources.size() - first);
        bench.core.assign(layout_->n_core() * lanes, unreached<T>);
        for (std::size_t lane = 0; lane < width; ++lane) {
            search_core(sources[first + lane], scratch[worker], nullptr, watch);
            for (const Vertex c : scratch[worker].reached) bench.core[c * lanes + lane] = scratch[worker].distances[c];
            scratch[worker].reset();
        }
        // A full block goes straight to its rows; a narrower one goes through a buffer of all lanes.
        T* rows = out.data + first * out.columns;
        if (width < lanes) {
            bench.rows.resize(lanes * out.columns);
            rows = bench.rows.data();
        }
        kernels<T>().nearest(access(), targets.empty() ? nullptr : targets.data(), 0, out.columns, bench.core.data(),
                             rows, out.columns);
        if (width < lanes) std::copy_n(rows, width * out.columns, out.data + first * out.columns);
        for (std::size_t lane = 0; lane < width; ++lane) {
            const Vertex source = sources[first + lane];
            const std::span<T> row = out.row(first + lane);
            if (targets.empty()) {
                if (static_cast<std::size_t>(source) < row.size()) row[source] = 0;
            } else {
                for (std::size_t c = 0; c < row.size(); ++c)
                    if (targets[c] == source) row[c] = 0;
            }
        }
    });
}

template <class T>
void HubNetwork<T>::pair_distances(std::span<const Vertex> i, std::span<const Vertex> j, std::span<T> out, int n_jobs,
                                   Watch& watch) const {
    const PairGroups groups(i);
    const auto offsets = layout_->access_offsets();
    const auto access_core = layout_->access_core();
    WorkerScratch<T> scratch(core_->scratch(), n_jobs);
    parallel_for(groups.size(), n_jobs, watch, [&](std::size_t worker, std::size_t group) {
        const Vertex source = i[groups[group].front()];
        search_core(source, scratch[worker], nullptr, watch);
        for (const std::size_t p : groups[group]) {
            T least = unreached<T>;
            for (std::int32_t arc = offsets[j[p]]; arc < offsets[j[p] + 1]; ++arc)
                least = std::min(least, scratch[worker].distances[access_core[arc]] + access_weights_[arc]);
            out[p] = j[p] == source ? T(0) : least;
        }
        scratch[worker].reset();
    });
}

template <class T>
std::vector<Neighbors<T>> HubNetwork<T>::neighbors(std::span<const Vertex> sources, const Stop<T>& stop, int n_jobs,
                                                   Watch& watch) const {
    std::vector<Neighbors<T>> found(sources.size());
    const std::size_t n_blocks = (sources.size() + lanes - 1) / lanes;
    parallel_for(n_blocks, n_jobs, watch, [&](std::size_t, std::size_t block) {
        const std::size_t first = block * lanes;
        const std::size_t width = std::min(lanes, sources.size() - first);
        std::vector<T> rows(width * stop.n_items);
        const Matrix<T> matrix{rows.data(), width, static_cast<std::size_t>(stop.n_items)};
        distances(sources.subspan(first, width), {}, matrix, 1, watch);
        for (std::size_t lane = 0; lane < width; ++lane) {
            const Vertex source = sources[first + lane];
            const auto row = matrix.row(lane);
            Neighbors<T>& near = found[first + lane];
            if (stop.until == Until::nearest) {
                std::priority_queue<Label<T>> nearest;  // the worst of the k best on top
                for (Vertex v = 0; v < stop.n_items; ++v) {
                    if (v == source || row[v] == unreached<T>) continue;
                    const Label<T> label(row[v], v);
                    if (stop.k == 0) break;
                    if (nearest.size() < stop.k) {
                        nearest.push(label);
                    } else if (label < nearest.top()) {
                        nearest.pop();
                        nearest.push(label);
                    }
                }
                for (; !nearest.empty(); nearest.pop()) {
                    near.vertices.push_back(nearest.top().vertex());
                    near.distances.push_back(nearest.top().distance());
                }
                std::reverse(near.vertices.begin(), near.vertices.end());
                std::reverse(near.distances.begin(), near.distances.end());
            } else {
                for (Vertex v = 0; v < stop.n_items; ++v)
                    if (v != source && row[v] <= stop.radius && row[v] != unreached<T>) {
                        near.vertices.push_back(v);
                        near.distances.push_back(row[v]);
                    }
                keep_nearest(near, near.vertices.size());
            }
        }
    });
    return found;
}

template <class T>
void HubNetwork<T>::grow(Forest<T>& forest, std::span<const std::size_t> rows, int n_jobs, Watch& watch) const {
    const auto n = static_cast<std::size_t>(network_->topology().n_vertices());
    struct Bench {
        std::vector<T> core, distances;
        std::vector<std::int32_t> arcs, positions;
        std::vector<Tree<T>> core_trees = std::vector<Tree<T>>(lanes);
        Tree<T> tree;
    };
    std::vector<Bench> benches(std::max(n_jobs, 1));
    WorkerScratch<T> scratch(core_->scratch(), n_jobs);
    parallel_for((rows.size() + lanes - 1) / lanes, n_jobs, watch, [&](std::size_t worker, std::size_t block) {
        Bench& bench = benches[worker];
        const auto members = rows.subspan(block * lanes, std::min(lanes, rows.size() - block * lanes));
        bench.core.assign(layout_->n_core() * lanes, unreached<T>);
        for (std::size_t lane = 0; lane < members.size(); ++lane) {
            Tree<T>& core_tree = bench.core_trees[lane];
            search_core(forest.sources()[members[lane]], scratch[worker], &core_tree, watch);
            scratch[worker].reset();
            for (std::size_t p = 0; p < core_tree.size; ++p)
                bench.core[core_tree.vertices[p] * lanes + lane] = core_tree.distances[p];
        }
        bench.distances.resize(lanes * n);
        bench.arcs.resize(lanes * n);
        kernels<T>().nearest_arc(access(), nullptr, 0, n, bench.core.data(), bench.distances.data(), bench.arcs.data(),
                                 n);
        for (std::size_t lane = 0; lane < members.size(); ++lane) {
            expand(bench.core_trees[lane], forest.sources()[members[lane]], {bench.distances.data() + lane * n, n},
                   {bench.arcs.data() + lane * n, n}, bench.positions, bench.tree);
            forest.plant(members[lane], bench.tree, forest.sampling().active());
        }
    });
}

// Turns a tree over the core into one over the graph: shortcuts become their two edges, spokes lie below their hubs.
// A spoke inside a shortcut is placed where the shortcut runs, not by its own arcs: with ties (or rounding) the two
// could disagree and close a circle.
template <class T>
void HubNetwork<T>::expand(const Tree<T>& core_tree, Vertex source, std::span<const T> distances,
                           std::span<const std::int32_t> arcs, std::vector<std::int32_t>& positions,
                           Tree<T>& tree) const {
    const HubLayout& layout = *layout_;
    const auto access_core = layout.access_core();
    const auto access_edges = layout.access_edges();
    positions.assign(distances.size(), no_position);  // by vertex
    tree.clear(distances.size());
    const auto settle = [&](Vertex v, T distance, std::int32_t parent, Edge edge) {
        positions[v] = static_cast<std::int32_t>(tree.size);
        tree.settle(v, distance, parent, edge);
    };

    settle(source, T(0), no_position, no_edge);
    for (std::size_t p = 0; p < core_tree.size; ++p) {
        const std::int32_t c = core_tree.vertices[p];
        const Vertex v = layout.core_vertex(c);
        const Edge core_edge = core_tree.edges[p];
        if (core_tree.parents[p] == no_position) {
            if (v != source) settle(v, core_tree.distances[p], 0, access_edges[core_edge]);
            continue;
        }
        const std::int32_t parent = core_tree.vertices[core_tree.parents[p]];
        const Vertex above = layout.core_vertex(parent);
        if (static_cast<std::size_t>(core_edge) < core_edges_.size()) {
            settle(v, core_tree.distances[p], positions[above], core_edges_[core_edge]);
            continue;
        }
        const Shortcut& shortcut = shortcuts_[core_edge - core_edges_.size()];
        const bool forth = access_core[shortcut.first] == parent;
        const std::int32_t up = forth ? shortcut.first : shortcut.second;
        const std::int32_t down = forth ? shortcut.second : shortcut.first;
        if (positions[shortcut.spoke] == no_position)
            settle(shortcut.spoke, core_tree.distances[core_tree.parents[p]] + access_weights_[up], positions[above],
                   access_edges[up]);
        settle(v, core_tree.distances[p], positions[shortcut.spoke], access_edges[down]);
    }
    for (std::size_t v = 0; v < distances.size(); ++v)
        if (positions[v] == no_position && distances[v] != unreached<T>)
            settle(static_cast<Vertex>(v), distances[v], positions[layout.core_vertex(access_core[arcs[v]])],
                   access_edges[arcs[v]]);
}

template <class T>
std::shared_ptr<Forest<T>> hub_forest(const HubNetwork<T>& hubs, std::vector<Vertex> sources, Sampling<T> sampling,
                                      int n_jobs, Watch& watch) {
    auto forest = std::make_shared<Forest<T>>(hubs.shared_network(), std::move(sources), std::move(sampling));
    std::map<std::uint64_t, std::vector<std::size_t>> groups;
    for (std::size_t row = 0; row < forest->n_sources(); ++row)
        groups[forest->sampling().active() ? forest->sampling().groups[row] : 0].push_back(row);

    if (!forest->sampling().active()) {
        for (const auto& [group, rows] : groups) hubs.grow(*forest, rows, n_jobs, watch);
        return forest;
    }
    // Each sampled graph has shortcuts of its own. Many graphs: one a thread; few: threads over their sources.
    std::vector<const std::vector<std::size_t>*> jobs;
    for (const auto& [group, rows] : groups) jobs.push_back(&rows);
    const bool many = jobs.size() >= static_cast<std::size_t>(std::max(n_jobs, 1));
    parallel_for(jobs.size(), many ? n_jobs : 1, watch, [&](std::size_t, std::size_t job) {
        const auto sample = forest->sample_of(jobs[job]->front());
        const HubNetwork<T> sampled(hubs.shared_network(), hubs.shared_layout(), &*sample, watch);
        sampled.grow(*forest, *jobs[job], many ? 1 : n_jobs, watch);
    });
    return forest;
}

#define PRODIGE_INSTANTIATE(T)                                                                                     \
    template class HubNetwork<T>;                                                                                  \
    template std::shared_ptr<Forest<T>> hub_forest<T>(const HubNetwork<T>&, std::vector<Vertex>, Sampling<T>, int, \
                                                      Watch&);
PRODIGE_INSTANTIATE(float)
PRODIGE_INSTANTIATE(double)
#undef PRODIGE_INSTANTIATE

}  // namespace prodige
