// Alternating least squares over interactions: the vector of a user given those of its items, and the other way round.
//
// A row is a user or an item, its partners are what it interacted with. With y the partners' vectors, w the weight of
// an interaction and s what the product x·y should be, the squared error of a row is a quadratic form of its vector x:
// matrix A = gram + Σ w y yᵀ + ridge, right-hand side t = extra + Σ w s y. Either x is free, and solves A x = t; or it
// is made of words, one of each codebook, and all words of a codebook are compared at once.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

// The partners of every row, and what is known about each interaction.
struct Interactions {
    std::span<const std::int64_t> offsets;  // [row + 1]
    std::span<const std::int32_t> partners;
    std::span<const float> weights;  // [interaction]

    std::size_t n_rows() const noexcept { return offsets.size() - 1; }
};

// Vectors have a multiple of 8 entries; those that are too many are 0.
struct RowTask {
    Interactions interactions;
    Matrix<const float> vectors;     // [partner][n]
    std::span<const float> gram;     // [n][n]: what all partners together, met or not, add to every matrix
    std::span<const float> targets;  // [interaction]: s; 1 where there are none
    std::span<const float> ridge;    // [row]: added to the diagonal; 0 where there is none
    Matrix<const float> extra;       // [row][n]: added to the right-hand side; 0 where there are no rows

    std::size_t size() const noexcept { return vectors.columns; }
};

// The best vector of every row, [row][n].
void solve_rows(const RowTask& task, Matrix<float> out, int n_jobs, Watch& watch);

// x·y of every interaction.
void score_interactions(const Interactions& interactions, Matrix<const float> rows, Matrix<const float> vectors,
                        std::span<float> out, int n_jobs, Watch& watch);

// Codebooks of the rows, one for each group of coordinates, which follow each other.
struct Codebooks {
    std::span<const std::int32_t> sizes;    // [group]: coordinates
    std::span<const std::int32_t> n_words;  // [group]
    std::span<const float> words;           // [group][word][coordinate]
    std::span<const float> prices;          // [group][word]: added to the error of a row with the word; 0 where empty

    std::size_t n_groups() const noexcept { return sizes.size(); }
};

struct WordCodes {
    std::vector<std::uint16_t> codes;  // [row][group]
    double loss = 0;                   // Σ x·(A x - 2 t) after the last sweep
    // Of all rows with a word: [group][word][coordinate][coordinate] sums of A within the group, and
    // [group][word][coordinate] sums of t without what the other groups explain. Empty unless asked for.
    std::vector<double> matrices, rights;
};

// Chooses the words of every row, one group after the other in so many sweeps, from where they were.
WordCodes choose_words(const RowTask& task, const Codebooks& books, Matrix<const std::uint16_t> codes, int n_sweeps,
                       bool with_sums, int n_jobs, Watch& watch);

// The n largest entries of each row, largest first, then by column; left-out columns become -inf, which never counts.
struct BestTask {
    Matrix<float> scores;
    std::span<const std::int64_t> offsets;  // [row + 1]: columns to leave out; none where empty
    std::span<const std::int32_t> left_out;
};

void find_best(const BestTask& task, std::size_t n, std::span<std::int32_t> columns, std::span<float> values,
               int n_jobs, Watch& watch);

}  // namespace prodige
