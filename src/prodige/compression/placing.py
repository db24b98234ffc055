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

In a product of lines (:mod:`prodige.compression.lines`) items hang by pendant edges, so distances are linear in
nothing. What classical scaling says of a new item is where it begins, a Gauss–Newton step or two hang it
(:mod:`prodige.compression.pendants`), and hubs cost the bits of their codes as well, as in the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.compression.lines import PRICE, hub_bits
from prodige.compression.near_places import Beside
from prodige.compression.pendants import Anchors, blocks_of, linear_map
from prodige.graph.factors import GeometricFactor
from prodige.graph.product import ProductGraph
from prodige.metric.scaling import Floats, scaled, scaling_basis
from prodige.threads import in_parts

# Anchors for each coordinate, at least: of fewer, positions are mostly rounding of anchors.
_ANCHORS_PER_COORDINATE = 4

# Directions that matter less than this part of the most are not known.
_TINY = 1e-9

# Directions of classical scaling for each line; Gauss–Newton steps of anchors, whose distances say where they are.
_DIRECTIONS_FOR_A_LINE = 2
_N_EXACT = 4

# Gauss–Newton steps where near items count as well.
_N_NEAR_ROUNDS = 8

# Prices that are tried, and the highest, as a part of that of the fit.
_N_PRICES = 8
_MOST_PRICE = 2.0


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
        if graph.power != 2 or graph.pendant or len(positions) < graph.n_factors:
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
        return cls(rough.arguments, float(lengths.mean() - slope * left.mean()), slope)

    def place(self, target: NDArray[np.float32], n_jobs: int) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        """Return codes and lengths of items by their distances to the anchors, each item by itself."""
        codes, left = _core.place(target, **self.arguments, n_jobs=n_jobs)
        return codes, np.maximum(np.float32(self.intercept) + np.float32(self.slope) * left, np.float32(0))


@dataclass(frozen=True)
class PendantPlacing:
    """What hangs items in a product of lines by their distances to anchors, in units of the mean of these.

    Attributes
    ----------
    scale : float
        The unit.
    exact, known : Anchors
        Where anchors are by their own distances, and where the product has them.
    weights, offsets : ndarray of float32, shape [K, A] and [K]
        What makes a start of squared distances.
    positions : list of ndarray of float32, shape [H]
        Of the hubs of each line.
    ends : list of ndarray of float32, shape [h - 1]
        Between the stretches of a line that go to the same hub.
    hubs : list of ndarray of uint16, shape [h]
        Which hub that is.
    """

    scale: float
    exact: Anchors
    known: Anchors
    weights: NDArray[np.float32]
    offsets: NDArray[np.float32]
    positions: list[NDArray[np.float32]]
    ends: list[NDArray[np.float32]]
    hubs: list[NDArray[np.uint16]]

    @classmethod
    def make(cls, graph: ProductGraph, anchors: NDArray[np.int64], between: NDArray[np.float32]) -> PendantPlacing:
        """Return what places items in a product of lines; parameters are those of :meth:`LinearPlacing.make`."""
        n = len(anchors)
        scale = float(between.sum(dtype=np.float64)) / max(n * (n - 1), 1) or 1.0
        positions = [factor.positions[:, 0] / np.float32(scale) for factor in line_factors(graph)]
        codes = graph.codes[anchors]
        lengths = graph.lengths[anchors] / np.float32(scale)
        known = Anchors(np.stack([some[codes[:, m]] for m, some in enumerate(positions)], axis=1), lengths)
        target = between / np.float32(scale)
        squares = np.square(target, dtype=np.float64)
        np.fill_diagonal(target, 2 * lengths)  # an item is at distance 0 from itself, which says nothing
        exact = Anchors(*known.hang(target, known.places, _N_EXACT))
        mean, basis = scaling_basis(squares.copy(), min(_DIRECTIONS_FOR_A_LINE * len(positions), n - 1))
        basis = basis[:, basis.any(axis=0)]
        along = linear_map(scaled(squares, mean, basis), exact.places)
        weights = -(basis @ along[:-1]).T / 2
        return cls(
            scale,
            exact,
            known,
            np.ascontiguousarray(weights, np.float32),
            (along[-1] - weights @ mean).astype(np.float32),
            positions,
            *stretches(positions, codes, exact.places),
        )

    def hang(self, graph: ProductGraph) -> Anchors:
        """Return where all items of the product hang."""
        places = [some[graph.codes[:, m]] for m, some in enumerate(self.positions)]
        return Anchors(np.stack(places, axis=1), graph.lengths / np.float32(self.scale))

    def place(
        self, target: NDArray[np.float32], n_jobs: int, near: NearTarget | None = None
    ) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        """Return codes and lengths of items by their distances to the anchors, and to near items, each by itself."""
        blocks = in_parts(lambda rows: self._place(target[rows], near, rows), blocks_of(len(target)), n_jobs)
        codes, lengths = zip(*blocks, strict=True)
        return np.concatenate(codes), np.concatenate(lengths)

    def _place(
        self, target: NDArray[np.float32], near: NearTarget | None, rows: slice
    ) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        target = target / np.float32(self.scale)
        start = _core.multiply_rows(np.square(target), self.weights, 1) + self.offsets
        places, _ = self.exact.hang(target, start)
        beside = None if near is None else near.beside(rows, self.scale, target.shape[1])
        if beside is not None:
            places, _ = self.exact.hang(target, places, _N_NEAR_ROUNDS, beside)
        codes = np.empty(places.shape, np.uint16)
        for m, (ends, hubs) in enumerate(zip(self.ends, self.hubs, strict=True)):
            codes[:, m] = hubs[np.searchsorted(ends, places[:, m])]
        rounded = np.stack([some[codes[:, m]] for m, some in enumerate(self.positions)], axis=1)
        left = (target - self.known.measure(rounded)).mean(axis=1) - self.known.lengths.mean()
        if beside is None:
            lengths = np.maximum(left, np.float32(0))
        else:
            lengths = beside.suit_length(beside.measure(rounded)[1], left, target.shape[1])
        return codes, lengths * np.float32(self.scale)


@dataclass(frozen=True)
class NearTarget:
    """Near items of new ones: which of those that hang already, and how far they should be.

    Attributes
    ----------
    hung : Anchors
    items : ndarray of int32, shape [M, k]
    distances : ndarray of float32, shape [M, k]
    weight : float
        How much near items count all together, where all anchors together count 1.
    """

    hung: Anchors
    items: NDArray[np.int32]
    distances: NDArray[np.float32]
    weight: float

    def beside(self, rows: slice, scale: float, n_anchors: int) -> Beside:
        """Return the near items of some rows. An item does not count beside itself, nor beside a copy."""
        items, distances = self.items[rows], self.distances[rows] / np.float32(scale)
        share = np.float32(self.weight * n_anchors / items.shape[1])
        return Beside(self.hung.places[items], self.hung.lengths[items], distances, share * (distances > 0))


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


def by_anchors(places: Floats, lengths: Floats, powers: Floats) -> tuple[Floats, Floats]:
    """Return weights of powers of distances for each coordinate, and what is taken from their sum."""
    powers = powers.copy()
    np.fill_diagonal(powers, 2 * lengths)  # an item is at distance 0 from itself, which says nothing
    solved = (powers - lengths - (places**2).sum(axis=1)) @ solution(places).T
    weights = solution(solved[:, :-1])[:-1]
    return weights, weights @ solved[:, -1]


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


def line_factors(graph: ProductGraph) -> list[GeometricFactor]:
    """Return the factors of a product of lines."""
    found = [some for some in graph.factors if isinstance(some, GeometricFactor) and some.n_dimensions == 1]
    if len(found) < graph.n_factors or (graph.power, graph.gauge) != (2, 2):
        raise ValueError("items hang by pendant edges only in products of lines of power 2 and gauge 2")
    return found


def stretches(
    positions: list[NDArray[np.float32]], codes: NDArray[np.int32], places: NDArray[np.float32]
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.uint16]]]:
    """Return which stretches of each line go to which hub, at the price for which codes of anchors have their bits.

    Parameters
    ----------
    positions : list of ndarray, shape [H]
        Of the hubs of each line, ascending.
    codes : ndarray, shape [A, M]
        Of the anchors, as the fit chose them.
    places : ndarray, shape [A, M]
        Where these are.
    """
    # Of the anchors alone: what was inserted before must not change where an item goes.
    bits = [hub_bits(column, some.size) for column, some in zip(codes.T, positions, strict=True)]
    given = sum(float(of_hubs[column].sum()) for of_hubs, column in zip(bits, codes.T, strict=True))

    def at(price: float) -> tuple[list[NDArray[np.float32]], list[NDArray[np.uint16]]]:
        lines = [
            cheapest(some.astype(np.float64), price * float(np.median(np.diff(some))) ** 2 * of_hubs)
            for some, of_hubs in zip(positions, bits, strict=True)
        ]
        return [ends for ends, _ in lines], [hubs for _, hubs in lines]

    low, high = 0.0, _MOST_PRICE * PRICE
    for _ in range(_N_PRICES):
        price = (low + high) / 2
        found = [hubs[np.searchsorted(ends, column)] for ends, hubs, column in zip(*at(price), places.T, strict=True)]
        is_dear = sum(float(of_hubs[some].sum()) for of_hubs, some in zip(bits, found, strict=True)) > given
        low, high = (price, high) if is_dear else (low, price)
    return at((low + high) / 2)


def cheapest(positions: Floats, costs: Floats) -> tuple[NDArray[np.float32], NDArray[np.uint16]]:
    """Return where a line goes over from one hub to the next, and the hubs that have a stretch at all.

    An item at x goes to the hub h of the least (x − p_h)² + cost_h, which is a straight line in x but for x².

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.placing import cheapest
    >>> ends, hubs = cheapest(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.5, 0.0]))
    >>> ends.tolist(), hubs.tolist()
    ([1.0], [0, 2])
    """
    kept: list[int] = []
    ends: list[float] = []
    for hub, position in enumerate(positions):
        while kept:
            last = kept[-1]
            rise = position**2 + costs[hub] - positions[last] ** 2 - costs[last]
            end = rise / (2 * (position - positions[last]))
            if not ends or end > ends[-1]:
                ends.append(float(end))
                break
            kept.pop()
            ends.pop()
        kept.append(hub)
    return np.array(ends, np.float32), np.array(kept, np.uint16)
