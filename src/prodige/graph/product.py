"""ProductGraph: many small graphs whose distances add up.

In a product of graphs a vertex is a tuple, one hub of each factor, and the shortest path between two vertices is as
long as the shortest paths in the factors together. So a few small graphs stand for one with more vertices than any
memory holds, and an item is a few short codes. With ``d_m`` the distance in factor ``m``, ``c_m(i)`` the hub of item
``i`` in it and ``e_i`` a length of the item's own,

    D(i, j) = (e_i + e_j + Σ_m d_m(c_m(i), c_m(j)) ** power) ** (1 / gauge)        for i ≠ j

or, where lengths are those of *pendant* edges, by which items hang on their vertices,

    D(i, j) = e_i + e_j + (Σ_m d_m(c_m(i), c_m(j)) ** power) ** (1 / gauge)        for i ≠ j.

Where ``power`` is at most ``gauge``, D is a metric: ``d ** (power / gauge)`` is one, as every concave power of a metric
is, and their l_p product with p = gauge is one, too (Minkowski's inequality). With 1 and 1 it is the Cartesian product
of graphs, with 2 and 2 what Pythagoras says of sides at right angles.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige._validation import kept_items
from prodige.graph.atomic import StrPath
from prodige.graph.bipartite import count_first
from prodige.graph.engine import ProductEngine
from prodige.graph.factors import Factor
from prodige.graph.grid import Grid
from prodige.graph.product_parts import (
    AnyFactor,
    by_first_item,
    check_codes,
    check_exponent,
    check_factors,
    check_lengths,
    check_places,
    check_sizes,
    frozen,
    join_lengths,
    numbers_of_places,
    same,
    step_tables,
    take_lengths,
    values_of,
)
from prodige.graph.queryable import Queryable


class ProductGraph(Queryable):
    """A product of small graphs: an item is one hub in each of them, and a length of its own.

    Made by :meth:`from_factors`; kept by :meth:`save` and :meth:`load`. It answers what a
    :class:`~prodige.graph.graph.Graph` answers. Vertices are items; hubs belong to the factors and have no ids here.

    Examples
    --------
    Six items on a grid of three columns and two rows, with distances as the crow flies:

    >>> import prodige
    >>> columns, rows = [[0.0], [1.0], [2.0]], [[0.0], [1.0]]
    >>> codes = [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
    >>> product = prodige.ProductGraph.from_factors([columns, rows], codes, [0.0] * 6)
    >>> product
    ProductGraph(n_items=6, n_factors=2, n_hubs=5, power=2, gauge=2, numbers_per_item=3.833)
    >>> product.distances([0])
    array([[0.       , 1.       , 2.       , 1.       , 1.4142135, 2.236068 ]],
          dtype=float32)
    >>> product.path(0, 5)
    [[0, 2], [0, 1]]
    """

    __slots__ = (
        "__weakref__",
        "_codes",
        "_engine_cache",
        "_factors",
        "_gauge",
        "_hash",
        "_lengths",
        "_lock",
        "_n_bytes",
        "_pendant",
        "_places",
        "_power",
    )

    _codes: NDArray[np.int32]
    _engine_cache: ProductEngine | None
    _factors: tuple[Factor, ...]
    _gauge: float
    _hash: int | None
    _lengths: NDArray[np.float32] | Grid
    _lock: threading.Lock
    _n_bytes: int | None
    _pendant: bool
    _places: NDArray[np.int32] | None
    _power: float

    def __init__(self) -> None:
        raise TypeError("use ProductGraph.from_factors to make a product of graphs")

    @classmethod
    def from_factors(
        cls,
        factors: Sequence[AnyFactor],
        codes: ArrayLike,
        lengths: ArrayLike | Grid,
        power: float = 2.0,
        gauge: float = 2.0,
        places: ArrayLike | None = None,
        pendant: bool = False,
    ) -> ProductGraph:
        """Make a product of graphs.

        Parameters
        ----------
        factors : sequence of Graph, Factor, Grid or array-like of float, shape [H, k]
            M of them, 256 at most. Arrays and grids are positions of hubs, see
            :class:`~prodige.graph.factors.GeometricFactor`; items of a graph are hubs.
        codes : array-like of int, shape [V, M]
            The hub of each vertex in each factor.
        lengths : array-like of float or Grid, shape [V]
            What a vertex adds to all its distances, before the gauge or after it; finite and 0 or more.
        power, gauge : float
            1 to 2. Distances in factors are taken to ``power`` and added up; of the sum the root of ``gauge`` is taken.
        places : array-like of int, shape [N], optional
            The vertex of each item, where items may share one: they are at distance 0. Every vertex has an item. When
            left out item ``i`` is vertex ``i``.
        pendant : bool
            Whether lengths are those of edges that items hang by: they add to distances, not to sums before the gauge.

        Examples
        --------
        >>> from prodige import Graph, ProductGraph
        >>> ring = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], 1.0)
        >>> product = ProductGraph.from_factors([ring, ring], [[0, 0], [2, 1]], [0.0, 0.5], power=1, gauge=1)
        >>> product.distance(0, 1)
        3.5
        """
        given = check_factors(factors)
        product = object.__new__(cls)
        product._factors = given
        product._power, product._gauge = check_exponent("power", power), check_exponent("gauge", gauge)
        product._pendant = bool(pendant)
        product._codes = check_codes(codes, [factor.n_hubs for factor in given])
        product._lengths = check_lengths(lengths, len(product._codes))
        product._places = None if places is None else check_places(places, len(product._codes))
        if product._places is not None:
            product._codes, product._lengths, product._places = by_first_item(
                product._codes, product._lengths, product._places
            )
        check_sizes(given, len(product._codes), float(product._vertex_lengths.max()), product._power)
        product._engine_cache = product._hash = product._n_bytes = None
        product._lock = threading.Lock()
        return product

    def with_places(self, places: ArrayLike) -> ProductGraph:
        """Return a product of which several items may share a vertex, and so be at distance 0.

        Parameters
        ----------
        places : array-like of int, shape [N]
            Which item of this product each item of the new one is.

        Examples
        --------
        >>> from prodige import ProductGraph
        >>> product = ProductGraph.from_factors([[[0.0], [3.0]]], [[0], [1]], [0.0, 0.0])
        >>> product.with_places([0, 1, 1]).distances([2])
        array([[3., 0., 0.]], dtype=float32)
        """
        if self._places is not None:
            places = self._places[check_places(places, self.n_items)]
        return self.with_vertices(self._codes, self._lengths, places)

    def with_vertices(
        self, codes: ArrayLike, lengths: ArrayLike | Grid, places: ArrayLike | None = None
    ) -> ProductGraph:
        """Return a product of the same factors with other vertices.

        Parameters
        ----------
        codes, lengths, places
            As of :meth:`from_factors`.

        Examples
        --------
        >>> from prodige import ProductGraph
        >>> product = ProductGraph.from_factors([[[0.0], [3.0]]], [[0], [1]], [0.0, 0.0])
        >>> product.with_vertices([[1], [1], [0]], [8.0, 8.0, 0.0]).distance(0, 1)
        4.0
        """
        return ProductGraph.from_factors(self._factors, codes, lengths, self._power, self._gauge, places, self._pendant)

    def with_items(self, codes: ArrayLike, lengths: ArrayLike | Grid) -> ProductGraph:
        """Return a product with further items after those that are there.

        Parameters
        ----------
        codes : array-like of int, shape [K, M]
        lengths : array-like of float or Grid, shape [K]
            All lengths are on a grid afterwards only where those that are there and these are on the same.

        Examples
        --------
        >>> from prodige import ProductGraph
        >>> product = ProductGraph.from_factors([[[0.0], [3.0]]], [[0], [1]], [0.0, 0.0])
        >>> product.with_items([[1]], [16.0]).distance(0, 2)
        5.0
        """
        n_vertices, more = len(self._codes), np.asarray(codes)
        all_lengths = join_lengths(self._lengths, lengths)
        places = None
        if self._places is not None:
            places = np.concatenate([self._places, n_vertices + np.arange(len(more))])
        all_codes = np.concatenate([self._codes, more])
        return self.with_vertices(all_codes, all_lengths, places)

    def remove(self, items: ArrayLike) -> ProductGraph:
        """Return a product without some items; distances between the others stay as they are.

        Parameters
        ----------
        items : array-like of int
            Each once or more often. Items that come after are counted anew.

        Examples
        --------
        >>> from prodige import ProductGraph
        >>> product = ProductGraph.from_factors([[[0.0], [3.0], [7.0]]], [[0], [1], [2]], [0.0] * 3)
        >>> product.remove([1]).distances([0])
        array([[0., 7.]], dtype=float32)
        """
        kept = kept_items(items, self.n_items)
        places = kept if self._places is None else self._places[kept]
        vertices, places = np.unique(places, return_inverse=True)
        lengths = take_lengths(self._lengths, vertices)
        return self.with_vertices(self._codes[vertices], lengths, None if self._places is None else places)

    # -- keeping -----------------------------------------------------------------------------------------------------

    def save(self, path: StrPath, metadata: Mapping[str, Any] | None = None) -> None:
        """Write the product to a ``.prodige`` file; one that is there is replaced in one step, or stays as it was.

        Codes take as many bits as their factor needs; positions and lengths that are a
        :class:`~prodige.graph.grid.Grid` take the bits of their levels, others 32.

        Parameters
        ----------
        path : str or path-like
            Written to exactly here, no ending is added.
        metadata : mapping, optional
            Who made it, from what: anything that JSON can hold, under keys that are strings. It is not part of the
            product; :func:`prodige.graph.container.describe` reads it.

        Examples
        --------
        >>> import tempfile
        >>> from prodige import ProductGraph
        >>> product = ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1], [1]], [0.0, 0.5, 0.25])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     product.save(f"{directory}/three.prodige", metadata={"made by": "Ada"})
        ...     ProductGraph.load(f"{directory}/three.prodige") == product
        True
        """
        from prodige.graph import file  # which needs the class

        file.write(path, self, metadata)

    @classmethod
    def load(cls, path: StrPath) -> ProductGraph:
        """Read a product of graphs from a ``.prodige`` file. Nothing in the file is trusted.

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
        >>> from prodige import ProductGraph
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     product = ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1]], [1.5, 1.5])
        ...     product.save(f"{directory}/pair.prodige")
        ...     ProductGraph.load(f"{directory}/pair.prodige").distance(0, 1)
        2.0
        """
        from prodige.graph import file  # which needs the class

        return file.read_product(path)

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
        """Write a page that shows the items in any browser, joined to those that are nearest by this graph.

        A product has more vertices than a page can show. So what is drawn are items, each joined to its few nearest by
        an edge as long as their distance; paths in the page go over those edges, and the page says so.

        Parameters
        ----------
        path : str or path-like
            The file; one that is there is replaced in one step, or stays as it was.
        labels, groups, images, positions, title
            As of :meth:`Graph.to_html() <prodige.graph.graph.Graph.to_html>`, one for each item.

        Examples
        --------
        >>> import os, tempfile
        >>> from prodige import ProductGraph
        >>> product = ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1], [1]], [0.0, 0.5, 0.25])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     product.to_html(f"{directory}/towns.html", labels=["Aachen", "Bonn", "Celle"])
        ...     os.listdir(directory)
        ['towns.html']
        """
        from prodige.drawing import viewer

        viewer.write_neighbors(path, self, labels, groups, images, positions, title)

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self._codes) if self._places is None else self._places.size

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self._factors)

    @property
    def n_hubs(self) -> int:
        """Number of hubs of all factors."""
        return sum(factor.n_hubs for factor in self._factors)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors, each a :class:`~prodige.graph.factors.Factor` of one kind or the other."""
        return self._factors

    @property
    def codes(self) -> NDArray[np.int32]:
        """The hub of each item in each factor, shape [N, M]; read-only."""
        return self._codes if self._places is None else frozen(self._codes[self._places])

    @property
    def lengths(self) -> NDArray[np.float32]:
        """What each item adds to its distances, before the gauge or after it, shape [N]; read-only."""
        lengths = self._vertex_lengths
        return lengths if self._places is None else frozen(lengths[self._places])

    @property
    def length_grid(self) -> Grid | None:
        """The grid that lengths are on, None where they are kept as they are."""
        return self._lengths if isinstance(self._lengths, Grid) else None

    @property
    def n_first(self) -> int:
        """Vertices of the first side, where all factors have two sides and those of the first come first; else 0.

        They have no lengths, and a code of theirs takes as many bits as the hubs of their side need.
        """
        return count_first(self._factors, self._codes, self._lengths)

    @property
    def places(self) -> NDArray[np.int32] | None:
        """The vertex of each item, shape [N], where some share one; None where none do. Read-only."""
        return self._places

    @property
    def power(self) -> float:
        """What distances in factors are taken to before they are added up."""
        return self._power

    @property
    def gauge(self) -> float:
        """Which root of the sum is the distance."""
        return self._gauge

    @property
    def pendant(self) -> bool:
        """Whether lengths are those of edges that items hang by, and add to distances themselves."""
        return self._pendant

    @property
    def is_metric(self) -> bool:
        """Whether the triangle inequality holds for sure: ``power`` is at most ``gauge``."""
        return self._power <= self._gauge

    @property
    def is_connected(self) -> bool:
        """Whether there is a path between any two items."""
        used = [np.unique(column) for column in self._codes.T]
        return all(
            bool(np.isfinite(factor.distances()[np.ix_(hubs[:1], hubs)]).all())
            for factor, hubs in zip(self._factors, used, strict=True)
        )

    @property
    def numbers_per_item(self) -> float:
        """Memory with every code, length and number of the factors counted as one, per item.

        Vertices of the first side of bipartite factors have no lengths, see :attr:`n_first`.
        """
        n_vertices = len(self._codes)
        n_numbers = self._codes.size + n_vertices - self.n_first + sum(factor.n_numbers for factor in self._factors)
        return (n_numbers + numbers_of_places(self.n_items, n_vertices)) / self.n_items

    @property
    def bits_per_item(self) -> float:
        """Bits of the file that :meth:`save` writes without metadata, everything counted, per item."""
        from prodige.graph import file  # which needs the class

        if self._n_bytes is None:
            self._n_bytes = file.size(self)
        return 8 * self._n_bytes / self.n_items

    # -- what it answers beside distances ----------------------------------------------------------------------------

    def path(self, i: int, j: int) -> list[list[int]]:
        """Return the hubs of a shortest path between two items in each factor; an empty list where there is none.

        Examples
        --------
        >>> from prodige import Graph, ProductGraph
        >>> chain = Graph.from_edges([0, 1], [1, 2], [1.0, 1.0])
        >>> product = ProductGraph.from_factors([chain, [[0.0], [3.0]]], [[0, 1], [2, 1]], [0.0, 0.0])
        >>> product.path(0, 1)
        [[0, 1, 2], [1]]
        """
        i, j = self._vertex("i", i), self._vertex("j", j)
        tails, heads = (self._codes[v if self._places is None else self._places[v]].tolist() for v in (i, j))
        return [factor.path(g, h) for factor, g, h in zip(self._factors, tails, heads, strict=True)]

    # -- being an object ---------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"ProductGraph(n_items={self.n_items}, n_factors={self.n_factors}, n_hubs={self.n_hubs}, "
            f"power={self.power:g}, gauge={self.gauge:g}, {'pendant=True, ' * self.pendant}"
            f"numbers_per_item={self.numbers_per_item:.4g})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProductGraph):
            return NotImplemented
        mine, yours = ((one.power, one.gauge, one.pendant, one._factors) for one in (self, other))
        return mine == yours and all(
            same(mine, yours)
            for mine, yours in (
                (self._codes, other._codes),
                (self._lengths, other._lengths),
                (self._places, other._places),
            )
        )

    def __hash__(self) -> int:
        if self._hash is None:
            lengths = self._lengths if isinstance(self._lengths, Grid) else self._lengths.tobytes()
            places = None if self._places is None else self._places.tobytes()
            exponents = self.power, self.gauge, self.pendant
            self._hash = hash((self._factors, self._codes.tobytes(), lengths, places, exponents))
        return self._hash

    def __copy__(self) -> ProductGraph:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> ProductGraph:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Through all checks: a pickle is not to be trusted.
        return ProductGraph.from_factors, (
            self._factors,
            self._codes,
            self._lengths,
            self.power,
            self.gauge,
            self._places,
            self.pendant,
        )

    @property
    def _vertex_lengths(self) -> NDArray[np.float32]:
        return values_of(self._lengths)

    @property
    def _n_queryable(self) -> int:
        return self.n_items

    @property
    def _engine(self) -> ProductEngine:
        with self._lock:
            if self._engine_cache is None:
                n_hubs = np.array([factor.n_hubs for factor in self._factors], dtype=np.int32)
                tables = step_tables(self._factors, self._power)
                self._engine_cache = ProductEngine(
                    n_hubs, tables, self.codes, self.lengths, self._places, self._gauge, self._pendant
                )
            return self._engine_cache
