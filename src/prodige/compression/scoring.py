"""How far the distances of a fitted graph are from those of the data: the score of a compressor.

Scores are negative mean squared errors, so that a higher one is better, in squared distances of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.compression.budget import AnyGraph
from prodige.metric.space import Space, in_units, largest

# Pairs that a score is made of, at most: all of 65,536 items.
_MOST_SCORED = 1 << 32

# By how much data may differ and still be the same, as a part of the largest number: rounding to single precision.
_SAME = 1e-6


def score_pairs(graph: AnyGraph, space: Space) -> float:
    """Return the score of a graph over all pairs of its items, or over those of some with all where they are many.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.compression.scoring import score_pairs
    >>> from prodige.metric.space import Space
    >>> score_pairs(Graph.from_edges([0, 1], [1, 2], [1.0, 1.0]), Space([[0.0], [1.0], [5.0]]))
    -6.0
    """
    total = 0.0
    n_sources = min(space.n_items, max(_MOST_SCORED // space.n_items, 1))
    sources = np.linspace(0, space.n_items - 1, n_sources).astype(np.int64)
    for rows, distances in space.blocks(sources):
        residual = in_units(graph.distances(rows, n_jobs=space.n_jobs), space.unit) - distances
        total += float((residual.astype(np.float64) ** 2).sum())
    return -total * space.unit**2 / (n_sources * (space.n_items - 1))


def score_rows(found: NDArray[np.float32], target: NDArray[np.float32], unit: float) -> float:
    """Return the score of distances that were found, where the target is given in a unit."""
    residual = in_units(found, unit) - target
    return -float((residual.astype(np.float64) ** 2).mean()) * unit**2


def are_same(rows: Any, others: Any) -> bool:
    """Whether rows, dense or sparse, are the same but for rounding to single precision.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.scoring import are_same
    >>> rows = np.array([[0.1, 0.2]])
    >>> are_same(rows.astype(np.float32), rows), are_same(rows[:, ::-1], rows)
    (True, False)
    """
    return largest(rows - others) <= _SAME * largest(others)
