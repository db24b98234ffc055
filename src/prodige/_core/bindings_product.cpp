// Bindings of products of graphs.
#include "bindings_neighbors.hpp"
#include "product.hpp"

namespace prodige {

void bind_product(nb::module_& m) {
    nb::class_<Product>(m, "Product")
        .def(
            "__init__",
            [](Product* self, Array<std::int32_t> n_hubs, Array<float> tables, Array<std::uint16_t> codes,
               Array<float> lengths, std::optional<Array<Vertex>> places, double gauge, bool pendant) {
                new (self)
                    Product({view(n_hubs), view(tables), view(codes), view(lengths), view(places)}, gauge, pendant);
            },
            "n_hubs"_a, "tables"_a, "codes"_a, "lengths"_a, "places"_a.none(), "gauge"_a, "pendant"_a)
        .def(
            "distances",
            [](const Product& product, Array<Vertex> sources, std::optional<Array<Vertex>> targets, int n_jobs) {
                check_jobs(n_jobs);
                check_vertices("sources", view(sources), product.n_items());
                return find_distances<float>(sources.size(), targets, product.n_items(), product.n_items(),
                                             [&](auto to, Matrix<float> distances, Watch& watch) {
                                                 product.distances(view(sources), to, distances, n_jobs, watch);
                                             });
            },
            "sources"_a, "targets"_a.none(), "n_jobs"_a)
        .def(
            "pair_distances",
            [](const Product& product, Array<Vertex> i, Array<Vertex> j, int n_jobs) {
                return find_pair_distances<float>(
                    i, j, product.n_items(), n_jobs, [&](std::span<float> distances, Watch& watch) {
                        product.pair_distances(view(i), view(j), distances, n_jobs, watch);
                    });
            },
            "i"_a, "j"_a, "n_jobs"_a)
        .def(
            "neighbors",
            [](const Product& product, Array<Vertex> sources, std::optional<std::size_t> k, std::optional<float> radius,
               int n_jobs) {
                check_jobs(n_jobs);
                check_vertices("sources", view(sources), product.n_items());
                return find_neighbors<float>(product.n_items(), product.n_items(), k, radius,
                                             [&](const Stop<float>& stop, Watch& watch) {
                                                 return product.neighbors(view(sources), stop, n_jobs, watch);
                                             });
            },
            "sources"_a, "k"_a.none(), "radius"_a.none(), "n_jobs"_a);
}

}  // namespace prodige
