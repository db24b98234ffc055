// Bindings of counting and of word vectors.
#include <limits>

#include "bindings.hpp"
#include "cooccurrence.hpp"
#include "glove.hpp"

namespace prodige {

namespace {

// A result of hundreds of megabytes becomes a NumPy array without a copy.
template <class T>
Output<T> move_out(LargeVector<T>&& values) {
    auto kept = std::make_unique<LargeVector<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    nb::capsule owner(kept.release(), [](void* memory) noexcept { delete static_cast<LargeVector<T>*>(memory); });
    return Output<T>(data, {size}, owner);
}

// Offsets that begin at 0, never fall, and end with the last entry.
void check_offsets(std::span<const std::int64_t> offsets, std::size_t n_entries) {
    if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
        offsets.back() != static_cast<std::int64_t>(n_entries))
        throw std::invalid_argument("offsets must rise from 0 to " + std::to_string(n_entries));
}

void check_tokens(const char* name, std::span<const Token> ids, Token n_tokens) {
    for (std::size_t p = 0; p < ids.size(); ++p)
        if (ids[p] < 0 || ids[p] >= n_tokens)
            throw std::out_of_range(std::string(name) + "[" + std::to_string(p) + "] = " + std::to_string(ids[p]) +
                                    " is not a token: there are " + std::to_string(n_tokens));
}

}  // namespace

void bind_words(nb::module_& m) {
    m.def(
        "count_cooccurrences",
        [](Array<Token> ids, Array<std::int64_t> offsets, Token n_tokens, Token n_skipped, std::size_t window,
           bool harmonic, int n_jobs) {
            check_jobs(n_jobs);
            if (n_tokens < 0 || n_skipped < 0) throw std::invalid_argument("n_tokens and n_skipped must be 0 or more");
            check_offsets(view(offsets), ids.size());
            check_tokens("ids", view(ids), n_tokens);
            Cooccurrence found;
            run([&](Watch& watch) {
                found = count_cooccurrences({view(ids), view(offsets), n_tokens, n_skipped}, window, harmonic, n_jobs,
                                            watch);
            });
            return nb::make_tuple(move_out(std::move(found.offsets)), move_out(std::move(found.columns)),
                                  move_out(std::move(found.values)));
        },
        "ids"_a, "offsets"_a, "n_tokens"_a, "n_skipped"_a, "window"_a, "harmonic"_a, "n_jobs"_a);

    nb::class_<Glove>(m, "Glove")
        .def(
            "__init__",
            [](Glove* self, Array<std::int64_t> offsets, Array<Token> columns, Array<float> values,
               std::size_t n_components, double x_max, double alpha, std::uint64_t seed, int n_jobs) {
                check_jobs(n_jobs);
                check_offsets(view(offsets), columns.size());
                check_size("values", values.size(), columns.size());
                check_tokens("columns", view(columns), static_cast<Token>(offsets.size() - 1));
                if (n_components == 0) throw std::invalid_argument("n_components = 0 leaves nothing to learn");
                for (std::size_t p = 0; p < values.size(); ++p)
                    if (!(values.data()[p] > 0 && values.data()[p] < std::numeric_limits<float>::infinity()))
                        throw std::invalid_argument("values[" + std::to_string(p) + "] is no count above 0");
                run([&](Watch& watch) {
                    new (self) Glove({view(offsets), view(columns), view(values)}, n_components, x_max, alpha, seed,
                                     n_jobs, watch);
                });
            },
            "offsets"_a, "columns"_a, "values"_a, "n_components"_a, "x_max"_a, "alpha"_a, "seed"_a, "n_jobs"_a)
        .def(
            "run_epoch",
            [](Glove& glove, float learning_rate, int n_jobs) {
                check_jobs(n_jobs);
                double loss = 0;
                run([&](Watch& watch) { loss = glove.run_epoch(learning_rate, n_jobs, watch); });
                return loss;
            },
            "learning_rate"_a, "n_jobs"_a)
        .def("vectors", [](const Glove& glove) {
            const std::size_t rows = glove.n_words(), columns = glove.n_components();
            Owned<float> out(rows * columns);
            glove.write_vectors({out.data(), rows, columns});
            return out.release({rows, columns});
        });
}

}  // namespace prodige
