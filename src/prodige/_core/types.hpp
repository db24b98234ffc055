// Words shared by every part of the core: what a vertex and an edge are, and what "no path" looks like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace prodige {

using Vertex = std::int32_t;
using Edge = std::int32_t;

inline constexpr Edge no_edge = -1;
inline constexpr std::int32_t no_position = -1;

template <class T>
inline constexpr T unreached = std::numeric_limits<T>::infinity();

// A row-major matrix somebody else owns.
template <class T>
struct Matrix {
    T* data;
    std::size_t rows;
    std::size_t columns;

    std::span<T> row(std::size_t r) const { return {data + r * columns, columns}; }
};

}  // namespace prodige
