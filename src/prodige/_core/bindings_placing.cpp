// Places of items in a product that is fitted already.
#include "bindings.hpp"
#include "placing.hpp"

namespace prodige {

void bind_placing(nb::module_& m) {
    m.def(
        "place",
        [](Grid<float> target, int quarters, Grid<float> weights, Array<float> offsets, Array<std::int32_t> n_hubs,
           Array<std::int32_t> n_dimensions, Array<float> slopes, Array<float> constants, Array<float> shares,
           float rest, int n_jobs) {
            check_jobs(n_jobs);
            if (quarters < 4 || quarters > 8) throw std::invalid_argument("the gauge is between 4 and 8 quarters");
            if (n_hubs.size() == 0) throw std::invalid_argument("a product needs a factor");
            if (target.shape(1) == 0) throw std::invalid_argument("target has no anchors");
            check_size("n_dimensions", n_dimensions.size(), n_hubs.size());
            std::size_t n_coordinates = 0, n_slopes = 0, n_all = 0;
            for (std::size_t f = 0; f < n_hubs.size(); ++f) {
                const std::int32_t hubs = view(n_hubs)[f], dimensions = view(n_dimensions)[f];
                if (hubs < 1 || hubs > 1 << 16 || dimensions < 0 || dimensions > 1 << 16)
                    throw std::invalid_argument("a factor has 1 to 65536 hubs of up to 65536 dimensions");
                n_coordinates += dimensions;
                n_slopes += static_cast<std::size_t>(hubs) * dimensions;
                n_all += hubs;
            }
            check_shape("weights", weights, n_coordinates, target.shape(1));
            check_size("offsets", offsets.size(), n_coordinates);
            check_size("slopes", slopes.size(), n_slopes);
            check_size("constants", constants.size(), n_all);
            check_size("shares", shares.size(), n_all);
            const PlacingMap map{quarters,     matrix(weights), view(offsets), view(n_hubs), view(n_dimensions),
                                 view(slopes), view(constants), view(shares),  rest};
            Places found;
            run([&](Watch& watch) { found = place(map, matrix(target), n_jobs, watch); });
            return nb::make_tuple(copy_out(found.codes, {target.shape(0), n_hubs.size()}), copy_out(found.lengths));
        },
        "target"_a, "quarters"_a, "weights"_a, "offsets"_a, "n_hubs"_a, "n_dimensions"_a, "slopes"_a, "constants"_a,
        "shares"_a, "rest"_a, "n_jobs"_a);
    m.def(
        "measure_rows",
        [](Grid<float> rows, Grid<float> anchors, int n_jobs) {
            check_jobs(n_jobs);
            check_shape("anchors", anchors, anchors.shape(0), rows.shape(1));
            const std::size_t n = rows.shape(0), n_anchors = anchors.shape(0);
            Owned<float> out(n * n_anchors);
            run([&](Watch& watch) {
                measure_rows(matrix(rows), matrix(anchors), {out.data(), n, n_anchors}, n_jobs, watch);
            });
            return out.release({n, n_anchors});
        },
        "rows"_a, "anchors"_a, "n_jobs"_a);
    m.def(
        "multiply_rows",
        [](Grid<float> rows, Grid<float> others, int n_jobs) {
            check_jobs(n_jobs);
            check_shape("others", others, others.shape(0), rows.shape(1));
            const std::size_t n = rows.shape(0), n_others = others.shape(0);
            Owned<float> out(n * n_others);
            run([&](Watch& watch) {
                multiply_rows(matrix(rows), matrix(others), {out.data(), n, n_others}, n_jobs, watch);
            });
            return out.release({n, n_others});
        },
        "rows"_a, "others"_a, "n_jobs"_a);
}

}  // namespace prodige
