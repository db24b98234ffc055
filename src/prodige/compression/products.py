"""Fitting a product of graphs to distances: many short codes an item, whose factors add up.

It begins with coordinates that classical scaling finds in the distances to landmarks. They are cut into groups, one for
each factor; items that are close in a group share a hub of its factor. From there on only distances count. Three things
are learned in turn, each the best one given all others:

*Positions* of a factor's hubs, from the residuals of all pairs of items by their hubs
(:mod:`prodige.compression.positions`).

*Codes*: at which hub of each factor an item is. The core knows what every other hub would cost without trying it.

*Lengths*: what is left of an item's distances when the factors have said all they can.

Rounding is part of it: positions and lengths go to their grids, and items choose codes once more on these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prodige import _core
from prodige.compression.budget import Budget
from prodige.compression.objective import NearPairs
from prodige.compression.plan import Plan, make_plan
from prodige.compression.positions import distance_powers, move_hubs
from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph
from prodige.metric.clusters import cluster_in_parts
from prodige.metric.landmarks import Landmarks
from prodige.metric.scaling import classical_scaling
from prodige.metric.star import star_radii_of_means
from prodige.progress import Monitor
from prodige.threads import count_threads

Floats = NDArray[np.float64]

# Sweeps over all factors of a whole run, and passes over all items once everything is rounded.
N_SWEEPS = 8
_N_LAST = 2

# Landmarks that coordinates are found from, how many of these there are at most, and the least variance of one as a
# part of the largest: below it lies the rounding of distances.
_N_SCALED = 1024
_N_DIRECTIONS = 96
_LEAST_VARIANCE = 1e-3

# Items that positions are learned from in a sweep: a share of all, but so many at least and at most. More would say no
# more of a few hundred hubs.
_SHARE = 0.5
_LEAST_MEASURED = 4096
_MOST_MEASURED = 12288

# Distances shorter than this part of the mean weigh no more than one of it.
_FLOOR = 0.1

# Lengths outside this share of all of them go to the ends of their grid.
_ENDS = 0.0005


def fit_product(
    landmarks: Landmarks,
    near: NearPairs,
    budget: Budget,
    exponents: tuple[float, float] = (2.0, 2.0),
    monitor: Monitor | None = None,
    random: np.random.RandomState | None = None,
    n_jobs: int | None = None,
    n_items: int | None = None,
) -> ProductGraph | None:
    """Fit a product of graphs within a budget; None where the budget is too small for one.

    Parameters
    ----------
    landmarks : Landmarks
        The distances to fit.
    near : NearPairs
        Distances that count beside them.
    budget : Budget
    exponents : tuple of float
        Power and gauge; gauges are multiples of a quarter.
    monitor : Monitor, optional
        How long to take; :data:`N_SWEEPS` sweeps when left out.
    random : RandomState, optional
    n_jobs : int, optional
        Threads; all processors that this process may use when left out. The result does not depend on it.
    n_items : int, optional
        Items that the product is to have in the end, where those of the landmarks are a sample: its plan is made for
        so many.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.budget import Budget
    >>> from prodige.compression.objective import NearPairs
    >>> from prodige.compression.products import fit_product
    >>> from prodige.metric.landmarks import Landmarks
    >>> from prodige.metric.space import Space
    >>> space = Space(np.random.default_rng(0).normal(size=(300, 5)))
    >>> landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    >>> near = NearPairs.find(space, 0.0, landmarks.sources.size)
    >>> product = fit_product(landmarks, near, Budget(bits=64), random=np.random.RandomState(0))
    >>> product.bits_per_item <= 64, product.is_metric
    (True, True)
    """
    random = np.random.RandomState(0) if random is None else random
    monitor = Monitor(N_SWEEPS) if monitor is None else monitor
    coordinates = find_coordinates(landmarks, exponents)
    n_items = landmarks.n_items if n_items is None else n_items
    plan = make_plan(n_items, budget, coordinates.variances) if coordinates.variances.size else None
    if plan is None:
        return None
    fit = monitor.insist(
        lambda: ProductFit(landmarks, near, plan, coordinates.places, exponents, random, count_threads(n_jobs))
    )
    numbers = plan.numbers(n_items)
    try:
        for progress in monitor.run():
            monitor.record(progress, fit.sweep() * landmarks.scale**2, None, numbers)
    except KeyboardInterrupt:
        monitor.stopped = "interrupt"
    return monitor.insist(fit.freeze)


class Coordinates:
    """Places of all items in a space of few directions, and the variance along each.

    Attributes
    ----------
    places : ndarray of float64, shape [N, K]
    variances : ndarray of float64, shape [K]
        Descending.
    """

    def __init__(self, places: Floats, variances: Floats) -> None:
        self.places = places
        self.variances = variances


def find_coordinates(landmarks: Landmarks, exponents: tuple[float, float]) -> Coordinates:
    """Return coordinates whose distances to the power are near the data's to the gauge, in units of the mean."""
    power, gauge = exponents
    ids, columns = np.unique(landmarks.sources[:_N_SCALED], return_index=True)
    if ids.size < 2:
        return Coordinates(np.empty((landmarks.n_items, 0)), np.empty(0))
    n_directions = min(_N_DIRECTIONS, ids.size - 1)
    distances = landmarks.target[:, columns].T
    places = classical_scaling(distances, ids.astype(np.int64), n_directions, landmarks.scale, gauge / power)
    variances = places[ids].var(axis=0)
    keep = variances > _LEAST_VARIANCE * variances.max(initial=0)
    return Coordinates(places[:, keep], variances[keep])


class ProductFit:
    """A product while it is being fitted; distances are in units of their mean.

    Parameters
    ----------
    landmarks : Landmarks
    near : NearPairs
    plan : Plan
    places : ndarray, shape [N, K]
        Coordinates of the items to begin with.
    exponents : tuple of float
        Power and gauge.
    random : RandomState
    n_jobs : int
        Threads.
    """

    def __init__(
        self,
        landmarks: Landmarks,
        near: NearPairs,
        plan: Plan,
        places: Floats,
        exponents: tuple[float, float],
        random: np.random.RandomState,
        n_jobs: int,
    ) -> None:
        self.plan = plan
        self.power, self.gauge = exponents
        self.random = random
        self.n_jobs = n_jobs
        self.scale = landmarks.scale
        self.sources = landmarks.sources
        self.n_items = landmarks.n_items
        self.codes_fit = _core.CodeFit(
            landmarks.sources,
            landmarks.target / np.float32(self.scale),
            near.items,
            near.distances / np.float32(self.scale),
            np.full(near.items.shape, near.weight, np.float32),
        )
        self.grid: Grid | None = None
        self._start(places)
        self.lengths = self._star(landmarks)

    def _start(self, places: Floats) -> None:
        """Put every item at a hub of each factor, and hubs amid their items."""
        # Below power 2 sides do not add up at right angles: of M equal ones each is shorter.
        shrink = self.plan.n_factors ** (0.5 - 1 / self.power)
        self.positions: list[Floats] = []
        codes = []
        for n_hubs, directions in zip(self.plan.n_hubs, self.plan.directions, strict=True):
            group = places[:, directions]
            # Errors in a direction matter by its variance as well: see the plan.
            stretched = torch.from_numpy(np.ascontiguousarray(group * group.std(axis=0), dtype=np.float32))
            cluster = cluster_in_parts(stretched, n_hubs, self.random, self.n_jobs)
            count = np.bincount(cluster, minlength=n_hubs)
            sums = np.stack([np.bincount(cluster, column, n_hubs) for column in group.T], axis=1)
            self.positions.append(shrink * sums / np.maximum(count, 1)[:, None])
            codes.append(cluster)
        self.codes = np.stack(codes, axis=1).astype(np.uint16)

    def _star(self, landmarks: Landmarks) -> NDArray[np.float32]:
        """Return the lengths that suit the mean of every item's distances best."""
        target = np.empty(self.n_items)
        columns = np.arange(0, self.sources.size, max(1, self.sources.size // 512))
        tables = [distance_powers(positions, self.power) for positions in self.positions]
        for begin in range(0, self.n_items, 1024):
            rows = slice(begin, begin + 1024)
            goal = (landmarks.target[rows, columns] / self.scale).astype(np.float64) ** self.gauge
            for m, table in enumerate(tables):
                goal -= table[self.codes[rows, m]][:, self.codes[self.sources[columns], m]]
            target[rows] = goal.mean(axis=1)
        return np.maximum(star_radii_of_means(target), 0).astype(np.float32)

    def sweep(self) -> float:
        """Learn positions, then codes and lengths; return the mean squared residual before."""
        n_measured = min(max(int(_SHARE * self.n_items), _LEAST_MEASURED), _MOST_MEASURED, self.n_items)
        for m in range(self.plan.n_factors):
            items = np.sort(self.random.permutation(self.n_items)[:n_measured]).astype(np.int32)
            residuals, weights, _ = self.codes_fit.measure_factor(
                **self._state(), items=items, factor=m, n_jobs=self.n_jobs
            )
            self.positions[m] = move_hubs(self.positions[m], residuals, weights, self.power)
        return self._choose_codes()

    def _choose_codes(self) -> float:
        """Let one half of the items choose their codes, then the other: each sees the others stand still."""
        shuffled = self.random.permutation(self.n_items)
        levels: dict[str, Any] = {"least": 0.0, "step": 0.0, "n_levels": 0}
        if self.grid is not None:
            levels = {"least": self.grid.least, "step": self.grid.step, "n_levels": 2**self.grid.bits}
        total = 0.0
        for half in np.array_split(shuffled, 2):
            items = np.sort(half).astype(np.int32)
            codes, lengths, loss = self.codes_fit.choose_codes(
                **self._state(), **levels, items=items, n_rounds=1, n_jobs=self.n_jobs
            )
            self.codes[items], self.lengths[items] = codes, lengths
            total += loss
        return total / (self.n_items * self.sources.size)

    def _state(self) -> dict[str, Any]:
        """Return everything about the present product, as the core wants it."""
        tables = [distance_powers(positions, self.power).astype(np.float32).ravel() for positions in self.positions]
        return {
            "n_hubs": np.array(self.plan.n_hubs, np.int32),
            "tables": np.concatenate(tables),
            "quarters": round(4 * self.gauge),
            "floor": _FLOOR,
            "codes": self.codes,
            "lengths": self.lengths,
            "source_codes": np.ascontiguousarray(self.codes[self.sources].T),
            "source_lengths": self.lengths[self.sources],
        }

    def freeze(self) -> ProductGraph:
        """Round everything, let items choose once more, and return the product in the unit of the data."""
        positions = [Grid.round(some, self.plan.position_bits) for some in self.positions]
        self.positions = [grid.values.astype(np.float64) for grid in positions]
        low, high = np.quantile(self.lengths, [_ENDS, 1 - _ENDS])
        self.grid = Grid.round(np.clip(self.lengths, low, high), self.plan.length_bits)
        self.lengths = self.grid.values.copy()
        for _ in range(_N_LAST):
            self._choose_codes()
        return ProductGraph.from_factors(
            [grid.times(self.scale ** (self.gauge / self.power)) for grid in positions],
            self.codes.astype(np.int32),
            self.grid.nearest(self.lengths).times(self.scale**self.gauge),
            self.power,
            self.gauge,
        )
