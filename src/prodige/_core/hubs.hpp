// The hub engine: the same answers as the general search, without a queue for most vertices.
//
// Learned graphs have a few hubs, and nearly all items touch nothing but hubs. Such an item, a *spoke*, can be taken
// out of the search: what it joins becomes a shortcut between two hubs (the contraction of Geisberger et al. 2008,
// one level deep). What remains is the *core*: hubs, and one end at least of every edge between items. A search
// settles the core first; every spoke then takes the best of its own few arcs, for sixteen sources at a time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "forest.hpp"
#include "kernels.hpp"
#include "network.hpp"
#include "search.hpp"

namespace prodige {

// Which vertices are hubs, spokes or the rest of the core. Knows no weights.
class HubLayout {
   public:
    HubLayout(std::shared_ptr<const Topology> topology, std::span<const std::uint8_t> is_hub);

    const Topology& topology() const noexcept { return *topology_; }
    std::size_t n_hubs() const noexcept { return n_hubs_; }
    std::size_t n_core() const noexcept { return core_.size(); }
    bool is_core(Vertex v) const noexcept { return core_index_[v] >= 0; }
    Vertex core_vertex(std::int32_t c) const noexcept { return core_[c]; }
    std::int32_t core_index(Vertex v) const noexcept { return core_index_[v]; }
    std::span<const Edge> core_edges() const noexcept { return core_edges_; }

    // Arcs from every vertex into the core; a spoke has all its arcs here, since no two spokes are joined. A core
    // vertex has one, to itself, with weight 0 and no edge.
    std::span<const std::int32_t> access_offsets() const noexcept { return access_offsets_; }
    std::span<const std::int32_t> access_core() const noexcept { return access_core_; }
    std::span<const Edge> access_edges() const noexcept { return access_edges_; }

   private:
    std::shared_ptr<const Topology> topology_;
    std::size_t n_hubs_ = 0;
    std::vector<Vertex> core_;              // hubs first
    std::vector<std::int32_t> core_index_;  // by vertex; -1 at spokes
    std::vector<Edge> core_edges_;          // edges with both ends in the core
    std::vector<std::int32_t> access_offsets_, access_core_;
    std::vector<Edge> access_edges_;
};

// Hubs for this engine, or nothing where the general search is the better choice. Vertices from n_items on are taken
// as hubs if they are not too many; then whichever vertex covers most of the edges that no hub covers yet.
std::optional<std::vector<std::uint8_t>> choose_hubs(const Topology& topology, Vertex n_items);

template <class T>
class HubNetwork {
   public:
    // With a sample, only its edges exist.
    HubNetwork(std::shared_ptr<const Network<T>> network, std::shared_ptr<const HubLayout> layout,
               const Sample<T>* sample, Watch& watch);

    const Network<T>& network() const noexcept { return *network_; }
    std::shared_ptr<const Network<T>> shared_network() const noexcept { return network_; }
    const HubLayout& layout() const noexcept { return *layout_; }
    std::shared_ptr<const HubLayout> shared_layout() const noexcept { return layout_; }
    const Network<T>& core() const noexcept { return *core_; }
    std::size_t n_shortcuts() const noexcept { return shortcuts_.size(); }

    void distances(std::span<const Vertex> sources, std::span<const Vertex> targets, Matrix<T> out, int n_jobs,
                   Watch& watch) const;

    // out[p] is the distance from i[p] to j[p]: one search of the core for every different i.
    void pair_distances(std::span<const Vertex> i, std::span<const Vertex> j, std::span<T> out, int n_jobs,
                        Watch& watch) const;

    // Until::nearest and Until::radius; the answers of search_neighbors.
    std::vector<Neighbors<T>> neighbors(std::span<const Vertex> sources, const Stop<T>& stop, int n_jobs,
                                        Watch& watch) const;

    // Trees to every vertex that can be reached, into the rows `rows` of a forest over the same sources.
    void grow(Forest<T>& forest, std::span<const std::size_t> rows, int n_jobs, Watch& watch) const;

    // Distances from one source to the core, left in `scratch`; as a tree over the core's own vertices and edges too
    // unless `tree` is null. Its roots begin at the access arcs of the source, which stand in place of their edges.
    void search_core(Vertex source, Scratch<T>& scratch, Tree<T>* tree, Watch& watch) const;

    // The one or two edges of the graph that an edge of the core stands for.
    template <class Visit>
    void visit_edges(Edge core_edge, Visit&& visit) const {
        if (static_cast<std::size_t>(core_edge) < core_edges_.size()) {
            visit(core_edges_[core_edge]);
            return;
        }
        const Shortcut& shortcut = shortcuts_[core_edge - core_edges_.size()];
        visit(layout_->access_edges()[shortcut.first]);
        visit(layout_->access_edges()[shortcut.second]);
    }

    AccessView<T> access() const noexcept {
        return {layout_->access_offsets().data(), layout_->access_core().data(), access_weights_.data()};
    }

   private:
    // Two arcs of one spoke that join two core vertices.
    struct Shortcut {
        std::int32_t first, second;
        Vertex spoke;
    };

    void build_core(const Sample<T>* sample, Watch& watch);
    void expand(const Tree<T>& core_tree, Vertex source, std::span<const T> distances,
                std::span<const std::int32_t> arcs, std::vector<std::int32_t>& positions, Tree<T>& tree) const;

    std::shared_ptr<const Network<T>> network_;
    std::shared_ptr<const HubLayout> layout_;
    std::vector<T> access_weights_;  // infinite where the edge is absent
    std::unique_ptr<const Network<T>> core_;
    std::vector<Edge> core_edges_;     // edges of the core network: first real ones, then shortcuts
    std::vector<Shortcut> shortcuts_;  // core edge core_edges_.size() + s is shortcuts_[s]
};

// A tree per source over sampled or certain edges.
template <class T>
std::shared_ptr<Forest<T>> hub_forest(const HubNetwork<T>& hubs, std::vector<Vertex> sources, Sampling<T> sampling,
                                      int n_jobs, Watch& watch);

}  // namespace prodige
