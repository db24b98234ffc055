"""Popularity: the same items for everybody, those that most users have interacted with.

The floor of every table of recommenders: what learns about users must do better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.baselines.recommending import RecommenderBaseline
from prodige.recommendation.interactions import Ids


class Popularity(RecommenderBaseline):
    """Score an item by the number of users who interacted with it, however often.

    Attributes
    ----------
    popularity_ : ndarray of float32, shape [I]

    Examples
    --------
    >>> from prodige.baselines import Popularity
    >>> Popularity().fit([[1, 5, 0], [0, 1, 0]]).popularity_
    array([1., 2., 0.], dtype=float32)
    """

    @property
    def numbers_per_item(self) -> float:
        """One number for an item, none for a user."""
        return self.n_items_ / (self.n_users_ + self.n_items_)

    def _fit(self, user_items: csr_array) -> None:
        self.popularity_ = np.bincount(user_items.indices, minlength=user_items.shape[1]).astype(np.float32)

    def _scores(self, users: Ids) -> NDArray[np.float32]:
        return np.tile(self.popularity_, (users.size, 1))
