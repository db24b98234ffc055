#include "anchors.hpp"

#include <algorithm>
#include <stdexcept>

namespace prodige {

template <class T>
AnchorTrees<T>::AnchorTrees(std::shared_ptr<const HubNetwork<T>> hubs, std::span<const Vertex> anchors, int n_jobs,
                            Watch& watch)
    : hubs_(std::move(hubs)), trees_(anchors.size()) {
    const HubLayout& layout = hubs_->layout();
    for (const Vertex anchor : anchors)
        if (!layout.is_core(anchor)) throw std::invalid_argument("an anchor is no hub");
    const std::size_t n_core = layout.n_core();
    const std::size_t n_blocks = (anchors.size() + lanes - 1) / lanes;
    core_distances_.assign(n_blocks * n_core * lanes, unreached<T>);
    WorkerScratch<T> scratch(hubs_->core().scratch(), n_jobs);
    parallel_for(anchors.size(), n_jobs, watch, [&](std::size_t worker, std::size_t a) {
        Tree<T>& tree = trees_[a];
        hubs_->search_core(anchors[a], scratch[worker], &tree, watch);
        scratch[worker].reset();
        T* block = core_distances_.data() + a / lanes * n_core * lanes;
        for (std::size_t p = 0; p < tree.size; ++p) block[tree.vertices[p] * lanes + a % lanes] = tree.distances[p];
    });
}

template <class T>
void AnchorTrees<T>::distances(std::span<const Vertex> targets, Matrix<T> out, Matrix<std::int32_t> arcs, int n_jobs,
                               Watch& watch) const {
    if (targets.empty()) return;
    const std::size_t n_core = hubs_->layout().n_core();
    const std::size_t n_blocks = (size() + lanes - 1) / lanes;
    struct Bench {
        std::vector<T> rows;
        std::vector<std::int32_t> arcs;
    };
    std::vector<Bench> benches(std::max(n_jobs, 1));
    parallel_for(n_blocks, n_jobs, watch, [&](std::size_t worker, std::size_t block) {
        Bench& bench = benches[worker];
        const std::size_t first = block * lanes;
        const std::size_t width = std::min(lanes, size() - first);
        T* rows = out.data + first * out.columns;
        std::int32_t* last = arcs.data + first * out.columns;
        if (width < lanes) {  // the kernel writes all lanes
            bench.rows.resize(lanes * out.columns);
            bench.arcs.resize(lanes * out.columns);
            rows = bench.rows.data();
            last = bench.arcs.data();
        }
        kernels<T>().nearest_arc(hubs_->access(), targets.data(), 0, targets.size(),
                                 core_distances_.data() + block * n_core * lanes, rows, last, out.columns);
        if (width < lanes) {
            std::copy_n(rows, width * out.columns, out.data + first * out.columns);
            std::copy_n(last, width * out.columns, arcs.data + first * out.columns);
        }
    });
}

template <class T>
void AnchorTrees<T>::backward(std::span<const Vertex> targets, Matrix<const T> gradient,
                              Matrix<const std::int32_t> arcs, std::span<T> out, int n_jobs, Watch& watch) const {
    const HubLayout& layout = hubs_->layout();
    const auto access_core = layout.access_core();
    const auto access_edges = layout.access_edges();
    std::fill(out.begin(), out.end(), T(0));

    // What flows into each core vertex of each anchor's tree, and from there towards the anchor. Trees have rows of
    // their own; their sums are added up in the order of anchors, whoever made them.
    std::vector<std::vector<T>> flows(size());
    parallel_for(size(), n_jobs, watch, [&](std::size_t, std::size_t a) {
        const Tree<T>& tree = trees_[a];
        std::vector<T> into(layout.n_core(), T(0));
        const auto incoming = gradient.row(a);
        const auto last = arcs.row(a);
        for (std::size_t c = 0; c < targets.size(); ++c)
            if (last[c] >= 0) into[access_core[last[c]]] += incoming[c];
        std::vector<T>& flow = flows[a];
        flow.resize(tree.size);
        for (std::size_t p = tree.size; p-- > 1;) {
            flow[p] = into[tree.vertices[p]];
            into[tree.vertices[tree.parents[p]]] += flow[p];
        }
    });
    for (std::size_t a = 0; a < size(); ++a)
        for (std::size_t p = 1; p < trees_[a].size; ++p)
            hubs_->visit_edges(trees_[a].edges[p], [&](Edge edge) { out[edge] += flows[a][p]; });

    // The last arc of each path. Only its own target uses a spoke's arc, so ranges of targets share no sum.
    parallel_ranges(targets.size(), n_jobs, watch, [&](std::size_t first, std::size_t end) {
        for (std::size_t a = 0; a < size(); ++a) {
            const auto incoming = gradient.row(a);
            const auto last = arcs.row(a);
            for (std::size_t c = first; c < end; ++c)
                if (last[c] >= 0 && access_edges[last[c]] != no_edge) out[access_edges[last[c]]] += incoming[c];
        }
    });
}

template class AnchorTrees<float>;
template class AnchorTrees<double>;

}  // namespace prodige
