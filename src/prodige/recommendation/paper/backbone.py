"""The backbone of a ranking graph: all items, and the users that paths between them lead through.

Its edges are thinned out by importance, which :mod:`prodige.recommendation.paper.fit` measures while it learns the
weights. All other users are attached to it (:mod:`prodige.recommendation.paper.users`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prodige.graph.spanning import keep_connected, spanning_forest
from prodige.learning.adam import Weights
from prodige.metric.candidates import Candidates
from prodige.recommendation.paper.candidates import SHORTEST

# Edges to begin with are the shortest among several times as many candidates, where few candidates are shorter than
# this: as random ones, which mostly say nothing. More users to look at make slower searches, so there is a limit to it.
_SHORT = 1.2
_SHORT_SHARE = 0.6
_MOST_CROWDED = 4.0

Ids = NDArray[np.int32]
Vertices = NDArray[np.int64]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Backbone:
    """What paths lead through; replaced as a whole, so that an interrupt never finds half of a change.

    Attributes
    ----------
    members : ndarray of int64, shape [M]
        Its vertices in the whole graph, in order: connectors, then all items.
    n_items : int
    tail, head : ndarray of int32, shape [E]
        Ends of the edges, as places among the members.
    weights : Weights
        Of the edges, with the state of Adam.
    importance : ndarray of float64, shape [E]
        Importance, as a running sum.
    """

    members: Vertices
    n_items: int
    tail: Ids
    head: Ids
    weights: Weights
    importance: NDArray[np.float64]

    @classmethod
    def of(cls, joined: Candidates, n_items: int, inside: Mask, edges: Mask) -> Backbone:
        """Return the backbone of some vertices and some candidates between them."""
        place = (np.cumsum(inside) - 1).astype(np.int32)
        weights = Weights.of(np.maximum(joined.weight[edges], np.float32(SHORTEST)))
        ends = place[joined.i[edges]], place[joined.j[edges]]
        return cls(np.flatnonzero(inside), n_items, *ends, weights, np.zeros(weights.size))

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.tail.size

    @property
    def n_connectors(self) -> int:
        """Users among the members."""
        return self.members.size - self.n_items

    @property
    def items(self) -> Ids:
        """The items, as places among the members."""
        return np.arange(self.n_connectors, self.members.size, dtype=np.int32)

    @property
    def weight(self) -> Floats:
        """Weights of the edges."""
        return self.weights.value

    @property
    def degree(self) -> Vertices:
        """Edges of each member."""
        return np.bincount(np.concatenate([self.tail, self.head]), minlength=self.members.size)

    def keep(self, mask: Mask) -> Backbone:
        """Return the backbone with the edges where the mask is True."""
        return replace(
            self,
            tail=self.tail[mask],
            head=self.head[mask],
            weights=self.weights.keep(mask),
            importance=self.importance[mask],
        )

    def thin(self, n_edges: int) -> Backbone:
        """Return the most important edges: a spanning forest, then as many as there is room for."""
        if self.n_edges <= n_edges:
            return self
        order = np.lexsort((self.weights.theta, -self.importance))  # of two equally important edges the shorter one
        return self.keep(keep_connected(self.tail, self.head, order, self.members.size, n_edges))

    def release(self) -> Backbone:
        """Return the backbone without users that no path leads through any more: they shall choose anchors freely."""
        backbone = self
        while True:
            is_end = (backbone.degree == 1) & (np.arange(backbone.members.size) < backbone.n_connectors)
            tail, head = is_end[backbone.tail], is_end[backbone.head]
            leaves = tail ^ head  # two ends of one edge have nothing else to be attached to
            if not leaves.any():
                return backbone
            gone = np.where(tail, backbone.tail, backbone.head)[leaves]
            stays = np.ones(backbone.members.size, dtype=bool)
            stays[gone] = False
            place = (np.cumsum(stays) - 1).astype(np.int32)
            kept = backbone.keep(~leaves)
            backbone = replace(kept, members=kept.members[stays], tail=place[kept.tail], head=place[kept.head])


def choose_backbone(joined: Candidates, n_users: int, n_edges: int, random: np.random.RandomState) -> tuple[Mask, Mask]:
    """Return the vertices and the edges of a backbone to begin with, as masks of all vertices and of the candidates.

    Users are drawn at random, and of the edges between them and the items the shortest are taken, about as many as
    asked for. Where that leaves apart what the candidates connect, what connects it comes in too.
    """
    n = joined.n_vertices
    turn = np.full(n, -1)
    turn[:n_users] = random.permutation(n_users)
    enters = np.maximum(turn[joined.i], turn[joined.j])  # when both its ends are in, an edge is
    share = max(float((joined.weight < _SHORT).mean()), 1e-9) if joined.n_edges else 1.0
    last = int(np.clip(_SHORT_SHARE / share, 1, _MOST_CROWDED) * n_edges)
    limit = np.partition(enters, last)[last] if last < enters.size else n_users
    drawn = enters < limit
    order = np.argsort(np.where(drawn, joined.weight, np.inf), kind="stable")
    edges: Mask = np.zeros(joined.n_edges, dtype=bool)
    edges[order[: min(n_edges, int(drawn.sum()))]] = True
    # Edges taken come first in the tree, then those that lead out: nearly all other users become its leaves.
    ends = np.concatenate([joined.i[edges], joined.j[edges]])
    inside = (np.bincount(ends, minlength=n) > 0) | (np.arange(n) >= n_users)
    importance = inside[joined.i].astype(np.float32) + inside[joined.j] + edges
    edges |= spanning_forest(joined.i, joined.j, importance - joined.weight / (1 + joined.weight.max(initial=0)), n)
    tail, head = joined.i[edges], joined.j[edges]
    inside = (np.bincount(np.concatenate([tail, head]), minlength=n) > 1) | (np.arange(n) >= n_users)
    inside[tail[~inside[tail] & ~inside[head]]] = True  # one of two that have only each other
    return inside, edges & inside[joined.i] & inside[joined.j]
