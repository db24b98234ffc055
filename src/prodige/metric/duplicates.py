"""Copies: items in the same place, which a graph needs to learn only once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components

from prodige.graph.graph import Graph
from prodige.graph.product import ProductGraph
from prodige.metric.sources import Source
from prodige.metric.space import Space

Copies = tuple[NDArray[np.int64], NDArray[np.int64]]

# Numbers that keys are made of at a time, and what makes the two halves of a key differ.
_BLOCK = 1 << 20
_SALTS = (1, 0x5851F42D)


def find_copies(space: Space) -> Copies:
    """Find items in the same place; return the first of each place, and for every item which of these it is."""
    if space.metric != "precomputed":
        return same_keys(row_keys(space.X))
    n = space.n_items
    pairs = [np.argwhere(block == 0) + np.array([rows[0], 0]) for rows, block in space.blocks()]
    i, j = np.concatenate(pairs).T
    return numbered(connected_components(csr_array((np.ones(i.size), (i, j)), shape=(n, n)), directed=False)[1])


def source_keys(source: Source) -> NDArray[np.uint64]:
    """Return the keys of all rows of a source, shape [N, 2]; reads it once, and so all of it is checked.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.duplicates import same_keys, source_keys
    >>> from prodige.metric.sources import as_source
    >>> same_keys(source_keys(as_source([np.array([[1.0], [2.0]]), np.array([[1.0]])])))
    (array([0, 1]), array([0, 1, 0]))
    """
    return np.concatenate([row_keys(rows) for _, rows in source.blocks()])


def same_keys(keys: NDArray[np.uint64]) -> Copies:
    """Return which rows have the same keys: the first of each, and for every row which of these it is."""
    order = np.lexsort((np.arange(len(keys)), keys[:, 1], keys[:, 0]))
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.cumsum(is_new) - 1
    return numbered(place)


def numbered(place: NDArray[Any]) -> Copies:
    """Return the first item of each place, ascending, and for every item which of these it is."""
    first = np.sort(np.unique(place, return_index=True)[1])
    number = np.empty(place.size, dtype=np.int64)
    number[place[first]] = np.arange(first.size)
    return first, number[place]


def row_keys(X: Any) -> NDArray[np.uint64]:
    """Return 128 bits for each row, the same for the same row and others for any other, shape [N, 2].

    Each number that is not 0 is scrambled together with its column, and what comes out is added up: sparse rows have
    the keys of dense ones.
    """
    keys = np.empty((X.shape[0], 2), dtype=np.uint64)
    for begin in range(0, X.shape[0], size := max(1, _BLOCK // X.shape[1])):
        rows = X[begin : begin + size]
        keys[begin : begin + size] = keys_of_sparse(rows) if issparse(rows) else keys_of_dense(np.asarray(rows))
    return keys


def keys_of_dense(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the keys of rows of an array."""
    columns = np.arange(rows.shape[1], dtype=np.uint64)
    bits = np.ascontiguousarray(rows, dtype=np.float64).view(np.uint64)
    is_number = rows != 0  # -0.0 is 0.0
    return np.stack(
        [np.where(is_number, scrambled(bits, columns, salt), 0).sum(axis=1, dtype=np.uint64) for salt in _SALTS], axis=1
    )


def keys_of_sparse(rows: Any) -> NDArray[np.uint64]:
    """Return the keys of rows of a sparse matrix."""
    rows = rows.tocsr()
    if not rows.has_canonical_format:  # entries of the same place are one number
        rows = rows.copy()
        rows.sum_duplicates()
    bits = np.ascontiguousarray(rows.data, dtype=np.float64).view(np.uint64)
    columns = rows.indices.astype(np.uint64)
    keys = []
    for salt in _SALTS:
        parts = np.where(rows.data != 0, scrambled(bits, columns, salt), 0).astype(np.uint64)
        ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(parts, dtype=np.uint64)])[rows.indptr]
        keys.append(ends[1:] - ends[:-1])
    return np.stack(keys, axis=1)


def scrambled(bits: NDArray[np.uint64], columns: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Return numbers in which every bit depends on all bits of a number and of its column (as SplitMix64 does it)."""
    mixed = bits ^ ((columns + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


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
