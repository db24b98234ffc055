// From raw texts to the vertices of a graph of words, pairs and triples, and sums over what these are worth.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "parallel.hpp"
#include "tokens.hpp"
#include "types.hpp"

namespace prodige {

class VertexLookup {
   public:
    static constexpr std::size_t longest_sequence = 3;
    static constexpr std::size_t most_words = (std::size_t(1) << 21) - 2;  // three numbers of a word in 64 bits

    explicit VertexLookup(std::size_t beginning) : beginning_(beginning) {}

    // Each vertex gets the next number; a word that only occurs in sequences is no vertex.
    void add_word(std::string_view word, bool is_vertex);
    void add_beginning(std::string_view letters);
    // Two or three words that follow each other; of three the second may be -1, which any word can be.
    void add_sequence(std::span<const std::int32_t> words);
    std::size_t size() const noexcept { return static_cast<std::size_t>(n_vertices_); }

    // The different vertices of a text, words, beginnings and sequences as they come.
    struct Scratch {
        std::vector<std::uint32_t> seen;
        std::uint32_t stamp = 0;
        std::vector<std::int32_t> found;
    };
    void find(std::string_view text, const Alphabet& alphabet, Scratch& scratch) const;

    // out[text] = sum of the values of its different vertices; counts[text] = how many there are.
    void sum(std::span<const std::string_view> texts, const Alphabet& alphabet, Matrix<const double> values,
             Matrix<double> out, std::span<std::int32_t> counts, int n_jobs, Watch& watch) const;

   private:
    struct Slot {
        std::uint64_t key = 0;
        std::int32_t vertex = -1;
    };

    std::size_t slot_of(std::uint64_t key) const noexcept;
    std::int32_t sequence(std::uint64_t key) const noexcept;
    std::int32_t beginning_of(std::string_view word) const noexcept;
    void grow();

    std::size_t beginning_;
    std::int32_t n_vertices_ = 0;
    StringTable words_, beginnings_;
    std::vector<std::int32_t> vertex_of_word_, vertex_of_beginning_;
    std::vector<Slot> slots_ = std::vector<Slot>(64);
    std::size_t n_sequences_ = 0;
    bool has_skips_ = false;
};

}  // namespace prodige
