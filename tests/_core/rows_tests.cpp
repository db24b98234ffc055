// Tests of rows: they come back whatever kinds they are said to be of, and kinds that are there are found.
#include "rows.hpp"

#include "checking.hpp"

namespace prodige {
namespace {

constexpr std::size_t n_rows = 2000, n_columns = 6;

// Rows of four kinds: numbers lie near those of their kind.
std::vector<std::uint16_t> draw_rows(Random& random) {
    std::vector<std::uint16_t> rows;
    for (std::size_t r = 0; r < n_rows; ++r) {
        const std::size_t kind = random.below(4);
        for (std::size_t c = 0; c < n_columns; ++c)
            rows.push_back(static_cast<std::uint16_t>((5 * kind + 3 * c * kind) % 18 + random.below(2)));
    }
    return rows;
}

void test_rows_come_back() {
    Random random(2);
    Watch watch;
    const std::vector<std::int32_t> sizes{20, 20, 20, 20, 20, 20};
    const std::vector<std::uint16_t> rows = draw_rows(random);
    const Matrix<const std::uint16_t> given{rows.data(), n_rows, n_columns};
    std::size_t sizes_of_data[2];
    for (const std::size_t n_kinds : {1, 16}) {
        const std::vector<std::uint16_t> kinds = find_kinds(given, sizes, n_kinds, 1000, watch);
        const std::string data = write_rows(given, sizes, kinds, n_kinds, watch);
        std::vector<std::uint16_t> found(rows.size());
        CHECK(read_rows(data, {found.data(), n_rows, n_columns}, sizes, n_kinds, watch));
        CHECK(found == rows);
        CHECK(!read_rows(data.substr(0, data.size() / 2), {found.data(), n_rows, n_columns}, sizes, n_kinds, watch));
        sizes_of_data[n_kinds > 1] = data.size();
    }
    // Two bits for the kind and one for each number, and some to learn them; without kinds about three for each number.
    CHECK(sizes_of_data[1] < n_rows * 11 / 8);
    CHECK(3 * sizes_of_data[0] > 4 * sizes_of_data[1]);
}

void test_any_bytes_are_numbers() {
    Random random(5);
    Watch watch;
    const std::vector<std::int32_t> sizes{1, 2, 300};
    for (int k = 0; k < 50; ++k) {
        std::string data(1 + random.below(80), ' ');
        for (char& letter : data) letter = static_cast<char>(random.below(256));
        std::vector<std::uint16_t> found(40 * sizes.size());
        read_rows(data, {found.data(), 40, sizes.size()}, sizes, 1 + random.below(5), watch);
        for (std::size_t e = 0; e < found.size(); ++e) CHECK(found[e] < sizes[e % sizes.size()]);
    }
}

}  // namespace

void run_rows_tests(Runner& runner) {
    RUN(test_rows_come_back);
    RUN(test_any_bytes_are_numbers);
}

}  // namespace prodige
