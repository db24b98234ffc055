// Bindings of what fitting asks for in one pass: stress of compression, flows of recommendation.
#include "bindings.hpp"
#include "flows.hpp"
#include "hubs.hpp"
#include "stress.hpp"

namespace prodige {

namespace {

Targets<float> make_targets(const Array<Vertex>& sources, const Grid<float>& target) {
    check_size("sources", sources.size(), target.shape(1));
    if (sources.size() % lanes != 0)
        throw std::invalid_argument("sources has " + std::to_string(sources.size()) + " entries, not a multiple of " +
                                    std::to_string(lanes));
    return {view(sources), {target.data(), target.shape(0), target.shape(1)}};
}

// Compression works in single precision only: its targets have no more.
void bind_stress(nb::module_& m) {
    m.attr("LANES") = lanes;
    m.def(
        "measure_stress",
        [](const HubNetwork<float>& hubs, Array<Vertex> sources, Grid<float> target, Array<std::int32_t> blocks,
           float longest, bool with_flows, int n_jobs) {
            check_jobs(n_jobs);
            const Targets<float> targets = make_targets(sources, target);
            check_vertices("sources", view(sources), hubs.network().topology().n_vertices());
            if (target.shape(0) > static_cast<std::size_t>(hubs.network().topology().n_vertices()))
                throw std::invalid_argument("target has more rows than there are vertices");
            for (const std::int32_t block : view(blocks))
                if (block < 0 || static_cast<std::size_t>(block) >= sources.size() / lanes)
                    throw std::out_of_range("there is no block " + std::to_string(block));
            Stress<float> stress;
            run([&](Watch& watch) {
                stress = measure_stress<float>(hubs, targets, view(blocks), longest, with_flows, n_jobs, watch);
            });
            return nb::make_tuple(stress.loss, stress.n_pairs, copy_out(stress.gradient), copy_out(stress.uses),
                                  copy_out(stress.cost), copy_out(stress.flow_residuals), copy_out(stress.flow_uses));
        },
        "hubs"_a, "sources"_a, "target"_a, "blocks"_a, "longest"_a, "with_flows"_a, "n_jobs"_a);
    m.def(
        "attach",
        [](Array<Vertex> items, Array<Vertex> sources, Grid<float> target, Grid<float> distances,
           std::size_t first_column, std::size_t n_arcs, int n_jobs) {
            check_jobs(n_jobs);
            const Targets<float> targets = make_targets(sources, target);
            check_vertices("items", view(items), static_cast<Vertex>(target.shape(0)));
            if (n_arcs == 0) throw std::invalid_argument("n_arcs = 0 asks for nothing");
            if (distances.shape(1) % lanes != 0 || first_column > sources.size() ||
                distances.shape(1) > sources.size() - first_column)
                throw std::invalid_argument("distances has " + std::to_string(distances.shape(1)) +
                                            " columns, which is no window of the sources");
            Attachments<float> found;
            run([&](Watch& watch) {
                found = attach<float>(view(items), targets, {distances.data(), distances.shape(0), distances.shape(1)},
                                      first_column, n_arcs, n_jobs, watch);
            });
            const std::size_t n = items.size(), k = found.n_arcs;
            return nb::make_tuple(copy_out(found.hubs, {n, k}), copy_out(found.weights, {n, k, k}),
                                  copy_out(found.errors, {n, k}));
        },
        "items"_a, "sources"_a, "target"_a, "distances"_a, "first_column"_a, "n_arcs"_a, "n_jobs"_a);
}

// A community is a column of `reach`, or -1 where an edge may be missing.
void check_communities(const char* name, std::span<const std::int32_t> communities, std::size_t n, int least) {
    for (const std::int32_t g : communities)
        if (g < least || g >= static_cast<std::int64_t>(n))
            throw std::out_of_range(std::string(name) + ": there is no community " + std::to_string(g));
}

void bind_flows(nb::module_& m) {
    m.def(
        "measure_flows",
        [](Grid<float> reach, Array<std::int32_t> first, Array<float> first_weight, Array<std::int32_t> second,
           Array<float> second_weight, Grid<float> target, int n_jobs) {
            check_jobs(n_jobs);
            const std::size_t n_user_clusters = reach.shape(0), n_item_clusters = reach.shape(1),
                              n_items = first.size();
            if (target.shape(0) != n_user_clusters || target.shape(1) != n_items)
                throw std::invalid_argument("target must have a row for each type and a column for each item");
            check_size("first_weight", first_weight.size(), n_items);
            check_size("second", second.size(), n_items);
            check_size("second_weight", second_weight.size(), n_items);
            check_communities("first", view(first), n_item_clusters, 0);
            check_communities("second", view(second), n_item_clusters, -1);
            Flows flows;
            run([&](Watch& watch) {
                flows = measure_flows({reach.data(), n_user_clusters, n_item_clusters},
                                      {view(first), view(second), view(first_weight), view(second_weight)},
                                      {target.data(), n_user_clusters, n_items}, n_jobs, watch);
            });
            return nb::make_tuple(flows.loss, copy_out(flows.target, {n_user_clusters, n_item_clusters}),
                                  copy_out(flows.predicted, {n_user_clusters, n_item_clusters}),
                                  copy_out(flows.item_target, {n_items, 2}),
                                  copy_out(flows.item_predicted, {n_items, 2}));
        },
        "reach"_a, "first"_a, "first_weight"_a, "second"_a, "second_weight"_a, "target"_a, "n_jobs"_a);
    m.def(
        "choose_second",
        [](Grid<float> target, Array<float> rate, Grid<float> reach, Array<std::int32_t> first,
           Grid<std::int32_t> candidates, Array<float> offsets, int n_jobs) {
            check_jobs(n_jobs);
            const std::size_t n_items = target.shape(0), n_user_clusters = target.shape(1),
                              n_item_clusters = reach.shape(0);
            check_size("rate", rate.size(), n_user_clusters);
            check_size("first", first.size(), n_items);
            if (reach.shape(1) != n_user_clusters || candidates.shape(0) != n_items)
                throw std::invalid_argument("reach must have a column for each type, candidates a row for each item");
            check_communities("first", view(first), n_item_clusters, 0);
            check_communities("candidates", {candidates.data(), candidates.size()}, n_item_clusters, 0);
            SecondEdges found;
            run([&](Watch& watch) {
                found = choose_second({target.data(), n_items, n_user_clusters}, view(rate),
                                      {reach.data(), n_item_clusters, n_user_clusters}, view(first),
                                      {candidates.data(), n_items, candidates.shape(1)}, view(offsets), n_jobs, watch);
            });
            return nb::make_tuple(copy_out(found.community), copy_out(found.offset), copy_out(found.gain));
        },
        "target"_a, "rate"_a, "reach"_a, "first"_a, "candidates"_a, "offsets"_a, "n_jobs"_a);
}

}  // namespace

void bind_fitting(nb::module_& m) {
    bind_stress(m);
    bind_flows(m);
}

}  // namespace prodige
