#include "forest.hpp"

#include <cmath>

namespace prodige {

namespace {

// Adds up what every source contributes to every edge. Every edge gets its shares in the order of the sources, so the
// sums have the same bits for any number of threads. One thread adds them as they come; several first write down the
// shares of a block of sources, small enough to stay in the cache, and then each adds up a range of edges.
template <class T, class Contribute>
void sum_over_sources(std::size_t n_sources, std::span<T> out, int n_jobs, Watch& watch, Contribute&& contribute) {
    LargeVector<double> totals(out.size(), 0.0);
    if (n_jobs <= 1) {
        for (std::size_t row = 0; row < n_sources; ++row) {
            watch.check();
            contribute(0, row, [&](Edge edge, double share) { totals[edge] += static_cast<T>(share); });
        }
    } else {
        struct Share {
            Edge edge;
            T value;  // rounded, on one thread too: half the memory to pass on
        };
        const std::size_t block = 8 * static_cast<std::size_t>(n_jobs);
        std::vector<std::vector<Share>> shares(std::min(block, n_sources));
        for (std::size_t first = 0; first < n_sources; first += block) {
            const std::size_t count = std::min(block, n_sources - first);
            parallel_for(count, n_jobs, watch, [&](std::size_t worker, std::size_t row) {
                shares[row].clear();
                contribute(worker, first + row,
                           [&](Edge edge, double share) { shares[row].push_back({edge, static_cast<T>(share)}); });
            });
            parallel_ranges(out.size(), n_jobs, watch, [&](std::size_t begin, std::size_t end) {
                const auto lowest = static_cast<Edge>(begin);
                const auto width = static_cast<std::uint32_t>(end - begin);
                for (std::size_t row = 0; row < count; ++row)
                    for (const Share& share : shares[row])
                        if (static_cast<std::uint32_t>(share.edge - lowest) < width) totals[share.edge] += share.value;
            });
        }
    }
    std::transform(totals.begin(), totals.end(), out.begin(), [](double total) { return static_cast<T>(total); });
}

// The values of one row by vertex, whichever columns the caller chose.
template <class T>
class ByVertex {
   public:
    ByVertex(Vertex n_vertices, std::span<const Vertex> targets) : targets_(targets) {
        if (!targets.empty()) values_.resize(n_vertices);
    }

    void load(std::span<const T> row) {
        row_ = row;
        if (targets_.empty()) return;
        for (const Vertex v : targets_) values_[v] = 0;
        for (std::size_t c = 0; c < row.size(); ++c) values_[targets_[c]] += row[c];  // a target may come twice
    }

    T operator[](Vertex v) const noexcept {
        if (!targets_.empty()) return values_[v];
        return static_cast<std::size_t>(v) < row_.size() ? row_[v] : T(0);
    }

   private:
    std::span<const Vertex> targets_;
    std::span<const T> row_;
    std::vector<T> values_;
};

// Sum of the values over the subtree of every position.
template <class T>
void add_subtrees(const TreeView<T>& tree, const ByVertex<T>& values, std::vector<double>& sums) {
    const std::size_t n = tree.size();
    sums.resize(n);
    for (std::size_t p = 0; p < n; ++p) sums[p] = values[tree.vertices[p]];
    for (std::size_t p = n; p-- > 1;) sums[tree.parents[p]] += sums[p];
}

// How far each subtree would move if the edge above it were gone.
template <class T>
class Shifts {
   public:
    explicit Shifts(const Network<T>& network)
        : network_(network),
          positions_(network.topology().n_vertices(), no_position),
          distances_(network.topology().n_vertices(), unreached<T>) {}

    void compute(const TreeView<T>& tree, const Sample<T>* sample, T unreachable) {
        for (const Vertex v : settled_) {
            positions_[v] = no_position;
            distances_[v] = unreached<T>;
        }
        settled_.assign(tree.vertices.begin(), tree.vertices.end());
        shifts_.assign(tree.size(), unreached<T>);
        if (tree.size() == 0) return;  // a search that was asked for nothing
        number_preorder(tree);
        for (std::size_t p = 0; p < tree.size(); ++p) distances_[tree.vertices[p]] = tree.distances[p];

        // Ways straight from the source come first and on their own; all others start at least `nearest_` away.
        look_from_source(tree, sample);
        distances_[tree.vertices[0]] = unreached<T>;
        nearest_ = tree.size() > 1 ? *std::min_element(tree.distances.begin() + 1, tree.distances.end()) : T(0);
        others_ = direct_;
        for (Vertex v = 0; v < network_.topology().n_vertices(); ++v) {  // in the order of the arcs in memory
            const std::int32_t p = positions_[v];
            if (p != no_position && p != 0) others_[p] = best_way_in(tree, p, p, others_[p], sample);
        }
        // Most vertices are leaves of the tree, and done. Below the others the path back in may start lower down.
        for (std::size_t p = 1; p < tree.size(); ++p) {
            const std::int32_t n_searched = sizes_[p] <= searched_subtree ? sizes_[p] : 1;
            for (std::int32_t o = order_[p] + 1; o < order_[p] + n_searched; ++o) {
                const std::int32_t q = by_order_[o];
                const T climb = tree.distances[q] - tree.distances[p];
                others_[p] = std::min(others_[p], direct_[q] + climb);
                others_[p] = best_way_in(tree, p, q, others_[p], sample);
            }
            shifts_[p] = std::max(std::min(others_[p], unreachable) - tree.distances[p], T(0));
        }
    }

    T operator[](std::size_t position) const noexcept { return shifts_[position]; }
    std::int32_t position(Vertex v) const noexcept { return positions_[v]; }

   private:
    // Numbers the positions so that every subtree is one interval.
    void number_preorder(const TreeView<T>& tree) {
        const std::size_t n = tree.size();
        sizes_.assign(n, 1);
        for (std::size_t p = n; p-- > 1;) sizes_[tree.parents[p]] += sizes_[p];
        order_.assign(n, 0);
        next_.assign(n, 0);
        by_order_.assign(n, 0);
        for (std::size_t p = 0; p < n; ++p) {
            if (p > 0) {
                order_[p] = next_[tree.parents[p]];
                next_[tree.parents[p]] += sizes_[p];
            }
            next_[p] = order_[p] + 1;
            by_order_[order_[p]] = static_cast<std::int32_t>(p);
            positions_[tree.vertices[p]] = static_cast<std::int32_t>(p);
        }
    }

    bool below(std::int32_t position, std::size_t top) const noexcept {
        return static_cast<std::uint32_t>(order_[position] - order_[top]) < static_cast<std::uint32_t>(sizes_[top]);
    }

    void look_from_source(const TreeView<T>& tree, const Sample<T>* sample) {
        direct_.assign(tree.size(), unreached<T>);
        const Vertex source = tree.vertices[0];
        for (std::int32_t arc = network_.begin(source); arc < network_.end(source); ++arc) {
            const std::int32_t p = positions_[network_.arcs()[arc].target];
            const Edge edge = network_.arc_edges()[arc];
            if (p == no_position || edge == tree.edges[p] || (sample && !sample->present(edge))) continue;
            direct_[p] = std::min(direct_[p], network_.arcs()[arc].weight);
        }
    }

    // The shortest path to `top` without the edge above it that enters its subtree at `entry` and climbs up from there.
    T best_way_in(const TreeView<T>& tree, std::size_t top, std::size_t entry, T best, const Sample<T>* sample) const {
        const Vertex v = tree.vertices[entry];
        const T climb = tree.distances[entry] - tree.distances[top];
        const std::int32_t end = network_.end(v);
        for (std::int32_t arc = network_.begin(v); arc < end; ++arc) {
            const auto [u, weight] = network_.arcs()[arc];
            if (nearest_ + weight + climb >= best) break;  // arcs are sorted
            const T path = distances_[u] + weight + climb;
            if (!(path < best)) continue;
            const Edge edge = network_.arc_edges()[arc];
            if (edge != tree.edges[top] && !below(positions_[u], top) && (!sample || sample->present(edge)))
                best = path;
        }
        return best;
    }

    const Network<T>& network_;
    std::vector<Vertex> settled_;
    std::vector<std::int32_t> positions_;  // by vertex
    std::vector<T> distances_;             // by vertex; not for the source
    std::vector<std::int32_t> sizes_, order_, by_order_, next_;
    std::vector<T> direct_, others_, shifts_;
    T nearest_ = 0;  // no settled vertex but the source is closer
};

// What a worker keeps from one source to the next.
template <class T>
struct Workbench {
    Workbench(const Network<T>& network, std::span<const Vertex> targets)
        : gradient(network.topology().n_vertices(), targets),
          curvature(network.topology().n_vertices(), targets),
          shifts(network) {}

    ByVertex<T> gradient, curvature;
    std::vector<double> gradient_sums, curvature_sums;
    Shifts<T> shifts;
};

template <class Bench>
class Benches {
   public:
    explicit Benches(int n_jobs) : benches_(std::max(n_jobs, 1)) {}

    template <class... Arguments>
    Bench& get(std::size_t worker, Arguments&&... arguments) {
        if (!benches_[worker]) benches_[worker] = std::make_unique<Bench>(std::forward<Arguments>(arguments)...);
        return *benches_[worker];
    }

   private:
    std::vector<std::unique_ptr<Bench>> benches_;
};

template <class T>
struct GradientBench {
    GradientBench(Vertex n_vertices, std::span<const Vertex> targets) : gradient(n_vertices, targets) {}
    ByVertex<T> gradient;
    std::vector<double> sums;
};

}  // namespace

template <class T>
template <class Visit>
void Forest<T>::visit_answers(std::size_t row, Visit&& visit) const {
    const TreeView<T>& tree = trees_[row];
    if (tree.asked_all) {
        const Sample<T> sample = sampling_.sample(row);
        for (Edge edge = 0; edge < network_->topology().n_edges(); ++edge) visit(edge, sample.present(edge));
    } else {
        for (std::size_t a = 0; a < tree.asked.size(); ++a) visit(tree.asked[a], tree.present[a] != 0);
    }
}

template <class T>
void Forest<T>::distances(std::span<const Vertex> targets, Matrix<T> out, int n_jobs, Watch& watch) const {
    struct Bench {
        std::vector<T> by_vertex;
    };
    Benches<Bench> benches(n_jobs);
    parallel_for(n_sources(), n_jobs, watch, [&](std::size_t worker, std::size_t row) {
        const TreeView<T>& tree = trees_[row];
        const std::span<T> columns = out.row(row);
        if (targets.empty()) {
            std::fill(columns.begin(), columns.end(), unreached<T>);
            for (std::size_t p = 0; p < tree.size(); ++p)
                if (static_cast<std::size_t>(tree.vertices[p]) < columns.size())
                    columns[tree.vertices[p]] = tree.distances[p];
            return;
        }
        auto& by_vertex = benches.get(worker).by_vertex;
        by_vertex.resize(network_->topology().n_vertices(), unreached<T>);
        for (std::size_t p = 0; p < tree.size(); ++p) by_vertex[tree.vertices[p]] = tree.distances[p];
        for (std::size_t c = 0; c < columns.size(); ++c) columns[c] = by_vertex[targets[c]];
        for (const Vertex v : tree.vertices) by_vertex[v] = unreached<T>;
    });
}

template <class T>
void Forest<T>::backward(std::span<const Vertex> targets, Matrix<const T> gradient, std::span<T> out, int n_jobs,
                         Watch& watch) const {
    Benches<GradientBench<T>> benches(n_jobs);
    sum_over_sources<T>(n_sources(), out, n_jobs, watch, [&](std::size_t worker, std::size_t row, auto&& add) {
        auto& bench = benches.get(worker, network_->topology().n_vertices(), targets);
        const TreeView<T>& tree = trees_[row];
        bench.gradient.load(gradient.row(row));
        bench.sums.assign(tree.size(), 0.0);
        for (std::size_t p = tree.size(); p-- > 1;) {
            const double sum = bench.sums[p] + bench.gradient[tree.vertices[p]];
            bench.sums[tree.parents[p]] += sum;
            add(tree.edges[p], sum);
        }
    });
}

template <class T>
void Forest<T>::removal_cost(std::span<const Vertex> targets, Matrix<const T> gradient, Matrix<const T> curvature,
                             T unreachable, std::span<T> out, int n_jobs, Watch& watch) const {
    Benches<Workbench<T>> benches(n_jobs);
    sum_over_sources<T>(n_sources(), out, n_jobs, watch, [&](std::size_t worker, std::size_t row, auto&& add) {
        auto& bench = benches.get(worker, *network_, targets);
        const TreeView<T>& tree = trees_[row];
        bench.gradient.load(gradient.row(row));
        bench.curvature.load(curvature.row(row));
        add_subtrees(tree, bench.gradient, bench.gradient_sums);
        add_subtrees(tree, bench.curvature, bench.curvature_sums);
        const auto sample = sample_of(row);
        bench.shifts.compute(tree, sample ? &*sample : nullptr, unreachable);
        for (std::size_t p = 1; p < tree.size(); ++p) {
            const double shift = bench.shifts[p];
            // A bridge with no price on being unreachable: nothing outweighs losing it.
            const double cost = std::isinf(shift)
                                    ? shift
                                    : shift * bench.gradient_sums[p] + shift * shift / 2 * bench.curvature_sums[p];
            add(tree.edges[p], cost);
        }
    });
}

template <class T>
void Forest<T>::toggle(std::span<const Vertex> targets, Matrix<const T> gradient, T unreachable,
                       std::span<T> of_present, std::span<T> of_refused, int n_jobs, Watch& watch) const {
    Benches<Workbench<T>> benches(n_jobs);
    const auto n_edges = static_cast<Edge>(of_present.size());
    std::vector<T> both(2 * of_present.size());  // refused edges are numbered after the present ones
    sum_over_sources<T>(n_sources(), both, n_jobs, watch, [&](std::size_t worker, std::size_t row, auto&& add) {
        auto& bench = benches.get(worker, *network_, targets);
        const TreeView<T>& tree = trees_[row];
        bench.gradient.load(gradient.row(row));
        add_subtrees(tree, bench.gradient, bench.gradient_sums);
        const auto sample = sample_of(row);
        bench.shifts.compute(tree, sample ? &*sample : nullptr, unreachable);
        for (std::size_t p = 1; p < tree.size(); ++p) add(tree.edges[p], -bench.shifts[p] * bench.gradient_sums[p]);

        // A refused edge would have pulled one of its ends closer, with all that lies below it. At most one: the
        // shortened end is the farther one.
        const auto missed = [&](Edge edge) {
            const Topology& topology = network_->topology();
            const T weight = network_->weights()[edge];
            for (const auto& [from, into] : {std::pair(topology.tail(edge), topology.head(edge)),
                                             std::pair(topology.head(edge), topology.tail(edge))}) {
                const std::int32_t start = bench.shifts.position(from);
                const std::int32_t end = bench.shifts.position(into);
                if (start == no_position) continue;
                const bool reached = end != no_position;
                const double gain = (reached ? tree.distances[end] : unreachable) - tree.distances[start] - weight;
                const double pull = reached ? bench.gradient_sums[end] : bench.gradient[into];
                if (gain > 0) add(n_edges + edge, -gain * pull);
            }
        };
        visit_answers(row, [&](Edge edge, bool present) {
            if (!present) missed(edge);
        });
    });
    std::copy_n(both.begin(), n_edges, of_present.begin());
    std::copy_n(both.begin() + n_edges, n_edges, of_refused.begin());
}

template <class T>
void Forest<T>::sum_answers(std::span<const T> if_present, std::span<const T> if_refused, std::span<T> out, int n_jobs,
                            Watch& watch) const {
    parallel_for(n_sources(), n_jobs, watch, [&](std::size_t, std::size_t row) {
        double sum = 0;
        visit_answers(row, [&](Edge edge, bool present) { sum += present ? if_present[edge] : if_refused[edge]; });
        out[row] = static_cast<T>(sum);
    });
}

template <class T>
void Forest<T>::score(std::span<const T> factors, std::span<T> out, int n_jobs, Watch& watch) const {
    sum_over_sources<T>(n_sources(), out, n_jobs, watch, [&](std::size_t, std::size_t row, auto&& add) {
        const double factor = factors[row];
        visit_answers(row, [&](Edge edge, bool present) {
            add(edge, factor * (static_cast<double>(present) - sampling_.probabilities[edge]));
        });
    });
}

template class Forest<float>;
template class Forest<double>;

}  // namespace prodige
