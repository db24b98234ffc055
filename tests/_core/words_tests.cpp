// Tests of counting and of word vectors, against sums over all pairs and gradients by finite differences.
#include <map>
#include <utility>

#include "checking.hpp"
#include "cooccurrence.hpp"
#include "glove.hpp"
#include "kernels.hpp"

namespace prodige {
namespace {

struct Texts {
    std::vector<Token> ids;
    std::vector<std::int64_t> offsets = {0};
    Token n_tokens = 0;

    Corpus corpus(Token n_skipped) const { return {ids, offsets, n_tokens, n_skipped}; }
};

// Frequent words and rare ones; some documents are empty.
Texts random_texts(Random& random, std::size_t n_documents, std::size_t longest, Token n_tokens) {
    Texts texts;
    texts.n_tokens = n_tokens;
    for (std::size_t d = 0; d < n_documents; ++d) {
        for (std::size_t length = random.below(longest + 1); length > 0; --length)
            texts.ids.push_back(static_cast<Token>(static_cast<double>(n_tokens) * std::pow(random.unit(), 3)));
        texts.offsets.push_back(static_cast<std::int64_t>(texts.ids.size()));
    }
    context = std::to_string(texts.ids.size()) + " words of " + std::to_string(n_tokens);
    return texts;
}

Cooccurrence count(const Texts& texts, Token n_skipped, std::size_t window, bool harmonic, int n_jobs = 1) {
    Watch watch;
    return count_cooccurrences(texts.corpus(n_skipped), window, harmonic, n_jobs, watch);
}

std::map<std::pair<Token, Token>, double> true_counts(const Texts& texts, Token n_skipped, std::size_t window,
                                                      bool harmonic) {
    std::map<std::pair<Token, Token>, double> counts;
    for (std::size_t d = 0; d + 1 < texts.offsets.size(); ++d)
        for (std::int64_t p = texts.offsets[d]; p < texts.offsets[d + 1]; ++p)
            for (std::int64_t q = texts.offsets[d]; q < texts.offsets[d + 1]; ++q) {
                const auto distance = static_cast<std::size_t>(std::abs(p - q));
                if (distance == 0 || distance > window) continue;
                if (texts.ids[p] < n_skipped || texts.ids[q] < n_skipped) continue;
                counts[{texts.ids[p], texts.ids[q]}] += harmonic ? 1 / static_cast<double>(distance) : 1;
            }
    return counts;
}

void check_counts(const Texts& texts, Token n_skipped, std::size_t window, bool harmonic) {
    const auto truth = true_counts(texts, n_skipped, window, harmonic);
    const Cooccurrence found = count(texts, n_skipped, window, harmonic);
    if (!CHECK(found.offsets.size() == static_cast<std::size_t>(texts.n_tokens) + 1)) return;
    if (!CHECK(found.columns.size() == truth.size() && found.values.size() == truth.size())) return;
    auto next = truth.begin();  // in the order of rows, then columns
    for (Token row = 0; row < texts.n_tokens; ++row)
        for (std::int64_t p = found.offsets[row]; p < found.offsets[row + 1]; ++p, ++next) {
            CHECK(next->first == std::pair(row, found.columns[p]));
            if (harmonic)
                CHECK(std::abs(found.values[p] - next->second) < 1e-5 * next->second);
            else
                CHECK(found.values[p] == static_cast<float>(next->second));
        }
}

void test_counts() {
    Random random(91);
    for (const Token n_tokens : {1, 5, 64, 65, 500, 20000})
        for (const std::size_t window : {1, 3, 50})
            for (const bool harmonic : {false, true}) {
                const Texts texts = random_texts(random, 8, 40, n_tokens);
                check_counts(texts, 0, window, harmonic);
                check_counts(texts, 2, window, harmonic);
            }
}

void test_counts_of_nothing() {
    Texts texts;
    check_counts(texts, 0, 5, true);
    texts.n_tokens = 3;
    check_counts(texts, 0, 5, true);
    texts.offsets = {0, 0, 0};
    check_counts(texts, 0, 5, true);
    texts.ids = {2, 2, 1};
    texts.offsets = {0, 1, 1, 2, 3};  // no document has two words
    check_counts(texts, 0, 5, true);
    CHECK(count(texts, 3, 5, true).columns.empty());
}

void test_counts_are_symmetric_for_any_jobs() {
    Random random(92);
    const Texts texts = random_texts(random, 60, 300, 900);
    const Cooccurrence found = count(texts, 2, 7, true);
    for (const int n_jobs : {2, 5}) {
        const Cooccurrence other = count(texts, 2, 7, true, n_jobs);
        CHECK(found.offsets == other.offsets && found.columns == other.columns && found.values == other.values);
    }
    std::map<std::pair<Token, Token>, float> values;
    for (Token row = 0; row < texts.n_tokens; ++row)
        for (std::int64_t p = found.offsets[row]; p < found.offsets[row + 1]; ++p)
            values[{row, found.columns[p]}] = found.values[p];
    for (const auto& [pair, value] : values) CHECK(values.at({pair.second, pair.first}) == value);
}

// -- GloVe

// Rows of one block as the kernel wants them.
struct Block {
    std::size_t n_components, width, n_words;
    std::vector<float> words, contexts;

    Block(Random& random, std::size_t size, std::size_t count)
        : n_components(size),
          width((size + 2 + pair_lanes - 1) / pair_lanes * pair_lanes),
          n_words(count),
          words(2 * width * count, 0),
          contexts(2 * width * count, 0) {
        for (std::size_t row = 0; row < count; ++row) {
            for (std::size_t k = 0; k < size + 2; ++k) {
                words[2 * width * row + k] = static_cast<float>(random.unit() - 0.5);
                contexts[2 * width * row + k] = static_cast<float>(random.unit() - 0.5);
            }
            words[2 * width * row + size + 1] = contexts[2 * width * row + size] = 1;
            for (std::size_t k = 0; k < width; ++k)
                words[2 * width * row + width + k] = contexts[2 * width * row + width + k] = 1;
        }
    }

    PairPass pass(float rate) { return {words.data(), contexts.data(), width, n_components, rate}; }

    std::vector<Pair> draw(Random& random, std::size_t count) const {
        std::vector<Pair> pairs(count);
        for (Pair& pair : pairs)
            pair = {static_cast<std::uint16_t>(random.below(n_words)),
                    static_cast<std::uint16_t>(random.below(n_words)), static_cast<float>(4 * random.unit() - 1),
                    static_cast<float>(random.unit())};
        return pairs;
    }

    // w·c + b + b' - log x, in double.
    double error(const Pair& pair) const {
        const float* word = words.data() + 2 * width * pair.word;
        const float* other = contexts.data() + 2 * width * pair.context;
        double sum = static_cast<double>(word[n_components]) + other[n_components + 1] - pair.logarithm;
        for (std::size_t k = 0; k < n_components; ++k) sum += static_cast<double>(word[k]) * other[k];
        return sum;
    }
};

// AdaGrad in double, with vectors, biases and squares apart.
struct PlainSide {
    std::vector<std::vector<double>> vectors, squares;  // the bias comes last

    PlainSide(const Block& block, const std::vector<float>& rows, std::size_t bias)
        : squares(block.n_words, std::vector<double>(block.n_components + 1, 1)) {
        for (std::size_t row = 0; row < block.n_words; ++row) {
            const float* from = rows.data() + 2 * block.width * row;
            vectors.emplace_back(from, from + block.n_components);
            vectors.back().push_back(from[bias]);
        }
    }

    void move(std::size_t row, std::size_t k, double gradient) {
        vectors[row][k] -= gradient / std::sqrt(squares[row][k]);
        squares[row][k] += gradient * gradient;
    }
};

void test_pairs_against_plain_adagrad() {
    Random random(93);
    for (const std::size_t size : {1, 6, 7, 30}) {
        Block block(random, size, 12);
        const auto pairs = block.draw(random, 400);
        PlainSide words(block, block.words, size), contexts(block, block.contexts, size + 1);
        double loss = 0;
        for (const Pair& pair : pairs) {
            auto word = words.vectors[pair.word], other = contexts.vectors[pair.context];
            double error = word[size] + other[size] - pair.logarithm;
            for (std::size_t k = 0; k < size; ++k) error += word[k] * other[k];
            loss += pair.weight * error * error;
            word[size] = other[size] = 1;  // by what a bias is multiplied
            for (std::size_t k = 0; k <= size; ++k) {
                words.move(pair.word, k, 0.1 * pair.weight * error * other[k]);
                contexts.move(pair.context, k, 0.1 * pair.weight * error * word[k]);
            }
        }
        const double found = fit_pairs()(block.pass(0.1f), pairs.data(), pairs.size());
        CHECK(std::abs(found - loss) < 1e-4 * loss);
        const PlainSide after(block, block.words, size), others(block, block.contexts, size + 1);
        for (std::size_t row = 0; row < block.n_words; ++row)
            for (std::size_t k = 0; k <= size; ++k) {
                CHECK(std::abs(after.vectors[row][k] - words.vectors[row][k]) < 1e-4);
                CHECK(std::abs(others.vectors[row][k] - contexts.vectors[row][k]) < 1e-4);
            }
    }
}

// While the squares are 1, a step is the learning rate times the gradient of half the loss.
void test_first_step_is_the_gradient() {
    Random random(94);
    const Block block(random, 5, 1);
    const Pair pair{0, 0, 1.5f, 0.7f};
    Block moved = block;
    fit_pairs()(moved.pass(0.25f), &pair, 1);
    const auto half_loss = [&](const Block& at) { return 0.5 * pair.weight * at.error(pair) * at.error(pair); };
    for (const auto side : {&Block::words, &Block::contexts})
        for (std::size_t k = 0; k < block.width; ++k) {
            const bool is_one = k == (side == &Block::words ? 6u : 5u);
            Block up = block, down = block;
            (up.*side)[k] += 1e-2f;
            (down.*side)[k] -= 1e-2f;
            const double gradient = is_one ? 0 : (half_loss(up) - half_loss(down)) / 2e-2;
            CHECK(std::abs((block.*side)[k] - (moved.*side)[k] - 0.25 * gradient) < 1e-5);
        }
}

void test_pair_kernels_agree() {
    Random random(95);
    for (const std::size_t size : {1, 14, 100}) {
        const Block block(random, size, 20);
        const auto pairs = block.draw(random, 1000);
        Block one = block, other = block;
        const double loss = generic_fit_pairs()(one.pass(0.05f), pairs.data(), pairs.size());
        CHECK(fit_pairs()(other.pass(0.05f), pairs.data(), pairs.size()) == loss);
        CHECK(same_bits(one.words, other.words) && same_bits(one.contexts, other.contexts));
        CHECK(!same_bits(one.words, block.words));
    }
}

std::pair<std::vector<double>, std::vector<float>> train(const Cooccurrence& counts, std::uint64_t seed, int n_jobs) {
    Watch watch;
    Glove glove({counts.offsets, counts.columns, counts.values}, 9, 10, 0.75, seed, n_jobs, watch);
    std::vector<double> losses;
    for (int epoch = 0; epoch < 4; ++epoch) losses.push_back(glove.run_epoch(0.05f, n_jobs, watch));
    std::vector<float> vectors(glove.n_words() * glove.n_components());
    glove.write_vectors({vectors.data(), glove.n_words(), glove.n_components()});
    return {losses, vectors};
}

void test_glove_has_the_same_bits_for_any_jobs() {
    Random random(96);
    for (const Token n_tokens : {3, 40, 9000}) {  // the last has more blocks
        const Cooccurrence counts = count(random_texts(random, 40, 100, n_tokens), 2, 5, true);
        const auto [losses, vectors] = train(counts, 1, 1);
        CHECK(losses.back() < losses.front());
        for (const int n_jobs : {2, 5}) {
            const auto [other_losses, other_vectors] = train(counts, 1, n_jobs);
            CHECK(other_losses == losses && same_bits(other_vectors, vectors));
        }
        CHECK(!same_bits(train(counts, 2, 1).second, vectors));
    }
}

void test_glove_of_nothing() {
    Texts texts;
    texts.n_tokens = 2;
    const auto [losses, vectors] = train(count(texts, 0, 5, true), 0, 2);
    CHECK(losses == std::vector<double>(4, 0.0));
    CHECK(vectors.size() == 18);
}

void test_cancelled_words() {
    Random random(97);
    const Texts texts = random_texts(random, 40, 100, 300);
    const Cooccurrence counts = count(texts, 0, 5, true);
    Watch patient, watch;
    Glove glove({counts.offsets, counts.columns, counts.values}, 9, 10, 0.75, 0, 1, patient);
    watch.stop();
    for (const int n_jobs : {1, 3}) {
        CHECK_THROWS(Cancelled, count_cooccurrences(texts.corpus(0), 5, true, n_jobs, watch));
        CHECK_THROWS(Cancelled, glove.run_epoch(0.05f, n_jobs, watch));
        CHECK_THROWS(Cancelled, Glove({counts.offsets, counts.columns, counts.values}, 9, 10, 0.75, 0, n_jobs, watch));
    }
}

}  // namespace

void run_word_tests(Runner& runner) {
    RUN(test_counts);
    RUN(test_counts_of_nothing);
    RUN(test_counts_are_symmetric_for_any_jobs);
    RUN(test_pairs_against_plain_adagrad);
    RUN(test_first_step_is_the_gradient);
    RUN(test_pair_kernels_agree);
    RUN(test_glove_has_the_same_bits_for_any_jobs);
    RUN(test_glove_of_nothing);
    RUN(test_cancelled_words);
}

}  // namespace prodige
