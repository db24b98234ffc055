"""Residual coordinates that an arithmetic coder writes: what vectors make of the coder that products have.

Whole bits for each coordinate waste some, since levels are not equally frequent. Here steps are even, a level that many
items have takes few bits, and items take the level for which squared error and bits together cost least, as in a
product of lines (:mod:`prodige.compression.lines`). That product alone has kinds of items, and steps by what a
direction matters to distances instead of by its variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.baselines.residual import energies
from prodige.compression.lines import make_lines
from prodige.reproduce.peers import Bench, Candidate, Words

# Principal coordinates that there may be.
WIDTH = 256

# Steps of energies that are tried, as multiples of the one that matters to distances as much as those of coordinates.
ENERGY_STEPS = (0.7, 1.0, 1.4)

# Halvings of the logarithm of a tolerance once it is between two that differ by a factor of 4.
_N_HALVINGS = 8

# First place and step of even levels, as two floats; places of uneven ones are floats, too.
_EVEN_BITS = 2 * 32
_PLACE_BITS = 32


@dataclass(frozen=True)
class Written:
    """Coordinates and energies that were rounded and written.

    Attributes
    ----------
    points : ndarray of float32, shape [N, K]
    energy : ndarray of float32, shape [N]
    bits : float
        Of an item, with its share of all places of levels.
    """

    points: NDArray[np.float32]
    energy: NDArray[np.float32]
    bits: float


class Coded:
    """Principal coordinates and a residual energy, on levels that an arithmetic coder writes."""

    def candidates(self, bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        """Yield the finest steps for which there is room, with energies of different steps."""
        places, sums = bench.coordinates(WIDTH, seed)
        for energy_step in ENERGY_STEPS:
            found = finest(places, sums, energy_step, bits)
            if found is not None:
                split = f"{found.points.shape[1]} coordinates, energy of {energy_step:g} steps"
                yield Candidate(split, found.bits, Words(found.points, found.energy, bench.n_jobs))


def finest(places: NDArray[np.float64], sums: NDArray[np.float64], energy_step: float, bits: float) -> Written | None:
    """Return what the least tolerance makes that takes so many bits an item at most; None if none does.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.reproduce.coded import finest
    >>> places = np.random.default_rng(0).normal(size=(2000, 4)) * [3, 2, 1, 0.1]
    >>> squares = (places**2).sum(axis=1)
    >>> written = finest(places, 2000 * squares + squares.sum(), 1.0, 16)
    >>> 15 < written.bits <= 16
    True
    """
    best = None
    high, low = 8.0, 8.0  # logarithms: at 8 squared steps are as large as all squared distances
    while (found := write(places, sums, 2.0**low, energy_step)) is None or found.bits <= bits:
        best, high = found if found is not None else best, low
        low -= 2
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        found = write(places, sums, 2.0**middle, energy_step)
        if found is None or found.bits <= bits:
            best, high = found if found is not None else best, middle
        else:
            low = middle
    return best


def write(
    places: NDArray[np.float64], sums: NDArray[np.float64], tolerance: float, energy_step: float
) -> Written | None:
    """Round coordinates and energies by a tolerance; None where no coordinate has two levels.

    An error of a coordinate matters to distances by its variance, one of an energy by what it is of squared distances.
    """
    places = places[:, places.any(axis=0)]
    variances = places.var(axis=0)
    mean_square = float(sums.mean()) / len(places)
    lines = make_lines(places, variances, tolerance * mean_square**2 / variances)
    if not lines:
        return None
    points = np.stack([line.positions[line.codes] for line in lines], axis=1)
    exact = energies(points, sums)
    step = energy_step * np.sqrt(8 * tolerance) * mean_square
    levels = np.rint((exact - exact.min()) / step).astype(np.int64)
    rows = np.stack([*(line.codes for line in lines), levels], axis=1).astype(np.uint16)
    sizes = (rows.max(axis=0) + 1).astype(np.int32)
    data = _core.write_rows(rows, sizes, np.zeros(len(rows), np.uint16), 1)
    shared = _EVEN_BITS + sum(_EVEN_BITS if line.is_even else _PLACE_BITS * line.positions.size for line in lines)
    energy = (exact.min() + step * levels).astype(np.float32)
    return Written(points.astype(np.float32), energy, (8 * len(data) + shared) / len(rows))
