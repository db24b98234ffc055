"""Bipartite factors: hubs of two sides, each of the one joined to each of the other.

A product for recommendation has users at hubs of the first side and items at hubs of the second. Hubs of both sides
have words, and the edge between two of them is the shorter the larger the product of their words: with words C and E it
is shift − C_g·E_h. The shift is the same for all edges and so changes no order. It is large enough that edges are not
negative, and that three edges are never shorter than one: the edge itself is the shortest path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige.graph.factors import MAX_HUBS, Factor, check_positions
from prodige.graph.graph import Graph
from prodige.graph.grid import Grid

# A little more than the least shift, so that rounding to float32 makes no path of three edges the shorter one.
_MARGIN = 1e-6


class BipartiteFactor(Factor):
    """Hubs of two sides with words; edges join hubs of different sides alone.

    Hubs are numbered through: those of the first side, then those of the second.

    Parameters
    ----------
    first, second : array-like of float, shapes [H, k] and [I, k], or Grids of those shapes
        Words, kept exactly as float32, or in the bits of the grid.

    Examples
    --------
    >>> from prodige.graph.bipartite import BipartiteFactor
    >>> factor = BipartiteFactor([[1.0], [-1.0]], [[0.5], [0.0]])
    >>> factor
    BipartiteFactor(n_first=2, n_second=2, n_dimensions=1)
    >>> factor.distances().round(2)
    array([[0. , 2. , 0.5, 1. ],
           [2. , 0. , 1.5, 1. ],
           [0.5, 1.5, 0. , 1.5],
           [1. , 1. , 1.5, 0. ]], dtype=float32)
    >>> factor.path(0, 1)
    [0, 2, 1]
    """

    __slots__ = ("_grids", "_words")

    _grids: tuple[Grid | None, Grid | None]
    _words: tuple[NDArray[np.float32], NDArray[np.float32]]

    def __init__(self, first: ArrayLike | Grid, second: ArrayLike | Grid) -> None:
        given = {"first": first, "second": second}
        self._grids = tuple(words if isinstance(words, Grid) else None for words in given.values())  # type: ignore[assignment]
        self._words = tuple(check_words(name, words) for name, words in given.items())  # type: ignore[assignment]
        if self.first.shape[1] != self.second.shape[1]:
            raise ValueError(
                f"first has words of {self.first.shape[1]} coordinates and second of {self.second.shape[1]}; "
                "both sides need the same"
            )
        if self.n_hubs > MAX_HUBS:
            raise ValueError(f"first and second have {self.n_hubs} hubs; at most {MAX_HUBS} are possible")
        if not self.reach <= float(np.finfo(np.float32).max):
            raise ValueError(
                f"first and second make distances of {self.reach:.4g}, which float32 cannot hold; scale them"
            )

    @property
    def first(self) -> NDArray[np.float32]:
        """Words of the first side, shape [H, k]; read-only."""
        return self._words[0]

    @property
    def second(self) -> NDArray[np.float32]:
        """Words of the second side, shape [I, k]; read-only."""
        return self._words[1]

    @property
    def grids(self) -> tuple[Grid | None, Grid | None]:
        """The grids that the words of both sides are on, None where they are kept as they are."""
        return self._grids

    @property
    def n_first(self) -> int:
        """Hubs of the first side."""
        return len(self.first)

    @property
    def n_second(self) -> int:
        """Hubs of the second side."""
        return len(self.second)

    @property
    def n_dimensions(self) -> int:
        """Coordinates of a word."""
        return int(self.first.shape[1])

    @property
    def n_hubs(self) -> int:
        """Hubs of both sides."""
        return self.n_first + self.n_second

    @property
    def n_numbers(self) -> int:
        """Numbers that it takes to write the factor down: the words of both sides."""
        return self.first.size + self.second.size

    @property
    def shift(self) -> float:
        """What every edge is longer than the product of its words below 0.

        Examples
        --------
        >>> from prodige.graph.bipartite import BipartiteFactor
        >>> round(BipartiteFactor([[1.0], [-1.0]], [[0.5], [0.0]]).shift, 3)
        1.0
        """
        products = self._products()
        return shift_of(float(products.min()), float(products.max()))

    @property
    def graph(self) -> Graph:
        """The bipartite graph, made anew each time."""
        g, h = np.divmod(np.arange(self.n_first * self.n_second), self.n_second)
        return Graph.from_edges(g, self.n_first + h, self.edges().ravel(), n_vertices=self.n_hubs)

    @property
    def reach(self) -> float:
        """A bound on the distances: two edges of the greatest length."""
        products = self._products()
        least, greatest = float(products.min()), float(products.max())
        return 2 * (shift_of(least, greatest) - least)

    def _products(self) -> NDArray[np.float64]:
        # One coordinate after the other: the same bits whatever library multiplies matrices.
        products = np.zeros((self.n_first, self.n_second))
        with np.errstate(over="ignore", invalid="ignore"):
            for one, other in zip(self.first.T.astype(np.float64), self.second.T.astype(np.float64), strict=True):
                products += one[:, None] * other
        return products

    def edges(self) -> NDArray[np.float32]:
        """Return the lengths of all edges, shape [H, I].

        Examples
        --------
        >>> from prodige.graph.bipartite import BipartiteFactor
        >>> BipartiteFactor([[1.0], [-1.0]], [[0.5], [0.0]]).edges().round(2)
        array([[0.5, 1. ],
               [1.5, 1. ]], dtype=float32)
        """
        products = self._products()
        return np.asarray(shift_of(float(products.min()), float(products.max())) - products, np.float32)

    def distances(self) -> NDArray[np.float32]:
        """Return the distances between all hubs, shape [H + I, H + I]: symmetric to the bit, 0 on the diagonal.

        Examples
        --------
        >>> from prodige.graph.bipartite import BipartiteFactor
        >>> BipartiteFactor([[1.0]], [[0.5], [0.0]]).distances().round(2)
        array([[0.  , 0.25, 0.75],
               [0.25, 0.  , 1.  ],
               [0.75, 1.  , 0.  ]], dtype=float32)
        """
        edges, n_first = self.edges(), self.n_first
        distances = np.empty((self.n_hubs, self.n_hubs), np.float32)
        distances[:n_first, n_first:] = edges
        distances[n_first:, :n_first] = edges.T
        distances[:n_first, :n_first] = over_one(edges)
        distances[n_first:, n_first:] = over_one(edges.T)
        np.fill_diagonal(distances, 0)
        return distances

    def path(self, g: int, h: int) -> list[int]:
        """Return the vertices of a shortest path between two hubs, both included: over one hub within a side.

        Examples
        --------
        >>> from prodige.graph.bipartite import BipartiteFactor
        >>> factor = BipartiteFactor([[1.0], [-1.0]], [[0.5], [0.0]])
        >>> factor.path(1, 3), factor.path(2, 3), factor.path(1, 1)
        ([1, 3], [2, 0, 3], [1])
        """
        if g == h:
            return [g]
        n_first = self.n_first
        if (g < n_first) != (h < n_first):
            return [g, h]
        edges = self.edges() if g < n_first else self.edges().T
        offset = 0 if g < n_first else n_first
        between = int((edges[g - offset] + edges[h - offset]).argmin())
        return [g, between + (n_first if g < n_first else 0), h]

    def __repr__(self) -> str:
        bits = "".join(
            f", {name}_bits={grid.bits}"
            for name, grid in zip(("first", "second"), self._grids, strict=True)
            if grid is not None
        )
        return (
            f"BipartiteFactor(n_first={self.n_first}, n_second={self.n_second}, n_dimensions={self.n_dimensions}{bits})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BipartiteFactor):
            return NotImplemented
        return self._grids == other._grids and all(
            np.array_equal(mine, yours) for mine, yours in zip(self._words, other._words, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self._grids, *(words.tobytes() for words in self._words)))

    def __reduce__(self) -> tuple[Any, ...]:
        kept = zip(self._words, self._grids, strict=True)
        return BipartiteFactor, tuple(words if grid is None else grid for words, grid in kept)


def shift_of(least: float, greatest: float) -> float:
    """Return the shift of products between two numbers: edges from a to 3 a, and a little.

    Examples
    --------
    >>> from prodige.graph.bipartite import shift_of
    >>> round(shift_of(-1.0, 1.0), 3)
    2.0
    """
    return (3 * greatest - least) / 2 + _MARGIN * max(abs(least), abs(greatest))


def over_one(edges: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the shortest ways from row to row over one column, shape [rows, rows]."""
    best = np.full((len(edges), len(edges)), np.inf, np.float32)
    for column in edges.T:
        np.minimum(best, column[:, None] + column, out=best)
    return best


def count_first(factors: Sequence[Factor], codes: NDArray[np.int32], lengths: NDArray[np.float32] | Grid) -> int:
    """Return how many vertices are of the first side in all factors, if they come first and have no length; else 0.

    Then a code names a hub of its own side, and only the others have lengths.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.bipartite import BipartiteFactor, count_first
    >>> factor = BipartiteFactor([[1.0], [-1.0]], [[0.5], [0.0]])
    >>> count_first([factor], np.array([[1], [0], [2]]), np.array([0.0, 0.0, 1.5], np.float32))
    2
    """
    bipartite = [factor for factor in factors if isinstance(factor, BipartiteFactor)]
    if len(bipartite) < len(factors) or all(factor.n_first == 1 for factor in bipartite):
        return 0
    is_first = codes < np.array([factor.n_first for factor in bipartite])
    n_first = int(is_first[:, 0].sum())
    levels = lengths.levels if isinstance(lengths, Grid) else lengths
    is_sided = (
        0 < n_first < len(is_first)
        and is_first[:n_first].all()
        and not is_first[n_first:].any()
        and not levels[:n_first].any()
        and not (isinstance(lengths, Grid) and lengths.least != 0)
    )
    return n_first if is_sided else 0


def check_words(name: str, words: ArrayLike | Grid) -> NDArray[np.float32]:
    """Return the words of a side as float32."""
    try:
        array = words.values if isinstance(words, Grid) else check_positions(words)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("positions", name, 1)) from None
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must have the shape [hubs, coordinates], got {array.shape}")
    return array
