// Tests of placing: the hub of least cost and the length that is left are what plain loops find, for any threads.
#include "placing.hpp"

#include <cmath>

#include "checking.hpp"

namespace prodige {
namespace {

struct PlacingProblem {
    std::vector<std::int32_t> n_hubs{5, 3}, n_dimensions{2, 1};
    std::vector<float> target, weights, offsets, slopes, constants, shares;
    std::size_t n = 37, anchors = 21;

    explicit PlacingProblem(Random& random) {
        const auto draw = [&](std::vector<float>& values, std::size_t size) {
            for (std::size_t e = 0; e < size; ++e) values.push_back(static_cast<float>(random.unit() - 0.3));
        };
        draw(target, n * anchors);
        for (float& value : target) value = std::abs(value);
        draw(weights, 3 * anchors);
        draw(offsets, 3);
        draw(slopes, 5 * 2 + 3 * 1);
        draw(constants, 8);
        draw(shares, 8);
    }

    PlacingMap map() const {
        return {8, {weights.data(), 3, anchors}, offsets, n_hubs, n_dimensions, slopes, constants, shares, 0.25f};
    }

    double place(std::size_t item, std::size_t coordinate) const {
        double total = -offsets[coordinate];
        for (std::size_t a = 0; a < anchors; ++a)
            total += weights[coordinate * anchors + a] * std::pow(target[item * anchors + a], 2);
        return total;
    }

    double cost(std::size_t item, std::size_t factor, std::size_t hub) const {
        if (factor == 1) return constants[5 + hub] + slopes[10 + hub] * place(item, 2);
        return constants[hub] + slopes[hub * 2] * place(item, 0) + slopes[hub * 2 + 1] * place(item, 1);
    }
};

void test_hubs_are_those_of_least_cost() {
    Random random(3);
    Watch watch;
    const PlacingProblem problem(random);
    const Places found = place(problem.map(), {problem.target.data(), problem.n, problem.anchors}, 1, watch);
    for (std::size_t item = 0; item < problem.n; ++item) {
        double length = 0.25;
        for (std::size_t a = 0; a < problem.anchors; ++a)
            length += std::pow(problem.target[item * problem.anchors + a], 2) / static_cast<double>(problem.anchors);
        for (std::size_t factor = 0; factor < 2; ++factor) {
            const std::size_t hub = found.codes[item * 2 + factor];
            for (std::size_t other = 0; other < static_cast<std::size_t>(problem.n_hubs[factor]); ++other)
                CHECK(problem.cost(item, factor, hub) <= problem.cost(item, factor, other) + 1e-4);
            length -= problem.shares[factor * 5 + hub];
        }
        CHECK(std::abs(found.lengths[item] - length) < 1e-5);
    }
}

void test_places_have_the_same_bits_for_any_jobs() {
    Random random(4);
    Watch watch;
    const PlacingProblem problem(random);
    const Matrix<const float> target{problem.target.data(), problem.n, problem.anchors};
    const Places alone = place(problem.map(), target, 1, watch);
    for (const int n_jobs : {2, 3}) {
        const Places together = place(problem.map(), target, n_jobs, watch);
        CHECK(alone.codes == together.codes);
        CHECK(alone.lengths == together.lengths);
    }
}

void test_rows_are_measured() {
    Random random(5);
    Watch watch;
    const PlacingProblem problem(random);
    const Matrix<const float> rows{problem.target.data(), problem.n, problem.anchors};
    const Matrix<const float> anchors{problem.weights.data(), 3, problem.anchors};
    std::vector<float> found(problem.n * 3);
    measure_rows(rows, anchors, {found.data(), problem.n, 3}, 2, watch);
    for (std::size_t i = 0; i < problem.n; ++i)
        for (std::size_t a = 0; a < 3; ++a) {
            double squares = 0;
            for (std::size_t d = 0; d < problem.anchors; ++d)
                squares += std::pow(static_cast<double>(rows.row(i)[d]) - anchors.row(a)[d], 2);
            CHECK(std::abs(found[i * 3 + a] - std::sqrt(squares)) < 1e-5);
        }
}

// What comes of a row is the same alone, among others and in any number of threads.
void test_rows_are_multiplied() {
    Random random(6);
    Watch watch;
    const PlacingProblem problem(random);
    const Matrix<const float> rows{problem.target.data(), problem.n, problem.anchors};
    const Matrix<const float> others{problem.weights.data(), 3, problem.anchors};
    std::vector<float> found(problem.n * 3), alone(3), turned(problem.n * 3);
    multiply_rows(rows, others, {found.data(), problem.n, 3}, 1, watch);
    multiply_rows(others, rows, {turned.data(), 3, problem.n}, 2, watch);
    for (std::size_t i = 0; i < problem.n; ++i) {
        multiply_rows({rows.row(i).data(), 1, problem.anchors}, others, {alone.data(), 1, 3}, 1, watch);
        for (std::size_t a = 0; a < 3; ++a) {
            double sum = 0;
            for (std::size_t d = 0; d < problem.anchors; ++d)
                sum += static_cast<double>(rows.row(i)[d]) * others.row(a)[d];
            CHECK(std::abs(found[i * 3 + a] - sum) < 1e-5);
            CHECK(alone[a] == found[i * 3 + a]);
            CHECK(turned[a * problem.n + i] == found[i * 3 + a]);
        }
    }
}

}  // namespace

void run_placing_tests(Runner& runner) {
    RUN(test_hubs_are_those_of_least_cost);
    RUN(test_places_have_the_same_bits_for_any_jobs);
    RUN(test_rows_are_measured);
    RUN(test_rows_are_multiplied);
}

}  // namespace prodige
