"""Fitting a product of graphs to distances: many short codes an item, whose factors add up.

It begins with coordinates that classical scaling finds in the distances to landmarks. They are cut into groups, one for
each factor; items that are close in a group share a hub of its factor. From there on only distances count. Three things
are learned in turn, each the best one given all others:

*Positions* of a factor's hubs, from the residuals of all pairs of items by their hubs
(:mod:`prodige.compression.positions`).

*Codes*: at which hub of each factor an item is. The core knows what every other hub would cost without trying it.

*Lengths*: what is left of an item's distances when the factors have said all they can.

Rounding is part of it: positions and lengths go to their grids, and items choose codes once more on these.

Processes may share the work (:mod:`prodige.ranks`). Then each has the distances of its own items only, which is what
takes memory; positions, codes and lengths are the same on all of them after every step.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prodige import _core
from prodige.compression.budget import Budget
from prodige.compression.checkpoints import Checkpoint, State, pack_random, unpack_random
from prodige.compression.coordinates import Coordinates, find_coordinates
from prodige.compression.filesize import expect_bits
from prodige.compression.objective import NearPairs
from prodige.compression.plan import Plan, make_plan, plans_by_bits
from prodige.compression.positions import as_places, distance_powers, move_hubs
from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph
from prodige.metric.clusters import cluster_in_parts
from prodige.metric.landmarks import Landmarks
from prodige.metric.star import star_radii_of_means
from prodige.progress import Monitor, Record
from prodige.ranks import ALONE, Ranks, item_parts
from prodige.threads import count_threads

Floats = NDArray[np.float64]

# Sweeps over all factors of a whole run, and passes over all items once everything is rounded.
N_SWEEPS = 8
_N_LAST = 2

# Rounds of k-means that items get their first codes by.
_N_ROUNDS = 30

# Items that positions are learned from in a sweep: a share of all, but so many at least and at most. More would say no
# more of a few hundred hubs.
_SHARE = 0.5
_LEAST_MEASURED = 4096
_MOST_MEASURED = 12288

# Distances shorter than this part of the mean weigh no more than one of it.
_FLOOR = 0.1

# Plans of each kind that are tried, where files are smaller than these thought; how much of a budget they may take,
# since codes are a little less frequent in the end; the part of it that is worth another plan; how many times the least
# error is too much for that; and how much less is taken where the file was too large after all.
_N_PLANS = 3
_HOPELESS = 1.2
_FILLED = 0.98
_WORTH = 0.03
_LESS = 0.995

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
    ranks: Ranks = ALONE,
    checkpoint: Checkpoint | None = None,
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
        In the same state on all ranks.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out. The result does not depend on it.
    n_items : int, optional
        Items that the product is to have in the end, where those of the landmarks are a sample: its plan is made for
        so many.
    ranks : Ranks, optional
        Processes that share the work; the result does not depend on their number either.
    checkpoint : Checkpoint, optional
        Where the fit goes on from, if it has one of this fit, and where it leaves one now and then.

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
    checkpoint = Checkpoint.none() if checkpoint is None else checkpoint
    n_items = landmarks.n_items if n_items is None else n_items

    def find() -> Coordinates:
        return find_coordinates(landmarks, exponents, ranks)

    def make(plan: Plan) -> ProductFit:
        return ProductFit(landmarks, near, plan, exponents, random, count_threads(n_jobs), ranks)

    state = checkpoint.state("sweeps")
    if state is not None:
        fit = make(Plan.from_json(state.content["plan"]))
        fit.restore(state)
        monitor.history = [Record(**record) for record in state.content["history"]]
    else:
        coordinates = find()
        plan = make_plan(n_items, budget, coordinates.variances) if coordinates.variances.size else None
        if plan is None:
            return None
        fit = make(plan)
        filled = 0.0 if ranks.any(monitor.in_a_hurry) else _FILLED
        monitor.insist(lambda: fit.start(plan, coordinates, budget, n_items, filled))
    numbers = fit.plan.numbers(n_items)
    try:
        for progress in monitor.run(step=len(monitor.history)):
            monitor.record(progress, fit.sweep() * landmarks.scale**2, None, numbers)
            if ranks.any(monitor.stopped != "finished"):  # a callback of any rank ends all
                monitor.stopped = "callback"
            checkpoint.offer("sweeps", lambda: fit.snapshot(monitor))
    except KeyboardInterrupt:
        monitor.stopped = "interrupt"
    if monitor.stopped == "finished":
        checkpoint.offer("sweeps", lambda: fit.snapshot(monitor), last=True)
    product = monitor.insist(fit.freeze)
    if budget.bits is None:
        return product
    filled = _FILLED
    while (size := expect_bits(product, n_items)) > budget.bits:  # codes did not stay as frequent as they began
        filled *= _LESS * budget.bits / size
        hurried = ranks.any(monitor.stopped != "finished" or monitor.max_time is not None)
        n_sweeps = 0 if hurried else N_SWEEPS
        product = monitor.insist(partial(fit_again, fit, find(), budget, n_items, filled, n_sweeps))
    return product


def fit_again(
    fit: ProductFit, coordinates: Coordinates, budget: Budget, n_items: int, filled: float, n_sweeps: int
) -> ProductGraph:
    """Return what comes of a smaller part of a budget; without sweeps, of the plan that counts all bits of codes."""
    plan = make_plan(n_items, budget, coordinates.variances)
    assert plan is not None
    fit.start(plan, coordinates, budget, n_items, filled if n_sweeps else 0.0)
    for _ in range(n_sweeps):
        fit.sweep()
    return fit.freeze()


class ProductFit:
    """A product while it is being fitted; distances are in units of their mean.

    It begins with :meth:`start`, or where another one was, with :meth:`restore`.

    Parameters
    ----------
    landmarks : Landmarks
    near : NearPairs
    plan : Plan
    exponents : tuple of float
        Power and gauge.
    random : RandomState
    n_jobs : int
        Threads.
    ranks : Ranks
        Processes that share the items; positions, codes and lengths of all of them are the same on each.
    """

    def __init__(
        self,
        landmarks: Landmarks,
        near: NearPairs,
        plan: Plan,
        exponents: tuple[float, float],
        random: np.random.RandomState,
        n_jobs: int,
        ranks: Ranks,
    ) -> None:
        self.plan = plan
        self.power, self.gauge = exponents
        self.random = random
        self.n_jobs = n_jobs
        self.ranks = ranks
        self.scale = landmarks.scale
        self.landmarks = landmarks
        self.sources = landmarks.sources
        self.n_items = landmarks.n_items
        self.parts = item_parts(self.n_items)
        mine = [self.parts[number] for number in ranks.share(len(self.parts))]
        rows = slice(mine[0].start, mine[-1].stop) if mine else slice(landmarks.first, landmarks.first)
        self.codes_fit = _core.CodeFit(
            landmarks.sources,
            landmarks.rows(rows) / np.float32(self.scale),
            near.items[rows],
            near.distances[rows] / np.float32(self.scale),
            np.full(near.items[rows].shape, near.weight, np.float32),
            rows.start,
        )
        self.grid: Grid | None = None
        self.positions: list[Floats] = []
        self.codes = np.empty((self.n_items, plan.n_factors), np.uint16)
        self.lengths = np.empty(self.n_items, np.float32)

    # -- where it begins ---------------------------------------------------------------------------------------------

    def start(self, plan: Plan, coordinates: Coordinates, budget: Budget, n_items: int, filled: float = 0.0) -> None:
        """Put every item at a hub of each factor, by the plan that begins with the least error within the budget.

        Plans count the bits of their hubs; frequent codes take fewer in a file. What that saves buys longer codes.

        Parameters
        ----------
        plan : Plan
            Within the budget, whatever codes there will be.
        coordinates : Coordinates
        budget : Budget
        n_items : int
            Items that the file is to have in the end.
        filled : float
            The part of a budget in bits that other plans may take, with codes as frequent as they begin; 0 for no
            other plans.
        """
        self.begin(plan, coordinates.places)
        if budget.bits is None or not filled:
            return
        variances, room = coordinates.variances, filled * budget.bits
        best, least = self._state(), self._error(coordinates)
        for make, handicap in plans_by_bits(n_items, budget.bits, variances):
            given = budget.bits
            for _ in range(_N_PLANS):
                larger = make(given)
                if larger is None or max(larger.n_hubs) > self.n_items // 4:
                    break
                self.begin(larger, coordinates.places)
                size, error = self._expect_bits(n_items), handicap * self._error(coordinates)
                if size <= room and error < least:
                    best, least = self._state(), error
                if 0 <= room - size < _WORTH * room or error > _HOPELESS * least:
                    break
                given += room - size
        self.plan, self.codes, self.positions, self.lengths = best

    def _state(self) -> tuple[Plan, NDArray[np.uint16], list[Floats], NDArray[np.float32]]:
        return self.plan, self.codes, self.positions, self.lengths

    def _error(self, coordinates: Coordinates) -> float:
        """Return the mean squared error of distances between judges."""
        found = self._graph(self._position_grids(), self._length_grid()).distances(
            coordinates.judges, coordinates.judges, n_jobs=1
        )
        true = coordinates.squares ** (self.power / (2 * self.gauge))
        return float(np.square(found / self.scale - true).mean(dtype=np.float64))

    def begin(self, plan: Plan, places: Floats) -> None:
        """Put every item at a hub of each factor of a plan, and hubs amid their items.

        Parameters
        ----------
        plan : Plan
        places : ndarray, shape [N, K]
            Coordinates of all items.
        """
        self.plan, self.grid = plan, None
        # Below power 2 sides do not add up at right angles: of M equal ones each is shorter.
        shrink = self.plan.n_factors ** (0.5 - 1 / self.power)
        seeds = self.random.randint(2**31, size=self.plan.n_factors)

        def factor(m: int) -> tuple[NDArray[np.uint16], Floats]:
            group, n_hubs = places[:, self.plan.directions[m]], self.plan.n_hubs[m]
            # Errors in a direction matter by its variance as well: see the plan.
            stretched = torch.from_numpy(np.ascontiguousarray(group * group.std(axis=0), dtype=np.float32))
            cluster = cluster_in_parts(
                stretched,
                n_hubs,
                np.random.RandomState(seeds[m]),
                self.n_jobs,
                n_rounds=_N_ROUNDS,
                init="k-means++",
            )
            count = np.bincount(cluster, minlength=n_hubs)
            sums = np.stack([np.bincount(cluster, column, n_hubs) for column in group.T], axis=1)
            return cluster.astype(np.uint16), shrink * sums / np.maximum(count, 1)[:, None]

        codes, positions = zip(*self.ranks.in_parts(factor, range(self.plan.n_factors)), strict=True)
        self.codes = np.stack(codes, axis=1)
        self.positions = list(positions)
        self.lengths = self._star()

    def _star(self) -> NDArray[np.float32]:
        """Return the lengths that suit the mean of every item's distances best."""
        columns = np.arange(0, self.sources.size, max(1, self.sources.size // 512))
        tables = [distance_powers(positions, self.power) for positions in self.positions]

        def means(part: slice) -> Floats:
            found = np.empty(part.stop - part.start)
            for begin in range(part.start, part.stop, 1024):
                rows = slice(begin, min(begin + 1024, part.stop))
                goal = (self.landmarks.rows(rows)[:, columns] / self.scale).astype(np.float64) ** self.gauge
                for m, table in enumerate(tables):
                    goal -= table[self.codes[rows, m]][:, self.codes[self.sources[columns], m]]
                found[begin - part.start : rows.stop - part.start] = goal.mean(axis=1)
            return found

        target: Floats = np.concatenate(self.ranks.in_parts(means, self.parts))
        lengths: NDArray[np.float32] = np.maximum(star_radii_of_means(target), 0).astype(np.float32)
        return lengths

    def snapshot(self, monitor: Monitor) -> State:
        """Return all that it takes to go on from here, with any number of ranks."""
        content = {
            "exponents": [self.power, self.gauge],
            "plan": asdict(self.plan),
            "history": [asdict(record) for record in monitor.history],
        }
        arrays: dict[str, NDArray[Any]] = {
            "random": pack_random(self.random),
            "codes": self.codes.copy(),
            "lengths": self.lengths.copy(),
            "positions": np.concatenate([positions.ravel() for positions in self.positions]),
        }
        return State(content, arrays)

    def restore(self, state: State) -> None:
        """Go on from where a fit was; ValueError if that was no fit of this plan and so many items."""
        arrays, n_coordinates = state.arrays, self.plan.n_positions
        for name, like in (
            ("codes", self.codes),
            ("lengths", self.lengths),
            ("positions", np.empty(n_coordinates)),
        ):
            if (arrays[name].shape, arrays[name].dtype) != (like.shape, like.dtype):
                raise ValueError(
                    f"the {name} of a checkpoint must be {like.dtype} {like.shape}, got "
                    f"{arrays[name].dtype} {arrays[name].shape}; begin without it"
                )
        self.random = unpack_random(arrays["random"])
        self.codes, self.lengths = arrays["codes"].copy(), arrays["lengths"].copy()
        shapes = [(n, len(some)) for n, some in zip(self.plan.n_hubs, self.plan.directions, strict=True)]
        ends = np.cumsum([n * k for n, k in shapes])[:-1]
        found = np.split(arrays["positions"], ends)
        self.positions = [one.reshape(shape) for one, shape in zip(found, shapes, strict=True)]

    # -- steps -------------------------------------------------------------------------------------------------------

    def sweep(self) -> float:
        """Learn positions, then codes and lengths; return the mean squared residual before."""
        n_measured = min(max(int(_SHARE * self.n_items), _LEAST_MEASURED), _MOST_MEASURED, self.n_items)
        for m in range(self.plan.n_factors):
            items = np.sort(self.random.permutation(self.n_items)[:n_measured]).astype(np.int32)
            self.positions[m] = self._moved(items, m)
        return self._choose_codes()

    def _moved(self, items: NDArray[np.int32], factor: int) -> Floats:
        """Return positions of a factor's hubs that suit some items better; the first rank solves for all."""
        residuals, weights = self._measure(items, factor)
        return self.ranks.first(lambda: move_hubs(self.positions[factor], residuals, weights, self.power))

    def _measure(self, items: NDArray[np.int32], factor: int) -> Floats:
        """Return the residuals and weights of a factor by pairs of hubs, summed over some items of all ranks."""
        product = self._product()

        def of_part(part: int) -> Floats:
            mine = within(items, self.parts[part])
            found = self.codes_fit.measure_factor(**product, items=mine, factor=factor, n_jobs=1)
            return np.stack(found[:2])

        return self.ranks.add(of_part, len(self.parts), self.n_jobs)

    def _choose_codes(self) -> float:
        """Let one half of the items choose their codes, then the other: each sees the others stand still."""
        shuffled = self.random.permutation(self.n_items)
        levels: dict[str, Any] = {"least": 0.0, "step": 0.0, "n_levels": 0}
        if self.grid is not None:
            levels = {"least": self.grid.least, "step": self.grid.step, "n_levels": 2**self.grid.bits}
        total = 0.0
        for half in np.array_split(shuffled, 2):
            items = np.sort(half).astype(np.int32)
            n_dimensions, positions = as_places(self.positions) if self.power == 2 else (None, None)
            product = {**self._product(), "n_dimensions": n_dimensions, "positions": positions}

            def of_part(
                part: slice, items: NDArray[np.int32] = items, product: dict[str, Any] = product
            ) -> tuple[NDArray[np.uint16], NDArray[np.float32], float]:
                return self.codes_fit.choose_codes(**product, **levels, items=within(items, part), n_rounds=1, n_jobs=1)

            codes, lengths, losses = zip(*self.ranks.in_parts(of_part, self.parts, self.n_jobs), strict=True)
            self.codes[items], self.lengths[items] = np.concatenate(codes), np.concatenate(lengths)
            total += sum(losses)
        return total / (self.n_items * self.sources.size)

    def _product(self) -> dict[str, Any]:
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
        positions, self.grid = self._position_grids(), self._length_grid()
        self.positions = [grid.values.astype(np.float64) for grid in positions]
        self.lengths = self.grid.values.copy()
        for _ in range(_N_LAST):
            self._choose_codes()
        return self._graph(positions, self.grid.nearest(self.lengths))

    def _expect_bits(self, n_items: int) -> float:
        """Return the bits an item of the file of what there is now."""
        return expect_bits(self._graph(self._position_grids(), self._length_grid()), n_items)

    def _graph(self, positions: list[Grid], lengths: Grid) -> ProductGraph:
        return ProductGraph.from_factors(
            [grid.times(self.scale ** (self.gauge / self.power)) for grid in positions],
            self.codes.astype(np.int32),
            lengths.times(self.scale**self.gauge),
            self.power,
            self.gauge,
        )

    def _position_grids(self) -> list[Grid]:
        return [Grid.round(some, self.plan.position_bits) for some in self.positions]

    def _length_grid(self) -> Grid:
        low, high = np.quantile(self.lengths, [_ENDS, 1 - _ENDS])
        return Grid.round(np.clip(self.lengths, low, high), self.plan.length_bits)


def within(items: NDArray[np.int32], part: slice) -> NDArray[np.int32]:
    """Return those of ascending items that are in a part.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.products import within
    >>> within(np.array([1, 4, 6], np.int32), slice(2, 6))
    array([4], dtype=int32)
    """
    return items[slice(*np.searchsorted(items, [part.start, part.stop]))]
