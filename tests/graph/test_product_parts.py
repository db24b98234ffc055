"""Parts of products by themselves; what they may be is in test_product.py, through the class that users call."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prodige import Graph
from prodige.graph import GeometricFactor, GraphFactor, Grid
from prodige.graph.product_parts import (
    Lengths,
    by_first_item,
    check_sizes,
    join_lengths,
    numbers_of_places,
    step_tables,
    take_lengths,
    values_of,
)

KINDS: list[Lengths] = [np.array([0.0, 0.75, 0.25, 0.5], np.float32), Grid([0, 3, 1, 2], 2, 0.0, 0.25)]


@pytest.mark.parametrize("lengths", KINDS)
def test_lengths_of_some_vertices_stay_what_they_are(lengths: Lengths) -> None:
    some = take_lengths(lengths, np.array([2, 0]))
    assert type(some) is type(lengths)
    np.testing.assert_array_equal(values_of(some), [0.25, 0])


def test_lengths_are_joined_on_a_grid_where_it_is_the_same() -> None:
    array, grid = KINDS
    assert isinstance(grid, Grid)
    others: list[Lengths] = [grid, array, Grid([0, 3], 2, 0.0, 0.5), Grid([0, 3], 4, 0.0, 0.25)]
    for other in others:
        joined = join_lengths(grid, other)
        assert isinstance(joined, Grid) == (other is grid)
        np.testing.assert_array_equal(values_of(joined), [*grid.values, *values_of(other)])
        assert isinstance(join_lengths(array, other), np.ndarray)


@given(
    places=st.integers(1, 5).flatmap(
        lambda n: st.lists(st.integers(0, n - 1), max_size=5).flatmap(
            lambda more: st.permutations([*range(n), *more])  # every vertex has an item
        )
    )
)
def test_vertices_in_the_order_of_their_first_items(places: list[int]) -> None:
    n_vertices = max(places) + 1
    codes, lengths = np.arange(n_vertices, dtype=np.int32)[:, None], np.arange(n_vertices, dtype=np.float32)
    new_codes, new_lengths, new_places = by_first_item(codes, lengths, np.array(places, np.int32))
    at = np.arange(n_vertices) if new_places is None else new_places
    np.testing.assert_array_equal(new_codes[at, 0], places)
    np.testing.assert_array_equal(values_of(new_lengths)[at], places)
    assert np.unique(at, return_index=True)[1].tolist() == sorted(np.unique(at, return_index=True)[1])
    assert (new_places is None) == (len(places) == n_vertices)


def test_tables_are_distances_to_a_power() -> None:
    line, pair = GeometricFactor([[0.0], [2.0]]), GraphFactor(Graph.from_edges([0], [1], [3.0]))
    assert step_tables([line, pair], 1).tolist() == [0, 2, 2, 0, 0, 3, 3, 0]
    assert step_tables([line, pair], 2).tolist() == [0, 4, 4, 0, 0, 9, 9, 0]


def test_places_take_the_smaller_of_two_ways_to_say_them() -> None:
    assert [numbers_of_places(n, 10) for n in (10, 11, 20, 30)] == [0, 2, 20, 30]


def test_sums_beyond_single_precision_are_refused() -> None:
    line = GeometricFactor([[0.0], [2.0]])
    check_sizes([line], 2, 1e37, 2.0)
    with pytest.raises(ValueError, match=r"add up to 2e\+38 before the gauge"):
        check_sizes([line], 2, 1e38, 2.0)
