// Stress: the squared error of graph distances against target ones, and what learning needs to know about it.
//
// Compression asks the same question thousands of times: for a batch of sources, how far is every item from where it
// should be, and what would change that. Trees and a matrix of distances would only be made to be summed up, so one
// pass over the items does it all, for sixteen sources side by side.
#pragma once

#include <vector>

#include "hubs.hpp"

namespace prodige {

// Target distances from `sources` (columns) to every item (rows). The number of columns is a multiple of `lanes`. A
// source that is no row, such as -1, is simply somewhere else.
template <class T>
struct Targets {
    std::span<const Vertex> sources;
    Matrix<const T> distances;
};

// Sums over pairs of a source and an item. A path is charged to its edges but for the first one, which leaves the
// source: every item is a target too, and seen from there the same residual is spread over all sources instead
// of coming in one blow. Half the gradient at its full precision is worth more than all of it with that noise.
template <class T>
struct Stress {
    double loss = 0;                           // squared residuals
    double n_pairs = 0;                        // how many
    std::vector<double> gradient, uses, cost;  // by edge: residuals, pairs, and the rise of the loss without the edge
    // [hub][hub]: residuals and number of the pairs whose path enters the hubs at the first and leaves at the second.
    // An edge between the two that is shorter by their mean lowers the loss by residuals² / pairs.
    std::vector<double> flow_residuals, flow_uses;
};

// Over the blocks of `lanes` columns named by `blocks`; flows only on request, they are quadratic in the hubs.
template <class T>
Stress<T> measure_stress(const HubNetwork<T>& hubs, const Targets<T>& target, std::span<const std::int32_t> blocks,
                         T longest, bool with_flows, int n_jobs, Watch& watch);

// The best few hubs for an item, found one after the other: its distances to the sources come out as the shortest of
// (distance of the hub to the source + weight).
template <class T>
struct Attachments {
    std::size_t n_arcs;              // most hubs for an item
    std::vector<std::int32_t> hubs;  // [item][arc]: row of `from`; -1 from where another arc would not help
    std::vector<T> weights;          // [item][arc][arc]: weights of the first arc, of the first two, and so on
    std::vector<T> errors;           // [item][arc]: squared error with the first so many
};

// Row h of `from` has the distances of hub h to the sources of the columns first_column and on; a window of a thousand
// columns is enough to choose by.
template <class T>
Attachments<T> attach(std::span<const Vertex> items, const Targets<T>& target, Matrix<const T> from,
                      std::size_t first_column, std::size_t n_arcs, int n_jobs, Watch& watch);

}  // namespace prodige
