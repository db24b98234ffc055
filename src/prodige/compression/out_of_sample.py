"""New items: rows that were not in the fit are attached to the graph by their distances to anchors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from prodige import _core
from prodige.graph.graph import Graph
from prodige.metric.space import Metric, Space, in_units
from prodige.threads import count_threads

# How far a new row may be, in units, so that squares fit into single precision, and in the unit of the data.
_FARTHEST = 1e17
_FARTHEST_OF_ALL = 1e37

# Distances of one block: 64 MiB as float32.
_BLOCK = 1 << 24


class Attachments(NamedTuple):
    """Where rows would be attached, each for itself, by the number of arcs that it may take."""

    points: NDArray[np.int32]  # [M, arcs]: places among the attachment points, -1 from where another would not help
    weights: NDArray[np.float32]  # [M, arcs taken - 1, arcs]
    errors: NDArray[np.float32]  # [M, arcs taken - 1]: squared, in units


@dataclass(frozen=True)
class FromAnchors:
    """What distances of new rows to the anchors of a fit are measured by.

    Attributes
    ----------
    anchors : ndarray of int64, shape [A]
        Items whose distances say where a new one belongs.
    rows : array or sparse matrix, shape [A, D]
        Their rows in the data.
    metric : str or callable
    parameters : dict
        What the metric took from the data of the fit.
    unit : float
        What distances were measured in.
    n_jobs : int, optional
    """

    anchors: NDArray[np.int64]
    rows: Any
    metric: Metric
    parameters: dict[str, NDArray[np.float64]]
    unit: float
    n_jobs: int | None

    def take(self, some: NDArray[np.int64]) -> FromAnchors:
        """Return the same with some of the anchors, given by their places among all."""
        return replace(self, anchors=self.anchors[some], rows=rows_of(some, self.rows, self.metric))

    def measure(self, X: Any) -> NDArray[np.float32]:
        """Return the distances of rows to the anchors in units, after making sure that there is room for them."""
        with np.errstate(over="ignore"):
            if self.metric == "precomputed":
                if (X < 0).any():
                    raise ValueError(f"distances must be 0 or more, got {X.min()}")
                target = in_units(X[:, self.anchors], self.unit)
            else:
                space = Space(self.rows, self.metric, self.unit, self.n_jobs, self.parameters)
                target = space.to_others(X)
        too_far = np.flatnonzero(~(target.max(axis=1) <= min(_FARTHEST, _FARTHEST_OF_ALL / self.unit)))
        if too_far.size:
            raise ValueError(
                f"X[{too_far[0]}] is too far from the items the graph was fitted to ({too_far.size} such rows): "
                f"its distances, divided by {self.unit:.3g}, must not be above {_FARTHEST:.0e}"
            )
        return target


@dataclass(frozen=True)
class OutOfSample:
    """A fitted graph, and what distances of new rows to it are measured by.

    Attributes
    ----------
    graph : Graph
    from_anchors : FromAnchors
    numbers_per_item : float
        Budget of each new item.
    """

    graph: Graph
    from_anchors: FromAnchors
    numbers_per_item: float

    @property
    def anchors(self) -> NDArray[np.int64]:
        """Items whose distances say where a new one belongs."""
        return self.from_anchors.anchors

    @property
    def n_jobs(self) -> int | None:
        """Threads."""
        return self.from_anchors.n_jobs

    @property
    def unit(self) -> float:
        """What distances were measured in."""
        return self.from_anchors.unit

    @property
    def points(self) -> NDArray[np.int64]:
        """Vertices that new items may be attached to: hubs, or anchors where there is no hub."""
        hubs = np.arange(self.graph.n_items, self.graph.n_vertices)
        return hubs if hubs.size else self.anchors

    @property
    def n_arcs(self) -> float:
        """Arcs of a new item that its budget pays for."""
        return (self.numbers_per_item - 1) / 2

    def to_anchors(self, X: Any) -> NDArray[np.float32]:
        """Return the distances of rows to the anchors, in units."""
        return self.from_anchors.measure(X)

    def attach(self, X: Any, n_arcs: int) -> Attachments:
        """Find the best points for rows, each row by itself."""
        target = self.to_anchors(X)
        # The core takes columns in full blocks: every anchor equally often, or but a few of them left out.
        lanes, n_anchors = _core.LANES, self.anchors.size
        if n_anchors < 8 * lanes:
            columns = np.tile(np.arange(n_anchors), lanes // math.gcd(n_anchors, lanes))
        else:
            columns = np.arange(n_anchors // lanes * lanes)
        target = np.ascontiguousarray(target[:, columns])
        from_points = self.graph.distances(self.points, self.anchors[columns], n_jobs=self.n_jobs)
        nowhere = np.full(columns.size, -1, dtype=np.int32)
        items = np.arange(len(target), dtype=np.int32)
        points, weights, errors = _core.attach(
            items, nowhere, target, in_units(from_points, self.unit), 0, n_arcs, count_threads(self.n_jobs)
        )
        return Attachments(points, weights if self.unit == 1 else weights * np.float32(self.unit), errors)

    def distances(self, X: Any, items: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
        """Yield the distances of new rows to some items, a block of rows at a time."""
        attached = self.attach(X, max(1, int(self.n_arcs)))
        n_taken = (attached.points >= 0).sum(axis=1)
        from_points = self.graph.distances(self.points, items, n_jobs=self.n_jobs)
        n_rows, most_arcs = attached.points.shape
        for part in gen_batches(n_rows, max(1, _BLOCK // items.size)):
            rows = np.arange(part.start, part.stop)
            result = np.full((rows.size, items.size), np.inf, dtype=np.float32)
            for arc in range(most_arcs):
                has_arc = n_taken[rows] > arc
                row = rows[has_arc]
                weight = attached.weights[row, n_taken[row] - 1, arc][:, None]
                result[has_arc] = np.minimum(result[has_arc], from_points[attached.points[row, arc]] + weight)
            yield result

    def insert(self, X: Any) -> Graph:
        """Return a graph with new items, after the old ones and before the hubs."""
        graph, points = self.graph, self.points
        attached = self.attach(X, math.ceil(self.n_arcs))
        n_taken = self._without_shortcuts(attached, self._share_arcs(attached))
        n_new, most_arcs = attached.points.shape
        row, arc = np.nonzero(np.arange(most_arcs) < n_taken[:, None])
        weight = attached.weights[row, n_taken[row] - 1, arc]
        n, edges = graph.n_items, graph.edges
        i, j, point = (
            np.where(end < n, end, end + n_new) for end in (edges.i, edges.j, points[attached.points[row, arc]])
        )
        return Graph.from_edges(
            np.concatenate([i, n + row]),
            np.concatenate([j, point]),
            np.concatenate([edges.weight, weight]),
            n_vertices=graph.n_vertices + n_new,
            n_items=n + n_new,
        )

    def _share_arcs(self, attached: Attachments) -> NDArray[np.int64]:
        """Return how many arcs each row takes: equal shares, and what is left where another arc helps most."""
        n_arcs, (n_rows, most_arcs) = self.n_arcs, attached.points.shape
        n_taken: NDArray[np.int64] = np.minimum((attached.points >= 0).sum(axis=1), max(1, int(n_arcs)))
        if most_arcs > n_arcs >= 1:
            gain = np.where(attached.points[:, -1] >= 0, attached.errors[:, -2] - attached.errors[:, -1], 0)
            best = np.argsort(-gain, kind="stable")[: int((n_arcs - int(n_arcs)) * n_rows)]
            n_taken[best[gain[best] > 0]] += 1
        return n_taken

    def _without_shortcuts(self, attached: Attachments, n_taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many arcs rows take, only the best one where a row would be a shortcut between two points."""
        between = self.graph.distances(self.points, self.points, n_jobs=self.n_jobs)
        points, weights = attached.points, attached.weights
        n_taken = n_taken.copy()
        for a, b in itertools.combinations(range(points.shape[1]), 2):
            row = np.flatnonzero(n_taken > b)
            path = weights[row, n_taken[row] - 1, a] + weights[row, n_taken[row] - 1, b]
            n_taken[row[path < (1 - 1e-6) * between[points[row, a], points[row, b]]]] = 1
        return n_taken


def rows_of(some: NDArray[np.int64], rows: Any, metric: Metric) -> Any:
    """Return some of the rows; of a matrix of distances, those among themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.out_of_sample import rows_of
    >>> rows_of(np.array([0, 2]), np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), "precomputed")
    array([[0, 2],
           [2, 0]])
    """
    return rows[np.ix_(some, some)] if metric == "precomputed" else rows[some]
