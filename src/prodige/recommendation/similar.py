"""Who is like whom: the users nearest to a user, and the items nearest to an item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige._validation import check_ids
from prodige.graph.graph import Graph
from prodige.graph.product import ProductGraph
from prodige.recommendation.interactions import best, check_length, parts

# Distances of one block: 4 MiB, which stay in the cache.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Alike:
    """The vertices of a graph that may be alike: all users, or all items.

    Attributes
    ----------
    graph : Graph or ProductGraph
    kind : str
        What they are called: ``"user"`` or ``"item"``.
    first, n : int
        The vertex of the one with id 0, and how many they are.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.recommendation.similar import Alike
    >>> users = Alike(Graph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 3.0, 1.0]), "user", first=0, n=3)
    >>> users.find(1, 2)
    (array([1, 0], dtype=int32), array([ 0., -1.], dtype=float32))
    """

    graph: Graph | ProductGraph
    kind: str
    first: int
    n: int

    def find(
        self,
        ids: ArrayLike,
        N: int,
        left_out: ArrayLike | None = None,
        chosen: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the N nearest to each, itself first, as ids and distances below 0; -1 and ``-inf`` where they end.

        Parameters
        ----------
        ids : int or array-like of int
        N : int
        left_out : array-like of int, optional
            Who is never found.
        chosen : array-like of int, optional
            Who alone is found, all when left out.
        n_jobs : int, optional
        """
        kind, n = self.kind, self.n
        sources = check_ids(f"{kind}id", ids, n, kind)
        length = check_length(N, sources.size, n, kind)
        dropped = np.zeros(n, dtype=bool)
        if chosen is not None:
            dropped[:] = True
            dropped[check_ids(f"{kind}s", chosen, n, kind)] = False
        if left_out is not None:
            dropped[check_ids(f"filter_{kind}s", left_out, n, kind)] = True
        found = np.full((sources.size, length), -1, dtype=np.int32)
        scores = np.full((sources.size, length), -np.inf, dtype=np.float32)
        targets = np.arange(self.first, self.first + n)
        for part in parts(sources.size, _BLOCK // n):
            block = np.negative(self.graph.distances(self.first + sources[part], targets, n_jobs=n_jobs))
            # Itself comes first, also where others are at distance 0: nothing is above infinity.
            block[np.arange(len(block)), sources[part]] = np.inf
            block[:, dropped] = -np.inf
            nearest, values = best(np.ascontiguousarray(block, dtype=np.float32), min(length, n))
            width = nearest.shape[1]
            found[part, :width], scores[part, :width] = nearest, np.where(values == np.inf, 0, values)
        return (found[0], scores[0]) if np.ndim(ids) == 0 else (found, scores)
