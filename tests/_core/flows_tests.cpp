// Tests of flows: what the core adds up in one pass is what enumeration in double precision finds.
#include "flows.hpp"

#include <algorithm>
#include <numeric>

#include "checking.hpp"

namespace prodige {
namespace {

// The core takes exponentials in single precision.
bool near(double value, double truth) { return std::abs(value - truth) <= 1e-4 * std::abs(truth) + 1e-5; }

bool all_near(const std::vector<double>& values, const std::vector<double>& truth) {
    return std::equal(values.begin(), values.end(), truth.begin(), truth.end(), near);
}

std::vector<float> draw(Random& random, std::size_t size, double scale) {
    std::vector<float> values(size);
    for (float& value : values) value = static_cast<float>(scale * random.unit());
    return values;
}

struct FlowTask {
    std::size_t n_user_clusters, n_item_clusters, n_items;
    std::vector<float> reach, target, first_weight, second_weight;
    std::vector<std::int32_t> first, second;

    FlowTask(Random& random, std::size_t types, std::size_t communities, std::size_t items)
        : n_user_clusters(types),
          n_item_clusters(communities),
          n_items(items),
          reach(draw(random, types * communities, 6)),
          target(draw(random, types * items, 3)),
          first_weight(draw(random, items, 2)),
          second_weight(draw(random, items, 2)),
          first(random.vertices(items, static_cast<Vertex>(communities))),
          second(random.vertices(items, static_cast<Vertex>(communities))) {
        for (std::size_t x = 0; x < items; x += 3) second[x] = -1;
        for (float& wish : target)
            if (random.chance(0.5)) wish = 0;
        context = std::to_string(types) + " types, " + std::to_string(communities) + " communities, " +
                  std::to_string(items) + " items";
    }

    Flows measure(int n_jobs, Watch& watch) const {
        return measure_flows({reach.data(), n_user_clusters, n_item_clusters},
                             {first, second, first_weight, second_weight}, {target.data(), n_user_clusters, n_items},
                             n_jobs, watch);
    }

    // Item by item: the shorter of its two paths, and its share of the softmax.
    Flows enumerate() const {
        Flows flows{0, std::vector<double>(n_user_clusters * n_item_clusters),
                    std::vector<double>(n_user_clusters * n_item_clusters), std::vector<double>(2 * n_items),
                    std::vector<double>(2 * n_items)};
        for (std::size_t t = 0; t < n_user_clusters; ++t) {
            std::vector<double> distance(n_items);
            std::vector<std::size_t> by(n_items);
            double total = 0, mass = 0;
            for (std::size_t x = 0; x < n_items; ++x) {
                const auto path = [&](std::int32_t g, float weight) {
                    return static_cast<double>(reach[t * n_item_clusters + g]) + weight;
                };
                distance[x] = path(first[x], first_weight[x]);
                if (second[x] >= 0 && path(second[x], second_weight[x]) < distance[x]) {
                    distance[x] = path(second[x], second_weight[x]);
                    by[x] = 1;
                }
                total += std::exp(-distance[x]);
                mass += target[t * n_items + x];
            }
            for (std::size_t x = 0; x < n_items; ++x) {
                const double wish = target[t * n_items + x], gift = mass * std::exp(-distance[x]) / total;
                const std::size_t g = t * n_item_clusters + (by[x] ? second[x] : first[x]);
                flows.loss += wish * (distance[x] + std::log(total));
                flows.target[g] += wish;
                flows.predicted[g] += gift;
                flows.item_target[2 * x + by[x]] += wish;
                flows.item_predicted[2 * x + by[x]] += gift;
            }
        }
        return flows;
    }
};

// Fewer types than a job takes, just as many, and more.
void test_flows() {
    Random random(91);
    Watch watch;
    for (const std::size_t n_user_clusters : {1, 7, 64, 65, 200})
        for (const std::size_t n_items : {1, 40}) {
            const FlowTask task(random, n_user_clusters, n_items == 1 ? 1 : 9, n_items);
            const Flows flows = task.measure(1, watch), truth = task.enumerate();
            CHECK(near(flows.loss, truth.loss));
            CHECK(all_near(flows.target, truth.target) && all_near(flows.predicted, truth.predicted));
            CHECK(all_near(flows.item_target, truth.item_target) &&
                  all_near(flows.item_predicted, truth.item_predicted));
            const auto sum = [](const std::vector<double>& values) {
                return std::accumulate(values.begin(), values.end(), 0.0);
            };
            CHECK(near(sum(flows.predicted), sum(flows.target)));  // users get as much as they want
        }
}

void test_flows_of_equal_ways() {
    Random random(92);
    Watch watch;
    FlowTask task(random, 3, 5, 20);
    task.second = task.first;
    task.second_weight = task.first_weight;
    const Flows flows = task.measure(1, watch);
    for (std::size_t x = 0; x < task.n_items; ++x)
        CHECK(flows.item_predicted[2 * x] > 0 && flows.item_predicted[2 * x + 1] == 0);  // the first edge is taken
}

void test_flows_have_the_same_bits_for_any_jobs() {
    Random random(93);
    Watch watch;
    const FlowTask task(random, 300, 12, 50);
    const Flows one = task.measure(1, watch);
    for (const int n_jobs : {2, 3, 8}) {
        const Flows other = task.measure(n_jobs, watch);
        CHECK(same_bits(std::vector{other.loss}, std::vector{one.loss}));
        CHECK(same_bits(other.target, one.target) && same_bits(other.predicted, one.predicted));
        CHECK(same_bits(other.item_target, one.item_target) && same_bits(other.item_predicted, one.item_predicted));
    }
}

struct SecondTask {
    std::size_t n_items, n_user_clusters, n_item_clusters, n_candidates;
    std::vector<float> target, rate, reach, offsets{0, 0.5f, 1.5f, 4};
    std::vector<std::int32_t> first, candidates;

    SecondTask(Random& random, std::size_t items, std::size_t types, std::size_t communities, std::size_t choices)
        : n_items(items),
          n_user_clusters(types),
          n_item_clusters(communities),
          n_candidates(choices),
          target(draw(random, items * types, 1)),
          rate(draw(random, types, 5)),
          reach(draw(random, communities * types, 4)),
          first(random.vertices(items, static_cast<Vertex>(communities))),
          candidates(random.vertices(items * choices, static_cast<Vertex>(communities))) {
        context = std::to_string(types) + " types, " + std::to_string(choices) + " candidates";
    }

    SecondEdges choose(int n_jobs, Watch& watch) const {
        return choose_second({target.data(), n_items, n_user_clusters}, rate,
                             {reach.data(), n_item_clusters, n_user_clusters}, first,
                             {candidates.data(), n_items, n_candidates}, offsets, n_jobs, watch);
    }

    // Of an item with two edges, at the weight of both that is best: there, its share of all gifts is what is target.
    double loss(std::size_t x, std::int32_t other, double offset) const {
        double path = 0, gift = 0, mass = 0;
        for (std::size_t t = 0; t < n_user_clusters; ++t) {
            const double d =
                std::min<double>(reach[first[x] * n_user_clusters + t], reach[other * n_user_clusters + t] + offset);
            path += target[x * n_user_clusters + t] * d;
            mass += target[x * n_user_clusters + t];
            gift += rate[t] * std::exp(-d);
        }
        return path + mass * std::log(gift);
    }
};

void test_second_edges() {
    Random random(94);
    Watch watch;
    for (const std::size_t n_user_clusters : {1, 16, 37})
        for (const std::size_t n_candidates : {1, 6}) {
            const SecondTask task(random, 60, n_user_clusters, 8, n_candidates);
            const SecondEdges found = task.choose(1, watch);
            for (std::size_t x = 0; x < task.n_items; ++x) {
                const double alone = task.loss(x, task.first[x], 0);
                const std::span<const std::int32_t> mine(&task.candidates[x * n_candidates], n_candidates);
                double best = 0;
                for (const std::int32_t g : mine)
                    for (const float offset : task.offsets) best = std::max(best, alone - task.loss(x, g, offset));
                const double rounding = 1e-5 * (1 + std::abs(alone));
                CHECK(std::abs(found.gain[x] - best) <= rounding);
                if (found.community[x] < 0) {
                    CHECK(found.gain[x] == 0 && found.offset[x] == 0);
                    continue;
                }
                CHECK(found.community[x] != task.first[x]);
                CHECK(std::find(mine.begin(), mine.end(), found.community[x]) != mine.end());
                const double gain = alone - task.loss(x, found.community[x], found.offset[x]);
                CHECK(std::abs(gain - best) <= rounding);
            }
            for (const int n_jobs : {2, 3, 8}) {
                const SecondEdges other = task.choose(n_jobs, watch);
                CHECK(same_bits(other.community, found.community) && same_bits(other.offset, found.offset) &&
                      same_bits(other.gain, found.gain));
            }
        }
}

void test_second_edges_that_help_nobody() {
    Random random(95);
    Watch watch;
    SecondTask task(random, 30, 5, 4, 3);
    for (std::size_t place = 0; place < task.candidates.size(); ++place)
        task.candidates[place] = task.first[place / task.n_candidates];
    const SecondEdges found = task.choose(2, watch);
    CHECK(std::count(found.community.begin(), found.community.end(), -1) == 30);
    CHECK(SecondTask(random, 0, 5, 4, 3).choose(2, watch).community.empty());
}

void test_cancelled_flows() {
    Random random(96);
    const FlowTask flows(random, 1000, 10, 50);
    const SecondTask seconds(random, 500, 20, 10, 8);
    for (const int n_jobs : {1, 3})
        check_cancelled({
            [&](Watch& watch) { flows.measure(n_jobs, watch); },
            [&](Watch& watch) { seconds.choose(n_jobs, watch); },
        });
}

}  // namespace

void run_flows_tests(Runner& runner) {
    RUN(test_flows);
    RUN(test_flows_of_equal_ways);
    RUN(test_flows_have_the_same_bits_for_any_jobs);
    RUN(test_second_edges);
    RUN(test_second_edges_that_help_nobody);
    RUN(test_cancelled_flows);
}

}  // namespace prodige
