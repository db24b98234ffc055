#include "search.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace prodige {

namespace {

// One search. Nearest, radius and sampled searches settle strictly by (distance, vertex): the caller sees that order,
// or it decides which edges are asked about. The others may settle a vertex as soon as its distance is known to be
// final, which saves most of the queue.
template <class T, Until until, bool Sampled, bool WithTree>
class Search {
    static constexpr bool ordered = Sampled || until == Until::nearest || until == Until::radius;

   public:
    Search(const Network<T>& network, const Stop<T>& stop, const Sample<T>* sample, Scratch<T>& scratch, Tree<T>* tree,
           Watch& watch)
        : network_(network),
          stop_(stop),
          sample_(sample),
          scratch_(scratch),
          tree_(tree),
          watch_(watch),
          distances_(scratch.distances.data()) {}

    void run(std::span<const Seed<T>> seeds) {
        if constexpr (WithTree) tree_->clear(network_.topology().n_vertices());
        if (seeds.empty()) return;
        source_ = seeds.front().vertex;
        component_size_ = count_reachable(seeds);
        const TargetMarks marks(*this);
        for (const Seed<T>& seed : seeds) nearest_ = std::min(nearest_, seed.distance);
        if (seeds.size() == 1 && network_.topology().degree(source_) > 0)
            nearest_ += network_.arcs()[network_.begin(source_)].weight;
        for (const Seed<T>& seed : seeds)
            if (seed.distance < distances_[seed.vertex]) {
                reach(seed.vertex, seed.distance, {no_position, seed.edge});
                scratch_.queue.push(seed.distance, seed.vertex);
            }
        while (!done_ && next());
    }

   private:
    // Vertices in the components of the seeds.
    std::size_t count_reachable(std::span<const Seed<T>> seeds) const {
        const Topology& topology = network_.topology();
        if (seeds.size() == 1) return topology.component_size(seeds.front().vertex);
        std::map<Vertex, std::size_t> sizes;
        for (const Seed<T>& seed : seeds)
            sizes[topology.components()[seed.vertex]] = topology.component_size(seed.vertex);
        std::size_t total = 0;
        for (const auto& [component, size] : sizes) total += size;
        return total;
    }

    // Settles and expands one vertex; false when there is none left.
    bool next() {
        Vertex u;
        T distance;
        if (!ordered && !scratch_.certain.empty()) {
            u = scratch_.certain.back();
            scratch_.certain.pop_back();
            distance = distances_[u];
        } else {
            if (n_settled_ >= next_ceiling_ && scratch_.reached.size() == component_size_) lower_ceiling();
            if (!ordered && ceiling_ == 0) {
                settle_labels();
                return advance_horizon();
            }
            if (scratch_.queue.empty() || scratch_.queue.top().distance() >= horizon_) return advance_horizon();
            const Label<T> label = scratch_.queue.pop();
            u = label.vertex();
            distance = label.distance();
            if (distance != distances_[u]) return true;  // improved since: a newer label settled it, or will
            floor_ = distance;
            prefetch_next();
        }
        if (until == Until::radius && !(distance <= stop_.radius)) return false;
        if (until == Until::nearest && distance > reach_of_k_) return false;

        if (++n_expanded_ % 1024 == 0) watch_.check();
        const auto position = static_cast<std::int32_t>(n_settled_);
        settle(u, distance);
        expand(u, distance, position);
        return true;
    }

    // What leads the queue now is likely to be expanded next. Its arcs are somewhere in a large array: have them
    // fetched while the present vertex is worked on.
    void prefetch_next() const noexcept {
        if (scratch_.queue.empty()) return;
        constexpr std::int32_t arcs_per_line = 64 / sizeof(Arc<T>);
        const Vertex v = scratch_.queue.top().vertex();
        const std::int32_t begin = network_.begin(v);
        const std::int32_t end = std::min(network_.end(v), begin + 8 * arcs_per_line);
        for (std::int32_t arc = begin; arc < end; arc += arcs_per_line) __builtin_prefetch(network_.arcs() + arc);
    }

    void settle(Vertex u, T distance) {
        if constexpr (WithTree) tree_->settle(u, distance, scratch_.paths[u].parent, scratch_.paths[u].edge);
        scratch_.positions[u] = static_cast<std::int32_t>(n_settled_++);
        if constexpr (until == Until::targets)
            if (scratch_.is_target[u]) {
                scratch_.is_target[u] = 0;
                if (--n_missing_ == 0) done_ = true;
            }
        if constexpr (until == Until::nearest)
            if (u < stop_.n_items && u != source_ && ++n_found_ == stop_.k) reach_of_k_ = distance;
    }

    // Arcs are compared without a branch first, a block at a time: which of them improve is as good as random, and
    // a wrong guess costs more than ten comparisons.
    void expand(Vertex u, T distance, std::int32_t position) {
        constexpr std::int32_t block = 32;
        const Arc<T>* arcs = network_.arcs();
        const std::int32_t end = network_.end(u);
        std::int32_t better[block];
        for (std::int32_t first = network_.begin(u); first < end; first += block) {
            // Arcs are sorted: once one is too long to improve anything, so are the rest.
            if (distance + arcs[first].weight >= ceiling_) return;
            const std::int32_t last = std::min(first + block, end);
            std::int32_t n_better = 0;
            for (std::int32_t arc = first; arc < last; ++arc) {
                better[n_better] = arc;
                const T label = distance + arcs[arc].weight;
                n_better += static_cast<int>(label < distances_[arcs[arc].target]) & static_cast<int>(label < ceiling_);
            }
            for (std::int32_t b = 0; b < n_better; ++b) {
                const std::int32_t arc = better[b];
                improve(arcs[arc].target, distance + arcs[arc].weight, {position, network_.arc_edges()[arc]});
            }
        }
    }

    void improve(Vertex v, T distance, Parent path) {
        if (!(distance < distances_[v])) return;  // a parallel edge of the same block was as good
        if constexpr (Sampled) {
            const bool present = sample_->present(path.edge);
            tree_->asked.push_back(path.edge);
            tree_->present.push_back(present);
            if (!present) return;
        }
        reach(v, distance, path);
        if constexpr (!ordered) {
            if (network_.topology().degree(v) == 1) return settle(v, distance);  // a leaf leads nowhere
            // Every label still to come is at least floor_, so nothing can beat this one.
            if (distance <= floor_ + network_.calibers()[v]) return scratch_.certain.push_back(v);
        }
        scratch_.queue.push(distance, v);
    }

    void reach(Vertex v, T distance, Parent path) {
        if (distances_[v] == unreached<T>) scratch_.reached.push_back(v);
        distances_[v] = distance;
        if constexpr (WithTree) scratch_.paths[v] = path;
    }

    // Once every vertex has a tentative distance, the largest one that may still improve bounds what an arc can be
    // good for. A vertex cannot improve any more when the floor has come within its caliber. Zero when none can.
    void lower_ceiling() {
        if (!ordered && !has_horizon_) set_horizon(scratch_.reached);
        const std::size_t n = scratch_.distances.size();
        ceiling_ = component_size_ == n ? largest_open(n) : largest_open(scratch_.reached);
        next_ceiling_ = n_settled_ + component_size_ / 64 + 1;
    }

    T open_distance(Vertex v) const noexcept {
        const T distance = std::min(distances_[v], horizon_);
        return distance > floor_ + network_.calibers()[v] ? distance : T(0);
    }

    T largest_open(const std::vector<Vertex>& vertices) const noexcept {
        T largest = 0;
        for (const Vertex v : vertices) largest = std::max(largest, open_distance(v));
        return largest;
    }

    // The same over all vertices, written for the vectoriser.
    T largest_open(std::size_t n) const noexcept {
        constexpr std::size_t width = 16;
        T largest[width] = {};
        const T* distances = distances_;
        const T* calibers = network_.calibers();
        const T floor = floor_;
        const T horizon = horizon_;
        std::size_t v = 0;
        for (; v + width <= n; v += width)
            for (std::size_t l = 0; l < width; ++l) {
                const T distance = distances[v + l] < horizon ? distances[v + l] : horizon;
                const T open = distance > floor + calibers[v + l] ? distance : T(0);
                largest[l] = open > largest[l] ? open : largest[l];
            }
        for (; v < n; ++v) largest[0] = std::max(largest[0], open_distance(static_cast<Vertex>(v)));
        return *std::max_element(largest, largest + width);
    }

    // Everything below the horizon is final: no need to take it off one by one.
    void settle_labels() {
        for (const Label<T>& label : scratch_.queue)
            if (label.distance() < horizon_ && label.distance() == distances_[label.vertex()])
                settle(label.vertex(), label.distance());
        scratch_.queue.clear();
    }

    // A few far vertices would keep the ceiling high, and every scan long. So nothing is pushed past a horizon which
    // most vertices are expected to stay below. Those beyond it pull instead, once all below are settled.
    void set_horizon(std::span<const Vertex> open) {
        has_horizon_ = true;
        constexpr std::size_t n_samples = 256;
        horizon_ = unreached<T>;
        if (open.size() < 2 * n_samples || 2 * n_settled_ > component_size_) return;
        T samples[n_samples];
        for (std::size_t s = 0; s < n_samples; ++s) samples[s] = distances_[open[open.size() * s / n_samples]];
        T* quantile = samples + n_samples * 9 / 10;
        std::nth_element(samples, quantile, samples + n_samples);
        if (*quantile > floor_) horizon_ = *quantile;  // with many ties it may be where the search already is
    }

    bool advance_horizon() {
        if (horizon_ == unreached<T>) return false;
        std::vector<Vertex> beyond;
        for (const Vertex v : scratch_.reached)
            if (scratch_.positions[v] == no_position) beyond.push_back(v);
        if (beyond.empty()) return false;
        scratch_.queue.clear();
        for (const Vertex v : beyond) pull(v);
        for (const Vertex v : beyond) scratch_.queue.push(distances_[v], v);
        floor_ = horizon_;
        set_horizon(beyond);
        lower_ceiling();
        return true;
    }

    // The best path into v from what is settled. The source itself need not be asked: it pushed before any horizon.
    void pull(Vertex v) {
        for (std::int32_t arc = network_.begin(v); arc < network_.end(v); ++arc) {
            const auto [u, weight] = network_.arcs()[arc];
            if (weight + nearest_ >= distances_[v]) break;
            if (scratch_.positions[u] != no_position && distances_[u] + weight < distances_[v]) {
                distances_[v] = distances_[u] + weight;
                if constexpr (WithTree) scratch_.paths[v] = {scratch_.positions[u], network_.arc_edges()[arc]};
            }
        }
    }

    // Marks the targets for the time of one search, also when it ends by an exception.
    class TargetMarks {
       public:
        explicit TargetMarks(Search& search) : search_(search) {
            if (until != Until::targets) return;
            auto& is_target = search_.scratch_.is_target;
            if (is_target.empty()) is_target.resize(search_.network_.topology().n_vertices());
            for (const Vertex v : search_.stop_.targets) {
                search_.n_missing_ += !is_target[v];
                is_target[v] = 1;
            }
            search_.done_ = search_.n_missing_ == 0;
        }
        TargetMarks(const TargetMarks&) = delete;
        TargetMarks& operator=(const TargetMarks&) = delete;
        ~TargetMarks() {
            if (until != Until::targets) return;
            for (const Vertex v : search_.stop_.targets) search_.scratch_.is_target[v] = 0;
        }

       private:
        Search& search_;
    };

    const Network<T>& network_;
    const Stop<T>& stop_;
    const Sample<T>* sample_;
    Scratch<T>& scratch_;
    Tree<T>* tree_;
    Watch& watch_;
    T* distances_;

    Vertex source_ = 0;
    std::size_t component_size_ = 0;
    std::size_t n_settled_ = 0;
    std::size_t n_expanded_ = 0;
    std::size_t next_ceiling_ = 0;
    T ceiling_ = unreached<T>;
    T floor_ = 0;
    T horizon_ = unreached<T>;
    T nearest_ = unreached<T>;  // no vertex but the source is closer than this
    bool has_horizon_ = false;
    std::size_t n_missing_ = 0;    // targets not settled yet
    std::size_t n_found_ = 0;      // items settled, of the k asked for
    T reach_of_k_ = unreached<T>;  // distance of the k-th
    bool done_ = false;
};

template <class T, Until until>
void search_until(const Network<T>& network, std::span<const Seed<T>> seeds, const Stop<T>& stop,
                  const Sample<T>* sample, Scratch<T>& scratch, Tree<T>* tree, Watch& watch) {
    if (sample)
        Search<T, until, true, true>(network, stop, sample, scratch, tree, watch).run(seeds);
    else if (tree)
        Search<T, until, false, true>(network, stop, sample, scratch, tree, watch).run(seeds);
    else
        Search<T, until, false, false>(network, stop, sample, scratch, tree, watch).run(seeds);
}

}  // namespace

template <class T>
void search(const Network<T>& network, std::span<const Seed<T>> seeds, const Stop<T>& stop, const Sample<T>* sample,
            Scratch<T>& scratch, Tree<T>* tree, Watch& watch) {
    switch (stop.until) {
        case Until::exhausted:
            return search_until<T, Until::exhausted>(network, seeds, stop, sample, scratch, tree, watch);
        case Until::targets:
            return search_until<T, Until::targets>(network, seeds, stop, sample, scratch, tree, watch);
        case Until::nearest:
            return search_until<T, Until::nearest>(network, seeds, stop, sample, scratch, tree, watch);
        case Until::radius:
            return search_until<T, Until::radius>(network, seeds, stop, sample, scratch, tree, watch);
    }
}

template <class T>
std::shared_ptr<Forest<T>> search_forest(std::shared_ptr<const Network<T>> network, std::vector<Vertex> sources,
                                         const Stop<T>& stop, Sampling<T> sampling, int n_jobs, Watch& watch) {
    auto forest = std::make_shared<Forest<T>>(network, std::move(sources), std::move(sampling));
    WorkerScratch<T> scratch(network->scratch(), n_jobs);
    std::vector<Tree<T>> trees(std::max(n_jobs, 1));
    parallel_for(forest->n_sources(), n_jobs, watch, [&](std::size_t worker, std::size_t row) {
        const Seed<T> seed{forest->sources()[row], T(0), no_edge};
        const std::optional<Sample<T>> sample = forest->sample_of(row);
        search<T>(*network, {&seed, 1}, stop, sample ? &*sample : nullptr, scratch[worker], &trees[worker], watch);
        scratch[worker].reset();
        forest->plant(row, trees[worker], false);
    });
    return forest;
}

template <class T>
void search_distances(const Network<T>& network, std::span<const Vertex> sources, std::span<const Vertex> targets,
                      Matrix<T> out, int n_jobs, Watch& watch) {
    Stop<T> stop;
    if (!targets.empty()) {
        stop.until = Until::targets;
        stop.targets = targets;
    }
    WorkerScratch<T> scratch(network.scratch(), n_jobs);
    parallel_for(sources.size(), n_jobs, watch, [&](std::size_t worker, std::size_t row) {
        const Seed<T> seed{sources[row], T(0), no_edge};
        search<T>(network, {&seed, 1}, stop, nullptr, scratch[worker], nullptr, watch);
        copy_columns<T>(scratch[worker].distances, targets, out.row(row));
        scratch[worker].reset();
    });
}

PairGroups::PairGroups(std::span<const Vertex> i) : places(i.size()), offsets{0} {
    std::iota(places.begin(), places.end(), std::size_t(0));
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return i[a] < i[b]; });
    for (std::size_t p = 1; p <= places.size(); ++p)
        if (p == places.size() || i[places[p]] != i[places[p - 1]]) offsets.push_back(p);
}

template <class T>
void search_pairs(const Network<T>& network, std::span<const Vertex> i, std::span<const Vertex> j, std::span<T> out,
                  int n_jobs, Watch& watch) {
    const PairGroups groups(i);
    WorkerScratch<T> scratch(network.scratch(), n_jobs);
    parallel_for(groups.size(), n_jobs, watch, [&](std::size_t worker, std::size_t group) {
        std::vector<Vertex> partners;
        for (const std::size_t p : groups[group]) partners.push_back(j[p]);
        Stop<T> stop;
        stop.until = Until::targets;
        stop.targets = partners;
        const Seed<T> seed{i[groups[group].front()], T(0), no_edge};
        search<T>(network, {&seed, 1}, stop, nullptr, scratch[worker], nullptr, watch);
        for (const std::size_t p : groups[group]) out[p] = scratch[worker].distances[j[p]];
        scratch[worker].reset();
    });
}

template <class T>
std::vector<Neighbors<T>> search_neighbors(const Network<T>& network, std::span<const Vertex> sources,
                                           const Stop<T>& stop, int n_jobs, Watch& watch) {
    std::vector<Neighbors<T>> found(sources.size());
    WorkerScratch<T> scratch(network.scratch(), n_jobs);
    std::vector<Tree<T>> trees(std::max(n_jobs, 1));
    parallel_for(sources.size(), n_jobs, watch, [&](std::size_t worker, std::size_t row) {
        const Seed<T> seed{sources[row], T(0), no_edge};
        Tree<T>& tree = trees[worker];
        search<T>(network, {&seed, 1}, stop, nullptr, scratch[worker], &tree, watch);
        scratch[worker].reset();
        for (std::size_t position = 0; position < tree.size; ++position)
            if (tree.vertices[position] < stop.n_items && tree.vertices[position] != sources[row]) {
                found[row].vertices.push_back(tree.vertices[position]);
                found[row].distances.push_back(tree.distances[position]);
            }
        keep_nearest(found[row], stop.until == Until::nearest ? stop.k : tree.size);
    });
    return found;
}

template <class T>
void keep_nearest(Neighbors<T>& found, std::size_t k) {
    std::vector<Label<T>> labels;
    labels.reserve(found.vertices.size());
    for (std::size_t n = 0; n < found.vertices.size(); ++n) labels.emplace_back(found.distances[n], found.vertices[n]);
    if (k < labels.size()) {
        std::nth_element(labels.begin(), labels.begin() + k, labels.end());
        labels.erase(labels.begin() + k, labels.end());
    }
    std::sort(labels.begin(), labels.end());
    found.vertices.clear();
    found.distances.clear();
    for (const Label<T>& label : labels) {
        found.vertices.push_back(label.vertex());
        found.distances.push_back(label.distance());
    }
}

#define PRODIGE_INSTANTIATE(T)                                                                                         \
    template void search<T>(const Network<T>&, std::span<const Seed<T>>, const Stop<T>&, const Sample<T>*,             \
                            Scratch<T>&, Tree<T>*, Watch&);                                                            \
    template std::shared_ptr<Forest<T>> search_forest<T>(std::shared_ptr<const Network<T>>, std::vector<Vertex>,       \
                                                         const Stop<T>&, Sampling<T>, int, Watch&);                    \
    template void search_distances<T>(const Network<T>&, std::span<const Vertex>, std::span<const Vertex>, Matrix<T>,  \
                                      int, Watch&);                                                                    \
    template void search_pairs<T>(const Network<T>&, std::span<const Vertex>, std::span<const Vertex>, std::span<T>,   \
                                  int, Watch&);                                                                        \
    template std::vector<Neighbors<T>> search_neighbors<T>(const Network<T>&, std::span<const Vertex>, const Stop<T>&, \
                                                           int, Watch&);                                               \
    template void keep_nearest<T>(Neighbors<T>&, std::size_t);
PRODIGE_INSTANTIATE(float)
PRODIGE_INSTANTIATE(double)
#undef PRODIGE_INSTANTIATE

}  // namespace prodige
