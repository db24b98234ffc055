"""Coordinates in a few bits: levels by Lloyd, and bits shared out to where they pay most.

A coordinate of b bits is one of 2ᵇ levels, each the mean of what is rounded to it (Lloyd, 1957). The levels are stored
as well: as bytes between the lowest and the highest, which are two floats. In 8 bits every byte is a level, and there
is nothing to store but the range.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST_BITS = 8

# Passes of Lloyd's algorithm at most; it stops by itself where no value changes its level.
_PASSES = 200

# Two floats for each coordinate: its lowest and its highest level.
_RANGE_BITS = 2 * 32


def rounded(values: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """Return values rounded to the best levels that so many bits can tell apart, 0 to 8.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.rounding import rounded
    >>> rounded(np.array([0.0, 1.0, 9.0, 11.0]), bits=1)
    array([ 0.5,  0.5, 10. , 10. ])
    """
    levels = lloyd_levels(values, bits)
    return np.asarray(levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, values)])


def lloyd_levels(values: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """Return 2ᵇ levels in order, as they come back from bytes between the lowest and the highest.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.rounding import lloyd_levels
    >>> lloyd_levels(np.array([0.0, 1.0, 9.0, 11.0]), bits=1)
    array([ 0.5, 10. ])
    """
    ordered = np.sort(values)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    n_levels = 2**bits
    levels = dense_levels(ordered, n_levels)
    before = None
    for _ in range(_PASSES):
        ends = np.concatenate([[0], np.searchsorted(ordered, (levels[1:] + levels[:-1]) / 2), [ordered.size]])
        if before is not None and np.array_equal(ends, before):
            break
        counts = np.diff(ends)
        levels = np.where(counts > 0, np.diff(sums[ends]) / np.maximum(counts, 1), levels)
        before = ends
    grid = np.linspace(levels[0], levels[-1], 2**MOST_BITS)
    step = grid[1] - grid[0]
    if bits == MOST_BITS or step == 0:  # also where levels differ by less than numbers of their size can
        return grid[:n_levels]
    return np.asarray(grid[np.rint((levels - levels[0]) / step).astype(np.int64)])


def dense_levels(ordered: NDArray[np.float64], n_levels: int) -> NDArray[np.float64]:
    """Return levels to begin with: where values have density p, many levels are best at density p^⅓ (Panter, Dite)."""
    edges = np.quantile(ordered, np.linspace(0, 1, 4 * n_levels + 1))
    # Between edges there are equally many values, so p is 1 / width and each part has p^⅓ · width levels.
    share = np.concatenate([[0.0], np.cumsum(np.diff(edges) ** (2 / 3))])
    return np.asarray(np.interp(share[-1] * (np.arange(n_levels) + 0.5) / n_levels, share, edges))


def stored_bits(bits: int, n_items: int) -> float:
    """Return what a coordinate of so many bits takes for each item, with its share of the levels.

    Examples
    --------
    >>> from prodige.baselines.rounding import stored_bits
    >>> stored_bits(3, 1000), stored_bits(8, 1000), stored_bits(0, 1000)
    (3.128, 8.064, 0.0)
    """
    if bits == 0:
        return 0.0
    table = 0 if bits == MOST_BITS else 8 * 2**bits
    return bits + (_RANGE_BITS + table) / n_items


class Columns:
    """Centred coordinates of items, and what each becomes in so many bits, which is found once.

    An inner product of two items with a coordinate of variance λ, of which rounding leaves a share δ, is off by
    λ² (2 δ − δ²) on average, squared. So the next bit goes to where that falls most. δ is measured; 4⁻ᵇ is the theory.

    Parameters
    ----------
    points : ndarray of float64, shape [N, K]

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.rounding import Columns
    >>> columns = Columns(np.random.default_rng(0).normal(size=(1000, 3)) * [4, 2, 0.1])
    >>> bits = columns.share(budget=7)
    >>> bits
    [4, 2, 0]
    >>> [np.unique(column).size for column in columns.take(bits).T]
    [16, 4]
    """

    def __init__(self, points: NDArray[np.float64]) -> None:
        self.points = points
        self._rounded: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._errors: dict[tuple[int, int], float] = {}

    def rounded(self, column: int, bits: int) -> NDArray[np.float64]:
        """Return a coordinate in so many bits."""
        key = column, bits
        if key not in self._rounded:
            self._rounded[key] = rounded(self.points[:, column], bits)
        return self._rounded[key]

    def take(self, bits: Sequence[int]) -> NDArray[np.float64]:
        """Return the coordinates that have bits, in as many, shape [N, those]."""
        kept = [self.rounded(column, share) for column, share in enumerate(bits) if share]
        return np.stack(kept, axis=1) if kept else np.empty((len(self.points), 0))

    def share(self, budget: float) -> list[int]:
        """Return how many bits each coordinate gets, levels included in the budget for an item."""
        n, width = self.points.shape
        bits = [0] * width

        def price(column: int) -> float:
            return stored_bits(bits[column] + 1, n) - stored_bits(bits[column], n)

        def gain(column: int) -> float:
            drop = self.product_error(column, bits[column]) - self.product_error(column, bits[column] + 1)
            # Of few items the eighth bit may save more than it costs: there is no table then.
            return drop / max(price(column), 1e-9)

        room = budget
        while affordable := [k for k in range(width) if bits[k] < MOST_BITS and price(k) <= room and gain(k) > 0]:
            best = max(affordable, key=gain)
            room -= price(best)
            bits[best] += 1
        return bits

    def product_error(self, column: int, bits: int) -> float:
        """Return the mean squared error of the products of a coordinate of two items, in so many bits."""
        key = column, bits
        if key not in self._errors:
            values = self.points[:, column]
            lost = float(np.mean((values - self.rounded(column, bits)) ** 2)) if bits else float(np.mean(values**2))
            variance = float(np.mean(values**2))
            self._errors[key] = 2 * lost * variance - lost**2
        return self._errors[key]
