// The priority queue of the search: a 4-ary heap of (distance, vertex) that never deletes.
//
// A better distance is pushed again and the old entry is skipped when it surfaces: cheaper than tracking positions,
// because on the graphs learned here a vertex improves only two or three times.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <vector>

#include "types.hpp"

namespace prodige {

// Ordered by distance, then by vertex, so that the order of settling does not depend on the queue.
template <class T>
struct Label {
    T distance_;
    Vertex vertex_;

    Label(T distance, Vertex vertex) noexcept : distance_(distance), vertex_(vertex) {}
    T distance() const noexcept { return distance_; }
    Vertex vertex() const noexcept { return vertex_; }
    bool operator<(const Label& other) const noexcept {
        return distance_ < other.distance_ || (distance_ == other.distance_ && vertex_ < other.vertex_);
    }
};

// Non-negative floats order as their bits do, so one integer comparison decides both fields.
template <>
struct Label<float> {
    std::uint64_t bits;

    Label(float distance, Vertex vertex) noexcept
        : bits(static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(distance)) << 32 |
               static_cast<std::uint32_t>(vertex)) {}
    float distance() const noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32)); }
    Vertex vertex() const noexcept { return static_cast<Vertex>(static_cast<std::uint32_t>(bits)); }
    bool operator<(const Label& other) const noexcept { return bits < other.bits; }
};

template <class T>
class Queue {
   public:
    using Item = Label<T>;

    bool empty() const noexcept { return heap_.empty(); }
    std::size_t size() const noexcept { return heap_.size(); }
    void clear() noexcept { heap_.clear(); }
    const Item& top() const noexcept { return heap_.front(); }
    auto begin() const noexcept { return heap_.begin(); }
    auto end() const noexcept { return heap_.end(); }
    std::size_t capacity_bytes() const noexcept { return heap_.capacity() * sizeof(Item); }

    void push(T distance, Vertex vertex) {
        heap_.emplace_back(distance, vertex);
        raise(heap_.size() - 1, heap_.back());
    }

    Item pop() noexcept {
        const Item least = heap_.front();
        const Item last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) raise(sink_hole(), last);
        return least;
    }

   private:
    // Moves the hole at the root down to a leaf along the least children. The item that will fill it came from a
    // leaf, so it nearly always belongs there: fewer comparisons than stopping on the path.
    std::size_t sink_hole() noexcept {
        const std::size_t size = heap_.size();
        std::size_t hole = 0;
        for (;;) {
            const std::size_t first = 4 * hole + 1;
            if (first + 4 <= size) {
                const std::size_t a = first + (heap_[first + 1] < heap_[first]);
                const std::size_t b = first + 2 + (heap_[first + 3] < heap_[first + 2]);
                const std::size_t least = heap_[b] < heap_[a] ? b : a;
                heap_[hole] = heap_[least];
                hole = least;
            } else {
                if (first >= size) return hole;
                std::size_t least = first;
                for (std::size_t child = first + 1; child < size; ++child)
                    if (heap_[child] < heap_[least]) least = child;
                heap_[hole] = heap_[least];
                return least;
            }
        }
    }

    void raise(std::size_t hole, Item item) noexcept {
        while (hole > 0) {
            const std::size_t parent = (hole - 1) / 4;
            if (!(item < heap_[parent])) break;
            heap_[hole] = heap_[parent];
            hole = parent;
        }
        heap_[hole] = item;
    }

    std::vector<Item> heap_;
};

}  // namespace prodige
