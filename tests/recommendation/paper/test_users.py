"""Anchors: what is chosen is what enumeration chooses, and judged by the distances of the skeleton."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.special import logsumexp

from prodige import _core
from prodige.graph.engine import Engine
from prodige.recommendation.interactions import check_interactions
from prodige.recommendation.paper import users
from prodige.recommendation.paper.backbone import Backbone, choose_backbone
from prodige.recommendation.paper.candidates import CandidateEdges, join
from prodige.recommendation.paper.users import Choice, allot, draw_positives, rank_options
from tastes import VARIANTS, tastes


def choice_of(edges: CandidateEdges, is_late: Callable[[], bool] = bool) -> Choice:
    interacted, random = check_interactions(tastes()), np.random.RandomState(0)
    joined = join(interacted, edges, random)
    backbone = Backbone.of(joined, 80, *choose_backbone(joined, 200, 400, random)).release()
    topology = _core.Topology(backbone.members.size, backbone.tail, backbone.head)
    engine = Engine(topology, backbone.weight, backbone.members.size, None)
    return Choice(backbone, engine, joined, draw_positives(interacted, random), 1, is_late)


@pytest.mark.parametrize("most", [1, 4, 100])
def test_positives_are_items_that_users_met(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "_N_POSITIVES", most)
    interacted = check_interactions(tastes())
    targets, seen = draw_positives(interacted, np.random.RandomState(0))
    for user, own in enumerate(np.split(interacted.indices, interacted.indptr[1:-1])):
        drawn = targets[user][seen[user]].tolist()
        assert set(drawn) <= set(own.tolist())
        assert len(set(drawn)) == len(drawn) == min(own.size, most)


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
    choice = choice_of(edges)
    options, interacted, backbone = choice.options(), check_interactions(tastes()), choice.backbone
    n, first = backbone.members.size, backbone.n_connectors
    matrix = csr_array((backbone.weight, (backbone.tail, backbone.head)), shape=(n, n))
    distance = dijkstra(matrix, directed=False)[:, first:]
    log_p = -distance - logsumexp(-distance, axis=1)[:, None]
    for row in range(0, options.users.size, 7):
        items = options.targets[row][options.seen[row]]
        assert set(items.tolist()) <= set(interacted[[options.users[row]]].indices.tolist())
        for anchor, surprise in zip(options.anchors[row], options.surprise[row], strict=True):
            if anchor < 0:
                assert np.isinf(surprise).all()
                continue
            expected = -log_p[anchor, items]
            own = items == anchor - first
            if own.any():
                expected[own] = expected[~own].mean() if (~own).any() else 0
            np.testing.assert_allclose(surprise[options.seen[row]], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_parts", [0, 1, 5])
def test_out_of_time_everybody_hangs_on_something(n_parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "_BLOCK", 10 * 80)  # ten searches at once
    asked = count()
    choice = choice_of("bipartite", is_late=lambda: next(asked) >= n_parts)
    everything = choice_of("bipartite").options()
    anchors = choice.make(most=4, n_edges=1000)
    assert np.array_equal(anchors.users, everything.users)  # one edge each
    assert np.isfinite(anchors.weight).all()
    assert (anchors.weight > 0).all()
    for user, member in zip(anchors.users, anchors.members, strict=True):
        assert member in everything.anchors[np.searchsorted(everything.users, user)]


def test_what_is_judged_in_time_is_judged_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "_BLOCK", 10 * 80)
    asked = count()
    some, every = choice_of("bipartite", is_late=lambda: next(asked) >= 2).options(), choice_of("bipartite").options()
    judged = np.isfinite(some.partition) & (some.partition != 0)
    assert 0.2 < judged.sum() / np.isfinite(every.partition).sum() < 1  # twenty searches, those that most wait for
    np.testing.assert_array_equal(some.partition[judged], every.partition[judged])
    np.testing.assert_array_equal(some.surprise[judged], every.surprise[judged])
    assert (np.isfinite(some.partition).any(axis=1)).all()
