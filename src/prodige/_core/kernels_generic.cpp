#include "kernels.hpp"

#include <cstdlib>
#include <string_view>

namespace prodige {

namespace generic {
#include "glove_kernel.inc"
#include "kernels.inc"
#include "kernels_codes.inc"
#include "kernels_rows.inc"
#include "product_kernel.inc"
}  // namespace generic

#if defined(PRODIGE_AVX2)
// PRODIGE_CPU_CAPABILITY=default, as torch has it with ATEN_, shows that the kernels agree on a machine with both.
static bool has_avx2() noexcept {
    static const bool answer = [] {
        const char* wish = std::getenv("PRODIGE_CPU_CAPABILITY");
        return __builtin_cpu_supports("avx2") && (wish == nullptr || std::string_view(wish) != "default");
    }();
    return answer;
}
#endif

template <class T>
const Kernels<T>& generic_kernels() noexcept {
    return generic::table<T>;
}

const ProductKernels& generic_product_kernels() noexcept { return generic::product_table; }

FitPairs generic_fit_pairs() noexcept { return generic::fit; }
const CodeKernels& generic_code_kernels() noexcept { return generic::code_table; }
const RowKernels& generic_row_kernels() noexcept { return generic::row_table; }

template <class T>
const Kernels<T>& kernels() noexcept {
#if defined(PRODIGE_AVX2)
    if (has_avx2()) return avx2_kernels<T>();
#endif
    return generic_kernels<T>();
}

const ProductKernels& product_kernels() noexcept {
#if defined(PRODIGE_AVX2)
    if (has_avx2()) return avx2_product_kernels();
#endif
    return generic_product_kernels();
}

FitPairs fit_pairs() noexcept {
#if defined(PRODIGE_AVX2)
    if (has_avx2()) return avx2_fit_pairs();
#endif
    return generic_fit_pairs();
}

const CodeKernels& code_kernels() noexcept {
#if defined(PRODIGE_AVX2)
    if (has_avx2()) return avx2_code_kernels();
#endif
    return generic_code_kernels();
}

const RowKernels& row_kernels() noexcept {
#if defined(PRODIGE_AVX2)
    if (has_avx2()) return avx2_row_kernels();
#endif
    return generic_row_kernels();
}

template const Kernels<float>& generic_kernels<float>() noexcept;
template const Kernels<double>& generic_kernels<double>() noexcept;
template const Kernels<float>& kernels<float>() noexcept;
template const Kernels<double>& kernels<double>() noexcept;

}  // namespace prodige
