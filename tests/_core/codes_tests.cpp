// Tests of codes: what the core chooses is what trying every hub finds, with any number of threads.
#include "codes.hpp"

#include <cmath>
#include <utility>

#include "checking.hpp"

namespace prodige {
namespace {

struct CodeProblem {
    std::vector<std::int32_t> n_hubs;
    std::vector<float> tables, lengths, target, near_target, near_weight, source_lengths;
    std::vector<std::uint16_t> codes, source_codes;
    std::vector<Vertex> sources, near, items;
    std::size_t n = 41, columns = 23, n_near = 3;

    explicit CodeProblem(Random& random, std::vector<std::int32_t> sizes = {7, 3}) : n_hubs(std::move(sizes)) {
        const auto draw = [&](std::vector<float>& values, std::size_t size) {
            for (std::size_t e = 0; e < size; ++e) values.push_back(static_cast<float>(0.2 + random.unit()));
        };
        for (const std::int32_t size : n_hubs) {
            std::vector<float> table(size * size, 0);
            for (std::int32_t g = 0; g < size; ++g)
                for (std::int32_t h = 0; h < g; ++h)
                    table[g * size + h] = table[h * size + g] = static_cast<float>(random.unit());
            tables.insert(tables.end(), table.begin(), table.end());
        }
        draw(lengths, n);
        draw(target, n * columns);
        draw(near_target, n * n_near);
        draw(near_weight, n * n_near);
        sources = random.vertices(columns, static_cast<Vertex>(n));
        near = random.vertices(n * n_near, static_cast<Vertex>(n));
        near[0] = -1;
        for (std::size_t i = 0; i < n; ++i) {
            items.push_back(static_cast<Vertex>(i));
            for (const std::int32_t size : n_hubs) codes.push_back(random.vertices(1, size)[0]);
        }
        for (std::size_t m = 0; m < n_hubs.size(); ++m)
            for (const Vertex source : sources) source_codes.push_back(codes[source * n_hubs.size() + m]);
        for (const Vertex source : sources) source_lengths.push_back(lengths[source]);
    }

    CodeTask task() const {
        return {{n_hubs, tables, 8, 0.1f},
                {codes.data(), n, n_hubs.size()},
                lengths,
                sources,
                {source_codes.data(), n_hubs.size(), columns},
                source_lengths,
                0,
                {target.data(), n, columns},
                {near.data(), n, n_near},
                {near_target.data(), n, n_near},
                {near_weight.data(), n, n_near},
                items};
    }

    // Weighted squared residuals of one item, with weights of where it stands now.
    double loss(std::size_t item, std::size_t first, std::size_t second) const {
        double total = 0;
        const auto add = [&](Vertex other, double distance, double weight) {
            const auto sum = [&](std::size_t a, std::size_t b) {
                return lengths[item] + lengths[other] + tables[a * 7 + codes[other * 2]] +
                       static_cast<double>(tables[49 + b * 3 + codes[other * 2 + 1]]);
            };
            const double slope = std::sqrt(sum(codes[item * 2], codes[item * 2 + 1])) + distance;
            const double residual = sum(first, second) - distance * distance;
            total += weight / (slope * slope) * residual * residual;
        };
        for (std::size_t c = 0; c < columns; ++c)
            if (sources[c] != static_cast<Vertex>(item)) add(sources[c], target[item * columns + c], 1);
        for (std::size_t k = 0; k < n_near; ++k)
            if (near[item * n_near + k] >= 0)
                add(near[item * n_near + k], near_target[item * n_near + k], near_weight[item * n_near + k]);
        return total;
    }
};

void test_codes_are_the_best_of_all_hubs() {
    Random random(1);
    Watch watch;
    const CodeProblem problem(random);
    const Codes found = choose_codes(problem.task(), {}, 1, 1, watch);
    double before = 0;
    for (std::size_t item = 0; item < problem.n; ++item) {
        const std::size_t a = problem.codes[item * 2], b = problem.codes[item * 2 + 1];
        const std::size_t first = found.codes[item * 2], second = found.codes[item * 2 + 1];
        before += problem.loss(item, a, b);
        for (std::size_t g = 0; g < 7; ++g)
            CHECK(problem.loss(item, first, b) <= problem.loss(item, g, b) * (1 + 1e-4));
        for (std::size_t g = 0; g < 3; ++g)
            CHECK(problem.loss(item, first, second) <= problem.loss(item, first, g) * (1 + 1e-4));
    }
    CHECK(std::abs(found.loss - before) < 1e-4 * before);
}

// Costs that follow from positions lead to the hubs that tables lead to, but for ties.
void test_positions_lead_to_the_same_codes() {
    Random random(3);
    Watch watch;
    CodeProblem problem(random, {60, 40});
    const std::vector<std::int32_t> n_dimensions{2, 1};
    std::vector<float> positions;
    for (std::size_t e = 0; e < 60 * 2 + 40; ++e) positions.push_back(static_cast<float>(random.unit() - 0.5));
    std::size_t entry = 0;
    for (std::size_t m = 0, begin = 0; m < 2; begin += problem.n_hubs[m] * n_dimensions[m], ++m)
        for (std::int32_t g = 0; g < problem.n_hubs[m]; ++g)
            for (std::int32_t h = 0; h < problem.n_hubs[m]; ++h, ++entry) {
                problem.tables[entry] = 0;
                for (std::int32_t d = 0; d < n_dimensions[m]; ++d) {
                    const float along =
                        positions[begin + g * n_dimensions[m] + d] - positions[begin + h * n_dimensions[m] + d];
                    problem.tables[entry] += along * along;
                }
            }
    CodeTask task = problem.task();
    const Codes by_table = choose_codes(task, {}, 1, 1, watch);
    task.factors.n_dimensions = n_dimensions;
    task.factors.positions = positions;
    const Codes by_place = choose_codes(task, {}, 1, 1, watch);
    CHECK(by_place.codes == choose_codes(task, {}, 1, 3, watch).codes);
    std::size_t n_same = 0;
    for (std::size_t e = 0; e < by_table.codes.size(); ++e) n_same += by_table.codes[e] == by_place.codes[e];
    CHECK(n_same >= by_table.codes.size() - 2);
}

void test_codes_have_the_same_bits_for_any_jobs() {
    Random random(2);
    Watch watch;
    const CodeProblem problem(random);
    const CodeTask task = problem.task();
    const Codes alone = choose_codes(task, {0.1f, 0.2f, 8}, 2, 1, watch);
    const FactorSums sums = measure_factor(task, 0, 1, watch);
    for (const int n_jobs : {2, 3}) {
        const Codes together = choose_codes(task, {0.1f, 0.2f, 8}, 2, n_jobs, watch);
        CHECK(alone.codes == together.codes);
        CHECK(alone.lengths == together.lengths);
        const FactorSums other = measure_factor(task, 0, n_jobs, watch);
        CHECK(sums.residuals == other.residuals);
        CHECK(sums.weights == other.weights);
    }
}

}  // namespace

void run_codes_tests(Runner& runner) {
    RUN(test_codes_are_the_best_of_all_hubs);
    RUN(test_positions_lead_to_the_same_codes);
    RUN(test_codes_have_the_same_bits_for_any_jobs);
}

}  // namespace prodige
