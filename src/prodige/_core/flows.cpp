#include "flows.hpp"

#include <cmath>
#include <numeric>

namespace prodige {

namespace {

// Types whose sums over items are kept together: few enough to share work, many enough to save memory.
constexpr std::size_t types_per_job = 64;

constexpr std::size_t width = 16;

struct ItemSums {
    std::vector<double> wanted, given;
};

// One type: probabilities of all items, then the sums over its communities and over the edges of items.
class Row {
   public:
    Row(const Membership& items, std::size_t n_communities)
        : items_(items),
          near_(n_communities + 1),
          first_(items.first.size()),
          second_(items.first.size()),
          share_(items.first.size()),
          is_second_(items.first.size()) {
        for (std::size_t x = 0; x < first_.size(); ++x) {
            first_[x] = std::exp(-items.first_weight[x]);
            second_[x] = items.second[x] < 0 ? 0.0f : std::exp(-items.second_weight[x]);
        }
    }

    double measure(const float* reach, const float* wanted, double* to_wanted, double* to_given, ItemSums& sums) {
        const std::size_t n_items = items_.first.size();
        // Products of exponentials instead of exponentials of sums: one for each community, not one for each item.
        for (std::size_t g = 0; g + 1 < near_.size(); ++g) near_[g] = std::exp(-reach[g]);
        double total = 0, mass = 0, cost = 0;
        for (std::size_t x = 0; x < n_items; ++x) {
            const float by_first = near_[items_.first[x]] * first_[x];
            const std::int32_t other = items_.second[x];
            const float by_second = other < 0 ? 0.0f : near_[other] * second_[x];
            is_second_[x] = by_second > by_first;
            share_[x] = is_second_[x] ? by_second : by_first;
            total += share_[x];
            mass += wanted[x];
            cost += wanted[x] * (is_second_[x] ? reach[other] + items_.second_weight[x]
                                               : reach[items_.first[x]] + items_.first_weight[x]);
        }
        const double rate = mass / total;
        for (std::size_t x = 0; x < n_items; ++x) {
            const std::int32_t g = is_second_[x] ? items_.second[x] : items_.first[x];
            const double is_given = rate * share_[x];
            to_wanted[g] += wanted[x];
            to_given[g] += is_given;
            sums.wanted[2 * x + is_second_[x]] += wanted[x];
            sums.given[2 * x + is_second_[x]] += is_given;
        }
        return cost + mass * std::log(total);
    }

   private:
    const Membership& items_;
    std::vector<float> near_, first_, second_, share_;
    std::vector<std::uint8_t> is_second_;
};

}  // namespace

Flows measure_flows(Matrix<const float> reach, const Membership& items, Matrix<const float> wanted, int n_jobs,
                    Watch& watch) {
    const std::size_t n_types = reach.rows, n_communities = reach.columns, n_items = items.first.size();
    Flows flows;
    flows.wanted.assign(n_types * n_communities, 0);
    flows.given.assign(n_types * n_communities, 0);
    flows.item_wanted.assign(2 * n_items, 0);
    flows.item_given.assign(2 * n_items, 0);
    const std::size_t n_parts = (n_types + types_per_job - 1) / types_per_job;
    std::vector<ItemSums> sums(n_parts);
    std::vector<double> losses(n_parts, 0);
    parallel_for(n_parts, n_jobs, watch, [&](std::size_t, std::size_t part) {
        sums[part] = {std::vector<double>(2 * n_items, 0), std::vector<double>(2 * n_items, 0)};
        Row row(items, n_communities);
        const std::size_t end = std::min(n_types, (part + 1) * types_per_job);
        for (std::size_t t = part * types_per_job; t < end; ++t)
            losses[part] +=
                row.measure(reach.row(t).data(), wanted.row(t).data(), flows.wanted.data() + t * n_communities,
                            flows.given.data() + t * n_communities, sums[part]);
    });
    for (std::size_t part = 0; part < n_parts; ++part) {
        flows.loss += losses[part];
        for (std::size_t edge = 0; edge < 2 * n_items; ++edge) {
            flows.item_wanted[edge] += sums[part].wanted[edge];
            flows.item_given[edge] += sums[part].given[edge];
        }
    }
    return flows;
}

SecondEdges choose_second(Matrix<const float> wanted, std::span<const float> rate, Matrix<const float> reach,
                          std::span<const std::int32_t> first, Matrix<const std::int32_t> candidates,
                          std::span<const float> offsets, int n_jobs, Watch& watch) {
    const std::size_t n_items = wanted.rows, n_types = wanted.columns, n_communities = reach.rows;
    // What each community gives at weight 0: [community][type].
    std::vector<float> gives(n_communities * n_types);
    for (std::size_t g = 0; g < n_communities; ++g)
        for (std::size_t t = 0; t < n_types; ++t) gives[g * n_types + t] = rate[t] * std::exp(-reach.row(g)[t]);

    SecondEdges found{std::vector<std::int32_t>(n_items, -1), std::vector<float>(n_items, 0),
                      std::vector<float>(n_items, 0)};
    parallel_ranges(n_items, n_jobs, watch, [&](std::size_t begin, std::size_t end) {
        for (std::size_t x = begin; x < end; ++x) {
            watch.check();
            const float* want = wanted.row(x).data();
            const float* reach_first = reach.row(first[x]).data();
            const float* gives_first = gives.data() + static_cast<std::size_t>(first[x]) * n_types;
            const float mass = std::accumulate(want, want + n_types, 0.0f);
            // With the best common weight of both edges, the loss is the way of what is wanted plus the logarithm of
            // what is given.
            const auto loss = [&](const float* reach_other, const float* gives_other, float offset) {
                const float factor = std::exp(-offset);
                float way[width] = {}, all[width] = {};  // sums side by side, for the vectoriser
                std::size_t t = 0;
                const auto add = [&](std::size_t lane, std::size_t type) {
                    way[lane] += want[type] * std::min(reach_first[type], reach_other[type] + offset);
                    all[lane] += std::max(gives_first[type], factor * gives_other[type]);
                };
                for (; t + width <= n_types; t += width)
                    for (std::size_t lane = 0; lane < width; ++lane) add(lane, t + lane);
                for (; t < n_types; ++t) add(0, t);
                return std::accumulate(way, way + width, 0.0f) +
                       mass * std::log(std::accumulate(all, all + width, 0.0f));
            };
            const float alone = loss(reach_first, gives_first, 0);
            for (std::size_t c = 0; c < candidates.columns; ++c) {
                const std::int32_t g = candidates.row(x)[c];
                if (g == first[x]) continue;
                for (const float offset : offsets) {
                    const float gain =
                        alone - loss(reach.row(g).data(), gives.data() + static_cast<std::size_t>(g) * n_types, offset);
                    if (gain > found.gain[x]) {
                        found.gain[x] = gain;
                        found.community[x] = g;
                        found.offset[x] = offset;
                    }
                }
            }
        }
    });
    return found;
}

}  // namespace prodige
