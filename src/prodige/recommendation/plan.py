"""Plan: how a budget is shared out among factors, hubs, codebooks and biases.

A direction of the balanced teacher with spectrum S_k deserves r_k = max(0, log₂(S_k / θ)) bits on either side, as a
Gaussian source of that standard deviation does; θ is where the budget ends. Directions of rate 0 are left out, the
others are cut into groups of equal summed rate, one for each factor: then a code of log₂ H bits serves each alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Grouping = Literal["consecutive", "dealt"]

WORD_BITS = 8  # of an entry of a codebook
_FACTOR_BYTES = 40  # of a factor in a header, with the ends of its two grids
_FILE_BYTES = 500  # of a file beside codes, codebooks and lengths


@dataclass(frozen=True)
class Plan:
    """The shape of a product for recommendation.

    Attributes
    ----------
    n_factors : int
    user_bits, item_bits : int
        Of a code: a factor has ``2**bits`` hubs of that side.
    length_bits : int
        Of an item's bias.
    n_directions : int
        At most; the rates may leave out more.
    grouping : {"consecutive", "dealt"}
        How directions are shared out among factors.
    """

    n_factors: int
    user_bits: int
    item_bits: int
    length_bits: int
    n_directions: int
    grouping: Grouping = "consecutive"

    def file_bits(self, n_users: int, n_items: int, store_users: bool = True) -> float:
        """Return an upper bound on the bits of a file of this shape."""
        codes = n_items * (self.n_factors * self.item_bits + self.length_bits)
        codes += n_users * self.n_factors * self.user_bits if store_users else 0
        hubs = 2**self.item_bits + (2**self.user_bits if store_users else 0)
        words = WORD_BITS * hubs * self.n_directions
        return float(codes + words + 8 * (_FILE_BYTES + _FACTOR_BYTES * self.n_factors))

    def numbers(self, n_users: int, n_items: int, store_users: bool = True) -> float:
        """Return how many numbers there are: codes, lengths and entries of codebooks."""
        codes = n_items * (self.n_factors + 1) + (n_users * self.n_factors if store_users else 0)
        hubs = 2**self.item_bits + (2**self.user_bits if store_users else 0)
        return float(codes + hubs * self.n_directions)


def rates(spectrum: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the bits of each direction, which add up to a total.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.plan import rates
    >>> rates(np.array([8.0, 4.0, 1.0]), 3.0)
    array([2., 1., 0.])
    """
    logs = np.log2(np.maximum(spectrum, np.finfo(np.float64).tiny))
    for n in range(len(logs), 0, -1):
        threshold = (logs[:n].sum() - total) / n
        if logs[n - 1] >= threshold:
            return np.asarray(np.maximum(logs - threshold, 0.0))
    return np.zeros(len(logs))


def group_directions(
    spectrum: NDArray[np.float64], n_groups: int, bits: float, grouping: Grouping
) -> list[NDArray[np.int64]]:
    """Return the directions of each group; those that deserve no bits are in none.

    Parameters
    ----------
    spectrum : ndarray of float64, shape [d]
        Falling.
    n_groups : int
        At most; there are fewer where too few directions deserve bits.
    bits : float
        Of a code.
    grouping : {"consecutive", "dealt"}
        Neighbours in the spectrum together, or one after the other to the group that has least.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.plan import group_directions
    >>> spectrum = 2.0 ** -np.arange(6)
    >>> [group.tolist() for group in group_directions(spectrum, 2, 4.0, "consecutive")]
    [[0, 1], [2, 3]]
    >>> [group.tolist() for group in group_directions(spectrum, 2, 4.0, "dealt")]
    [[0, 3], [1, 2]]
    """
    deserved = rates(spectrum, n_groups * bits)
    kept = np.flatnonzero(deserved > 0)
    n_groups = min(n_groups, kept.size)
    if grouping == "consecutive":
        return cut(deserved[kept], n_groups)
    loads = np.zeros(n_groups)
    groups: list[list[int]] = [[] for _ in range(n_groups)]
    for direction in kept:
        least = int(loads.argmin())
        groups[least].append(int(direction))
        loads[least] += deserved[direction]
    return [np.array(group, dtype=np.int64) for group in groups]


def cut(deserved: NDArray[np.float64], n_groups: int) -> list[NDArray[np.int64]]:
    """Return runs of directions with about the same summed rate, each with one direction at least."""
    middle = np.cumsum(deserved) - deserved / 2
    group = np.minimum((middle / deserved.sum() * n_groups).astype(np.int64), n_groups - 1)
    # No group stays empty: each begins where its share does, and at least one direction after the one before.
    starts = np.searchsorted(group, np.arange(n_groups))
    for g in range(1, n_groups):
        starts[g] = max(starts[g], starts[g - 1] + 1)
    for g in range(n_groups - 1, 0, -1):
        starts[g] = min(starts[g], len(deserved) - (n_groups - g))
    return [np.asarray(part, dtype=np.int64) for part in np.split(np.arange(len(deserved)), starts[1:])]
