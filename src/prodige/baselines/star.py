"""Star: every item has a radius, and two items are as far apart as their radii together.

This is the best graph with one hub, and it has a closed form. Setting the derivative of Σ_{i<j} (r_i + r_j − D_ij)² by
r_i to zero gives (N − 2) r_i + S = Σ_j D_ij with S = Σ_j r_j; summed over i, S = ΣΣ D / (2 (N − 1)). Where the triangle
inequality holds, D_jk ≤ D_ij + D_ik summed over all j and k says S ≤ Σ_j D_ij, so no radius is negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prodige.baselines.base import Baseline, Items
from prodige.metric.space import Space


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
        self.radius_ = radii(sums).astype(np.float32)

    def _distances(self, rows: Items, columns: Items) -> NDArray[np.float32]:
        return np.asarray(np.maximum(self.radius_[rows][:, None] + self.radius_[columns][None], 0))


def radii(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the radii of the best star from the sum of all distances of each item.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.star import radii
    >>> radii(np.array([4.0, 3.0, 5.0]))
    array([1., 0., 2.])
    """
    n = len(sums)
    if n == 2:  # any split of the one distance will do
        return sums / 2
    return np.asarray((sums - sums.sum() / (2 * (n - 1))) / (n - 2))
