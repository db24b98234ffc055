"""Candidates: the right edges, unique, with the right weights, for every kind of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from prodige.metric import candidates
from prodige.metric.candidates import Candidates, radii_of
from prodige.threads import one_thread

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 5))
DISTANCES = cdist(POINTS, POINTS)


def check(edges: Candidates, distances: NDArray[Any] | None = DISTANCES) -> None:
    """Edges are unique, oriented, ordered and weighted by the metric."""
    assert edges.i.dtype == edges.j.dtype == np.int32
    assert edges.weight.dtype == np.float32
    assert (edges.i < edges.j).all()
    assert edges.j.max(initial=0) < edges.n_vertices
    pairs = list(zip(edges.i.tolist(), edges.j.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    if distances is not None:
        np.testing.assert_allclose(edges.weight, distances[edges.i, edges.j], atol=1e-5)


def manhattan(x: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.abs(x - y).sum())


@pytest.mark.parametrize(
    ("X", "metric", "distances"),
    [
        (POINTS, "euclidean", DISTANCES),
        (POINTS.astype(np.float32), "euclidean", DISTANCES),
        (POINTS.tolist(), "euclidean", DISTANCES),
        (scipy.sparse.csr_array(POINTS), "euclidean", DISTANCES),
        (DISTANCES, "precomputed", DISTANCES),
        (POINTS, "cosine", cdist(POINTS, POINTS, "cosine")),
        (scipy.sparse.csr_matrix(POINTS), "cosine", cdist(POINTS, POINTS, "cosine")),
        (POINTS, "manhattan", cdist(POINTS, POINTS, "cityblock")),
        (POINTS, manhattan, cdist(POINTS, POINTS, "cityblock")),
    ],
    ids=["dense", "float32", "list", "csr", "precomputed", "cosine", "csr-cosine", "manhattan", "callable"],
)
def test_metrics(X: Any, metric: Any, distances: NDArray[Any]) -> None:
    near = candidates.knn(X, 4, metric)
    check(near, distances)
    order = np.argsort(distances + np.diag(np.full(60, np.inf)), axis=1)[:, :4]
    expected = {tuple(sorted((i, j))) for i in range(60) for j in order[i].tolist()}
    assert set(zip(near.i.tolist(), near.j.tolist(), strict=True)) == expected

    some = candidates.random(X, 3, metric, random_state=0)
    check(some, distances)
    assert 60 <= some.n_edges <= 180
    check(candidates.complete(X, metric), distances)
    assert candidates.complete(X, metric).n_edges == 60 * 59 // 2

    joined = near | some
    check(joined, distances)
    assert max(near.n_edges, some.n_edges) < joined.n_edges <= near.n_edges + some.n_edges

    around = candidates.hubs(X, 5, metric=metric, random_state=0)
    check(around, None)
    assert around.n_vertices == 65
    assert around.n_edges == 60 * 5 + 10
    assert np.isfinite(around.weight).all()
    assert (around.weight >= 0).all()


def test_approximate_neighbors_are_nearly_exact() -> None:
    points = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float32)
    points[7] = points[8]  # duplicates must not hide each other
    for metric in ("euclidean", "cosine"):
        exact, found = candidates.knn(points, 10, metric), candidates.knn(points, 10, metric, "approximate")
        check(found, cdist(points, points, metric))
        both = set(zip(exact.i, exact.j, strict=True)) & set(zip(found.i, found.j, strict=True))
        assert len(both) > 0.95 * exact.n_edges
    with pytest.raises(ValueError, match="use method='exact'"):
        candidates.knn(points, 3, "manhattan", "approximate")
    with pytest.raises(ValueError, match="method must be"):
        candidates.knn(points, 3, method="magic")  # type: ignore[arg-type]


def test_same_seed_same_edges() -> None:
    makers: tuple[Callable[[int], Candidates], ...] = (
        lambda seed: candidates.random(POINTS, 4, random_state=seed),
        lambda seed: candidates.hubs(POINTS, 6, 3, random_state=seed),
        lambda seed: candidates.hubs(POINTS, 6, 3, metric="cosine", random_state=seed),
    )
    for make in makers:
        one, same, other = make(0), make(0), make(1)
        for field in ("i", "j", "weight"):
            assert getattr(one, field).tobytes() == getattr(same, field).tobytes()
        assert one.weight.tobytes() != other.weight.tobytes()


def test_star_radii_are_the_best_star() -> None:
    i, j = np.triu_indices(60, 1)
    design = np.zeros((i.size, 60))
    design[np.arange(i.size), i] = design[np.arange(i.size), j] = 1
    expected = np.linalg.lstsq(design, DISTANCES[i, j], rcond=None)[0]
    np.testing.assert_allclose(radii_of(POINTS, "euclidean", np.random.RandomState(0)), expected)


def test_hub_start_is_close_to_the_star() -> None:
    from prodige import Graph

    edges = candidates.hubs(POINTS, 4, random_state=0)
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    radii = radii_of(POINTS, "euclidean", np.random.RandomState(0))
    pairs = np.triu_indices(60, 1)
    star = (radii[:, None] + radii[None])[pairs]
    error = np.mean((graph.distances()[pairs] - DISTANCES[pairs]) ** 2)
    assert error < 1.5 * np.mean((star - DISTANCES[pairs]) ** 2)
    assert graph.is_connected


def test_bipartite() -> None:
    matrix = scipy.sparse.random_array((20, 30), density=0.1, rng=RNG)
    edges = candidates.bipartite(matrix, weight=2.0)
    assert edges.n_items == edges.n_vertices == 50
    assert edges.n_edges == matrix.nnz
    assert (edges.i < 20).all()
    assert (edges.j >= 20).all()
    assert (edges.weight == 2).all()
    dense = matrix.toarray()
    assert (dense[edges.i, edges.j - 20] != 0).all()


@pytest.mark.repeatable
@pytest.mark.parametrize(
    ("metric", "dtype"),
    [("euclidean", np.float32), ("euclidean", np.float64), ("cosine", np.float64), ("precomputed", np.float64)],
)
def test_neighbours_do_not_depend_on_threads(metric: str, dtype: type) -> None:
    """Nor on the number of threads that OpenMP would take, even where many items are equally far."""
    rows: NDArray[Any] = np.random.default_rng(0).integers(1, 4, size=(4500, 4)).astype(dtype)
    X = pairwise_distances(rows[:600], metric="cityblock") if metric == "precomputed" else rows
    found = [candidates.knn(X, 5, metric, n_jobs=n_jobs) for n_jobs in (1, 3)]
    with one_thread():
        found.append(candidates.knn(X, 5, metric, n_jobs=2))
    for other in found[1:]:
        for one, two in zip((found[0].i, found[0].j, found[0].weight), (other.i, other.j, other.weight), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.repeatable
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_hubs_do_not_depend_on_threads_of_blas(metric: str) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 40))
    free = candidates.hubs(X, 6, metric=metric, random_state=0)
    with one_thread():
        limited = candidates.hubs(X, 6, metric=metric, random_state=0)
    np.testing.assert_array_equal(free.weight, limited.weight)


def test_few_items_and_duplicates() -> None:
    assert candidates.knn([[1.0]], 3).n_edges == 0
    assert candidates.knn([[1.0], [2.0]], 32).n_edges == 1
    assert candidates.random([[1.0], [2.0]], 32, random_state=0).n_edges == 1
    same = np.ones((10, 2))
    assert (candidates.knn(same, 3).weight == 0).all()
    check(candidates.hubs(same, 2, random_state=0), None)
    assert candidates.hubs([[0.0], [1.0]], 2, random_state=0).n_edges == 5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: candidates.knn([[np.nan]], 1), "NaN"),
        (lambda: candidates.knn(POINTS, 0), "n_neighbors must be between 1"),
        (lambda: candidates.knn(POINTS, 3, "nonsense"), "nonsense"),
        (lambda: candidates.knn(POINTS, 3, "precomputed"), r"square matrix of distances, got shape \(60, 5\)"),
        (lambda: candidates.random(POINTS, 0), "n_edges must be between 1"),
        (lambda: candidates.hubs(POINTS, 61), "n_hubs must be between 1 and 60, got 61"),
        (lambda: candidates.hubs(POINTS, 4, 5), "n_nearest must be between 1 and 4, got 5"),
        (lambda: candidates.knn(POINTS, 3) | candidates.knn(POINTS[:50], 3), "60 items and for 50"),
        (lambda: candidates.knn(POINTS, 3, lambda a, b: np.nan), r"weight\[0\] = nan cannot be an edge weight"),
        (lambda: candidates.random(POINTS, 3, lambda a, b: -1.0), r"weight\[0\] = -1.0 cannot be an edge weight"),
        (lambda: candidates.hubs(POINTS, 3, metric=lambda a, b: np.nan), "gives nan; distances must be finite"),
        (lambda: candidates.hubs(POINTS, 3, metric=lambda a, b: -1.0), "gives -1.0; distances must be finite and 0"),
        (lambda: candidates.random(POINTS, 2**31 - 1), "n_edges must be between 1 and 17895697, got 2147483647"),
        (lambda: candidates.knn(POINTS, 3, n_jobs=0), "n_jobs must not be 0"),
        (lambda: candidates.bipartite([[1, 0]], weight=np.nan), "weight must be a finite number of 0 or more, got nan"),
        (lambda: candidates.bipartite([[np.nan, 0]]), "matrix must not hold nan"),
        (lambda: candidates.bipartite([1, 0]), r"two dimensions.* got shape \(2,\)"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
