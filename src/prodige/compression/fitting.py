"""A graph while it is being fitted: weights that move, and how important its edges turn out to be.

An edge is too long by the mean residual of the pairs whose shortest path uses it, so each weight moves a part of the
way there. That is Newton's method with the diagonal of the Hessian (the number of those pairs). It needs no learning
rate, and a few dozen passes do what takes thousands of gradient steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.graph.engine import Engine
from prodige.graph.graph import Graph
from prodige.metric.landmarks import Landmarks

Floats = NDArray[Any]
Ids = NDArray[np.int32]


class Stress(NamedTuple):
    """Sums over pairs of a landmark and an item; the three vectors have an entry for each edge."""

    loss: float  # squared residuals
    n_pairs: float
    gradient: Floats  # residuals of the pairs whose shortest path uses the edge
    uses: Floats  # number of these pairs
    cost: Floats  # by how much the loss would rise without the edge


@dataclass
class Passes:
    """Sums over the passes since the edges last changed, recent ones counting most."""

    gradient: Floats
    uses: Floats
    cost: Floats
    n_sources: float = 0.0
    n_cost_sources: float = 0.0


class FittedGraph:
    """Edges and weights, the distances they are fitted to, and the sums of the passes so far.

    Parameters
    ----------
    landmarks : Landmarks
    n_hubs : int
        Vertices after the items.
    tail, head : ndarray of int32, shape [E]
        Ends of the edges.
    weight : ndarray, shape [E]
    n_jobs : int
        Threads.
    """

    def __init__(self, landmarks: Landmarks, n_hubs: int, tail: Ids, head: Ids, weight: Floats, n_jobs: int) -> None:
        self.landmarks = landmarks
        self.n_items = landmarks.n_items
        self.n_hubs = n_hubs
        self.tail = np.ascontiguousarray(tail, dtype=np.int32)
        self.head = np.ascontiguousarray(head, dtype=np.int32)
        self.weight = np.ascontiguousarray(weight, dtype=np.float32)
        self.n_jobs = n_jobs
        self.engine = self._make_engine(_core.Topology(self.n_items + n_hubs, self.tail, self.head))
        self.passes = Passes(*np.zeros((3, self.weight.size)))
        self._longest = 8 * landmarks.scale  # stands for a path that does not exist

    def _make_engine(self, topology: _core.Topology) -> Engine:
        return Engine(topology, self.weight, self.n_items, None, self.n_jobs)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.weight.size

    @property
    def numbers_per_item(self) -> float:
        """Memory: one number per vertex and two per edge, divided by the items."""
        return (self.n_items + self.n_hubs + 2 * self.n_edges) / self.n_items

    def freeze(self) -> Graph:
        """Return the graph as it is, without hubs that no edge reaches."""
        used = np.zeros(self.n_items + self.n_hubs, dtype=bool)
        used[: self.n_items] = True
        used[self.tail] = used[self.head] = True
        number = np.cumsum(used) - 1
        return Graph.from_edges(
            number[self.tail], number[self.head], self.weight, n_vertices=int(used.sum()), n_items=self.n_items
        )

    def stress(self, blocks: Ids) -> Stress:
        """Measure residuals over blocks of landmarks."""
        lanes = _core.LANES
        columns = (blocks[:, None] * lanes + np.arange(lanes, dtype=np.int32)).ravel()
        sources = self.landmarks.sources[columns]
        forest = self.engine.search(sources, self.n_jobs)
        distances = forest.distances(None, self.n_items, self.n_jobs)
        residual = np.minimum(distances, self._longest) - self.landmarks.target[:, columns].T
        pairs = np.ones_like(residual)
        rows = np.arange(sources.size)
        residual[rows, sources] = pairs[rows, sources] = 0
        gradient = forest.backward(residual, None, self.n_jobs)
        uses = forest.backward(pairs, None, self.n_jobs)
        cost = forest.removal_cost(2 * residual, 2 * pairs, None, self._longest, self.n_jobs)
        loss = float((residual.astype(np.float64) ** 2).sum())
        return Stress(loss, residual.size - sources.size, gradient, uses, cost)

    def newton(self, blocks: Ids, rate: float, memory: float = 0.8) -> float:
        """Move every weight towards its optimum with all others fixed; return the mean squared residual before."""
        stress = self.stress(blocks)
        passes = self.passes
        n_sources = blocks.size * _core.LANES
        passes.gradient = memory * passes.gradient + stress.gradient
        passes.uses = memory * passes.uses + stress.uses
        passes.n_sources = memory * passes.n_sources + n_sources
        passes.cost = 0.9 * passes.cost + stress.cost
        passes.n_cost_sources = 0.9 * passes.n_cost_sources + n_sources
        # The constant keeps an edge that only few pairs use from following their noise.
        step = passes.gradient / (passes.uses + 0.1 * passes.n_sources)
        # All edges of a path move at once: each may only take its share of the residual.
        n_hops = 1 + stress.uses.sum() / max(stress.n_pairs, 1)
        self.weight = np.maximum(self.weight - rate / n_hops * step, 0).astype(np.float32)
        self.engine = self.engine.with_weights(self.weight, self.n_jobs)
        return float(stress.loss / max(stress.n_pairs, 1))

    def importance(self) -> Floats:
        """Return what the squared error of all ordered pairs would rise by without each edge."""
        return np.asarray(self.passes.cost * (self.n_items / max(self.passes.n_cost_sources, 1)))

    def error(self, blocks: Ids) -> float:
        """Return the mean squared residual over blocks of landmarks."""
        stress = self.stress(blocks)
        return float(stress.loss / max(stress.n_pairs, 1))


class Blocks:
    """Blocks of landmarks for each pass; every block comes once before any comes again."""

    def __init__(self, n_blocks: int, size: int, random: np.random.RandomState) -> None:
        self.n_blocks = n_blocks
        self.size = min(size, n_blocks)
        self.random = random
        self._order = np.empty(0, dtype=np.int32)

    def draw(self) -> Ids:
        """Return the blocks of the next pass."""
        if self._order.size < self.size:
            self._order = self.random.permutation(self.n_blocks).astype(np.int32)
        batch, self._order = self._order[: self.size], self._order[self.size :]
        return batch
