// Codes: at which hub of every factor an item of a product is, chosen by its distances to landmarks and to near items.
//
// In a product of graphs, distances to the power of the gauge are sums: of the lengths of two items and of an entry of
// every factor's table. So what an item's squared error would be at any other hub of a factor follows from two sums for
// each hub, over the landmarks that are there: of their weights, and of their weighted residuals. No hub is tried.
// Sixteen items are handled side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

// Tables of all factors, one after the other, each [hub][hub] and symmetric.
struct FactorTables {
    std::span<const std::int32_t> n_hubs;
    std::span<const float> entries;
    int quarters;  // the gauge is quarters / 4, from 1 to 2: its powers are roots of roots
    float floor;   // shorter distances weigh no more than this one
    // Where entries are squared distances between positions, these: [hub][dimension] of one factor after the other. No
    // dimensions: nothing is known of the factor but its table.
    std::span<const std::int32_t> n_dimensions{};
    std::span<const float> positions{};

    std::size_t n_factors() const noexcept { return n_hubs.size(); }
    std::size_t offset(std::size_t factor) const noexcept;
};

// Where all items are, what their distances should be, and which of them are looked at.
struct CodeTask {
    FactorTables factors;
    Matrix<const std::uint16_t> codes;  // [item][factor]
    std::span<const float> lengths;     // [item]
    std::span<const Vertex> sources;    // [landmark]: which item it is; -1: another one
    Matrix<const std::uint16_t> source_codes;
    std::span<const float> source_lengths;
    std::size_t first;                // the item of the first row below: other processes may have the others
    Matrix<const float> target;       // [item - first][landmark]
    Matrix<const Vertex> near;        // [item - first][any number]: items close to it, -1 for none
    Matrix<const float> near_target;  // their distances
    Matrix<const float> near_weight;  // how much each error matters, where that of a landmark matters 1
    std::span<const Vertex> items;    // which items
};

struct Codes {
    std::vector<std::uint16_t> codes;  // [of items][factor]
    std::vector<float> lengths;
    double loss = 0;  // weighted squared residuals before anything moved
};

// An even grid that lengths are rounded to; any number from 0 on where there are no levels.
struct LengthGrid {
    float least = 0, step = 0;
    std::int32_t n_levels = 0;
};

// Chooses the codes of some items, one factor after the other in so many rounds, and then their lengths. All see the
// others where they were before the call.
Codes choose_codes(const CodeTask& task, const LengthGrid& grid, int n_rounds, int n_jobs, Watch& watch);

// Sums over the pairs of some items with landmarks and near items: [hub of the item][hub of the other].
struct FactorSums {
    std::vector<double> residuals, weights;
    double loss = 0;
};

FactorSums measure_factor(const CodeTask& task, std::size_t factor, int n_jobs, Watch& watch);

}  // namespace prodige
