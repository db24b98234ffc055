"""Graphs of users and items: what is chosen is what enumeration chooses, and the whole keeps its promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.special import logsumexp
from sklearn.metrics.pairwise import cosine_similarity

from prodige import Graph, rankfit
from prodige.candidates import Candidates
from prodige.interactions import check_interactions
from prodige.pace import Pace, Status
from prodige.rankfit import (
    CandidateEdges,
    Run,
    Skeleton,
    allot,
    choose_skeleton,
    cosine_neighbors,
    edges_allowed,
    fit_ranking,
    join,
    rank_options,
    softmax_loss,
)
from prodige.ranking import evaluate_ranking, leave_one_out

VARIANTS: list[CandidateEdges] = ["normal", "bipartite", "random"]


def tastes(n_users: int = 200, n_items: int = 80, n_groups: int = 5, seed: int = 0) -> csr_array:
    """Users who meet a third of the items of their own group, and a few others."""
    rng = np.random.default_rng(seed)
    same = np.arange(n_users)[:, None] % n_groups == np.arange(n_items) % n_groups
    return csr_array((rng.random((n_users, n_items)) < np.where(same, 0.4, 0.02)).astype(np.float32))


def same(one: Graph, other: Graph) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.edges, other.edges, strict=True))


def components(i: Any, j: Any, n: int) -> NDArray[Any]:
    labels: NDArray[Any] = connected_components(csr_array((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)[1]
    return labels


def check_graph(graph: Graph, joined: Candidates, numbers_per_item: float) -> None:
    """The edges are candidates, as many as fit in, and connect as much."""
    n = joined.n_vertices
    assert graph.n_items == graph.n_vertices == n
    assert graph.numbers_per_item <= numbers_per_item + 1e-9
    edges = graph.edges
    assert np.isfinite(edges.weight).all()
    assert np.isin(edges.i.astype(np.int64) * n + edges.j, joined.i.astype(np.int64) * n + joined.j).all()
    assert np.array_equal(components(edges.i, edges.j, n), components(joined.i, joined.j, n))


def run_of(edges: CandidateEdges = "bipartite", numbers_per_item: float = 5, seed: int = 0) -> Run:
    met, random = check_interactions(tastes()), np.random.RandomState(seed)
    joined = join(met, edges, random)
    return Run(met, joined, edges_allowed(numbers_per_item, joined), random, 1)


class ByDistance:
    """The nearest items are the best."""

    def __init__(self, graph: Graph, n_users: int) -> None:
        self.graph, self.n_users = graph, n_users

    def scores(self, users: NDArray[np.int64], items: None = None, /) -> NDArray[np.float32]:
        return -self.graph.distances(users, np.arange(self.n_users, self.graph.n_items))


# -- candidates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 1 << 22])
def test_cosine_neighbors_are_those_of_scikit_learn(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rankfit, "_BLOCK", block)
    rows = tastes(60, 40)
    cosine = cosine_similarity(rows)
    np.fill_diagonal(cosine, 0)
    tail, head = cosine_neighbors(rows, 4)
    assert (tail != head).all()
    assert np.unique(tail * 60 + head).size == tail.size
    best = np.sort(cosine, axis=1)[:, -4:]
    assert np.array_equal(np.bincount(tail, minlength=60), (best > 0).sum(axis=1))
    for row in range(60):
        np.testing.assert_allclose(np.sort(cosine[row, head[tail == row]]), best[row][best[row] > 0], rtol=1e-5)


def test_candidates_of_the_variants() -> None:
    met = check_interactions(tastes(60, 40))
    pairs = met.tocoo()
    of_pairs = set(zip(pairs.row.tolist(), (60 + pairs.col).tolist(), strict=True))
    normal, bipartite, random = (join(met, edges, np.random.RandomState(0)) for edges in VARIANTS)
    assert set(zip(bipartite.i.tolist(), bipartite.j.tolist(), strict=True)) == of_pairs
    found = set(zip(normal.i.tolist(), normal.j.tolist(), strict=True))
    assert of_pairs < found
    assert all((i < 60) == (j < 60) for i, j in found - of_pairs)
    degree = np.bincount(np.concatenate([random.i, random.j]), minlength=100)
    assert 50 * 100 / 2 < random.n_edges <= 50 * 100
    assert degree.min() >= 30
    for joined in (normal, bipartite, random):
        assert joined.n_items == joined.n_vertices == 100
        assert (joined.weight > 0).all()


def test_weights_start_short_where_tastes_are_alike() -> None:
    joined = join(check_interactions(tastes()), "random", np.random.RandomState(0))
    group = np.concatenate([np.arange(200) % 5, np.arange(80) % 5])
    alike = group[joined.i] == group[joined.j]
    assert joined.weight[alike].mean() < 0.8 * joined.weight[~alike].mean()


# -- the skeleton ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", VARIANTS)
@pytest.mark.parametrize("n_edges", [1, 150, 10**6])
def test_skeleton_connects_the_items_and_what_hangs_on_it(edges: CandidateEdges, n_edges: int) -> None:
    joined = join(check_interactions(tastes()), edges, np.random.RandomState(0))
    inside, chosen = choose_skeleton(joined, 200, n_edges, np.random.RandomState(0))
    assert inside[200:].all()
    assert (inside[joined.i[chosen]] & inside[joined.j[chosen]]).all()
    whole = components(joined.i, joined.j, 280)
    within = components(joined.i[chosen], joined.j[chosen], 280)
    assert np.unique(whole[inside]).size == np.unique(within[inside]).size
    leads_in = inside[joined.i] != inside[joined.j]
    hanging = np.unique(np.where(inside[joined.i], joined.j, joined.i)[leads_in])
    has_edge = np.bincount(np.concatenate([joined.i, joined.j]), minlength=280) > 0
    assert np.array_equal(hanging, np.flatnonzero(has_edge & ~inside))


def small_skeleton() -> Skeleton:
    """Connectors 0, 1, 2 and items 3, 4, 5: a ring over 0, 3, 1, 4, with 2 at its end and 5 beside it."""
    tail, head = np.array([[0, 0, 1, 1, 2, 0], [3, 4, 3, 4, 3, 5]], dtype=np.int32)
    worth = np.array([0.5, 0.0, 0.4, 0.1, 0.0, 0.0])
    zeros = np.zeros(6, dtype=np.float32)
    return Skeleton(np.array([7, 8, 9, 20, 21, 22]), tail, head, zeros, zeros, zeros, worth)


def test_thinning_drops_what_is_worth_least_and_disconnects_nothing() -> None:
    skeleton = small_skeleton()
    assert skeleton.thin(6) is skeleton
    thinned = skeleton.thin(5)
    assert thinned.tail.tolist() == [0, 1, 1, 2, 0]
    assert skeleton.thin(0).n_edges == 5  # the tree


def test_users_at_an_end_are_released() -> None:
    released = small_skeleton().release(n_users=20)
    assert released.members.tolist() == [7, 8, 20, 21, 22]
    assert released.tail.tolist() == [0, 0, 1, 1, 0]
    assert released.head.tolist() == [2, 3, 2, 3, 4]
    chain = small_skeleton().keep(np.array([True, False, True, False, False, True])).release(20)
    assert chain.members.tolist() == [7, 9, 20, 21, 22]  # 8 hangs on item 20 now; 9 has no edge to give up


# -- anchors ---------------------------------------------------------------------------------------------------------


def loss_of(surprise: NDArray[Any], chosen: list[int]) -> float:
    """Mean surprise under the anchors taken, with weights log Z - log m."""
    holder = surprise[chosen].argmin(axis=0)
    share = np.bincount(holder, minlength=len(chosen)) / surprise.shape[1]
    return float(np.mean([surprise[chosen[h], t] - np.log(share[h]) for t, h in enumerate(holder)]))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 1000))
def test_options_are_ranked_as_enumeration_ranks_them(n_options: int, n_targets: int, seed: int) -> None:
    surprise = np.random.default_rng(seed).exponential(2, size=(n_options, n_targets)).astype(np.float32)
    padded = np.full((2, n_options + 1, n_targets + 1), np.inf, dtype=np.float32)
    padded[:, :n_options] = 0
    padded[:, :n_options, :n_targets] = surprise
    seen = np.tile(np.arange(n_targets + 1) < n_targets, (2, 1))
    picks, gains = rank_options(padded, seen, 3)
    assert np.array_equal(picks[0], picks[1])
    chosen: list[int] = []
    for turn in range(min(3, n_options)):
        losses = {k: loss_of(surprise, [*chosen, k]) for k in range(n_options) if k not in chosen}
        before = loss_of(surprise, chosen) if chosen else np.inf
        pick = int(picks[0, turn])
        assert losses[pick] == pytest.approx(min(losses.values()), abs=1e-5)
        assert gains[0, turn] == pytest.approx(before - losses[pick], abs=1e-5)
        chosen.append(pick)
    assert (gains[:, n_options:] == -np.inf).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 40), st.integers(0, 1000))
def test_edges_go_to_the_largest_gains_in_order(n_users: int, most: int, n_edges: int, seed: int) -> None:
    gains = np.random.default_rng(seed).normal(size=(n_users, most))
    gains[:, 0] = np.inf
    gains[0, 2:] = -np.inf
    taken = allot(gains, n_edges)
    assert taken[:, 0].all()
    assert (taken[:, 1:] <= taken[:, :-1]).all()
    assert not taken[0, 2:].any()
    assert taken.sum() == min(max(n_edges, n_users), np.isfinite(gains).sum() + n_users)


@pytest.mark.parametrize("edges", VARIANTS)
def test_options_are_judged_by_the_distances_of_the_skeleton(edges: CandidateEdges) -> None:
    run = run_of(edges)
    targets, seen = run._draw_positives()
    options = run._options(targets, seen, judge=True)
    skeleton = run.skeleton
    n, first = skeleton.members.size, run.n_connectors
    matrix = csr_array((skeleton.weight, (skeleton.tail, skeleton.head)), shape=(n, n))
    distance = dijkstra(matrix, directed=False)[:, first:]
    log_p = -distance - logsumexp(-distance, axis=1)[:, None]
    for row in range(0, options.users.size, 7):
        met = set(run.met.indices[run.met.indptr[options.users[row]] : run.met.indptr[options.users[row] + 1]].tolist())
        items = options.targets[row][options.seen[row]]
        assert set(items.tolist()) <= met
        for anchor, surprise in zip(options.anchors[row], options.surprise[row], strict=True):
            if anchor < 0:
                assert np.isinf(surprise).all()
                continue
            expected = -log_p[anchor, items]
            own = items == anchor - first
            if own.any():
                expected[own] = expected[~own].mean() if (~own).any() else 0
            np.testing.assert_allclose(surprise[options.seen[row]], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("edges", VARIANTS)
def test_no_way_leads_through_a_user_that_hangs(edges: CandidateEdges) -> None:
    run = run_of(edges, numbers_per_item=7)
    for step in range(4):
        run.step(step / 4)
    graph = run.finish()
    skeleton, anchors = run.skeleton, run.anchors
    assert anchors is not None
    assert np.bincount(anchors.users).max() > 1
    bare = Graph.from_edges(skeleton.tail, skeleton.head, skeleton.weight, n_vertices=skeleton.members.size)
    within = bare.distances()
    np.testing.assert_allclose(graph.distances(skeleton.members, skeleton.members), within, rtol=1e-4, atol=1e-4)
    for user in np.unique(anchors.users)[::9]:
        mine = anchors.users == user
        expected = (anchors.weight[mine, None] + within[anchors.members[mine]]).min(axis=0)
        np.testing.assert_allclose(graph.distances([user], skeleton.members)[0], expected, rtol=1e-4, atol=1e-4)


def test_a_positive_does_not_count_for_its_own_edge() -> None:
    run = run_of("bipartite")
    for step in range(3):
        run.step(step / 4)
    anchors, first = run.anchors, run.n_connectors
    assert anchors is not None
    wanted = anchors.wanted.tocoo()
    joined_to = set(zip(anchors.members.tolist(), (anchors.members - first).tolist(), strict=True))
    for source, item in zip(wanted.row.tolist(), wanted.col.tolist(), strict=True):
        if source >= first:  # of users that hang on an item, the item itself is wanted by none
            assert (source, item) not in joined_to
        else:
            edge = (run.skeleton.tail == source) & (run.skeleton.head == first + item)
            assert not edge.any()


# -- the loss --------------------------------------------------------------------------------------------------------


def test_gradient_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    distance: NDArray[Any] = rng.exponential(2, size=(3, 6))
    wanted = csr_array(rng.random((3, 6)) * (rng.random((3, 6)) < 0.5))
    share = wanted.toarray() / wanted.sum()
    expected = (share * (distance + logsumexp(-distance, axis=1)[:, None])).sum()
    loss, gradient = softmax_loss(distance, wanted)
    assert loss == pytest.approx(expected, rel=1e-5)
    for place in np.ndindex(3, 6):
        moved = distance.copy()
        moved[place] += 1e-3
        back = distance.copy()
        back[place] -= 1e-3
        numeric = (softmax_loss(moved, wanted)[0] - softmax_loss(back, wanted)[0]) / 2e-3
        assert gradient[place] == pytest.approx(numeric, abs=1e-4)


def test_start_is_calibrated() -> None:
    run = run_of("bipartite")
    run._choose(most=1, judge=False)
    assert run.anchors is not None

    def loss() -> float:
        assert run.anchors is not None
        distance = run.engine.distances(np.arange(run.skeleton.members.size, dtype=np.int32), run.items, 1)
        return softmax_loss(np.minimum(distance, 1e3), run.anchors.wanted)[0]

    weight = 20 * run.skeleton.weight
    run.skeleton = replace(run.skeleton, theta=weight + np.log(-np.expm1(-weight)))
    before = loss()
    run._calibrate()
    assert loss() < before - 1


# -- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", VARIANTS)
@pytest.mark.parametrize("numbers_per_item", [3, 4, 8])
def test_meets_the_budget_with_candidates_alone(edges: CandidateEdges, numbers_per_item: float) -> None:
    user_items = tastes()
    graph = fit_ranking(user_items, edges, numbers_per_item, pace=Pace(12), random_state=0)
    joined = join(check_interactions(user_items), edges, np.random.RandomState(0))
    check_graph(graph, joined, numbers_per_item)
    assert graph.n_edges == edges_allowed(numbers_per_item, joined)


@pytest.mark.parametrize(("edges", "least"), [("normal", 0.8), ("bipartite", 0.8), ("random", 0.7)])
def test_finds_what_users_met_next(edges: CandidateEdges, least: float) -> None:
    train, held_out = leave_one_out(tastes(400, 100), random_state=0)
    graph = fit_ranking(train, edges, 4, pace=Pace(40), random_state=0)
    report = evaluate_ranking(ByDistance(graph, 400), train, held_out, k=20)
    assert report.full.hit_ratio[20] > least  # a fifth of the items, of which a fifth suits a user


def test_loss_falls_and_is_recorded() -> None:
    seen: list[Status] = []
    pace = Pace(40, callbacks=[seen.append])
    graph = fit_ranking(tastes(400, 100), "bipartite", 8, pace=pace, random_state=0)
    losses = [record["loss"] for record in pace.history]
    assert len(losses) == 40
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.05
    assert seen[-1].n_edges <= graph.n_edges
    assert seen[0].numbers_per_item > seen[-1].numbers_per_item


@pytest.mark.parametrize("edges", VARIANTS)
def test_seeds_and_threads(edges: CandidateEdges) -> None:
    one, two, three = (
        fit_ranking(tastes(), edges, 4, pace=Pace(8), random_state=seed, n_jobs=n_jobs)
        for seed, n_jobs in ((1, 1), (1, 2), (2, 1))
    )
    assert same(one, two)
    assert not same(one, three)


def test_values_of_interactions_do_not_matter() -> None:
    user_items = tastes()
    graphs = [fit_ranking(user_items * factor, "normal", 4, pace=Pace(4), random_state=0) for factor in (1, 7)]
    assert same(*graphs)
    assert user_items.max() == 1  # and the input is left as it is


@pytest.mark.parametrize("last", [0, 5, 19])
def test_interrupt_returns_a_graph(last: int) -> None:
    def interrupt(status: Status) -> None:
        if status.step == last:
            raise KeyboardInterrupt

    pace = Pace(20, callbacks=[interrupt])
    graph = fit_ranking(tastes(), "bipartite", 4, pace=pace, random_state=0)
    assert pace.stopped == "interrupt"
    assert len(pace.history) == last + 1
    check_graph(graph, join(check_interactions(tastes()), "bipartite", np.random.RandomState(0)), 4)


def test_callbacks_end_a_run() -> None:
    pace = Pace(20, callbacks=[lambda status: status.step == 2])
    graph = fit_ranking(tastes(), "normal", 4, pace=pace, random_state=0)
    assert pace.stopped == "callback"
    assert len(pace.history) == 3
    assert graph.numbers_per_item == 4


@pytest.mark.parametrize("max_time", [1e-9, 0.5])
def test_time_limit(max_time: float) -> None:
    graph = fit_ranking(tastes(), "normal", 4, pace=Pace(10**6, max_time=max_time), random_state=0)
    assert graph.numbers_per_item == 4


@pytest.mark.parametrize("edges", VARIANTS)
def test_users_and_items_without_interactions(edges: CandidateEdges) -> None:
    user_items = tastes().tolil()
    user_items[[3, 199]] = 0
    user_items[:, [0, 50]] = 0
    graph = fit_ranking(user_items, edges, 5, pace=Pace(8), random_state=0)
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
    check_graph(fit_ranking(dense, edges, budget, pace=Pace(4), random_state=seed), joined, budget)


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="edges must be one of 'normal', 'bipartite', 'random', got 'hubs'"):
        fit_ranking(tastes(), "hubs")  # type: ignore[arg-type]
    for budget in (1, 2.9, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"numbers_per_item must be .*, got {budget}: .* give at least 2.99"):
            fit_ranking(tastes(), "normal", budget)
    with pytest.raises(ValueError, match="no interaction"):
        fit_ranking(np.zeros((3, 4)))
