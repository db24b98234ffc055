"""Graphs while they are fitted: stress and worth against sums over all pairs, and passes that lower the error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from prodige import Graph
from prodige.compression.fitting import Blocks, FittedGraph
from prodige.compression.hubs import HubGraph
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space

N_ITEMS, N_HUBS = 40, 6


def make_landmarks(n_items: int = N_ITEMS, seed: int = 0) -> tuple[Landmarks, NDArray[np.float64]]:
    """All distances of some random points; each item is a landmark equally often."""
    points = np.random.default_rng(seed).normal(size=(n_items, 5))
    return Landmarks.draw(Space(points), 4096, np.random.RandomState(seed)), cdist(points, points)


def make_edges(most_arcs: int, seed: int = 0) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """Items on up to ``most_arcs`` hubs each, hubs in a ring; so far apart that no path leads over an item."""
    rng = np.random.default_rng(seed)
    ends = [
        (v, N_ITEMS + h)
        for v in range(N_ITEMS)
        for h in rng.choice(N_HUBS, int(rng.integers(1, most_arcs + 1)), replace=False)
    ]
    n_arcs = len(ends)
    ends += [(N_ITEMS + h, N_ITEMS + (h + 1) % N_HUBS) for h in range(N_HUBS)]
    weight = np.concatenate([rng.uniform(1.5, 2, n_arcs), rng.uniform(0.5, 1, N_HUBS)])
    tail, head = np.array(ends, np.int32).T
    return tail.copy(), head.copy(), weight.astype(np.float32)


def all_blocks(landmarks: Landmarks) -> NDArray[np.int32]:
    return np.arange(landmarks.n_blocks, dtype=np.int32)


def squared_error(graph: Graph, target: NDArray[np.float64]) -> float:
    """Over all ordered pairs."""
    return float(((graph.distances().astype(np.float64) - target) ** 2).sum())


@pytest.mark.parametrize("most_arcs", [1, 3])
def test_both_engines_measure_the_same(most_arcs: int) -> None:
    landmarks, target = make_landmarks()
    edges = make_edges(most_arcs)
    general, hubs = FittedGraph(landmarks, N_HUBS, *edges, n_jobs=1), HubGraph(landmarks, N_HUBS, *edges, n_jobs=1)
    assert general.engine.name == "general"
    assert hubs.engine.name == "hubs"
    blocks = all_blocks(landmarks)
    found, expected = hubs.stress(blocks), general.stress(blocks)
    often = landmarks.sources.size / N_ITEMS
    assert found.n_pairs == expected.n_pairs == often * N_ITEMS * (N_ITEMS - 1)
    assert found.loss == pytest.approx(often * squared_error(hubs.freeze(), target), rel=1e-5)
    assert expected.loss == pytest.approx(found.loss, rel=1e-5)
    assert hubs.error(blocks) == pytest.approx(found.loss / found.n_pairs, rel=1e-6)
    # Every pair is seen from both ends, but the hub engine charges the edges of items from one end only.
    ends = np.where(hubs.of_item, 2, 1)
    np.testing.assert_array_equal(expected.uses, ends * found.uses)
    np.testing.assert_allclose(expected.gradient, ends * found.gradient, atol=1e-2)


def test_stress_of_some_blocks() -> None:
    landmarks, target = make_landmarks()
    for kind in (FittedGraph, HubGraph):
        graph = kind(landmarks, N_HUBS, *make_edges(2), n_jobs=1)
        residual = graph.freeze().distances().astype(np.float64) - target
        for blocks in ([0], [3, 1]):
            columns = np.concatenate([landmarks.sources[16 * b : 16 * (b + 1)] for b in blocks])
            found = graph.stress(np.array(blocks, np.int32))
            assert found.loss == pytest.approx((residual[columns] ** 2).sum(), rel=1e-5)
            assert found.n_pairs == columns.size * (N_ITEMS - 1)


def test_worth_is_the_rise_of_the_error() -> None:
    """Of edges of items with a second one: search again without, over all ordered pairs."""
    landmarks, target = make_landmarks()
    tail, head, weight = make_edges(3)
    graph = HubGraph(landmarks, N_HUBS, tail, head, weight, n_jobs=1)
    graph.newton(all_blocks(landmarks), rate=0)
    importance = graph.importance()
    before = squared_error(graph.freeze(), target)
    several = np.flatnonzero((np.bincount(tail, minlength=46)[tail] > 1) & graph.of_item)
    assert several.size > 20
    for e in several:
        keep = np.arange(tail.size) != e
        less = HubGraph(landmarks, N_HUBS, tail[keep], head[keep], weight[keep], n_jobs=1)
        rise = squared_error(less.freeze(), target) - before
        assert importance[e] == pytest.approx(rise, abs=1e-5 * before)


@pytest.mark.parametrize("kind", [FittedGraph, HubGraph])
def test_useless_edges_are_worth_nothing(kind: type[FittedGraph]) -> None:
    """One edge so long that no path takes it, between hubs or from an item; every other is needed or helps."""
    landmarks, _ = make_landmarks()
    tail, head, weight = make_edges(1)
    free = N_ITEMS + (int(head[0]) - N_ITEMS + 1) % N_HUBS
    for a, b in ((N_ITEMS, N_ITEMS + 3), (0, free)):
        longer = (np.append(tail, a).astype(np.int32), np.append(head, b).astype(np.int32), np.append(weight, 60.0))
        graph = kind(landmarks, N_HUBS, *longer, n_jobs=1)
        for _ in range(3):
            graph.newton(all_blocks(landmarks), rate=0.1)
        importance = graph.importance()
        assert importance[-1] == 0
        assert (importance[:N_ITEMS] > 0).all()  # an item without its only edge would be far from everything
        assert graph.stress(all_blocks(landmarks)).uses[-1] == 0


@pytest.mark.parametrize("kind", [FittedGraph, HubGraph])
def test_newton_lowers_the_error(kind: type[FittedGraph]) -> None:
    landmarks, target = make_landmarks()
    graph = kind(landmarks, N_HUBS, *make_edges(2), n_jobs=1)
    blocks = all_blocks(landmarks)
    start = graph.error(blocks)
    assert graph.newton(blocks, rate=1.0) == pytest.approx(start)
    assert graph.error(blocks) < start
    for _ in range(40):
        graph.newton(blocks, rate=1.0)
    assert graph.error(blocks) < 0.5 * start
    assert (graph.weight >= 0).all()
    assert graph.weight.dtype == np.float32
    # The engine has the new weights too.
    n_pairs = N_ITEMS * (N_ITEMS - 1)
    assert graph.error(blocks) == pytest.approx(squared_error(graph.freeze(), target) / n_pairs, rel=1e-4)
    # A weight is at its optimum when the residuals of its pairs add up to nothing.
    stress = graph.stress(blocks)
    busy = (stress.uses > 0) & (graph.weight > 0)
    assert np.abs(stress.gradient[busy] / stress.uses[busy]).mean() < 0.05 * landmarks.scale


@pytest.mark.parametrize("kind", [FittedGraph, HubGraph])
def test_newton_recovers_a_star(kind: type[FittedGraph]) -> None:
    radius = np.random.default_rng(1).uniform(0.5, 2, 30)
    matrix = (radius[:, None] + radius[None]) * (1 - np.eye(30))
    landmarks = Landmarks.draw(Space(matrix, "precomputed"), 4096, np.random.RandomState(0))
    graph = kind(landmarks, 1, np.arange(30, dtype=np.int32), np.full(30, 30, np.int32), np.ones(30), n_jobs=1)
    for _ in range(200):
        graph.newton(all_blocks(landmarks), rate=1.0, memory=0.0)
    np.testing.assert_allclose(graph.weight, radius, atol=1e-3)


@pytest.mark.parametrize("kind", [FittedGraph, HubGraph])
def test_threads_do_not_change_bits(kind: type[FittedGraph]) -> None:
    landmarks, _ = make_landmarks(N_ITEMS)
    graphs_ = [kind(landmarks, N_HUBS, *make_edges(3), n_jobs=n_jobs) for n_jobs in (1, 2)]
    for graph in graphs_:
        for _ in range(5):
            graph.newton(all_blocks(landmarks), rate=1.0)
    assert graphs_[0].weight.tobytes() == graphs_[1].weight.tobytes()
    assert graphs_[0].importance().tobytes() == graphs_[1].importance().tobytes()


def test_freeze_leaves_out_hubs_without_edges() -> None:
    landmarks, _ = make_landmarks(5)
    tail, head = np.array([0, 1, 2, 3, 4, 6], np.int32), np.array([6, 6, 6, 8, 8, 8], np.int32)
    graph = FittedGraph(landmarks, 4, tail, head, np.arange(1, 7), n_jobs=1)
    assert graph.n_edges == 6
    assert graph.numbers_per_item == (9 + 12) / 5
    frozen = graph.freeze()
    assert (frozen.n_items, frozen.n_vertices, frozen.n_edges) == (5, 7, 6)
    np.testing.assert_array_equal(
        frozen.distances(), Graph.from_edges(tail, head, graph.weight, n_vertices=9, n_items=5).distances()
    )
    # An item without an edge stays, and is nowhere.
    lonely = FittedGraph(landmarks, 1, tail[:2], np.full(2, 5, np.int32), np.ones(2), n_jobs=1)
    assert lonely.freeze().n_vertices == 6
    assert not lonely.freeze().is_connected


@given(n_blocks=st.integers(1, 40), size=st.integers(1, 20), seed=st.integers(0, 99))
def test_blocks_take_turns(n_blocks: int, size: int, seed: int) -> None:
    blocks = Blocks(n_blocks, size, np.random.RandomState(seed))
    per_round = n_blocks // min(size, n_blocks)
    for _ in range(3):
        drawn = [blocks.draw() for _ in range(per_round)]
        assert all(batch.dtype == np.int32 and batch.size == min(size, n_blocks) for batch in drawn)
        together = np.concatenate(drawn)
        assert len(set(together.tolist())) == together.size  # none twice
        assert together.min() >= 0
        assert together.max() < n_blocks
