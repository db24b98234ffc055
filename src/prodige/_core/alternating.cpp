#include "alternating.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels.hpp"
#include "memory.hpp"

namespace prodige {

namespace {

constexpr std::size_t rows_per_job = 32;
// Ranges of rows that sums of words are made over: fixed, so that sums do not depend on the number of threads.
constexpr std::size_t n_parts = 8;

using Floats = std::vector<float, LargeAllocator<float>>;

// Calls job(bench, row) for all rows; each worker has a bench of its own.
template <class Bench, class Make, class Job>
void for_rows(std::size_t n_rows, int n_jobs, Watch& watch, Make&& make, Job&& job) {
    const std::size_t n_blocks = (n_rows + rows_per_job - 1) / rows_per_job;
    std::vector<std::vector<Bench>> benches(static_cast<std::size_t>(std::max(n_jobs, 1)));
    parallel_for(n_blocks, n_jobs, watch, [&](std::size_t worker, std::size_t block) {
        if (benches[worker].empty()) benches[worker].push_back(make());
        const std::size_t end = std::min(n_rows, (block + 1) * rows_per_job);
        for (std::size_t row = block * rows_per_job; row < end; ++row) job(benches[worker].front(), row);
    });
}

// The quadratic form of one row at a time.
class Form {
   public:
    explicit Form(const RowTask& task)
        : task_(task), kernels_(row_kernels()), n_(task.size()), matrix_(n_ * n_), right_(n_), inverses_(n_) {}

    void take(std::size_t row) {
        const Interactions& all = task_.interactions;
        const auto begin = static_cast<std::size_t>(all.offsets[row]),
                   end = static_cast<std::size_t>(all.offsets[row + 1]);
        std::copy(task_.gram.begin(), task_.gram.end(), matrix_.begin());
        kernels_.add_rows(task_.vectors.data, all.partners.data() + begin, all.weights.data() + begin, end - begin, n_,
                          matrix_.data());
        if (!task_.ridge.empty())
            for (std::size_t k = 0; k < n_; ++k) matrix_[k * n_ + k] += task_.ridge[row];
        if (task_.extra.rows == 0)
            std::fill(right_.begin(), right_.end(), 0.0f);
        else
            std::copy_n(task_.extra.row(row).begin(), n_, right_.begin());
        for (std::size_t p = begin; p < end; ++p) {
            const float target = task_.targets.empty() ? 1.0f : task_.targets[p];
            kernels_.add_scaled(n_, all.weights[p] * target, task_.vectors.row(all.partners[p]).data(), right_.data());
        }
    }

    const float* solve() {
        kernels_.solve(n_, matrix_.data(), inverses_.data(), right_.data());
        return right_.data();
    }

    // What lies left of the diagonal, too.
    void mirror() {
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = i + 1; j < n_; ++j) matrix_[j * n_ + i] = matrix_[i * n_ + j];
    }

    std::size_t size() const noexcept { return n_; }
    const float* row(std::size_t i) const noexcept { return matrix_.data() + i * n_; }
    const float* right() const noexcept { return right_.data(); }
    const RowKernels& kernels() const noexcept { return kernels_; }

   private:
    const RowTask& task_;
    const RowKernels& kernels_;
    std::size_t n_;
    Floats matrix_, right_, inverses_;
};

// Codebooks as the kernels want them: [coordinate][word], with words up to a multiple of 16 (the first one again).
class Shelf {
   public:
    explicit Shelf(const Codebooks& books) : books_(books) {
        std::size_t from = 0, n_before = 0;
        for (std::size_t m = 0; m < books.n_groups(); ++m) {
            const auto size = static_cast<std::size_t>(books.sizes[m]), n = static_cast<std::size_t>(books.n_words[m]);
            const std::size_t padded = (n + lanes - 1) / lanes * lanes;
            coordinates_.push_back(m == 0 ? 0 : coordinates_.back() + static_cast<std::size_t>(books.sizes[m - 1]));
            starts_.push_back(from);
            padded_.push_back(padded);
            places_.push_back(words_.size());
            for (std::size_t k = 0; k < size; ++k)
                for (std::size_t w = 0; w < padded; ++w)
                    words_.push_back(books.words[from + (w < n ? w : 0) * size + k]);
            first_prices_.push_back(prices_.size());
            for (std::size_t w = 0; w < padded; ++w)
                prices_.push_back(books.prices.empty() ? 0.0f : books.prices[n_before + (w < n ? w : 0)]);
            from += n * size;
            n_before += n;
        }
    }

    std::size_t n_groups() const noexcept { return books_.n_groups(); }
    std::size_t size(std::size_t m) const noexcept { return static_cast<std::size_t>(books_.sizes[m]); }
    std::size_t n_words(std::size_t m) const noexcept { return static_cast<std::size_t>(books_.n_words[m]); }
    std::size_t padded(std::size_t m) const noexcept { return padded_[m]; }
    std::size_t first_coordinate(std::size_t m) const noexcept { return coordinates_[m]; }
    const float* by_coordinate(std::size_t m) const noexcept { return words_.data() + places_[m]; }
    const float* prices(std::size_t m) const noexcept { return prices_.data() + first_prices_[m]; }
    const float* word(std::size_t m, std::size_t w) const noexcept {
        return books_.words.data() + starts_[m] + w * size(m);
    }

   private:
    const Codebooks& books_;
    std::vector<std::size_t> coordinates_, starts_, padded_, places_, first_prices_;
    Floats words_, prices_;
};

// One row at a time: the vector its words make, and the slope A x - t of its error.
class Coder {
   public:
    Coder(const RowTask& task, const Shelf& shelf)
        : form_(task), shelf_(shelf), vector_(form_.size()), slope_(form_.size()), codes_(shelf.n_groups()) {
        std::size_t most = 0;
        for (std::size_t m = 0; m < shelf.n_groups(); ++m) most = std::max(most, shelf.size(m));
        block_.resize(most * most);
        without_.resize(most);
    }

    void take(std::size_t row, std::span<const std::uint16_t> codes) {
        form_.take(row);
        form_.mirror();
        std::copy(codes.begin(), codes.end(), codes_.begin());
        std::fill(vector_.begin(), vector_.end(), 0.0f);
        for (std::size_t j = 0; j < form_.size(); ++j) slope_[j] = -form_.right()[j];
        for (std::size_t m = 0; m < shelf_.n_groups(); ++m) {
            const std::size_t first = shelf_.first_coordinate(m);
            const float* word = shelf_.word(m, codes_[m]);
            for (std::size_t k = 0; k < shelf_.size(m); ++k) move(first + k, word[k]);
        }
    }

    void choose(std::size_t m) {
        const std::size_t first = shelf_.first_coordinate(m), size = shelf_.size(m);
        lay_out(m);
        for (std::size_t i = 0; i < size; ++i) without_[i] *= -2;
        for (std::size_t i = 0; i < size; ++i)
            for (std::size_t j = i + 1; j < size; ++j) block_[i * size + j] *= 2;
        const std::size_t best = form_.kernels().best_word(shelf_.by_coordinate(m), shelf_.prices(m), shelf_.padded(m),
                                                           size, block_.data(), without_.data());
        if (best == codes_[m]) return;
        codes_[m] = static_cast<std::uint16_t>(best);
        const float* word = shelf_.word(m, best);
        for (std::size_t k = 0; k < size; ++k) move(first + k, word[k] - vector_[first + k]);
    }

    // A within the group, and what is left for it to explain: A x - slope within the group.
    void lay_out(std::size_t m) {
        const std::size_t first = shelf_.first_coordinate(m), size = shelf_.size(m);
        for (std::size_t i = 0; i < size; ++i) {
            const float* row = form_.row(first + i) + first;
            float product = 0;
            for (std::size_t j = 0; j < size; ++j) {
                block_[i * size + j] = row[j];
                product += row[j] * vector_[first + j];
            }
            without_[i] = product - slope_[first + i];
        }
    }

    double loss() const {
        double total = 0;
        for (std::size_t j = 0; j < form_.size(); ++j)
            total += static_cast<double>(vector_[j]) * (slope_[j] - form_.right()[j]);
        return total;
    }

    std::span<const std::uint16_t> codes() const noexcept { return codes_; }
    const float* block() const noexcept { return block_.data(); }
    const float* without() const noexcept { return without_.data(); }

   private:
    void move(std::size_t coordinate, float step) {
        vector_[coordinate] += step;
        form_.kernels().add_scaled(form_.size(), step, form_.row(coordinate), slope_.data());
    }

    Form form_;
    const Shelf& shelf_;
    Floats vector_, slope_, block_, without_;
    std::vector<std::uint16_t> codes_;
};

// Sums over the rows of one part.
struct PartSums {
    double loss = 0;
    std::vector<double> matrices, rights;

    void reserve(const Shelf& shelf) {
        std::size_t n_matrices = 0, n_rights = 0;
        for (std::size_t m = 0; m < shelf.n_groups(); ++m) {
            n_rights += shelf.n_words(m) * shelf.size(m);
            n_matrices += shelf.n_words(m) * shelf.size(m) * shelf.size(m);
        }
        matrices.assign(n_matrices, 0);
        rights.assign(n_rights, 0);
    }

    void add(Coder& coder, const Shelf& shelf) {
        double *matrix = matrices.data(), *right = rights.data();
        for (std::size_t m = 0; m < shelf.n_groups(); ++m) {
            const std::size_t size = shelf.size(m), word = coder.codes()[m];
            coder.lay_out(m);
            for (std::size_t e = 0; e < size * size; ++e) matrix[word * size * size + e] += coder.block()[e];
            for (std::size_t e = 0; e < size; ++e) right[word * size + e] += coder.without()[e];
            matrix += shelf.n_words(m) * size * size;
            right += shelf.n_words(m) * size;
        }
    }
};

// The best n entries seen so far as a heap whose top is the worst of them.
class Best {
   public:
    explicit Best(std::size_t n) : n_(n) { entries_.reserve(n); }

    void find(const RowKernels& kernels, std::span<const float> row, std::int32_t* columns, float* values) {
        constexpr float nothing = -std::numeric_limits<float>::infinity();
        entries_.clear();
        float bound = nothing;
        for (std::size_t c = 0; (c = kernels.find_above(row.data(), c, row.size(), bound)) < row.size(); ++c) {
            if (entries_.size() == n_) {
                std::pop_heap(entries_.begin(), entries_.end(), is_better);
                entries_.pop_back();
            }
            entries_.push_back({row[c], static_cast<std::int32_t>(c)});
            std::push_heap(entries_.begin(), entries_.end(), is_better);
            if (entries_.size() == n_) bound = entries_.front().first;
        }
        std::sort(entries_.begin(), entries_.end(), is_better);
        for (std::size_t k = 0; k < n_; ++k) {
            columns[k] = k < entries_.size() ? entries_[k].second : -1;
            values[k] = k < entries_.size() ? entries_[k].first : nothing;
        }
    }

   private:
    using Entry = std::pair<float, std::int32_t>;

    static bool is_better(const Entry& a, const Entry& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    }

    std::size_t n_;
    std::vector<Entry> entries_;
};

}  // namespace

void solve_rows(const RowTask& task, Matrix<float> out, int n_jobs, Watch& watch) {
    for_rows<Form>(
        task.interactions.n_rows(), n_jobs, watch, [&] { return Form(task); },
        [&](Form& form, std::size_t row) {
            form.take(row);
            std::copy_n(form.solve(), task.size(), out.row(row).begin());
        });
}

void score_interactions(const Interactions& interactions, Matrix<const float> rows, Matrix<const float> vectors,
                        std::span<float> out, int n_jobs, Watch& watch) {
    const RowKernels& kernels = row_kernels();
    for_rows<char>(
        interactions.n_rows(), n_jobs, watch, [] { return 'x'; },
        [&](char, std::size_t row) {
            for (auto p = static_cast<std::size_t>(interactions.offsets[row]);
                 p < static_cast<std::size_t>(interactions.offsets[row + 1]); ++p)
                out[p] = kernels.dot(rows.columns, rows.row(row).data(), vectors.row(interactions.partners[p]).data());
        });
}

WordCodes choose_words(const RowTask& task, const Codebooks& books, Matrix<const std::uint16_t> codes, int n_sweeps,
                       bool with_sums, int n_jobs, Watch& watch) {
    const std::size_t n_rows = task.interactions.n_rows(), n_groups = books.n_groups();
    const Shelf shelf(books);
    WordCodes result{std::vector<std::uint16_t>(n_rows * n_groups), 0, {}, {}};
    // Without sums there is no order to keep but that of the losses: more parts, so that threads share them evenly.
    const std::size_t parts = std::max<std::size_t>(1, with_sums ? std::min(n_parts, n_rows) : (n_rows + 255) / 256);
    std::vector<PartSums> sums(parts);
    parallel_for(parts, n_jobs, watch, [&](std::size_t, std::size_t part) {
        if (with_sums) sums[part].reserve(shelf);
        Coder coder(task, shelf);
        for (std::size_t row = n_rows * part / parts; row < n_rows * (part + 1) / parts; ++row) {
            watch.check();
            coder.take(row, codes.row(row));
            for (int sweep = 0; sweep < n_sweeps; ++sweep)
                for (std::size_t m = 0; m < n_groups; ++m) coder.choose(m);
            std::copy(coder.codes().begin(), coder.codes().end(), result.codes.begin() + row * n_groups);
            sums[part].loss += coder.loss();
            if (with_sums) sums[part].add(coder, shelf);
        }
    });
    for (const PartSums& part : sums) result.loss += part.loss;
    if (with_sums) {
        result.matrices = std::move(sums[0].matrices);
        result.rights = std::move(sums[0].rights);
        for (std::size_t part = 1; part < parts; ++part) {
            for (std::size_t e = 0; e < result.matrices.size(); ++e) result.matrices[e] += sums[part].matrices[e];
            for (std::size_t e = 0; e < result.rights.size(); ++e) result.rights[e] += sums[part].rights[e];
        }
    }
    return result;
}

void find_best(const BestTask& task, std::size_t n, std::span<std::int32_t> columns, std::span<float> values,
               int n_jobs, Watch& watch) {
    for_rows<Best>(
        task.scores.rows, n_jobs, watch, [&] { return Best(n); },
        [&](Best& best, std::size_t row) {
            const auto scores = task.scores.row(row);
            if (!task.offsets.empty())
                for (std::int64_t p = task.offsets[row]; p < task.offsets[row + 1]; ++p)
                    scores[task.left_out[p]] = -std::numeric_limits<float>::infinity();
            best.find(row_kernels(), scores, columns.data() + row * n, values.data() + row * n);
        });
}

}  // namespace prodige
