// Convolution over texts followed by the maximum over positions, for rows that are looked up by token.
//
// A filter of width K sees K neighbouring tokens, and each contributes its own product with the filter's column. A
// batch repeats its tokens many times, so the products are made once for every distinct token (a matrix product
// outside); what is left here is to add K rows at every position and to remember which position was best. Only those
// positions have a derivative.
#pragma once

#include <cstdint>
#include <span>

#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

// Texts one after the other: text t has the tokens[offsets[t]] to tokens[offsets[t + 1] - 1].
struct Texts {
    std::span<const std::int32_t> tokens;
    std::span<const std::int64_t> offsets;

    std::size_t size() const noexcept { return offsets.size() - 1; }
};

// out[text][filter] = max over positions of sum over k < width of products[token at position + k - width /
// 2][k][filter]; tokens before the start and after the end contribute nothing. `best` is the position, the first of
// equals. A text without tokens has one position, where nothing contributes.
void pool(const Texts& texts, Matrix<const float> products, std::size_t width, Matrix<float> out,
          Matrix<std::int32_t> best, int n_jobs, Watch& watch);

// The derivative by the products, added to `out`.
void pool_backward(const Texts& texts, Matrix<const float> gradient, Matrix<const std::int32_t> best, std::size_t width,
                   Matrix<float> out);

}  // namespace prodige
