"""The inverse of softplus: weights that stay positive are softplus(theta), and theta starts from a weight."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Float = TypeVar("Float", np.float32, np.float64)


def inverse_softplus(weight: NDArray[Float]) -> NDArray[Float]:
    """Return theta with ``softplus(theta) = weight``: -inf for 0, close to ``weight`` itself where it is large.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.learning.softplus import inverse_softplus
    >>> np.logaddexp(0, inverse_softplus(np.array([0.0, 1e-6, 1.0, 50.0])))
    array([0.e+00, 1.e-06, 1.e+00, 5.e+01])
    """
    with np.errstate(divide="ignore"):  # of 0
        return weight + np.log(-np.expm1(-weight))
