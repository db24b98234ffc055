// Large arrays on large pages.
//
// A search jumps about in its arrays, and a result of a few hundred megabytes is touched once: with 4 KiB pages both
// spend much of their time on address translation and page faults. The kernel is asked for 2 MiB pages where an array
// is large enough to fill some.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace prodige {

inline void* allocate_large(std::size_t bytes) {
    constexpr std::size_t huge_page = std::size_t(1) << 21;
    if (bytes < huge_page) {
        if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
        throw std::bad_alloc();
    }
    const std::size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
    if (rounded < bytes) throw std::bad_alloc();
    void* memory = std::aligned_alloc(huge_page, rounded);
    if (!memory) throw std::bad_alloc();
#if defined(__linux__)
    madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: nothing depends on it
#endif
    return memory;
}

inline void free_large(void* memory) noexcept { std::free(memory); }

template <class T>
struct LargeAllocator {
    using value_type = T;

    LargeAllocator() = default;
    template <class U>
    LargeAllocator(const LargeAllocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
        return static_cast<T*>(allocate_large(n * sizeof(T)));
    }
    void deallocate(T* memory, std::size_t) noexcept { free_large(memory); }

    bool operator==(const LargeAllocator&) const noexcept { return true; }
};

// Memory that is only ever given back as a whole. Blocks double, so small results stay small.
class Arena {
   public:
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena() {
        for (void* block : blocks_) free_large(block);
    }

    void* allocate(std::size_t bytes) {
        constexpr std::size_t alignment = 64;
        bytes = (bytes + alignment - 1) / alignment * alignment;
        const std::scoped_lock lock(lock_);
        if (bytes > room_) {
            constexpr std::size_t least = std::size_t(1) << 14, most = std::size_t(1) << 24;
            const std::size_t size = std::max(bytes, std::clamp(bytes_, least, most));
            blocks_.reserve(blocks_.size() + 1);
            blocks_.push_back(allocate_large(size));
            next_ = static_cast<char*>(blocks_.back());
            room_ = size;
            bytes_ += size;
        }
        void* memory = next_;
        next_ += bytes;
        room_ -= bytes;
        return memory;
    }

    std::size_t bytes() const noexcept { return bytes_; }

   private:
    std::mutex lock_;
    std::vector<void*> blocks_;
    char* next_ = nullptr;
    std::size_t room_ = 0;
    std::size_t bytes_ = 0;
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace prodige
