"""The best star: every item has a radius, and two items are as far apart as their radii together.

This is the best graph with one hub, and it has a closed form. Setting the derivative of Σ_{i<j} (r_i + r_j − D_ij)² by
r_i to zero gives (N − 2) r_i + S = Σ_j D_ij with S = Σ_j r_j; summed over i, S = ΣΣ D / (2 (N − 1)). Where the triangle
inequality holds, D_jk ≤ D_ij + D_ik summed over all j and k says S ≤ Σ_j D_ij, so no radius is negative.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Float = TypeVar("Float", np.float32, np.float64)


def star_radii(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the radii of the best star from the sum of all distances of each item.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.star import star_radii
    >>> star_radii(np.array([4.0, 3.0, 5.0]))
    array([1., 0., 2.])
    """
    n = len(sums)
    if n < 3:  # any split of the one distance will do
        return sums / 2
    return np.asarray((sums - sums.sum() / (2 * (n - 1))) / (n - 2))


def star_radii_of_means(means: NDArray[Float]) -> NDArray[Float]:
    """Return nearly the same from the mean distance of each item, of many items or of a sample of their distances.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.star import star_radii_of_means
    >>> star_radii_of_means(np.array([2.0, 1.5, 2.5]))
    array([1. , 0.5, 1.5])
    """
    radii: NDArray[Float] = means - means.mean() / 2
    return radii
