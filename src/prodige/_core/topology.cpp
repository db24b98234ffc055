#include "topology.hpp"

#include <stdexcept>
#include <string>

namespace prodige {

namespace {

void check_vertex(const char* name, std::size_t edge, Vertex v, Vertex n_vertices) {
    if (v < 0 || v >= n_vertices)
        throw std::invalid_argument(std::string(name) + "[" + std::to_string(edge) + "] = " + std::to_string(v) +
                                    " is not a vertex: there are " + std::to_string(n_vertices));
}

}  // namespace

Topology::Topology(Vertex n_vertices, std::span<const Vertex> tails, std::span<const Vertex> heads) {
    if (n_vertices < 0) throw std::invalid_argument("n_vertices = " + std::to_string(n_vertices) + " is negative");
    if (tails.size() != heads.size())
        throw std::invalid_argument("tails has " + std::to_string(tails.size()) + " entries but heads has " +
                                    std::to_string(heads.size()));
    if (tails.size() > std::numeric_limits<std::int32_t>::max() / 2)
        throw std::invalid_argument(std::to_string(tails.size()) + " edges make more than 2^31 - 1 arcs");
    for (std::size_t e = 0; e < tails.size(); ++e) {
        check_vertex("tails", e, tails[e], n_vertices);
        check_vertex("heads", e, heads[e], n_vertices);
        if (tails[e] == heads[e])
            throw std::invalid_argument("edge " + std::to_string(e) + " is a self-loop at vertex " +
                                        std::to_string(tails[e]));
    }
    tails_.assign(tails.begin(), tails.end());
    heads_.assign(heads.begin(), heads.end());
    offsets_.assign(static_cast<std::size_t>(n_vertices) + 1, 0);
    build_arcs();
    build_components();
}

void Topology::build_arcs() {
    for (Edge e = 0; e < n_edges(); ++e) {
        ++offsets_[tails_[e] + 1];
        ++offsets_[heads_[e] + 1];
    }
    for (std::size_t v = 1; v < offsets_.size(); ++v) offsets_[v] += offsets_[v - 1];

    targets_.resize(2 * tails_.size());
    edges_.resize(2 * tails_.size());
    std::vector<std::int32_t> next(offsets_.begin(), offsets_.end() - 1);
    for (Edge e = 0; e < n_edges(); ++e) {
        const std::int32_t forth = next[tails_[e]]++;
        const std::int32_t back = next[heads_[e]]++;
        targets_[forth] = heads_[e];
        targets_[back] = tails_[e];
        edges_[forth] = edges_[back] = e;
    }
}

void Topology::build_components() {
    constexpr Vertex unseen = -1;
    components_.assign(offsets_.size() - 1, unseen);
    std::vector<Vertex> pending;
    for (Vertex start = 0; start < n_vertices(); ++start) {
        if (components_[start] != unseen) continue;
        const auto label = static_cast<Vertex>(component_sizes_.size());
        component_sizes_.push_back(0);
        components_[start] = label;
        pending.push_back(start);
        while (!pending.empty()) {
            const Vertex u = pending.back();
            pending.pop_back();
            ++component_sizes_[label];
            for (std::int32_t arc = offsets_[u]; arc < offsets_[u + 1]; ++arc) {
                const Vertex v = targets_[arc];
                if (components_[v] != unseen) continue;
                components_[v] = label;
                pending.push_back(v);
            }
        }
    }
}

}  // namespace prodige
