"""Levels: many weights rounded to a few, by what each of them is worth.

Lloyd's algorithm on a line: every weight goes to the nearest level, every level to the mean of its weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_ROUNDS = 100


def find_levels(values: NDArray[np.float64], importance: NDArray[np.float64], n_levels: int) -> NDArray[np.float32]:
    """Return levels in ascending order, at most so many, and no more than there are different values; 0 of none.

    Parameters
    ----------
    values, importance : ndarray, shape [N]
        Numbers, and how much the squared error of each counts.
    n_levels : int

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.levels import find_levels
    >>> find_levels(np.array([-1.0, -1.2, 3.0, 3.0, 3.2]), np.ones(5), 2).round(2)
    array([-1.1 ,  3.07], dtype=float32)
    """
    if not values.size:
        return np.zeros(1, dtype=np.float32)
    order = np.argsort(values, kind="stable")
    numbers, shares = values[order], importance[order]
    mass, moment = (np.concatenate([[0.0], np.cumsum(x)]) for x in (shares, shares * numbers))
    # Where the cube root of density says most levels should be, which even shares of importance come near.
    places = np.searchsorted(mass, (np.arange(n_levels) + 0.5) / n_levels * mass[-1])
    levels = np.unique(numbers[np.clip(places - 1, 0, numbers.size - 1)])
    for _ in range(_MOST_ROUNDS):
        edges = np.concatenate(
            [[0], np.searchsorted(numbers, (levels[:-1] + levels[1:]) / 2, side="right"), [numbers.size]]
        )
        weight = mass[edges[1:]] - mass[edges[:-1]]
        is_used = weight > 0
        means = (moment[edges[1:]] - moment[edges[:-1]])[is_used] / weight[is_used]
        if means.size == levels.size and np.array_equal(means, levels):
            break
        levels = means
    return np.unique(levels.astype(np.float32))


def nearest_level(values: NDArray[np.float64], levels: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the number of the nearest level for each value.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.levels import nearest_level
    >>> nearest_level(np.array([-5.0, 0.4, 0.6]), np.array([0, 1], dtype=np.float32))
    array([0, 0, 1])
    """
    middles = (levels[:-1].astype(np.float64) + levels[1:]) / 2
    return np.searchsorted(middles, values, side="right")
