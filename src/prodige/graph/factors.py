"""Factors of a product of graphs: hubs, and how far they are from each other.

A factor is a small graph. One kind is any :class:`~prodige.graph.graph.Graph`, whose items are the hubs. The other is a
complete graph of hubs with positions, whose edges are as long as they are straight: no path is shorter than the edge
itself, and a hub takes as many numbers as it has coordinates, not one for every other hub.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige.graph.graph import Graph
from prodige.graph.grid import Grid

MAX_HUBS = 4096  # of a factor: a table of all pairs takes 64 MiB


class Factor(ABC):
    """One of the graphs that a product consists of; never changes."""

    __slots__ = ()

    @property
    @abstractmethod
    def n_hubs(self) -> int:
        """Number of hubs, which are what codes name."""

    @property
    @abstractmethod
    def n_numbers(self) -> int:
        """Numbers that it takes to write the factor down."""

    @property
    @abstractmethod
    def graph(self) -> Graph:
        """The factor as a graph; its first vertices are the hubs."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """A bound on the distances between hubs that can be reached from each other."""

    @abstractmethod
    def distances(self) -> NDArray[np.float32]:
        """Return the distances between all hubs, shape [H, H]: symmetric to the bit, 0 on the diagonal."""

    @abstractmethod
    def path(self, g: int, h: int) -> list[int]:
        """Return the vertices of a shortest path between two hubs, both included; empty if there is none."""

    def __copy__(self) -> Factor:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Factor:
        return self


class GeometricFactor(Factor):
    """Hubs with positions, each joined to each by an edge as long as it is straight.

    Parameters
    ----------
    positions : array-like of float, shape [H, k], or Grid of that shape
        Coordinates of the hubs, kept exactly as float32, or in the bits of the grid.

    Examples
    --------
    >>> from prodige.graph.factors import GeometricFactor
    >>> factor = GeometricFactor([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])
    >>> factor
    GeometricFactor(n_hubs=3, n_dimensions=2)
    >>> factor.distances()
    array([[0., 3., 5.],
           [3., 0., 4.],
           [5., 4., 0.]], dtype=float32)
    """

    __slots__ = ("_grid", "_positions")

    _grid: Grid | None
    _positions: NDArray[np.float32]

    def __init__(self, positions: ArrayLike | Grid) -> None:
        self._grid = positions if isinstance(positions, Grid) else None
        self._positions = positions.values if isinstance(positions, Grid) else check_positions(positions)
        if len(self._positions.shape) != 2 or 0 in self._positions.shape:
            raise ValueError(f"positions must have the shape [hubs, coordinates], got {self._positions.shape}")
        if self.n_hubs > MAX_HUBS:
            raise ValueError(f"positions has {self.n_hubs} hubs; at most {MAX_HUBS} are possible")
        if self.reach > float(np.finfo(np.float32).max):
            raise ValueError(f"positions are {self.reach:.4g} apart, which float32 cannot hold; scale them")

    @property
    def positions(self) -> NDArray[np.float32]:
        """Coordinates of the hubs, shape [H, k]; read-only."""
        return self._positions

    @property
    def grid(self) -> Grid | None:
        """The grid that positions are on, None where they are kept as they are."""
        return self._grid

    @property
    def n_dimensions(self) -> int:
        """Coordinates of a hub."""
        return int(self._positions.shape[1])

    @property
    def n_hubs(self) -> int:
        """Number of hubs."""
        return len(self._positions)

    @property
    def n_numbers(self) -> int:
        """Numbers that it takes to write the factor down: the coordinates."""
        return self._positions.size

    @property
    def graph(self) -> Graph:
        """The complete graph, made anew each time."""
        i, j = np.triu_indices(self.n_hubs, 1)
        return Graph.from_edges(i, j, self.distances()[i, j], n_vertices=self.n_hubs)

    @property
    def reach(self) -> float:
        """A bound on the distances: the diagonal of the box around all hubs."""
        return float(np.linalg.norm(np.ptp(self._positions.astype(np.float64), axis=0)))

    def distances(self) -> NDArray[np.float32]:
        """Return the distances between all hubs, shape [H, H]: symmetric to the bit, 0 on the diagonal.

        Examples
        --------
        >>> from prodige.graph.factors import GeometricFactor
        >>> GeometricFactor([[0.0], [2.5]]).distances()
        array([[0. , 2.5],
               [2.5, 0. ]], dtype=float32)
        """
        squares = np.zeros((self.n_hubs, self.n_hubs))
        for column in self._positions.astype(np.float64).T:
            squares += (column[:, None] - column) ** 2
        return np.sqrt(squares).astype(np.float32)

    def path(self, g: int, h: int) -> list[int]:
        """Return the two hubs, or the one: the edge itself is the shortest path.

        Examples
        --------
        >>> from prodige.graph.factors import GeometricFactor
        >>> GeometricFactor([[0.0], [2.5]]).path(1, 0)
        [1, 0]
        """
        return [g] if g == h else [g, h]

    def __repr__(self) -> str:
        bits = "" if self._grid is None else f", bits={self._grid.bits}"
        return f"GeometricFactor(n_hubs={self.n_hubs}, n_dimensions={self.n_dimensions}{bits})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GeometricFactor):
            return NotImplemented
        return self._grid == other._grid and np.array_equal(self._positions, other._positions)

    def __hash__(self) -> int:
        return hash((self._grid, self._positions.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return GeometricFactor, (self._positions if self._grid is None else self._grid,)


class GraphFactor(Factor):
    """A graph whose items are hubs of a product.

    Parameters
    ----------
    graph : Graph
        At most 4096 items; hubs of its own are waypoints as ever.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.graph.factors import GraphFactor
    >>> factor = GraphFactor(Graph.from_edges([0, 1], [1, 2], [1.0, 2.0]))
    >>> factor.n_hubs, factor.n_numbers, factor.path(0, 2)
    (3, 7, [0, 1, 2])
    """

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a Graph, got {graph!r} of type {type(graph).__name__}")
        if graph.n_items > MAX_HUBS:
            raise ValueError(f"graph has {graph.n_items} items; a factor has at most {MAX_HUBS} hubs")
        self._graph = graph

    @property
    def graph(self) -> Graph:
        """The graph itself."""
        return self._graph

    @property
    def n_hubs(self) -> int:
        """Number of hubs of the product: items of the graph."""
        return self._graph.n_items

    @property
    def n_numbers(self) -> int:
        """Numbers that it takes to write the factor down: one for each vertex and two for each edge."""
        return self._graph.n_vertices + 2 * self._graph.n_edges

    @property
    def reach(self) -> float:
        """A bound on the distances between hubs: no path is longer than all edges, or than as many as vertices."""
        return float(self._graph.edges.weight.astype(np.float64).sum())

    def distances(self) -> NDArray[np.float32]:
        """Return the distances between all hubs, shape [H, H], ``inf`` where there is no path.

        Sums of the same edges in two directions may differ in their last bits; the smaller one counts.

        Examples
        --------
        >>> from prodige import Graph
        >>> from prodige.graph.factors import GraphFactor
        >>> GraphFactor(Graph.from_edges([0, 1], [1, 2], [1.0, 2.0])).distances()
        array([[0., 1., 3.],
               [1., 0., 2.],
               [3., 2., 0.]], dtype=float32)
        """
        distances = self._graph.distances()
        return np.minimum(distances, distances.T)

    def path(self, g: int, h: int) -> list[int]:
        """Return the vertices of a shortest path between two hubs, both included; empty if there is none."""
        return self._graph.path(g, h)

    def __repr__(self) -> str:
        return f"GraphFactor({self._graph!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphFactor):
            return NotImplemented
        return self._graph == other._graph

    def __hash__(self) -> int:
        return hash((GraphFactor, self._graph))

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphFactor, (self._graph,)


def check_positions(positions: ArrayLike) -> NDArray[np.float32]:
    """Return coordinates as float32 of their own, finite and without -0."""
    given = np.asarray(positions)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"positions must hold real numbers, got dtype {given.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        array = given.astype(np.float32) + np.float32(0)
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        place = tuple(int(index) for index in bad[0])
        raise ValueError(
            f"positions[{', '.join(map(str, place))}] = {given[place]} ({len(bad)} such entries): "
            "positions must be finite and fit into float32"
        )
    array.flags.writeable = False
    return array


def as_factor(name: str, factor: Any) -> Factor:
    """Return what a user gave as a factor.

    Examples
    --------
    >>> from prodige.graph.factors import as_factor
    >>> as_factor("factors[0]", [[0.0], [1.0]])
    GeometricFactor(n_hubs=2, n_dimensions=1)
    """
    if isinstance(factor, Factor):
        return factor
    try:
        return GraphFactor(factor) if isinstance(factor, Graph) else GeometricFactor(factor)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
