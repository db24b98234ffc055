"""Places that suit near pairs: slopes by automatic differentiation, lengths and shares by dense sums."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from prodige import DistanceCompressor
from prodige.compression.near_places import NEAR, Neighborhood, Slopes, suit_near
from prodige.compression.objective import NearPairs
from prodige.metric import Space, evaluate

X = load_digits().data[:400].astype(np.float32)
WEIGHT = 0.7


def near_pairs(n_items: int = 400, k: int = 8) -> NearPairs:
    space = Space(X[:n_items])
    distances, items = space.neighbors(k)
    return NearPairs(items.astype(np.int32), distances, 1.0)


def neighborhood(n_items: int = 400) -> Neighborhood:
    return Neighborhood.of(near_pairs(n_items), WEIGHT, scale())


def scale() -> float:
    return float(Space(X).distances(np.arange(50)).mean())


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_near_pairs_count_from_either_side(seed: int, k: int) -> None:
    """The sum over an item's row is what the sum over all directed pairs says of it."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(12, 2))
    between = np.linalg.norm(points[:, None] - points, axis=2).astype(np.float32)
    items = (between + 1e9 * np.eye(12)).argsort(axis=1)[:, :k].astype(np.int32)
    found = Neighborhood.of(NearPairs(items, np.take_along_axis(between, items, 1), 1.0), WEIGHT, 2.0)
    once = np.zeros((12, 12))
    np.put_along_axis(once, items, WEIGHT / (2 * k), axis=1)
    np.testing.assert_allclose(found.shares.toarray(), once + once.T, rtol=1e-5)
    np.testing.assert_allclose(found.distances.toarray(), np.where(once + once.T > 0, between / 2, 0), atol=1e-6)
    assert found.shares.sum() == pytest.approx(12 * WEIGHT, rel=1e-5)
    np.testing.assert_array_equal(found.shares.indices, found.distances.indices)


def test_equal_items_are_near() -> None:
    items, distances = np.array([[1], [0], [0]], np.int32), np.array([[0], [0], [3]], np.float32)
    found = Neighborhood.of(NearPairs(items, distances, 1.0), 1.0, 1.0)
    assert found.shares.nnz == found.distances.nnz == 4
    least = Neighborhood.of(NearPairs(items, distances, 1.0), 1e-60, 1.0)  # 0 in single precision
    assert least.shares.nnz == least.distances.nnz == 4


def test_slopes_are_those_of_the_error() -> None:
    random = np.random.default_rng(0)
    near, n = neighborhood(60), 60
    places, lengths = random.normal(size=(n, 3)).astype(np.float32), random.random(n).astype(np.float32)
    anchors = np.array([3, 17, 20, 44])
    target = random.random((n, anchors.size)).astype(np.float32)
    found = Slopes(places, lengths, anchors, near).of(slice(10, 40), target[10:40])
    for item in (10, 17, 39):
        at = torch.tensor(np.append(places[item], lengths[item]).astype(np.float64), requires_grad=True)

        def error_of(others: NDArray[np.int64], wanted: NDArray[np.float32], at: torch.Tensor = at) -> torch.Tensor:
            flat = (at[:-1] - torch.tensor(places[others], dtype=torch.float64)).norm(dim=1).clamp(min=NEAR)
            wrong: torch.Tensor = flat + at[-1] + torch.tensor(lengths[others]) - torch.tensor(wanted)
            return wrong.square() / 2

        others = np.flatnonzero(anchors != item)
        far = error_of(anchors[others], target[item, others]).sum() / anchors.size
        row = near.shares[[item]]
        wanted = near.distances[[item]].toarray().ravel()[row.indices]
        (far + (torch.tensor(row.data) * error_of(row.indices, wanted)).sum()).backward()  # type: ignore[no-untyped-call]
        assert at.grad is not None
        np.testing.assert_allclose(found[item - 10], at.grad.numpy(), rtol=1e-3, atol=1e-4)


def test_places_suit_near_pairs_with_any_number_of_threads() -> None:
    random = np.random.default_rng(0)
    near = neighborhood()
    between = (Space(X).distances(np.arange(400)) / scale()).astype(np.float32)
    anchors = np.arange(0, 400, 4)

    def targets(part: slice, some: NDArray[np.int64]) -> NDArray[np.float32]:
        return between[part][:, anchors[some]]

    places = random.normal(size=(400, 6), scale=0.2).astype(np.float32)
    lengths = np.full(400, 0.1, np.float32)
    start = places.copy()
    fit = partial(suit_near, places, lengths, anchors, targets, near)
    found = fit(n_jobs=1)
    np.testing.assert_array_equal(places, start)
    np.testing.assert_array_equal(fit(n_jobs=2), found)
    np.testing.assert_array_equal(fit(is_over=lambda: True), start)

    def near_error(places: NDArray[np.float32]) -> float:
        flat = near.between(places, slice(0, 400))
        return float((near.shares.data * (flat + 0.2 - near.distances.data) ** 2).sum())

    assert near_error(found) < 0.2 * near_error(start)


def test_lengths_suit_near_pairs() -> None:
    """They are the best lengths for an item given those of the others, or 0."""
    random = np.random.default_rng(0)
    near, places = neighborhood(), random.normal(size=(400, 4), scale=0.2)
    anchors = np.arange(0, 400, 4)
    left = random.random(400) / 2
    lengths = np.full(400, 0.1)
    for _ in range(20):
        lengths = near.suit_lengths(lengths, left, anchors, places)
    flat = near.between(places.astype(np.float32), slice(0, 400))
    wrong = near.shares.copy()
    row = np.repeat(np.arange(400), np.diff(wrong.indptr))
    wrong.data = wrong.data * (flat + lengths[row] + lengths[wrong.indices] - near.distances.data)
    slopes = lengths + lengths[anchors].mean() - left + wrong.sum(axis=1)
    np.testing.assert_allclose(slopes[lengths > 0], 0, atol=1e-3)
    assert (slopes[lengths == 0] > -1e-3).all()


def test_influences_of_near_pairs() -> None:
    near, places = neighborhood(), X[:, :8].astype(np.float64) + np.arange(400)[:, None] * 1e-3
    items = np.array([5, 100, 7])
    shares = []
    for item in items:
        for other in near.shares[[item]].indices:
            squares = (places[item] - places[other]) ** 2
            shares.append(squares / squares.sum())
    np.testing.assert_allclose(near.influences(places, items), np.mean(shares, axis=0), rtol=1e-6)


def test_neighbours_are_kept_and_distances_hardly_worse() -> None:
    reports = [
        evaluate(DistanceCompressor(bits_per_item=48, objective=objective, random_state=0).fit(X).graph_, Space(X))
        for objective in ("distances", 0.5, "neighbors")
    ]
    recalls, errors = [report.recall for report in reports], [report.mse for report in reports]
    assert recalls[0] + 0.04 < recalls[2]
    assert recalls[0] < recalls[1]
    assert errors[0] < errors[1] < errors[2] < 2 * errors[0]
