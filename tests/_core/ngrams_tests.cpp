// Tests of words, sequences of words and their vertices, against plain loops over strings; and of the coder.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "checking.hpp"
#include "coder.hpp"
#include "lookup.hpp"
#include "ngrams.hpp"
#include "tokens.hpp"

namespace prodige {
namespace {

// Letters and digits of ASCII, e with an accent, a combining accent, and signs that stand alone.
Alphabet small_alphabet() {
    std::vector<std::uint8_t> kinds(Alphabet::n_points, 0);
    std::vector<std::uint32_t> lower(0x400);
    for (std::uint32_t p = 0; p < lower.size(); ++p) lower[p] = p >= 'A' && p <= 'Z' ? p + 32 : p;
    for (std::uint32_t p = 0; p < 128; ++p) kinds[p] = std::isalnum(static_cast<int>(p)) ? 1 : 0;
    lower[0xC9] = 0xE9;
    kinds[0xC9] = kinds[0xE9] = kinds[0x130] = 1;
    kinds[0x301] = 2;
    kinds['!'] = kinds[0x1F600] = 3;
    return {kinds, lower};
}

std::vector<std::string> words_of(std::string_view text) {
    static const Alphabet alphabet = small_alphabet();
    std::vector<std::string> words;
    Tokens tokens(text, alphabet);
    std::string_view token;
    while (tokens.next(token)) words.emplace_back(token);
    return words;
}

using Words = std::vector<std::string>;

void test_tokens() {
    CHECK(words_of("") == Words{});
    CHECK(words_of("Hello, World_2!") == Words{"hello", "world", "2", "!"});
    CHECK(words_of("don't 'quote' l\u2019\u00C9t\u00E9 rock'") == Words{"don't", "quote", "l'\u00E9t\u00E9", "rock"});
    CHECK(words_of("e\u0301a \u0301b") == Words{"e\u0301a", "b"});
    CHECK(words_of("so\U0001F600good!!") == Words{"so", "\U0001F600", "good", "!", "!"});
    CHECK(words_of("a<br />b </P>c < d <3 e<x") == Words{"a", "b", "c", "d", "3", "e", "x"});
    CHECK(words_of("a<b<i>c") == Words{"a", "b", "c"});
    CHECK(words_of("<b" + std::string(500, ' ') + ">c") == Words{"c"});
    CHECK(words_of("<b" + std::string(501, ' ') + ">c") == Words{"b", "c"});
    CHECK(words_of("\u0130x") == Words{"i\u0307x"});
    CHECK(words_of("a\xFF\xE2") == Words{"a"});  // whatever the bytes are, reading ends
}

void test_beginnings() {
    CHECK(beginning("enjoyed", 5) == 5);
    CHECK(beginning("enjoy", 5) == 5);
    CHECK(beginning("\u00E9t\u00E9", 2) == 3);
    CHECK(beginning("", 5) == 0);
}

void test_table_of_strings() {
    Random random(1);
    StringTable table;
    std::map<std::string, std::int32_t> truth;
    for (int k = 0; k < 5000; ++k) {
        std::string text(random.below(12), 'a');
        for (char& letter : text) letter = static_cast<char>('a' + random.below(3));
        const auto expected = truth.emplace(text, static_cast<std::int32_t>(truth.size())).first->second;
        CHECK(table.add(text) == expected);
    }
    CHECK(table.size() == truth.size());
    for (const auto& [text, number] : truth) CHECK(table.find(text) == number && table[number] == text);
    CHECK(table.find("b a") == StringTable::none);
}

struct Numbers {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> offsets = {0};

    Texts texts() const { return {ids, offsets}; }
};

Numbers random_numbers(Random& random, std::size_t n_texts, std::int32_t n) {
    Numbers numbers;
    for (std::size_t text = 0; text < n_texts; ++text) {
        for (std::size_t length = random.below(15); length > 0; --length)
            numbers.ids.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(n) + 1)) - 1);
        numbers.offsets.push_back(static_cast<std::int64_t>(numbers.ids.size()));
    }
    return numbers;
}

void check_joined_neighbors(std::int64_t distance) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Random random(seed);
        const Numbers numbers = random_numbers(random, 40, 5);
        Watch watch;
        const Joined joined = join_neighbors(numbers.texts(), 5, 3, distance, watch);
        std::map<std::pair<std::int32_t, std::int32_t>, std::set<std::size_t>> texts_with;
        for (std::size_t text = 0; text < 40; ++text)
            for (std::int64_t p = numbers.offsets[text]; p + distance < numbers.offsets[text + 1]; ++p)
                if (numbers.ids[p] >= 0 && numbers.ids[p + distance] >= 0)
                    texts_with[{numbers.ids[p], numbers.ids[p + distance]}].insert(text);
        std::size_t n_frequent = 0;
        for (const auto& [pair, texts] : texts_with) n_frequent += texts.size() >= 3;
        CHECK(joined.first.size() == n_frequent && joined.second.size() == n_frequent);
        for (std::size_t text = 0; text < 40; ++text)
            for (std::int64_t p = numbers.offsets[text]; p < numbers.offsets[text + 1]; ++p) {
                const bool is_last = p + distance >= numbers.offsets[text + 1];
                const auto found =
                    is_last ? texts_with.end() : texts_with.find({numbers.ids[p], numbers.ids[p + distance]});
                if (found == texts_with.end() || found->second.size() < 3) {
                    CHECK(joined.places[p] == -1);
                } else if (CHECK(joined.places[p] >= 0)) {
                    CHECK(joined.first[joined.places[p]] == numbers.ids[p]);
                    CHECK(joined.second[joined.places[p]] == numbers.ids[p + distance]);
                }
            }
    }
}

void test_joined_neighbors() {
    check_joined_neighbors(1);
    check_joined_neighbors(2);
}

void test_rows_and_sums() {
    Random random(5);
    const Numbers numbers = random_numbers(random, 700, 9);
    Watch watch;
    const std::vector<std::span<const std::int32_t>> lists{numbers.ids, numbers.ids};
    const std::vector<std::int32_t> sizes{9, 9};
    const Rows rows = distinct(lists, sizes, numbers.offsets, watch);
    const Texts texts{rows.columns, rows.offsets};
    const Rows columns = transpose(texts, 18);
    std::vector<double> table(18 * 3);
    for (double& value : table) value = random.unit();
    std::vector<double> one(700 * 3), two(700 * 3), by_column(18);
    sum_rows(texts, {table.data(), 18, 3}, {one.data(), 700, 3}, 1, watch);
    sum_rows(texts, {table.data(), 18, 3}, {two.data(), 700, 3}, 3, watch);
    CHECK(same_bits(one, two));
    const std::vector<double> ones(700, 1.0);
    sum_rows({columns.columns, columns.offsets}, {ones.data(), 700, 1}, {by_column.data(), 18, 1}, 1, watch);
    std::vector<double> frequency(18, 0.0);
    for (std::size_t text = 0; text < 700; ++text) {
        std::set<std::int32_t> kept;
        for (std::int64_t p = numbers.offsets[text]; p < numbers.offsets[text + 1]; ++p)
            if (numbers.ids[p] >= 0) {
                kept.insert(numbers.ids[p]);
                kept.insert(numbers.ids[p] + 9);
            }
        for (std::size_t k = 0; k < 3; ++k) {
            double sum = 0;
            for (const std::int32_t column : kept) sum += table[column * 3 + k];
            CHECK(close(one[text * 3 + k], sum));
        }
        for (const std::int32_t column : kept) ++frequency[column];
    }
    CHECK(frequency == by_column);
}

void test_vertices_of_texts() {
    const Alphabet alphabet = small_alphabet();
    VertexLookup lookup(3);
    lookup.add_word("not", true);
    lookup.add_word("a", false);
    lookup.add_word("good", true);
    lookup.add_beginning("goo");
    lookup.add_sequence(std::vector<std::int32_t>{1, 2});
    lookup.add_sequence(std::vector<std::int32_t>{0, 1, 2});
    lookup.add_sequence(std::vector<std::int32_t>{1, -1, 2});
    CHECK(lookup.size() == 6);
    const auto find = [&](std::string_view text) {
        VertexLookup::Scratch scratch;
        lookup.find(text, alphabet, scratch);
        return scratch.found;
    };
    using Found = std::vector<std::int32_t>;
    CHECK(find("Not a GOOD good") == Found({0, 1, 2, 3, 4, 5}));
    CHECK(find("a unknown good") == Found({1, 2, 5}));
    CHECK(find("a not good a, and a") == Found({0, 1, 2, 5}));
    CHECK(find("goods goo") == Found({2}));
    CHECK(find("") == Found({}));
    CHECK_THROWS(std::invalid_argument, lookup.add_word("a", true));
    CHECK_THROWS(std::invalid_argument, lookup.add_sequence(std::vector<std::int32_t>{1, 2}));
    CHECK_THROWS(std::out_of_range, lookup.add_sequence(std::vector<std::int32_t>{1, 3}));
    CHECK_THROWS(std::invalid_argument, lookup.add_sequence(std::vector<std::int32_t>{1}));
    CHECK_THROWS(std::invalid_argument, lookup.add_sequence(std::vector<std::int32_t>{1, -1, 2}));
    CHECK_THROWS(std::out_of_range, lookup.add_sequence(std::vector<std::int32_t>{1, -1}));
    CHECK_THROWS(std::out_of_range, lookup.add_sequence(std::vector<std::int32_t>{-1, -1, 2}));
}

void test_coded_numbers() {
    Random random(9);
    std::vector<std::uint32_t> values;
    Coder writing;
    for (int k = 0; k < 4000; ++k) {
        const auto value = static_cast<std::uint32_t>(12 * random.unit() * random.unit());
        const auto even = static_cast<std::uint32_t>(random.below(1000));
        values.insert(values.end(), {value, even, value > 3});
        writing.number(7, 12, value);
        writing.uniform(1000, even);
        writing.bit(value, value > 3);
    }
    const std::string data = writing.finish();
    Coder reading(data);
    for (std::size_t k = 0; k < values.size(); k += 3) {
        if (!CHECK(reading.number(7, 12, 0) == values[k])) return;
        if (!CHECK(reading.uniform(1000, 0) == values[k + 1])) return;
        if (!CHECK(reading.bit(values[k], false) == (values[k + 2] != 0))) return;
    }
    CHECK(!reading.is_past_the_end());
    // 3.1 bits of entropy and 9.97 bits each, and next to nothing for what follows from the context.
    CHECK(data.size() < 4000 * 13.3 / 8);
}

void test_coded_words() {
    Random random(4);
    std::set<std::string> set;
    while (set.size() < 3000) {
        std::string word(1 + random.below(9), 'a');
        for (char& letter : word) letter = static_cast<char>('a' + static_cast<int>(8 * random.unit() * random.unit()));
        set.insert(word);
    }
    set.insert("\u00E9t\u00E9");
    set.insert(std::string(255, 'z'));
    const std::vector<std::string> words(set.begin(), set.end());
    Coder writing;
    writing.write_words({words.begin(), words.end()});
    writing.write_words({});
    const std::string data = writing.finish();
    Coder reading(data);
    CHECK(reading.read_words(words.size()) == words);
    CHECK(data.size() < words.size() * 2);
    Coder refused;
    const std::string long_word(256, 'a');
    CHECK_THROWS(std::invalid_argument, refused.write_words({long_word}));
}

// Whatever the bytes are, reading ends.
void test_coded_noise() {
    Random random(2);
    for (int k = 0; k < 40; ++k) {
        std::string data(random.below(40), '\0');
        for (char& byte : data) byte = static_cast<char>(random.below(256));
        Coder reading(data);
        try {
            for (const std::string& word : reading.read_words(5000)) CHECK(word.size() <= Coder::longest_word);
        } catch (const std::invalid_argument&) {
        }
    }
}

}  // namespace

void run_ngram_tests(Runner& runner) {
    RUN(test_tokens);
    RUN(test_beginnings);
    RUN(test_table_of_strings);
    RUN(test_joined_neighbors);
    RUN(test_rows_and_sums);
    RUN(test_vertices_of_texts);
    RUN(test_coded_numbers);
    RUN(test_coded_words);
    RUN(test_coded_noise);
}

}  // namespace prodige
