#include "pooling.hpp"

#include <algorithm>
#include <vector>

namespace prodige {

void pool(const Texts& texts, Matrix<const float> products, std::size_t width, Matrix<float> out,
          Matrix<std::int32_t> best, int n_jobs, Watch& watch) {
    const std::size_t n_filters = out.columns;
    const auto half = static_cast<std::int64_t>(width / 2);
    constexpr std::size_t per_job = 16;
    const std::size_t n_groups = (texts.size() + per_job - 1) / per_job;
    parallel_for(n_groups, n_jobs, watch, [&](std::size_t, std::size_t group) {
        std::vector<float> sums(n_filters);
        const std::size_t last = std::min(texts.size(), (group + 1) * per_job);
        for (std::size_t t = group * per_job; t < last; ++t) {
            const std::int32_t* tokens = texts.tokens.data() + texts.offsets[t];
            const std::int64_t length = texts.offsets[t + 1] - texts.offsets[t];
            float* highest = out.row(t).data();
            std::int32_t* where = best.row(t).data();
            std::fill_n(where, n_filters, 0);
            if (length == 0) {
                std::fill_n(highest, n_filters, 0.0f);
                continue;
            }
            std::fill_n(highest, n_filters, -unreached<float>);
            float* sum = sums.data();
            for (std::int64_t position = 0; position < length; ++position) {
                std::fill_n(sum, n_filters, 0.0f);
                const std::int64_t from = std::max<std::int64_t>(0, half - position);
                const std::int64_t to = std::min(static_cast<std::int64_t>(width), length + half - position);
                for (std::int64_t k = from; k < to; ++k) {
                    const float* row = products.row(tokens[position + k - half]).data() + k * n_filters;
                    for (std::size_t f = 0; f < n_filters; ++f) sum[f] += row[f];
                }
                const auto here = static_cast<std::int32_t>(position);
                for (std::size_t f = 0; f < n_filters; ++f) {
                    const bool better = sum[f] > highest[f];
                    highest[f] = better ? sum[f] : highest[f];
                    where[f] = better ? here : where[f];
                }
            }
        }
    });
}

void pool_backward(const Texts& texts, Matrix<const float> gradient, Matrix<const std::int32_t> best, std::size_t width,
                   Matrix<float> out) {
    const std::size_t n_filters = gradient.columns;
    const auto half = static_cast<std::int64_t>(width / 2);
    for (std::size_t t = 0; t < texts.size(); ++t) {
        const std::int32_t* tokens = texts.tokens.data() + texts.offsets[t];
        const std::int64_t length = texts.offsets[t + 1] - texts.offsets[t];
        if (length == 0) continue;
        for (std::size_t f = 0; f < n_filters; ++f) {
            const std::int64_t position = best.row(t)[f];
            const float incoming = gradient.row(t)[f];
            if (incoming == 0) continue;
            const std::int64_t from = std::max<std::int64_t>(0, half - position);
            const std::int64_t to = std::min(static_cast<std::int64_t>(width), length + half - position);
            for (std::int64_t k = from; k < to; ++k)
                out.row(tokens[position + k - half])[k * n_filters + f] += incoming;
        }
    }
}

}  // namespace prodige
