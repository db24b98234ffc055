"""Edges: each once, from the smaller end to the larger, in order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige._validation import check_indices


class Edges(NamedTuple):
    """Undirected edges, each once with ``i < j``, ordered by ``i``, then ``j``."""

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    weight: NDArray[np.float32]


def check_ends(name: str, ends: NDArray[Any], n_vertices: int | None) -> NDArray[np.int32]:
    """Return one end of each edge as int32; a bad one is a wrong value of the argument, not a failed look-up."""
    try:
        return check_indices(name, ends, n_vertices)
    except IndexError as error:
        raise ValueError(str(error)) from None


def unique_edges(tails: NDArray[np.int32], heads: NDArray[np.int32], weights: NDArray[np.float32]) -> Edges:
    """Orient, order and merge edges: each pair once, with the smallest of its weights."""
    i, j = np.minimum(tails, heads), np.maximum(tails, heads)
    order = np.lexsort((weights, j, i))
    i, j, weights = i[order], j[order], weights[order]
    first = np.ones(i.size, dtype=bool)
    first[1:] = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
    return Edges(i[first], j[first], weights[first] + np.float32(0))  # -0 becomes 0
