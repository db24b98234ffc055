#include "codes.hpp"

#include <algorithm>

#include "kernels.hpp"
#include "memory.hpp"

namespace prodige {

namespace {

// Sums of tables are made over parts of so many blocks of items, and so many parts at most: fixed, so that sums do not
// depend on the number of threads.
constexpr std::size_t part_blocks = 64, n_parts = 8;

// What the cost of every hub of a factor follows from if entries of its table are squared distances between positions:
// |x - y|² is a sum of d + 2 products of a number of x with one of y, and so its square is of (d + 2)(d + 3) / 2. Sums
// over hubs of these numbers, and as many products for each hub, take the place of an entry for each pair of hubs.
class Features {
   public:
    Features() = default;

    Features(std::span<const float> positions, std::size_t n_hubs) {
        const std::size_t size = positions.size() / n_hubs, width = size + 2, n_products = width * (width + 1) / 2;
        if (size == 0 || 2 * (width + n_products) > n_hubs) return;
        n_terms_ = width + n_products;
        n_first_ = width;
        of_sums_.resize(n_terms_ * n_hubs);
        of_hubs_.resize(n_hubs * n_terms_);
        std::vector<float> mine(width), others(width);
        for (std::size_t h = 0; h < n_hubs; ++h) {
            float square = 0;
            for (std::size_t d = 0; d < size; ++d) {
                const float value = positions[h * size + d];
                square += value * value;
                mine[d + 2] = -2 * value;
                others[d + 2] = value;
            }
            mine[0] = others[1] = square;
            mine[1] = others[0] = 1;
            std::size_t term = 0;
            const auto put = [&](float of_sum, float of_hub) {
                of_sums_[term * n_hubs + h] = of_sum;
                of_hubs_[h * n_terms_ + term++] = of_hub;
            };
            for (std::size_t a = 0; a < width; ++a) put(others[a], 2 * mine[a]);
            for (std::size_t a = 0; a < width; ++a)
                for (std::size_t b = 0; b <= a; ++b) put(others[a] * others[b], (a == b ? 1 : 2) * mine[a] * mine[b]);
        }
    }

    // Whether they are known, and take less time than the table.
    bool pay() const { return n_terms_ > 0; }
    std::size_t n_terms() const { return n_terms_; }

    // costs[hub][lane]: the sum of 2 * entry * residual + entry² * weight over all hubs; sums has room for n_terms().
    void cost(const CodeKernels& kernels, std::size_t n_hubs, const float* residuals, const float* totals, float* sums,
              float* costs) const {
        kernels.multiply(of_sums_.data(), n_first_, n_hubs, residuals, sums);
        kernels.multiply(of_sums_.data() + n_first_ * n_hubs, n_terms_ - n_first_, n_hubs, totals,
                         sums + n_first_ * lanes);
        kernels.multiply(of_hubs_.data(), n_hubs, n_terms_, sums, costs);
    }

   private:
    std::size_t n_terms_ = 0, n_first_ = 0;
    std::vector<float> of_sums_, of_hubs_;  // [term][hub], [hub][term]
};

std::vector<Features> find_features(const FactorTables& factors) {
    std::vector<Features> found(factors.n_factors());
    std::size_t begin = 0;
    for (std::size_t m = 0; m < factors.n_dimensions.size(); ++m) {
        const std::size_t n_hubs = factors.n_hubs[m], size = n_hubs * factors.n_dimensions[m];
        found[m] = Features(factors.positions.subspan(begin, size), n_hubs);
        begin += size;
    }
    return found;
}

// The hub with the least cost, the first of equals.
void least_of(const float* costs, std::size_t n_hubs, std::int32_t* best) {
    float least[lanes];
    std::copy_n(costs, lanes, least);
    std::fill_n(best, lanes, 0);
    for (std::size_t h = 1; h < n_hubs; ++h)
        for (std::size_t l = 0; l < lanes; ++l) {
            const bool lower = costs[h * lanes + l] < least[l];
            least[l] = lower ? costs[h * lanes + l] : least[l];
            best[l] = lower ? static_cast<std::int32_t>(h) : best[l];
        }
}

// A block of items at a time, with everything about them side by side.
class Block {
   public:
    explicit Block(const CodeTask& task, std::span<const Features> features = {})
        : task_(task),
          features_(features),
          kernels_(code_kernels()),
          n_columns_(task.sources.size()),
          n_near_(task.near.columns),
          n_all_(n_columns_ + n_near_),
          most_hubs_(*std::max_element(task.factors.n_hubs.begin(), task.factors.n_hubs.end())),
          sums_(n_all_ * lanes),
          targets_(n_all_ * lanes),
          weights_(n_all_ * lanes),
          rows_(most_hubs_ * lanes),
          residuals_(most_hubs_ * lanes),
          totals_(most_hubs_ * lanes) {
        std::size_t n_terms = 0;
        for (const Features& some : features_) n_terms = std::max(n_terms, some.n_terms());
        sums_of_terms_.resize(n_terms * lanes);
    }

    // Everything about items first to first + lanes - 1 of the task; the last one stands in for those beyond.
    void take(std::size_t first) {
        const std::size_t n_factors = task_.factors.n_factors();
        codes_.resize(lanes * n_factors);
        for (std::size_t l = 0; l < lanes; ++l) {
            const std::size_t item = task_.items[std::min(first + l, task_.items.size() - 1)];
            items_[l] = static_cast<Vertex>(item);
            lengths_[l] = task_.lengths[item];
            const auto codes = task_.codes.row(item);
            std::copy(codes.begin(), codes.end(), codes_.begin() + l * n_factors);
            take_targets(l, item);
        }
        for (std::size_t m = 0; m < n_factors; ++m) add_factor(m, 1);
        kernels_.weigh({task_.factors.quarters, task_.factors.floor}, n_all_, sums_.data(), targets_.data(),
                       weights_.data());
    }

    // Weighted squared residuals of the first `count` items.
    double loss(std::size_t count) const {
        double total = 0;
        for (std::size_t c = 0; c < n_all_; ++c)
            for (std::size_t l = 0; l < count; ++l) {
                const double residual = sums_[c * lanes + l] - targets_[c * lanes + l];
                total += weights_[c * lanes + l] * residual * residual;
            }
        return total;
    }

    // Sums over landmarks and near items by their hubs of a factor.
    void collect(std::size_t factor) {
        const std::size_t size = n_hubs(factor) * lanes;
        std::fill_n(residuals_.begin(), size, 0.0f);
        std::fill_n(totals_.begin(), size, 0.0f);
        kernels_.collect(source_codes(factor), n_columns_, sums_.data(), targets_.data(), weights_.data(),
                         residuals_.data(), totals_.data());
        for_near(factor, [&](std::size_t at, std::size_t hub, std::size_t l) {
            residuals_[hub * lanes + l] += weights_[at] * (sums_[at] - targets_[at]);
            totals_[hub * lanes + l] += weights_[at];
        });
    }

    void choose(std::size_t factor) {
        add_factor(factor, -1);
        collect(factor);
        std::int32_t best[lanes];
        if (!features_.empty() && features_[factor].pay()) {
            // The rows are filled anew when the factor is added.
            features_[factor].cost(kernels_, n_hubs(factor), residuals_.data(), totals_.data(), sums_of_terms_.data(),
                                   rows_.data());
            least_of(rows_.data(), n_hubs(factor), best);
        } else {
            kernels_.best_hub(table(factor), n_hubs(factor), residuals_.data(), totals_.data(), best);
        }
        for (std::size_t l = 0; l < lanes; ++l)
            codes_[l * task_.factors.n_factors() + factor] = static_cast<std::uint16_t>(best[l]);
        add_factor(factor, 1);
    }

    // The best length of an item given all others, as far as the grid allows.
    void choose_length(const LengthGrid& grid) {
        double residual[lanes] = {}, total[lanes] = {};
        for (std::size_t c = 0; c < n_all_; ++c)
            for (std::size_t l = 0; l < lanes; ++l) {
                const std::size_t at = c * lanes + l;
                residual[l] += static_cast<double>(weights_[at]) * (sums_[at] - targets_[at]);
                total[l] += weights_[at];
            }
        float shift[lanes];
        for (std::size_t l = 0; l < lanes; ++l) {
            const double wish = lengths_[l] - (total[l] > 0 ? residual[l] / total[l] : 0);
            const float length = on_grid(grid, static_cast<float>(std::max(wish, 0.0)));
            shift[l] = length - lengths_[l];
            lengths_[l] = length;
        }
        for (std::size_t c = 0; c < n_all_; ++c)
            for (std::size_t l = 0; l < lanes; ++l) sums_[c * lanes + l] += shift[l];
    }

    std::uint16_t code(std::size_t l, std::size_t factor) const {
        return codes_[l * task_.factors.n_factors() + factor];
    }
    float length(std::size_t l) const { return lengths_[l]; }
    const float* residuals() const { return residuals_.data(); }
    const float* totals() const { return totals_.data(); }

   private:
    using Floats = std::vector<float, LargeAllocator<float>>;

    std::size_t n_hubs(std::size_t factor) const { return task_.factors.n_hubs[factor]; }
    const float* table(std::size_t factor) const { return task_.factors.entries.data() + task_.factors.offset(factor); }
    const std::uint16_t* source_codes(std::size_t factor) const { return task_.source_codes.row(factor).data(); }

    static float on_grid(const LengthGrid& grid, float length) {
        if (grid.n_levels == 0) return length;
        const float level = grid.step > 0 ? (length - grid.least) / grid.step + 0.5f : 0.0f;
        const float highest = static_cast<float>(grid.n_levels - 1);
        return grid.least + grid.step * static_cast<float>(static_cast<std::int32_t>(std::clamp(level, 0.0f, highest)));
    }

    void take_targets(std::size_t l, std::size_t item) {
        const std::size_t row = item - task_.first;
        const float* target = task_.target.row(row).data();
        for (std::size_t c = 0; c < n_columns_; ++c) {
            targets_[c * lanes + l] = target[c];
            sums_[c * lanes + l] = lengths_[l] + task_.source_lengths[c];
            weights_[c * lanes + l] = task_.sources[c] == items_[l] ? 0.0f : 1.0f;
        }
        for (std::size_t k = 0; k < n_near_; ++k) {
            const std::size_t at = (n_columns_ + k) * lanes + l;
            const Vertex other = task_.near.row(row)[k];
            near_.resize(n_near_ * lanes);
            near_[k * lanes + l] = other;
            targets_[at] = other < 0 ? 0 : task_.near_target.row(row)[k];
            sums_[at] = other < 0 ? 0 : lengths_[l] + task_.lengths[other];
            weights_[at] = other < 0 ? 0 : task_.near_weight.row(row)[k];
        }
    }

    // visit(place in the arrays, hub of the near item, lane)
    template <class Visit>
    void for_near(std::size_t factor, Visit&& visit) const {
        for (std::size_t k = 0; k < n_near_ * lanes; ++k)
            if (near_[k] >= 0) visit(n_columns_ * lanes + k, task_.codes.row(near_[k])[factor], k % lanes);
    }

    void add_factor(std::size_t factor, float sign) {
        const std::size_t size = n_hubs(factor);
        for (std::size_t l = 0; l < lanes; ++l) {
            const float* row = table(factor) + code(l, factor) * size;
            for (std::size_t h = 0; h < size; ++h) rows_[h * lanes + l] = row[h];
        }
        kernels_.add_hubs(rows_.data(), source_codes(factor), n_columns_, sign, sums_.data());
        for_near(factor,
                 [&](std::size_t at, std::size_t hub, std::size_t l) { sums_[at] += sign * rows_[hub * lanes + l]; });
    }

    const CodeTask& task_;
    const std::span<const Features> features_;
    const CodeKernels& kernels_;
    std::size_t n_columns_, n_near_, n_all_, most_hubs_;
    Floats sums_, targets_, weights_;   // [landmark or near item][lane]
    Floats rows_, residuals_, totals_;  // [hub][lane]
    Floats sums_of_terms_;              // [term][lane]
    Vertex items_[lanes];
    float lengths_[lanes];
    std::vector<std::uint16_t> codes_;  // [lane][factor]
    std::vector<Vertex> near_;          // [near item][lane]
};

}  // namespace

std::size_t FactorTables::offset(std::size_t factor) const noexcept {
    std::size_t total = 0;
    for (std::size_t m = 0; m < factor; ++m) total += static_cast<std::size_t>(n_hubs[m]) * n_hubs[m];
    return total;
}

Codes choose_codes(const CodeTask& task, const LengthGrid& grid, int n_rounds, int n_jobs, Watch& watch) {
    const std::size_t n = task.items.size(), n_factors = task.factors.n_factors();
    const std::size_t n_blocks = (n + lanes - 1) / lanes;
    Codes result{std::vector<std::uint16_t>(n * n_factors), std::vector<float>(n), 0};
    std::vector<double> losses(n_blocks);
    const std::vector<Features> features = find_features(task.factors);
    parallel_ranges(n_blocks, n_jobs, watch, [&](std::size_t first, std::size_t last) {
        Block block(task, features);
        for (std::size_t b = first; b < last; ++b) {
            watch.check();
            const std::size_t count = std::min(lanes, n - b * lanes);
            block.take(b * lanes);
            losses[b] = block.loss(count);
            for (int round = 0; round < n_rounds; ++round) {
                for (std::size_t m = 0; m < n_factors; ++m) block.choose(m);
                block.choose_length(grid);
            }
            for (std::size_t l = 0; l < count; ++l) {
                for (std::size_t m = 0; m < n_factors; ++m)
                    result.codes[(b * lanes + l) * n_factors + m] = block.code(l, m);
                result.lengths[b * lanes + l] = block.length(l);
            }
        }
    });
    for (const double loss : losses) result.loss += loss;
    return result;
}

FactorSums measure_factor(const CodeTask& task, std::size_t factor, int n_jobs, Watch& watch) {
    const std::size_t n = task.items.size(), n_hubs = task.factors.n_hubs[factor];
    const std::size_t n_blocks = (n + lanes - 1) / lanes;
    const std::size_t parts = std::clamp<std::size_t>(n_blocks / part_blocks, 1, n_parts);
    std::vector<FactorSums> sums(parts);
    parallel_for(parts, n_jobs, watch, [&](std::size_t, std::size_t part) {
        FactorSums& sum = sums[part];
        sum.residuals.assign(n_hubs * n_hubs, 0);
        sum.weights.assign(n_hubs * n_hubs, 0);
        Block block(task);
        for (std::size_t b = n_blocks * part / parts; b < n_blocks * (part + 1) / parts; ++b) {
            watch.check();
            const std::size_t count = std::min(lanes, n - b * lanes);
            block.take(b * lanes);
            sum.loss += block.loss(count);
            block.collect(factor);
            for (std::size_t l = 0; l < count; ++l) {
                const std::size_t row = block.code(l, factor) * n_hubs;
                for (std::size_t h = 0; h < n_hubs; ++h) {
                    sum.residuals[row + h] += block.residuals()[h * lanes + l];
                    sum.weights[row + h] += block.totals()[h * lanes + l];
                }
            }
        }
    });
    FactorSums result = std::move(sums[0]);
    for (std::size_t part = 1; part < parts; ++part) {
        for (std::size_t e = 0; e < result.residuals.size(); ++e) result.residuals[e] += sums[part].residuals[e];
        for (std::size_t e = 0; e < result.weights.size(); ++e) result.weights[e] += sums[part].weights[e];
        result.loss += sums[part].loss;
    }
    return result;
}

}  // namespace prodige
