"""Coordinates: where all items are, as classical scaling finds it in their distances to landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prodige.metric.landmarks import Landmarks
from prodige.metric.scaling import scaled, scaling_basis
from prodige.ranks import ALONE, Ranks, item_parts

Floats = NDArray[np.float64]

# Landmarks that coordinates are found from (of flat spectra a thousand say little: four thousand take 4 % off the error
# of word vectors), how many coordinates there are at most, and the least variance of one as a part of the largest:
# below it lies the rounding of distances.
_N_SCALED = 4096
N_DIRECTIONS = 96
_LEAST_VARIANCE = 1e-3

# Landmarks whose distances among themselves are kept, and the least of these, as a part of the mean, that counts.
_N_JUDGES = 512
FLOOR = 0.1


@dataclass(frozen=True)
class Coordinates:
    """Places of all items in a space of few directions; distances are in units of their mean.

    Attributes
    ----------
    places : ndarray of float64, shape [N, K]
    variances : ndarray of float64, shape [K]
        Along each direction, descending.
    means : ndarray of float64, shape [N]
        Of the squares that places are to keep, over all landmarks.
    landmarks : ndarray of int64, shape [L]
        Items that these are.
    judges : ndarray of int64, shape [J]
        Some of them.
    squares : ndarray of float64, shape [J, J]
        Among the judges.
    """

    places: Floats
    variances: Floats
    means: Floats
    landmarks: NDArray[np.int64]
    judges: NDArray[np.int64]
    squares: Floats

    def first(self, n_directions: int) -> Coordinates:
        """Return those along the first so many directions."""
        return replace(self, places=self.places[:, :n_directions], variances=self.variances[:n_directions])

    @property
    def influences(self) -> Floats:
        """How much the squared error of a coordinate matters to that of distances, by directions."""
        some, weights = self.places[self.judges], self._weights
        total, sums = weights.sum(axis=1), weights @ some
        mean: Floats = 2 * ((total[:, None] * some**2).sum(axis=0) - (some * sums).sum(axis=0)) / weights.size
        return mean

    @property
    def influence_of_lengths(self) -> float:
        """How much the squared error of a length matters to that of distances."""
        return float(self._weights.mean()) / 4

    @property
    def _weights(self) -> Floats:
        weights: Floats = 1 / np.maximum(self.squares, FLOOR**2)
        np.fill_diagonal(weights, 0)
        return weights


def find_coordinates(
    landmarks: Landmarks, exponents: tuple[float, float], ranks: Ranks = ALONE, n_directions: int = N_DIRECTIONS
) -> Coordinates:
    """Return coordinates whose distances to the power are near the data's to the gauge, in units of the mean."""
    power, gauge = exponents
    ids, columns = np.unique(landmarks.sources[:_N_SCALED], return_index=True)
    if ids.size < 2:
        nothing, none = np.empty(0), np.empty(0, np.int64)
        return Coordinates(np.empty((landmarks.n_items, 0)), nothing, nothing, none, none, np.empty((0, 0)))

    def squares(rows: NDArray[np.float32]) -> Floats:
        return (rows[:, columns].astype(np.float64) / landmarks.scale) ** (2 * gauge / power)

    def rows_among(part: slice) -> Floats:
        inside = ids[slice(*np.searchsorted(ids, [part.start, part.stop]))]
        return squares(landmarks.target[inside - landmarks.first])

    def places_and_means(part: slice) -> tuple[Floats, Floats]:
        some = squares(landmarks.rows(part))
        return scaled(some, mean, basis), some.sum(axis=1)

    parts = item_parts(landmarks.n_items)
    among = np.concatenate(ranks.in_parts(rows_among, parts))
    judges = np.linspace(0, ids.size - 1, min(ids.size, _N_JUDGES)).astype(np.int64)
    between = among[np.ix_(judges, judges)]  # the basis uses them up
    mean, basis = ranks.first(lambda: scaling_basis(among, min(n_directions, ids.size - 1)))
    places, sums = (np.concatenate(found) for found in zip(*ranks.in_parts(places_and_means, parts), strict=True))
    variances = places[ids].var(axis=0)
    keep = variances > _LEAST_VARIANCE * variances.max(initial=0)
    n_others = ids.size - np.isin(np.arange(len(places)), ids)  # landmarks are at no distance from themselves
    return Coordinates(
        places[:, keep],
        variances[keep],
        sums / np.maximum(n_others, 1),
        ids.astype(np.int64),
        ids[judges].astype(np.int64),
        between,
    )
