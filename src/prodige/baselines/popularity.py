"""Popularity: the same items for everybody, those that most users have met.

The floor of every table of recommenders: what learns about users must do better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.baselines.recommending import RecommenderBaseline
from prodige.recommendation.interactions import Ids


class Popularity(RecommenderBaseline):
    """Score an item by the number of users who met it, however often.

    Parameters
    ----------
    random_state : int, RandomState or None
        Nothing is random here.
    n_jobs : int, optional
        Nothing takes long here.
    verbose : int
        Nothing to show here.

    Attributes
    ----------
    popularity_ : ndarray of float32, shape [I]

    Examples
    --------
    >>> from prodige.baselines import Popularity
    >>> Popularity().fit([[1, 5, 0], [0, 1, 0]]).popularity_
    array([1., 2., 0.], dtype=float32)
    """

    def __init__(
        self,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def numbers_per_item(self) -> float:
        """One number for an item, none for a user."""
        return self.n_items_ / (self.n_users_ + self.n_items_)

    def _fit(self, user_items: csr_array) -> None:
        self.popularity_ = np.bincount(user_items.indices, minlength=user_items.shape[1]).astype(np.float32)

    def _scores(self, users: Ids) -> NDArray[np.float32]:
        return np.tile(self.popularity_, (users.size, 1))
