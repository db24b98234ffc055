"""Copies: items in the same place are found, whatever the data are kept in, and cost an edge of length 0 each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from prodige import Graph
from prodige.metric.duplicates import add_copies, find_copies
from prodige.metric.space import Space


def spaces(rows: NDArray[Any]) -> list[Space]:
    return [
        Space(rows),
        Space(rows.astype(np.float32)),
        Space(scipy.sparse.csr_array(rows)),
        Space(cdist(rows, rows), "precomputed"),
    ]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 2)), min_size=1, max_size=12))
def test_copies_are_found(places: list[tuple[int, int]]) -> None:
    rows = np.array(places, dtype=np.float64)
    for space in spaces(np.where(rows == 0, -0.0, rows)):
        first, copy_of = find_copies(space)
        assert (np.diff(first) > 0).all()
        assert first.size == len(set(places))
        assert [places[first[number]] for number in copy_of] == places
        assert all(places.index(place) in first for place in places)


@pytest.mark.parametrize("n_hubs", [0, 1])
def test_copies_are_added(n_hubs: int) -> None:
    first, copy_of = np.array([0, 2, 3]), np.array([0, 0, 1, 2, 2, 1])
    small = Graph.from_edges([0, 1, 2][: 2 + n_hubs], [1, 2, 3][: 2 + n_hubs], [1.0, 2.0, 3.0][: 2 + n_hubs], n_items=3)
    graph: Any = add_copies(small, first, copy_of)
    assert graph.n_items == 6
    assert graph.n_hubs == n_hubs
    assert graph.n_edges == small.n_edges + 3
    assert np.array_equal(graph.distances(), small.distances()[copy_of][:, copy_of])
