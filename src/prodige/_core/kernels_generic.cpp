#include "kernels.hpp"

namespace prodige {

namespace generic {
#include "kernels.inc"
}  // namespace generic

template <class T>
const Kernels<T>& generic_kernels() noexcept {
    return generic::table<T>;
}

template <class T>
const Kernels<T>& kernels() noexcept {
#if defined(PRODIGE_AVX2)
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    if (has_avx2) return avx2_kernels<T>();
#endif
    return generic_kernels<T>();
}

template const Kernels<float>& generic_kernels<float>() noexcept;
template const Kernels<double>& generic_kernels<double>() noexcept;
template const Kernels<float>& kernels<float>() noexcept;
template const Kernels<double>& kernels<double>() noexcept;

}  // namespace prodige
