"""Distances of every kind of data against scikit-learn and scipy, and errors where there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from prodige.metric import space as module
from prodige.metric.space import Space, check_matrix, distances_between, natural_unit, unit_rows

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 5))
HOLED = POINTS * (RNG.random(POINTS.shape) < 0.5)
ZEROS = np.where(np.arange(60)[:, None] % 20 == 3, 0, POINTS)


def halved(x: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.abs(x - y).max() / 2)


def frame(X: NDArray[Any]) -> Any:
    return pytest.importorskip("pandas").DataFrame(X)


KINDS: list[tuple[Any, Any, Any]] = [
    (POINTS, "euclidean", POINTS),
    (POINTS.astype(np.float32), "euclidean", POINTS),
    (POINTS.tolist(), "euclidean", POINTS),
    (np.asfortranarray(POINTS), "euclidean", POINTS),
    (np.round(10 * POINTS).astype(int), "euclidean", np.round(10 * POINTS)),
    (scipy.sparse.csr_array(HOLED), "euclidean", HOLED),
    (scipy.sparse.csr_matrix(HOLED.astype(np.float32)), "euclidean", HOLED),
    (scipy.sparse.coo_array(HOLED), "euclidean", HOLED),
    (POINTS, "cosine", POINTS),
    (POINTS.astype(np.float32), "cosine", POINTS),
    (scipy.sparse.csr_array(ZEROS), "cosine", ZEROS),
    (ZEROS, "cosine", ZEROS),
    (ZEROS.astype(np.float32), "cosine", ZEROS),
    (POINTS, "manhattan", POINTS),
    (scipy.sparse.csr_array(HOLED), "manhattan", HOLED),
    (POINTS, "chebyshev", POINTS),
    (POINTS, "seuclidean", POINTS),
    (POINTS, "mahalanobis", POINTS),
    (POINTS, halved, POINTS),
]


@pytest.mark.parametrize(("X", "metric", "dense"), KINDS)
def test_distances_match_sklearn(X: Any, metric: Any, dense: NDArray[Any]) -> None:
    space = Space(X, metric)
    expected = pairwise_distances(dense, metric=metric)
    np.fill_diagonal(expected, 0)
    assert space.n_items == 60
    sources, targets = np.array([7, 0, 7, 59]), np.array([3, 7, 0])
    for found, target in (
        (space.distances(np.arange(60)), expected),
        (space.distances(sources), expected[sources]),
        (space.distances(sources, targets), expected[np.ix_(sources, targets)]),
    ):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, target, atol=2e-6 * max(1, expected.max()))
    assert (space.distances(np.arange(60)).diagonal() == 0).all()
    assert (space.distances(sources, sources)[[0, 0, 2], [0, 2, 0]] == 0).all()


def test_data_frames() -> None:
    np.testing.assert_array_equal(Space(frame(POINTS)).distances([0, 5]), Space(POINTS).distances([0, 5]))
    np.testing.assert_array_equal(
        Space(frame(POINTS), "manhattan").distances([0, 5]), Space(POINTS, "manhattan").distances([0, 5])
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_distances_are_given_back(dtype: Any) -> None:
    matrix = pairwise_distances(POINTS).astype(dtype)
    matrix = np.maximum(matrix, matrix.T)
    space = Space(matrix, "precomputed")
    np.testing.assert_array_equal(space.distances(np.arange(60)), matrix.astype(np.float32))
    np.testing.assert_array_equal(space.distances([4, 1], [9, 4]), matrix[[4, 1]][:, [9, 4]].astype(np.float32))
    rows = RNG.random((3, 60))
    np.testing.assert_array_equal(space.to_others(rows), rows.astype(np.float32))


@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.sampled_from([1, 2, 7, 100]),
    offset=st.sampled_from([0.0, 1e3, 1e6]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=40, deadline=None)
def test_data_far_from_the_origin_keep_their_distances(seed: int, n_features: int, offset: float, dtype: Any) -> None:
    X = (np.random.default_rng(seed).normal(size=(30, n_features)) + offset).astype(dtype)
    expected = cdist(X.astype(np.float64), X.astype(np.float64))
    found = Space(X).distances(np.arange(30))
    # Squares of single precision are right to 1e-7 of the largest; small distances lose what the root adds.
    np.testing.assert_allclose(found**2, expected**2, atol=2e-6 * (expected**2).max())


@pytest.mark.parametrize(
    ("X", "metric"),
    [
        (POINTS, "euclidean"),
        (scipy.sparse.csr_array(HOLED), "euclidean"),
        (POINTS, "cosine"),
        (POINTS, halved),
        (POINTS, "seuclidean"),
        (POINTS, "mahalanobis"),
    ],
)
def test_parts_and_others(X: Any, metric: Any) -> None:
    space = Space(X, metric)
    items = np.array([5, 3, 40, 41])
    np.testing.assert_allclose(space.take(items).distances([0, 2]), space.distances([5, 40], items), atol=1e-5)
    np.testing.assert_allclose(space.to_others(X[10:20]), space.distances(np.arange(10, 20)), atol=1e-5)


def test_parts_of_a_matrix() -> None:
    matrix = cdist(POINTS, POINTS)
    items = np.array([5, 3, 40])
    np.testing.assert_array_equal(
        Space(matrix, "precomputed").take(items).distances([0]), matrix[5, items][None].astype(np.float32)
    )


@pytest.mark.repeatable
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_any_number_of_threads_gives_the_same_bits(metric: str) -> None:
    X = np.random.default_rng(0).normal(size=(2500, 7))
    first, *others = (Space(X, metric, n_jobs=n_jobs).distances(np.arange(70)) for n_jobs in (1, 2, 3))
    np.testing.assert_allclose(first, cdist(X[:70], X, metric), atol=1e-5)
    for other in others:
        assert other.tobytes() == first.tobytes()


@pytest.mark.parametrize("sources", [None, np.array([50, 3, 3, 7])], ids=["all", "some"])
def test_blocks_cover_everything_once(monkeypatch: pytest.MonkeyPatch, sources: NDArray[Any] | None) -> None:
    space = Space(POINTS)
    for size in (1, 60, 7 * 60, 1 << 24):
        monkeypatch.setattr(module, "_BLOCK", size)
        parts = list(space.blocks(sources))
        target = np.arange(60) if sources is None else sources
        assert max(ids.size for ids, _ in parts) <= max(1, size // 60)
        np.testing.assert_array_equal(np.concatenate([ids for ids, _ in parts]), target)
        found = np.concatenate([distances for _, distances in parts])
        np.testing.assert_allclose(found, space.distances(target), atol=1e-5)


# -- what is no metric


def with_entry(row: int, column: int, value: float) -> NDArray[np.float64]:
    matrix: NDArray[np.float64] = cdist(POINTS, POINTS)
    matrix[row, column] = value
    return matrix


@pytest.mark.parametrize("block", [1, 1 << 24], ids=["rows", "whole"])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (POINTS, r"square matrix of distances, got shape \(60, 5\)"),
        (-with_entry(40, 7, 0), r"must be 0 or more, got -.* at \[0, 1\]; if these are similarities"),
        (with_entry(40, 7, 99.5), r"must be symmetric, got .* at \[7, 40\] and 99.5 at \[40, 7\]"),
        (with_entry(33, 33, 0.25), r"to itself must be 0, got 0.25 at \[33, 33\]"),
        (with_entry(2, 3, np.nan), "NaN"),
        (with_entry(2, 3, np.inf), "infinity"),
        (scipy.sparse.csr_array(cdist(POINTS, POINTS)), "dense matrix, got a sparse one"),
    ],
    ids=["shape", "negative", "asymmetric", "diagonal", "nan", "infinite", "sparse"],
)
def test_bad_matrices(monkeypatch: pytest.MonkeyPatch, block: int, matrix: Any, message: str) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    with pytest.raises(ValueError, match=message):
        Space(matrix, "precomputed")


def test_rounding_is_no_asymmetry() -> None:
    matrix = cdist(POINTS, POINTS)
    noise = 1e-7 * RNG.uniform(-1, 1, matrix.shape)
    np.fill_diagonal(noise, 1e-9)
    assert check_matrix(np.abs(matrix + noise)).shape == (60, 60)


def always(value: float) -> Callable[[Any, Any], float]:
    def metric(x: Any, y: Any) -> float:
        return value

    return metric


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_metrics_that_give_no_distances(value: float) -> None:
    with pytest.raises(ValueError, match=f"metric 'metric' gives {value}; distances must be finite and 0 or more"):
        Space(POINTS, always(value)).distances([0])
    with pytest.raises(ValueError, match="finite and 0 or more"):
        distances_between(POINTS, POINTS, always(value))


def test_unknown_metrics_and_bad_rows() -> None:
    with pytest.raises(ValueError, match="metric"):
        Space(POINTS, "euclidian").distances([0])
    for value, message in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(ValueError, match=message):
            Space(np.where(np.arange(5) == 3, value, POINTS))
    with pytest.raises(ValueError, match="2D array"):
        Space(POINTS[0])
    with pytest.raises(ValueError, match="0 sample"):
        Space(POINTS[:0])


def test_unit_rows() -> None:
    rows = unit_rows(ZEROS)
    zero = ~ZEROS.any(axis=1)
    assert zero.sum() == 3
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.where(zero, 0, 1))
    np.testing.assert_allclose(rows[~zero] * np.linalg.norm(ZEROS[~zero], axis=1, keepdims=True), ZEROS[~zero])


# -- units -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e20, 1e-25])
@pytest.mark.parametrize(("X", "metric", "dense"), KINDS)
def test_distances_of_any_scale(X: Any, metric: Any, dense: NDArray[Any], scale: float) -> None:
    without_scale = metric in ("cosine", "seuclidean", "mahalanobis")
    expected = pairwise_distances(dense, metric=metric) * (1 if without_scale else scale)
    np.fill_diagonal(expected, 0)
    scaled = X * X.dtype.type(scale) if getattr(X, "dtype", int) in (np.float32, np.float64) else scale * dense
    space = Space(scaled, metric)
    size = expected.max()
    np.testing.assert_allclose(space.distances(np.arange(60)) / size, expected / size, atol=1e-6)
    unit = natural_unit(space)
    if without_scale:
        assert unit == 1
        return
    assert 0.5 < unit / size < 2
    in_units = Space(scaled, metric, unit)
    np.testing.assert_allclose(in_units.distances(np.arange(60)), expected / unit, atol=1e-6)
    np.testing.assert_allclose(in_units.distances([3], [7, 9]), expected[[3]][:, [7, 9]] / unit, atol=1e-6)
    np.testing.assert_allclose(in_units.take(np.arange(9)).distances([3]), expected[[3], :9] / unit, atol=1e-6)
    np.testing.assert_allclose(in_units.to_others(in_units.X[:5]), expected[:5] / unit, atol=1e-6)
    distances, ids = in_units.neighbors(3)
    np.testing.assert_allclose(distances, np.take_along_axis(expected, ids, axis=1) / unit, atol=1e-6)


def test_matrices_of_any_scale() -> None:
    expected = cdist(POINTS, POINTS)
    space = Space(1e20 * expected, "precomputed")
    unit = natural_unit(space)
    np.testing.assert_allclose(Space(space.X, "precomputed", unit).distances([3]), 1e20 / unit * expected[[3]])


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-60, 1e-33])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", halved, "precomputed"])
def test_distances_too_small_are_refused(metric: Any, scale: float) -> None:
    X = cdist(POINTS, POINTS) if metric == "precomputed" else POINTS
    with pytest.raises(ValueError, match="too small for single precision"):
        natural_unit(Space(scale * X, metric))
    assert natural_unit(Space(scale * POINTS, "cosine")) == 1


def test_the_unit_is_1_for_usual_data() -> None:
    for scale in (1e-6, 1.0, 1e6):
        assert natural_unit(Space(scale * POINTS)) == 1
    assert natural_unit(Space(np.zeros((5, 2)))) == 1


def test_distances_beyond_single_precision_are_refused() -> None:
    with pytest.raises(ValueError, match=r"too large for single precision, which ends at 3e\+38; divide X"):
        natural_unit(Space(1e40 * POINTS))
