"""Spanning forests: which edges must stay so that nothing falls apart when others are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]


def spanning_forest(tail: Ids, head: Ids, importance: NDArray[Any], n_vertices: int) -> Mask:
    """Return which edges make up the spanning forest of the highest importance; the first of equal ones.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.spanning import spanning_forest
    >>> tail, head = np.array([[0, 0, 1], [1, 2, 2]], dtype=np.int32)
    >>> spanning_forest(tail, head, np.array([1.0, 3.0, 2.0]), n_vertices=3)
    array([False,  True,  True])
    """
    rank = np.empty(tail.size)
    rank[np.argsort(-importance, kind="stable")] = np.arange(1, tail.size + 1)  # all different, and none is zero
    tree = minimum_spanning_tree(csr_array((rank, (tail, head)), shape=(n_vertices, n_vertices)))
    chosen = np.zeros(tail.size + 1, dtype=bool)
    chosen[tree.data.astype(np.int64)] = True
    mask: Mask = chosen[rank.astype(np.int64)]
    return mask


def keep_connected(tail: Ids, head: Ids, order: NDArray[np.int64], n_vertices: int, n_edges: int) -> Mask:
    """Return which edges to keep: a spanning forest, then as many as there is room for, the first in the order first.

    Examples
    --------
    A triangle, and an edge beside it that is last in the order:

    >>> import numpy as np
    >>> from prodige.graph.spanning import keep_connected
    >>> tail, head = np.array([[0, 0, 1, 2], [1, 2, 2, 3]], dtype=np.int32)
    >>> keep_connected(tail, head, np.array([2, 0, 1, 3]), n_vertices=4, n_edges=3)
    array([ True, False,  True,  True])
    """
    importance = np.empty(order.size)
    importance[order] = -np.arange(order.size)
    mask = spanning_forest(tail, head, importance, n_vertices)
    others = order[~mask[order]]
    mask[others[: max(n_edges - int(mask.sum()), 0)]] = True
    return mask


def without_leaves(tail: Ids, head: Ids, edges: Mask, may_go: Mask) -> Mask:
    """Return the edges of a forest without those to leaves that may go, again and again until there is none.

    Parameters
    ----------
    tail, head : ndarray of int32, shape [E]
    edges : ndarray of bool, shape [E]
        The edges of the forest.
    may_go : ndarray of bool, shape [V]
        Vertices that the forest need not reach.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.spanning import without_leaves
    >>> tail, head = np.array([[0, 1, 2], [1, 2, 3]], dtype=np.int32)
    >>> without_leaves(tail, head, np.ones(3, dtype=bool), may_go=np.arange(4) >= 2)
    array([ True, False, False])
    """
    while True:
        degree = np.bincount(np.concatenate([tail[edges], head[edges]]), minlength=may_go.size)
        is_leaf = (degree == 1) & may_go
        to_leaf = edges & (is_leaf[tail] | is_leaf[head])
        if not to_leaf.any():
            return edges
        edges = edges & ~to_leaf
