"""Copies: items in the same place, which a graph needs to learn only once."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from prodige.graph.graph import Graph
from prodige.graph.product import ProductGraph
from prodige.metric.space import Space


def find_copies(space: Space) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find items in the same place; return the first of each place, and for every item which of these it is."""
    n = space.n_items
    if space.metric == "precomputed":
        pairs = [np.argwhere(block == 0) + np.array([rows[0], 0]) for rows, block in space.blocks()]
        i, j = np.concatenate(pairs).T
        place = connected_components(csr_array((np.ones(i.size), (i, j)), shape=(n, n)), directed=False)[1]
    else:
        place = np.unique([hash_row(space.X, row) for row in range(n)], return_inverse=True)[1].ravel()
    first = np.sort(np.unique(place, return_index=True)[1])
    number = np.empty(n, dtype=np.int64)
    number[place[first]] = np.arange(first.size)
    return first, number[place]


def hash_row(X: Any, row: int) -> bytes:
    """Return the same bytes for the same row, and others for any other."""
    if isinstance(X, np.ndarray):
        values = (X[row] + 0.0).tobytes()  # -0.0 is 0.0
    else:
        begin, end = X.indptr[row], X.indptr[row + 1]
        there = X.data[begin:end] != 0
        order = np.argsort(X.indices[begin:end][there], kind="stable")
        values = X.indices[begin:end][there][order].tobytes() + b"|" + X.data[begin:end][there][order].tobytes()
    return hashlib.blake2b(values, digest_size=16).hexdigest().encode()


def add_copies(
    graph: Graph | ProductGraph, first: NDArray[np.int64], copy_of: NDArray[np.int64]
) -> Graph | ProductGraph:
    """Return a graph over all items from one over different ones; a copy is at distance 0 from its original."""
    if isinstance(graph, ProductGraph):
        return graph.with_places(copy_of)
    n = copy_of.size
    vertex = np.concatenate([first, n + np.arange(graph.n_vertices - graph.n_items)])
    copies = np.setdiff1d(np.arange(n), first)
    edges = graph.edges
    return Graph.from_edges(
        np.concatenate([vertex[edges.i], copies]),
        np.concatenate([vertex[edges.j], first[copy_of[copies]]]),
        np.concatenate([edges.weight, np.zeros(copies.size, np.float32)]),
        n_vertices=n + graph.n_vertices - graph.n_items,
        n_items=n,
    )
