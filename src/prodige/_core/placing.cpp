#include "placing.hpp"

#include <algorithm>
#include <cmath>

#include "kernels.hpp"
#include "memory.hpp"

namespace prodige {

namespace {

using Floats = std::vector<float, LargeAllocator<float>>;

// Rows first to first + lanes - 1 side by side; the last one stands in for those beyond.
void take_rows(Matrix<const float> rows, std::size_t first, float* out) {
    for (std::size_t l = 0; l < lanes; ++l) {
        const float* row = rows.row(std::min(first + l, rows.rows - 1)).data();
        for (std::size_t c = 0; c < rows.columns; ++c) out[c * lanes + l] = row[c];
    }
}

// Runs job(first row, rows) for all blocks of `lanes` rows, each thread with scratch of its own.
template <class MakeJob>
void for_blocks(std::size_t n, int n_jobs, Watch& watch, MakeJob&& make_job) {
    parallel_ranges((n + lanes - 1) / lanes, n_jobs, watch, [&](std::size_t first, std::size_t last) {
        auto job = make_job();
        for (std::size_t b = first; b < last; ++b) {
            watch.check();
            job(b * lanes, std::min(lanes, n - b * lanes));
        }
    });
}

// One block of items on its way from distances to codes.
class Placer {
   public:
    Placer(const PlacingMap& map, Matrix<const float> target)
        : map_(map), target_(target), values_(target.columns * lanes), places_(map.weights.rows * lanes) {
        costs_.resize(*std::max_element(map.n_hubs.begin(), map.n_hubs.end()) * lanes);
    }

    void take(std::size_t first) {
        take_rows(target_, first, values_.data());
        kernels_.take_powers(target_.columns, map_.quarters, values_.data());
        kernels_.multiply(map_.weights.data, map_.weights.rows, target_.columns, values_.data(), places_.data());
        for (std::size_t k = 0; k < map_.weights.rows; ++k)
            for (std::size_t l = 0; l < lanes; ++l) places_[k * lanes + l] -= map_.offsets[k];
        for (std::size_t l = 0; l < lanes; ++l) {
            double sum = 0;
            for (std::size_t c = 0; c < target_.columns; ++c) sum += values_[c * lanes + l];
            lengths_[l] = static_cast<float>(sum / static_cast<double>(target_.columns)) + map_.rest;
        }
    }

    // The nearest hubs of a factor, whose coordinates and hubs begin at these places.
    void choose(std::size_t factor, std::size_t coordinate, std::size_t hub, std::size_t slope, std::int32_t* best) {
        const std::size_t n_hubs = map_.n_hubs[factor], size = map_.n_dimensions[factor];
        kernels_.multiply(map_.slopes.data() + slope, n_hubs, size, places_.data() + coordinate * lanes, costs_.data());
        float least[lanes];
        for (std::size_t l = 0; l < lanes; ++l) least[l] = INFINITY;
        for (std::size_t l = 0; l < lanes; ++l) best[l] = 0;
        for (std::size_t h = 0; h < n_hubs; ++h)
            for (std::size_t l = 0; l < lanes; ++l) {
                const float cost = costs_[h * lanes + l] + map_.constants[hub + h];
                best[l] = cost < least[l] ? static_cast<std::int32_t>(h) : best[l];
                least[l] = cost < least[l] ? cost : least[l];
            }
        for (std::size_t l = 0; l < lanes; ++l) lengths_[l] -= map_.shares[hub + best[l]];
    }

    float length(std::size_t l) const { return lengths_[l]; }

   private:
    const PlacingMap& map_;
    const Matrix<const float> target_;
    const CodeKernels& kernels_ = code_kernels();
    Floats values_, places_, costs_;  // [anchor, coordinate or hub][lane]
    float lengths_[lanes];
};

}  // namespace

Places place(const PlacingMap& map, Matrix<const float> target, int n_jobs, Watch& watch) {
    const std::size_t n_factors = map.n_hubs.size();
    Places result{std::vector<std::uint16_t>(target.rows * n_factors), std::vector<float>(target.rows)};
    for_blocks(target.rows, n_jobs, watch, [&] {
        return [&, placer = Placer(map, target)](std::size_t first, std::size_t count) mutable {
            placer.take(first);
            std::size_t coordinate = 0, hub = 0, slope = 0;
            for (std::size_t m = 0; m < n_factors; ++m) {
                std::int32_t best[lanes];
                placer.choose(m, coordinate, hub, slope, best);
                for (std::size_t l = 0; l < count; ++l)
                    result.codes[(first + l) * n_factors + m] = static_cast<std::uint16_t>(best[l]);
                coordinate += map.n_dimensions[m];
                hub += map.n_hubs[m];
                slope += static_cast<std::size_t>(map.n_hubs[m]) * map.n_dimensions[m];
            }
            for (std::size_t l = 0; l < count; ++l) result.lengths[first + l] = placer.length(l);
        };
    });
    return result;
}

void measure_rows(Matrix<const float> rows, Matrix<const float> anchors, Matrix<float> out, int n_jobs, Watch& watch) {
    const CodeKernels& kernels = code_kernels();
    for_blocks(rows.rows, n_jobs, watch, [&] {
        return [&, block = Floats(rows.columns * lanes), squares = Floats(anchors.rows * lanes)](
                   std::size_t first, std::size_t count) mutable {
            take_rows(rows, first, block.data());
            kernels.square_distances(anchors.data, anchors.rows, anchors.columns, block.data(), squares.data());
            for (std::size_t l = 0; l < count; ++l) {
                float* row = out.row(first + l).data();
                for (std::size_t a = 0; a < anchors.rows; ++a) row[a] = std::sqrt(squares[a * lanes + l]);
            }
        };
    });
}

void multiply_rows(Matrix<const float> rows, Matrix<const float> others, Matrix<float> out, int n_jobs, Watch& watch) {
    const CodeKernels& kernels = code_kernels();
    for_blocks(others.rows, n_jobs, watch, [&] {
        return [&, block = Floats(others.columns * lanes), sums = Floats(rows.rows * lanes)](
                   std::size_t first, std::size_t count) mutable {
            take_rows(others, first, block.data());
            kernels.multiply(rows.data, rows.rows, rows.columns, block.data(), sums.data());
            for (std::size_t r = 0; r < rows.rows; ++r) std::copy_n(&sums[r * lanes], count, out.row(r).data() + first);
        };
    });
}

}  // namespace prodige
