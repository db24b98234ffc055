// Flows: what users want of items and what a graph gives them, added up over its edges.
//
// User clusters reach items over item clusters: the distance of a user cluster to an item is the shortest of (its reach
// to the item cluster + weight of the edge to the item), and a user gets items with probability softmax(-distance). The
// cross-entropy then falls along (target - predicted) for every edge, so these two sums are all that learning needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

// Each item has an edge to one community, and maybe to a second one (-1 if not).
struct Membership {
    std::span<const std::int32_t> first, second;
    std::span<const float> first_weight, second_weight;
};

struct Flows {
    double loss = 0;                                  // cross-entropy, added up over the types
    std::vector<double> target, predicted;            // [type][community]
    std::vector<double> item_target, item_predicted;  // [item][first or second]
};

// Row t of `target` is what the users of type t want of every item; its sum is their number. The sums are the same for
// any number of threads.
Flows measure_flows(Matrix<const float> reach, const Membership& items, Matrix<const float> target, int n_jobs,
                    Watch& watch);

struct SecondEdges {
    std::vector<std::int32_t> community;  // [item]; -1 where none helps
    std::vector<float> offset;            // [item]: how much longer the second edge is than the first
    std::vector<float> gain;              // [item]: by how much the loss falls
};

// The best second community of each item, among candidates [item][...] and offsets. Matrices have types as columns:
// what the target of an item is, and the reach to a community. `rate` is what a type gives at distance 0.
SecondEdges choose_second(Matrix<const float> target, std::span<const float> rate, Matrix<const float> reach,
                          std::span<const std::int32_t> first, Matrix<const std::int32_t> candidates,
                          std::span<const float> offsets, int n_jobs, Watch& watch);

}  // namespace prodige
