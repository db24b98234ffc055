// The innermost loop of the hub engine, compiled once for any processor and once for AVX2; the machine decides at run
// time. Kernel files see nothing but raw pointers: no inline function of the standard library can leak instructions
// into the rest of the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prodige {

// Sources are processed `lanes` at a time, side by side: one load of an arc serves all of them, and the processor's
// vectors run along the sources, so neither gathers nor a special layout of the arcs are needed.
inline constexpr std::size_t lanes = 16;

// Ways from every vertex to the core: vertex v has the arcs offsets[v] to offsets[v + 1], each to a core vertex.
template <class T>
struct AccessView {
    const std::int32_t* offsets;
    const std::int32_t* core;
    const T* weights;
};

template <class T>
struct Kernels {
    // For each of `count` targets (targets[c], or first + c where `targets` is null) the minimum over its arcs of
    // distances[core][lane] + weight, written to out[lane * stride + c]. Reads and writes all lanes.
    void (*nearest)(const AccessView<T>& access, const std::int32_t* targets, std::size_t first, std::size_t count,
                    const T* distances, T* out, std::size_t stride);
    // The same with the arc that gave the minimum (-1: none), laid out like `out`.
    void (*nearest_arc)(const AccessView<T>& access, const std::int32_t* targets, std::size_t first, std::size_t count,
                        const T* distances, T* out, std::int32_t* arcs, std::size_t stride);
};

template <class T>
const Kernels<T>& kernels() noexcept;  // the best for this machine

template <class T>
const Kernels<T>& generic_kernels() noexcept;
template <class T>
const Kernels<T>& avx2_kernels() noexcept;

}  // namespace prodige
