// Tests of distances to anchors and of pooled convolutions, against all-pairs shortest paths and plain loops.
#include <memory>
#include <span>

#include "anchors.hpp"
#include "checking.hpp"
#include "pooling.hpp"

namespace prodige {
namespace {

// -- anchors

struct HubGraph {
    Vertex n_items, n_hubs;
    std::vector<Vertex> tails, heads;
    std::vector<double> weights;

    Vertex n() const { return n_items + n_hubs; }

    void join(Vertex a, Vertex b, double weight) {
        for (std::size_t e = 0; e < tails.size(); ++e)
            if (std::minmax(tails[e], heads[e]) == std::minmax(a, b)) return;
        if (a == b) return;
        tails.push_back(a);
        heads.push_back(b);
        weights.push_back(weight);
    }

    std::vector<Vertex> anchors() const {
        std::vector<Vertex> last;
        for (Vertex h = n_items; h < n(); ++h) last.push_back(h);
        return last;
    }
};

// Items on up to three hubs, some on none; some hubs joined to each other, `n_local` items to items.
HubGraph hub_graph(Random& random, Vertex n_items, Vertex n_hubs, std::size_t n_local) {
    HubGraph graph{n_items, n_hubs, {}, {}, {}};
    for (Vertex x = 0; x < n_items; ++x)
        for (std::uint64_t e = random.below(4); e > 0; --e)
            graph.join(x, n_items + random.vertex(n_hubs), 0.05 + random.unit());
    for (Vertex h = 0; h < n_hubs; ++h) graph.join(n_items + h, n_items + random.vertex(n_hubs), 0.05 + random.unit());
    for (std::size_t e = 0; e < n_local; ++e)
        graph.join(random.vertex(n_items), random.vertex(n_items), 0.05 + random.unit());
    context = std::to_string(n_items) + " items, " + std::to_string(n_hubs) + " hubs, " + std::to_string(n_local) +
              " local edges";
    return graph;
}

template <class T>
std::shared_ptr<const HubNetwork<T>> make_hubs(const HubGraph& graph) {
    Watch watch;
    const std::vector<T> weights(graph.weights.begin(), graph.weights.end());
    auto topology = std::make_shared<const Topology>(graph.n(), graph.tails, graph.heads);
    auto network = std::make_shared<const Network<T>>(topology, std::span<const T>(weights), 1, watch);
    std::vector<std::uint8_t> is_hub(graph.n(), 0);
    std::fill(is_hub.begin() + graph.n_items, is_hub.end(), 1);
    return std::make_shared<const HubNetwork<T>>(network, std::make_shared<const HubLayout>(topology, is_hub), nullptr,
                                                 watch);
}

// Floyd–Warshall over everything.
std::vector<double> true_distances(const HubGraph& graph) {
    const auto n = static_cast<std::size_t>(graph.n());
    std::vector<double> distances(n * n, unreached<double>);
    for (std::size_t v = 0; v < n; ++v) distances[v * n + v] = 0;
    for (std::size_t e = 0; e < graph.tails.size(); ++e)
        distances[graph.tails[e] * n + graph.heads[e]] = distances[graph.heads[e] * n + graph.tails[e]] =
            graph.weights[e];
    for (std::size_t k = 0; k < n; ++k)
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t b = 0; b < n; ++b)
                distances[a * n + b] = std::min(distances[a * n + b], distances[a * n + k] + distances[k * n + b]);
    return distances;
}

template <class T>
struct Answer {
    std::vector<T> distances;
    std::vector<std::int32_t> arcs;
};

template <class T>
Answer<T> ask(const AnchorTrees<T>& trees, const std::vector<Vertex>& targets, int n_jobs = 1) {
    Watch watch;
    const std::size_t size = trees.size() * targets.size();
    Answer<T> answer{std::vector<T>(size, T(-1)), std::vector<std::int32_t>(size, -7)};
    trees.distances(targets, {answer.distances.data(), trees.size(), targets.size()},
                    {answer.arcs.data(), trees.size(), targets.size()}, n_jobs, watch);
    return answer;
}

template <class T>
std::vector<T> derive(const AnchorTrees<T>& trees, const std::vector<Vertex>& targets, const Answer<T>& answer,
                      const std::vector<double>& gradient, int n_jobs = 1) {
    Watch watch;
    const std::vector<T> incoming(gradient.begin(), gradient.end());
    std::vector<T> out(trees.hubs().network().topology().n_edges(), T(-1));
    trees.backward(targets, {incoming.data(), trees.size(), targets.size()},
                   {answer.arcs.data(), trees.size(), targets.size()}, out, n_jobs, watch);
    return out;
}

// Every item and some hubs, in no order; none of them twice.
std::vector<Vertex> some_targets(Random& random, const HubGraph& graph) {
    std::vector<Vertex> targets;
    for (Vertex v = 0; v < graph.n(); ++v)
        if (random.chance(0.7)) targets.push_back(v);
    for (std::size_t t = targets.size(); t > 1; --t) std::swap(targets[t - 1], targets[random.below(t)]);
    return targets;
}

template <class T>
void test_anchor_distances() {
    Random random(101);
    for (const Vertex n_hubs : {1, 3, 8, 9, 20})  // around the lanes of the kernel
        for (const std::size_t n_local : {0, 6}) {
            const HubGraph graph = hub_graph(random, 60, n_hubs, n_local);
            const auto truth = true_distances(graph);
            const auto anchors = graph.anchors();
            Watch watch;
            const AnchorTrees<T> trees(make_hubs<T>(graph), anchors, 1, watch);
            if (!CHECK(trees.size() == anchors.size())) continue;
            const auto targets = some_targets(random, graph);
            const Answer<T> answer = ask(trees, targets);
            for (std::size_t a = 0; a < anchors.size(); ++a)
                for (std::size_t t = 0; t < targets.size(); ++t) {
                    const T found = answer.distances[a * targets.size() + t];
                    const auto target = static_cast<T>(truth[anchors[a] * graph.n() + targets[t]]);
                    CHECK(close(found, target));
                    CHECK((answer.arcs[a * targets.size() + t] < 0) == (found == unreached<T>));
                }
        }
}

// Distances are linear between the weights where another path takes over, so a small step finds the derivative.
void test_anchor_derivative() {
    Random random(102);
    for (const std::size_t n_local : {0, 4}) {
        HubGraph graph = hub_graph(random, 25, 5, n_local);
        const auto anchors = graph.anchors();
        Watch watch;
        const AnchorTrees<double> trees(make_hubs<double>(graph), anchors, 1, watch);
        const auto targets = some_targets(random, graph);
        std::vector<double> gradient(anchors.size() * targets.size());
        for (double& one : gradient) one = random.unit() - 0.5;
        const auto loss = [&] {
            const auto truth = true_distances(graph);
            double sum = 0;
            for (std::size_t a = 0; a < anchors.size(); ++a)
                for (std::size_t t = 0; t < targets.size(); ++t) {
                    const double distance = truth[anchors[a] * graph.n() + targets[t]];
                    if (distance < unreached<double>) sum += gradient[a * targets.size() + t] * distance;
                }
            return sum;
        };
        const auto found = derive(trees, targets, ask(trees, targets), gradient);
        bool any = false;
        for (std::size_t e = 0; e < graph.weights.size(); ++e) {
            const double before = graph.weights[e];
            graph.weights[e] = before + 1e-6;
            const double up = loss();
            graph.weights[e] = before - 1e-6;
            const double slope = (up - loss()) / 2e-6;
            graph.weights[e] = before;
            CHECK(std::abs(found[e] - slope) < 1e-6);
            any |= slope != 0;
        }
        CHECK(any);
    }
}

template <class T>
void test_anchors_have_the_same_bits_for_any_jobs() {
    Random random(103);
    const HubGraph graph = hub_graph(random, 120, 19, 5);
    const auto hubs = make_hubs<T>(graph);
    const auto anchors = graph.anchors();
    const auto targets = some_targets(random, graph);
    std::vector<double> gradient(anchors.size() * targets.size());
    for (double& one : gradient) one = random.unit() - 0.5;
    Watch watch;
    const AnchorTrees<T> trees(hubs, anchors, 1, watch);
    const Answer<T> answer = ask(trees, targets);
    const auto derivative = derive(trees, targets, answer, gradient);
    for (const int n_jobs : {2, 5}) {
        const AnchorTrees<T> others(hubs, anchors, n_jobs, watch);
        const Answer<T> other = ask(others, targets, n_jobs);
        CHECK(same_bits(other.distances, answer.distances) && other.arcs == answer.arcs);
        CHECK(same_bits(derive(others, targets, other, gradient, n_jobs), derivative));
    }
}

template <class T>
void test_anchors_of_nothing() {
    Random random(104);
    const HubGraph graph = hub_graph(random, 10, 3, 0);
    const auto hubs = make_hubs<T>(graph);
    Watch watch;
    const AnchorTrees<T> none(hubs, {}, 2, watch);
    CHECK(none.size() == 0);
    CHECK(derive(none, {0, 1}, ask(none, {0, 1}), {}) == std::vector<T>(graph.weights.size(), T(0)));
    const AnchorTrees<T> trees(hubs, graph.anchors(), 2, watch);
    CHECK(derive(trees, {}, ask(trees, {}), {}) == std::vector<T>(graph.weights.size(), T(0)));
    const std::vector<Vertex> item = {0};
    CHECK_THROWS(std::invalid_argument, AnchorTrees<T>(hubs, item, 1, watch));
}

template <class T>
void test_cancelled_anchors() {
    Random random(105);
    const HubGraph graph = hub_graph(random, 40, 9, 3);
    const auto hubs = make_hubs<T>(graph);
    const auto anchors = graph.anchors();
    Watch patient, watch;
    const AnchorTrees<T> trees(hubs, anchors, 1, patient);
    const std::vector<Vertex> targets = {1, 2, 3};
    Answer<T> answer = ask(trees, targets);
    std::vector<T> out(graph.weights.size());
    watch.stop();
    for (const int n_jobs : {1, 3}) {
        CHECK_THROWS(Cancelled, AnchorTrees<T>(hubs, anchors, n_jobs, watch));
        CHECK_THROWS(Cancelled, trees.distances(targets, {answer.distances.data(), 9, 3}, {answer.arcs.data(), 9, 3},
                                                n_jobs, watch));
        CHECK_THROWS(Cancelled, trees.backward(targets, {answer.distances.data(), 9, 3}, {answer.arcs.data(), 9, 3},
                                               out, n_jobs, watch));
    }
}

// -- pooling

struct Batch {
    std::vector<std::int32_t> tokens;
    std::vector<std::int64_t> offsets = {0};
    std::vector<float> products;  // [token][place in the filter][filter]
    std::size_t n_rows, width, n_filters;

    Texts texts() const { return {tokens, offsets}; }
    std::size_t size() const { return offsets.size() - 1; }
};

// Texts of any length, every third of them empty. Products are small whole numbers: sums are exact, and often equal.
Batch random_batch(Random& random, std::size_t n_texts, std::size_t width, std::size_t n_filters) {
    Batch batch{{}, {0}, {}, 12, width, n_filters};
    for (std::size_t t = 0; t < n_texts; ++t) {
        const std::size_t length = random.chance(0.3) ? 0 : 1 + random.below(9);
        for (std::size_t p = 0; p < length; ++p)
            batch.tokens.push_back(static_cast<std::int32_t>(random.below(batch.n_rows)));
        batch.offsets.push_back(static_cast<std::int64_t>(batch.tokens.size()));
    }
    for (std::size_t p = 0; p < batch.n_rows * width * n_filters; ++p)
        batch.products.push_back(static_cast<float>(random.below(9)) - 5);
    context = std::to_string(n_texts) + " texts, width " + std::to_string(width);
    return batch;
}

struct Pooled {
    std::vector<float> values;
    std::vector<std::int32_t> best;
};

Pooled pool(const Batch& batch, int n_jobs = 1) {
    Watch watch;
    const std::size_t size = batch.size() * batch.n_filters;
    Pooled pooled{std::vector<float>(size, -99), std::vector<std::int32_t>(size, -99)};
    pool(batch.texts(), {batch.products.data(), batch.n_rows, batch.width * batch.n_filters}, batch.width,
         {pooled.values.data(), batch.size(), batch.n_filters}, {pooled.best.data(), batch.size(), batch.n_filters},
         n_jobs, watch);
    return pooled;
}

// Which product a filter takes at a place of the text; -1 outside of it.
std::int64_t product_at(const Batch& batch, std::size_t text, std::int64_t position, std::size_t k, std::size_t f) {
    const std::int64_t place = position + static_cast<std::int64_t>(k) - static_cast<std::int64_t>(batch.width / 2);
    if (place < 0 || place >= batch.offsets[text + 1] - batch.offsets[text]) return -1;
    const auto row = static_cast<std::size_t>(batch.tokens[batch.offsets[text] + place]);
    return static_cast<std::int64_t>((row * batch.width + k) * batch.n_filters + f);
}

void test_pooling() {
    Random random(106);
    for (const std::size_t width : {1, 2, 3, 5, 12})
        for (const std::size_t n_filters : {1, 8, 11}) {
            const Batch batch = random_batch(random, 40, width, n_filters);
            const Pooled pooled = pool(batch);
            std::vector<float> gradient(pooled.values.size());
            for (float& one : gradient) one = static_cast<float>(random.below(7)) - 3;
            std::vector<float> target(batch.products.size(), 0), derivative(batch.products.size(), 0);
            for (std::size_t t = 0; t < batch.size(); ++t)
                for (std::size_t f = 0; f < n_filters; ++f) {
                    const std::int64_t length = batch.offsets[t + 1] - batch.offsets[t];
                    float highest = length == 0 ? 0 : -unreached<float>;
                    std::int32_t where = 0;
                    for (std::int64_t position = 0; position < length; ++position) {
                        float sum = 0;
                        for (std::size_t k = 0; k < width; ++k)
                            if (const auto p = product_at(batch, t, position, k, f); p >= 0) sum += batch.products[p];
                        if (sum > highest) where = static_cast<std::int32_t>(position);
                        highest = std::max(highest, sum);
                    }
                    const std::size_t entry = t * n_filters + f;
                    CHECK(pooled.values[entry] == highest && pooled.best[entry] == where);
                    for (std::size_t k = 0; k < width; ++k)
                        if (const auto p = product_at(batch, t, where, k, f); p >= 0) target[p] += gradient[entry];
                }
            pool_backward(batch.texts(), {gradient.data(), batch.size(), n_filters},
                          {pooled.best.data(), batch.size(), n_filters}, width,
                          {derivative.data(), batch.n_rows, width * n_filters});
            CHECK(derivative == target);
        }
}

void test_pooling_of_nothing() {
    Random random(107);
    CHECK(pool(random_batch(random, 0, 3, 4)).values.empty());
    Batch batch = random_batch(random, 0, 3, 4);
    batch.offsets = {0, 0, 0};
    const Pooled pooled = pool(batch, 2);
    CHECK(pooled.values == std::vector<float>(8, 0) && pooled.best == std::vector<std::int32_t>(8, 0));
}

void test_pooling_has_the_same_bits_for_any_jobs() {
    Random random(108);
    Batch batch = random_batch(random, 100, 5, 32);
    for (float& product : batch.products) product = static_cast<float>(random.unit() - 0.5);
    const Pooled pooled = pool(batch);
    for (const int n_jobs : {2, 5}) {
        const Pooled other = pool(batch, n_jobs);
        CHECK(same_bits(other.values, pooled.values) && other.best == pooled.best);
    }
}

void test_cancelled_pooling() {
    Random random(109);
    const Batch batch = random_batch(random, 100, 5, 4);
    Pooled pooled = pool(batch);
    Watch watch;
    watch.stop();
    for (const int n_jobs : {1, 3})
        CHECK_THROWS(Cancelled, pool(batch.texts(), {batch.products.data(), 12, 20}, 5, {pooled.values.data(), 100, 4},
                                     {pooled.best.data(), 100, 4}, n_jobs, watch));
}

}  // namespace

void run_text_tests(Runner& runner) {
    RUN_BOTH(test_anchor_distances);
    RUN(test_anchor_derivative);
    RUN_BOTH(test_anchors_have_the_same_bits_for_any_jobs);
    RUN_BOTH(test_anchors_of_nothing);
    RUN_BOTH(test_cancelled_anchors);
    RUN(test_pooling);
    RUN(test_pooling_of_nothing);
    RUN(test_pooling_has_the_same_bits_for_any_jobs);
    RUN(test_cancelled_pooling);
}

}  // namespace prodige
