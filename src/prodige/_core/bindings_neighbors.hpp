// How searches for neighbours are asked for, and how their answers get to Python.
#pragma once

#include <vector>

#include "bindings.hpp"
#include "search.hpp"

namespace prodige {

template <class T>
Stop<T> make_stop(Vertex n_vertices, Vertex n_items, std::optional<std::size_t> k, std::optional<T> radius,
                  std::span<const Vertex> targets, bool has_targets) {
    if (k.has_value() + radius.has_value() + has_targets > 1)
        throw std::invalid_argument("give at most one of targets, k and radius");
    check_count("n_items", n_items, n_vertices);
    Stop<T> stop;
    stop.n_items = n_items;
    if (k) {
        if (*k == 0) throw std::invalid_argument("k = 0 asks for nothing");
        stop.until = Until::nearest;
        stop.k = *k;
    } else if (radius) {
        stop.until = Until::radius;
        stop.radius = *radius;
    } else if (has_targets) {
        stop.until = Until::targets;
        stop.targets = targets;
    }
    return stop;
}

template <class T>
nb::tuple pack_neighbors(const std::vector<Neighbors<T>>& found) {
    std::size_t total = 0;
    for (const auto& row : found) total += row.vertices.size();
    Owned<std::int64_t> offsets(found.size() + 1);
    Owned<Vertex> vertices(total);
    Owned<T> distances(total);
    std::size_t next = 0;
    offsets.data()[0] = 0;
    for (std::size_t r = 0; r < found.size(); ++r) {
        std::copy(found[r].vertices.begin(), found[r].vertices.end(), vertices.data() + next);
        std::copy(found[r].distances.begin(), found[r].distances.end(), distances.data() + next);
        next += found[r].vertices.size();
        offsets.data()[r + 1] = static_cast<std::int64_t>(next);
    }
    return nb::make_tuple(offsets.release({found.size() + 1}), vertices.release({total}), distances.release({total}));
}

// Items around each source, as find(stop, watch) finds them.
template <class T, class Find>
nb::tuple find_neighbors(Vertex n_vertices, Vertex n_items, std::optional<std::size_t> k, std::optional<T> radius,
                         Find&& find) {
    if (!k && !radius) throw std::invalid_argument("give k or radius");
    const Stop<T> stop = make_stop<T>(n_vertices, n_items, k, radius, {}, false);
    std::vector<Neighbors<T>> found;
    run([&](Watch& watch) { found = find(stop, watch); });
    return pack_neighbors(found);
}

}  // namespace prodige
