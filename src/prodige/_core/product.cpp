#include "product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <stdexcept>
#include <string>

namespace prodige {

namespace {

constexpr std::size_t chunk = 256;      // targets between two looks at the clock, and at what was found
constexpr std::size_t least_width = 3;  // fewer sources than this are quicker one by one
constexpr float most = std::numeric_limits<float>::max();
constexpr float slack = 1e-6f;  // of a distance: more than its rounding

void check_parts(const ProductParts& parts, double gauge) {
    const auto refuse = [](const std::string& problem) { throw std::invalid_argument(problem); };
    const std::size_t n_factors = parts.n_hubs.size();
    const std::size_t n_items = parts.lengths.size();
    if (n_factors == 0 || n_items == 0) refuse("a product has a factor and an item at least");
    if (n_items > static_cast<std::size_t>(std::numeric_limits<Vertex>::max())) refuse("there are too many items");
    if (!(gauge >= 1 && gauge <= 2)) refuse("gauge = " + std::to_string(gauge) + " is not between 1 and 2");
    std::size_t n_entries = 0;
    for (const std::int32_t n : parts.n_hubs) {
        if (n < 1 || n > 1 << 16) refuse("a factor has " + std::to_string(n) + " hubs");
        n_entries += static_cast<std::size_t>(n) * n;
    }
    if (parts.tables.size() != n_entries) refuse("tables have " + std::to_string(parts.tables.size()) + " entries");
    if (parts.codes.size() != n_items * n_factors) refuse("codes have " + std::to_string(parts.codes.size()));
    if (!parts.places.empty() && parts.places.size() != n_items) refuse("places have another size than lengths");
    for (std::size_t c = 0; c < parts.codes.size(); ++c)
        if (parts.codes[c] >= parts.n_hubs[c % n_factors]) refuse("codes has " + std::to_string(parts.codes[c]));
    for (const Vertex place : parts.places)
        if (place < 0 || static_cast<std::size_t>(place) >= n_items)
            refuse("there is no place " + std::to_string(place));
    const auto is_length = [](float value) { return value >= 0; };
    if (!std::all_of(parts.tables.begin(), parts.tables.end(), is_length) ||
        !std::all_of(parts.lengths.begin(), parts.lengths.end(), is_length))
        refuse("tables and lengths must be numbers >= 0");
}

}  // namespace

// A hub's entries for all sources of a block: a line of the cache, neither more nor parts of two.
struct alignas(64) Line {
    float lane[lanes];
};
static_assert(sizeof(Line) == lanes * sizeof(float));

// Working memory of one thread.
struct Product::Bench {
    Line lengths;
    std::vector<Line> rows;
    std::vector<float> out;
    std::vector<NearItem> found;
};

Product::Product(const ProductParts& parts, double gauge, bool pendant) : gauge_(gauge), pendant_(pendant) {
    check_parts(parts, gauge);
    std::size_t hubs = 0, entries = 0;
    for (const std::int32_t n : parts.n_hubs) {
        n_hubs_.push_back(n);
        hub_offsets_.push_back(hubs);
        table_offsets_.push_back(entries);
        hubs += n;
        entries += static_cast<std::size_t>(n) * n;
    }
    hub_offsets_.push_back(hubs);
    tables_.assign(parts.tables.begin(), parts.tables.end());
    codes_.assign(parts.codes.begin(), parts.codes.end());
    lengths_.assign(parts.lengths.begin(), parts.lengths.end());
    places_.assign(parts.places.begin(), parts.places.end());
    if (places_.empty()) return;
    twin_offsets_.assign(lengths_.size() + 1, 0);
    for (const Vertex at : places_) ++twin_offsets_[at + 1];
    for (std::size_t p = 1; p < twin_offsets_.size(); ++p) twin_offsets_[p] += twin_offsets_[p - 1];
    twins_.resize(places_.size());
    std::vector<std::size_t> next(twin_offsets_.begin(), twin_offsets_.end() - 1);
    for (Vertex item = 0; item < n_items(); ++item) twins_[next[places_[item]]++] = item;
}

ProductView Product::view() const noexcept {
    return {codes_.data(), lengths_.data(), hub_offsets_.data(), n_factors(), pendant_};
}

std::span<const Vertex> Product::twins(Vertex item) const noexcept {
    if (places_.empty()) return {};
    const std::size_t begin = twin_offsets_[places_[item]];
    return {twins_.data() + begin, twin_offsets_[places_[item] + 1] - begin};
}

// -- sums

float Product::sum(Vertex i, Vertex j) const noexcept {
    const std::size_t n = n_factors();
    const std::uint16_t* from = codes_.data() + i * n;
    const std::uint16_t* to = codes_.data() + j * n;
    float total = pendant_ ? 0 : lengths_[i] + lengths_[j];
    for (std::size_t m = 0; m < n; ++m) total += tables_[table_offsets_[m] + from[m] * n_hubs_[m] + to[m]];
    return total;
}

void Product::sum_row(Vertex source, const Vertex* targets, std::size_t first, std::size_t count, float* out) const {
    const std::size_t n = n_factors();
    std::vector<const float*> rows(n);  // of the source, one of each table
    for (std::size_t m = 0; m < n; ++m)
        rows[m] = tables_.data() + table_offsets_[m] + codes_[source * n + m] * n_hubs_[m];
    for (std::size_t c = 0; c < count; ++c) {
        const std::size_t item = targets ? static_cast<std::size_t>(targets[c]) : first + c;
        const std::uint16_t* codes = codes_.data() + item * n;
        float total = pendant_ ? 0 : lengths_[source] + lengths_[item];
        for (std::size_t m = 0; m < n; ++m) total += rows[m][codes[m]];
        out[c] = total;
    }
}

// Lanes without a source repeat the first one, which costs nothing.
ProductBlock Product::lay_out(std::span<const Vertex> sources, Bench& bench) const {
    bench.rows.resize(hub_offsets_.back());
    const float* from[lanes];
    for (std::size_t m = 0; m < n_factors(); ++m) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const Vertex source = sources[lane < sources.size() ? lane : 0];
            bench.lengths.lane[lane] = lengths_[source];
            from[lane] = tables_.data() + table_offsets_[m] + codes_[source * n_factors() + m] * n_hubs_[m];
        }
        Line* rows = bench.rows.data() + hub_offsets_[m];
        for (std::size_t hub = 0; hub < n_hubs_[m]; ++hub)
            for (std::size_t lane = 0; lane < lanes; ++lane) rows[hub].lane[lane] = from[lane][hub];
    }
    return {bench.lengths.lane, bench.rows.front().lane};
}

// -- the gauge

float Product::root(float sum) const noexcept {
    if (gauge_ == 1) return sum;
    return gauge_ == 2 ? std::sqrt(sum) : static_cast<float>(std::pow(static_cast<double>(sum), 1 / gauge_));
}

void Product::take_roots(std::span<float> sums) const noexcept {
    if (gauge_ == 1) return;
    if (gauge_ == 2) return product_kernels().take_roots(sums.data(), sums.size());
    for (float& sum : sums) sum = root(sum);
}

float Product::distance(float sum, Vertex i, Vertex j) const noexcept {
    return pendant_ ? root(sum) + (lengths_[i] + lengths_[j]) : root(sum);
}

// Turns sums of a source and some targets into distances.
void Product::finish(Vertex source, const Vertex* targets, std::size_t first, std::span<float> sums) const noexcept {
    take_roots(sums);
    if (!pendant_) return;
    for (std::size_t c = 0; c < sums.size(); ++c)
        sums[c] += lengths_[source] + lengths_[targets ? static_cast<std::size_t>(targets[c]) : first + c];
}

// The largest finite sum with a root of at most this distance. Roots of neighbouring sums may be the same number, and
// are in order otherwise.
float Product::greatest_sum(float distance) const noexcept {
    float sum =
        static_cast<float>(std::min(std::pow(static_cast<double>(distance), gauge_), static_cast<double>(most)));
    while (root(sum) > distance) sum = std::nextafter(sum, 0.0f);
    while (sum < most && root(std::nextafter(sum, most)) <= distance) sum = std::nextafter(sum, most);
    return sum;
}

// -- distances

void Product::distances(std::span<const Vertex> sources, std::span<const Vertex> targets, Matrix<float> out, int n_jobs,
                        Watch& watch) const {
    std::vector<Bench> benches(std::max(n_jobs, 1));
    // Laying out the rows of a block pays when there are more look-ups than hubs.
    const bool many = out.columns * n_factors() >= hub_offsets_.back();
    parallel_for((sources.size() + lanes - 1) / lanes, n_jobs, watch, [&](std::size_t worker, std::size_t block) {
        const std::size_t first = block * lanes;
        const std::size_t width = std::min(lanes, sources.size() - first);
        if (many && width >= least_width) {
            fill_block(sources.subspan(first, width), targets, {out.row(first).data(), width, out.columns},
                       benches[worker], watch);
        } else {
            for (std::size_t row = first; row < first + width; ++row)
                fill_row(sources[row], targets, out.row(row), watch);
        }
        for (std::size_t r = first; r < first + width; ++r) {
            const std::span<float> row = out.row(r);
            if (targets.empty()) {
                row[sources[r]] = 0;
                for (const Vertex twin : twins(sources[r])) row[twin] = 0;
            } else {
                for (std::size_t c = 0; c < row.size(); ++c)
                    if (place(targets[c]) == place(sources[r])) row[c] = 0;
            }
        }
    });
}

void Product::fill_block(std::span<const Vertex> sources, std::span<const Vertex> targets, Matrix<float> rows,
                         Bench& bench, Watch& watch) const {
    const ProductBlock block = lay_out(sources, bench);
    bench.out.resize(lanes * chunk);
    for (std::size_t first = 0; first < rows.columns; first += chunk) {
        watch.check();
        const std::size_t count = std::min(chunk, rows.columns - first);
        const Vertex* some = targets.empty() ? nullptr : targets.data() + first;
        product_kernels().sum_block(view(), block, some, first, count, bench.out.data(), chunk);
        for (std::size_t lane = 0; lane < sources.size(); ++lane) {
            const std::span<float> sums(bench.out.data() + lane * chunk, count);
            finish(sources[lane], some, first, sums);
            std::copy(sums.begin(), sums.end(), rows.row(lane).begin() + first);
        }
    }
}

void Product::fill_row(Vertex source, std::span<const Vertex> targets, std::span<float> row, Watch& watch) const {
    for (std::size_t first = 0; first < row.size(); first += chunk) {
        watch.check();
        const std::span<float> sums = row.subspan(first, std::min(chunk, row.size() - first));
        const Vertex* some = targets.empty() ? nullptr : targets.data() + first;
        sum_row(source, some, first, sums.size(), sums.data());
        finish(source, some, first, sums);
    }
}

void Product::pair_distances(std::span<const Vertex> i, std::span<const Vertex> j, std::span<float> out, int n_jobs,
                             Watch& watch) const {
    constexpr std::size_t pairs = 16 * chunk;  // of a job
    parallel_for((out.size() + pairs - 1) / pairs, n_jobs, watch, [&](std::size_t, std::size_t job) {
        const std::size_t first = job * pairs;
        const std::size_t last = std::min(first + pairs, out.size());
        for (std::size_t p = first; p < last; ++p) out[p] = sum(i[p], j[p]);
        take_roots(out.subspan(first, last - first));
        for (std::size_t p = first; p < last; ++p) {
            if (pendant_) out[p] += lengths_[i[p]] + lengths_[j[p]];
            if (place(i[p]) == place(j[p])) out[p] = 0;
        }
    });
}

// -- neighbours

// What is near one source. Knows which sums are still of interest.
class Product::Collector {
   public:
    Collector(const Product& product, Vertex source, const Stop<float>& stop)
        : product_(product), source_(source), nearest_(stop.until == Until::nearest), k_(stop.k) {
        reach(nearest_ ? most : stop.radius);
        for (const Vertex twin : product.twins(source))
            if (twin != source) add(Label<float>(0, twin));
        narrow();
    }

    // Of sums; what kernels are told where lengths are pendant, see kernels.hpp.
    float limit() const noexcept { return limit_; }

    void add(Vertex item, float sum) {
        if (product_.place(item) == product_.place(source_)) return;
        const float distance = product_.distance(sum, source_, item);
        if (distance <= reach_) add(Label<float>(distance, item));
    }

    // Sums that tie with the k-th are of interest as well: their items may have smaller ids.
    void narrow() {
        if (nearest_ && best_.size() >= k_ && best_.front().distance() < reach_) reach(best_.front().distance());
    }

    Neighbors<float> finish() {
        std::sort(best_.begin(), best_.end());
        Neighbors<float> found;
        for (const Label<float>& label : best_) {
            found.vertices.push_back(label.vertex());
            found.distances.push_back(label.distance());
        }
        return found;
    }

   private:
    void reach(float distance) {
        reach_ = distance;
        limit_ = product_.pendant_ ? distance - product_.lengths_[source_] + slack * distance
                                   : product_.greatest_sum(distance);
    }

    void add(Label<float> label) {
        if (!nearest_) return best_.push_back(label);
        if (best_.size() == k_) {
            if (!(label < best_.front())) return;
            std::pop_heap(best_.begin(), best_.end());
            best_.pop_back();
        }
        best_.push_back(label);
        std::push_heap(best_.begin(), best_.end());
    }

    const Product& product_;
    Vertex source_;
    bool nearest_;
    std::size_t k_;
    std::vector<Label<float>> best_;  // of the k nearest the farthest first
    float reach_;                     // the radius, or the distance of the k-th
    float limit_;
};

std::vector<Neighbors<float>> Product::neighbors(std::span<const Vertex> sources, const Stop<float>& stop, int n_jobs,
                                                 Watch& watch) const {
    std::vector<Neighbors<float>> found(sources.size());
    std::vector<Bench> benches(std::max(n_jobs, 1));
    // Kernels know the square root alone.
    const bool many = lengths_.size() * n_factors() >= hub_offsets_.back() && (!pendant_ || gauge_ == 2);
    parallel_for((sources.size() + lanes - 1) / lanes, n_jobs, watch, [&](std::size_t worker, std::size_t block) {
        const std::size_t first = block * lanes;
        const std::size_t width = std::min(lanes, sources.size() - first);
        const auto members = sources.subspan(first, width);
        std::vector<Collector> collectors;
        for (const Vertex source : members) collectors.emplace_back(*this, source, stop);
        if (many && width >= least_width)
            search_block(members, collectors, benches[worker], watch);
        else
            for (std::size_t lane = 0; lane < width; ++lane) search_row(members[lane], collectors[lane], watch);
        for (std::size_t lane = 0; lane < width; ++lane) found[first + lane] = collectors[lane].finish();
    });
    return found;
}

void Product::search_block(std::span<const Vertex> sources, std::vector<Collector>& collectors, Bench& bench,
                           Watch& watch) const {
    const ProductBlock block = lay_out(sources, bench);
    bench.found.resize(lanes * chunk + 1);
    float limits[lanes];
    std::fill_n(limits, lanes, -1.0f);  // nothing is of interest to lanes without a source
    for (std::size_t first = 0; first < lengths_.size(); first += chunk) {
        watch.check();
        for (std::size_t lane = 0; lane < sources.size(); ++lane) limits[lane] = collectors[lane].limit();
        const std::size_t n_found = product_kernels().find_near(
            view(), block, limits, first, std::min(chunk, lengths_.size() - first), bench.found.data());
        for (std::size_t f = 0; f < n_found; ++f)
            collectors[bench.found[f].lane].add(bench.found[f].item, bench.found[f].sum);
        for (Collector& collector : collectors) collector.narrow();
    }
}

void Product::search_row(Vertex source, Collector& collector, Watch& watch) const {
    float sums[chunk];
    for (std::size_t first = 0; first < lengths_.size(); first += chunk) {
        watch.check();
        const std::size_t count = std::min(chunk, lengths_.size() - first);
        sum_row(source, nullptr, first, count, sums);
        for (std::size_t c = 0; c < count; ++c)
            if (pendant_ || sums[c] <= collector.limit()) collector.add(static_cast<Vertex>(first + c), sums[c]);
        collector.narrow();
    }
}

}  // namespace prodige
