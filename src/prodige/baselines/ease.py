"""EASE: the best linear guess of each item's column from all others, in closed form.

Steck, "Embarrassingly Shallow Autoencoders for Sparse Data" (WWW 2019). The weights B minimise |X − X B|² + λ |B|² with
a diagonal of 0. With P = (XᵀX + λ I)⁻¹ they are B_ij = −P_ij / P_jj. It is hard to beat and not compressed at all: a
ceiling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse import csr_array

from prodige.baselines.recommending import RecommenderBaseline, check_positive, numbers_of
from prodige.recommendation.interactions import Ids

# The table of weights is dense: 1.6 GB for so many items.
_MOST_ITEMS = 20_000


class EASE(RecommenderBaseline):
    """A linear autoencoder of the interactions.

    Parameters
    ----------
    regularization : float
        λ; in units of a user's value squared.

    Attributes
    ----------
    weights_ : ndarray of float32, shape [I, I]
    user_items_ : csr_array of float32, shape [U, I]
        The interactions.

    Examples
    --------
    >>> from prodige.baselines import EASE
    >>> model = EASE(regularization=1.0).fit([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> model.weights_.round(3) + 0.0
    array([[0.   , 0.667, 0.   ],
           [0.667, 0.   , 0.   ],
           [0.   , 0.   , 0.   ]], dtype=float32)
    """

    def __init__(
        self,
        regularization: float = 500.0,
    ) -> None:
        self.regularization = regularization

    @property
    def numbers_per_item(self) -> float:
        """The weights and the interactions."""
        return (self.weights_.size + numbers_of(self.user_items_)) / (self.n_users_ + self.n_items_)

    def _fit(self, user_items: csr_array) -> None:
        ridge = check_positive("regularization", self.regularization)
        n_items = user_items.shape[1]
        if n_items > _MOST_ITEMS:
            raise ValueError(
                f"user_items has {n_items} items, EASE takes up to {_MOST_ITEMS}: its table of weights is dense; "
                "leave out rare items, or use ItemKNN"
            )
        self.weights_ = solve(user_items, ridge)
        self.user_items_ = user_items

    def _scores(self, users: Ids) -> NDArray[np.float32]:
        return np.asarray(self.user_items_[users] @ self.weights_)


def solve(user_items: csr_array, ridge: float) -> NDArray[np.float32]:
    """Return the weights; there is never more than one table of them in memory."""
    gram = (user_items.T @ user_items).toarray(order="F")
    gram[np.diag_indices_from(gram)] += ridge
    factor, failed = lapack.spotrf(gram, overwrite_a=True)
    if not failed:
        inverse, failed = lapack.spotri(factor, overwrite_c=True)
    if failed:
        raise ValueError(f"regularization = {ridge} is too small to invert the table of items; make it larger")
    # Only the upper triangle is filled in.
    for column in range(len(inverse)):
        inverse[column, :column] = inverse[:column, column]
    weights: NDArray[np.float32] = np.ascontiguousarray(inverse.T)  # symmetric, so the transpose is a view in C order
    weights /= -weights.diagonal().copy()
    weights[np.diag_indices_from(weights)] = 0
    return weights
