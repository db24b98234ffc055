"""BPR: vectors whose products put the items a user interacted with above those the user did not.

Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback" (UAI 2009), by the stochastic descent of the
library ``implicit`` (extra ``recommend``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.utils import check_random_state

from prodige._validation import check_integer
from prodige.baselines.recommending import (
    RecommenderBaseline,
    check_nonnegative,
    check_positive,
    import_implicit,
)
from prodige.recommendation.interactions import Ids


class BPR(RecommenderBaseline):
    """Bayesian personalised ranking.

    Every item has a bias beside its vector, which says how popular it is. It is one of the ``n_factors``, so vectors
    have one number less; dropping it instead costs far more than a factor does.

    Parameters
    ----------
    n_factors : int
        Numbers of an item, its bias among them; users have one less. At least 2.
    learning_rate : float
        Of every step.
    regularization : float
        Weight of the squared lengths of the vectors.
    n_iterations : int
        Passes over the interactions, each with a random item that the user has not interacted with.
    random_state : int, RandomState or None
        Seed.
    verbose : int
        Above 0 shows a progress bar.

    Attributes
    ----------
    user_factors_ : ndarray of float32, shape [U, n_factors - 1]
    item_factors_ : ndarray of float32, shape [I, n_factors - 1]
    item_bias_ : ndarray of float32, shape [I]

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import BPR
    >>> blocks = np.kron(np.eye(2), np.ones((4, 3)))  # two circles of users with 3 items each
    >>> model = BPR(n_factors=3, learning_rate=0.1, random_state=0).fit(blocks)
    >>> sorted(model.recommend(0, N=3, filter_already_liked_items=False)[0].tolist())
    [0, 1, 2]
    """

    def __init__(
        self,
        n_factors: int = 4,
        learning_rate: float = 0.02,
        regularization: float = 0.003,
        n_iterations: int = 100,
        *,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.n_iterations = n_iterations
        self.random_state = random_state
        self.verbose = verbose

    @property
    def numbers_per_item(self) -> float:
        """The factors of an item, one less of a user."""
        return self.n_factors - self.n_users_ / (self.n_users_ + self.n_items_)

    def _fit(self, user_items: csr_array) -> None:
        k = check_integer("n_factors", self.n_factors, 2, 2**15)
        n_iterations = check_integer("n_iterations", self.n_iterations, 1, 2**31)
        seed = int(check_random_state(self.random_state).randint(2**31))
        with import_implicit("bpr") as module:
            model = module.BayesianPersonalizedRanking(
                k - 1,
                learning_rate=check_positive("learning_rate", self.learning_rate),
                regularization=check_nonnegative("regularization", self.regularization),
                iterations=n_iterations,
                num_threads=1,  # several write over each other, and no seed gives the same again
                random_state=seed,
            )
            model.fit(csr_matrix(user_items), show_progress=self.verbose > 0)
        # The last column is the bias, and 1 for users.
        self.user_factors_ = np.ascontiguousarray(model.user_factors[:, :-1])
        self.item_factors_ = np.ascontiguousarray(model.item_factors[:, :-1])
        self.item_bias_ = np.ascontiguousarray(model.item_factors[:, -1])

    def _scores(self, users: Ids) -> NDArray[np.float32]:
        return np.asarray(self.user_factors_[users] @ self.item_factors_.T + self.item_bias_)
