"""Constant: one number for all distances.

Its error is the variance of the distances, so it is where every other figure starts from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prodige.baselines.base import Baseline, Items
from prodige.metric.space import Space


class Constant(Baseline):
    """The mean distance, for every pair of different items.

    Parameters
    ----------
    metric : str or callable
        Any scikit-learn metric name, ``"precomputed"``, or a function of two rows.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Attributes
    ----------
    distance_ : float
        Mean over all pairs.

    Examples
    --------
    >>> from prodige.baselines import Constant
    >>> Constant().fit([[0.0], [1.0], [3.0]]).distances([0])
    array([[0., 2., 2.]], dtype=float32)
    """

    @property
    def numbers_per_item(self) -> float:
        """None: the one number is shared."""
        return 0.0

    @property
    def shared_numbers(self) -> int:
        """The mean distance."""
        return 1

    def _fit(self, space: Space) -> None:
        total = sum(float(block.sum(dtype=np.float64)) for _, block in space.blocks())
        self.distance_ = total / (space.n_items * (space.n_items - 1))

    def _distances(self, rows: Items, columns: Items) -> NDArray[np.float32]:
        return np.full((rows.size, columns.size), self.distance_, dtype=np.float32)
