"""Graph: the learned artefact, and all that is kept of a data set.

Vertices are items (the data, numbered from 0) followed by hubs (virtual vertices that only serve as waypoints). Edges
are undirected with weights of 0 or more; the distance between two vertices is the length of their shortest path. A
graph never changes, so it can be shared between threads and used as a key.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige import _core
from prodige._validation import (
    MAX_EDGES,
    MAX_INT32,
    check_integer,
    check_vector,
    check_weights,
    find_isolated,
    kept_items,
)
from prodige.graph import conversion, packing
from prodige.graph.atomic import StrPath
from prodige.graph.edges import Edges, check_ends, unique_edges
from prodige.graph.engine import Engine
from prodige.graph.queryable import Queryable

if TYPE_CHECKING:
    import networkx
    import scipy.sparse


class Graph(Queryable):
    """An undirected weighted graph whose first ``n_items`` vertices are data and whose other vertices are hubs.

    Made by :meth:`from_edges`, :meth:`from_scipy` or :meth:`from_networkx`; kept by :meth:`save` and :meth:`load`.

    Shapes:
        - sources ``[S]`` and targets ``[T]``: vertex ids; hubs are allowed
        - distances ``[S, T]``: float32, ``inf`` where there is no path

    Examples
    --------
    Four items around a hub, and a shorter path between the first two:

    >>> import prodige
    >>> graph = prodige.Graph.from_edges([0, 1, 2, 3, 0], [4, 4, 4, 4, 1], [1, 1, 2, 3, 0.5], n_items=4)
    >>> graph
    Graph(n_items=4, n_hubs=1, n_edges=5, numbers_per_item=3.75)
    >>> graph.distances([0])
    array([[0. , 0.5, 3. , 4. ]], dtype=float32)
    >>> graph.path(0, 3)
    [0, 4, 3]
    >>> distances, neighbors = graph.kneighbors([0], k=2)
    >>> neighbors
    array([[1, 2]])
    """

    __slots__ = ("__weakref__", "_edges", "_engine_cache", "_hash", "_lock", "_n_items", "_n_vertices")

    _edges: Edges
    _engine_cache: Engine | None
    _hash: int | None
    _lock: threading.Lock
    _n_items: int
    _n_vertices: int

    def __init__(self) -> None:
        raise TypeError("use Graph.from_edges, Graph.from_scipy or Graph.from_networkx to make a graph")

    @classmethod
    def _make(cls, edges: Edges, n_vertices: int, n_items: int) -> Graph:
        """Wrap edges that are known to be valid, unique and in order."""
        graph = object.__new__(cls)
        for array in edges:
            array.flags.writeable = False
        graph._edges = edges
        graph._n_vertices = n_vertices
        graph._n_items = n_items
        graph._engine_cache = None
        graph._hash = None
        graph._lock = threading.Lock()
        return graph

    # -- making and converting ---------------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls,
        i: ArrayLike,
        j: ArrayLike,
        weight: ArrayLike,
        n_vertices: int | None = None,
        n_items: int | None = None,
    ) -> Graph:
        """Make a graph from undirected edges.

        Parameters
        ----------
        i, j : array-like of int, shape [E]
            The two ends of each edge. Parallel edges keep the smallest weight; self-loops are refused.
        weight : array-like of float, shape [E]
            Lengths, finite and 0 or more. A single number stands for all edges. Stored as float32.
        n_vertices : int, optional
            Number of vertices; one more than the largest id, or ``n_items`` if that is larger, when left out. At most
            2**22, some four million, more than two for each edge: without edges they take memory and mean nothing.
        n_items : int, optional
            The first ``n_items`` vertices are data, the others are hubs. All are data when left out.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0, 1, 1], [1, 0, 2], [3.0, 2.0, 1.0]).distance(0, 2)
        3.0
        """
        i, j, weight = check_vector("i", i), check_vector("j", j), check_vector("weight", weight)
        if i.size != j.size:
            raise ValueError(f"i and j must have the same length, got {i.size} and {j.size}")
        if i.size > MAX_EDGES:
            raise ValueError(f"{i.size} edges make more than 2**31 - 1 arcs; at most {MAX_EDGES} edges are possible")
        if weight.size == 1 and i.size != 1:
            weight = np.broadcast_to(weight, i.shape)
        if weight.size != i.size:
            raise ValueError(f"weight must have one entry per edge, got {weight.size} for {i.size} edges")
        if n_vertices is not None:
            n_vertices = check_integer("n_vertices", n_vertices, 1, MAX_INT32 - 1)
        tails, heads = check_ends("i", i, n_vertices), check_ends("j", j, n_vertices)
        loops = np.flatnonzero(tails == heads)
        if loops.size:
            raise ValueError(
                f"edge {loops[0]} joins vertex {tails[loops[0]]} to itself ({loops.size} such edges): "
                "self-loops have no meaning here, remove them"
            )
        if n_vertices is None:
            largest = int(max(tails.max(initial=-1), heads.max(initial=-1)))
            n_vertices = max(largest + 1, 0 if n_items is None else check_integer("n_items", n_items, 1, MAX_INT32 - 1))
            if n_vertices == 0:
                raise ValueError("a graph without edges needs n_vertices, the number of its vertices")
        n_items = n_vertices if n_items is None else check_integer("n_items", n_items, 1, n_vertices)
        edges = unique_edges(tails, heads, check_weights("weight", weight))
        if problem := find_isolated(n_vertices, edges.i.size):
            raise ValueError(f"{problem}; leave out vertices without edges, and number the others from 0")
        return cls._make(edges, n_vertices, n_items)

    @classmethod
    def from_scipy(cls, matrix: Any, n_items: int | None = None) -> Graph:
        """Make a graph from a sparse matrix, read as :mod:`scipy.sparse.csgraph` reads it with ``directed=False``.

        A stored entry is an edge, also a stored zero. Where both ``[i, j]`` and ``[j, i]`` are stored the smaller
        one counts.

        Parameters
        ----------
        matrix : scipy.sparse array or matrix, shape [V, V]
        n_items : int, optional
            The first ``n_items`` vertices are data, the others are hubs.

        Examples
        --------
        >>> import scipy.sparse
        >>> from prodige import Graph
        >>> Graph.from_scipy(scipy.sparse.csr_array([[0, 2], [0, 0]])).distance(0, 1)
        2.0
        """
        return cls.from_edges(*conversion.edges_of_scipy(matrix), n_vertices=matrix.shape[0], n_items=n_items)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return the symmetric matrix of edge weights, shape [V, V]; edges of weight 0 are stored zeros.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0], [1], [2.0]).to_scipy().toarray()
        array([[0., 2.],
               [2., 0.]], dtype=float32)
        """
        return conversion.to_scipy(self)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, weight: str = "weight", n_items: int | None = None) -> Graph:
        """Make a graph from an undirected networkx graph; its nodes are numbered in the order it lists them.

        Parameters
        ----------
        graph : networkx.Graph or networkx.MultiGraph
        weight : str
            Edge attribute that holds the length; 1 where an edge has none, as in networkx.
        n_items : int, optional
            The first ``n_items`` nodes are data, the others are hubs; taken from the graph's attribute ``n_items``
            when left out, as :meth:`to_networkx` sets it.

        Examples
        --------
        >>> import networkx
        >>> from prodige import Graph
        >>> Graph.from_networkx(networkx.path_graph(4)).distance(0, 3)
        3.0
        """
        return cls.from_edges(
            *conversion.edges_of_networkx(graph, weight),
            n_vertices=graph.number_of_nodes(),
            n_items=graph.graph.get("n_items") if n_items is None else n_items,
        )

    def to_networkx(self) -> networkx.Graph:
        """Return a networkx graph with edge attribute ``weight`` and graph attribute ``n_items``.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0], [1], [2.0]).to_networkx().edges[0, 1]
        {'weight': 2.0}
        """
        return conversion.to_networkx(self)

    def remove(self, items: ArrayLike) -> Graph:
        """Return a graph without some items; distances between the others stay as they are.

        A shortest path of others may lead past an item that is removed. Such items stay as hubs; those at an end of the
        graph go with their edge.

        Parameters
        ----------
        items : array-like of int
            Each once or more often. Items that come after are counted anew.

        Examples
        --------
        >>> from prodige import Graph
        >>> chain = Graph.from_edges([0, 1, 2], [1, 2, 3], 1.0)
        >>> chain.remove([1, 3])
        Graph(n_items=2, n_hubs=1, n_edges=2, numbers_per_item=3.5)
        >>> chain.remove([1, 3]).distance(0, 1)
        2.0
        """
        kept = kept_items(items, self.n_items)
        edges, n = self.edges, self.n_vertices
        i, j, weight = edges.i, edges.j, edges.weight
        is_dropped = np.ones(n, dtype=bool)
        is_dropped[kept] = is_dropped[self.n_items :] = False
        is_end = is_dropped
        while is_end.any():  # what is left of a removed branch ends in another item of it
            degree = np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
            is_end = is_dropped & (degree == 1)
            stays = ~(is_end[i] | is_end[j])
            i, j, weight = i[stays], j[stays], weight[stays]
        is_hub = is_dropped & ((np.bincount(i, minlength=n) + np.bincount(j, minlength=n)) > 0)
        order = np.concatenate([kept, np.arange(self.n_items, n), np.flatnonzero(is_hub)])
        number = np.empty(n, dtype=np.int64)
        number[order] = np.arange(order.size)
        return Graph.from_edges(number[i], number[j], weight, n_vertices=order.size, n_items=kept.size)

    # -- keeping -----------------------------------------------------------------------------------------------------

    def rounded(self, bits: int) -> Graph:
        """Return the graph with weights of so many bits: evenly spaced steps from the least of them to the greatest.

        Its file is as small as one of :meth:`save` with as many bits, and so is what :attr:`bits_per_item` says.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0, 0, 1], [1, 2, 2], [1.0, 1.7, 4.0]).rounded(bits=2).edges.weight
        array([1., 2., 4.], dtype=float32)
        """
        return self._make(
            self._edges._replace(weight=packing.round_weights(self._edges, bits)), self.n_vertices, self.n_items
        )

    def save(self, path: StrPath, metadata: Mapping[str, Any] | None = None, *, bits: int | None = None) -> None:
        """Write the graph to a ``.prodige`` file; one that is there is replaced in one step, or stays as it was.

        Parameters
        ----------
        path : str or path-like
            Written to exactly here, no ending is added.
        metadata : mapping, optional
            Who made it, from what: anything that JSON can hold, under keys that are strings. It is not part of the
            graph; :func:`prodige.graph.container.describe` reads it.
        bits : int, optional
            Round weights to so many bits, 1 to 16: the file is a fraction of its size, and what it holds is
            :meth:`rounded`. Left out, weights are kept as they are; those of a graph that was rounded take no more
            bits for that.

        Examples
        --------
        >>> import tempfile
        >>> from prodige import Graph
        >>> graph = Graph.from_edges([0], [1], [2.0])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     graph.save(f"{directory}/pair.prodige", metadata={"made by": "Ada"})
        ...     Graph.load(f"{directory}/pair.prodige") == graph
        True
        """
        from prodige.graph import file  # which needs the class

        file.write(path, self, metadata, bits)

    @classmethod
    def load(cls, path: StrPath) -> Graph:
        """Read a graph from a ``.prodige`` file. Nothing in the file is trusted.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        prodige.graph.container.FileFormatError
            If the file is damaged, of a newer version, or holds something else, which :func:`prodige.load` may open. It
            is a ``ValueError``.

        Examples
        --------
        >>> import tempfile
        >>> from prodige import Graph
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     Graph.from_edges([0, 1], [1, 2], [2.0, 1.0]).save(f"{directory}/three.prodige")
        ...     Graph.load(f"{directory}/three.prodige").distance(0, 2)
        3.0
        """
        from prodige.graph import file  # which needs the class

        return file.read(path)

    def to_html(
        self,
        path: StrPath,
        *,
        labels: Sequence[Any] | NDArray[Any] | None = None,
        groups: Sequence[Any] | NDArray[Any] | None = None,
        images: NDArray[np.uint8] | None = None,
        positions: ArrayLike | None = None,
        title: str | None = None,
    ) -> None:
        """Write a page that shows the graph in any browser: one file, which asks nothing of the network.

        It can be moved, zoomed and searched; two clicks show the shortest path between two vertices.

        Parameters
        ----------
        path : str or path-like
            The file; one that is there is replaced in one step, or stays as it was.
        labels : sequence, optional
            A name for each item, or for each vertex. Shown as they are: markup in them is text.
        groups : sequence, optional
            What colours show: a value for each item, or for each vertex; at most 256 different ones.
        images : ndarray of uint8, shape [N, h, w], [N, h, w, 3] or [N, h, w, 4], optional
            A thumbnail for each item, or for each vertex: grey, RGB or RGBA, at most 256 pixels high and wide.
        positions : array-like of float, shape [N, 2], optional
            Where items, or all vertices, are drawn; y points up. :func:`prodige.drawing.layout.place` when left out.
        title : str, optional

        Examples
        --------
        >>> import os, tempfile
        >>> from prodige import Graph
        >>> graph = Graph.from_edges([0, 1, 2], [3, 3, 3], [1, 1, 2], n_items=3)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     graph.to_html(f"{directory}/towns.html", labels=["Aachen", "Bonn", "Celle"], groups=[0, 0, 1])
        ...     os.listdir(directory)
        ['towns.html']
        """
        from prodige.drawing import viewer

        viewer.write(path, self, labels, groups, images, positions, title)

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def edges(self) -> Edges:
        """All edges as read-only arrays ``(i, j, weight)``."""
        return self._edges

    @property
    def n_vertices(self) -> int:
        """Number of items and hubs."""
        return self._n_vertices

    @property
    def n_items(self) -> int:
        """Number of vertices that are data: vertices 0 to ``n_items - 1``."""
        return self._n_items

    @property
    def n_hubs(self) -> int:
        """Number of vertices that are no data: the last ones."""
        return self._n_vertices - self._n_items

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return self._edges.i.size

    @property
    def numbers_per_item(self) -> float:
        """Memory as the paper counts it: one number per vertex and two per edge, hubs included, per item."""
        return (self.n_vertices + 2 * self.n_edges) / self.n_items

    @property
    def bits_per_item(self) -> float:
        """Bits of the file that :meth:`save` writes without metadata, everything counted, per item."""
        from prodige.graph import file  # which needs the class

        return 8 * file.size(self) / self.n_items

    def degrees(self) -> NDArray[np.int32]:
        """Return the number of edges at each vertex, shape [V].

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0, 0], [1, 2], [1, 1]).degrees()
        array([2, 1, 1], dtype=int32)
        """
        return self._engine.topology.degrees

    def components(self) -> NDArray[np.int32]:
        """Return the connected component of each vertex, shape [V], numbered by their first vertex.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0], [2], [1], n_vertices=4).components()
        array([0, 1, 0, 2], dtype=int32)
        """
        return self._engine.topology.components

    @property
    def is_connected(self) -> bool:
        """Whether every item can be reached from every other; hubs that nothing needs do not matter."""
        components = self._engine.topology.components[: self.n_items]
        return bool((components == components[0]).all())

    # -- what it answers beside distances ----------------------------------------------------------------------------

    def path(self, i: int, j: int) -> list[int]:
        """Return the vertices of a shortest path from ``i`` to ``j``, both included; empty if there is none.

        Examples
        --------
        >>> from prodige import Graph
        >>> Graph.from_edges([0, 1, 0], [1, 2, 2], [1, 1, 5]).path(0, 2)
        [0, 1, 2]
        """
        i, j = self._vertex("i", i), self._vertex("j", j)
        forest = self._engine.search_pair(i, j)
        vertices, parents = forest.vertices, forest.parents
        position = int(np.flatnonzero(vertices == j).max(initial=-1))
        path = []
        while position >= 0:
            path.append(int(vertices[position]))
            position = parents[position]
        return path[::-1]

    # -- being an object ---------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"Graph(n_items={self.n_items}, n_hubs={self.n_vertices - self.n_items}, n_edges={self.n_edges}, "
            f"numbers_per_item={self.numbers_per_item:.4g})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (
            self.n_vertices == other.n_vertices
            and self.n_items == other.n_items
            and all(np.array_equal(mine, yours) for mine, yours in zip(self._edges, other._edges, strict=True))
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.n_vertices, self.n_items, *(column.tobytes() for column in self._edges)))
        return self._hash

    def __copy__(self) -> Graph:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return restore, (*self._edges, self.n_vertices, self.n_items)

    @property
    def _n_queryable(self) -> int:
        return self._n_vertices

    @property
    def _engine(self) -> Engine:
        with self._lock:
            if self._engine_cache is None:
                i, j, weight = self._edges
                self._engine_cache = Engine(_core.Topology(self.n_vertices, i, j), weight, self.n_items)
            return self._engine_cache


def restore(
    i: NDArray[np.int32], j: NDArray[np.int32], weight: NDArray[np.float32], n_vertices: int, n_items: int
) -> Graph:
    """Rebuild a pickled graph. Goes through all checks: a pickle is not to be trusted."""
    return Graph.from_edges(i, j, weight, n_vertices, n_items)
