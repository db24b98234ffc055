"""Places of new items in a product whose factors have positions: a matrix product, and the nearest hub of each factor.

With power 2, an item at x, a length e and anchors at y_a with lengths c_a,

    D(a) ** gauge = |x|² − 2 x·y_a + |y_a|² + e + c_a,

which is linear in what is not known: x, and the number |x|² + e. So x follows from the item's distances to all anchors
by least squares. An error in a direction matters as much as items vary along it (see :mod:`prodige.compression.plan`),
so of every factor the hub is taken that is nearest when directions are weighed by that. The length is then what is left
of the distances on average.

Two things make it exact enough to need no search. Anchors are taken to be where their own distances say they are, not
at the hubs they were rounded to. And lengths are brought to what a fit gives items of such distances: where it heeds
near pairs, lengths are shorter than the mean of all pairs would have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.graph.factors import GeometricFactor
from prodige.graph.product import ProductGraph

Floats = NDArray[np.float64]

# Anchors for each coordinate, at least: of fewer, positions are mostly rounding of anchors.
_ANCHORS_PER_COORDINATE = 4


@dataclass(frozen=True)
class LinearPlacing:
    """What turns distances to anchors into codes and lengths, as the core wants it.

    Attributes
    ----------
    arguments : dict
        Of ``_core.place``.
    intercept, slope : float
        Lengths are the first and so many times what is left of the distances.
    """

    arguments: dict[str, Any]
    intercept: float = 0.0
    slope: float = 1.0

    @classmethod
    def make(
        cls, graph: ProductGraph, anchors: NDArray[np.int64], between: NDArray[np.float32]
    ) -> LinearPlacing | None:
        """Return what places items; None where factors have no positions, or anchors are too few.

        Parameters
        ----------
        graph : ProductGraph
        anchors : ndarray of int64, shape [A]
            Items of the product.
        between : ndarray of float32, shape [A, A]
            Their distances in the data.
        """
        positions = [
            factor.positions.astype(np.float64) for factor in graph.factors if isinstance(factor, GeometricFactor)
        ]
        if graph.power != 2 or len(positions) < graph.n_factors:
            return None
        codes, lengths = graph.codes[anchors], graph.lengths[anchors].astype(np.float64)
        places = np.concatenate([some[codes[:, m]] for m, some in enumerate(positions)], axis=1)
        if len(places) < _ANCHORS_PER_COORDINATE * (places.shape[1] + 1):
            return None
        powers = between.astype(np.float64) ** graph.gauge
        np.fill_diagonal(powers, 2 * lengths)  # an item is at distance 0 from itself, which says nothing
        solved = (powers - lengths - (places**2).sum(axis=1)) @ solution(places).T
        weights = solution(solved[:, :-1])[:-1]
        slopes, constants, shares, begin = [], [], [], 0
        for some in positions:
            end = begin + some.shape[1]
            spread = np.atleast_2d(np.cov(places[:, begin:end].T))
            slopes.append((-2 * some @ spread).ravel())
            constants.append(((some @ spread) * some).sum(axis=1))
            shares.append((some**2).sum(axis=1) - 2 * some @ places[:, begin:end].mean(axis=0))
            begin = end
        rough = cls(
            {
                "quarters": round(4 * graph.gauge),
                "weights": np.ascontiguousarray(weights, np.float32),
                "offsets": (weights @ solved[:, -1]).astype(np.float32),
                "n_hubs": np.array([len(some) for some in positions], np.int32),
                "n_dimensions": np.array([some.shape[1] for some in positions], np.int32),
                "slopes": np.concatenate(slopes).astype(np.float32),
                "constants": np.concatenate(constants).astype(np.float32),
                "shares": np.concatenate(shares).astype(np.float32),
                "rest": float(-lengths.mean() - (places**2).sum(axis=1).mean()),
            }
        )
        left = _core.place(between, **rough.arguments, n_jobs=1)[1].astype(np.float64)
        variance = left.var()
        slope = float(((left - left.mean()) * (lengths - lengths.mean())).mean() / variance) if variance > 0 else 0.0
        return cls(rough.arguments, float(lengths.mean() - slope * left.mean()), slope)

    def place(self, target: NDArray[np.float32], n_jobs: int) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        """Return codes and lengths of items by their distances to the anchors, each item by itself."""
        codes, left = _core.place(target, **self.arguments, n_jobs=n_jobs)
        return codes, np.maximum(np.float32(self.intercept) + np.float32(self.slope) * left, np.float32(0))


def solution(places: Floats) -> Floats:
    """Return the matrix that takes D ** gauge − |y|² − c to positions, and to |x|² + e at last, shape [K + 1, A]."""
    return np.asarray(np.linalg.pinv(np.concatenate([-2 * places, np.ones((len(places), 1))], axis=1)))
