// GloVe: vectors of words whose products are the logarithms of how often the words stand near each other.
//
// Pennington, Socher, Manning, "GloVe: Global Vectors for Word Representation" (EMNLP 2014), equation 8: the sum over
// all pairs of f(x) (w·c + b + b' - log x)², with f(x) = min(1, (x / x_max)^alpha), by AdaGrad on one pair after the
// other.
//
// Updates one after the other leave nothing to share between threads, so the matrix is cut into a checkerboard. Blocks
// that have neither words nor contexts in common do not touch each other: a round takes one block of every row and
// column of the board, in any order and on any thread, and gives the same bits. A block is also small enough for its
// vectors to stay in the cache (Gemulla et al., KDD 2011, do so for distributed matrix factorisation).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels.hpp"
#include "memory.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

// Rows of a matrix of counts, all of them above 0; somebody else owns it.
struct CountsView {
    std::span<const std::int64_t> offsets;  // [word], one more than words
    std::span<const std::int32_t> columns;
    std::span<const float> values;
};

class Glove {
   public:
    Glove(const CountsView& counts, std::size_t n_components, double x_max, double alpha, std::uint64_t seed,
          int n_jobs, Watch& watch);

    std::size_t n_words() const noexcept { return n_words_; }
    std::size_t n_components() const noexcept { return n_components_; }

    // One update for every pair, in an order of this epoch; returns the mean of f(x) (...)² before each.
    double run_epoch(float learning_rate, int n_jobs, Watch& watch);

    // Word and context vectors added up, as the paper does: [word][component].
    void write_vectors(Matrix<float> out) const;

   private:
    std::size_t place(std::size_t word) const noexcept;
    void start(LargeVector<float>& side, std::uint64_t key, std::size_t one) const;

    std::size_t n_words_;
    std::size_t n_components_;
    std::size_t width_;      // of a vector with its bias, rounded up
    std::size_t n_blocks_;   // along each side of the board; a power of 2
    std::size_t per_block_;  // words, rounded up
    std::uint64_t seed_;
    std::uint64_t epoch_ = 0;
    LargeVector<float> words_, contexts_;  // [block][word][vector, then what AdaGrad knows of it]
    LargeVector<Pair> pairs_;              // by block
    std::vector<std::size_t> offsets_;     // [block of words][block of contexts], and the end
};

}  // namespace prodige
