// Distances from a few anchors to the vertices that are asked for, and their derivative.
//
// A layer over a batch needs the distances of some thousand items out of many more. The anchors' trees over the core
// are grown once; an item then takes the best of its own arcs, and one nobody asks for costs nothing.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hubs.hpp"

namespace prodige {

template <class T>
class AnchorTrees {
   public:
    // Every anchor must be in the core, as hubs are.
    AnchorTrees(std::shared_ptr<const HubNetwork<T>> hubs, std::span<const Vertex> anchors, int n_jobs, Watch& watch);

    const HubNetwork<T>& hubs() const noexcept { return *hubs_; }
    std::size_t size() const noexcept { return trees_.size(); }

    // Row a of `out` gets the distances from anchor a to the targets, row a of `arcs` the last arc of each path
    // (-1: no path).
    void distances(std::span<const Vertex> targets, Matrix<T> out, Matrix<std::int32_t> arcs, int n_jobs,
                   Watch& watch) const;

    // dL/dw of every edge, given dL/dd and the arcs of `distances`. No target may occur twice.
    void backward(std::span<const Vertex> targets, Matrix<const T> gradient, Matrix<const std::int32_t> arcs,
                  std::span<T> out, int n_jobs, Watch& watch) const;

   private:
    std::shared_ptr<const HubNetwork<T>> hubs_;
    std::vector<Tree<T>> trees_;
    std::vector<T> core_distances_;  // [block of lanes][core vertex][lane]
};

}  // namespace prodige
