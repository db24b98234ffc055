"""The paper's way: the estimator is right where it claims to be, and the graph keeps its promises for any data."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist

from clusters import clusters
from prodige import Graph
from prodige.compression.paper import l0
from prodige.compression.paper.l0 import edges_allowed, fit_l0
from prodige.metric.evaluation import mean_squared_error
from prodige.metric.space import Space
from prodige.progress import Record

FIELDS = {"step", "progress", "loss", "n_edges", "numbers_per_item", "lambda_", "seconds"}


def same(one: Graph, other: Graph) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.edges, other.edges, strict=True))


def check_graph(graph: Graph, n_items: int, numbers_per_item: float) -> None:
    assert graph.n_items == graph.n_vertices == n_items
    assert graph.is_connected
    assert graph.numbers_per_item <= numbers_per_item
    assert np.isfinite(graph.edges.weight).all()


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
    seen: list[Record] = []
    result = fit_l0(Space(clusters(100)), 4, random_state=0, n_steps=40, callbacks=[seen.append])
    assert [record.step for record in result.history] == list(range(40))
    assert all(set(record.known()) == FIELDS for record in result.history)
    assert [record.n_edges for record in seen] == [record.n_edges for record in result.history]
    assert (result.history[0].n_edges or 0) > 3 * (result.history[-1].n_edges or 0)
    assert result.history[-1].n_edges == result.graph.n_edges
    assert result.history[-1].numbers_per_item == result.graph.numbers_per_item
    assert result.history[0].lambda_ == 0 < (result.history[20].lambda_ or 0)


def test_probabilities_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space(clusters())
    learned = mean_squared_error(fit_l0(space, 4, random_state=0, n_steps=60).graph, space)
    monkeypatch.setattr(l0, "_RATE", 1e-9)  # the price alone decides
    blind = mean_squared_error(fit_l0(space, 4, random_state=0, n_steps=60).graph, space)
    assert learned < 0.7 * blind


@pytest.mark.repeatable
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "cityblock"])
def test_same_graph_for_any_number_of_threads(metric: str) -> None:
    """Also for those of torch and BLAS, which start from fit_l0 as many as they had before."""
    space = Space(clusters(800), metric)
    results = [fit_l0(space, 4, random_state=5, n_steps=15, n_jobs=n_jobs) for n_jobs in (1, 3)]
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        results.append(fit_l0(space, 4, random_state=5, n_steps=15, n_jobs=2))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert same(results[0].graph, other.graph)
        assert results[0].lambda_ == other.lambda_
        assert [r.loss for r in results[0].history] == [r.loss for r in other.history]
    assert not same(results[0].graph, fit_l0(space, 4, random_state=6, n_steps=15, n_jobs=1).graph)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_steps": 0}, ValueError, "n_steps"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"max_time": float("nan")}, ValueError, "max_time must be a finite number"),
        ({"max_time": "long"}, TypeError, "max_time must be a number, got 'long'"),
    ],
)
def test_bad_calls(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fit_l0(Space(clusters(20)), 4, **options)


def test_no_callbacks_are_none() -> None:
    assert fit_l0(Space(clusters(20)), 4, n_steps=2, callbacks=None, random_state=0).stopped == "finished"


@pytest.mark.repeatable
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
    def interrupt(record: Record) -> None:
        if record.step == last:
            raise KeyboardInterrupt

    result = fit_l0(Space(clusters()), 4, random_state=0, n_steps=40, callbacks=[interrupt])
    assert result.interrupted
    assert len(result.history) == last + 1
    assert set(result.history[-1].known()) == FIELDS
    check_graph(result.graph, 200, 4)
    assert result.graph.numbers_per_item == 4


def test_callbacks_end_a_run() -> None:
    result = fit_l0(Space(clusters(50)), 4, n_steps=40, callbacks=[lambda record: record.step == 3])
    assert result.stopped == "callback"
    assert len(result.history) == 4
    check_graph(result.graph, 50, 4)


def test_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves on by a second whenever it is looked at."""
    ticks = itertools.count()
    monkeypatch.setattr("prodige.progress.time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    for max_time, n_steps in ((1e-6, range(1)), (30, range(10, 16)), (60, range(25, 31))):
        result = fit_l0(Space(clusters()), 4, random_state=0, max_time=max_time)
        check_graph(result.graph, 200, 4)
        assert result.graph.n_edges == edges_allowed(4, 200)
        assert len(result.history) in n_steps  # two looks a step
        assert all(record.seconds <= max_time + 1 for record in result.history)


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


@pytest.mark.parametrize("n_items", [2, 3, 10])
def test_refuses_more_random_items_than_there_are(n_items: int) -> None:
    with pytest.raises(ValueError, match="n_random must be between 1 and"):
        fit_l0(Space(clusters(n_items)), 3, n_random=n_items + 1)
