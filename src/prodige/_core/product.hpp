// The engine of products of graphs: a distance is a sum of table entries, one of each factor.
//
// An item has a hub in each factor and a length of its own. The sum of two items is (length + length) + step in factor
// 0 + step in factor 1 + ..., always in this order, and tables are symmetric: so it has the same bits whichever of the
// two is the source, and whatever else is asked. The distance is a root of the sum, the gauge. Where lengths are those
// of pendant edges, the sum begins with 0, and the distance is root + (length + length).
#pragma once

#include <vector>

#include "kernels.hpp"
#include "memory.hpp"
#include "parallel.hpp"
#include "search.hpp"
#include "types.hpp"

namespace prodige {

// What a product consists of, in memory of somebody else.
struct ProductParts {
    std::span<const std::int32_t> n_hubs;  // [factor]
    std::span<const float> tables;         // [factor][hub][hub]: what going from one hub to the other adds to a sum
    std::span<const std::uint16_t> codes;  // [item][factor]: the hub of an item
    std::span<const float> lengths;        // [item]
    std::span<const Vertex> places;        // [item]: items of one place are at distance 0; empty: no two are
};

class Product {
   public:
    // Distances are sums to the power 1 / gauge; lengths are part of the sums, or come after where they are `pendant`.
    // Throws std::invalid_argument where parts do not fit together.
    Product(const ProductParts& parts, double gauge, bool pendant = false);

    Vertex n_items() const noexcept { return static_cast<Vertex>(lengths_.size()); }
    std::size_t n_factors() const noexcept { return n_hubs_.size(); }

    // Column c belongs to targets[c], or to item c where `targets` is empty.
    void distances(std::span<const Vertex> sources, std::span<const Vertex> targets, Matrix<float> out, int n_jobs,
                   Watch& watch) const;

    // out[p] is the distance between i[p] and j[p].
    void pair_distances(std::span<const Vertex> i, std::span<const Vertex> j, std::span<float> out, int n_jobs,
                        Watch& watch) const;

    // Until::nearest and Until::radius; by distance, then id, without the source.
    std::vector<Neighbors<float>> neighbors(std::span<const Vertex> sources, const Stop<float>& stop, int n_jobs,
                                            Watch& watch) const;

   private:
    class Collector;
    struct Bench;

    ProductView view() const noexcept;
    Vertex place(Vertex item) const noexcept { return places_.empty() ? item : places_[item]; }
    std::span<const Vertex> twins(Vertex item) const noexcept;  // items of its place; none where there are no places

    float sum(Vertex i, Vertex j) const noexcept;
    void sum_row(Vertex source, const Vertex* targets, std::size_t first, std::size_t count, float* out) const;
    ProductBlock lay_out(std::span<const Vertex> sources, Bench& bench) const;

    float root(float sum) const noexcept;
    void take_roots(std::span<float> sums) const noexcept;
    float distance(float sum, Vertex i, Vertex j) const noexcept;
    void finish(Vertex source, const Vertex* targets, std::size_t first, std::span<float> sums) const noexcept;
    float greatest_sum(float distance) const noexcept;

    void fill_block(std::span<const Vertex> sources, std::span<const Vertex> targets, Matrix<float> rows, Bench& bench,
                    Watch& watch) const;
    void fill_row(Vertex source, std::span<const Vertex> targets, std::span<float> row, Watch& watch) const;
    void search_block(std::span<const Vertex> sources, std::vector<Collector>& collectors, Bench& bench,
                      Watch& watch) const;
    void search_row(Vertex source, Collector& collector, Watch& watch) const;

    double gauge_;
    bool pendant_;
    std::vector<std::size_t> n_hubs_;         // [factor]
    std::vector<std::size_t> hub_offsets_;    // [factor + 1]: hubs of the factors before
    std::vector<std::size_t> table_offsets_;  // [factor]: where its table begins
    LargeVector<float> tables_;
    LargeVector<std::uint16_t> codes_;
    LargeVector<float> lengths_;
    std::vector<Vertex> places_;
    std::vector<std::size_t> twin_offsets_;  // [place + 1]
    std::vector<Vertex> twins_;              // items by place, then id
};

}  // namespace prodige
