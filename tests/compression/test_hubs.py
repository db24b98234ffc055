"""Graphs of hubs: every step keeps what it promises, and the whole meets its budget and beats the star."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from prodige import Graph
from prodige.compression.hubs import (
    N_STEPS,
    Attachments,
    HubGraph,
    first_of_item,
    fit_hubs,
    group_items,
    most_hubs,
    propose_hub_edges,
    rewire,
    start_graph,
)
from prodige.metric.candidates import radii_of
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.progress import Monitor, Record


def clusters(n_items: int, n_features: int = 10, n_clusters: int = 5, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_clusters, n_features)) * 3
    points: NDArray[np.float64] = centres[np.arange(n_items) % n_clusters] + rng.normal(size=(n_items, n_features))
    return points


def draw(points: NDArray[np.float64]) -> Landmarks:
    return Landmarks.draw(Space(points), 4096, np.random.RandomState(0))


def mean_squared_error(graph: Graph, points: NDArray[np.float64]) -> float:
    n = len(points)
    return float(((graph.distances().astype(np.float64) - cdist(points, points)) ** 2).sum() / (n * (n - 1)))


def check_hub_graph(graph: HubGraph) -> None:
    """Items hang on hubs, no edge comes twice, everything is connected."""
    n = graph.n_items
    assert (graph.head >= n).all()
    assert (graph.weight >= 0).all()
    assert np.isfinite(graph.weight).all()
    pairs = {tuple(sorted(pair)) for pair in zip(graph.tail.tolist(), graph.head.tolist(), strict=True)}
    assert len(pairs) == graph.n_edges
    assert (np.bincount(graph.tail, minlength=n)[:n] >= 1).all()
    assert graph.freeze().is_connected


POINTS = clusters(120)
LANDMARKS = draw(POINTS)


def grown(n_passes: int = 6, n_hubs: int = 10) -> HubGraph:
    graph = start_graph(LANDMARKS, n_hubs, np.random.RandomState(0), 1)
    for _ in range(n_passes):
        graph.newton(np.arange(LANDMARKS.n_blocks, dtype=np.int32), rate=1.0)
    return graph


# -- steps


@given(n_items=st.integers(3, 100_000), spare=st.floats(1, 50_000))
def test_most_hubs_leaves_room(n_items: int, spare: float) -> None:
    """One edge an item, hubs in a tree and an edge to spare for each hub fit into the budget."""
    numbers = 3 + spare / n_items
    n_hubs = most_hubs(n_items, numbers)
    assert n_hubs >= 1
    least = n_items + n_hubs + 2 * (n_items + n_hubs - 1)
    assert least <= numbers * n_items + 1e-6
    if n_hubs > 1:
        assert least + 2 * n_hubs <= numbers * n_items + 1e-6


def test_groups_follow_clusters() -> None:
    group = group_items(LANDMARKS.target, 15, np.random.RandomState(0))
    assert group.dtype == np.int32
    assert group.shape == (120,)
    assert group.min() >= 0
    assert group.max() < 15
    for members in (np.flatnonzero(group == g) for g in set(group.tolist())):
        assert len(set((members % 5).tolist())) == 1  # never two clusters in a group


def test_as_many_groups_as_items_or_one() -> None:
    assert set(group_items(LANDMARKS.target, 1, np.random.RandomState(0)).tolist()) == {0}
    everyone = group_items(LANDMARKS.target, 120, np.random.RandomState(0))
    assert len(set(everyone.tolist())) > 100
    same = group_items(np.ones((20, 32), np.float32), 4, np.random.RandomState(0))
    assert same.max() < 4


def test_start_is_better_than_the_star() -> None:
    graph = start_graph(LANDMARKS, 10, np.random.RandomState(0), 1)
    check_hub_graph(graph)
    assert graph.n_edges == 120 + 10 * 9 // 2
    assert graph.of_item.sum() == 120
    assert mean_squared_error(graph.freeze(), POINTS) < 0.5 * star_error(POINTS)


def star_error(points: NDArray[np.float64]) -> float:
    radius = radii_of(points, "euclidean", np.random.RandomState(0))
    off = ~np.eye(len(points), dtype=bool)
    return float(((radius[:, None] + radius[None] - cdist(points, points))[off] ** 2).mean())


@pytest.mark.parametrize("n_hubs", [1, 10])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_rewiring(share: float, n_hubs: int) -> None:
    graph = grown(n_hubs=n_hubs)
    least = 120 + n_hubs - 1
    for n_edges in (least, least + 7, 240, 2000):
        made = rewire(graph, n_edges, share, 3, np.random.RandomState(1))
        assert made.n_edges <= n_edges
        check_hub_graph(made)
        assert np.bincount(made.tail, minlength=120)[:120].max() <= 3
        if n_edges < 200 and n_hubs > 1:  # there is more worth having than the budget allows
            assert made.n_edges == n_edges
    if share == 0:  # nobody chose anew
        kept = rewire(graph, 2000, share, 3, np.random.RandomState(1))
        mine = set(zip(graph.tail[graph.of_item].tolist(), graph.head[graph.of_item].tolist(), strict=True))
        assert mine == set(zip(kept.tail[kept.of_item].tolist(), kept.head[kept.of_item].tolist(), strict=True))


def test_rewiring_helps() -> None:
    """Items that choose again, with as many edges as before, fit better after as many passes."""
    graph = grown(12)
    again = rewire(graph, graph.n_edges, 1.0, 3, np.random.RandomState(0))
    blocks = np.arange(LANDMARKS.n_blocks, dtype=np.int32)
    for _ in range(12):
        graph.newton(blocks, rate=1.0)
        again.newton(blocks, rate=1.0)
    assert again.n_edges <= graph.n_edges
    assert again.error(blocks) < graph.error(blocks)


def test_chosen_hubs_are_worth_what_they_say() -> None:
    """Worth falls along the arcs of an item, and what is taken gets the weights of so many arcs."""
    graph = grown()
    items = np.arange(0, 120, 7, dtype=np.int32)
    attachments = Attachments.choose(graph, items, 4, np.random.RandomState(0))
    assert (attachments.arc == 0).sum() == items.size
    assert np.isinf(attachments.importance[attachments.arc == 0]).all()
    for row in range(items.size):
        importance = attachments.importance[attachments.row == row]
        assert (np.diff(importance) <= 0).all()
        assert (importance >= 0).all()
    n_target = np.arange(items.size) % 3 + 1
    taken = attachments.arc < n_target[attachments.row]
    tail, head, weight = attachments.take(taken)
    for row, item in enumerate(items):
        mine = tail == item
        count = int(mine.sum())
        assert count == min(n_target[row], (attachments.hubs[row] >= 0).sum())
        np.testing.assert_array_equal(head[mine], 120 + attachments.hubs[row, :count])
        np.testing.assert_array_equal(weight[mine], attachments.weights[row, count - 1, :count])


def test_hub_edges_are_proposed_where_paths_are_too_long() -> None:
    """Four hubs in a ring, a little too wide, whose opposite ones should be near: the diagonals are missing."""
    n = 40
    hub = np.arange(n) % 4
    between = np.array([[0, 4, 2, 4], [4, 0, 4, 3], [2, 4, 0, 4], [4, 3, 4, 0]], float)
    matrix = (between[hub[:, None], hub[None]] + 1.0) * (1 - np.eye(n))
    landmarks = Landmarks.draw(Space(matrix, "precomputed"), 4096, np.random.RandomState(0))
    tail = np.concatenate([np.arange(n), n + np.arange(4)]).astype(np.int32)
    head = np.concatenate([n + hub, n + (np.arange(4) + 1) % 4]).astype(np.int32)
    graph = HubGraph(landmarks, 4, tail, head, np.concatenate([np.full(n, 0.5), np.full(4, 4.1)]), 1)
    found = propose_hub_edges(graph, 5, np.random.RandomState(0))
    assert list(zip(found.tail - n, found.head - n, strict=True)) == [(0, 2), (1, 3)]
    np.testing.assert_allclose(found.weight, [2, 3], rtol=1e-4)
    # What the squared error of all ordered pairs would fall by: 100 pairs each way, 6.2 or 5.2 too long.
    np.testing.assert_allclose(found.importance, [2 * 100 * 6.2**2, 2 * 100 * 5.2**2], rtol=1e-4)
    assert propose_hub_edges(graph, 1, np.random.RandomState(0)).tail.size == 1
    added = HubGraph(
        landmarks, 4, np.append(tail, found.tail), np.append(head, found.head), np.append(graph.weight, found.weight), 1
    )
    across = (hub[:, None] - hub[None]) % 4 == 2
    np.testing.assert_allclose(added.freeze().distances()[across], matrix[across], atol=1e-4)
    assert propose_hub_edges(added, 5, np.random.RandomState(0)).tail.size == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=20))
def test_first_of_item(edges: list[tuple[int, int]]) -> None:
    tail, importance = np.array([a for a, _ in edges], np.int32), np.array([float(b) for _, b in edges])
    mask = first_of_item(tail, importance)
    for item in set(tail.tolist()):
        mine = np.flatnonzero(tail == item)
        assert mask[mine].sum() == 1
        assert importance[mine][mask[mine]][0] == importance[mine].max()


# -- the whole


@pytest.mark.parametrize("n_items", [20, 50, 300, 1000])
@pytest.mark.parametrize("numbers", [3.2, 4, 8])
def test_budget_is_met(n_items: int, numbers: float) -> None:
    landmarks = draw(clusters(n_items))
    monitor = Monitor(48 if n_items < 1000 else 24)
    graph = fit_hubs(landmarks, numbers, monitor=monitor, random_state=0, n_jobs=1)
    check_hub_graph(graph)
    frozen = graph.freeze()
    assert frozen.n_items == n_items
    assert frozen.numbers_per_item <= numbers
    assert frozen.numbers_per_item > 0.8 * numbers  # and made use of
    assert len(monitor.history) == monitor.n_steps
    assert monitor.stopped == "finished"


@pytest.mark.parametrize("n_hubs", [1, 3, 1000])
def test_number_of_hubs(n_hubs: int) -> None:
    graph = fit_hubs(LANDMARKS, 4, n_hubs, Monitor(24), random_state=0, n_jobs=1)
    assert graph.n_hubs == min(n_hubs, most_hubs(120, 4))
    assert (3 if n_hubs == 1 else 3.95) < graph.freeze().numbers_per_item <= 4
    check_hub_graph(graph)


def test_seeds_and_threads() -> None:
    points = clusters(400)

    def fit(seed: Any, n_jobs: int) -> Graph:
        return fit_hubs(draw(points), 4, monitor=Monitor(36), random_state=seed, n_jobs=n_jobs).freeze()

    first = fit(3, 1)
    for again in (fit(3, 1), fit(3, 2), fit(np.random.RandomState(3), 1)):
        assert [part.tobytes() for part in again.edges] == [part.tobytes() for part in first.edges]
    assert fit(4, 1) != first


def test_clusters_are_fitted_better_than_by_a_star() -> None:
    """And the better the more numbers there are."""
    errors = [
        mean_squared_error(fit_hubs(LANDMARKS, numbers, random_state=0, n_jobs=1).freeze(), POINTS)
        for numbers in (3.2, 4, 8)
    ]
    star = star_error(POINTS)
    assert 0.5 * star > errors[0] > errors[1] > errors[2]
    assert errors[1] < 0.06 * star


def test_history_is_that_of_the_run() -> None:
    monitor = Monitor(N_STEPS)
    graph = fit_hubs(LANDMARKS, 4, monitor=monitor, random_state=0, n_jobs=1)
    n_edges = [record.n_edges or 0 for record in monitor.history]
    assert n_edges[-1] == graph.n_edges
    assert n_edges[-1] < max(n_edges)  # from more to fewer
    assert monitor.history[-1].numbers_per_item == graph.numbers_per_item
    assert monitor.history[-1].loss == pytest.approx(mean_squared_error(graph.freeze(), POINTS), rel=0.2)
    assert monitor.history[-1].loss < monitor.history[0].loss


def test_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves on by a second whenever it is looked at."""
    ticks = itertools.count()
    monkeypatch.setattr("prodige.progress.time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    for max_time, n_steps in ((1e-6, range(1)), (30, range(8, 16)), (150, range(36, 76))):
        monitor = Monitor(N_STEPS, max_time)
        graph = fit_hubs(LANDMARKS, 4, monitor=monitor, random_state=0, n_jobs=1)
        assert len(monitor.history) in n_steps  # two looks a step, and some to choose hubs
        # A round of choosing hubs looks at the clock several times.
        assert all(record.seconds <= max_time + 20 for record in monitor.history)
        assert monitor.stopped == "finished"
        assert 3.5 < graph.freeze().numbers_per_item <= 4
        check_hub_graph(graph)


@pytest.mark.parametrize("step", [0, 12, 13, 100])
@pytest.mark.parametrize("how", ["callback", "interrupt"])
def test_early_ends_leave_a_graph_within_the_budget(step: int, how: str) -> None:
    def stop(record: Record) -> bool:
        if record.step == step and how == "interrupt":
            raise KeyboardInterrupt
        return record.step == step

    monitor = Monitor(N_STEPS, callbacks=[stop])
    graph = fit_hubs(LANDMARKS, 4, monitor=monitor, random_state=0, n_jobs=1)
    assert monitor.stopped == how
    assert len(monitor.history) == step + 1
    assert 3.5 < graph.freeze().numbers_per_item <= 4
    check_hub_graph(graph)
    assert mean_squared_error(graph.freeze(), POINTS) < star_error(POINTS)


def test_errors_of_callbacks_are_not_swallowed() -> None:
    def fail(record: Record) -> None:
        raise RuntimeError("of the callback")

    with pytest.raises(RuntimeError, match="of the callback"):
        fit_hubs(LANDMARKS, 4, monitor=Monitor(5, callbacks=[fail]), random_state=0, n_jobs=1)


def test_items_in_one_place() -> None:
    graph = fit_hubs(draw(np.ones((30, 2))), 4, monitor=Monitor(24), random_state=0, n_jobs=1).freeze()
    np.testing.assert_allclose(graph.distances(), 0, atol=1e-3)
