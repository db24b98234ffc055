// Network: a topology with weights, laid out for searching. Immutable.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "queue.hpp"
#include "topology.hpp"

namespace prodige {

// An arc as the search reads it: both fields with one cache miss.
template <class T>
struct Arc {
    Vertex target;
    T weight;
};

// How a tentative distance came about: the position of the parent in the tree and the edge taken.
struct Parent {
    std::int32_t parent;
    Edge edge;
};

// Working memory of one search. Between searches every distance is `unreached`, so a bounded search costs only what
// it touches, however large the graph.
template <class T>
struct Scratch {
    explicit Scratch(std::size_t n_vertices)
        : distances(n_vertices, unreached<T>), paths(n_vertices), positions(n_vertices, no_position) {}

    LargeVector<T> distances;
    LargeVector<Parent> paths;
    LargeVector<std::int32_t> positions;  // of settled vertices in the tree; no_position before
    std::vector<Vertex> reached;          // vertices with a tentative distance, in the order they got one
    Queue<T> queue;
    std::vector<Vertex> certain;          // final distances that need no queue, still to be expanded
    std::vector<std::uint8_t> is_target;  // sized by the first search with targets

    void reset() noexcept {
        for (const Vertex v : reached) {
            distances[v] = unreached<T>;
            positions[v] = no_position;
        }
        reached.clear();
        queue.clear();
        certain.clear();
    }

    std::size_t bytes() const noexcept {
        return distances.capacity() * sizeof(T) + paths.capacity() * sizeof(Parent) +
               positions.capacity() * sizeof(std::int32_t) +
               (reached.capacity() + certain.capacity()) * sizeof(Vertex) + queue.capacity_bytes() +
               is_target.capacity();
    }
};

// Scratch memory kept for the next search. A lease gives it back.
template <class T>
class ScratchPool {
   public:
    explicit ScratchPool(std::size_t n_vertices) : n_vertices_(n_vertices) { idle_.reserve(most_idle); }

    class Lease {
       public:
        explicit Lease(ScratchPool& pool) : pool_(pool), scratch_(pool.take()) {}
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ~Lease() { pool_.give_back(std::move(scratch_)); }
        Scratch<T>& operator*() const noexcept { return *scratch_; }

       private:
        ScratchPool& pool_;
        std::unique_ptr<Scratch<T>> scratch_;
    };

    std::size_t bytes() {
        const std::scoped_lock lock(lock_);
        std::size_t total = 0;
        for (const auto& scratch : idle_) total += scratch->bytes();
        return total;
    }

   private:
    std::unique_ptr<Scratch<T>> take() {
        {
            const std::scoped_lock lock(lock_);
            if (!idle_.empty()) {
                auto scratch = std::move(idle_.back());
                idle_.pop_back();
                return scratch;
            }
        }
        return std::make_unique<Scratch<T>>(n_vertices_);
    }

    void give_back(std::unique_ptr<Scratch<T>> scratch) noexcept {
        scratch->reset();
        const std::scoped_lock lock(lock_);
        if (idle_.size() < most_idle) idle_.push_back(std::move(scratch));  // reserved: does not allocate
    }

    static constexpr std::size_t most_idle = 64;

    std::size_t n_vertices_;
    std::mutex lock_;
    std::vector<std::unique_ptr<Scratch<T>>> idle_;
};

// A lease for each worker of a parallel call, taken when the worker first needs it.
template <class T>
class WorkerScratch {
   public:
    WorkerScratch(ScratchPool<T>& pool, int n_workers) : pool_(pool), leases_(std::max(n_workers, 1)) {}

    Scratch<T>& operator[](std::size_t worker) {
        if (!leases_[worker]) leases_[worker].emplace(pool_);
        return **leases_[worker];
    }

   private:
    ScratchPool<T>& pool_;
    std::vector<std::optional<typename ScratchPool<T>::Lease>> leases_;
};

template <class T>
class Network {
   public:
    // Weights must be finite and not negative; throws std::invalid_argument otherwise.
    Network(std::shared_ptr<const Topology> topology, std::span<const T> weights, int n_jobs, Watch& watch);

    // The same topology with other weights. Starts from this network's order of arcs: between two training steps
    // weights move little, and sorting what is nearly sorted is cheap.
    std::shared_ptr<Network> with_weights(std::span<const T> weights, int n_jobs, Watch& watch) const;

    const Topology& topology() const noexcept { return *topology_; }
    std::shared_ptr<const Topology> shared_topology() const noexcept { return topology_; }
    std::span<const T> weights() const noexcept { return weights_; }
    T least_weight() const noexcept { return least_weight_; }

    // Arcs of a vertex, lightest first (ties by edge): a scan may stop at the first arc too long to help.
    std::int32_t begin(Vertex v) const noexcept { return topology_->offsets()[v]; }
    std::int32_t end(Vertex v) const noexcept { return topology_->offsets()[v + 1]; }
    const Arc<T>* arcs() const noexcept { return arcs_.data(); }
    const Edge* arc_edges() const noexcept { return arc_edges_.data(); }

    // No path into a vertex can be shorter than its lightest arc (the "caliber" of Goldberg 2001).
    const T* calibers() const noexcept { return calibers_.data(); }

    ScratchPool<T>& scratch() const noexcept { return *scratch_; }

   private:
    Network() = default;
    void load(std::span<const T> weights, int n_jobs, Watch& watch);

    std::shared_ptr<const Topology> topology_;
    std::shared_ptr<ScratchPool<T>> scratch_;
    LargeVector<T> weights_;
    LargeVector<Arc<T>> arcs_;
    LargeVector<Edge> arc_edges_;
    std::vector<T> calibers_;
    T least_weight_ = 0;
};

}  // namespace prodige
