#include "lookup.hpp"

#include <stdexcept>

namespace prodige {

namespace {

constexpr unsigned word_bits = 21;

std::uint64_t place(std::uint64_t key) noexcept { return key * 0x9E3779B97F4A7C15ull >> 24; }

}  // namespace

void VertexLookup::add_word(std::string_view word, bool is_vertex) {
    if (words_.size() >= most_words) throw std::length_error("there are too many words");
    if (static_cast<std::size_t>(words_.add(word)) != vertex_of_word_.size())
        throw std::invalid_argument("words must be different");
    vertex_of_word_.push_back(is_vertex ? n_vertices_++ : -1);
}

void VertexLookup::add_beginning(std::string_view letters) {
    if (static_cast<std::size_t>(beginnings_.add(letters)) != vertex_of_beginning_.size())
        throw std::invalid_argument("beginnings must be different");
    vertex_of_beginning_.push_back(n_vertices_++);
}

void VertexLookup::add_sequence(std::span<const std::int32_t> words) {
    if (words.size() < 2 || words.size() > longest_sequence)
        throw std::invalid_argument("a sequence has two or three words");
    std::uint64_t key = 0;
    const bool skips = words.size() == 3 && words[1] == -1;
    for (std::size_t place = 0; place < words.size(); ++place) {
        const std::int32_t word = words[place];
        const bool is_any = skips && place == 1;  // its place in the key stays 0, which no word has
        if (!is_any && (word < 0 || static_cast<std::size_t>(word) >= words_.size()))
            throw std::out_of_range("there is no word " + std::to_string(word));
        key = key << word_bits | std::uint64_t(word + 1);
    }
    if (2 * (n_sequences_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[slot_of(key)];
    if (slot.key == key) throw std::invalid_argument("sequences must be different");
    slot = {key, n_vertices_++};
    has_skips_ |= skips;
    ++n_sequences_;
}

inline std::size_t VertexLookup::slot_of(std::uint64_t key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = place(key) & mask;
    while (slots_[slot].key != 0 && slots_[slot].key != key) slot = (slot + 1) & mask;
    return slot;
}

inline std::int32_t VertexLookup::sequence(std::uint64_t key) const noexcept { return slots_[slot_of(key)].vertex; }

void VertexLookup::grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before)
        if (slot.key != 0) slots_[slot_of(slot.key)] = slot;
}

std::int32_t VertexLookup::beginning_of(std::string_view word) const noexcept {
    const std::size_t end = beginning(word, beginning_);
    if (end == word.size()) return -1;  // not longer than its beginning
    const std::int32_t number = beginnings_.find(word.substr(0, end));
    return number < 0 ? -1 : vertex_of_beginning_[number];
}

void VertexLookup::find(std::string_view text, const Alphabet& alphabet, Scratch& scratch) const {
    if (scratch.seen.size() != size()) {
        scratch.seen.assign(size(), 0);
        scratch.stamp = 0;
    }
    if (++scratch.stamp == 0) {  // after four thousand million texts
        std::fill(scratch.seen.begin(), scratch.seen.end(), 0);
        scratch.stamp = 1;
    }
    scratch.found.clear();
    const auto note = [&](std::int32_t vertex) {
        if (vertex < 0 || scratch.seen[vertex] == scratch.stamp) return;
        scratch.seen[vertex] = scratch.stamp;
        scratch.found.push_back(vertex);
    };
    const bool has_beginnings = beginnings_.size() > 0;
    std::uint64_t last = 0, before_last = 0;  // numbers of the words before, counted from 1; 0 is an unknown word
    Tokens tokens(text, alphabet);
    std::string_view token;
    while (tokens.next(token)) {
        const std::int32_t word = words_.find(token);
        if (word >= 0) note(vertex_of_word_[word]);
        if (has_beginnings && token.size() > beginning_) note(beginning_of(token));
        const auto own = static_cast<std::uint64_t>(word + 1);
        if (own != 0 && last != 0) {
            const std::uint64_t pair = last << word_bits | own;
            note(sequence(pair));
            if (before_last != 0) note(sequence(before_last << (2 * word_bits) | pair));
        }
        if (has_skips_ && own != 0 && before_last != 0) note(sequence(before_last << (2 * word_bits) | own));
        before_last = last;
        last = own;
    }
}

void VertexLookup::sum(std::span<const std::string_view> texts, const Alphabet& alphabet, Matrix<const double> values,
                       Matrix<double> out, std::span<std::int32_t> counts, int n_jobs, Watch& watch) const {
    constexpr std::size_t part = 64;
    const std::size_t n_parts = (texts.size() + part - 1) / part;
    std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(n_jobs, 1)));
    parallel_for(n_parts, n_jobs, watch, [&](std::size_t worker, std::size_t index) {
        Scratch& own = scratch[worker];
        for (std::size_t text = index * part; text < std::min(texts.size(), (index + 1) * part); ++text) {
            find(texts[text], alphabet, own);
            counts[text] = static_cast<std::int32_t>(own.found.size());
            const auto sums = out.row(text);
            std::fill(sums.begin(), sums.end(), 0.0);
            for (const std::int32_t vertex : own.found) {
                const double* worth = values.data + std::size_t(vertex) * values.columns;
                for (std::size_t k = 0; k < values.columns; ++k) sums[k] += worth[k];
            }
        }
    });
}

}  // namespace prodige
