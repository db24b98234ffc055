"""Vectors: what a product says of users and items as products of matrices.

In a product of bipartite factors the distance of a user and an item is Σ shift + e − x·y, with the words of either side
written one after the other as x and y. So scores of many users are one product of matrices. Where users are not stored,
factors have positions instead, D² = |x − y|² + e, and a user is wherever its interactions put it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.graph.bipartite import BipartiteFactor
from prodige.graph.factors import GeometricFactor
from prodige.graph.product import ProductGraph
from prodige.recommendation.placing import Constants, Placing
from prodige.recommendation.sides import Floats

Ids = NDArray[np.int64]


class Vectors:
    """Users and items of a product as vectors.

    Parameters
    ----------
    graph : ProductGraph
        Of users, then items, with bipartite factors; or of items alone, with positions.
    n_users : int
        Of the graph: 0 where users are not stored.
    constants : Constants
    """

    def __init__(self, graph: ProductGraph, n_users: int, constants: Constants) -> None:
        self.graph = graph
        self.n_users = n_users
        self.constants = constants
        self.stores_users = n_users > 0

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.graph.n_items - self.n_users

    def books(self, of_users: bool) -> tuple[Floats, ...]:
        """Return the words of one side in each factor."""
        found = []
        for factor in self.graph.factors:
            if isinstance(factor, BipartiteFactor):
                found.append(factor.first if of_users else factor.second)
            else:
                assert isinstance(factor, GeometricFactor)
                found.append(factor.positions)
        return tuple(found)

    @cached_property
    def _offsets(self) -> Ids:
        """The first hub of items in each factor."""
        factors = self.graph.factors
        return np.array([factor.n_first if isinstance(factor, BipartiteFactor) else 0 for factor in factors])

    @cached_property
    def item_codes(self) -> NDArray[np.uint16]:
        """Words of items, shape [I, M]."""
        return (self.graph.codes[self.n_users :] - self._offsets).astype(np.uint16)

    @cached_property
    def items(self) -> Floats:
        """Vectors of items, shape [I, d]."""
        return spell(self.books(of_users=False), self.item_codes)

    def users(self, ids: Ids) -> Floats:
        """Return vectors of users, shape [U, d]."""
        return spell(self.books(of_users=True), self.graph.codes[ids])

    @cached_property
    def bias(self) -> Floats:
        """What speaks for an item whoever is asked, shape [I]; higher is better."""
        lengths = self.graph.lengths[self.n_users :].astype(np.float64)
        squares = np.square(self.items, dtype=np.float64).sum(axis=1)
        bias = -lengths if self.stores_users else -(lengths + squares) / 2
        return np.asarray(bias - bias.mean(), np.float32)

    @property
    def placing(self) -> Placing:
        """What finds where users are from the items they interacted with."""
        return Placing(self.items, self.bias, self.constants)

    @cached_property
    def _rows(self) -> Floats:
        """What vectors of users, and a 1, are multiplied with: shape [I, d + 1]."""
        lengths = self.graph.lengths[self.n_users :].astype(np.float64)
        if self.stores_users:
            shifts = [factor.shift for factor in self.graph.factors if isinstance(factor, BipartiteFactor)]
            last, factor = -(lengths + sum(shifts)), 1
        else:
            last, factor = -(lengths + np.square(self.items, dtype=np.float64).sum(axis=1)), 2
        return np.concatenate([factor * self.items, last[:, None].astype(np.float32)], axis=1)

    def scores(self, vectors: Floats) -> Floats:
        """Return distances of users with these vectors to all items, below 0, shape [U, I].

        Those of a user have the same bits whoever else is asked about.
        """
        extended = np.ones((len(vectors), vectors.shape[1] + 1), np.float32)
        extended[:, :-1] = vectors
        scores = _core.multiply_rows(extended, self._rows, 1)
        if not self.stores_users:
            scores -= np.square(vectors).sum(axis=1, keepdims=True)
            np.negative(np.sqrt(np.maximum(np.negative(scores, out=scores), 0, out=scores), out=scores), out=scores)
        return scores


def spell(books: tuple[Floats, ...], codes: NDArray[np.integer]) -> Floats:
    """Return the vectors that words make, shape [rows, d].

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.vectors import spell
    >>> spell((np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]])), np.array([[1, 0], [0, 0]]))
    array([[2., 3., 4.],
           [1., 3., 4.]])
    """
    return np.concatenate([book[column] for book, column in zip(books, codes.T, strict=True)], axis=1)
