"""Graphs of users and items: the whole keeps its promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from prodige import Graph
from prodige.learning.adam import Weights
from prodige.metric.candidates import Candidates
from prodige.progress import Monitor, Record
from prodige.recommendation.interactions import check_interactions
from prodige.recommendation.paper.candidates import CandidateEdges, join
from prodige.recommendation.paper.fit import RankingFit, edges_allowed, fit_ranking
from prodige.recommendation.paper.softmax import softmax_loss
from prodige.recommendation.ranking import evaluate_ranking, split_leave_one_out
from tastes import VARIANTS, components, tastes


def same(one: Graph, other: Graph) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.edges, other.edges, strict=True))


def check_graph(graph: Graph, joined: Candidates, numbers_per_item: float) -> None:
    """The edges are candidates, as many as fit in, and connect as much."""
    n = joined.n_vertices
    assert graph.n_items == graph.n_vertices == n
    assert graph.numbers_per_item <= numbers_per_item + 1e-9
    edges = graph.edges
    assert np.isfinite(edges.weight).all()
    assert np.isin(edges.i.astype(np.int64) * n + edges.j, joined.i.astype(np.int64) * n + joined.j).all()
    assert np.array_equal(components(edges.i, edges.j, n), components(joined.i, joined.j, n))


def run_of(edges: CandidateEdges = "bipartite", numbers_per_item: float = 5, seed: int = 0) -> RankingFit:
    interacted, random = check_interactions(tastes()), np.random.RandomState(seed)
    joined = join(interacted, edges, random)
    return RankingFit(interacted, joined, edges_allowed(numbers_per_item, joined), random, 1)


class ByDistance:
    """The nearest items are the best."""

    def __init__(self, graph: Graph, n_users: int) -> None:
        self.graph, self.n_users = graph, n_users

    def scores(self, users: NDArray[np.int64], items: None = None, /) -> NDArray[np.float32]:
        return -self.graph.distances(users, np.arange(self.n_users, self.graph.n_items))


# -- one step after the other ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", VARIANTS)
def test_no_way_leads_through_a_user_that_hangs(edges: CandidateEdges) -> None:
    run = run_of(edges, numbers_per_item=7)
    for step in range(4):
        run.step(step / 4)
    graph = run.finish()
    backbone, anchors = run.backbone, run.anchors
    assert anchors is not None
    assert np.bincount(anchors.users).max() > 1
    bare = Graph.from_edges(backbone.tail, backbone.head, backbone.weight, n_vertices=backbone.members.size)
    within = bare.distances()
    np.testing.assert_allclose(graph.distances(backbone.members, backbone.members), within, rtol=1e-4, atol=1e-4)
    for user in np.unique(anchors.users)[::9]:
        mine = anchors.users == user
        expected = (anchors.weight[mine, None] + within[anchors.members[mine]]).min(axis=0)
        np.testing.assert_allclose(graph.distances([user], backbone.members)[0], expected, rtol=1e-4, atol=1e-4)


def test_a_positive_does_not_count_for_its_own_edge() -> None:
    run = run_of("bipartite")
    for step in range(3):
        run.step(step / 4)
    anchors, first = run.anchors, run.backbone.n_connectors
    assert anchors is not None
    target = anchors.target.tocoo()
    joined_to = set(zip(anchors.members.tolist(), (anchors.members - first).tolist(), strict=True))
    for source, item in zip(target.row.tolist(), target.col.tolist(), strict=True):
        if source >= first:  # of users that hang on an item, the item itself is wanted by none
            assert (source, item) not in joined_to
        else:
            edge = (run.backbone.tail == source) & (run.backbone.head == first + item)
            assert not edge.any()


def test_start_is_calibrated() -> None:
    run = run_of("bipartite")
    run._choose(most=1, judge=False)
    assert run.anchors is not None

    def loss() -> float:
        assert run.anchors is not None
        distance = run.engine.distances(np.arange(run.backbone.members.size, dtype=np.int32), run.backbone.items, 1)
        return softmax_loss(np.minimum(distance, 1e3), run.anchors.target)[0]

    run.backbone = replace(run.backbone, weights=Weights.of(20 * run.backbone.weight))
    before = loss()
    run._calibrate()
    assert loss() < before - 1


# -- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", VARIANTS)
@pytest.mark.parametrize("numbers_per_item", [3, 4, 8])
def test_meets_the_budget_with_candidates_alone(edges: CandidateEdges, numbers_per_item: float) -> None:
    user_items = tastes()
    graph = fit_ranking(user_items, edges, numbers_per_item, monitor=Monitor(12), random_state=0)
    joined = join(check_interactions(user_items), edges, np.random.RandomState(0))
    check_graph(graph, joined, numbers_per_item)
    assert graph.n_edges == edges_allowed(numbers_per_item, joined)


@pytest.mark.parametrize(("edges", "least"), [("normal", 0.8), ("bipartite", 0.8), ("random", 0.7)])
def test_finds_what_users_met_next(edges: CandidateEdges, least: float) -> None:
    train, held_out = split_leave_one_out(tastes(400, 100), random_state=0)
    graph = fit_ranking(train, edges, 4, monitor=Monitor(40), random_state=0)
    report = evaluate_ranking(ByDistance(graph, 400), train, held_out, k=20)
    assert report.full.hit_ratio[20] > least  # a fifth of the items, of which a fifth suits a user


def test_loss_falls_and_is_recorded() -> None:
    seen: list[Record] = []
    monitor = Monitor(40, callbacks=[seen.append])
    graph = fit_ranking(tastes(400, 100), "bipartite", 8, monitor=monitor, random_state=0)
    losses = [record.loss for record in monitor.history]
    assert len(losses) == 40
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.05
    assert (seen[-1].n_edges or 0) <= graph.n_edges
    assert (seen[0].numbers_per_item or 0) > (seen[-1].numbers_per_item or 0)


@pytest.mark.parametrize("edges", VARIANTS)
def test_seeds_and_threads(edges: CandidateEdges) -> None:
    one, two, three = (
        fit_ranking(tastes(), edges, 4, monitor=Monitor(8), random_state=seed, n_jobs=n_jobs)
        for seed, n_jobs in ((1, 1), (1, 2), (2, 1))
    )
    assert same(one, two)
    assert not same(one, three)


def test_values_of_interactions_do_not_matter() -> None:
    user_items = tastes()
    graphs = [fit_ranking(user_items * factor, "normal", 4, monitor=Monitor(4), random_state=0) for factor in (1, 7)]
    assert same(*graphs)
    assert user_items.max() == 1  # and the input is left as it is


@pytest.mark.parametrize("last", [0, 5, 19])
def test_interrupt_returns_a_graph(last: int) -> None:
    def interrupt(record: Record) -> None:
        if record.step == last:
            raise KeyboardInterrupt

    monitor = Monitor(20, callbacks=[interrupt])
    graph = fit_ranking(tastes(), "bipartite", 4, monitor=monitor, random_state=0)
    assert monitor.stopped == "interrupt"
    assert len(monitor.history) == last + 1
    check_graph(graph, join(check_interactions(tastes()), "bipartite", np.random.RandomState(0)), 4)


def test_callbacks_end_a_run() -> None:
    monitor = Monitor(20, callbacks=[lambda record: record.step == 2])
    graph = fit_ranking(tastes(), "normal", 4, monitor=monitor, random_state=0)
    assert monitor.stopped == "callback"
    assert len(monitor.history) == 3
    assert graph.numbers_per_item == 4


@pytest.mark.parametrize("max_time", [1e-9, 0.5])
def test_time_limit(max_time: float) -> None:
    graph = fit_ranking(tastes(), "normal", 4, monitor=Monitor(10**6, max_time=max_time), random_state=0)
    # Where there is no time to judge what they may hang on, users take one anchor, and not all edges are used.
    assert 3 <= graph.numbers_per_item <= 4
    assert np.isfinite(graph.distances()).all()


@pytest.mark.parametrize("edges", VARIANTS)
def test_users_and_items_without_interactions(edges: CandidateEdges) -> None:
    user_items = tastes().tolil()
    user_items[[3, 199]] = 0
    user_items[:, [0, 50]] = 0
    graph = fit_ranking(user_items, edges, 5, monitor=Monitor(8), random_state=0)
    joined = join(check_interactions(user_items), edges, np.random.RandomState(0))
    check_graph(graph, joined, 5)
    distances = graph.distances([3], [201, 250])
    assert np.isfinite(distances).all() if edges == "random" else np.isinf(distances).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.sampled_from(VARIANTS), st.integers(0, 100), st.floats(0, 4))
def test_small_data(n_users: int, n_items: int, edges: CandidateEdges, seed: int, extra: float) -> None:
    dense = np.random.default_rng(seed).random((n_users, n_items)) < 0.5
    dense[0, 0] = True
    joined = join(check_interactions(dense), edges, np.random.RandomState(seed))
    budget = 3 + extra
    check_graph(fit_ranking(dense, edges, budget, monitor=Monitor(4), random_state=seed), joined, budget)


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="edges must be one of 'normal', 'bipartite', 'random', got 'hubs'"):
        fit_ranking(tastes(), "hubs")  # type: ignore[arg-type]
    for budget in (1, 2.9, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"numbers_per_item must be .*, got {budget}: .* give at least 2.99"):
            fit_ranking(tastes(), "normal", budget)
    with pytest.raises(ValueError, match="no interaction"):
        fit_ranking(np.zeros((3, 4)))
