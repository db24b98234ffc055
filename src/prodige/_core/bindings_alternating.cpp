// Bindings of alternating least squares, of the choice of words, and of the best of rows of scores.
#include "alternating.hpp"
#include "bindings.hpp"

namespace prodige {

namespace {

using Written = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check_offsets(std::span<const std::int64_t> offsets, std::size_t n_entries) {
    if (offsets.empty() || offsets.front() != 0 || static_cast<std::size_t>(offsets.back()) != n_entries ||
        !std::is_sorted(offsets.begin(), offsets.end()))
        throw std::invalid_argument("offsets do not cut the interactions into rows");
}

// What one side knows about the other: who met whom, how much each meeting counts, and what all partners add.
class RowFit {
   public:
    RowFit(Array<std::int64_t> offsets, Array<std::int32_t> partners, Array<float> weights, std::size_t n_partners)
        : offsets_(offsets), partners_(partners), weights_(weights), n_partners_(n_partners) {
        check_offsets(view(offsets), partners.size());
        check_size("weights", weights.size(), partners.size());
        if (n_partners > static_cast<std::size_t>(std::numeric_limits<Vertex>::max()))
            throw std::invalid_argument("there are too many partners");
        check_vertices("partners", view(partners), static_cast<Vertex>(n_partners));
    }

    Interactions interactions() const { return {view(offsets_), view(partners_), view(weights_)}; }
    std::size_t n_rows() const { return offsets_.size() - 1; }
    std::size_t n_interactions() const { return partners_.size(); }

    void check_vectors(const Grid<float>& vectors) const {
        check_size("vectors", vectors.shape(0), n_partners_);
        if (vectors.shape(1) == 0 || vectors.shape(1) % 8 != 0)
            throw std::invalid_argument("vectors need a multiple of 8 coordinates");
    }

    RowTask task(const Grid<float>& vectors, const Grid<float>& gram, const std::optional<Array<float>>& targets,
                 const std::optional<Array<float>>& ridge, const std::optional<Grid<float>>& extra) const {
        check_vectors(vectors);
        const std::size_t n = vectors.shape(1);
        check_size("gram", gram.size(), n * n);
        if (targets) check_size("targets", targets->size(), n_interactions());
        if (ridge) check_size("ridge", ridge->size(), n_rows());
        if (extra) check_size("extra", extra->shape(0), n_rows());
        if (extra) check_size("a row of extra", extra->shape(1), n);
        return {interactions(), matrix(vectors), {gram.data(), gram.size()},
                view(targets),  view(ridge),     extra ? matrix(*extra) : Matrix<const float>{nullptr, 0, n}};
    }

   private:
    Array<std::int64_t> offsets_;
    Array<std::int32_t> partners_;
    Array<float> weights_;
    std::size_t n_partners_;
};

void check_books(const Codebooks& books, const Grid<std::uint16_t>& codes, std::size_t n_rows, std::size_t n) {
    check_size("n_words", books.n_words.size(), books.n_groups());
    std::size_t n_entries = 0, n_coordinates = 0, n_all_words = 0;
    for (std::size_t m = 0; m < books.n_groups(); ++m) {
        if (books.sizes[m] < 1 || books.n_words[m] < 1 || books.n_words[m] > 65536)
            throw std::invalid_argument("a codebook has no coordinates, no words, or too many");
        n_coordinates += static_cast<std::size_t>(books.sizes[m]);
        n_entries += static_cast<std::size_t>(books.sizes[m]) * static_cast<std::size_t>(books.n_words[m]);
        n_all_words += static_cast<std::size_t>(books.n_words[m]);
    }
    check_size("words", books.words.size(), n_entries);
    if (!books.prices.empty()) check_size("prices", books.prices.size(), n_all_words);
    if (n_coordinates > n) throw std::invalid_argument("codebooks have more coordinates than vectors");
    check_size("codes", codes.shape(0), n_rows);
    check_size("a row of codes", codes.shape(1), books.n_groups());
    for (std::size_t e = 0; e < codes.size(); ++e)
        if (codes.data()[e] >= books.n_words[e % books.n_groups()])
            throw std::out_of_range("codes name words that are not there");
}

}  // namespace

void bind_alternating(nb::module_& m) {
    nb::class_<RowFit>(m, "RowFit")
        .def(nb::init<Array<std::int64_t>, Array<std::int32_t>, Array<float>, std::size_t>(), "offsets"_a, "partners"_a,
             "weights"_a, "n_partners"_a)
        .def(
            "solve",
            [](const RowFit& fit, Grid<float> vectors, Grid<float> gram, std::optional<Array<float>> targets,
               std::optional<Array<float>> ridge, std::optional<Grid<float>> extra, int n_jobs) {
                check_jobs(n_jobs);
                const RowTask task = fit.task(vectors, gram, targets, ridge, extra);
                const std::size_t n = vectors.shape(1);
                Owned<float> out(fit.n_rows() * n);
                run([&](Watch& watch) { solve_rows(task, {out.data(), fit.n_rows(), n}, n_jobs, watch); });
                return out.release({fit.n_rows(), n});
            },
            "vectors"_a, "gram"_a, "targets"_a.none(), "ridge"_a.none(), "extra"_a.none(), "n_jobs"_a)
        .def(
            "scores",
            [](const RowFit& fit, Grid<float> rows, Grid<float> vectors, int n_jobs) {
                check_jobs(n_jobs);
                fit.check_vectors(vectors);
                check_size("rows", rows.shape(0), fit.n_rows());
                check_size("a row of rows", rows.shape(1), vectors.shape(1));
                Owned<float> out(fit.n_interactions());
                run([&](Watch& watch) {
                    score_interactions(fit.interactions(), matrix(rows), matrix(vectors), out.span(), n_jobs, watch);
                });
                return out.release({fit.n_interactions()});
            },
            "rows"_a, "vectors"_a, "n_jobs"_a)
        .def(
            "choose_words",
            [](const RowFit& fit, Grid<float> vectors, Grid<float> gram, std::optional<Array<float>> targets,
               std::optional<Array<float>> ridge, std::optional<Grid<float>> extra, Array<std::int32_t> sizes,
               Array<std::int32_t> n_words, Array<float> words, std::optional<Array<float>> prices,
               Grid<std::uint16_t> codes, int n_sweeps, bool with_sums, int n_jobs) {
                check_jobs(n_jobs);
                const RowTask task = fit.task(vectors, gram, targets, ridge, extra);
                const Codebooks books{view(sizes), view(n_words), view(words), view(prices)};
                check_books(books, codes, fit.n_rows(), vectors.shape(1));
                WordCodes found;
                run([&](Watch& watch) {
                    found = choose_words(task, books, matrix(codes), n_sweeps, with_sums, n_jobs, watch);
                });
                return nb::make_tuple(copy_out(found.codes, {fit.n_rows(), sizes.size()}), found.loss,
                                      copy_out(found.matrices), copy_out(found.rights));
            },
            "vectors"_a, "gram"_a, "targets"_a.none(), "ridge"_a.none(), "extra"_a.none(), "sizes"_a, "n_words"_a,
            "words"_a, "prices"_a.none(), "codes"_a, "n_sweeps"_a, "with_sums"_a, "n_jobs"_a);
    m.def(
        "find_best",
        [](Written scores, std::size_t n, std::optional<Array<std::int64_t>> offsets,
           std::optional<Array<std::int32_t>> left_out, int n_jobs) {
            check_jobs(n_jobs);
            const std::size_t n_rows = scores.shape(0), n_columns = scores.shape(1);
            if (n < 1 || n_columns > static_cast<std::size_t>(std::numeric_limits<Vertex>::max()))
                throw std::invalid_argument("n is 0, or there are too many columns");
            if (offsets.has_value() != left_out.has_value())
                throw std::invalid_argument("offsets and left_out belong together");
            if (offsets) {
                check_size("offsets", offsets->size(), n_rows + 1);
                check_offsets(view(offsets), left_out->size());
                check_vertices("left_out", view(left_out), static_cast<Vertex>(n_columns));
            }
            Owned<std::int32_t> columns(n_rows * n);
            Owned<float> values(n_rows * n);
            const BestTask task{{scores.data(), n_rows, n_columns}, view(offsets), view(left_out)};
            run([&](Watch& watch) { find_best(task, n, columns.span(), values.span(), n_jobs, watch); });
            return nb::make_tuple(columns.release({n_rows, n}), values.release({n_rows, n}));
        },
        "scores"_a, "n"_a, "offsets"_a.none(), "left_out"_a.none(), "n_jobs"_a);
}

}  // namespace prodige
