"""The paper's way: the estimator is right where it claims to be, and the graph keeps its promises for any data."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist
from scipy.special import expit

from prodige import Graph, l0fit
from prodige.evaluation import mean_squared_error
from prodige.l0fit import (
    Start,
    choose_n_random,
    edges_allowed,
    estimate_worth,
    find_price,
    fit_l0,
    join,
    most_random,
    relative_variance,
)
from prodige.pace import Status
from prodige.space import Space

FIELDS = {"step", "progress", "loss", "n_edges", "numbers_per_item", "lambda_", "seconds"}


def clusters(n_items: int = 200, n_features: int = 10, n_clusters: int = 5, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_clusters, n_features)) * 3
    points: NDArray[np.float64] = centres[np.arange(n_items) % n_clusters] + rng.normal(size=(n_items, n_features))
    return points


def same(one: Graph, other: Graph) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.edges, other.edges, strict=True))


def check_graph(graph: Graph, n_items: int, numbers_per_item: float) -> None:
    assert graph.n_items == graph.n_vertices == n_items
    assert graph.is_connected
    assert graph.numbers_per_item <= numbers_per_item
    assert np.isfinite(graph.edges.weight).all()


# -- the estimator ---------------------------------------------------------------------------------------------------

# Items 0 and 1 are the pool; 2, 3 and 4 hang on both. Edge 0 is the one within the pool.
TAIL = np.array([0, 0, 0, 0, 1, 1, 1], dtype=np.int32)
HEAD = np.array([1, 2, 3, 4, 2, 3, 4], dtype=np.int32)
WEIGHT = np.array([0.2, 0.5, 0.7, 0.6, 0.4, 0.9, 0.8])
WANTED = cdist(*[np.random.default_rng(0).normal(size=(5, 2))] * 2)
IN_POOL = np.arange(5) < 2


def losses_of(present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean squared error of each item's distances in one graph."""
    graph = Graph.from_edges(TAIL[present], HEAD[present], WEIGHT[present], n_vertices=5)
    distances = graph.distances().astype(np.float64)
    error = (np.where(np.isinf(distances), 2.0, distances) - WANTED) ** 2
    return np.asarray(error.sum(axis=1) / 4)


def expectations(p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Exact -dR/dp of every edge, and the expectation of its estimate from two graphs, both by enumeration."""
    graphs = np.array(list(itertools.product([False, True], repeat=p.size)))
    chance = np.where(graphs, p, 1 - p).prod(axis=1)
    graphs, chance = graphs[chance > 1e-5], chance[chance > 1e-5]
    losses = np.array([losses_of(present) for present in graphs])
    exact = np.array(
        [-np.sum(chance * losses.mean(axis=1) * np.where(b, 1 / p[e], -1 / (1 - p[e]))) for e, b in enumerate(graphs.T)]
    )
    estimate = sum(
        chance[one]
        * chance[other]
        * estimate_worth(losses[[one, other]], graphs[[one, other]], TAIL, HEAD, p.astype(np.float32), IN_POOL)
        for one, other in itertools.product(range(len(graphs)), repeat=2)
    )
    return exact, np.asarray(estimate)


def test_edges_of_items_get_the_exact_gradient() -> None:
    p = np.array([1 - 1e-6, 0.5, 0.6, 0.7, 0.6, 0.5, 0.8])  # a pool in one piece, so that no item is on others' ways
    exact, estimate = expectations(p)
    np.testing.assert_allclose(estimate[1:], exact[1:], rtol=1e-3, atol=1e-4)
    assert np.ptp(exact[1:]) > 0.1


def test_edges_of_the_pool_get_the_exact_gradient() -> None:
    exact, estimate = expectations(np.array([0.6, 0.5, 0.6, 1 - 1e-6, 0.6, 0.5, 1 - 1e-6]))
    np.testing.assert_allclose(estimate[0], exact[0], rtol=1e-3)
    assert abs(exact[0]) > 0.01


@given(
    st.lists(st.floats(-4, 4), min_size=1, max_size=20),
    st.floats(0.01, 0.99),
    st.lists(st.floats(0.1, 10), min_size=20, max_size=20),
)
def test_the_price_meets_the_target(logits: list[float], share: float, rates: list[float]) -> None:
    theta, speed = np.array(logits, dtype=np.float32), np.array(rates[: len(logits)], dtype=np.float32)
    target = share * len(logits)
    price = find_price(theta, speed, target)
    expected = expit(theta - speed * np.float32(price)).sum()
    if expit(theta).sum() <= target:
        assert price == 0
    else:
        assert price > 0
        assert abs(expected - target) < 0.01 * len(logits)


# -- the start -------------------------------------------------------------------------------------------------------


def test_the_start_reproduces_groups() -> None:
    # All items of a group are alike: 2 + 0.5 + 2 from those of another group, 2 + 2 from each other.
    group = np.arange(200) % 4
    matrix = np.where(group[:, None] == group, 4.0, 4.5) * (1 - np.eye(200))
    space, pool = Space(matrix, metric="precomputed"), np.arange(4)
    start = Start.of(space, pool, np.random.RandomState(0))
    weight = start.weight[4:] * start.scale
    np.testing.assert_allclose(weight[group[4:, None] == np.arange(4)], 2.0, atol=0.05)
    np.testing.assert_allclose(weight[group[4:, None] != np.arange(4)], 2.5, atol=0.05)
    edges = join(space, pool, start, n_neighbors=0, n_jobs=1)
    assert edges.size == 196 * 4 + 6
    np.testing.assert_allclose(edges.weight[edges.head == 199], start.weight[199], rtol=1e-5)


def test_candidates_are_unique() -> None:
    space, pool = Space(clusters(60)), np.array([3, 7, 20])
    edges = join(space, pool, Start.of(space, pool, np.random.RandomState(0)), n_neighbors=5, n_jobs=1)
    assert (edges.tail < edges.head).all()
    assert np.unique(edges.tail * 60 + edges.head).size == edges.size
    degree = np.bincount(np.concatenate([edges.tail, edges.head]), minlength=60)
    assert (degree[pool] == 59).all()
    assert (degree >= 7).all()


@pytest.mark.parametrize("n_items", [2, 3, 10, 1000])
@pytest.mark.parametrize("variance", [0.0, 1e-4, 0.1, 10.0])
def test_size_of_the_pool(n_items: int, variance: float) -> None:
    least, most = n_items - 1, n_items * (n_items - 1) // 2
    n_random = choose_n_random(n_items, least, variance)
    assert 1 <= n_random <= most_random(n_items, least)
    assert n_random * (n_random - 1) / 2 <= least
    assert choose_n_random(n_items, most, variance) == most_random(n_items, most) == n_items
    with pytest.raises(ValueError, match="n_random must be between 1 and"):
        fit_l0(Space(clusters(n_items)), 3, n_random=n_items + 1)


def test_relative_variance() -> None:
    distances = pdist(clusters(50))
    found = relative_variance(Space(clusters(50)), np.random.RandomState(0))
    assert found == pytest.approx(distances.var() / distances.mean() ** 2, rel=1e-4)
    assert relative_variance(Space(np.zeros((5, 2))), np.random.RandomState(0)) == 0


# -- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers_per_item", [2.99, 4, 8])
def test_meets_the_budget_exactly(numbers_per_item: float) -> None:
    points = clusters()
    result = fit_l0(Space(points), numbers_per_item, random_state=0, n_steps=50)
    check_graph(result.graph, 200, numbers_per_item)
    assert result.graph.n_edges == edges_allowed(numbers_per_item, 200)
    assert result.lambda_ > 0
    assert result.stopped == "finished"
    assert not result.interrupted
    if numbers_per_item > 3:  # a bare tree takes more steps to become good
        assert mean_squared_error(result.graph, Space(points)) < pdist(points).var() / 5


def test_history() -> None:
    seen: list[Status] = []
    result = fit_l0(Space(clusters(100)), 4, random_state=0, n_steps=40, callbacks=[seen.append])
    assert [record["step"] for record in result.history] == list(range(40))
    assert all(set(record) == FIELDS for record in result.history)
    assert [status.n_edges for status in seen] == [record["n_edges"] for record in result.history]
    assert result.history[0]["n_edges"] > 3 * result.history[-1]["n_edges"]
    assert result.history[-1]["n_edges"] == result.graph.n_edges
    assert result.history[-1]["numbers_per_item"] == result.graph.numbers_per_item
    assert result.history[0]["lambda_"] == 0 < result.history[20]["lambda_"]


def test_probabilities_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space(clusters())
    learned = mean_squared_error(fit_l0(space, 4, random_state=0, n_steps=60).graph, space)
    monkeypatch.setattr(l0fit, "_RATE", 1e-9)  # the price alone decides
    blind = mean_squared_error(fit_l0(space, 4, random_state=0, n_steps=60).graph, space)
    assert learned < 0.7 * blind


def test_lambda_does_not_depend_on_the_number_of_threads_nor_on_the_unit() -> None:
    points = clusters(150)
    one, two = (fit_l0(Space(points), 4, random_state=5, n_steps=20, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert same(one.graph, two.graph)
    assert one.lambda_ == two.lambda_
    far = fit_l0(Space(1024 * points), 4, random_state=5, n_steps=20)
    assert far.lambda_ == pytest.approx(1024**2 * one.lambda_, rel=1e-3)
    np.testing.assert_allclose(far.graph.edges.weight.mean(), 1024 * one.graph.edges.weight.mean(), rtol=1e-3)


def test_seeds() -> None:
    space = Space(clusters(100))
    graphs = [fit_l0(space, 4, random_state=seed, n_steps=15).graph for seed in (1, 1, 2)]
    assert same(graphs[0], graphs[1])
    assert not same(graphs[0], graphs[2])


@pytest.mark.parametrize("last", [0, 12, 35])
def test_interrupt_returns_a_graph(last: int) -> None:
    def interrupt(status: Status) -> None:
        if status.step == last:
            raise KeyboardInterrupt

    result = fit_l0(Space(clusters()), 4, random_state=0, n_steps=40, callbacks=[interrupt])
    assert result.interrupted
    assert len(result.history) == last + 1
    assert set(result.history[-1]) == FIELDS
    check_graph(result.graph, 200, 4)
    assert result.graph.numbers_per_item == 4


def test_callbacks_end_a_run() -> None:
    result = fit_l0(Space(clusters(50)), 4, n_steps=40, callbacks=[lambda status: status.step == 3])
    assert result.stopped == "callback"
    assert len(result.history) == 4
    check_graph(result.graph, 50, 4)


@pytest.mark.parametrize("max_time", [1e-9, 0.5])
def test_time_limit(max_time: float) -> None:
    result = fit_l0(Space(clusters()), 4, random_state=0, max_time=max_time)
    check_graph(result.graph, 200, 4)
    assert all(record["seconds"] < 5 for record in result.history)


def test_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    fit_l0(Space(clusters(50)), 4, n_steps=3, verbose=1)
    assert "100%" in capsys.readouterr().err


@pytest.mark.parametrize("numbers_per_item", [1, 2.9, float("nan"), float("inf")])
def test_refuses_a_budget_that_connects_nothing(numbers_per_item: float) -> None:
    with pytest.raises(ValueError, match=f"numbers_per_item must be .*, got {numbers_per_item}: .* give at least 2.96"):
        fit_l0(Space(clusters(50)), numbers_per_item)


def test_refuses_a_single_item() -> None:
    with pytest.raises(ValueError, match="2 items or more, got 1"):
        fit_l0(Space([[0.0]]), 4)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), st.floats(0, 6), st.integers(0, 3), st.integers(0, 4))
def test_small_data(n_items: int, extra: float, n_places: int, n_neighbors: int) -> None:
    points = np.random.default_rng(n_items).normal(size=(n_items, 2))
    if n_places:
        points = points[np.arange(n_items) % n_places]  # some items, or all, are in the same place
    budget = 3 - 2 / n_items + extra
    result = fit_l0(Space(points), budget, random_state=0, n_steps=5, n_neighbors=n_neighbors)
    check_graph(result.graph, n_items, budget + 1e-9)


def test_all_candidates_fit() -> None:
    result = fit_l0(Space(clusters(30)), 100, random_state=0, n_steps=20)
    check_graph(result.graph, 30, 100)
    assert result.lambda_ == 0
    assert result.graph.n_edges == 30 * 29 / 2
    np.testing.assert_allclose(result.graph.distances(), cdist(clusters(30), clusters(30)), rtol=1e-2, atol=1e-4)


def manhattan(a: Any, b: Any) -> float:
    return float(np.abs(a - b).sum())


@pytest.mark.parametrize(
    ("X", "metric"),
    [
        (cdist(clusters(60), clusters(60)), "precomputed"),
        (clusters(60), "cosine"),
        (clusters(60), manhattan),
        (scipy.sparse.csr_array(np.maximum(clusters(60), 0)), "euclidean"),
        (clusters(60).astype(np.float32), "cityblock"),
    ],
)
def test_any_space(X: Any, metric: Any) -> None:
    check_graph(fit_l0(Space(X, metric), 4, random_state=0, n_steps=10).graph, 60, 4)
