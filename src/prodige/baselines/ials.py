"""IALS: alternating least squares with a ridge that grows with what is known of a user or an item.

It is the teacher that :class:`prodige.GraphRecommender` is distilled from (:mod:`prodige.recommendation.teacher`), as a
recommender of its own: what the graph would be without a limit to its size.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from prodige._validation import check_integer
from prodige.baselines.recommending import FactorModel, check_nonnegative, check_positive
from prodige.recommendation.sides import Sides, padded
from prodige.recommendation.teacher import Teacher, TeacherSettings, alternate, solve_side
from prodige.threads import count_threads

# Spread of the items' vectors at the start, over the root of their length.
_SPREAD = 0.1


class IALS(FactorModel):
    """Vectors whose products are near 1 where a user interacted with an item; short where little is known.

    Parameters
    ----------
    n_factors : int
        Numbers of a user and of an item.
    alpha : float
        Weight of every pair, met or not, whose score should be 0; interactions count as 1 on average.
    penalty : float
        Weight of the squared length of a vector, for each unit of weight that its user or item has.
    n_iterations : int
        Rounds over users and items.
    random_state : int, RandomState or None
        Seed of the vectors to start from.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Attributes
    ----------
    user_factors_ : ndarray of float32, shape [U, n_factors]
    item_factors_ : ndarray of float32, shape [I, n_factors]

    References
    ----------
    Rendle, Krichene, Zhang, Koren: Revisiting the Performance of iALS on Item Recommendation Benchmarks. RecSys 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import IALS
    >>> blocks = np.kron(np.eye(2), np.ones((4, 3)))  # two circles of users with 3 items each
    >>> model = IALS(n_factors=2, random_state=0).fit(blocks)
    >>> sorted(model.recommend(0, N=3, filter_already_liked_items=False)[0].tolist())
    [0, 1, 2]
    """

    def __init__(
        self,
        n_factors: int = 64,
        alpha: float = 0.02,
        penalty: float = 0.01,
        n_iterations: int = 12,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_factors = n_factors
        self.alpha = alpha
        self.penalty = penalty
        self.n_iterations = n_iterations
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, user_items: csr_array) -> None:
        width = check_integer("n_factors", self.n_factors, 1, 2**15)
        n_iterations = check_integer("n_iterations", self.n_iterations, 1, 2**31)
        alpha = check_positive("alpha", self.alpha)
        penalty = check_nonnegative("penalty", self.penalty)
        n_jobs = count_threads(self.n_jobs)
        random = check_random_state(self.random_state)
        sides = Sides.of((user_items / user_items.data.mean(dtype=np.float64)).astype(np.float32))
        start = random.standard_normal((user_items.shape[1], width)) * (_SPREAD / np.sqrt(width))
        # The core wants widths that are multiples of 8; coordinates that are 0 at the start stay 0.
        items = padded(start)
        settings = TeacherSettings(items.shape[1], alpha, penalty)
        teacher = Teacher(np.empty((0, items.shape[1]), np.float32), items, settings)
        for _ in range(n_iterations):
            teacher = alternate(sides, teacher, n_jobs)
        users = solve_side(sides.users, teacher.items, settings, n_jobs)
        self.user_factors_ = np.ascontiguousarray(users[:, :width])
        self.item_factors_ = np.ascontiguousarray(teacher.items[:, :width])
