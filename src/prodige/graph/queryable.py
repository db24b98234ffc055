"""Queryable: the questions that every kind of graph answers, and how they are checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige._validation import check_indices, check_integer, check_radius, check_vector


class Answers(Protocol):
    """What an engine has to know; vertices are int32 and known to be there."""

    def distances(
        self, sources: NDArray[np.int32], targets: NDArray[np.int32] | None, n_jobs: int | None
    ) -> NDArray[Any]:
        """Distances from sources to targets, to all items where ``targets`` is None."""

    def pair_distances(self, i: NDArray[np.int32], j: NDArray[np.int32], n_jobs: int | None) -> NDArray[Any]:
        """Distances between ``i[p]`` and ``j[p]``."""

    def neighbors(
        self, sources: NDArray[np.int32], k: int | None, radius: float | None, n_jobs: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
        """Items around each source, as offsets, vertices and distances of all rows one after the other."""


class Queryable(ABC):
    """Distances between vertices, of which the first ``n_items`` are data.

    A subclass has an engine that answers, and says how many vertices may be asked about.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of vertices that are data."""

    @property
    @abstractmethod
    def _n_queryable(self) -> int:
        """Number of vertices that questions may name."""

    @property
    @abstractmethod
    def _engine(self) -> Answers:
        """What answers."""

    def distances(
        self, sources: ArrayLike | None = None, targets: ArrayLike | None = None, n_jobs: int | None = None
    ) -> NDArray[np.float32]:
        """Return shortest-path lengths from every source to every target.

        Parameters
        ----------
        sources, targets : array-like of int, optional
            Vertex ids, in any order, repeated or not; all items when left out. For many items take the sources in
            blocks: the result has S x T entries.
        n_jobs : int, optional
            Threads; all processors that this process may use when left out. The result does not depend on it.

        Returns
        -------
        ndarray of float32, shape [S, T]
            ``inf`` where there is no path.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0, 1], [1, 2], [1, 2]).distances([0, 2], [1, 2])
        array([[1., 3.],
               [2., 0.]], dtype=float32)
        """
        from_vertices = self._sources(sources)
        to_vertices = None if targets is None else check_indices("targets", targets, self._n_queryable)
        return self._engine.distances(from_vertices, to_vertices, n_jobs)

    def distance(self, i: int, j: int) -> float:
        """Return the length of the shortest path between two vertices, ``inf`` if there is none.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0, 1], [1, 2], [1, 2]).distance(0, 2)
        3.0
        """
        i, j = self._vertex("i", i), self._vertex("j", j)
        return float(self._engine.distances(np.array([i], np.int32), np.array([j], np.int32), 1)[0, 0])

    def pair_distances(self, i: ArrayLike, j: ArrayLike, n_jobs: int | None = None) -> NDArray[np.float32]:
        """Return the lengths of shortest paths from ``i[p]`` to ``j[p]``, for every pair ``p``.

        Parameters
        ----------
        i, j : array-like of int, shape [P]
            Vertex ids. A :class:`~prodige.graph.graph.Graph` is searched once for each different vertex in ``i``.
        n_jobs : int, optional
            Threads; all processors that this process may use when left out. The result does not depend on it.

        Returns
        -------
        ndarray of float32, shape [P]
            ``inf`` where there is no path.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0, 1], [1, 2], [1, 2]).pair_distances([0, 0, 2], [1, 2, 2])
        array([1., 3., 0.], dtype=float32)
        """
        i, j = check_vector("i", i), check_vector("j", j)
        if i.size != j.size:
            raise ValueError(f"i and j must have the same length, got {i.size} and {j.size}")
        tails, heads = check_indices("i", i, self._n_queryable), check_indices("j", j, self._n_queryable)
        return self._engine.pair_distances(tails, heads, n_jobs)

    def kneighbors(
        self, sources: ArrayLike | None = None, k: int = 5, n_jobs: int | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the ``k`` nearest items of each source, without the source itself and without hubs.

        Parameters
        ----------
        sources : array-like of int, optional
            Vertex ids; all items when left out.
        k : int
            Number of neighbours.
        n_jobs : int, optional
            Threads; all processors that this process may use when left out.

        Returns
        -------
        distances : ndarray of float32, shape [S, k]
            Ascending; ties are ordered by id. ``inf`` where fewer than ``k`` items can be reached.
        indices : ndarray of int64, shape [S, k]
            The items; -1 where the distance is ``inf``.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0, 1], [1, 2], [1, 2]).kneighbors([1], k=2)
        (array([[1., 2.]], dtype=float32), array([[0, 2]]))
        """
        from_vertices = self._sources(sources)
        k = check_integer("k", k, 1, self.n_items - (1 if (from_vertices < self.n_items).any() else 0))
        offsets, vertices, distances = self._engine.neighbors(from_vertices, k, None, n_jobs)
        shape = (from_vertices.size, k)
        filled = np.arange(k) < np.diff(offsets)[:, None]
        all_distances = np.full(shape, np.inf, np.float32)
        all_distances[filled] = distances
        indices = np.full(shape, -1, np.int64)
        indices[filled] = vertices
        return all_distances, indices

    def within(
        self, sources: ArrayLike | None, radius: float, n_jobs: int | None = None
    ) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Return the items at most ``radius`` from each source, without the source itself and without hubs.

        Parameters
        ----------
        sources : array-like of int or None
            Vertex ids; all items if None.
        radius : float
            Largest distance, inclusive.
        n_jobs : int, optional
            Threads; all processors that this process may use when left out.

        Returns
        -------
        distances, indices : ndarray of object, shape [S]
            For each source an array of distances (float32, ascending, ties by id) and one of items (int64).

        Examples
        --------
        >>> from prodige import Graph
        >>> distances, items = Graph.from_edges([0, 1], [1, 2], [1, 2]).within([0], radius=1.5)
        >>> items[0]
        array([1])
        """
        from_vertices = self._sources(sources)
        # Lengths are float32: compare with the radius as float32 rounds it.
        bound = float(np.float32(min(check_radius("radius", radius), float(np.finfo(np.float32).max))))
        offsets, vertices, distances = self._engine.neighbors(from_vertices, None, bound, n_jobs)
        found_distances = np.empty(from_vertices.size, dtype=object)
        found_indices = np.empty(from_vertices.size, dtype=object)
        for row in range(from_vertices.size):
            found_distances[row] = distances[offsets[row] : offsets[row + 1]].copy()
            found_indices[row] = vertices[offsets[row] : offsets[row + 1]].astype(np.int64)
        return found_distances, found_indices

    def _sources(self, sources: ArrayLike | None) -> NDArray[np.int32]:
        if sources is None:
            return np.arange(self.n_items, dtype=np.int32)
        return check_indices("sources", sources, self._n_queryable)

    def _vertex(self, name: str, value: int) -> int:
        last = self._n_queryable - 1
        try:
            return check_integer(name, value, 0, last)
        except ValueError:
            raise IndexError(f"{name} = {value} is not a vertex: the graph has vertices 0 to {last}") from None
