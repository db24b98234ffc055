// Compiled with -mavx2 and without contraction to fused multiply-adds: the same bits as the generic kernels.
#include "kernels.hpp"

namespace prodige {

namespace avx2 {
#include "glove_kernel.inc"
#include "kernels.inc"
#include "kernels_codes.inc"
#include "kernels_rows.inc"
#include "product_kernel.inc"
}  // namespace avx2

template <class T>
const Kernels<T>& avx2_kernels() noexcept {
    return avx2::table<T>;
}

const ProductKernels& avx2_product_kernels() noexcept { return avx2::product_table; }

FitPairs avx2_fit_pairs() noexcept { return avx2::fit; }
const CodeKernels& avx2_code_kernels() noexcept { return avx2::code_table; }
const RowKernels& avx2_row_kernels() noexcept { return avx2::row_table; }

template const Kernels<float>& avx2_kernels<float>() noexcept;
template const Kernels<double>& avx2_kernels<double>() noexcept;

}  // namespace prodige
