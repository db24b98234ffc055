// The general search: Dijkstra's algorithm from many sources over any graph.
#pragma once

#include <memory>
#include <vector>

#include "forest.hpp"
#include "network.hpp"
#include "parallel.hpp"
#include "random.hpp"

namespace prodige {

enum class Until {
    exhausted,  // every vertex that can be reached
    targets,    // all of `targets` are settled
    nearest,    // `k` items other than the source are settled, and all that tie with the last of them
    radius,     // nothing within `radius` is left
};

template <class T>
struct Stop {
    Until until = Until::exhausted;
    std::span<const Vertex> targets = {};
    std::size_t k = 0;
    Vertex n_items = 0;  // vertices below this count for `nearest`
    T radius = unreached<T>;
};

// A vertex the search starts from. A plain search has one, at distance 0, without an edge.
template <class T>
struct Seed {
    Vertex vertex;
    T distance;
    Edge edge;
};

// Runs one search and leaves the distances in `scratch` until its reset(). Fills `tree` unless it is null; sampling
// needs a tree to note the asked edges in.
template <class T>
void search(const Network<T>& network, std::span<const Seed<T>> seeds, const Stop<T>& stop, const Sample<T>* sample,
            Scratch<T>& scratch, Tree<T>* tree, Watch& watch);

// A tree per source.
template <class T>
std::shared_ptr<Forest<T>> search_forest(std::shared_ptr<const Network<T>> network, std::vector<Vertex> sources,
                                         const Stop<T>& stop, Sampling<T> sampling, int n_jobs, Watch& watch);

// Distances alone, without trees. Column c belongs to targets[c], or to vertex c where `targets` is empty.
template <class T>
void search_distances(const Network<T>& network, std::span<const Vertex> sources, std::span<const Vertex> targets,
                      Matrix<T> out, int n_jobs, Watch& watch);

// out[p] is the distance from i[p] to j[p]: one search for every different i, as far as its partners.
template <class T>
void search_pairs(const Network<T>& network, std::span<const Vertex> i, std::span<const Vertex> j, std::span<T> out,
                  int n_jobs, Watch& watch);

// Pairs by their first vertex: places[offsets[g]] to places[offsets[g + 1] - 1] are those of group g.
struct PairGroups {
    explicit PairGroups(std::span<const Vertex> i);

    std::size_t size() const noexcept { return offsets.size() - 1; }
    std::span<const std::size_t> operator[](std::size_t group) const noexcept {
        return {places.data() + offsets[group], offsets[group + 1] - offsets[group]};
    }

    std::vector<std::size_t> places, offsets;
};

// Items around a source, by distance, then id; without the source and without hubs.
template <class T>
struct Neighbors {
    std::vector<Vertex> vertices;
    std::vector<T> distances;
};

template <class T>
std::vector<Neighbors<T>> search_neighbors(const Network<T>& network, std::span<const Vertex> sources,
                                           const Stop<T>& stop, int n_jobs, Watch& watch);

// Copies the distances of one source to the columns of its row.
template <class T>
void copy_columns(std::span<const T> distances, std::span<const Vertex> targets, std::span<T> row) {
    if (targets.empty())
        std::copy_n(distances.begin(), row.size(), row.begin());
    else
        for (std::size_t c = 0; c < row.size(); ++c) row[c] = distances[targets[c]];
}

// Orders by (distance, id) and keeps the first k.
template <class T>
void keep_nearest(Neighbors<T>& found, std::size_t k);

}  // namespace prodige
