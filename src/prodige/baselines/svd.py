"""SVD: the table of users and items as a product of two narrow ones, with the least squared error.

Cells without an interaction count as 0, like all others, so this is no guess of ratings but of who meets what.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from prodige._validation import check_integer
from prodige.baselines.recommending import FactorModel


class SVD(FactorModel):
    """Truncated singular value decomposition U S Vᵀ of the interactions, by scipy.

    Parameters
    ----------
    n_factors : int
        Numbers of a user and of an item; fewer than users and than items.
    weight : float
        Exponent of the singular values: scores are U S^weight Vᵀ. 1 is the best approximation of the table; less
        favours what sets users apart over what all have in common, and at 0 all factors count alike. Multiplying the
        table by a number changes no order.
    random_state : int, RandomState or None
        Seed of the vector that the solver starts from; it hardly matters.

    Attributes
    ----------
    user_factors_ : ndarray of float32, shape [U, n_factors]
        U S^weight.
    item_factors_ : ndarray of float32, shape [I, n_factors]
        V.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import SVD
    >>> table = np.outer([1, 2, 3], [1, 0, 2, 1])
    >>> SVD(n_factors=1, random_state=0).fit(table).scores([2]).round(3) + 0.0
    array([[3., 0., 6., 3.]], dtype=float32)
    """

    def __init__(
        self,
        n_factors: int = 4,
        weight: float = 1.0,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_factors = n_factors
        self.weight = weight
        self.random_state = random_state

    def _fit(self, user_items: csr_array) -> None:
        from scipy.sparse.linalg import svds

        least = min(user_items.shape)
        if least < 2:
            raise ValueError(f"SVD needs 2 users and 2 items or more, got a table of shape {user_items.shape}")
        k = check_integer("n_factors", self.n_factors, 1, least - 1)
        if not np.isfinite(self.weight):
            raise ValueError(f"weight must be a finite number, got {self.weight}; 1 is usual")
        begin = check_random_state(self.random_state).uniform(-1, 1, least)
        left, values, right = svds(user_items.astype(np.float64), k, v0=begin)
        order = np.argsort(-values)
        # Rounding gives a factor that is not there a tiny value, which no power must make count.
        is_real = values[order] > np.finfo(np.float32).eps * values.max()
        strength = np.power(values[order], self.weight, where=is_real, out=np.zeros(k))
        self.user_factors_ = np.ascontiguousarray(left[:, order] * strength, dtype=np.float32)
        self.item_factors_ = np.ascontiguousarray(right[order].T, dtype=np.float32)
