// Forest: one shortest-path tree per source, and what can be read off it.
//
// A tree lists its vertices parents first, so a walk from the back adds every subtree up in linear time. That one
// walk is the exact derivative of the distances by the edge weights, for any loss and any path length.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "memory.hpp"
#include "network.hpp"
#include "parallel.hpp"
#include "random.hpp"

namespace prodige {

// A shortest-path tree. The search grows it in a buffer that is used again for the next source.
template <class T>
struct Tree {
    std::vector<Vertex> vertices;       // settled vertices, parents before children; the source is first
    std::vector<T> distances;           // from the source
    std::vector<std::int32_t> parents;  // position of the parent in `vertices`; no_position at the source
    std::vector<Edge> edges;            // the edge to the parent; no_edge at the source
    std::size_t size = 0;               // the vectors may be longer: room for more

    // Edges whose presence the search asked about, each once, and the answers. Empty where every edge is certain.
    std::vector<Edge> asked;
    std::vector<std::uint8_t> present;

    void clear(std::size_t room) {
        if (vertices.size() < room) {
            vertices.resize(room);
            distances.resize(room);
            parents.resize(room);
            edges.resize(room);
        }
        size = 0;
        asked.clear();
        present.clear();
    }

    // There must be room.
    void settle(Vertex vertex, T distance, std::int32_t parent, Edge edge) noexcept {
        vertices[size] = vertex;
        distances[size] = distance;
        parents[size] = parent;
        edges[size] = edge;
        ++size;
    }
};

// A tree at rest, in memory of the forest.
template <class T>
struct TreeView {
    std::span<const Vertex> vertices;
    std::span<const T> distances;
    std::span<const std::int32_t> parents;
    std::span<const Edge> edges;
    std::span<const Edge> asked;
    std::span<const std::uint8_t> present;
    bool asked_all = false;  // the answer of every edge was used; `asked` is empty

    std::size_t size() const noexcept { return vertices.size(); }
};

// Where the edges of a search came from: all certain (no probabilities), or sampled per group.
template <class T>
struct Sampling {
    std::vector<T> probabilities;  // one per edge; empty: every edge is present
    std::uint64_t seed = 0;
    std::vector<std::uint64_t> groups;  // one per source

    bool active() const noexcept { return !probabilities.empty(); }
    Sample<T> sample(std::size_t row) const noexcept { return {probabilities.data(), seed, groups[row]}; }
};

// Larger subtrees are not searched for paths back in: on long, thin trees that would cost the square of their length.
inline constexpr std::int32_t searched_subtree = 64;

template <class T>
class Forest {
   public:
    Forest(std::shared_ptr<const Network<T>> network, std::vector<Vertex> sources, Sampling<T> sampling)
        : network_(std::move(network)),
          sources_(std::move(sources)),
          sampling_(std::move(sampling)),
          trees_(sources_.size()) {}

    // Keeps a copy of a grown tree. Safe from several threads, each with a row of its own.
    void plant(std::size_t row, const Tree<T>& tree, bool asked_all) {
        trees_[row] = {keep(tree.vertices, tree.size),
                       keep(tree.distances, tree.size),
                       keep(tree.parents, tree.size),
                       keep(tree.edges, tree.size),
                       keep(tree.asked, tree.asked.size()),
                       keep(tree.present, tree.present.size()),
                       asked_all};
    }

    std::size_t n_sources() const noexcept { return sources_.size(); }
    const std::vector<Vertex>& sources() const noexcept { return sources_; }
    const Network<T>& network() const noexcept { return *network_; }
    const Sampling<T>& sampling() const noexcept { return sampling_; }
    const TreeView<T>& tree(std::size_t row) const noexcept { return trees_[row]; }
    std::size_t bytes() const noexcept { return arena_.bytes(); }

    // Distances to the targets, unreached where a target was not settled.
    void distances(std::span<const Vertex> targets, Matrix<T> out, int n_jobs, Watch& watch) const;

    // dL/dw of every edge, given dL/dd: `gradient` has a row per source and a column per target.
    void backward(std::span<const Vertex> targets, Matrix<const T> gradient, std::span<T> out, int n_jobs,
                  Watch& watch) const;

    // What the loss would rise by if a tree edge were removed, to second order in the shift of the subtree below it:
    // shift * sum(gradient) + shift^2 / 2 * sum(curvature), summed over the sources. The shift is that of the best
    // other path to the edge's lower end: into its subtree anywhere, and up from there (straight into that end alone,
    // below a subtree larger than `searched_subtree`); where there is none it goes to `unreachable`. All below are
    // taken to move as far, which is at least as far as they would.
    void removal_cost(std::span<const Vertex> targets, Matrix<const T> gradient, Matrix<const T> curvature,
                      T unreachable, std::span<T> out, int n_jobs, Watch& watch) const;

    // First-order change of the loss from an edge being absent to being present, summed over the sources where it was
    // present (`of_present`: minus the shift above, for tree edges) and over those where it was asked about and
    // refused (`of_refused`: the missed short cut). Zero for all other edges.
    void toggle(std::span<const Vertex> targets, Matrix<const T> gradient, T unreachable, std::span<T> of_present,
                std::span<T> of_refused, int n_jobs, Watch& watch) const;

    // For each source the sum over the edges it asked about of `if_present` or `if_refused`, by the answer.
    void sum_answers(std::span<const T> if_present, std::span<const T> if_refused, std::span<T> out, int n_jobs,
                     Watch& watch) const;

    // For each edge the sum of factor * (answer - probability) over the sources that asked about it: the derivative of
    // the log-probability of all answers by the logits, each source with a factor of its own.
    void score(std::span<const T> factors, std::span<T> out, int n_jobs, Watch& watch) const;

    std::optional<Sample<T>> sample_of(std::size_t row) const {
        return sampling_.active() ? std::optional(sampling_.sample(row)) : std::nullopt;
    }

   private:
    template <class Visit>
    void visit_answers(std::size_t row, Visit&& visit) const;  // visit(edge, present) for every edge asked about

    template <class Value>
    std::span<const Value> keep(const std::vector<Value>& values, std::size_t count) {
        Value* copy = static_cast<Value*>(arena_.allocate(count * sizeof(Value)));
        std::copy_n(values.begin(), count, copy);
        return {copy, count};
    }

    std::shared_ptr<const Network<T>> network_;
    std::vector<Vertex> sources_;
    Sampling<T> sampling_;
    std::vector<TreeView<T>> trees_;
    Arena arena_;
};

}  // namespace prodige
