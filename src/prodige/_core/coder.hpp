// Numbers and words in few bits: an arithmetic coder whose models learn as they go.
//
// Every choice is one of two, and costs what the model of its context makes of it. An encoder and a decoder that are
// told the same contexts in the same order learn the same. All arithmetic is of whole numbers, or of doubles in the
// four basic operations, which round alike everywhere: a file written on one machine is read on every other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prodige {

// How probable a one is, in units of 2^-16, by what was seen: at first quickly, later as a running mean.
struct Chance {
    std::uint16_t value = 1 << 15;
    std::uint16_t n_seen = 0;

    void learn(bool bit) noexcept;
};

class Coder {
   public:
    // For writing.
    Coder() = default;
    // For reading; behind the end there are zeros.
    explicit Coder(std::string_view data);

    // Each writes the value it is given, or reads and returns one.
    bool bit(std::uint64_t context, bool value);
    std::uint32_t number(std::uint64_t context, std::uint32_t n, std::uint32_t value);  // below n, learned
    std::uint32_t uniform(std::uint32_t n, std::uint32_t value);                        // below n, all alike
    bool choose(std::uint32_t chance, bool value);  // a one of a chance in 2^-16, 1 to 2^16 - 1

    // Words in ascending order of their bytes, none of which is 0; at most longest_word of them in each.
    static constexpr std::size_t longest_word = 255;
    void write_words(const std::vector<std::string_view>& words);
    std::vector<std::string> read_words(std::size_t n);

    bool is_reading() const noexcept { return is_reading_; }
    bool is_past_the_end() const noexcept { return n_behind_ > 4; }
    std::string finish();

   private:
    static constexpr std::size_t n_orders = 6;

    std::uint8_t letter(std::string_view before, std::uint8_t above, bool is_first, std::uint8_t value);
    std::string word(std::string_view previous, std::string_view value);
    std::uint8_t next_byte() noexcept;

    bool is_reading_ = false;
    std::string data_;
    std::size_t place_ = 0, n_behind_ = 0;
    std::uint32_t low_ = 0, high_ = 0xFFFFFFFF, code_ = 0;
    // By a hash of the context; where two share a chance, they learn together, in reading as in writing.
    std::vector<Chance> chances_ = std::vector<Chance>(std::size_t(1) << 16);
    std::vector<Chance> letters_ = std::vector<Chance>(std::size_t(1) << 20);
    std::array<std::array<double, n_orders>, 2> weights_ = start();

    static std::array<std::array<double, n_orders>, 2> start();
};

}  // namespace prodige
