// The innermost loops of the hub engine, of products and of word vectors, compiled once for any processor and once for
// AVX2; the machine decides at run time. Kernel files see nothing but raw pointers: no inline function of the standard
// library can leak instructions into the rest of the program.
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

// One pass of squared errors over some targets. Sources come in blocks of `lanes`; what belongs to a block lies at its
// place in arrays of [block][core vertex][lane].
template <class T>
struct StressPass {
    AccessView<T> access;
    std::size_t n_core;
    std::size_t n_blocks;
    const T* target;                // [vertex][column]: the distance that should come out
    std::size_t stride;             // columns of `target`
    const std::int32_t* columns;    // [block]: its first column
    const std::int32_t* sources;    // [block][lane]: the source vertex
    const T* distances;             // [block][core vertex][lane]: from the source
    T longest;                      // stands for the path of a target that loses its only arc
    T *residuals, *uses, *costs;    // [arc]: sums over the sources whose path ends with it
    T *core_residuals, *core_uses;  // [block][core vertex][lane]: sums over the targets behind it
    T* scratch;                     // 3 * lanes for every arc of a vertex
};

template <class T>
struct Detour {
    T uses;   // columns it is the shortest path for
    T slack;  // sum of target - from over them: their mean is the best weight
    T gain;   // by how much the squared error falls
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
    // Sum of squared residuals of the targets first to last - 1, and everything learning wants to know about it.
    double (*stress)(const StressPass<T>& pass, std::size_t first, std::size_t last);
    // Sum of (target - from - weight)² over `count` columns.
    T (*misfit)(const T* target, const T* from, T weight, std::size_t count);
    // What a further path of length from + weight would change where it is shorter than `known`.
    Detour<T> (*detour)(const T* target, const T* known, const T* from, T weight, std::size_t count);
};

// A product of graphs: items with a hub in each factor and a length of their own.
struct ProductView {
    const std::uint16_t* codes;      // [item][factor]: the hub, numbered within the factor
    const float* lengths;            // [item]
    const std::size_t* hub_offsets;  // [factor]: hubs of the factors before
    std::size_t n_factors;
    bool pendant;  // lengths are no part of sums: they add to square roots
};

// What `lanes` sources add to a sum at every hub of every factor.
struct ProductBlock {
    const float* lengths;  // [lane]
    const float* rows;     // [hub of any factor][lane]
};

struct NearItem {
    std::int32_t item, lane;
    float sum;
};

struct ProductKernels {
    // For each of `count` targets (targets[c], or first + c where `targets` is null) the sum of each lane, written to
    // out[lane * stride + c]. Writes all lanes.
    void (*sum_block)(const ProductView& product, const ProductBlock& block, const std::int32_t* targets,
                      std::size_t first, std::size_t count, float* out, std::size_t stride);
    // The items first to first + count - 1 whose sum is at most limits[lane], in order; how many there are. Where
    // lengths are pendant: those whose root and length are at most limits[lane], and perhaps a few more. `found` has
    // room for all, and for one more.
    std::size_t (*find_near)(const ProductView& product, const ProductBlock& block, const float* limits,
                             std::size_t first, std::size_t count, NearItem* found);
    // Square roots in place.
    void (*take_roots)(float* values, std::size_t count);
};

// A word and a context of one block of the matrix of counts, numbered within the block.
struct Pair {
    std::uint16_t word, context;
    float logarithm;  // of the count
    float weight;     // how much its error matters
};

inline constexpr std::size_t pair_lanes = 8;

// Rows hold a vector and then the sums of its squared gradients, each `width` long, a multiple of `pair_lanes`. After
// the components of a vector come its bias and a 1, or the other way round for contexts; then zeros.
struct PairPass {
    float *words, *contexts;
    std::size_t width;
    std::size_t n_components;
    float learning_rate;
};

// A step of AdaGrad for one pair after the other; returns the sum of weight * error² before each.
using FitPairs = double (*)(const PairPass& pass, const Pair* pairs, std::size_t count);

// What fitting a product needs of its gauge.
struct CodePass {
    int quarters;  // the gauge is quarters / 4
    float floor;   // shorter distances weigh no more than this one
};

// Loops over landmarks and hubs for `lanes` items side by side; arrays are [landmark][lane] or [hub][lane].
struct CodeKernels {
    // sums[c] += sign * hubs[codes[c]] for n landmarks.
    void (*add_hubs)(const float* hubs, const std::uint16_t* codes, std::size_t n, float sign, float* sums);
    // Turns distances into targets, distance^gauge, and their weights into weights of residuals of targets.
    void (*weigh)(const CodePass& pass, std::size_t n, const float* sums, float* targets, float* weights);
    // residuals[codes[c]] += weight * (sum - target); totals[codes[c]] += weight.
    void (*collect)(const std::uint16_t* codes, std::size_t n, const float* sums, const float* targets,
                    const float* weights, float* residuals, float* totals);
    // The hub with the least sum over all hubs of 2 * entry * residual + entry² * total.
    void (*best_hub)(const float* table, std::size_t n_hubs, const float* residuals, const float* totals,
                     std::int32_t* best);
    // out[a] = the sum over d of (rows[d] - anchors[a][d])², and of rows[d] * anchors[a][d].
    void (*square_distances)(const float* anchors, std::size_t n_anchors, std::size_t size, const float* rows,
                             float* out);
    void (*multiply)(const float* anchors, std::size_t n_anchors, std::size_t size, const float* rows, float* out);
    // Turns n distances into distance^gauge.
    void (*take_powers)(std::size_t n, int quarters, float* values);
};

// Loops over vectors whose length `n` is a multiple of 8; matrices are [n][n], and only what lies on or right of the
// diagonal counts.
struct RowKernels {
    // matrix += weights[p] * word * wordᵀ for each partner, four of them at a time.
    void (*add_rows)(const float* words, const std::int32_t* partners, const float* weights, std::size_t count,
                     std::size_t n, float* matrix);
    // right = matrix⁻¹ right by Cholesky's factors, which replace the matrix; directions without weight stay at 0.
    void (*solve)(std::size_t n, float* matrix, float* inverses, float* right);
    // to += scale * from
    void (*add_scaled)(std::size_t n, float scale, const float* from, float* to);
    float (*dot)(std::size_t n, const float* a, const float* b);
    // Of words [coordinate][word], a multiple of 16 of them, the one with the least quadratic form and price, the
    // first of equals.
    std::size_t (*best_word)(const float* words, const float* prices, std::size_t n_words, std::size_t size,
                             const float* form, const float* slope);
    // The first place from `start` on whose value is above a bound; n where there is none.
    std::size_t (*find_above)(const float* values, std::size_t start, std::size_t n, float bound);
};

template <class T>
const Kernels<T>& kernels() noexcept;  // the best for this machine
const ProductKernels& product_kernels() noexcept;
FitPairs fit_pairs() noexcept;
const CodeKernels& code_kernels() noexcept;
const RowKernels& row_kernels() noexcept;

template <class T>
const Kernels<T>& generic_kernels() noexcept;
const ProductKernels& generic_product_kernels() noexcept;
FitPairs generic_fit_pairs() noexcept;
const CodeKernels& generic_code_kernels() noexcept;
const RowKernels& generic_row_kernels() noexcept;
template <class T>
const Kernels<T>& avx2_kernels() noexcept;
const ProductKernels& avx2_product_kernels() noexcept;
FitPairs avx2_fit_pairs() noexcept;
const CodeKernels& avx2_code_kernels() noexcept;
const RowKernels& avx2_row_kernels() noexcept;

}  // namespace prodige
