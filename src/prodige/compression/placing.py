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

In a product of lines (:mod:`prodige.compression.lines`) hubs cost the bits of their codes as well, as in the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.compression.coordinates import FLOOR
from prodige.compression.lines import PRICE, hub_bits
from prodige.graph.factors import GeometricFactor
from prodige.graph.product import ProductGraph
from prodige.metric.scaling import scaled, scaling_basis

Floats = NDArray[np.float64]

# Anchors for each coordinate, at least: of fewer, positions are mostly rounding of anchors.
_ANCHORS_PER_COORDINATE = 4

# Directions that matter less than this part of the most are not known.
_TINY = 1e-9

# Lines that the tolerance of a fit is known by: those of the most hubs.
_N_STEPS = 5

# Hubs of longer lines hardly moved when they were put amid their items.
_FEW_HUBS = 16

# Prices that are tried, and the highest, as a part of that of the fit.
_N_PRICES = 8
_MOST_PRICE = 2.0

# By how much worse than without prices a placing along lines may be: it takes fewer bits.
_WORTH = 1.1


@dataclass(frozen=True)
class LinearPlacing:
    """What turns distances to anchors into codes and lengths, as the core wants it.

    Attributes
    ----------
    arguments : dict
        Of ``_core.place``.
    intercept, slope : float
        Lengths are the first and so many times what is left of the distances.
    is_priced : bool
        Whether factors are lines, and hubs are chosen by the bits of their codes as well.
    """

    arguments: dict[str, Any]
    intercept: float = 0.0
    slope: float = 1.0
    is_priced: bool = False

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
        parts = Parts(graph, anchors, between, positions, places, lengths)
        rough = cls(parts.arguments(*by_anchors(places, lengths, parts.powers), nearest_costs(positions, places)))
        left = _core.place(between, **rough.arguments, n_jobs=1)[1].astype(np.float64)
        variance = left.var()
        slope = float(((left - left.mean()) * (lengths - lengths.mean())).mean() / variance) if variance > 0 else 0.0
        nearest = cls(rough.arguments, float(lengths.mean() - slope * left.mean()), slope)
        if not all(is_line(some) for some in positions):
            return nearest
        priced = parts.priced()
        return priced if parts.error(priced) <= _WORTH * parts.error(nearest) else nearest

    def place(self, target: NDArray[np.float32], n_jobs: int) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        """Return codes and lengths of items by their distances to the anchors, each item by itself."""
        codes, left = _core.place(target, **self.arguments, n_jobs=n_jobs)
        return codes, np.maximum(np.float32(self.intercept) + np.float32(self.slope) * left, np.float32(0))


@dataclass(frozen=True)
class Parts:
    """What placings are made of.

    Attributes
    ----------
    graph : ProductGraph
    anchors : ndarray of int64, shape [A]
    between : ndarray of float32, shape [A, A]
    positions : list of ndarray
        Of the hubs of each factor.
    places, lengths : ndarray of float64, shape [A, K] and [A]
        Of the anchors.
    """

    graph: ProductGraph
    anchors: NDArray[np.int64]
    between: NDArray[np.float32]
    positions: list[Floats]
    places: Floats
    lengths: Floats

    @cached_property
    def powers(self) -> Floats:
        """Distances between anchors to the power of the gauge."""
        return self.between.astype(np.float64) ** self.graph.gauge

    def arguments(self, weights: Floats, offsets: Floats, costs: list[tuple[Floats, Floats]]) -> dict[str, Any]:
        """Return what the core wants: weights of powers for coordinates, and what hubs cost by these and anyway."""
        means = np.split(self.places.mean(axis=0), np.cumsum([some.shape[1] for some in self.positions])[:-1])
        shares = [(some**2).sum(axis=1) - 2 * some @ mean for some, mean in zip(self.positions, means, strict=True)]
        return {
            "quarters": round(4 * self.graph.gauge),
            "weights": np.ascontiguousarray(weights, np.float32),
            "offsets": offsets.astype(np.float32),
            "n_hubs": np.array([len(some) for some in self.positions], np.int32),
            "n_dimensions": np.array([some.shape[1] for some in self.positions], np.int32),
            "slopes": np.concatenate([slopes.ravel() for slopes, _ in costs]).astype(np.float32),
            "constants": np.concatenate([constants for _, constants in costs]).astype(np.float32),
            "shares": np.concatenate(shares).astype(np.float32),
            "rest": float(-self.lengths.mean() - (self.places**2).sum(axis=1).mean()),
        }

    def priced(self) -> LinearPlacing:
        """Return the placing along lines, with the price for which codes of anchors have the bits that the fit gave."""
        weights, offsets = along_lines(self.places, self.powers)
        steps = find_steps(self.positions, weights @ self.powers - offsets[:, None], self.powers)
        # Of the anchors alone: what was inserted before must not change where an item goes.
        given = self.graph.codes[self.anchors]
        bits = [hub_bits(column, len(some)) for column, some in zip(given.T, self.positions, strict=True)]

        def total(codes: NDArray[Any]) -> float:
            return sum(float(some[column].sum()) for some, column in zip(bits, codes.T, strict=True))

        low, high = 0.0, _MOST_PRICE * PRICE
        for _ in range(_N_PRICES):
            price = (low + high) / 2
            costs = line_costs(self.positions, bits, steps, price)
            found = LinearPlacing(self.arguments(weights, offsets, costs), is_priced=True)
            is_dear = total(found.place(self.between, n_jobs=1)[0]) > total(given)
            low, high = (price, high) if is_dear else (low, price)
        return found

    def error(self, placing: LinearPlacing) -> float:
        """Return the mean squared error of distances between anchors if they are placed anew."""
        codes, lengths = placing.place(self.between, n_jobs=1)
        places = np.concatenate([some[codes[:, m]] for m, some in enumerate(self.positions)], axis=1)
        squares = (places**2).sum(axis=1) + lengths
        found = np.maximum(squares[:, None] + squares - 2 * places @ places.T, 0) ** (1 / self.graph.gauge)
        np.fill_diagonal(found, 0)
        return float(np.square(found - self.between).mean())


def is_line(positions: Floats) -> bool:
    """Whether hubs are on a line, in their order."""
    return positions.shape[1] == 1 and len(positions) > 1 and bool((np.diff(positions[:, 0]) > 0).all())


def by_anchors(places: Floats, lengths: Floats, powers: Floats) -> tuple[Floats, Floats]:
    """Return weights of powers of distances for each coordinate, and what is taken from their sum."""
    powers = powers.copy()
    np.fill_diagonal(powers, 2 * lengths)  # an item is at distance 0 from itself, which says nothing
    solved = (powers - lengths - (places**2).sum(axis=1)) @ solution(places).T
    weights = solution(solved[:, :-1])[:-1]
    return weights, weights @ solved[:, -1]


def along_lines(places: Floats, powers: Floats) -> tuple[Floats, Floats]:
    """Return the same for a product of lines, whose directions are those that anchors vary along.

    Many items are at the same hub of a line, which says little of where they are. So coordinates are found from the
    powers anew, and the directions of lines among them.
    """
    mean, basis = scaling_basis(powers.copy(), min(2 * places.shape[1], len(places) - 1))
    basis = basis[:, basis.any(axis=0)]
    centre = places.mean(axis=0)
    directions = find_directions(scaled(powers, mean, basis), places - centre)
    weights = -(basis @ directions).T / 2
    return weights, weights @ mean - centre


def find_directions(found: Floats, places: Floats) -> Floats:
    """Return the direction of each line among coordinates, as columns of length 1.

    Where anchors are the landmarks of the fit, lines are along the coordinates themselves. What is left of places by
    these is then no more than by directions that are fitted to them, but for the numbers that are fitted.
    """
    n, n_lines = len(found), places.shape[1]
    fitted: Floats = np.linalg.lstsq(found, places, rcond=None)[0].astype(np.float64)
    lengths = np.linalg.norm(fitted, axis=0)
    fitted /= np.where(lengths > 0, lengths, 1)
    if found.shape[1] < n_lines:
        return fitted
    sign = np.sign((found[:, :n_lines] * places).sum(axis=0))
    axes = np.eye(found.shape[1], n_lines) * np.where(sign == 0, 1, sign)

    def left(directions: Floats) -> float:
        along = found @ directions
        slope = (along * places).sum(axis=0) / np.maximum((along**2).sum(axis=0), np.finfo(np.float64).tiny)
        return float(((places - slope * along) ** 2).sum())

    return axes if left(axes) < (1 + 2 * found.shape[1] / n) * left(fitted) else fitted


def find_steps(positions: list[Floats], found: Floats, powers: Floats) -> Floats:
    """Return the step of each line as it was in the fit; 0 where nothing is known of its direction.

    Hubs are amid their items, and so farther apart than a step, less so where they are many. The steps of these are
    known, and the others follow from how much directions matter.

    Parameters
    ----------
    positions : list of ndarray, shape [H, 1]
    found : ndarray, shape [M, A]
        Where anchors are along each line.
    powers : ndarray, shape [A, A]
        Their squared distances.
    """
    weights = 1 / np.maximum(powers, FLOOR**2 * powers.mean())
    np.fill_diagonal(weights, 0)
    influences = (weights.sum(axis=1) * found**2).sum(axis=1) - (found * (found @ weights)).sum(axis=1)
    gaps = np.array([np.median(np.diff(some[:, 0])) for some in positions])
    most = np.argsort([-len(some) for some in positions], kind="stable")[:_N_STEPS]
    tolerance = np.median(gaps[most] ** 2 * influences[most])
    is_known = influences > _TINY * influences.max()
    steps: Floats = np.sqrt(np.divide(tolerance, influences, out=np.zeros_like(influences), where=is_known))
    return steps


def line_costs(positions: list[Floats], bits: list[Floats], steps: Floats, price: float) -> list[tuple[Floats, Floats]]:
    """Return what a hub costs by a coordinate, and anyway, for each line: squared error and bits, as in the fit."""
    costs = []
    for some, of_hubs, step in zip(positions, bits, steps, strict=True):
        hubs = some[:, 0]
        if step > 0 and hubs.size <= _FEW_HUBS:  # where hubs were when items chose them
            hubs = np.rint(hubs / np.median(np.diff(hubs))) * step
        costs.append((-2 * hubs[:, None], hubs**2 + price * step**2 * of_hubs))
    return costs


def nearest_costs(positions: list[Floats], places: Floats) -> list[tuple[Floats, Floats]]:
    """Return the same for factors of any directions, which are weighed by how much items vary along them."""
    costs, begin = [], 0
    for some in positions:
        end = begin + some.shape[1]
        spread = np.atleast_2d(np.cov(places[:, begin:end].T))
        costs.append((-2 * some @ spread, ((some @ spread) * some).sum(axis=1)))
        begin = end
    return costs


def solution(places: Floats) -> Floats:
    """Return the matrix that takes D ** gauge − |y|² − c to positions, and to |x|² + e at last, shape [K + 1, A]."""
    return np.asarray(np.linalg.pinv(np.concatenate([-2 * places, np.ones((len(places), 1))], axis=1)))
