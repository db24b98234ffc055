// Tests of alternating least squares: what is solved has no slope left, with any number of threads.
#include "alternating.hpp"

#include <cmath>

#include "checking.hpp"
#include "kernels.hpp"

namespace prodige {
namespace {

struct RowProblem {
    std::size_t n_rows = 37, n_partners = 11, size = 24;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> partners;
    std::vector<float> weights, vectors, gram, ridge;

    explicit RowProblem(Random& random) {
        for (std::size_t r = 0; r < n_rows; ++r) {
            for (std::size_t p = 0; p < n_partners; ++p)
                if (random.unit() < 0.5) {
                    partners.push_back(static_cast<std::int32_t>(p));
                    weights.push_back(static_cast<float>(0.5 + random.unit()));
                }
            offsets.push_back(static_cast<std::int64_t>(partners.size()));
            ridge.push_back(static_cast<float>(0.5 + random.unit()));
        }
        for (std::size_t e = 0; e < n_partners * size; ++e) vectors.push_back(static_cast<float>(random.unit() - 0.5));
        gram.assign(size * size, 0);
        for (std::size_t k = 0; k < size; ++k) gram[k * size + k] = 0.1f;
    }

    RowTask task() const {
        return {{offsets, partners, weights}, {vectors.data(), n_partners, size}, gram, {}, ridge, {nullptr, 0, size}};
    }
};

}  // namespace

void run_alternating_tests(Runner& runner) {
    runner.run("rows that are solved have no slope left, with any number of threads", [] {
        Random random(7);
        const RowProblem problem(random);
        const std::size_t n = problem.size;
        std::vector<float> one(problem.n_rows * n), many(one.size());
        Watch watch;
        solve_rows(problem.task(), {one.data(), problem.n_rows, n}, 1, watch);
        solve_rows(problem.task(), {many.data(), problem.n_rows, n}, 3, watch);
        CHECK(one == many);
        for (std::size_t r = 0; r < problem.n_rows; ++r)
            for (std::size_t k = 0; k < n; ++k) {
                const float* x = one.data() + r * n;
                double slope = x[k] * (0.1 + problem.ridge[r]);
                for (auto p = problem.offsets[r]; p < problem.offsets[r + 1]; ++p) {
                    const float* y = problem.vectors.data() + problem.partners[p] * n;
                    double product = -1;
                    for (std::size_t j = 0; j < n; ++j) product += static_cast<double>(x[j]) * y[j];
                    slope += problem.weights[p] * product * y[k];
                }
                CHECK(std::abs(slope) < 1e-4);
            }
    });
}

}  // namespace prodige
