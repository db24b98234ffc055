#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "coder.hpp"

namespace prodige {

namespace {

// How probable the upper half is, in units of 2^-32: the mean of what was seen, of the last thousand about.
struct Odds {
    std::uint32_t value = std::uint32_t(1) << 31;
    std::uint32_t n_seen = 0;

    std::uint32_t chance() const noexcept { return std::clamp<std::uint32_t>(value >> 16, 16, (1 << 16) - 16); }

    void learn(bool upper) noexcept {
        const std::int64_t target = upper ? 0xFFFFFFFF : 0;
        value = static_cast<std::uint32_t>(value + (target - static_cast<std::int64_t>(value)) * 2 / (2 * n_seen + 3));
        if (n_seen < most_seen) ++n_seen;
    }

    static constexpr std::uint32_t most_seen = 1000;
};

// What a kind's odds weigh when they begin as those of all rows do, as a number of observations.
constexpr std::uint32_t weight_of_all = 6;

// Models of all columns; the choice between numbers below and from `middle` of a column is its node `middle`.
class Models {
   public:
    Models(std::span<const std::int32_t> sizes, std::size_t n_kinds) : sizes_(sizes), n_kinds_(n_kinds) {
        n_nodes_ = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
        of_all_.resize(n_nodes_);
        of_kinds_.resize(n_kinds > 1 ? n_kinds * n_nodes_ : 0);
        kind_.resize(n_kinds);
    }

    std::size_t code_kind(Coder& coder, std::size_t kind) {
        return code(coder, n_kinds_, kind, [this](std::size_t middle) { return &kind_[middle]; }, nullptr);
    }

    void code_row(Coder& coder, std::size_t kind, std::span<std::uint16_t> row) {
        std::size_t first = 0;
        for (std::size_t c = 0; c < row.size(); ++c) {
            Odds* own = of_kinds_.empty() ? nullptr : &of_kinds_[kind * n_nodes_ + first];
            row[c] = static_cast<std::uint16_t>(
                code(coder, sizes_[c], row[c], [&](std::size_t middle) { return &of_all_[first + middle]; }, own));
            first += sizes_[c];
        }
    }

   private:
    template <class Find>
    std::size_t code(Coder& coder, std::size_t size, std::size_t value, Find&& find, Odds* own) {
        std::size_t low = 0, high = size;
        while (high - low > 1) {
            const std::size_t middle = low + (high - low) / 2;
            Odds* all = find(middle);
            Odds* odds = own ? own + middle : all;
            if (own && odds->n_seen == 0) *odds = {all->value, std::min(all->n_seen, weight_of_all)};
            const bool upper = coder.choose(odds->chance(), value >= middle);
            odds->learn(upper);
            if (own) all->learn(upper);
            (upper ? low : high) = middle;
        }
        return low;
    }

    std::span<const std::int32_t> sizes_;
    std::size_t n_kinds_, n_nodes_;
    std::vector<Odds> of_all_, of_kinds_, kind_;
};

// What the numbers of a row cost in each kind, in bits, [number of a column][kind], as the rows of a kind say.
class Prices {
   public:
    Prices(Matrix<const std::uint16_t> rows, std::span<const std::int32_t> sizes, std::size_t n_kinds)
        : rows_(rows), sizes_(sizes), n_kinds_(n_kinds) {
        firsts_.resize(sizes.size());
        std::exclusive_scan(sizes.begin(), sizes.end(), firsts_.begin(), std::size_t{0});
        n_numbers_ = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
        prices_.resize(n_numbers_ * n_kinds);
        of_kind_.resize(n_kinds);
    }

    void learn(std::span<const std::size_t> some, std::span<const std::uint16_t> kinds) {
        std::vector<float> count(n_numbers_ * n_kinds_), share(n_numbers_), n_rows(n_kinds_);
        for (std::size_t s = 0; s < some.size(); ++s) {
            n_rows[kinds[s]] += 1;
            const auto row = rows_.row(some[s]);
            for (std::size_t c = 0; c < row.size(); ++c) count[(firsts_[c] + row[c]) * n_kinds_ + kinds[s]] += 1;
        }
        for (std::size_t v = 0; v < n_numbers_; ++v)
            share[v] = std::accumulate(&count[v * n_kinds_], &count[v * n_kinds_] + n_kinds_, 0.5f) /
                       (static_cast<float>(some.size()) + 0.5f);
        for (std::size_t v = 0; v < n_numbers_; ++v)
            for (std::size_t k = 0; k < n_kinds_; ++k)
                prices_[v * n_kinds_ + k] =
                    -std::log2((count[v * n_kinds_ + k] + weight_of_all * share[v]) / (n_rows[k] + weight_of_all));
        for (std::size_t k = 0; k < n_kinds_; ++k)
            of_kind_[k] = -std::log2((n_rows[k] + 0.5f) / (static_cast<float>(some.size()) + 0.5f * n_kinds_));
    }

    // The kind of each row that costs least.
    std::uint16_t cheapest(std::size_t r, std::vector<float>& sums) const {
        sums = of_kind_;
        const auto row = rows_.row(r);
        for (std::size_t c = 0; c < row.size(); ++c) {
            const float* prices = &prices_[(firsts_[c] + row[c]) * n_kinds_];
            for (std::size_t k = 0; k < n_kinds_; ++k) sums[k] += prices[k];
        }
        return static_cast<std::uint16_t>(std::min_element(sums.begin(), sums.end()) - sums.begin());
    }

   private:
    Matrix<const std::uint16_t> rows_;
    std::span<const std::int32_t> sizes_;
    std::size_t n_kinds_, n_numbers_;
    std::vector<std::size_t> firsts_;  // [column]: numbers of the columns before
    std::vector<float> prices_, of_kind_;
};

// Rows at equal steps, to learn from.
std::vector<std::size_t> spread_rows(std::size_t n_rows, std::size_t n_taken) {
    std::vector<std::size_t> some(std::min(n_rows, n_taken));
    for (std::size_t s = 0; s < some.size(); ++s) some[s] = s * n_rows / some.size();
    return some;
}

constexpr int n_lloyd_rounds = 4, n_rounds = 8;
constexpr std::size_t check_every = 4096;

// Where kinds begin: clusters of rows, whose numbers are taken for coordinates.
std::vector<std::uint16_t> cluster(Matrix<const std::uint16_t> rows, std::span<const std::size_t> some,
                                   std::size_t n_kinds, Watch& watch) {
    const std::size_t width = rows.columns;
    std::vector<float> centres(width * n_kinds), sums(n_kinds), squares(n_kinds);
    for (std::size_t k = 0; k < n_kinds; ++k)
        for (std::size_t c = 0; c < width; ++c) centres[c * n_kinds + k] = rows.row(some[k * some.size() / n_kinds])[c];
    std::vector<std::uint16_t> kinds(some.size());
    for (int round = 0; round < n_lloyd_rounds; ++round) {
        std::fill(squares.begin(), squares.end(), 0.0f);
        for (std::size_t c = 0; c < width; ++c)
            for (std::size_t k = 0; k < n_kinds; ++k) squares[k] += centres[c * n_kinds + k] * centres[c * n_kinds + k];
        std::vector<float> added(width * n_kinds), count(n_kinds);
        for (std::size_t s = 0; s < some.size(); ++s) {
            if (s % check_every == 0) watch.check();
            const auto row = rows.row(some[s]);
            sums = squares;
            for (std::size_t c = 0; c < width; ++c) {
                const float twice = -2.0f * row[c];
                for (std::size_t k = 0; k < n_kinds; ++k) sums[k] += twice * centres[c * n_kinds + k];
            }
            kinds[s] = static_cast<std::uint16_t>(std::min_element(sums.begin(), sums.end()) - sums.begin());
            count[kinds[s]] += 1;
            for (std::size_t c = 0; c < width; ++c) added[c * n_kinds + kinds[s]] += row[c];
        }
        for (std::size_t c = 0; c < width; ++c)
            for (std::size_t k = 0; k < n_kinds; ++k)
                if (count[k] > 0) centres[c * n_kinds + k] = added[c * n_kinds + k] / count[k];
    }
    return kinds;
}

}  // namespace

std::string write_rows(Matrix<const std::uint16_t> rows, std::span<const std::int32_t> sizes,
                       std::span<const std::uint16_t> kinds, std::size_t n_kinds, Watch& watch) {
    Coder coder;
    Models models(sizes, n_kinds);
    std::vector<std::uint16_t> row(rows.columns);
    for (std::size_t r = 0; r < rows.rows; ++r) {
        if (r % check_every == 0) watch.check();
        const auto given = rows.row(r);
        std::copy(given.begin(), given.end(), row.begin());
        models.code_row(coder, models.code_kind(coder, kinds[r]), row);
    }
    return coder.finish();
}

bool read_rows(std::string_view data, Matrix<std::uint16_t> rows, std::span<const std::int32_t> sizes,
               std::size_t n_kinds, Watch& watch) {
    Coder coder(data);
    Models models(sizes, n_kinds);
    for (std::size_t r = 0; r < rows.rows; ++r) {
        if (r % check_every == 0) watch.check();
        models.code_row(coder, models.code_kind(coder, 0), rows.row(r));
        if (coder.is_past_the_end()) return false;
    }
    return true;
}

std::vector<std::uint16_t> find_kinds(Matrix<const std::uint16_t> rows, std::span<const std::int32_t> sizes,
                                      std::size_t n_kinds, std::size_t n_learned, Watch& watch) {
    std::vector<std::uint16_t> result(rows.rows);
    if (n_kinds < 2) return result;
    const std::vector<std::size_t> some = spread_rows(rows.rows, n_learned);
    std::vector<std::uint16_t> kinds = cluster(rows, some, n_kinds, watch);
    Prices prices(rows, sizes, n_kinds);
    std::vector<float> sums;
    for (int round = 0; round < n_rounds; ++round) {
        prices.learn(some, kinds);
        for (std::size_t s = 0; s < some.size(); ++s) {
            if (s % check_every == 0) watch.check();
            kinds[s] = prices.cheapest(some[s], sums);
        }
    }
    prices.learn(some, kinds);
    for (std::size_t r = 0; r < rows.rows; ++r) {
        if (r % check_every == 0) watch.check();
        result[r] = prices.cheapest(r, sums);
    }
    return result;
}

}  // namespace prodige
