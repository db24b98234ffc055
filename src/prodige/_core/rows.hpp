// Rows of small numbers in few bits: every column has a model of its own, and so has every kind of row.
//
// A number is found by halving the range of its column, and each of these choices costs what was learned of it from the
// rows before. Rows of a kind have numbers that go together: which kind a row is of is written in front of it, and
// choices are then learned for each kind. A choice that a kind has not met begins as it stands for all rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

inline constexpr std::size_t most_kinds = 1024;

// Numbers of column c are below sizes[c]; kinds has one number below n_kinds for each row.
std::string write_rows(Matrix<const std::uint16_t> rows, std::span<const std::int32_t> sizes,
                       std::span<const std::uint16_t> kinds, std::size_t n_kinds, Watch& watch);

// Fills `rows`; false where the data end before them. Whatever the data are, numbers are below their sizes.
bool read_rows(std::string_view data, Matrix<std::uint16_t> rows, std::span<const std::int32_t> sizes,
               std::size_t n_kinds, Watch& watch);

// Kinds that make rows short: each row is of the kind that is most probable to have it, and kinds are what their rows
// say (Celeux and Govaert's classification EM). Kinds are learned from so many rows at most.
std::vector<std::uint16_t> find_kinds(Matrix<const std::uint16_t> rows, std::span<const std::int32_t> sizes,
                                      std::size_t n_kinds, std::size_t n_learned, Watch& watch);

}  // namespace prodige
