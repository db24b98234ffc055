"""The skeleton: it connects what the candidates connect, however few edges are left."""

from __future__ import annotations

import numpy as np
import pytest

from prodige.learning.adam import Weights
from prodige.recommendation.interactions import check_interactions
from prodige.recommendation.paper.backbone import Backbone, choose_backbone
from prodige.recommendation.paper.candidates import CandidateEdges, join
from tastes import VARIANTS, components, tastes


@pytest.mark.parametrize("edges", VARIANTS)
@pytest.mark.parametrize("n_edges", [1, 150, 10**6])
def test_skeleton_connects_the_items_and_what_hangs_on_it(edges: CandidateEdges, n_edges: int) -> None:
    joined = join(check_interactions(tastes()), edges, np.random.RandomState(0))
    inside, chosen = choose_backbone(joined, 200, n_edges, np.random.RandomState(0))
    assert inside[200:].all()
    assert (inside[joined.i[chosen]] & inside[joined.j[chosen]]).all()
    whole = components(joined.i, joined.j, 280)
    within = components(joined.i[chosen], joined.j[chosen], 280)
    assert np.unique(whole[inside]).size == np.unique(within[inside]).size
    leads_in = inside[joined.i] != inside[joined.j]
    hanging = np.unique(np.where(inside[joined.i], joined.j, joined.i)[leads_in])
    has_edge = np.bincount(np.concatenate([joined.i, joined.j]), minlength=280) > 0
    assert np.array_equal(hanging, np.flatnonzero(has_edge & ~inside))


def small_skeleton() -> Backbone:
    """Connectors 0, 1, 2 and items 3, 4, 5: a ring over 0, 3, 1, 4, with 2 at its end and 5 beside it."""
    tail, head = np.array([[0, 0, 1, 1, 2, 0], [3, 4, 3, 4, 3, 5]], dtype=np.int32)
    importance = np.array([0.5, 0.0, 0.4, 0.1, 0.0, 0.0])
    zeros = np.zeros(6, dtype=np.float32)
    return Backbone(np.array([7, 8, 9, 20, 21, 22]), 3, tail, head, Weights(zeros, zeros, zeros), importance)


def test_thinning_drops_what_is_worth_least_and_disconnects_nothing() -> None:
    backbone = small_skeleton()
    assert backbone.thin(6) is backbone
    thinned = backbone.thin(5)
    assert thinned.tail.tolist() == [0, 1, 1, 2, 0]
    assert backbone.thin(0).n_edges == 5  # the tree


def test_users_at_an_end_are_released() -> None:
    released = small_skeleton().release()
    assert released.members.tolist() == [7, 8, 20, 21, 22]
    assert released.tail.tolist() == [0, 0, 1, 1, 0]
    assert released.head.tolist() == [2, 3, 2, 3, 4]
    chain = small_skeleton().keep(np.array([True, False, True, False, False, True])).release()
    assert chain.members.tolist() == [7, 9, 20, 21, 22]  # 8 hangs on item 20 now; 9 has no edge to give up
