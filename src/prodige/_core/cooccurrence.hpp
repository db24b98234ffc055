// Which words stand near each other, and how often.
//
// Words are counted row by row: all places of a word are known from an index, so its row is summed up in one dense
// array that stays in the cache, and nothing has to be merged. Memory is that of the result and of the text.
#pragma once

#include "memory.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

using Token = std::int32_t;

// Documents one after the other: document d has ids[offsets[d]] to ids[offsets[d + 1] - 1].
struct Corpus {
    std::span<const Token> ids;
    std::span<const std::int64_t> offsets;
    Token n_tokens = 0;   // ids are below
    Token n_skipped = 0;  // ids below take up room in the text but are not counted: padding and unknown words
};

// A symmetric matrix in compressed rows, with columns in order.
struct Cooccurrence {
    LargeVector<std::int64_t> offsets;
    LargeVector<Token> columns;
    LargeVector<float> values;
};

// Sums of 1 (flat) or 1 / distance (harmonic) over all pairs of places in a document that are at most `window` apart.
// Both orders of a pair count, so a word beside itself counts twice. The same bits for any number of threads.
Cooccurrence count_cooccurrences(const Corpus& corpus, std::size_t window, bool harmonic, int n_jobs, Watch& watch);

}  // namespace prodige
