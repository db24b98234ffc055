// Compiled with -mavx2 and without contraction to fused multiply-adds: the same bits as the generic kernels.
#include "kernels.hpp"

namespace prodige {

namespace avx2 {
#include "glove_kernel.inc"
#include "kernels.inc"
}  // namespace avx2

template <class T>
const Kernels<T>& avx2_kernels() noexcept {
    return avx2::table<T>;
}

FitPairs avx2_fit_pairs() noexcept { return avx2::fit; }

template const Kernels<float>& avx2_kernels<float>() noexcept;
template const Kernels<double>& avx2_kernels<double>() noexcept;

}  // namespace prodige
