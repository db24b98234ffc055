"""Far anchors: coordinates as distances, edges where they bring most, and no short cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige.learning.anchors_from_coordinates import (
    attach_to_anchors,
    best_edges,
    choose_edges,
    directions,
    far_enough,
)


def points(n: int = 200, n_anchors: int = 5, seed: int = 0) -> Any:
    return np.random.RandomState(seed).normal(size=(n, n_anchors)).astype(np.float32)


def coordinates_of(hubs: Any, item: Any, hub: Any, length: Any, n_items: int) -> Any:
    """What items see over their own edges alone, [N, K]."""
    found = np.full((n_items, hubs.shape[1]), np.inf, dtype=np.float32)
    np.minimum.at(found, item, hubs[hub] + length[:, None])
    return found


@pytest.mark.parametrize(("n_dimensions", "n_anchors"), [(1, 1), (1, 6), (3, 8), (5, 5)])
def test_directions_keep_lengths_and_share_the_first_dimension(n_dimensions: int, n_anchors: int) -> None:
    turn = directions(n_dimensions, n_anchors, random_state=0)
    assert turn.shape == (n_dimensions, n_anchors)
    np.testing.assert_allclose(turn @ turn.T, np.eye(n_dimensions), atol=1e-6)
    np.testing.assert_allclose(turn[0], n_anchors**-0.5, rtol=1e-5)


@pytest.mark.parametrize(
    ("n", "n_anchors", "numbers"), [(200, 5, 6), (200, 20, 4.5), (50, 3, 10), (9, 2, 10), (1, 1, 10)]
)
def test_the_budget_is_kept(n: int, n_anchors: int, numbers: float) -> None:
    graph, _, _ = attach_to_anchors(points(n, n_anchors), numbers, random_state=0, n_jobs=1)
    assert graph.numbers_per_item <= numbers
    assert n < 200 or graph.numbers_per_item > numbers - 2 / n  # no room for another edge
    n_hubs = graph.n_vertices - n - n_anchors
    i, j = graph.i.numpy(), graph.j.numpy()
    is_item = i < n
    assert set(i[is_item]) == set(range(n))  # each has an edge
    assert ((j[is_item] >= n) & (j[is_item] < n + n_hubs)).all()
    assert (~is_item).sum() == n_hubs * n_anchors


@pytest.mark.parametrize("factor", [1e-25, 1e-5, 1.0, 1e5, 1e25])
def test_distances_are_the_coordinates_of_own_hubs(factor: float) -> None:
    """The search finds no way that is shorter than one over a hub of the item's own."""
    X = points() * np.float32(factor)
    graph, offset, scale = attach_to_anchors(X, 7, n_hubs=12, random_state=0, n_jobs=1)
    anchors = np.arange(graph.n_vertices - 5, graph.n_vertices)
    found = graph(np.arange(200), anchors).detach().numpy()
    weight = graph.weight.detach().numpy()
    i, j = graph.i.numpy(), graph.j.numpy()
    is_item = i < 200
    between = weight[~is_item].reshape(12, 5)
    np.testing.assert_allclose(
        found, coordinates_of(between, i[is_item], j[is_item] - 200, weight[is_item], 200), rtol=1e-5
    )
    rows = (found - offset) / scale
    assert np.mean(((rows - X) / factor) ** 2) < 0.25 * np.mean((X / factor) ** 2)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), n_hubs=st.integers(1, 12), spare=st.integers(0, 300))
def test_every_edge_lowers_the_error(seed: int, n_hubs: int, spare: int) -> None:
    target, hubs = points(60, 4, seed), points(n_hubs, 4, seed + 1)
    hubs -= hubs.mean(axis=1, keepdims=True)
    weights = np.random.RandomState(seed).uniform(size=60)
    errors = []
    for n_edges in (60, 60 + spare // 2, 60 + spare):
        item, hub, length = choose_edges(target, hubs, weights, n_edges)
        assert item.size <= n_edges
        assert np.unique(item * n_hubs + hub).size == item.size  # no two between the same
        assert set(item) == set(range(60))
        found = coordinates_of(hubs, item, hub, length, 60)
        errors.append(float(weights @ np.square(found - target).sum(axis=1)))
    assert errors == sorted(errors, reverse=True)


def test_the_first_edge_is_the_best_of_all() -> None:
    """An item's only edge has the least error of all hubs, with the best length: checked by trying them."""
    target, hubs = points(40, 6), points(7, 6, seed=1)
    hubs -= hubs.mean(axis=1, keepdims=True)
    item, hub, length = choose_edges(target, hubs, np.ones(40), 40)
    assert item.tolist() == list(range(40))
    missing = target[:, None] - hubs
    errors = np.square(missing - missing.mean(axis=2, keepdims=True)).sum(axis=2)
    np.testing.assert_array_equal(hub, errors.argmin(axis=1))
    np.testing.assert_allclose(length, missing.mean(axis=2)[np.arange(40), hub], rtol=1e-4, atol=1e-6)


def test_gains_are_what_the_edge_brings() -> None:
    target, hubs = points(700, 6), points(9, 6, seed=1)  # more than a block
    hubs -= hubs.mean(axis=1, keepdims=True)
    _, first, length = choose_edges(target, hubs, np.ones(700), 700)
    found = hubs[first] + length[:, None]
    taken = np.stack([first, np.full(700, -1)], axis=1)
    gain, hub, longer = best_edges(target, found, taken, hubs)
    assert (hub[gain > 0] != first[gain > 0]).all()
    after = np.minimum(found, hubs[hub] + longer[:, None])
    lower = np.square(found - target).sum(axis=1) - np.square(after - target).sum(axis=1)
    np.testing.assert_allclose(gain[gain > 0], lower[gain > 0], rtol=1e-3, atol=1e-4)
    assert (gain > 0).mean() > 0.5


def test_heavy_items_get_more_edges() -> None:
    target, hubs = points(), points(10, seed=1)
    hubs -= hubs.mean(axis=1, keepdims=True)
    item, _, _ = choose_edges(target, hubs, np.repeat([100.0, 1.0], [20, 180]), 240)
    degrees = np.bincount(item)
    assert degrees[:20].mean() > 2 * degrees[20:].mean()


def test_no_way_over_another_hub_is_shorter() -> None:
    hubs, length = points(6, 3), points(1, 8)[0]
    between, lengths, offset = far_enough(hubs, length)
    assert between.max() <= between.min() * 3
    assert between.max() - between.min() <= 2 * lengths.min()
    moved = between[2] + lengths[4] - offset
    np.testing.assert_allclose(moved, hubs[2] + length[4], rtol=1e-5, atol=1e-5)


def test_items_that_are_all_alike() -> None:
    graph, offset, scale = attach_to_anchors(np.zeros((30, 3)), 5, random_state=0, n_jobs=1)
    found = graph(np.arange(30), np.arange(graph.n_vertices - 3, graph.n_vertices)).detach().numpy()
    np.testing.assert_allclose((found - offset) / scale, 0, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coordinates": [[np.nan]]}, "coordinates contains NaN"),
        ({"coordinates": [1.0, 2.0]}, "Expected 2D array"),
        ({"n_hubs": 201}, "n_hubs must be between 1 and 200"),
        ({"numbers_per_item": 2.5}, "numbers_per_item = 2.5 is too little for 200 items"),
        ({"numbers_per_item": np.inf}, "numbers_per_item must be a finite number"),
        ({"sample_weight": [1.0]}, r"one entry per item \(200\)"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attach_to_anchors(**{"coordinates": points(), "n_jobs": 1, **arguments})
