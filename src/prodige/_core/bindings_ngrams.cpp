// What the graph of words, pairs and triples needs of the core: from texts to vertices, sums over them, and coding.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "coder.hpp"
#include "lookup.hpp"
#include "ngrams.hpp"
#include "tokens.hpp"

namespace prodige {
namespace {

// The bytes of strings, which live as long as the list does.
std::vector<std::string_view> views(const nb::list& texts) {
    std::vector<std::string_view> found;
    found.reserve(nb::len(texts));
    for (const nb::handle text : texts) {
        Py_ssize_t size = 0;
        const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (!data) throw nb::python_error();
        found.emplace_back(data, static_cast<std::size_t>(size));
    }
    return found;
}

template <class T>
Output<T> move_out(LargeVector<T>&& values) {
    auto kept = std::make_unique<LargeVector<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    nb::capsule owner(kept.release(), [](void* memory) noexcept { delete static_cast<LargeVector<T>*>(memory); });
    return Output<T>(data, {size}, owner);
}

void check_offsets(std::span<const std::int64_t> offsets, std::size_t n_entries) {
    if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
        offsets.back() != static_cast<std::int64_t>(n_entries))
        throw std::invalid_argument("offsets must rise from 0 to " + std::to_string(n_entries));
}

void check_below(const char* name, std::span<const std::int32_t> numbers, std::int64_t least, std::int64_t end) {
    for (const std::int32_t number : numbers)
        if (number < least || number >= end)
            throw std::out_of_range(std::string(name) + " has " + std::to_string(number) + ", which is not below " +
                                    std::to_string(end));
}

nb::tuple as_tuple(Rows&& rows) {
    return nb::make_tuple(move_out(std::move(rows.offsets)), move_out(std::move(rows.columns)));
}

void bind_texts(nb::module_& m) {
    nb::class_<Alphabet>(m, "Alphabet")
        .def(
            "__init__",
            [](Alphabet* self, Array<std::uint8_t> kinds, Array<std::uint32_t> lower) {
                new (self) Alphabet(view(kinds), view(lower));
            },
            "kinds"_a, "lower"_a);

    m.def(
        "tokenize",
        [](const nb::list& texts, const Alphabet& alphabet) {
            const auto documents = views(texts);
            LargeVector<std::int32_t> ids;
            LargeVector<std::int64_t> offsets;
            StringTable table;
            run([&](Watch& watch) {
                offsets.push_back(0);
                for (const std::string_view text : documents) {
                    watch.check();
                    Tokens tokens(text, alphabet);
                    std::string_view token;
                    while (tokens.next(token)) ids.push_back(table.add(token));
                    offsets.push_back(static_cast<std::int64_t>(ids.size()));
                }
            });
            nb::list words;
            for (std::size_t number = 0; number < table.size(); ++number)
                words.append(nb::str(table[number].data(), table[number].size()));
            return nb::make_tuple(words, move_out(std::move(ids)), move_out(std::move(offsets)));
        },
        "texts"_a, "alphabet"_a);

    nb::class_<VertexLookup>(m, "VertexLookup")
        .def(
            "__init__",
            [](VertexLookup* self, const nb::list& words, Array<bool> is_vertex, const nb::list& beginnings,
               std::size_t beginning, Grid<std::int32_t> pairs, Grid<std::int32_t> triples) {
                check_size("is_vertex", is_vertex.size(), nb::len(words));
                if (pairs.shape(1) != 2 || triples.shape(1) != 3)
                    throw std::invalid_argument("pairs have two words, triples have three");
                auto lookup = VertexLookup(beginning);
                const auto spelled = views(words);
                for (std::size_t word = 0; word < spelled.size(); ++word)
                    lookup.add_word(spelled[word], is_vertex.data()[word]);
                for (const std::string_view letters : views(beginnings)) lookup.add_beginning(letters);
                for (const auto& grid : {pairs, triples})
                    for (std::size_t row = 0; row < grid.shape(0); ++row)
                        lookup.add_sequence({grid.data() + row * grid.shape(1), grid.shape(1)});
                new (self) VertexLookup(std::move(lookup));
            },
            "words"_a, "is_vertex"_a, "beginnings"_a, "beginning"_a, "pairs"_a, "triples"_a)
        .def("__len__", &VertexLookup::size)
        .def(
            "find",
            [](const VertexLookup& lookup, const nb::list& text, const Alphabet& alphabet) {
                VertexLookup::Scratch scratch;
                for (const std::string_view one : views(text)) lookup.find(one, alphabet, scratch);
                return copy_out(scratch.found);
            },
            "text"_a, "alphabet"_a)
        .def(
            "sum",
            [](const VertexLookup& lookup, const nb::list& texts, const Alphabet& alphabet, Grid<double> values,
               int n_jobs) {
                check_jobs(n_jobs);
                check_size("values", values.shape(0), lookup.size());
                const auto documents = views(texts);
                const std::size_t columns = values.shape(1);
                Owned<double> out(documents.size() * columns);
                Owned<std::int32_t> counts(documents.size());
                run([&](Watch& watch) {
                    lookup.sum(documents, alphabet, {values.data(), values.shape(0), columns},
                               {out.data(), documents.size(), columns}, counts.span(), n_jobs, watch);
                });
                return nb::make_tuple(out.release({documents.size(), columns}), counts.release({documents.size()}));
            },
            "texts"_a, "alphabet"_a, "values"_a, "n_jobs"_a);
}

void bind_features(nb::module_& m) {
    m.def(
        "join_neighbors",
        [](Array<std::int32_t> parts, Array<std::int64_t> offsets, std::int32_t n_parts, std::int32_t min_texts,
           std::int64_t distance) {
            if (distance < 1) throw std::invalid_argument("distance must be 1 or more");
            check_offsets(view(offsets), parts.size());
            check_below("parts", view(parts), -1, n_parts);
            Joined joined;
            run([&](Watch& watch) {
                joined = join_neighbors({view(parts), view(offsets)}, n_parts, min_texts, distance, watch);
            });
            return nb::make_tuple(move_out(std::move(joined.places)), copy_out(joined.first), copy_out(joined.second));
        },
        "parts"_a, "offsets"_a, "n_parts"_a, "min_texts"_a, "distance"_a = 1);

    m.def(
        "distinct",
        [](const std::vector<Array<std::int32_t>>& lists, Array<std::int32_t> sizes, Array<std::int64_t> offsets) {
            check_size("sizes", sizes.size(), lists.size());
            std::vector<std::span<const std::int32_t>> spans;
            for (std::size_t list = 0; list < lists.size(); ++list) {
                check_offsets(view(offsets), lists[list].size());
                check_below("lists", view(lists[list]), -1, sizes.data()[list]);
                spans.push_back(view(lists[list]));
            }
            Rows rows;
            run([&](Watch& watch) { rows = distinct(spans, view(sizes), view(offsets), watch); });
            return as_tuple(std::move(rows));
        },
        "lists"_a, "sizes"_a, "offsets"_a);

    m.def(
        "transpose",
        [](Array<std::int64_t> offsets, Array<std::int32_t> columns, std::int32_t n_columns) {
            check_offsets(view(offsets), columns.size());
            check_below("columns", view(columns), 0, n_columns);
            Rows rows;
            run([&](Watch&) { rows = transpose({view(columns), view(offsets)}, static_cast<std::size_t>(n_columns)); });
            return as_tuple(std::move(rows));
        },
        "offsets"_a, "columns"_a, "n_columns"_a);

    m.def(
        "sum_rows",
        [](Array<std::int64_t> offsets, Array<std::int32_t> columns, Grid<double> table, int n_jobs) {
            check_jobs(n_jobs);
            check_offsets(view(offsets), columns.size());
            check_below("columns", view(columns), 0, static_cast<std::int64_t>(table.shape(0)));
            const std::size_t rows = offsets.size() - 1, width = table.shape(1);
            Owned<double> out(rows * width);
            run([&](Watch& watch) {
                sum_rows({view(columns), view(offsets)}, {table.data(), table.shape(0), width},
                         {out.data(), rows, width}, n_jobs, watch);
            });
            return out.release({rows, width});
        },
        "offsets"_a, "columns"_a, "table"_a, "n_jobs"_a);
}

void bind_coder(nb::module_& m) {
    nb::class_<Coder>(m, "Coder")
        .def(nb::init<>())
        .def(
            "__init__",
            [](Coder* self, nb::bytes data) {
                new (self) Coder(std::string_view(static_cast<const char*>(data.data()), data.size()));
            },
            "data"_a)
        .def("bit", &Coder::bit, "context"_a, "value"_a = false)
        .def("number", &Coder::number, "context"_a, "n"_a, "value"_a = 0)
        .def("uniform", &Coder::uniform, "n"_a, "value"_a = 0)
        .def(
            "write_words", [](Coder& coder, const nb::list& words) { coder.write_words(views(words)); }, "words"_a)
        .def(
            "read_words",
            [](Coder& coder, std::size_t n) {
                nb::list words;
                for (const std::string& word : coder.read_words(n)) {
                    PyObject* text = PyUnicode_DecodeUTF8(word.data(), static_cast<Py_ssize_t>(word.size()), nullptr);
                    if (!text) throw nb::python_error();
                    words.append(nb::steal(text));
                }
                return words;
            },
            "n"_a)
        .def_prop_ro("is_past_the_end", &Coder::is_past_the_end)
        .def("finish", [](Coder& coder) {
            const std::string data = coder.finish();
            return nb::bytes(data.data(), data.size());
        });
}

}  // namespace

void bind_ngrams(nb::module_& m) {
    bind_texts(m);
    bind_features(m);
    bind_coder(m);
}

}  // namespace prodige
