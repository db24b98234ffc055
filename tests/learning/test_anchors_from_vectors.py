"""Anchors, hubs and edges for vectors: the budget, who gets the edges, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from prodige.learning.anchors_from_vectors import attach_to_hubs, nearest_hubs, share_budget, share_edges


def points(n: int = 200, seed: int = 0) -> Any:
    return np.random.RandomState(seed).normal(size=(n, 4)).astype(np.float32)


@pytest.mark.parametrize(("n", "n_anchors", "numbers"), [(200, 10, 10), (200, 40, 6), (50, 3, 4.5), (9, 2, 10)])
def test_the_budget_is_kept(n: int, n_anchors: int, numbers: float) -> None:
    graph, target = attach_to_hubs(points(n), n_anchors, numbers, random_state=0, n_jobs=1)
    assert 0.8 * numbers <= graph.numbers_per_item <= numbers
    n_hubs = graph.n_vertices - n - n_anchors
    assert n_hubs >= 1
    assert target.shape == (n, n_anchors)
    i, j = graph.i.numpy(), graph.j.numpy()
    is_item = i < n
    assert set(i[is_item]) == set(range(n))  # each has an edge
    assert ((j[is_item] >= n) & (j[is_item] < n + n_hubs)).all()
    assert (j[~is_item] >= n + n_hubs).all()
    assert (~is_item).sum() == n_hubs * n_anchors


def test_no_distance_is_shorter_than_that_of_the_vectors() -> None:
    """Edges have the lengths of straight lines, so ways over hubs can only be longer."""
    graph, target = attach_to_hubs(points(), 10, 10, random_state=0, n_jobs=1)
    anchors = np.arange(graph.n_vertices - 10, graph.n_vertices)
    found = graph(np.arange(200), anchors).detach().numpy()
    assert (found >= target * (1 - 1e-4)).all()


def test_heavy_items_get_more_edges() -> None:
    weights = np.ones(200)
    weights[:20] = 100
    graph, _ = attach_to_hubs(points(), 5, 9, sample_weight=weights, random_state=0, n_jobs=1)
    degrees = np.bincount(graph.i.numpy(), minlength=200)[:200]
    assert degrees[:20].min() > degrees[20:].max()


@settings(max_examples=50, deadline=None)
@given(
    weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=30).filter(any),
    spare=st.integers(0, 200),
    most=st.integers(1, 8),
)
def test_shares_of_edges(weights: list[float], spare: int, most: int) -> None:
    array = np.array(weights)
    shares = share_edges(array, array.size + spare, most)
    assert shares.sum() <= array.size + spare
    assert shares.min() >= 1
    assert shares.max() <= most
    assert (np.diff(shares[np.argsort(array, kind="stable")]) >= 0).all()


def test_nearest_hubs_by_blocks() -> None:
    X, hubs = points(50), points(9, seed=1)
    n_edges = np.random.RandomState(0).randint(1, 5, size=50)
    items, near, length = nearest_hubs(X, hubs, n_edges, block=7)
    order = np.argsort(cdist(X, hubs), axis=1)
    expected = [(x, h) for x in range(50) for h in order[x, : n_edges[x]]]
    assert list(zip(items.tolist(), near.tolist(), strict=True)) == expected
    np.testing.assert_allclose(length, cdist(X, hubs)[items, near], rtol=1e-4)


@settings(max_examples=50, deadline=None)
@given(n_items=st.integers(1, 3000), n_anchors=st.integers(1, 100), numbers=st.floats(0, 30))
def test_what_a_refusal_asks_for_is_enough(n_items: int, n_anchors: int, numbers: float) -> None:
    try:
        n_hubs, n_edges = share_budget(n_items, n_anchors, numbers)
    except ValueError as error:
        found = re.search(r"it takes ([\d.]+)\.", str(error))
        assert found is not None
        n_hubs, n_edges = share_budget(n_items, n_anchors, float(found[1]))
        numbers = float(found[1])
    assert 1 <= n_hubs <= n_items <= n_edges
    assert n_items + n_hubs + n_anchors + 2 * (n_edges + n_hubs * n_anchors) <= numbers * n_items + 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [[np.nan]]}, "X contains NaN"),
        ({"X": [1.0, 2.0]}, "Expected 2D array"),
        ({"n_anchors": 201}, "n_anchors must be between 1 and 200"),
        ({"n_anchors": 0}, "n_anchors must be between 1"),
        ({"n_hubs": 201}, "n_hubs must be between 1 and 200"),
        ({"numbers_per_item": 2.5}, "numbers_per_item = 2.5 is too little for 200 items"),
        ({"numbers_per_item": np.inf}, "numbers_per_item must be a finite number"),
        ({"numbers_per_item": "many"}, "numbers_per_item must be a finite number"),
        ({"sample_weight": [1.0]}, r"one entry per item \(200\)"),
        ({"sample_weight": np.r_[np.ones(199), -1]}, r"sample_weight\[199\] = -1"),
        ({"sample_weight": np.r_[np.nan, np.ones(199)]}, r"sample_weight\[0\] = nan"),
        ({"sample_weight": np.zeros(200)}, "0 for every item"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attach_to_hubs(**{"X": points(), "n_anchors": 5, "n_jobs": 1, **arguments})
