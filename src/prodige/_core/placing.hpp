// Placing: items that no fit has seen get a hub of every factor from their distances to anchors, without any search.
//
// Where factors have positions and squares of their distances add up, distances to the power of the gauge are linear in
// what is not known of an item: its position in all factors, and one number for everything else. So positions are a
// matrix times these powers; of each factor the hub is taken that is nearest by a quadratic form, and the length is
// what is left on average. Sixteen items are handled side by side, each by itself: its bits do not depend on the
// others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

struct PlacingMap {
    int quarters;                          // the gauge is quarters / 4
    Matrix<const float> weights;           // [coordinate of any factor][anchor]
    std::span<const float> offsets;        // [coordinate]: what is taken from each of them
    std::span<const std::int32_t> n_hubs;  // [factor]
    std::span<const std::int32_t> n_dimensions;
    std::span<const float> slopes;  // [hub of any factor][coordinate of the factor]: what a hub costs by a coordinate
    std::span<const float> constants;  // [hub of any factor]: what it costs anyway
    std::span<const float> shares;     // [hub of any factor]: what it takes from the length
    float rest;                        // the length of an item without hubs whose mean power is 0
};

struct Places {
    std::vector<std::uint16_t> codes;  // [item][factor]
    std::vector<float> lengths;        // [item]: what is left, which may be below 0
};

Places place(const PlacingMap& map, Matrix<const float> target, int n_jobs, Watch& watch);

// Euclidean distances of rows to anchors: [row][anchor].
void measure_rows(Matrix<const float> rows, Matrix<const float> anchors, Matrix<float> out, int n_jobs, Watch& watch);

// Products of all rows with all others: [row][other]. Those of a row do not depend on which other rows there are, which
// libraries of linear algebra do not promise.
void multiply_rows(Matrix<const float> rows, Matrix<const float> others, Matrix<float> out, int n_jobs, Watch& watch);

}  // namespace prodige
