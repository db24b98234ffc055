"""Engines of a learnable graph: made once for its edges, and given new weights when those have changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.graph.engine import Engine
from prodige.threads import count_threads

Choice = NDArray[np.int64] | None  # of some edges; None is the choice of all


@dataclass(frozen=True)
class Prepared:
    """An engine and what it was made from."""

    edges: Choice
    weights: NDArray[Any]
    engine: Engine


class Engines:
    """The last engine over all edges of a graph, and the last one over some of them.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.learning.engines import Engines
    >>> tails, heads, weights = np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.ones(2, np.float32)
    >>> engines = Engines(n_vertices=3, n_items=3)
    >>> first = engines.prepare(tails, heads, weights)
    >>> engines.prepare(tails, heads, weights) is first, engines.prepare(tails, heads, 2 * weights) is first
    (True, False)
    """

    def __init__(self, n_vertices: int, n_items: int) -> None:
        self.n_vertices = n_vertices
        self.n_items = n_items
        self._last: dict[bool, Prepared] = {}  # by whether it is over all edges

    def clear(self) -> None:
        """Forget the engines: the edges are others now."""
        self._last.clear()

    def prepare(
        self,
        tails: NDArray[np.int32],
        heads: NDArray[np.int32],
        weights: NDArray[Any],
        edges: Choice = None,
        n_jobs: int | None = None,
    ) -> Prepared:
        """Return an engine over some edges with these weights, made from the last one where that is possible.

        Weights are compared, not their version: a change through ``.data`` leaves no other trace.
        """
        if edges is not None:
            weights = weights[edges]
        last = self._last.get(edges is None)
        if last is not None and last.weights.dtype == weights.dtype and same_edges(last.edges, edges):
            if np.array_equal(last.weights, weights):
                return last
            engine = last.engine.with_weights(weights, n_jobs)
        else:
            if edges is not None:
                tails, heads = tails[edges], heads[edges]
            topology = _core.Topology(self.n_vertices, tails, heads)
            engine = Engine(topology, weights, self.n_items, n_jobs=count_threads(n_jobs))
        self._last[edges is None] = prepared = Prepared(edges, weights, engine)
        return prepared


def same_edges(one: Choice, other: Choice) -> bool:
    """Whether two choices of edges are equal."""
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
