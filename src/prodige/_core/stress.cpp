#include "stress.hpp"

#include <algorithm>
#include <cmath>

namespace prodige {

namespace {

// Sums are taken over so many ranges of items, however many threads there are: the same bits for any number.
constexpr std::size_t n_ranges = 8;

// The trees of one block of sources over the core, and what their edges add up to.
template <class T>
struct CoreBlock {
    std::vector<Tree<T>> trees = std::vector<Tree<T>>(lanes);
    std::vector<double> gradient, uses, cost;  // by core edge
    std::vector<double> flow_residuals, flow_uses;
};

// By how much a core vertex moves away if the last edge on its path is lost: the best other arc that does not come from
// below it. Ways straight from the source are left out, so this may be too much for a neighbour of the source.
template <class T>
T find_shift(const Network<T>& core, const Tree<T>& tree, const std::vector<std::int32_t>& positions,
             std::int32_t position, T longest) {
    const Vertex v = tree.vertices[position];
    T best = longest;
    for (std::int32_t arc = core.begin(v); arc < core.end(v); ++arc) {
        std::int32_t above = positions[core.arcs()[arc].target];
        if (above == no_position || core.arc_edges()[arc] == tree.edges[position]) continue;
        const T path = tree.distances[above] + core.arcs()[arc].weight;
        if (!(path < best)) continue;
        while (above > position) above = tree.parents[above];
        if (above != position) best = path;
    }
    return std::max(best - tree.distances[position], T(0));
}

// One measurement. An item is reached from a core vertex by one of its own edges, so it goes in two halves: a search
// over the small core from every source, and one vectorised pass over the items, which leaves at each core vertex the
// sum of what is reached from there. The trees of the first half then take these sums to the edges of the core.
template <class T>
class StressMeasurement {
   public:
    StressMeasurement(const HubNetwork<T>& hubs, const Targets<T>& target, std::span<const std::int32_t> blocks,
                      T longest, bool with_flows, int n_jobs, Watch& watch)
        : hubs_(hubs),
          target_(target),
          blocks_(blocks),
          longest_(longest),
          n_jobs_(n_jobs),
          watch_(watch),
          n_core_(hubs.layout().n_core()),
          n_hubs_(with_flows ? hubs.layout().n_hubs() : 0),
          n_items_(target.distances.rows),
          columns_(blocks.size()),
          sources_(blocks.size() * lanes),
          distances_(blocks.size() * n_core_ * lanes, unreached<T>),
          core_blocks_(blocks.size()) {}

    Stress<T> run() {
        search_core();
        pass_items();
        parallel_for(blocks_.size(), n_jobs_, watch_, [&](std::size_t, std::size_t b) { walk_trees(b); });
        return collect();
    }

   private:
    std::size_t cell(std::size_t block, std::size_t vertex, std::size_t lane) const {
        return (block * n_core_ + vertex) * lanes + lane;
    }

    // Distances from every source to the core, and the trees they come from.
    void search_core() {
        WorkerScratch<T> scratch(hubs_.core().scratch(), n_jobs_);
        parallel_for(blocks_.size(), n_jobs_, watch_, [&](std::size_t worker, std::size_t b) {
            columns_[b] = blocks_[b] * static_cast<std::int32_t>(lanes);
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                const Vertex source = target_.sources[columns_[b] + lane];
                sources_[b * lanes + lane] = source;
                Tree<T>& tree = core_blocks_[b].trees[lane];
                hubs_.search_core(source, scratch[worker], &tree, watch_);
                scratch[worker].reset();
                for (std::size_t p = 0; p < tree.size; ++p)
                    distances_[cell(b, tree.vertices[p], lane)] = tree.distances[p];
            }
        });
    }

    // Residuals of all items: sums for their own edges, and for the core vertices they are reached from.
    void pass_items() {
        const AccessView<T> access = hubs_.access();
        const std::size_t n_arcs = hubs_.layout().access_core().size();
        std::int32_t most_arcs = 0;
        for (std::size_t v = 0; v < n_items_; ++v)
            most_arcs = std::max(most_arcs, access.offsets[v + 1] - access.offsets[v]);
        residuals_.resize(n_arcs);
        uses_.resize(n_arcs);
        costs_.resize(n_arcs);
        parallel_for(n_ranges, n_jobs_, watch_, [&](std::size_t, std::size_t range) {
            std::vector<T> scratch(3 * lanes * most_arcs);
            core_residuals_[range].assign(distances_.size(), T(0));
            core_uses_[range].assign(distances_.size(), T(0));
            const StressPass<T> pass{access,
                                     n_core_,
                                     blocks_.size(),
                                     target_.distances.data,
                                     target_.distances.columns,
                                     columns_.data(),
                                     sources_.data(),
                                     distances_.data(),
                                     longest_,
                                     residuals_.data(),
                                     uses_.data(),
                                     costs_.data(),
                                     core_residuals_[range].data(),
                                     core_uses_[range].data(),
                                     scratch.data()};
            losses_[range] = kernels<T>().stress(pass, n_items_ * range / n_ranges, n_items_ * (range + 1) / n_ranges);
        });
    }

    // What is reached over each core edge, from the leaves of the trees to their roots.
    void walk_trees(std::size_t b) {
        CoreBlock<T>& block = core_blocks_[b];
        const std::size_t n_edges = hubs_.core().topology().n_edges();
        block.gradient.assign(n_edges, 0);
        block.uses.assign(n_edges, 0);
        block.cost.assign(n_edges, 0);
        block.flow_residuals.assign(n_hubs_ * n_hubs_, 0);
        block.flow_uses.assign(n_hubs_ * n_hubs_, 0);
        std::vector<std::int32_t> positions(n_core_);
        std::vector<double> pull(n_core_), count(n_core_);  // by position: what is reached over a vertex
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const Tree<T>& tree = block.trees[lane];
            std::fill(positions.begin(), positions.end(), no_position);
            for (std::size_t p = 0; p < tree.size; ++p) {
                positions[tree.vertices[p]] = static_cast<std::int32_t>(p);
                const std::size_t here = cell(b, tree.vertices[p], lane);
                pull[p] = count[p] = 0;
                for (std::size_t range = 0; range < n_ranges; ++range) {
                    pull[p] += core_residuals_[range][here];
                    count[p] += core_uses_[range][here];
                }
            }
            if (n_hubs_ > 0) add_flows(block, tree, pull, count);
            for (auto p = static_cast<std::int32_t>(tree.size) - 1; p >= 0; --p) {
                const std::int32_t parent = tree.parents[p];
                if (parent == no_position) continue;
                pull[parent] += pull[p];
                count[parent] += count[p];
                if (count[p] == 0) continue;
                const Edge edge = tree.edges[p];
                const double shift = find_shift(hubs_.core(), tree, positions, p, longest_);
                block.gradient[edge] += pull[p];
                block.uses[edge] += count[p];
                block.cost[edge] += shift * (2 * pull[p] + count[p] * shift);
            }
        }
    }

    // The same sums by pairs of hubs: where a path enters the core, and where it leaves it.
    void add_flows(CoreBlock<T>& block, const Tree<T>& tree, const std::vector<double>& pull,
                   const std::vector<double>& count) const {
        std::vector<std::size_t> root(tree.size);
        for (std::size_t p = 0; p < tree.size; ++p) {
            const std::int32_t parent = tree.parents[p];
            const auto vertex = static_cast<std::size_t>(tree.vertices[p]);
            root[p] = parent == no_position ? vertex : root[parent];
            if (std::max(root[p], vertex) >= n_hubs_) continue;
            block.flow_residuals[root[p] * n_hubs_ + vertex] += pull[p];
            block.flow_uses[root[p] * n_hubs_ + vertex] += count[p];
        }
    }

    // Everything by edges of the whole graph, in the order of the blocks.
    Stress<T> collect() const {
        Stress<T> stress;
        const std::size_t n_edges = hubs_.network().topology().n_edges();
        stress.gradient.assign(n_edges, 0);
        stress.uses.assign(n_edges, 0);
        stress.cost.assign(n_edges, 0);
        for (const double loss : losses_) stress.loss += loss;
        for (const Vertex source : sources_) stress.n_pairs += n_items_ - (static_cast<std::size_t>(source) < n_items_);
        const auto add = [&](Edge edge, double gradient, double pairs, double cost) {
            stress.gradient[edge] += gradient;
            stress.uses[edge] += pairs;
            stress.cost[edge] += cost;
        };
        const std::size_t n_arcs = hubs_.access().offsets[n_items_];
        for (std::size_t arc = 0; arc < n_arcs; ++arc)
            if (const Edge edge = hubs_.layout().access_edges()[arc]; edge != no_edge)
                add(edge, residuals_[arc], uses_[arc], costs_[arc]);
        stress.flow_residuals.assign(n_hubs_ * n_hubs_, 0);
        stress.flow_uses.assign(n_hubs_ * n_hubs_, 0);
        for (const CoreBlock<T>& block : core_blocks_) {
            for (std::size_t c = 0; c < n_hubs_ * n_hubs_; ++c) {
                stress.flow_residuals[c] += block.flow_residuals[c];
                stress.flow_uses[c] += block.flow_uses[c];
            }
            for (std::size_t e = 0; e < block.uses.size(); ++e)
                if (block.uses[e] > 0)
                    hubs_.visit_edges(static_cast<Edge>(e),
                                      [&](Edge edge) { add(edge, block.gradient[e], block.uses[e], block.cost[e]); });
        }
        return stress;
    }

    const HubNetwork<T>& hubs_;
    const Targets<T>& target_;
    std::span<const std::int32_t> blocks_;
    T longest_;
    int n_jobs_;
    Watch& watch_;
    std::size_t n_core_, n_hubs_, n_items_;
    std::vector<std::int32_t> columns_, sources_;  // first column of each block, source of each lane
    std::vector<T> distances_;                     // by block, core vertex and lane
    std::vector<CoreBlock<T>> core_blocks_;
    std::vector<T> residuals_, uses_, costs_;  // by arc of an item
    std::vector<T> core_residuals_[n_ranges], core_uses_[n_ranges];
    double losses_[n_ranges] = {};
};

}  // namespace

template <class T>
Stress<T> measure_stress(const HubNetwork<T>& hubs, const Targets<T>& target, std::span<const std::int32_t> blocks,
                         T longest, bool with_flows, int n_jobs, Watch& watch) {
    return StressMeasurement<T>(hubs, target, blocks, longest, with_flows, n_jobs, watch).run();
}

namespace {

// One item at work: its target distances, and the shortest path it has to each source so far.
template <class T>
class Attaching {
   public:
    Attaching(const Targets<T>& target, Matrix<const T> from, std::size_t first_column, std::span<const T> from_sums)
        : target_(target), from_(from), first_column_(first_column), from_sums_(from_sums), known_(from.columns) {}

    void start(Vertex item, std::span<const std::int32_t> own) {
        row_ = target_.distances.row(item).subspan(first_column_, from_.columns);
        own_ = own;
        sum_ = 0;
        for (const T distance : row_) sum_ += distance;
        count_ = static_cast<T>(row_.size() - own.size());
    }

    // The best single hub. The best few stay as candidates for further arcs: a hub that fits badly alone rarely helps.
    std::pair<std::int32_t, T> choose_first(T& error) {
        std::int32_t best = -1;
        T best_weight = 0;
        error = unreached<T>;
        candidates_.clear();
        for (std::size_t h = 0; h < from_.rows; ++h) {
            const T* from = from_.row(h).data();
            double slack = sum_ - from_sums_[h];
            for (const std::int32_t c : own_) slack -= row_[c] - from[c];
            const T weight = std::max(static_cast<T>(slack / count_), T(0));
            T miss = kernels<T>().misfit(row_.data(), from, weight, row_.size());
            for (const std::int32_t c : own_) miss -= square(row_[c] - from[c] - weight);
            candidates_.emplace_back(miss, static_cast<std::int32_t>(h));
            if (miss < error) {
                error = miss;
                best = static_cast<std::int32_t>(h);
                best_weight = weight;
            }
        }
        const std::size_t few = std::min(most_candidates, candidates_.size());
        std::partial_sort(candidates_.begin(), candidates_.begin() + few, candidates_.end());
        candidates_.resize(few);
        return {best, best_weight};
    }

    // The hub that helps most beside those already there; -1 if none does.
    std::pair<std::int32_t, T> choose_next(std::span<const std::int32_t> hubs) {
        std::int32_t best = -1;
        T best_weight = 0, best_gain = 0;
        for (const auto& [miss, h] : candidates_) {
            if (std::find(hubs.begin(), hubs.end(), h) != hubs.end()) continue;
            // From the weight of the hub alone, one step towards the mean over the sources it would serve.
            T weight = std::max(static_cast<T>((sum_ - from_sums_[h]) / count_), T(0));
            for (int step = 0; step < 2; ++step) {
                const Detour<T> detour = detour_by(h, weight);
                if (detour.uses < 1) break;
                weight = std::max(detour.slack / detour.uses, T(0));
            }
            const T gain = detour_by(h, weight).gain;
            if (gain > best_gain) {
                best_gain = gain;
                best = h;
                best_weight = weight;
            }
        }
        return {best, best_weight};
    }

    // Moves each weight to the mean over the sources it serves, a few times; returns the squared error.
    T polish(std::span<const std::int32_t> hubs, std::span<T> weights) {
        constexpr int rounds = 3;
        for (int round = 0;; ++round) {
            double slack[most_arcs] = {}, uses[most_arcs] = {};
            double error = 0;
            std::size_t next_own = 0;
            for (std::size_t c = 0; c < row_.size(); ++c) {
                T least = unreached<T>;
                std::size_t choice = 0;
                for (std::size_t a = 0; a < hubs.size(); ++a) {
                    const T path = from_.data[hubs[a] * from_.columns + c] + weights[a];
                    if (path < least) {
                        least = path;
                        choice = a;
                    }
                }
                known_[c] = least;
                if (next_own < own_.size() && own_[next_own] == static_cast<std::int32_t>(c)) {
                    ++next_own;
                    continue;
                }
                error += square(static_cast<double>(least) - row_[c]);
                slack[choice] += row_[c] - (least - weights[choice]);
                ++uses[choice];
            }
            if (round == rounds) return static_cast<T>(error);
            for (std::size_t a = 0; a < hubs.size(); ++a)
                if (uses[a] > 0) weights[a] = std::max(static_cast<T>(slack[a] / uses[a]), T(0));
        }
    }

    static constexpr std::size_t most_arcs = 16;
    static constexpr std::size_t most_candidates = 32;

   private:
    template <class V>
    static V square(V x) {
        return x * x;
    }

    Detour<T> detour_by(std::size_t h, T weight) const {
        const T* from = from_.row(h).data();
        Detour<T> detour = kernels<T>().detour(row_.data(), known_.data(), from, weight, row_.size());
        for (const std::int32_t c : own_) {
            const T path = from[c] + weight;
            if (!(path < known_[c])) continue;
            detour.uses -= 1;
            detour.slack -= row_[c] - from[c];
            detour.gain -= square(known_[c] - row_[c]) - square(path - row_[c]);
        }
        return detour;
    }

    const Targets<T>& target_;
    Matrix<const T> from_;
    std::size_t first_column_;
    std::span<const T> from_sums_;
    std::vector<T> known_;
    std::vector<std::pair<T, std::int32_t>> candidates_;
    std::span<const T> row_;
    std::span<const std::int32_t> own_;  // columns of which the item itself is the source
    double sum_ = 0;
    T count_ = 0;
};

}  // namespace

template <class T>
Attachments<T> attach(std::span<const Vertex> items, const Targets<T>& target, Matrix<const T> from,
                      std::size_t first_column, std::size_t n_arcs, int n_jobs, Watch& watch) {
    n_arcs = std::min({n_arcs, from.rows, Attaching<T>::most_arcs});
    Attachments<T> found{n_arcs, std::vector<std::int32_t>(items.size() * n_arcs, -1),
                         std::vector<T>(items.size() * n_arcs * n_arcs), std::vector<T>(items.size() * n_arcs)};
    std::vector<T> from_sums(from.rows);
    for (std::size_t h = 0; h < from.rows; ++h) {
        double sum = 0;
        for (const T distance : from.row(h)) sum += distance;
        from_sums[h] = static_cast<T>(sum);
    }
    std::vector<std::vector<std::int32_t>> own(target.distances.rows);
    for (std::size_t c = 0; c < from.columns; ++c)
        if (const Vertex source = target.sources[first_column + c];
            source >= 0 && static_cast<std::size_t>(source) < own.size())
            own[source].push_back(static_cast<std::int32_t>(c));

    constexpr std::size_t chunk = 16;
    std::vector<Attaching<T>> benches(std::max(n_jobs, 1), Attaching<T>(target, from, first_column, from_sums));
    parallel_for((items.size() + chunk - 1) / chunk, n_jobs, watch, [&](std::size_t worker, std::size_t part) {
        Attaching<T>& bench = benches[worker];
        for (std::size_t i = part * chunk; i < std::min(items.size(), (part + 1) * chunk); ++i) {
            const std::span<std::int32_t> hubs(&found.hubs[i * n_arcs], n_arcs);
            bench.start(items[i], own[items[i]]);
            T last_error = unreached<T>;
            for (std::size_t k = 0; k < n_arcs; ++k) {
                const std::span<T> weights(&found.weights[(i * n_arcs + k) * n_arcs], n_arcs);
                T error = 0;
                if (k == 0) {
                    std::tie(hubs[0], weights[0]) = bench.choose_first(error);
                } else {
                    std::tie(hubs[k], weights[k]) = bench.choose_next(hubs.first(k));
                    if (hubs[k] >= 0) std::copy_n(&found.weights[(i * n_arcs + k - 1) * n_arcs], k, weights.begin());
                }
                if (hubs[k] >= 0) error = bench.polish(hubs.first(k + 1), weights.first(k + 1));
                if (hubs[k] < 0 || !(error < last_error)) {
                    for (std::size_t rest = k; rest < n_arcs; ++rest) {
                        hubs[rest] = -1;
                        found.errors[i * n_arcs + rest] = last_error;
                    }
                    break;
                }
                found.errors[i * n_arcs + k] = last_error = error;
            }
        }
    });
    return found;
}

template Stress<float> measure_stress<float>(const HubNetwork<float>&, const Targets<float>&,
                                             std::span<const std::int32_t>, float, bool, int, Watch&);
template Attachments<float> attach<float>(std::span<const Vertex>, const Targets<float>&, Matrix<const float>,
                                          std::size_t, std::size_t, int, Watch&);

}  // namespace prodige
