"""ALS: vectors whose products are near 1 where a user interacted with an item, and near 0 elsewhere, by least squares.

Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets" (ICDM 2008), as the library
``implicit`` (extra ``recommend``) solves it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from sklearn.utils import check_random_state

from prodige._validation import check_integer
from prodige.baselines.recommending import FactorModel, check_nonnegative, check_positive, import_implicit
from prodige.threads import count_threads


class ALS(FactorModel):
    """Alternating least squares.

    Parameters
    ----------
    n_factors : int
        Numbers of a user and of an item.
    regularization : float
        Weight of the squared lengths of the vectors.
    alpha : float
        Weight of an interaction against that of a pair that did not meet, which is 1; the values of the table multiply
        it.
    n_iterations : int
        Rounds over users and items.
    random_state : int, RandomState or None
        Seed of the vectors to start from.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    verbose : int
        Above 0 shows a progress bar.

    Attributes
    ----------
    user_factors_ : ndarray of float32, shape [U, n_factors]
    item_factors_ : ndarray of float32, shape [I, n_factors]

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import ALS
    >>> blocks = np.kron(np.eye(2), np.ones((4, 3)))  # two circles of users with 3 items each
    >>> model = ALS(n_factors=2, random_state=0).fit(blocks)
    >>> model.recommend(0, N=3, filter_already_liked_items=False)[0].tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        n_factors: int = 4,
        regularization: float = 0.01,
        alpha: float = 1.0,
        n_iterations: int = 15,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.regularization = regularization
        self.alpha = alpha
        self.n_iterations = n_iterations
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, user_items: csr_array) -> None:
        k = check_integer("n_factors", self.n_factors, 1, 2**15)
        n_iterations = check_integer("n_iterations", self.n_iterations, 1, 2**31)
        seed = int(check_random_state(self.random_state).randint(2**31))
        with import_implicit("als") as module:
            model = module.AlternatingLeastSquares(
                k,
                regularization=check_nonnegative("regularization", self.regularization),
                alpha=check_positive("alpha", self.alpha),
                iterations=n_iterations,
                num_threads=count_threads(self.n_jobs),
                random_state=seed,
            )
            model.fit(csr_matrix(user_items), show_progress=self.verbose > 0)
        self.user_factors_ = np.ascontiguousarray(model.user_factors)
        self.item_factors_ = np.ascontiguousarray(model.item_factors)
