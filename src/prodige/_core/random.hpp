// Whether an uncertain edge exists: a pure function of (seed, group, edge).
//
// Nothing is stored and nothing is drawn in sequence, so both ends of an edge, every thread and every engine get the
// same answer, and an edge that no search asks about costs nothing.
#pragma once

#include <cstdint>

#include "types.hpp"

namespace prodige {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits in which every input bit moves about
// half of the output bits.
constexpr std::uint64_t scramble(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

// The edges of one sampled graph. Sources with the same group see the same graph.
template <class T>
class Sample {
   public:
    Sample(const T* probability, std::uint64_t seed, std::uint64_t group) noexcept
        : probability_(probability), key_(scramble(scramble(seed + step) + group * step)) {}

    bool present(Edge edge) const noexcept {
        const std::uint64_t bits = scramble(key_ + (static_cast<std::uint64_t>(edge) + 1) * step);
        // 53 random bits make a double in [0, 1): p = 0 never passes, p = 1 always does.
        return static_cast<double>(bits >> 11) * 0x1p-53 < static_cast<double>(probability_[edge]);
    }

   private:
    static constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd

    const T* probability_;
    std::uint64_t key_;
};

}  // namespace prodige
