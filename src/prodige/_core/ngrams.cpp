#include "ngrams.hpp"

#include <limits>
#include <stdexcept>

namespace prodige {

namespace {

constexpr std::uint64_t empty = std::numeric_limits<std::uint64_t>::max();

// Pairs of numbers, counted once a text. Open addressing with powers of two.
class PairCounts {
   public:
    explicit PairCounts(std::size_t n_expected) {
        std::size_t size = 1024;
        while (size < 2 * n_expected) size *= 2;
        slots_.assign(size, Slot{empty, 0, -1});
    }

    struct Slot {
        std::uint64_t key;
        std::int32_t count;
        std::int32_t last;  // the last text that counted; the number of the pair later on
    };

    Slot& at(std::uint64_t key) {
        if (2 * (n_used_ + 1) > slots_.size()) grow();
        Slot& slot = slots_[place_of(key)];
        if (slot.key == empty) {
            slot.key = key;
            ++n_used_;
        }
        return slot;
    }

    Slot* begin() { return slots_.data(); }
    Slot* end() { return slots_.data() + slots_.size(); }

   private:
    std::size_t place_of(std::uint64_t key) const noexcept {
        const std::size_t mask = slots_.size() - 1;
        std::size_t place = (key * 0x9E3779B97F4A7C15ull >> 20) & mask;
        while (slots_[place].key != empty && slots_[place].key != key) place = (place + 1) & mask;
        return place;
    }

    void grow() {
        LargeVector<Slot> before(2 * slots_.size(), Slot{empty, 0, -1});
        before.swap(slots_);
        for (const Slot& slot : before)
            if (slot.key != empty) slots_[place_of(slot.key)] = slot;
    }

    LargeVector<Slot> slots_;
    std::size_t n_used_ = 0;
};

template <class Visit>
void for_each_pair(const Texts& parts, std::int64_t distance, Watch& watch, Visit&& visit) {
    for (std::size_t text = 0; text < parts.size(); ++text) {
        if (text % 256 == 0) watch.check();
        for (std::int64_t p = parts.offsets[text]; p + distance < parts.offsets[text + 1]; ++p) {
            const std::int32_t first = parts.tokens[p], second = parts.tokens[p + distance];
            if (first >= 0 && second >= 0)
                visit(text, p, std::uint64_t(std::uint32_t(first)) << 32 | std::uint32_t(second));
        }
    }
}

}  // namespace

Joined join_neighbors(const Texts& parts, std::int32_t n_parts, std::int32_t min_texts, std::int64_t distance,
                      Watch& watch) {
    Joined joined;
    joined.places.assign(parts.tokens.size(), -1);
    PairCounts pairs(std::min<std::size_t>(parts.tokens.size() / 8, std::size_t(n_parts) * 4));
    for_each_pair(parts, distance, watch, [&](std::size_t text, std::int64_t, std::uint64_t key) {
        auto& slot = pairs.at(key);
        if (slot.last == static_cast<std::int32_t>(text)) return;
        slot.last = static_cast<std::int32_t>(text);
        ++slot.count;
    });
    for (auto& slot : pairs) slot.last = -1;
    for_each_pair(parts, distance, watch, [&](std::size_t, std::int64_t p, std::uint64_t key) {
        auto& slot = pairs.at(key);
        if (slot.count < min_texts) return;
        if (slot.last < 0) {  // numbered as they are met, which no hash decides
            slot.last = static_cast<std::int32_t>(joined.first.size());
            joined.first.push_back(static_cast<std::int32_t>(key >> 32));
            joined.second.push_back(static_cast<std::int32_t>(key & 0xFFFFFFFFu));
        }
        joined.places[p] = slot.last;
    });
    return joined;
}

Rows distinct(std::span<const std::span<const std::int32_t>> lists, std::span<const std::int32_t> sizes,
              std::span<const std::int64_t> offsets, Watch& watch) {
    std::int64_t total = 0;
    std::vector<std::int64_t> bases;
    for (const std::int32_t size : sizes) {
        bases.push_back(total);
        total += size;
    }
    if (total > std::numeric_limits<std::int32_t>::max()) throw std::length_error("there are too many features");
    std::vector<std::int32_t> seen(static_cast<std::size_t>(total), -1);
    Rows rows;
    rows.offsets.push_back(0);
    for (std::size_t text = 0; text + 1 < offsets.size(); ++text) {
        if (text % 256 == 0) watch.check();
        for (std::size_t list = 0; list < lists.size(); ++list) {
            for (std::int64_t p = offsets[text]; p < offsets[text + 1]; ++p) {
                const std::int32_t number = lists[list][p];
                if (number < 0) continue;
                const auto column = static_cast<std::size_t>(bases[list] + number);
                if (seen[column] == static_cast<std::int32_t>(text)) continue;
                seen[column] = static_cast<std::int32_t>(text);
                rows.columns.push_back(static_cast<std::int32_t>(column));
            }
        }
        rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
    }
    return rows;
}

Rows transpose(const Texts& rows, std::size_t n_columns) {
    Rows columns;
    columns.offsets.assign(n_columns + 1, 0);
    for (const std::int32_t column : rows.tokens) ++columns.offsets[column + 1];
    for (std::size_t c = 0; c < n_columns; ++c) columns.offsets[c + 1] += columns.offsets[c];
    columns.columns.resize(rows.tokens.size());
    std::vector<std::int64_t> next(columns.offsets.begin(), columns.offsets.end() - 1);
    for (std::size_t row = 0; row < rows.size(); ++row)
        for (std::int64_t p = rows.offsets[row]; p < rows.offsets[row + 1]; ++p)
            columns.columns[next[rows.tokens[p]]++] = static_cast<std::int32_t>(row);
    return columns;
}

void sum_rows(const Texts& rows, Matrix<const double> table, Matrix<double> out, int n_jobs, Watch& watch) {
    constexpr std::size_t part = 256;
    const std::size_t n_parts = (rows.size() + part - 1) / part;
    parallel_for(n_parts, n_jobs, watch, [&](std::size_t, std::size_t index) {
        for (std::size_t row = index * part; row < std::min(rows.size(), (index + 1) * part); ++row) {
            const auto columns = rows.tokens.subspan(rows.offsets[row], rows.offsets[row + 1] - rows.offsets[row]);
            if (table.columns == 1) {
                double sum = 0;
                for (const std::int32_t column : columns) sum += table.data[column];
                out.data[row] = sum;
                continue;
            }
            const auto sums = out.row(row);
            std::fill(sums.begin(), sums.end(), 0.0);
            for (const std::int32_t column : columns) {
                const double* values = table.data + std::size_t(column) * table.columns;
                for (std::size_t k = 0; k < table.columns; ++k) sums[k] += values[k];
            }
        }
    });
}

}  // namespace prodige
