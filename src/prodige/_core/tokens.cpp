#include "tokens.hpp"

#include <cstring>
#include <stdexcept>

namespace prodige {

namespace {

constexpr std::uint32_t apostrophe = '\'', curly_apostrophe = 0x2019;
constexpr std::size_t longest_tag = 500;
// The one letter whose lower case is two code points: a dotted capital I becomes i and a dot above it.
constexpr std::uint32_t dotted_capital_i = 0x130, dot_above = 0x307;

bool is_apostrophe(std::uint32_t point) noexcept { return point == apostrophe || point == curly_apostrophe; }

// Multiplies eight bytes at a time: words are short, so what counts is the latency of a few steps.
std::uint32_t hash_of(std::string_view text) noexcept {
    constexpr std::uint64_t factor = 0x9E3779B97F4A7C15ull;
    std::uint64_t hash = text.size() * factor;
    const char* data = text.data();
    std::size_t left = text.size();
    for (; left >= 8; data += 8, left -= 8) {
        std::uint64_t part;
        std::memcpy(&part, data, 8);
        hash = (hash ^ part) * factor;
        hash ^= hash >> 32;
    }
    std::uint64_t part = 0;
    std::memcpy(&part, data, left);
    hash = (hash ^ part) * factor;
    return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

Alphabet::Alphabet(std::span<const std::uint8_t> kinds, std::span<const std::uint32_t> lower)
    : kinds_(kinds.begin(), kinds.end()), lower_(lower.begin(), lower.end()) {
    if (kinds_.size() != n_points || lower_.size() > n_points)
        throw std::invalid_argument("an alphabet needs a kind for each of the " + std::to_string(n_points) +
                                    " code points, got " + std::to_string(kinds_.size()));
    for (const std::uint8_t kind : kinds_)
        if (kind > static_cast<std::uint8_t>(Sign::alone)) throw std::invalid_argument("there is no such kind of sign");
    for (const std::uint32_t point : lower_)
        if (point >= n_points) throw std::invalid_argument("lower case must be a code point");
}

// The code point at a place, which moves behind it. Texts are sound UTF-8; bytes that are not count one by one.
inline std::uint32_t Tokens::point(std::size_t& place) const noexcept {
    const auto byte = [&](std::size_t at) {
        return at < text_.size() ? static_cast<std::uint8_t>(text_[at]) : std::uint8_t(0);
    };
    const std::uint32_t first = byte(place);
    if (first < 0x80) {
        ++place;
        return first;
    }
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    std::uint32_t value = length == 1 ? 0xFFFD : first & (0x7Fu >> length);
    for (std::size_t k = 1; k < length; ++k) value = value << 6 | (byte(place + k) & 0x3Fu);
    place = std::min(place + length, text_.size());
    return value < Alphabet::n_points ? value : 0xFFFD;
}

// Behind the tag that begins at a place, or the place itself where none does.
std::size_t Tokens::end_of_tag(std::size_t place) const noexcept {
    std::size_t at = place + 1;
    if (at < text_.size() && (text_[at] == '/' || text_[at] == '!')) ++at;
    std::uint32_t name = at < text_.size() ? point(at) : 0;
    name = name == dotted_capital_i ? 'i' : alphabet_.lower(name);
    if (name != '-' && (name < 'a' || name > 'z')) return place;
    for (std::size_t n = 0; n <= longest_tag && at < text_.size(); ++n) {
        const std::uint32_t next = point(at);
        if (next == '>') return at;
        if (next == '<') return place;
    }
    return place;
}

bool Tokens::letter_at(std::size_t place) const noexcept {
    return place < text_.size() && alphabet_.kind(point(place)) == Sign::letter;
}

void Tokens::append(std::uint32_t point) {
    if (point < 0x80) {
        token_.push_back(static_cast<char>(point));
    } else if (point < 0x800) {
        token_.push_back(static_cast<char>(0xC0 | point >> 6));
        token_.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    } else if (point < 0x10000) {
        token_.push_back(static_cast<char>(0xE0 | point >> 12));
        token_.push_back(static_cast<char>(0x80 | (point >> 6 & 0x3F)));
        token_.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    } else {
        token_.push_back(static_cast<char>(0xF0 | point >> 18));
        token_.push_back(static_cast<char>(0x80 | (point >> 12 & 0x3F)));
        token_.push_back(static_cast<char>(0x80 | (point >> 6 & 0x3F)));
        token_.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    }
}

bool Tokens::next(std::string_view& token) {
    token_.clear();
    while (place_ < text_.size()) {
        std::size_t behind = place_;
        const std::uint32_t found = point(behind);
        const Sign kind = alphabet_.kind(found);
        if (kind == Sign::letter || (kind == Sign::mark && !token_.empty())) {
            if (found == dotted_capital_i) {
                append('i');
                append(dot_above);
            } else {
                append(alphabet_.lower(found));
            }
        } else if (!token_.empty()) {
            if (!is_apostrophe(found) || !letter_at(behind)) break;
            append(apostrophe);
        } else if (kind == Sign::alone) {
            append(found);
            place_ = behind;
            break;
        } else if (found == '<') {
            place_ = std::max(behind, end_of_tag(place_));
            continue;
        }
        place_ = behind;
    }
    token = token_;
    return !token_.empty();
}

std::size_t beginning(std::string_view token, std::size_t n_points) noexcept {
    std::size_t place = 0;
    for (; place < token.size(); ++place)
        if ((token[place] & 0xC0) != 0x80 && n_points-- == 0) break;
    return place;
}

StringTable::StringTable() : slots_(64, Slot{0, none}) {}

std::string_view StringTable::operator[](std::size_t number) const noexcept {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return {bytes_.data() + begin, ends_[number] - begin};
}

inline std::size_t StringTable::slot_of(std::string_view text, std::uint32_t hash) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash & mask;
    while (slots_[slot].number != none && (slots_[slot].hash != hash || (*this)[slots_[slot].number] != text))
        slot = (slot + 1) & mask;
    return slot;
}

std::int32_t StringTable::find(std::string_view text) const noexcept {
    return slots_[slot_of(text, hash_of(text))].number;
}

std::int32_t StringTable::add(std::string_view text) {
    const std::uint32_t hash = hash_of(text);
    std::size_t slot = slot_of(text, hash);
    if (slots_[slot].number != none) return slots_[slot].number;
    if (2 * (size() + 1) > slots_.size()) {
        grow();
        slot = slot_of(text, hash);
    }
    if (size() >= 0x7FFFFFFF) throw std::length_error("there are too many different words");
    slots_[slot] = {hash, static_cast<std::int32_t>(size())};
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    ends_.push_back(bytes_.size());
    return slots_[slot].number;
}

void StringTable::grow() {
    std::vector<Slot> larger(2 * slots_.size(), Slot{0, none});
    const std::size_t mask = larger.size() - 1;
    for (const Slot& entry : slots_) {
        if (entry.number == none) continue;
        std::size_t slot = entry.hash & mask;
        while (larger[slot].number != none) slot = (slot + 1) & mask;
        larger[slot] = entry;
    }
    slots_.swap(larger);
}

}  // namespace prodige
