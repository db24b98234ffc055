// Words of texts: letters and digits in lower case with the marks on them, found in UTF-8 without a copy.
//
// What is a letter, a mark or a sign that stands alone, and what lower case is, comes from outside as a table by code
// point, so that there is one definition of a word, that of prodige.text.vocabulary. Tags of HTML are left out on the
// way; what a text says in entities must have been replaced before.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prodige {

enum class Sign : std::uint8_t { other, letter, mark, alone };

class Alphabet {
   public:
    static constexpr std::size_t n_points = 0x110000;

    // Kinds of all code points; lower[p] is the lower case of p, for the first of them.
    Alphabet(std::span<const std::uint8_t> kinds, std::span<const std::uint32_t> lower);

    Sign kind(std::uint32_t point) const noexcept { return static_cast<Sign>(kinds_[point]); }
    std::uint32_t lower(std::uint32_t point) const noexcept { return point < lower_.size() ? lower_[point] : point; }

   private:
    std::vector<std::uint8_t> kinds_;
    std::vector<std::uint32_t> lower_;
};

// Reads one text from the beginning to the end.
class Tokens {
   public:
    Tokens(std::string_view text, const Alphabet& alphabet) : text_(text), alphabet_(alphabet) {}

    // The next token, valid until the next call; false at the end of the text.
    bool next(std::string_view& token);

   private:
    std::uint32_t point(std::size_t& place) const noexcept;
    std::size_t end_of_tag(std::size_t place) const noexcept;
    bool letter_at(std::size_t place) const noexcept;
    void append(std::uint32_t point);

    std::string_view text_;
    const Alphabet& alphabet_;
    std::size_t place_ = 0;
    std::string token_;
};

// Where the first n code points of a token end; its length if it has no more.
std::size_t beginning(std::string_view token, std::size_t n_points) noexcept;

// Strings with numbers, in the order they were added.
class StringTable {
   public:
    static constexpr std::int32_t none = -1;

    StringTable();

    std::int32_t find(std::string_view text) const noexcept;
    std::int32_t add(std::string_view text);  // the number of a text that is there already, or the next one
    std::size_t size() const noexcept { return ends_.size(); }
    std::string_view operator[](std::size_t number) const noexcept;

   private:
    struct Slot {
        std::uint32_t hash;
        std::int32_t number;
    };

    std::size_t slot_of(std::string_view text, std::uint32_t hash) const noexcept;
    void grow();

    std::vector<char> bytes_;
    std::vector<std::size_t> ends_;
    std::vector<Slot> slots_;
};

}  // namespace prodige
