// Word sequences as features of texts: which ones are frequent, which text has which, and sums over them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "pooling.hpp"
#include "types.hpp"

namespace prodige {

// Sequences of two parts. At each place of a text stands a number below n_parts, or -1 for nothing; two that are
// `distance` places apart become one where at least min_texts texts have both in this order.
struct Joined {
    LargeVector<std::int32_t> places;         // the number of the longer sequence that begins at each place, or -1
    std::vector<std::int32_t> first, second;  // the two parts of each
};
Joined join_neighbors(const Texts& parts, std::int32_t n_parts, std::int32_t min_texts, std::int64_t distance,
                      Watch& watch);

// Rows of column numbers.
struct Rows {
    LargeVector<std::int64_t> offsets;
    LargeVector<std::int32_t> columns;
};

// The different numbers of each text, each list of numbers counted on from the one before; -1 is nothing.
Rows distinct(std::span<const std::span<const std::int32_t>> lists, std::span<const std::int32_t> sizes,
              std::span<const std::int64_t> offsets, Watch& watch);

// The rows of each column, ascending.
Rows transpose(const Texts& rows, std::size_t n_columns);

// out[row] = sum of the table's rows that a row's columns name, in their order: the same bits for any n_jobs.
void sum_rows(const Texts& rows, Matrix<const double> table, Matrix<double> out, int n_jobs, Watch& watch);

}  // namespace prodige
