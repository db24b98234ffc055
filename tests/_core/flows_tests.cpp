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
    std::size_t n_types, n_communities, n_items;
    std::vector<float> reach, wanted, first_weight, second_weight;
    std::vector<std::int32_t> first, second;

    FlowTask(Random& random, std::size_t types, std::size_t communities, std::size_t items)
        : n_types(types),
          n_communities(communities),
          n_items(items),
          reach(draw(random, types * communities, 6)),
          wanted(draw(random, types * items, 3)),
          first_weight(draw(random, items, 2)),
          second_weight(draw(random, items, 2)),
          first(random.vertices(items, static_cast<Vertex>(communities))),
          second(random.vertices(items, static_cast<Vertex>(communities))) {
        for (std::size_t x = 0; x < items; x += 3) second[x] = -1;
        for (float& wish : wanted)
            if (random.chance(0.5)) wish = 0;
        context = std::to_string(types) + " types, " + std::to_string(communities) + " communities, " +
                  std::to_string(items) + " items";
    }

    Flows measure(int n_jobs, Watch& watch) const {
        return measure_flows({reach.data(), n_types, n_communities}, {first, second, first_weight, second_weight},
                             {wanted.data(), n_types, n_items}, n_jobs, watch);
    }

    // Item by item: the shorter of its two ways, and its share of the softmax.
    Flows enumerate() const {
        Flows flows{0, std::vector<double>(n_types * n_communities), std::vector<double>(n_types * n_communities),
                    std::vector<double>(2 * n_items), std::vector<double>(2 * n_items)};
        for (std::size_t t = 0; t < n_types; ++t) {
            std::vector<double> distance(n_items);
            std::vector<std::size_t> by(n_items);
            double total = 0, mass = 0;
            for (std::size_t x = 0; x < n_items; ++x) {
                const auto way = [&](std::int32_t g, float weight) {
                    return static_cast<double>(reach[t * n_communities + g]) + weight;
                };
                distance[x] = way(first[x], first_weight[x]);
                if (second[x] >= 0 && way(second[x], second_weight[x]) < distance[x]) {
                    distance[x] = way(second[x], second_weight[x]);
                    by[x] = 1;
                }
                total += std::exp(-distance[x]);
                mass += wanted[t * n_items + x];
            }
            for (std::size_t x = 0; x < n_items; ++x) {
                const double wish = wanted[t * n_items + x], gift = mass * std::exp(-distance[x]) / total;
                const std::size_t g = t * n_communities + (by[x] ? second[x] : first[x]);
                flows.loss += wish * (distance[x] + std::log(total));
                flows.wanted[g] += wish;
                flows.given[g] += gift;
                flows.item_wanted[2 * x + by[x]] += wish;
                flows.item_given[2 * x + by[x]] += gift;
            }
        }
        return flows;
    }
};

// Fewer types than a job takes, just as many, and more.
void test_flows() {
    Random random(91);
    Watch watch;
    for (const std::size_t n_types : {1, 7, 64, 65, 200})
        for (const std::size_t n_items : {1, 40}) {
            const FlowTask task(random, n_types, n_items == 1 ? 1 : 9, n_items);
            const Flows flows = task.measure(1, watch), truth = task.enumerate();
            CHECK(near(flows.loss, truth.loss));
            CHECK(all_near(flows.wanted, truth.wanted) && all_near(flows.given, truth.given));
            CHECK(all_near(flows.item_wanted, truth.item_wanted) && all_near(flows.item_given, truth.item_given));
            const auto sum = [](const std::vector<double>& values) {
                return std::accumulate(values.begin(), values.end(), 0.0);
            };
            CHECK(near(sum(flows.given), sum(flows.wanted)));  // users get as much as they want
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
        CHECK(flows.item_given[2 * x] > 0 && flows.item_given[2 * x + 1] == 0);  // the first edge is taken
}

void test_flows_have_the_same_bits_for_any_jobs() {
    Random random(93);
    Watch watch;
    const FlowTask task(random, 300, 12, 50);
    const Flows one = task.measure(1, watch);
    for (const int n_jobs : {2, 3, 8}) {
        const Flows other = task.measure(n_jobs, watch);
        CHECK(same_bits(std::vector{other.loss}, std::vector{one.loss}));
        CHECK(same_bits(other.wanted, one.wanted) && same_bits(other.given, one.given));
        CHECK(same_bits(other.item_wanted, one.item_wanted) && same_bits(other.item_given, one.item_given));
    }
}

struct SecondTask {
    std::size_t n_items, n_types, n_communities, n_candidates;
    std::vector<float> wanted, rate, reach, offsets{0, 0.5f, 1.5f, 4};
    std::vector<std::int32_t> first, candidates;

    SecondTask(Random& random, std::size_t items, std::size_t types, std::size_t communities, std::size_t choices)
        : n_items(items),
          n_types(types),
          n_communities(communities),
          n_candidates(choices),
          wanted(draw(random, items * types, 1)),
          rate(draw(random, types, 5)),
          reach(draw(random, communities * types, 4)),
          first(random.vertices(items, static_cast<Vertex>(communities))),
          candidates(random.vertices(items * choices, static_cast<Vertex>(communities))) {
        context = std::to_string(types) + " types, " + std::to_string(choices) + " candidates";
    }

    SecondEdges choose(int n_jobs, Watch& watch) const {
        return choose_second({wanted.data(), n_items, n_types}, rate, {reach.data(), n_communities, n_types}, first,
                             {candidates.data(), n_items, n_candidates}, offsets, n_jobs, watch);
    }

    // Of an item with two edges, at the weight of both that is best: there, its share of all gifts is what is wanted.
    double loss(std::size_t x, std::int32_t other, double offset) const {
        double way = 0, gift = 0, mass = 0;
        for (std::size_t t = 0; t < n_types; ++t) {
            const double d = std::min<double>(reach[first[x] * n_types + t], reach[other * n_types + t] + offset);
            way += wanted[x * n_types + t] * d;
            mass += wanted[x * n_types + t];
            gift += rate[t] * std::exp(-d);
        }
        return way + mass * std::log(gift);
    }
};

void test_second_edges() {
    Random random(94);
    Watch watch;
    for (const std::size_t n_types : {1, 16, 37})
        for (const std::size_t n_candidates : {1, 6}) {
            const SecondTask task(random, 60, n_types, 8, n_candidates);
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
