// Rows of small numbers as the bytes of a file.
#include "bindings.hpp"
#include "rows.hpp"

namespace prodige {

namespace {

void check_sizes(const Array<std::int32_t>& sizes, std::size_t n_columns, std::size_t n_kinds) {
    check_size("sizes", sizes.size(), n_columns);
    for (const std::int32_t size : view(sizes))
        if (size < 1 || size > 1 << 16) throw std::invalid_argument("a column has 1 to 65536 numbers");
    if (n_kinds < 1 || n_kinds > most_kinds)
        throw std::invalid_argument("there are 1 to " + std::to_string(most_kinds) + " kinds");
}

void check_rows(const Grid<std::uint16_t>& rows, const Array<std::int32_t>& sizes) {
    const Matrix<const std::uint16_t> given = matrix(rows);
    for (std::size_t r = 0; r < given.rows; ++r)
        for (std::size_t c = 0; c < given.columns; ++c)
            if (given.row(r)[c] >= sizes.data()[c])
                throw std::out_of_range("rows: " + std::to_string(given.row(r)[c]) + " is no number of column " +
                                        std::to_string(c));
}

}  // namespace

void bind_rows(nb::module_& m) {
    m.def(
        "write_rows",
        [](Grid<std::uint16_t> rows, Array<std::int32_t> sizes, Array<std::uint16_t> kinds, std::size_t n_kinds) {
            check_sizes(sizes, rows.shape(1), n_kinds);
            check_rows(rows, sizes);
            check_size("kinds", kinds.size(), rows.shape(0));
            for (const std::uint16_t kind : view(kinds))
                if (kind >= n_kinds) throw std::out_of_range("kinds: there is no kind " + std::to_string(kind));
            std::string data;
            run([&](Watch& watch) { data = write_rows(matrix(rows), view(sizes), view(kinds), n_kinds, watch); });
            return nb::bytes(data.data(), data.size());
        },
        "rows"_a, "sizes"_a, "kinds"_a, "n_kinds"_a);
    m.def(
        "read_rows",
        [](nb::bytes data, std::size_t n_rows, Array<std::int32_t> sizes, std::size_t n_kinds) {
            check_sizes(sizes, sizes.size(), n_kinds);
            Owned<std::uint16_t> rows(n_rows * sizes.size());
            bool is_whole = false;
            run([&](Watch& watch) {
                is_whole = read_rows({static_cast<const char*>(data.data()), data.size()},
                                     {rows.data(), n_rows, sizes.size()}, view(sizes), n_kinds, watch);
            });
            if (!is_whole) throw std::invalid_argument("the data end before the last row");
            return rows.release({n_rows, sizes.size()});
        },
        "data"_a, "n_rows"_a, "sizes"_a, "n_kinds"_a);
    m.def(
        "find_kinds",
        [](Grid<std::uint16_t> rows, Array<std::int32_t> sizes, std::size_t n_kinds, std::size_t n_learned) {
            check_sizes(sizes, rows.shape(1), n_kinds);
            check_rows(rows, sizes);
            if (n_kinds > std::min<std::size_t>(rows.shape(0), n_learned))
                throw std::invalid_argument("there are more kinds than rows to learn them from");
            std::vector<std::uint16_t> kinds;
            run([&](Watch& watch) { kinds = find_kinds(matrix(rows), view(sizes), n_kinds, n_learned, watch); });
            return copy_out(kinds);
        },
        "rows"_a, "sizes"_a, "n_kinds"_a, "n_learned"_a);
}

}  // namespace prodige
