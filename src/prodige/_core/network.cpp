#include "network.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>

namespace prodige {

namespace {

template <class T>
void check_weights(std::span<const T> weights, Edge n_edges) {
    if (weights.size() != static_cast<std::size_t>(n_edges))
        throw std::invalid_argument("weights has " + std::to_string(weights.size()) + " entries for " +
                                    std::to_string(n_edges) + " edges");
    for (std::size_t e = 0; e < weights.size(); ++e)
        if (!(weights[e] >= 0) || std::isinf(weights[e]))
            throw std::invalid_argument("weights[" + std::to_string(e) + "] = " + std::to_string(weights[e]) +
                                        " is not a finite number >= 0");
}

// Sorts the arcs of one vertex by (weight, edge). Insertion sort while the arcs are nearly in order, a real sort as
// soon as that turns out to be wrong.
template <class T>
class ArcSorter {
   public:
    void sort(std::size_t n, Arc<T>* arcs, Edge* edges) {
        std::size_t moves = 0;
        for (std::size_t a = 1; a < n; ++a) {
            const Arc<T> arc = arcs[a];
            const Edge edge = edges[a];
            std::size_t hole = a;
            for (; hole > 0 && lighter(arc.weight, edge, arcs[hole - 1].weight, edges[hole - 1]); --hole) {
                arcs[hole] = arcs[hole - 1];
                edges[hole] = edges[hole - 1];
            }
            arcs[hole] = arc;
            edges[hole] = edge;
            if ((moves += a - hole) > 8 * n) return sort_afresh(n, arcs, edges);
        }
    }

   private:
    static bool lighter(T weight, Edge edge, T other_weight, Edge other_edge) noexcept {
        return weight < other_weight || (weight == other_weight && edge < other_edge);
    }

    void sort_afresh(std::size_t n, Arc<T>* arcs, Edge* edges) {
        copy_.clear();
        for (std::size_t a = 0; a < n; ++a) copy_.emplace_back(arcs[a], edges[a]);
        std::sort(copy_.begin(), copy_.end(), [](const auto& one, const auto& other) {
            return lighter(one.first.weight, one.second, other.first.weight, other.second);
        });
        for (std::size_t a = 0; a < n; ++a) std::tie(arcs[a], edges[a]) = copy_[a];
    }

    std::vector<std::pair<Arc<T>, Edge>> copy_;
};

}  // namespace

template <class T>
Network<T>::Network(std::shared_ptr<const Topology> topology, std::span<const T> weights, int n_jobs, Watch& watch)
    : topology_(std::move(topology)),
      scratch_(std::make_shared<ScratchPool<T>>(topology_->n_vertices())),
      arcs_(topology_->n_arcs()),
      arc_edges_(topology_->edges().begin(), topology_->edges().end()) {
    for (std::size_t a = 0; a < arcs_.size(); ++a) arcs_[a].target = topology_->targets()[a];
    load(weights, n_jobs, watch);
}

template <class T>
std::shared_ptr<Network<T>> Network<T>::with_weights(std::span<const T> weights, int n_jobs, Watch& watch) const {
    std::shared_ptr<Network> other(new Network());
    other->topology_ = topology_;
    other->scratch_ = scratch_;
    other->arcs_ = arcs_;
    other->arc_edges_ = arc_edges_;
    other->load(weights, n_jobs, watch);
    return other;
}

template <class T>
void Network<T>::load(std::span<const T> weights, int n_jobs, Watch& watch) {
    check_weights(weights, topology_->n_edges());
    weights_.assign(weights.begin(), weights.end());
    for (T& weight : weights_) weight += T(0);  // -0 becomes 0: labels compare the bits
    least_weight_ = weights_.empty() ? T(0) : *std::min_element(weights_.begin(), weights_.end());
    calibers_.assign(topology_->n_vertices(), unreached<T>);

    constexpr std::size_t arcs_worth_a_thread = 1 << 17;
    const int n_threads = static_cast<int>(std::min<std::size_t>(n_jobs, arc_edges_.size() / arcs_worth_a_thread + 1));
    parallel_ranges(topology_->n_vertices(), n_threads, watch, [&](std::size_t first, std::size_t last) {
        ArcSorter<T> sorter;
        for (auto v = static_cast<Vertex>(first); v < static_cast<Vertex>(last); ++v) {
            const std::int32_t arc = begin(v);
            const std::int32_t stop = end(v);
            for (std::int32_t a = arc; a < stop; ++a) arcs_[a].weight = weights_[arc_edges_[a]];
            sorter.sort(stop - arc, arcs_.data() + arc, arc_edges_.data() + arc);
            if (stop > arc) calibers_[v] = arcs_[arc].weight;
        }
    });
}

template class Network<float>;
template class Network<double>;

}  // namespace prodige
