"""ItemKNN: an item is worth as much to a user as it is like those the user has interacted with.

Items are alike if the same users interacted with them. Nothing is compressed: the model is a table of neighbours and
the interactions themselves, and so a ceiling for what is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from prodige._validation import check_integer
from prodige.baselines.recommending import RecommenderBaseline, check_nonnegative, numbers_of
from prodige.recommendation.interactions import Ids, best, parts

# Similarities of one block of items: 16 MiB as float32.
_BLOCK = 1 << 22


class ItemKNN(RecommenderBaseline):
    """Sum of the cosine similarities of an item to those a user has interacted with, where they are among its nearest.

    Parameters
    ----------
    n_neighbors : int
        Most similar items kept for each; all others where there are not as many.
    shrinkage : float
        Added to the product of lengths that a cosine divides by: items that few users interacted with are less alike.

    Attributes
    ----------
    similarity_ : csr_array of float32, shape [I, I]
        Neighbours of each item.
    user_items_ : csr_array of float32, shape [U, I]
        The interactions.

    Examples
    --------
    >>> from prodige.baselines import ItemKNN
    >>> model = ItemKNN(n_neighbors=1).fit([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> model.similarity_.toarray().round(3)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """

    def __init__(
        self,
        n_neighbors: int = 100,
        shrinkage: float = 0.0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.shrinkage = shrinkage

    @property
    def numbers_per_item(self) -> float:
        """The neighbours and the interactions."""
        return (numbers_of(self.similarity_) + numbers_of(self.user_items_)) / (self.n_users_ + self.n_items_)

    def _fit(self, user_items: csr_array) -> None:
        k = check_integer("n_neighbors", self.n_neighbors, 1, 2**31)
        shrinkage = check_nonnegative("shrinkage", self.shrinkage)
        n_items = user_items.shape[1]
        item_users = user_items.T.tocsr()
        lengths = np.sqrt(item_users.multiply(item_users).sum(axis=1, dtype=np.float64))
        tables = []
        for part in parts(n_items, _BLOCK // n_items):
            products = (item_users[part] @ user_items).toarray()
            scale = lengths[part, None] * lengths[None] + shrinkage
            similar = np.divide(products, scale, out=np.zeros_like(products), where=products > 0, casting="same_kind")
            similar[np.arange(len(similar)), np.arange(part.start, part.stop)] = 0
            tables.append(nearest(similar, min(k, n_items)))
        self.similarity_ = vstack(tables, format="csr")
        self.user_items_ = user_items

    def _scores(self, users: Ids) -> NDArray[np.float32]:
        return np.asarray((self.user_items_[users] @ self.similarity_.T).toarray())


def nearest(similar: NDArray[np.float32], k: int) -> csr_array:
    """Return the ``k`` largest similarities of each row; 0 is none."""
    columns, values = best(similar, k)
    row, place = np.nonzero(values > 0)
    return csr_array((values[row, place], (row, columns[row, place])), shape=similar.shape)
