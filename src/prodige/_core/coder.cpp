#include "coder.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace prodige {

namespace {

constexpr std::uint32_t one = 1 << 16;
constexpr std::uint16_t most_seen = 250;

std::uint32_t within(std::int64_t chance) noexcept {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(chance, 32, one - 32));
}

// 1 / (1 + exp(-x)) by basic operations only: exp(x) = (1 + x / 1024)^1024, near enough for a model.
double logistic(double x) noexcept {
    double power = 1 + std::clamp(-x, -12.0, 12.0) / 1024;
    for (int k = 0; k < 10; ++k) power *= power;
    return 1 / (1 + power);
}

// The inverse of logistic for chances in 2^-12.
class Stretch {
   public:
    Stretch() {
        for (std::size_t p = 0; p < values_.size(); ++p) {
            const double target = (static_cast<double>(p) + 0.5) / static_cast<double>(values_.size());
            double low = -12, high = 12;
            for (int k = 0; k < 40; ++k) {
                const double middle = (low + high) / 2;
                (logistic(middle) < target ? low : high) = middle;
            }
            values_[p] = low;
        }
    }

    double operator()(std::uint16_t chance) const noexcept { return values_[chance >> 4]; }

   private:
    std::array<double, 4096> values_;
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t hash = (a + 0x9E3779B97F4A7C15ull) * 0xBF58476D1CE4E5B9ull ^ b;
    hash = (hash ^ hash >> 29) * 0x94D049BB133111EBull;
    return hash ^ hash >> 32;
}

}  // namespace

void Chance::learn(bool bit) noexcept {
    const std::int32_t target = bit ? one - 1 : 0;
    // The first observation moves it by more than half: most contexts are met a few times only.
    value = static_cast<std::uint16_t>(value + (target - static_cast<std::int32_t>(value)) * 2 /
                                                   (2 * static_cast<std::int32_t>(n_seen) + 3));
    if (n_seen < most_seen) ++n_seen;
}

std::array<std::array<double, Coder::n_orders>, 2> Coder::start() {
    std::array<std::array<double, n_orders>, 2> weights;
    for (auto& set : weights) set.fill(0.4);
    return weights;
}

Coder::Coder(std::string_view data) : is_reading_(true), data_(data) {
    for (int k = 0; k < 4; ++k) code_ = code_ << 8 | next_byte();
}

std::uint8_t Coder::next_byte() noexcept {
    if (place_ < data_.size()) return static_cast<std::uint8_t>(data_[place_++]);
    ++n_behind_;
    return 0;
}

bool Coder::choose(std::uint32_t chance, bool value) {
    const std::uint32_t middle = low_ + static_cast<std::uint32_t>(std::uint64_t(high_ - low_) * chance >> 16);
    if (is_reading_) value = code_ <= middle;
    (value ? high_ : low_) = value ? middle : middle + 1;
    while (((low_ ^ high_) & 0xFF000000) == 0) {
        if (is_reading_)
            code_ = code_ << 8 | next_byte();
        else
            data_.push_back(static_cast<char>(high_ >> 24));
        low_ <<= 8;
        high_ = high_ << 8 | 0xFF;
    }
    return value;
}

bool Coder::bit(std::uint64_t context, bool value) {
    Chance& chance = chances_[mixed(context, 0) & (chances_.size() - 1)];
    value = choose(within(chance.value), value);
    chance.learn(value);
    return value;
}

std::uint32_t Coder::number(std::uint64_t context, std::uint32_t n, std::uint32_t value) {
    std::uint32_t low = 0, high = n;
    for (std::uint64_t node = 1; high - low > 1;) {
        const std::uint32_t middle = low + (high - low) / 2;
        const bool upper = bit(mixed(context, node), value >= middle);
        (upper ? low : high) = middle;
        node = 2 * node + upper;
    }
    return low;
}

std::uint32_t Coder::uniform(std::uint32_t n, std::uint32_t value) {
    std::uint32_t low = 0, high = n;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        const bool upper = choose(within(std::int64_t(high - middle) * one / (high - low)), value >= middle);
        (upper ? low : high) = middle;
    }
    return low;
}

// One letter, bit by bit, by the chances in contexts of several lengths, mixed as a logistic regression that learns.
std::uint8_t Coder::letter(std::string_view before, std::uint8_t above, bool is_first, std::uint8_t value) {
    static const Stretch stretch;
    std::array<std::uint64_t, n_orders> contexts;
    std::uint64_t history = 0;
    for (std::size_t order = 0; order < n_orders - 1; ++order) {
        contexts[order] = mixed(order, history);
        history = history << 8 | (order < before.size() ? static_cast<std::uint8_t>(before[before.size() - 1 - order])
                                                        : std::uint8_t(1));
    }
    contexts[n_orders - 1] = mixed(n_orders, std::uint64_t(is_first) << 16 | std::uint64_t(above) << 8 |
                                                 (before.empty() ? 1 : static_cast<std::uint8_t>(before.back())));
    auto& weights = weights_[is_first];
    std::uint32_t node = 1;
    while (node < 256) {
        std::array<Chance*, n_orders> chances;
        std::array<double, n_orders> inputs;
        double sum = 0;
        for (std::size_t k = 0; k < n_orders; ++k) {
            chances[k] = &letters_[mixed(contexts[k], node) & (letters_.size() - 1)];
            inputs[k] = stretch(chances[k]->value);
            sum += weights[k] * inputs[k];
        }
        const double chance = logistic(sum);
        const int shift = 8 - std::bit_width(node);  // the highest bit comes first
        const bool bit = choose(within(static_cast<std::int64_t>(chance * one)), value >> shift & 1);
        const double error = 0.02 * ((bit ? 1.0 : 0.0) - chance);
        for (std::size_t k = 0; k < n_orders; ++k) {
            weights[k] += error * inputs[k];
            chances[k]->learn(bit);
        }
        node = 2 * node + bit;
    }
    return static_cast<std::uint8_t>(node & 0xFF);
}

// A word by what it shares with the one before, and the letters after that up to a 0.
std::string Coder::word(std::string_view previous, std::string_view value) {
    const auto [end, other] = std::mismatch(value.begin(), value.end(), previous.begin(), previous.end());
    const auto n_letters = static_cast<std::uint32_t>(std::min<std::size_t>(previous.size(), 31));
    const auto shared = number(1ull << 40 | n_letters, static_cast<std::uint32_t>(previous.size()) + 1,
                               static_cast<std::uint32_t>(end - value.begin()));
    std::string found(previous.substr(0, shared));
    for (bool is_first = true; found.size() <= longest_word; is_first = false) {
        const std::size_t place = found.size();
        const std::uint8_t above = place < previous.size() ? static_cast<std::uint8_t>(previous[place]) : 0;
        const auto next = place < value.size() ? static_cast<std::uint8_t>(value[place]) : std::uint8_t(0);
        const std::uint8_t byte = letter(found, is_first ? above : 0, is_first, next);
        if (byte == 0) return found;
        found.push_back(static_cast<char>(byte));
    }
    throw std::invalid_argument("a word has more than " + std::to_string(longest_word) + " bytes");
}

void Coder::write_words(const std::vector<std::string_view>& words) {
    std::string_view previous;
    for (const std::string_view next : words) {
        if (next.size() > longest_word || next.find('\0') != std::string_view::npos)
            throw std::invalid_argument("a word is too long, or has a zero in it");
        word(previous, next);
        previous = next;
    }
}

std::vector<std::string> Coder::read_words(std::size_t n) {
    std::vector<std::string> words;
    for (std::size_t k = 0; k < n; ++k) {
        if (is_past_the_end()) throw std::invalid_argument("the data end before the words do");
        words.push_back(word(words.empty() ? std::string_view() : std::string_view(words.back()), {}));
    }
    return words;
}

// As few bytes as tell the interval, zeros following.
std::string Coder::finish() {
    for (const unsigned bytes : {0u, 1u, 2u, 3u, 4u}) {
        const std::uint64_t unit = std::uint64_t(1) << (32 - 8 * bytes);
        const std::uint64_t value = (low_ + unit - 1) / unit * unit;
        if (value > high_) continue;
        for (unsigned k = 0; k < bytes; ++k) data_.push_back(static_cast<char>(value >> (24 - 8 * k)));
        break;
    }
    return data_;
}

}  // namespace prodige
