// What all bindings share: arrays in and out, the checks on them, and how the core is called.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "memory.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Grid = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<nb::numpy, T>;

template <class T>
std::span<const T> view(const Array<T>& array) {
    return {array.data(), array.size()};
}

template <class T>
std::span<const T> view(const std::optional<Array<T>>& array) {
    return array ? view(*array) : std::span<const T>();
}

// Memory that a NumPy array takes over.
template <class T>
class Owned {
   public:
    explicit Owned(std::size_t size) : data_(LargeAllocator<T>().allocate(size)), size_(size) {}

    T* data() noexcept { return data_.get(); }
    std::span<T> span() noexcept { return {data_.get(), size_}; }

    Output<T> release(std::initializer_list<std::size_t> shape) {
        T* data = data_.get();
        nb::capsule owner(data_.release(), [](void* memory) noexcept { free_large(memory); });
        return Output<T>(data, shape, owner);
    }

   private:
    struct Free {
        void operator()(T* memory) const noexcept { free_large(memory); }
    };

    std::unique_ptr<T[], Free> data_;
    std::size_t size_;
};

template <class Values, class T = typename Values::value_type>
Output<T> copy_out(const Values& values, std::initializer_list<std::size_t> shape) {
    Owned<T> owned(values.size());
    std::copy(values.begin(), values.end(), owned.data());
    return owned.release(shape);
}

template <class Values>
auto copy_out(const Values& values) {
    return copy_out(values, {values.size()});
}

// Lets go of the GIL while the core works, and of the work where a signal wants that.
template <class Work>
void run(Work&& work) {
    Watch watch([] {
        const nb::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0;
    });
    try {
        const nb::gil_scoped_release gil;
        work(watch);
    } catch (const Cancelled&) {
        throw nb::python_error();  // what the signal handler raised, KeyboardInterrupt as a rule
    }
}

inline void check_jobs(int n_jobs) {
    if (n_jobs < 1) throw std::invalid_argument("n_jobs = " + std::to_string(n_jobs) + " is below 1");
}

inline void check_size(const char* name, std::size_t size, std::size_t expected) {
    if (size != expected)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(size) + " entries, expected " +
                                    std::to_string(expected));
}

inline void check_vertices(const char* name, std::span<const Vertex> vertices, Vertex n_vertices) {
    for (std::size_t p = 0; p < vertices.size(); ++p)
        if (vertices[p] < 0 || vertices[p] >= n_vertices)
            throw std::out_of_range(std::string(name) + "[" + std::to_string(p) + "] = " + std::to_string(vertices[p]) +
                                    " is not a vertex: there are " + std::to_string(n_vertices));
}

inline void check_count(const char* name, Vertex count, Vertex n_vertices) {
    if (count < 0 || count > n_vertices)
        throw std::invalid_argument(std::string(name) + " = " + std::to_string(count) + " is not between 0 and " +
                                    std::to_string(n_vertices));
}

template <class T>
Matrix<const T> matrix(const Grid<T>& grid) {
    return {grid.data(), grid.shape(0), grid.shape(1)};
}

template <class T>
void check_shape(const char* name, const Grid<T>& grid, std::size_t rows, std::size_t columns) {
    if (grid.shape(0) != rows || grid.shape(1) != columns)
        throw std::invalid_argument(std::string(name) + " has the shape [" + std::to_string(grid.shape(0)) + ", " +
                                    std::to_string(grid.shape(1)) + "], expected [" + std::to_string(rows) + ", " +
                                    std::to_string(columns) + "]");
}

// Distances to targets, or to the first n_columns vertices, as fill(targets, distances, watch) writes them.
template <class T, class Fill>
Output<T> find_distances(std::size_t n_sources, const std::optional<Array<Vertex>>& targets, Vertex n_columns,
                         Vertex n_vertices, Fill&& fill) {
    check_vertices("targets", view(targets), n_vertices);
    if (!targets) check_count("n_columns", n_columns, n_vertices);
    const std::size_t columns = targets ? targets->size() : static_cast<std::size_t>(n_columns);
    Owned<T> out(n_sources * columns);
    if (columns > 0) run([&](Watch& watch) { fill(view(targets), Matrix<T>{out.data(), n_sources, columns}, watch); });
    return out.release({n_sources, columns});
}

// Distances of pairs, as fill(distances, watch) writes them.
template <class T, class Fill>
Output<T> find_pair_distances(const Array<Vertex>& i, const Array<Vertex>& j, Vertex n_vertices, int n_jobs,
                              Fill&& fill) {
    check_jobs(n_jobs);
    check_size("j", j.size(), i.size());
    check_vertices("i", view(i), n_vertices);
    check_vertices("j", view(j), n_vertices);
    Owned<T> out(i.size());
    run([&](Watch& watch) { fill(out.span(), watch); });
    return out.release({i.size()});
}

// One file for each theme.
void bind_search(nb::module_& m);
void bind_product(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_fitting(nb::module_& m);
void bind_codes(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_placing(nb::module_& m);
void bind_alternating(nb::module_& m);
void bind_text(nb::module_& m);
void bind_words(nb::module_& m);
void bind_ngrams(nb::module_& m);

}  // namespace prodige
