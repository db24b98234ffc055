"""Interactions from either side: what users met, and by whom items were met, ready for alternating least squares.

Each side's vectors follow from the other's by one least-squares problem a row, which the core solves. What all partners
together add to every row's problem, met or not, is one small matrix; so the zeros of the matrix cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige import _core

Floats = NDArray[np.float32]

# Rows that one product of matrices is made over: sums of parts are added in their order, in double precision.
_PART = 1 << 14


@dataclass(frozen=True)
class Side:
    """One side: its rows, what each row met, and how much that counts.

    Attributes
    ----------
    fit
        The rows in the core.
    n_rows, n_partners : int
    totals : ndarray of float32, shape [n_rows]
        Sums of the weights of each row.
    """

    fit: _core.RowFit
    n_rows: int
    n_partners: int
    totals: Floats

    @classmethod
    def of(cls, rows: csr_array) -> Side:
        """Return the side whose rows these are; entries are weights.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> from prodige.recommendation.sides import Side
        >>> Side.of(csr_array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])).totals
        array([3., 1.], dtype=float32)
        """
        weights = rows.data.astype(np.float32)
        fit = _core.RowFit(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), weights, int(rows.shape[1]))
        totals = np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel().astype(np.float32)
        return cls(fit, int(rows.shape[0]), int(rows.shape[1]), totals)


@dataclass(frozen=True)
class Sides:
    """Users and items, each as rows.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.sides import Sides
    >>> sides = Sides.of(csr_array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]))
    >>> sides.users.n_rows, sides.items.n_rows, sides.items.totals
    (2, 3, array([1., 1., 2.], dtype=float32))
    """

    users: Side
    items: Side

    @classmethod
    def of(cls, interactions: csr_array) -> Sides:
        """Return both sides of interactions, rows of which are users."""
        return cls(Side.of(interactions), Side.of(interactions.T.tocsr()))


def gram(vectors: Floats, others: Floats | None = None) -> NDArray[np.float64]:
    """Return VᵀW of two sets of vectors, or VᵀV of one, added up in double precision by parts of fixed size.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.sides import gram
    >>> gram(np.array([[1.0, 2.0], [0.0, 1.0]], dtype=np.float32))
    array([[1., 2.],
           [2., 5.]])
    """
    right = vectors if others is None else others
    total = np.zeros((vectors.shape[1], right.shape[1]))
    for start in range(0, len(vectors), _PART):
        total += vectors[start : start + _PART].T @ right[start : start + _PART]
    return total


def padded(vectors: NDArray[np.floating]) -> Floats:
    """Return vectors of float32 with columns of 0 up to a multiple of 8, as the core wants them.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.sides import padded
    >>> padded(np.ones((3, 5))).shape
    (3, 8)
    """
    missing = -vectors.shape[1] % 8
    return np.ascontiguousarray(np.pad(vectors, ((0, 0), (0, missing))), dtype=np.float32)
