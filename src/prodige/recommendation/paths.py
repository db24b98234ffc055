"""Paths from users to items: distances in a graph of both, and users that are attached to one vertex of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.special import logsumexp

from prodige.graph.graph import Graph
from prodige.recommendation.interactions import parts

# Distances from the vertices that users are attached to are kept between calls up to this size: 1 GiB as float32.
_MOST_KEPT = 1 << 28

# Stands for the distance of items without a path when likelihoods are compared.
_UNREACHABLE = 1e4

# Distances in one block: 64 MiB.
_BLOCK = 1 << 24

Ids = NDArray[np.int64]
Distances = NDArray[np.float32]


class Paths:
    """The paths from users to items in a graph; a model that changes its graph gets new ones.

    Distances are kept when they are known. They are computed first, and then what is kept is replaced whole: threads
    may ask side by side, and Ctrl-C leaves nothing behind that was not computed.

    Parameters
    ----------
    graph : Graph
    n_users : int
        Users are vertices 0 to ``n_users - 1``, and all other items of the graph are items.
    """

    def __init__(self, graph: Graph, n_users: int) -> None:
        self.graph = graph
        self.n_users = n_users
        self.items = np.arange(n_users, graph.n_items)
        self._known: tuple[Ids, Distances] | None = None  # see _entries
        self._kept: tuple[Ids, Distances] | None = None  # see _from

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.items.size)

    def distances(self, users: Ids, n_jobs: int | None) -> Distances:
        """Return distances from users to all items. Users with one edge have those of the vertex at its other end."""
        entries, lengths = self._entries()
        rows, place = np.unique(entries[users], return_inverse=True)
        return np.asarray(self._from(rows, n_jobs)[place] + lengths[users][:, None])

    def nearest_anchors(self, interacted: csr_array, n_jobs: int | None) -> Ids:
        """Return for each row of items the vertex from where they are most likely; popular ones for empty rows."""
        graph = self.graph
        # Groups, or all users of a graph without any.
        candidates = np.arange(graph.n_items, graph.n_vertices) if graph.n_hubs else np.arange(self.n_users)
        is_idle = np.diff(interacted.indptr) == 0
        rows = csr_array((np.ones(interacted.nnz), interacted.indices, interacted.indptr), shape=interacted.shape)
        rows = vstack([rows, csr_array(self._popularity()[None])], format="csr")
        total = np.asarray(rows.sum(axis=1)).ravel()
        best, anchors = np.full(total.size, np.inf), np.full(total.size, candidates[0])
        for part in parts(candidates.size, _BLOCK // self.items.size):
            distances = self._from(candidates[part], n_jobs).astype(np.float64)
            distances[~np.isfinite(distances)] = _UNREACHABLE
            losses = (rows @ distances.T) / np.maximum(total, 1e-9)[:, None] + logsumexp(-distances, axis=1)
            choice = losses.argmin(axis=1)
            loss = losses[np.arange(choice.size), choice]
            anchors = np.where(loss < best, candidates[part][choice], anchors)
            best = np.minimum(loss, best)
        return np.where(is_idle, anchors[-1], anchors[:-1])

    def _popularity(self) -> NDArray[np.float64]:
        """Return how popular items are as far as the graph knows: the shorter or the more edges, the more popular."""
        graph = self.graph
        if not graph.n_hubs:
            return graph.degrees()[self.items].astype(np.float64) + 1e-9
        shortest = np.full(graph.n_vertices, np.inf)
        np.minimum.at(shortest, graph.edges.i, graph.edges.weight)
        return np.asarray(np.exp(shortest[self.items].min() - shortest[self.items]))

    def _entries(self) -> tuple[Ids, Distances]:
        """Return the vertex from where the paths of each user begin, and how far it is: itself if it has more edges."""
        known = self._known
        if known is None:
            graph, users = self.graph, np.arange(self.n_users)
            entries, lengths = users.copy(), np.zeros(users.size, np.float32)
            is_single = graph.degrees()[: users.size] == 1
            for ends, others in ((graph.edges.i, graph.edges.j), (graph.edges.j, graph.edges.i)):
                mine = np.flatnonzero(ends < users.size)
                mine = mine[is_single[ends[mine]]]
                entries[ends[mine]], lengths[ends[mine]] = others[mine], graph.edges.weight[mine]
            known = self._known = entries, lengths
        return known

    def _from(self, vertices: Ids, n_jobs: int | None) -> Distances:
        """Return distances from vertices to all items; those from groups are kept, as users share them."""
        graph, n_items = self.graph, self.items.size
        if graph.n_hubs == 0 or graph.n_hubs * n_items > _MOST_KEPT or (vertices < graph.n_items).any():
            return np.asarray(graph.distances(vertices, self.items, n_jobs=n_jobs))
        place, rows = self._kept or (np.full(graph.n_hubs, -1), np.empty((0, n_items), np.float32))
        missing = vertices[place[vertices - graph.n_items] < 0]
        if missing.size:
            rows = np.concatenate([rows, graph.distances(missing, self.items, n_jobs=n_jobs)])
            place = place.copy()
            place[missing - graph.n_items] = np.arange(len(rows) - missing.size, len(rows))
            self._kept = place, rows
        return np.asarray(rows[place[vertices - graph.n_items]])


def grow(graph: Graph, n_users: int, n_new: int) -> Graph:
    """Return the graph with more users, without edges; all vertices after the users move up."""
    if not n_new:
        return graph
    tails, heads = (ends + np.where(ends >= n_users, n_new, 0) for ends in (graph.edges.i, graph.edges.j))
    return Graph.from_edges(
        tails, heads, graph.edges.weight, n_vertices=graph.n_vertices + n_new, n_items=graph.n_items + n_new
    )


def attach_users(graph: Graph, n_users: int, users: Ids, anchors: Ids) -> Graph:
    """Return the graph in which some users have one edge, in place of those they had."""
    is_moved = np.zeros(graph.n_vertices, dtype=bool)
    is_moved[users] = True
    stays = ~(is_moved[graph.edges.i] | is_moved[graph.edges.j])
    # Its length changes nothing for the user, whose every path begins with it: one like any other.
    length = float(np.median(graph.edges.weight[graph.edges.i < n_users]))
    tails = np.concatenate([graph.edges.i[stays], users])
    heads = np.concatenate([graph.edges.j[stays], anchors])
    weights = np.concatenate([graph.edges.weight[stays], np.full(users.size, length, np.float32)])
    return Graph.from_edges(tails, heads, weights, n_vertices=graph.n_vertices, n_items=graph.n_items)
