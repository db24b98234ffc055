// Topology: which vertices are joined, without weights. Every undirected edge is two arcs, grouped by their origin.
#pragma once

#include <vector>

#include "types.hpp"

namespace prodige {

class Topology {
   public:
    // Edge e joins tails[e] and heads[e]. Throws std::invalid_argument on indices out of range, self-loops, or more
    // arcs than 32 bits can count.
    Topology(Vertex n_vertices, std::span<const Vertex> tails, std::span<const Vertex> heads);

    Vertex n_vertices() const noexcept { return static_cast<Vertex>(offsets_.size()) - 1; }
    Edge n_edges() const noexcept { return static_cast<Edge>(tails_.size()); }
    std::size_t n_arcs() const noexcept { return targets_.size(); }

    Vertex tail(Edge edge) const noexcept { return tails_[edge]; }
    Vertex head(Edge edge) const noexcept { return heads_[edge]; }

    // Arcs of vertex v: positions offsets()[v] to offsets()[v + 1], in the order of their edges.
    std::span<const std::int32_t> offsets() const noexcept { return offsets_; }
    std::span<const Vertex> targets() const noexcept { return targets_; }
    std::span<const Edge> edges() const noexcept { return edges_; }
    std::int32_t degree(Vertex v) const noexcept { return offsets_[v + 1] - offsets_[v]; }

    // Connected components, numbered by their smallest vertex.
    std::span<const Vertex> components() const noexcept { return components_; }
    Vertex component_size(Vertex v) const noexcept { return component_sizes_[components_[v]]; }
    std::size_t n_components() const noexcept { return component_sizes_.size(); }

   private:
    void build_arcs();
    void build_components();

    std::vector<Vertex> tails_, heads_;
    std::vector<std::int32_t> offsets_;
    std::vector<Vertex> targets_;
    std::vector<Edge> edges_;
    std::vector<Vertex> components_, component_sizes_;
};

}  // namespace prodige
