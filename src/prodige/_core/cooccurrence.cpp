#include "cooccurrence.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace prodige {

namespace {

// Rows are handed out in small groups: rows of frequent words come first and are by far the longest.
constexpr std::size_t rows_per_job = 16;

// Places between two looks at the watch.
constexpr std::size_t places_per_check = 1 << 14;

// Sums are whole numbers in units of 2^-32: the same in any order, so the matrix is symmetric to the last bit.
constexpr double unit = 0x1p-32;

std::vector<std::uint64_t> weigh_distances(std::size_t window, bool harmonic) {
    std::vector<std::uint64_t> weights(window + 1, 0);
    for (std::size_t distance = 1; distance <= window; ++distance)
        weights[distance] = (std::uint64_t(1) << 32) / (harmonic ? distance : 1);
    return weights;
}

// All places of each word, in the order of the text.
struct Index {
    std::vector<std::int64_t> offsets;
    LargeVector<std::int64_t> places;

    explicit Index(const Corpus& corpus) : offsets(static_cast<std::size_t>(corpus.n_tokens) + 1, 0) {
        for (const Token id : corpus.ids)
            if (id >= corpus.n_skipped) ++offsets[id + 1];
        for (std::size_t id = 0; id + 1 < offsets.size(); ++id) offsets[id + 1] += offsets[id];
        places.resize(offsets.back());
        std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
        for (std::size_t place = 0; place < corpus.ids.size(); ++place)
            if (corpus.ids[place] >= corpus.n_skipped)
                places[next[corpus.ids[place]]++] = static_cast<std::int64_t>(place);
    }
};

// One row at a time: a sum for every word, and a bit for every word that was met.
class Row {
   public:
    Row(const Corpus& corpus, const Index& index, const std::vector<std::uint64_t>& weights)
        : corpus_(corpus),
          index_(index),
          weights_(weights),
          sums_(corpus.n_tokens, 0),
          is_met_((static_cast<std::size_t>(corpus.n_tokens) + 63) / 64, 0) {}

    // Meets all neighbours of a word; returns how many different ones there are.
    std::size_t gather(Token word, Watch& watch) {
        met_.clear();
        const auto window = static_cast<std::int64_t>(weights_.size()) - 1;
        auto document = corpus_.offsets.begin();
        std::size_t until_check = places_per_check;
        for (std::int64_t p = index_.offsets[word]; p < index_.offsets[word + 1]; ++p) {
            if (--until_check == 0) {
                watch.check();
                until_check = places_per_check;
            }
            const std::int64_t place = index_.places[p];
            // Frequent words often stay in the document; the others look for theirs among those that follow.
            if (place >= document[1]) document = std::upper_bound(document + 1, corpus_.offsets.end(), place) - 1;
            const std::int64_t before = std::min(window, place - document[0]);
            const std::int64_t after = std::min(window, document[1] - 1 - place);
            const Token* here = corpus_.ids.data() + place;
            for (std::int64_t distance = 1; distance <= before; ++distance) add(here[-distance], weights_[distance]);
            for (std::int64_t distance = 1; distance <= after; ++distance) add(here[distance], weights_[distance]);
        }
        return met_.size();
    }

    void forget() {
        for (const Token id : met_) {
            sums_[id] = 0;
            is_met_[id / 64] = 0;
        }
    }

    // Writes what was gathered in the order of the words.
    void write(Token* columns, float* values) {
        const auto put = [&](Token id) {
            *columns++ = id;
            *values++ = static_cast<float>(static_cast<double>(sums_[id]) * unit);
        };
        // Reading all bits costs a step for each 64 words, sorting some steps for each word that was met.
        if (met_.size() * std::bit_width(met_.size()) < is_met_.size()) {
            std::sort(met_.begin(), met_.end());
            for (const Token id : met_) put(id);
            return;
        }
        for (std::size_t group = 0; group < is_met_.size(); ++group)
            for (std::uint64_t bits = is_met_[group]; bits != 0; bits &= bits - 1)
                put(static_cast<Token>(64 * group + static_cast<std::size_t>(std::countr_zero(bits))));
    }

   private:
    void add(Token id, std::uint64_t weight) {
        if (id < corpus_.n_skipped) return;
        const std::uint64_t bit = std::uint64_t(1) << (id % 64);
        if (!(is_met_[id / 64] & bit)) {
            is_met_[id / 64] |= bit;
            met_.push_back(id);
        }
        sums_[id] += weight;
    }

    const Corpus& corpus_;
    const Index& index_;
    const std::vector<std::uint64_t>& weights_;  // [distance]
    LargeVector<std::uint64_t> sums_;
    std::vector<std::uint64_t> is_met_;
    std::vector<Token> met_;
};

}  // namespace

Cooccurrence count_cooccurrences(const Corpus& corpus, std::size_t window, bool harmonic, int n_jobs, Watch& watch) {
    const std::vector<std::uint64_t> weights = weigh_distances(window, harmonic);
    const Index index(corpus);
    watch.check();
    const auto n_rows = static_cast<std::size_t>(corpus.n_tokens);
    const std::size_t n_groups = (n_rows + rows_per_job - 1) / rows_per_job;
    const std::size_t n_workers = std::min<std::size_t>(std::max(n_jobs, 1), std::max<std::size_t>(n_groups, 1));
    std::vector<Row> rows;
    for (std::size_t worker = 0; worker < n_workers; ++worker) rows.emplace_back(corpus, index, weights);
    const auto for_each_row = [&](auto&& visit) {
        parallel_for(n_groups, n_jobs, watch, [&](std::size_t worker, std::size_t group) {
            const std::size_t end = std::min(n_rows, (group + 1) * rows_per_job);
            for (std::size_t word = group * rows_per_job; word < end; ++word) {
                const std::size_t length = rows[worker].gather(static_cast<Token>(word), watch);
                visit(rows[worker], word, length);
                rows[worker].forget();
            }
        });
    };

    // Twice over the text, because then the result needs no copy: it is by far the largest part of the memory.
    Cooccurrence found;
    found.offsets.assign(n_rows + 1, 0);
    for_each_row([&](Row&, std::size_t word, std::size_t length) {
        found.offsets[word + 1] = static_cast<std::int64_t>(length);
    });
    for (std::size_t word = 0; word < n_rows; ++word) found.offsets[word + 1] += found.offsets[word];
    found.columns.resize(found.offsets.back());
    found.values.resize(found.offsets.back());
    for_each_row([&](Row& row, std::size_t word, std::size_t) {
        row.write(found.columns.data() + found.offsets[word], found.values.data() + found.offsets[word]);
    });
    return found;
}

}  // namespace prodige
