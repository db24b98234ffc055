"""Placing: where a user belongs by what it met, or an item by whom it was met, in a product that is there already.

It is one step of the teacher, over the words of the other side: with o what speaks for a partner whoever meets it, the
vector x and a constant c of the row make Σ_met w (x·y + c + o − 1)² + α Σ_all (x·y + c + o)² and the ridge least. Users
that are not stored stay there; others get the words that lose the least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.recommendation.codes import Words, choose
from prodige.recommendation.sides import Floats, Side, gram, padded
from prodige.threads import one_thread


@dataclass(frozen=True)
class Constants:
    """What it takes to place a user or an item by its interactions.

    Attributes
    ----------
    alpha : float
        Weight of a pair that says nothing yet.
    ridge : float
        For each unit of weight, on the scale of the words.
    level : float
        What scores of all pairs have in common, which distances leave out.
    scale : float
        The weight of interactions that counts as 1.
    """

    alpha: float
    ridge: float
    level: float
    scale: float


class Placing:
    """Least squares over the vectors of one side, for rows of the other.

    Parameters
    ----------
    partners : ndarray of float32, shape [P, d]
        Vectors of the side that is there.
    offsets : ndarray of float32, shape [P]
        What the score of each partner has in it already.
    constants : Constants

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.placing import Constants, Placing
    >>> items = np.array([[1.0], [1.0], [-1.0], [-1.0]], np.float32)
    >>> placing = Placing(items, np.zeros(4, np.float32), Constants(0.1, 0.01, 0.0, 1.0))
    >>> vectors, _ = placing.solve(csr_array([[1.0, 0, 0, 0], [0, 0, 1.0, 1.0]]), n_jobs=1)
    >>> vectors.ravel() > 0
    array([ True, False])
    """

    def __init__(self, partners: Floats, offsets: Floats, constants: Constants) -> None:
        self.size = partners.shape[1]
        self.constants = constants
        self.offsets = offsets
        self.vectors = padded(np.concatenate([partners, np.ones((len(partners), 1), np.float32)], axis=1))
        with one_thread():
            self.every = (constants.alpha * gram(self.vectors)).astype(np.float32)
        self.pull = (-constants.alpha * (offsets.astype(np.float64) @ self.vectors)).astype(np.float32)

    def side(self, rows: csr_array) -> Side:
        """Return rows as a side, their weights on the scale of those that the model was fitted to."""
        weights = csr_array((rows.data / self.constants.scale, rows.indices, rows.indptr), shape=rows.shape)
        return Side.of(weights.astype(np.float32))

    def solve(self, rows: csr_array, n_jobs: int, idle_at_mean: bool = True) -> tuple[Floats, Floats]:
        """Return the vectors of rows, shape [R, d], and their constants, shape [R].

        Rows without interactions have a vector of 0, that of the mean: nobody knows of a user what it does not like.
        Not so items, as an item that nobody met is one that people do not choose.
        """
        side = self.side(rows)
        ridge = self.constants.ridge * (side.totals + self.constants.alpha * side.n_partners)
        extra = np.repeat(self.pull[None], side.n_rows, axis=0)
        targets = (1 - self.offsets[rows.indices]).astype(np.float32)
        found = side.fit.solve(self.vectors, self.every, targets, ridge.astype(np.float32), extra, n_jobs)
        if idle_at_mean:
            found[side.totals == 0] = 0
        return np.ascontiguousarray(found[:, : self.size]), found[:, self.size].copy()

    def code(
        self, rows: csr_array, books: tuple[Floats, ...], n_jobs: int, idle_at_mean: bool = True
    ) -> tuple[NDArray[np.uint16], Floats]:
        """Return the words of rows that are nearest to where least squares put them, and the constants of those."""
        side = self.side(rows)
        vectors, constants = self.solve(rows, n_jobs, idle_at_mean)
        wide = padded(np.concatenate([vectors, np.zeros((len(vectors), 1), np.float32)], axis=1))
        targets = side.fit.scores(wide, self.vectors, n_jobs)
        start = Words(np.zeros((side.n_rows, len(books)), np.uint16), books)
        codes = choose(side.fit, self.vectors, self.every, targets, wide @ self.every, start, False, n_jobs)[0]
        return codes, constants

    def shares(self, partners: NDArray[np.int64], weights: Floats, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each interaction of a row adds to its product with a vector of the other side."""
        met, size = self.vectors[partners].astype(np.float64), self.size + 1
        counts = weights.astype(np.float64) / self.constants.scale
        ridge = self.constants.ridge * (counts.sum() + self.constants.alpha * len(self.vectors))
        matrix = self.every.astype(np.float64) + (met.T * counts) @ met + ridge * np.eye(met.shape[1])
        wanted = np.linalg.solve(matrix[:size, :size], np.append(vector, 0.0))
        return np.asarray(counts * (1 - self.offsets[partners]) * (met[:, :size] @ wanted))
