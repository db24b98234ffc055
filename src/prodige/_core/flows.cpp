#include "flows.hpp"

#include <cmath>
#include <numeric>

namespace prodige {

namespace {

// Types whose sums over items are kept together: few enough to share work, many enough to save memory.
constexpr std::size_t types_per_job = 64;

constexpr std::size_t width = 16;

struct ItemSums {
    std::vector<double> target, predicted;
};

// One user cluster: probabilities of all items, then the sums over its item clusters and over the edges of items.
class Row {
   public:
    Row(const Membership& items, std::size_t n_item_clusters)
        : items_(items),
          near_(n_item_clusters + 1),
          first_(items.first.size()),
          second_(items.first.size()),
          share_(items.first.size()),
          is_second_(items.first.size()) {
        for (std::size_t x = 0; x < first_.size(); ++x) {
            first_[x] = std::exp(-items.first_weight[x]);
            second_[x] = items.second[x] < 0 ? 0.0f : std::exp(-items.second_weight[x]);
        }
    }

    double measure(const float* reach, const float* target, double* to_target, double* to_predicted, ItemSums& sums) {
        const std::size_t n_items = items_.first.size();
        // Products of exponentials instead of exponentials of sums: one for each item cluster, not one for each item.
        for (std::size_t g = 0; g + 1 < near_.size(); ++g) near_[g] = std::exp(-reach[g]);
        double total = 0, mass = 0, cost = 0;
        for (std::size_t x = 0; x < n_items; ++x) {
            const float by_first = near_[items_.first[x]] * first_[x];
            const std::int32_t other = items_.second[x];
            const float by_second = other < 0 ? 0.0f : near_[other] * second_[x];
            is_second_[x] = by_second > by_first;
            share_[x] = is_second_[x] ? by_second : by_first;
            total += share_[x];
            mass += target[x];
            cost += target[x] * (is_second_[x] ? reach[other] + items_.second_weight[x]
                                               : reach[items_.first[x]] + items_.first_weight[x]);
        }
        const double rate = mass / total;
        for (std::size_t x = 0; x < n_items; ++x) {
            const std::int32_t g = is_second_[x] ? items_.second[x] : items_.first[x];
            const double is_given = rate * share_[x];
            to_target[g] += target[x];
            to_predicted[g] += is_given;
            sums.target[2 * x + is_second_[x]] += target[x];
            sums.predicted[2 * x + is_second_[x]] += is_given;
        }
        return cost + mass * std::log(total);
    }

   private:
    const Membership& items_;
    std::vector<float> near_, first_, second_, share_;
    std::vector<std::uint8_t> is_second_;
};

}  // namespace

Flows measure_flows(Matrix<const float> reach, const Membership& items, Matrix<const float> target, int n_jobs,
                    Watch& watch) {
    const std::size_t n_user_clusters = reach.rows, n_item_clusters = reach.columns, n_items = items.first.size();
    Flows flows;
    flows.target.assign(n_user_clusters * n_item_clusters, 0);
    flows.predicted.assign(n_user_clusters * n_item_clusters, 0);
    flows.item_target.assign(2 * n_items, 0);
    flows.item_predicted.assign(2 * n_items, 0);
    const std::size_t n_parts = (n_user_clusters + types_per_job - 1) / types_per_job;
    std::vector<ItemSums> sums(n_parts);
    std::vector<double> losses(n_parts, 0);
    parallel_for(n_parts, n_jobs, watch, [&](std::size_t, std::size_t part) {
        sums[part] = {std::vector<double>(2 * n_items, 0), std::vector<double>(2 * n_items, 0)};
        Row row(items, n_item_clusters);
        const std::size_t end = std::min(n_user_clusters, (part + 1) * types_per_job);
        for (std::size_t t = part * types_per_job; t < end; ++t)
            losses[part] +=
                row.measure(reach.row(t).data(), target.row(t).data(), flows.target.data() + t * n_item_clusters,
                            flows.predicted.data() + t * n_item_clusters, sums[part]);
    });
    for (std::size_t part = 0; part < n_parts; ++part) {
        flows.loss += losses[part];
        for (std::size_t edge = 0; edge < 2 * n_items; ++edge) {
            flows.item_target[edge] += sums[part].target[edge];
            flows.item_predicted[edge] += sums[part].predicted[edge];
        }
    }
    return flows;
}

SecondEdges choose_second(Matrix<const float> target, std::span<const float> rate, Matrix<const float> reach,
                          std::span<const std::int32_t> first, Matrix<const std::int32_t> candidates,
                          std::span<const float> offsets, int n_jobs, Watch& watch) {
    const std::size_t n_items = target.rows, n_user_clusters = target.columns, n_item_clusters = reach.rows;
    // What each item cluster gives at weight 0: [item cluster][user cluster].
    std::vector<float> gives(n_item_clusters * n_user_clusters);
    for (std::size_t g = 0; g < n_item_clusters; ++g)
        for (std::size_t t = 0; t < n_user_clusters; ++t)
            gives[g * n_user_clusters + t] = rate[t] * std::exp(-reach.row(g)[t]);

    SecondEdges found{std::vector<std::int32_t>(n_items, -1), std::vector<float>(n_items, 0),
                      std::vector<float>(n_items, 0)};
    parallel_ranges(n_items, n_jobs, watch, [&](std::size_t begin, std::size_t end) {
        for (std::size_t x = begin; x < end; ++x) {
            watch.check();
            const float* want = target.row(x).data();
            const float* reach_first = reach.row(first[x]).data();
            const float* gives_first = gives.data() + static_cast<std::size_t>(first[x]) * n_user_clusters;
            const float mass = std::accumulate(want, want + n_user_clusters, 0.0f);
            // With the best common weight of both edges, the loss is the path of the targets plus the logarithm of
            // what is predicted.
            const auto loss = [&](const float* reach_other, const float* gives_other, float offset) {
                const float factor = std::exp(-offset);
                float path[width] = {}, all[width] = {};  // sums side by side, for the vectoriser
                std::size_t t = 0;
                const auto add = [&](std::size_t lane, std::size_t type) {
                    path[lane] += want[type] * std::min(reach_first[type], reach_other[type] + offset);
                    all[lane] += std::max(gives_first[type], factor * gives_other[type]);
                };
                for (; t + width <= n_user_clusters; t += width)
                    for (std::size_t lane = 0; lane < width; ++lane) add(lane, t + lane);
                for (; t < n_user_clusters; ++t) add(0, t);
                return std::accumulate(path, path + width, 0.0f) +
                       mass * std::log(std::accumulate(all, all + width, 0.0f));
            };
            const float alone = loss(reach_first, gives_first, 0);
            for (std::size_t c = 0; c < candidates.columns; ++c) {
                const std::int32_t g = candidates.row(x)[c];
                if (g == first[x]) continue;
                for (const float offset : offsets) {
                    const float gain =
                        alone -
                        loss(reach.row(g).data(), gives.data() + static_cast<std::size_t>(g) * n_user_clusters, offset);
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
