"""Graphs of neighbours: exact where the metric is one of paths, and never in pieces."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import cdist

from prodige.compression.fitting import FittedGraph
from prodige.compression.neighbors import (
    complete,
    find_detours,
    fit_local,
    join_components,
    looks_local,
    measure_detours,
    thin,
)
from prodige.metric.candidates import Candidates, knn
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.progress import Monitor, Record

Matrix = NDArray[np.float64]


def path_metric(i: Any, j: Any, weight: Any) -> Matrix:
    """All shortest paths of a graph."""
    n = int(max(np.max(i), np.max(j))) + 1
    distances = shortest_path(csr_array((weight, (i, j)), shape=(n, n)), directed=False)
    return np.asarray((distances + distances.T) / 2)


def tree_metric(rng: np.random.Generator, n: int) -> Matrix:
    i = np.arange(1, n)
    return path_metric(i, [int(rng.integers(0, v)) for v in i], rng.uniform(0.1, 1, n - 1))


def road_metric(rng: np.random.Generator, side: int, n_long: int) -> Matrix:
    """A grid of streets of different lengths and some long roads across it."""
    place = np.arange(side * side).reshape(side, side)
    i = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
    j = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
    ends = np.array([rng.choice(side * side, 2, replace=False) for _ in range(n_long)]).reshape(-1, 2)
    ends = ends[(np.abs(ends[:, 0] - ends[:, 1]) > 1) & (np.abs(ends[:, 0] - ends[:, 1]) != side)]
    weight = np.concatenate([rng.uniform(0.5, 1.5, i.size), rng.uniform(2, 3, len(ends))])
    return path_metric(np.concatenate([i, ends[:, 0]]), np.concatenate([j, ends[:, 1]]), weight)


def line(n: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).random((n, 1))


def fit(space: Space, numbers: float, monitor: Monitor | None = None, n_jobs: int = 1) -> FittedGraph:
    landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    return fit_local(space, landmarks, numbers, monitor, random_state=0, n_jobs=n_jobs)


def is_connected(tail: Any, head: Any, n: int) -> bool:
    return bool(connected_components(csr_array((np.ones(len(tail)), (tail, head)), shape=(n, n)))[0] == 1)


# -- exact


@given(n=st.integers(5, 80), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_trees_are_found_again(n: int, seed: int) -> None:
    matrix = tree_metric(np.random.default_rng(seed), n)
    graph = fit(Space(matrix, "precomputed"), 4)
    np.testing.assert_allclose(graph.freeze().distances(), matrix, atol=1e-5 * matrix.max())
    assert graph.n_edges == n - 1


@pytest.mark.parametrize(("side", "n_long", "seed"), [(8, 0, 0), (12, 8, 1), (16, 20, 2)])
def test_roads_are_found_again(side: int, n_long: int, seed: int) -> None:
    matrix = road_metric(np.random.default_rng(seed), side, n_long)
    graph = fit(Space(matrix, "precomputed"), 6)
    np.testing.assert_allclose(graph.freeze().distances(), matrix, atol=1e-5 * matrix.max())
    assert graph.n_edges <= 2 * side * (side - 1) + n_long


@given(n=st.integers(4, 120), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_points_on_a_line_need_no_more_than_the_line(n: int, seed: int) -> None:
    points = line(n, seed)
    graph = fit(Space(points), 4)
    np.testing.assert_allclose(graph.freeze().distances(), cdist(points, points), atol=1e-4)
    assert graph.n_edges == n - 1


def test_exact_runs_end_at_once() -> None:
    monitor = Monitor(96)
    fit(Space(tree_metric(np.random.default_rng(0), 100), "precomputed"), 4, monitor)
    assert len(monitor.history) == 1
    assert monitor.stopped == "finished"


# -- within a budget


@pytest.mark.parametrize("numbers", [3.0, 4.0, 6.0])
def test_budget_is_met(numbers: float) -> None:
    points = np.random.default_rng(0).normal(size=(150, 2))
    graph = fit(Space(points), numbers)
    frozen = graph.freeze()
    assert frozen.is_connected
    assert frozen.n_vertices == 150
    assert numbers - 0.02 <= frozen.numbers_per_item <= numbers
    assert (graph.weight >= 0).all()


def test_more_numbers_fit_better_and_weights_are_learned() -> None:
    points = np.random.default_rng(0).normal(size=(150, 2))
    target = cdist(points, points)
    errors = []
    for numbers in (3.0, 4.0, 6.0):
        monitor = Monitor(96)
        frozen = fit(Space(points), numbers, monitor).freeze()
        errors.append(((frozen.distances() - target) ** 2).mean())
        # The same edges with the lengths they have in the plane are worse.
        plain = path_metric(frozen.edges.i, frozen.edges.j, target[frozen.edges.i, frozen.edges.j])
        assert errors[-1] < ((plain - target) ** 2).mean()
    assert errors[0] > errors[1] > errors[2]


def test_seeds_and_threads() -> None:
    space = Space(np.random.default_rng(0).normal(size=(200, 2)))
    first = fit(space, 4, Monitor(24))
    for n_jobs in (1, 2):
        again = fit(space, 4, Monitor(24), n_jobs)
        assert again.tail.tobytes() == first.tail.tobytes()
        assert again.weight.tobytes() == first.weight.tobytes()


@pytest.mark.parametrize("step", [0, 7, 50])
@pytest.mark.parametrize("how", ["callback", "interrupt"])
def test_early_ends_leave_a_graph_within_the_budget(step: int, how: str) -> None:
    def stop(record: Record) -> bool:
        if record.step == step and how == "interrupt":
            raise KeyboardInterrupt
        return record.step == step

    monitor = Monitor(96, callbacks=[stop])
    graph = fit(Space(np.random.default_rng(0).normal(size=(100, 2))), 4, monitor)
    assert monitor.stopped == how
    assert len(monitor.history) == step + 1
    assert 3.9 < graph.numbers_per_item <= 4
    assert graph.freeze().is_connected


def test_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves on by a second whenever it is looked at."""
    space = Space(np.random.default_rng(0).normal(size=(100, 2)))
    ticks = itertools.count()
    monkeypatch.setattr("prodige.progress.time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    for max_time, n_steps in ((1e-6, range(1)), (40, range(12, 21))):
        monitor = Monitor(96, max_time)
        graph = fit(space, 4, monitor)
        assert len(monitor.history) in n_steps  # two looks a step, and some more when edges are chosen
        assert 3.9 < graph.numbers_per_item <= 4
        assert graph.freeze().is_connected


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "precomputed"])
def test_every_kind_of_data(metric: str) -> None:
    points = np.random.default_rng(0).normal(size=(80, 2))
    space = Space(cdist(points, points), metric) if metric == "precomputed" else Space(points, metric)
    frozen = fit(space, 4, Monitor(24)).freeze()
    target = space.distances(np.arange(80))
    assert 3.9 < frozen.numbers_per_item <= 4
    assert np.abs(frozen.distances() - target).mean() < 0.15 * target.mean()


# -- is it of this kind?


def test_looks_local() -> None:
    rng = np.random.default_rng(0)
    local = [
        Space(line(300)),
        Space(rng.normal(size=(300, 2))),
        Space(tree_metric(rng, 200), "precomputed"),
        Space(road_metric(rng, 12, 5), "precomputed"),
        Space(csr_array(rng.normal(size=(100, 2)))),
        Space(rng.normal(size=(5, 1))),
    ]
    other = [
        Space(rng.normal(size=(300, 30))),
        Space(rng.normal(size=(300, 30)), "cosine"),
        Space((1 - np.eye(50)), "precomputed"),
        Space(np.ones((40, 2))),
        Space(rng.normal(size=(3, 1))),  # too few to tell
    ]
    assert [looks_local(space, np.random.RandomState(0)) for space in local] == [True] * len(local)
    assert [looks_local(space, np.random.RandomState(0)) for space in other] == [False] * len(other)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 9), copies=st.booleans())
@settings(deadline=None)
def test_detours(seed: int, n: int, copies: bool) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n + 1, 2))
    if copies:
        points[n] = points[0]
    matrix = cdist(points, points)
    item, neighbors = 0, np.arange(1, n + 1)
    expected = []
    for goal in neighbors:
        paths = [
            matrix[item, over] + matrix[over, goal]
            for over in neighbors
            if over != goal and matrix[item, over] > 0 and matrix[over, goal] > 0
        ]
        straight = matrix[item, goal]
        expected.append(min(paths, default=np.inf) / straight if straight > 0 else np.inf)
    found = find_detours(Space(matrix, "precomputed"), item, neighbors)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_detours_of_edges() -> None:
    """Of the edges of a line with all pairs joined, only those between neighbours on it have no detour as short."""
    points = np.arange(6.0)[:, None]
    i, j = np.triu_indices(6, 1)
    edges = Candidates.make(i, j, points[j, 0] - points[i, 0], 6, 6)
    detours = measure_detours(Space(points), edges)
    np.testing.assert_allclose(detours[edges.j - edges.i > 1], 1, atol=1e-5)
    assert (detours[edges.j - edges.i == 1] > 1.5).all()


# -- parts


@given(seed=st.integers(0, 2**32 - 1), n_edges=st.integers(29, 80), above=st.sampled_from([-np.inf, 0.5]))
@settings(max_examples=40, deadline=None)
def test_thinning_keeps_the_best_and_what_holds_together(seed: int, n_edges: int, above: float) -> None:
    rng = np.random.default_rng(seed)
    space = Space(rng.normal(size=(30, 2)))
    landmarks = Landmarks.draw(space, 16, np.random.RandomState(0))
    edges = join_components(space, knn(space.X, 4))
    graph = FittedGraph(landmarks, 0, edges.i, edges.j, edges.weight, 1)
    importance = rng.random(graph.n_edges)
    thinned = thin(graph, importance, n_edges, above)
    assert thinned.n_edges <= n_edges
    assert is_connected(thinned.tail, thinned.head, 30)
    number = {pair: e for e, pair in enumerate(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))}
    kept = [number[pair] for pair in zip(thinned.tail.tolist(), thinned.head.tolist(), strict=True)]
    np.testing.assert_array_equal(graph.weight[kept], thinned.weight)
    lost = np.setdiff1d(np.arange(graph.n_edges), kept)
    if thinned.n_edges == n_edges == graph.n_edges:
        assert lost.size == 0
    # An edge worth less than a lost one is only there if the graph would fall apart without.
    for e in kept:
        bound = max(importance[lost].max(initial=-np.inf), above)
        if (importance[e] < bound and thinned.n_edges == n_edges) or importance[e] <= above:
            rest = [k for k in kept if k != e and importance[k] >= importance[e]]
            assert not is_connected(graph.tail[rest], graph.head[rest], 30)


def test_components_are_joined() -> None:
    """Three far groups, and a copy of an item: in the end all is one, by the shortest edges between the groups."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 50, rng.normal(size=(40, 2)) - 90])
    points[7] = points[3]
    space = Space(points)
    near = knn(points, 4)
    assert not is_connected(near.i, near.j, 120)
    joined = join_components(space, near)
    assert is_connected(joined.i, joined.j, 120)
    assert joined.n_edges - near.n_edges in (2, 3)
    distances = cdist(points, points)
    assert distances[:40, 40:80].min() == pytest.approx(
        joined.weight[(joined.i < 40) & (joined.j >= 40) & (joined.j < 80)].min(), rel=1e-5
    )
    again = join_components(space, joined)
    assert again.n_edges == joined.n_edges


def test_missing_roads_are_added() -> None:
    """A ring with one long road across: neighbours alone do not show it."""
    n = 40
    i = np.append(np.arange(n), 0)
    j = np.append((np.arange(n) + 1) % n, n // 2)
    matrix = path_metric(i, j, np.append(np.ones(n), 7.0))
    space = Space(matrix, "precomputed")
    landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    ring = FittedGraph(landmarks, 0, i[:-1].astype(np.int32), j[:-1].astype(np.int32), np.ones(n), 1)
    assert not np.allclose(ring.freeze().distances(), matrix)
    full = complete(space, ring)
    assert full.n_edges == n + 1
    np.testing.assert_allclose(full.freeze().distances(), matrix, atol=1e-5)
    assert complete(space, full).n_edges == n + 1


def test_without_time_all_edges_count_as_needed() -> None:
    space = Space(np.random.default_rng(0).normal(size=(200, 2)))
    edges = Candidates.of_neighbors(*space.neighbors(8))
    assert np.isfinite(measure_detours(space, edges)).any()
    assert np.isinf(measure_detours(space, edges, lambda: True)).all()
