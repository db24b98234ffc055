#include "glove.hpp"

#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "random.hpp"

namespace prodige {

namespace {

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd

// So many words have their vectors in half a megabyte at 100 components: two sides of a block fill a usual L2 cache.
constexpr std::size_t words_per_block = 512;

// Fewer blocks would leave threads idle, more would be too small to be worth starting threads for.
constexpr std::size_t least_blocks = 16, most_blocks = 256;

constexpr std::size_t pairs_per_check = 1 << 14;

std::uint64_t mix(std::uint64_t key, std::uint64_t value) { return scramble(key + (value + 1) * golden); }

double unit_interval(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Fisher and Yates; the bias of a product instead of a remainder is below 2^-32.
template <class T>
void shuffle(std::span<T> items, std::uint64_t key) {
    for (std::size_t left = items.size(); left > 1; --left)
        std::swap(items[left - 1], items[((mix(key, left) >> 32) * left) >> 32]);
}

}  // namespace

// Words go to blocks in turn, so that each block has its share of frequent ones.
std::size_t Glove::place(std::size_t word) const noexcept {
    return (word & (n_blocks_ - 1)) * per_block_ + word / n_blocks_;
}

Glove::Glove(const CountsView& counts, std::size_t n_components, double x_max, double alpha, std::uint64_t seed,
             int n_jobs, Watch& watch)
    : n_words_(counts.offsets.size() - 1),
      n_components_(n_components),
      // Two more numbers hold the bias and a 1 for the bias of the other side.
      width_((n_components + 2 + pair_lanes - 1) / pair_lanes * pair_lanes),
      n_blocks_(std::clamp(std::bit_ceil(n_words_ / words_per_block + 1), least_blocks, most_blocks)),
      per_block_((n_words_ + n_blocks_ - 1) / n_blocks_),
      seed_(seed) {
    if (n_words_ > n_blocks_ << 16)
        throw std::invalid_argument("there are too many words: " + std::to_string(n_words_));
    start(words_, mix(seed_, 0), n_components_ + 1);
    start(contexts_, mix(seed_, 1), n_components_);

    // Where the pairs of each block will be.
    const int shift = std::countr_zero(n_blocks_);
    std::vector<std::size_t> sizes(n_blocks_ * n_blocks_, 0);
    const auto for_each_pair = [&](auto&& visit) {
        parallel_for(n_blocks_, n_jobs, watch, [&](std::size_t, std::size_t block) {
            for (std::size_t word = block; word < n_words_; word += n_blocks_) {
                watch.check();
                for (std::int64_t entry = counts.offsets[word]; entry < counts.offsets[word + 1]; ++entry) {
                    const auto column = static_cast<std::size_t>(counts.columns[entry]);
                    visit(block * n_blocks_ + (column & (n_blocks_ - 1)), word >> shift, column >> shift, entry);
                }
            }
        });
    };
    for_each_pair([&](std::size_t block, std::size_t, std::size_t, std::int64_t) { ++sizes[block]; });
    offsets_.assign(sizes.size() + 1, 0);
    for (std::size_t block = 0; block < sizes.size(); ++block) offsets_[block + 1] = offsets_[block] + sizes[block];

    pairs_.resize(offsets_.back());
    std::vector<std::size_t> next(offsets_.begin(), offsets_.end() - 1);
    for_each_pair([&](std::size_t block, std::size_t word, std::size_t context, std::int64_t entry) {
        const double x = counts.values[entry];
        pairs_[next[block]++] = {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(context),
                                 static_cast<float>(std::log(x)),
                                 static_cast<float>(x < x_max ? std::pow(x / x_max, alpha) : 1.0)};
    });
}

// Small random vectors; squares begin at 1, which bounds the first steps.
void Glove::start(LargeVector<float>& side, std::uint64_t key, std::size_t one) const {
    side.assign(n_blocks_ * per_block_ * 2 * width_, 0.0f);
    for (std::size_t word = 0; word < n_words_; ++word) {
        float* row = side.data() + place(word) * 2 * width_;
        for (std::size_t k = 0; k < n_components_ + 2; ++k)
            row[k] =
                static_cast<float>((unit_interval(mix(mix(key, word), k)) - 0.5) / static_cast<double>(n_components_));
        row[one] = 1;
        for (std::size_t k = 0; k < width_; ++k) row[width_ + k] = 1;
    }
}

double Glove::run_epoch(float learning_rate, int n_jobs, Watch& watch) {
    const std::uint64_t key = mix(mix(seed_, 2), epoch_++);
    std::vector<std::size_t> rounds(n_blocks_);
    for (std::size_t round = 0; round < n_blocks_; ++round) rounds[round] = round;
    shuffle(std::span(rounds), key);

    const std::size_t block_size = per_block_ * 2 * width_;
    const FitPairs fit = fit_pairs();
    std::vector<double> losses(n_blocks_, 0);
    for (const std::size_t round : rounds)
        parallel_for(n_blocks_, n_jobs, watch, [&](std::size_t, std::size_t row) {
            const std::size_t column = (row + round) & (n_blocks_ - 1);
            const std::size_t block = row * n_blocks_ + column;
            const std::span<Pair> pairs(pairs_.data() + offsets_[block], offsets_[block + 1] - offsets_[block]);
            shuffle(pairs, mix(key, block));
            const PairPass pass{words_.data() + row * block_size, contexts_.data() + column * block_size, width_,
                                n_components_, learning_rate};
            for (std::size_t first = 0; first < pairs.size(); first += pairs_per_check) {
                watch.check();
                losses[row] += fit(pass, pairs.data() + first, std::min(pairs_per_check, pairs.size() - first));
            }
        });
    double total = 0;
    for (const double loss : losses) total += loss;
    return pairs_.empty() ? 0 : total / static_cast<double>(pairs_.size());
}

void Glove::write_vectors(Matrix<float> out) const {
    for (std::size_t word = 0; word < n_words_; ++word) {
        const float* a = words_.data() + place(word) * 2 * width_;
        const float* b = contexts_.data() + place(word) * 2 * width_;
        for (std::size_t k = 0; k < n_components_; ++k) out.row(word)[k] = a[k] + b[k];
    }
}

}  // namespace prodige
