// Tests of products: sums of table entries against a loop over pairs, to the last bit.
#include "product.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "checking.hpp"

namespace prodige {
namespace {

struct ProductTask {
    std::vector<std::int32_t> n_hubs;
    std::vector<float> tables, lengths;
    std::vector<std::uint16_t> codes;
    std::vector<Vertex> places;
    double gauge;
    bool pendant;

    ProductTask(Random& random, std::vector<std::int32_t> hubs, std::size_t n_items, double root, bool ties,
                bool shared, bool hung = false)
        : n_hubs(std::move(hubs)), gauge(root), pendant(hung) {
        const auto draw = [&] { return static_cast<float>(ties ? random.below(3) : random.unit()); };
        for (const std::int32_t n : n_hubs) {
            std::vector<float> table(static_cast<std::size_t>(n) * n);
            for (std::int32_t g = 0; g < n; ++g)
                for (std::int32_t h = 0; h < g; ++h)
                    table[g * n + h] = table[h * n + g] = random.chance(0.02) ? unreached<float> : draw();
            tables.insert(tables.end(), table.begin(), table.end());
        }
        for (std::size_t i = 0; i < n_items; ++i) {
            lengths.push_back(draw());
            for (const std::int32_t n : n_hubs) codes.push_back(static_cast<std::uint16_t>(random.below(n)));
            if (shared) places.push_back(random.vertex(static_cast<Vertex>(n_items + 1) / 2));
        }
        for (std::size_t i = 0; i < places.size(); ++i)  // items of a place are alike
            for (std::size_t j = 0; j < i; ++j)
                if (places[i] == places[j]) {
                    lengths[i] = lengths[j];
                    std::copy_n(&codes[j * n_hubs.size()], n_hubs.size(), &codes[i * n_hubs.size()]);
                    break;
                }
        context = std::to_string(n_hubs.size()) + " factors, " + std::to_string(n_items) + " items, gauge " +
                  std::to_string(gauge) + (ties ? ", ties" : "") + (shared ? ", shared places" : "") +
                  (pendant ? ", pendant" : "");
    }

    Vertex n_items() const { return static_cast<Vertex>(lengths.size()); }

    Product make() const { return Product({n_hubs, tables, codes, lengths, places}, gauge, pendant); }

    float distance(Vertex i, Vertex j) const {
        if (i == j || (!places.empty() && places[i] == places[j])) return 0;
        const float both = lengths[i] + lengths[j];
        float sum = pendant ? 0 : both;
        std::size_t offset = 0;
        for (std::size_t m = 0; m < n_hubs.size(); ++m) {
            sum += tables[offset + codes[i * n_hubs.size() + m] * n_hubs[m] + codes[j * n_hubs.size() + m]];
            offset += static_cast<std::size_t>(n_hubs[m]) * n_hubs[m];
        }
        float root = sum;
        if (gauge != 1)
            root = gauge == 2 ? std::sqrt(sum) : static_cast<float>(std::pow(static_cast<double>(sum), 1 / gauge));
        return pendant ? root + both : root;
    }

    std::vector<float> answer(const std::vector<Vertex>& sources, std::vector<Vertex> targets) const {
        if (targets.empty()) {
            targets.resize(lengths.size());
            std::iota(targets.begin(), targets.end(), 0);
        }
        std::vector<float> rows;
        for (const Vertex i : sources)
            for (const Vertex j : targets) rows.push_back(distance(i, j));
        return rows;
    }

    std::vector<std::pair<float, Vertex>> reached(Vertex source) const {
        std::vector<std::pair<float, Vertex>> others;
        for (Vertex j = 0; j < n_items(); ++j)
            if (j != source && std::isfinite(distance(source, j))) others.emplace_back(distance(source, j), j);
        std::sort(others.begin(), others.end());
        return others;
    }
};

std::vector<ProductTask> all_tasks() {
    Random random(171);
    std::vector<ProductTask> tasks;
    for (const double gauge : {1.0, 1.5, 2.0})
        for (const bool ties : {false, true})
            for (const bool shared : {false, true})
                for (const bool hung : {false, true}) {
                    tasks.emplace_back(random, std::vector<std::int32_t>{4, 1, 7}, 300, gauge, ties, shared, hung);
                    tasks.emplace_back(random, std::vector<std::int32_t>{40, 60}, 9, gauge, ties, shared, hung);
                    tasks.emplace_back(random, std::vector<std::int32_t>{1}, 1, gauge, ties, shared, hung);
                    tasks.emplace_back(random, std::vector<std::int32_t>{300}, 530, gauge, ties, shared, hung);
                }
    return tasks;
}

std::vector<float> rows_of(const Product& product, const std::vector<Vertex>& sources,
                           const std::vector<Vertex>& targets, int n_jobs) {
    Watch watch;
    const std::size_t columns = targets.empty() ? static_cast<std::size_t>(product.n_items()) : targets.size();
    std::vector<float> rows(sources.size() * columns, -1);
    product.distances(sources, targets, {rows.data(), sources.size(), columns}, n_jobs, watch);
    return rows;
}

void test_distances_of_products() {
    Random random(172);
    for (const ProductTask& task : all_tasks()) {
        const Product product = task.make();
        CHECK(product.n_factors() == task.n_hubs.size());
        for (const std::size_t n_sources : {0, 1, 2, 3, 15, 16, 17, 40}) {
            const auto sources = random.vertices(n_sources, task.n_items());
            for (const std::size_t n_targets : {0, 1, 2, 270}) {
                const auto targets = random.vertices(n_targets, task.n_items());
                const auto rows = rows_of(product, sources, targets, 1);
                CHECK(same_bits(rows, task.answer(sources, targets)));
                CHECK(same_bits(rows, rows_of(product, sources, targets, 3)));
            }
        }
    }
}

void test_pair_distances_of_products() {
    Random random(173);
    for (const ProductTask& task : all_tasks())
        for (const std::size_t n_pairs : {0, 1, 5000}) {
            const auto i = random.vertices(n_pairs, task.n_items()), j = random.vertices(n_pairs, task.n_items());
            std::vector<float> expected;
            for (std::size_t p = 0; p < n_pairs; ++p) expected.push_back(task.distance(i[p], j[p]));
            for (const int n_jobs : {1, 3}) {
                Watch watch;
                std::vector<float> found(n_pairs);
                task.make().pair_distances(i, j, found, n_jobs, watch);
                CHECK(same_bits(found, expected));
            }
        }
}

bool is_row(const Neighbors<float>& found, const std::vector<std::pair<float, Vertex>>& expected) {
    if (found.vertices.size() != expected.size()) return false;
    for (std::size_t n = 0; n < expected.size(); ++n)
        if (expected[n] != std::pair(found.distances[n], found.vertices[n])) return false;
    return true;
}

void test_neighbors_in_products() {
    Random random(174);
    for (const ProductTask& task : all_tasks()) {
        const Product product = task.make();
        for (const std::size_t n_sources : {1, 2, 16, 21}) {
            const auto sources = random.vertices(n_sources, task.n_items());
            for (const std::size_t k : {1, 4, 200}) {
                Watch watch;
                const auto found = product.neighbors(sources, {Until::nearest, {}, k, task.n_items()}, 2, watch);
                for (std::size_t s = 0; s < n_sources; ++s) {
                    auto expected = task.reached(sources[s]);
                    expected.resize(std::min(k, expected.size()));
                    CHECK(is_row(found[s], expected));
                }
            }
            for (std::size_t s = 0; s < n_sources; ++s) {
                auto expected = task.reached(sources[s]);
                const float radius = expected.empty() ? 0 : expected[expected.size() / 3].first;
                std::erase_if(expected, [&](const auto& pair) { return pair.first > radius; });
                Watch watch;
                const auto found = product.neighbors(sources, {Until::radius, {}, 0, task.n_items(), radius}, 2, watch);
                CHECK(is_row(found[s], expected));
            }
        }
    }
}

// Two sums with the same root: the smaller id is nearer, although its sum is larger.
void test_ties_are_of_distances_not_of_sums() {
    const float sum = 1, more = std::nextafter(sum, 2.0f);
    CHECK(std::sqrt(sum) == std::sqrt(more));
    Random random(178);
    ProductTask task(random, {1}, 40, 2, true, false);
    task.lengths.assign(40, 9);
    task.lengths[39] = 0;
    task.lengths[5] = more;
    task.lengths[30] = sum;
    Watch watch;
    for (const std::size_t n_sources : {1, 16}) {
        const std::vector<Vertex> sources(n_sources, 39);
        const auto found = task.make().neighbors(sources, {Until::nearest, {}, 1, 40}, 1, watch);
        CHECK(found[0].vertices == std::vector<Vertex>{5});
        CHECK(task.make().neighbors(sources, {Until::nearest, {}, 2, 40}, 1, watch)[0].vertices ==
              (std::vector<Vertex>{5, 30}));
        const auto near = task.make().neighbors(sources, {Until::radius, {}, 0, 40, std::sqrt(sum)}, 1, watch);
        CHECK(near[0].vertices == (std::vector<Vertex>{5, 30}));
    }
}

void test_kernels_of_products_agree() {
    Random random(175);
    for (const ProductTask& task : all_tasks()) {
        std::vector<std::size_t> offsets;
        std::size_t n_hubs = 0;
        for (const std::int32_t n : task.n_hubs) offsets.push_back(std::exchange(n_hubs, n_hubs + n));
        std::vector<float> lengths(lanes), rows(n_hubs * lanes), limits(lanes);
        for (auto* values : {&lengths, &rows, &limits})
            for (float& value : *values) value = static_cast<float>(3 * random.unit());
        const ProductView view{task.codes.data(), task.lengths.data(), offsets.data(), offsets.size(), task.pendant};
        const ProductBlock block{lengths.data(), rows.data()};
        const auto n = static_cast<std::size_t>(task.n_items());
        const auto run = [&](const ProductKernels& kernels) {
            std::vector<float> sums(lanes * n);
            kernels.sum_block(view, block, nullptr, 0, n, sums.data(), n);
            std::vector<float> roots = sums;
            kernels.take_roots(roots.data(), roots.size());
            std::vector<NearItem> found(lanes * n + 1);
            found.resize(kernels.find_near(view, block, limits.data(), 0, n, found.data()));
            sums.insert(sums.end(), roots.begin(), roots.end());
            const auto reach = [&](const NearItem& near, float more) {
                const double root = std::sqrt(static_cast<double>(near.sum));
                const double reached = task.pendant ? root + task.lengths[near.item] : near.sum;
                return reached <= limits[near.lane] * (1.0 + more);
            };
            std::size_t n_near = 0;
            for (std::size_t c = 0; c < lanes * n; ++c)
                n_near += reach({static_cast<std::int32_t>(c % n), static_cast<std::int32_t>(c / n), sums[c]}, 0);
            CHECK(task.pendant ? n_near <= found.size() : n_near == found.size());
            for (const NearItem& near : found) {
                CHECK(near.sum == sums[near.lane * n + near.item] && reach(near, task.pendant ? 1e-5f : 0));
                sums.push_back(near.sum);
            }
            return sums;
        };
        CHECK(same_bits(run(generic_product_kernels()), run(product_kernels())));
    }
#if defined(__x86_64__)
    CHECK((&product_kernels() == &generic_product_kernels()) == !__builtin_cpu_supports("avx2"));
#endif
}

void test_products_that_do_not_fit() {
    Random random(176);
    const ProductTask good(random, {2, 3}, 4, 2, false, true);
    const auto refuse = [&](auto change) {
        ProductTask task = good;
        change(task);
        CHECK_THROWS(std::invalid_argument, task.make());
    };
    refuse([](ProductTask& task) { task.gauge = 0.5; });
    refuse([](ProductTask& task) { task.gauge = std::nan(""); });
    refuse([](ProductTask& task) { task.n_hubs[0] = 0; });
    refuse([](ProductTask& task) { task.n_hubs[1] = 4; });
    refuse([](ProductTask& task) { task.n_hubs.clear(); });
    refuse([](ProductTask& task) { task.tables.pop_back(); });
    refuse([](ProductTask& task) { task.tables[1] = -1; });
    refuse([](ProductTask& task) { task.codes[0] = 2; });
    refuse([](ProductTask& task) { task.codes.pop_back(); });
    refuse([](ProductTask& task) { task.lengths[2] = std::nanf(""); });
    refuse([](ProductTask& task) { task.places[0] = 4; });
    refuse([](ProductTask& task) { task.places[0] = -1; });
    refuse([](ProductTask& task) { task.places.pop_back(); });
}

void test_cancelled_products() {
    Random random(177);
    const ProductTask task(random, {8, 8}, 5000, 2, false, false);
    const Product product = task.make();
    const auto sources = random.vertices(64, task.n_items()), others = random.vertices(64, task.n_items());
    for (const int n_jobs : {1, 3})
        check_cancelled({
            [&](Watch& watch) {
                std::vector<float> rows(64 * 5000);
                product.distances(sources, {}, {rows.data(), 64, 5000}, n_jobs, watch);
            },
            [&](Watch& watch) {
                std::vector<float> pairs(64);
                product.pair_distances(sources, others, pairs, n_jobs, watch);
            },
            [&](Watch& watch) { product.neighbors(sources, {Until::nearest, {}, 3, 5000}, n_jobs, watch); },
        });
}

}  // namespace

void run_product_tests(Runner& runner) {
    RUN(test_distances_of_products);
    RUN(test_pair_distances_of_products);
    RUN(test_neighbors_in_products);
    RUN(test_ties_are_of_distances_not_of_sums);
    RUN(test_kernels_of_products_agree);
    RUN(test_products_that_do_not_fit);
    RUN(test_cancelled_products);
}

}  // namespace prodige
