"""Star: every item has a radius, and two items are as far apart as their radii together.

This is the best graph with one hub, and it has a closed form (:mod:`prodige.metric.star`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prodige.baselines.base import Baseline, Items
from prodige.metric.space import Space
from prodige.metric.star import star_radii


class Star(Baseline):
    """The radii whose sums are closest to all distances: d_ij = max(r_i + r_j, 0).

    It keeps one number an item. Written down as a graph with one hub it would be three as the paper counts: an offset,
    a target and a weight.

    Where D breaks the triangle inequality, as squared or cosine distances do, a radius can be negative. It stays so, as
    that is the least-squares optimum; only sums below 0 are answered by 0, which never raises the error.

    Parameters
    ----------
    metric : str or callable
        Any scikit-learn metric name, ``"precomputed"``, or a function of two rows.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Attributes
    ----------
    radius_ : ndarray of float32, shape [N]

    Examples
    --------
    >>> from prodige.baselines import Star
    >>> Star().fit([[0.0], [1.0], [3.0]]).radius_
    array([1., 0., 2.], dtype=float32)
    """

    @property
    def numbers_per_item(self) -> float:
        """The radius."""
        return 1.0

    def _fit(self, space: Space) -> None:
        sums = np.concatenate([block.sum(axis=1, dtype=np.float64) for _, block in space.blocks()])
        self.radius_ = star_radii(sums).astype(np.float32)

    def _distances(self, rows: Items, columns: Items) -> NDArray[np.float32]:
        return np.asarray(np.maximum(self.radius_[rows][:, None] + self.radius_[columns][None], 0))
