"""Which kind of graph suits a data set and a budget, by fitting those that may.

A handful of items keep all their distances. A budget of not one edge beyond a tree gets a star or a tree of
neighbours. All others get a product of graphs (of lines where bits are counted, of larger factors, or the better of
both), unless shortest paths seem to lead past neighbours: then a graph of neighbours is fitted first, and others only
if it has an error. A graph of hubs is fitted beside the product. What is taken is best on pairs that none of them has
seen (:class:`~prodige.compression.objective.Validation`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from prodige import _core
from prodige.compression.budget import AnyGraph, Budget
from prodige.compression.checkpoints import Checkpoint
from prodige.compression.coordinates import find_coordinates
from prodige.compression.exponents import PYTHAGOREAN, choose_exponents, trial_size
from prodige.compression.fitting import FittedGraph
from prodige.compression.hubs import N_STEPS, fit_hubs
from prodige.compression.lines import LINE_BITS, N_TRIALS, count_lines, fit_lines
from prodige.compression.near_places import Neighborhood
from prodige.compression.neighbors import N_STEPS as N_LOCAL_STEPS
from prodige.compression.neighbors import fit_local, looks_local
from prodige.compression.objective import Measured, NearPairs, Validation
from prodige.compression.pendants import PendantFit
from prodige.compression.products import N_SWEEPS, fit_product
from prodige.graph.graph import Graph
from prodige.graph.product_encoding import LEAST_CODED
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.metric.star import star_radii_of_means
from prodige.progress import Callback, Monitor
from prodige.ranks import ALONE, Ranks
from prodige.threads import count_threads

# Items that all distances are measured to: four thousand leave less than 3 % between the error seen and the true one.
_N_LANDMARKS = 4096

# Where time is limited: the part of it for measuring distances to landmarks, and those measured to see how long that
# takes.
_LANDMARK_TIME = 0.15
_N_TRIED = 64

# Where time is limited: what a product gets of what is left when a graph of hubs is fitted as well.
_PRODUCT_TIME = 0.6

# A fit that uses less of its budget says so.
_SPENT = 0.6

# A graph whose distances are this close, as a part of the mean, is exact.
_EXACT = 1e-5

# Where there is a product already, a graph of hubs is tried first: the part of all steps in a trial; the numbers an
# item beyond which such graphs hardly gain; and by how much the trial's error may be above the product's for the whole
# run to be worth while.
_TRIAL_STEPS = 0.25
_TRIAL_NUMBERS = 4.0
_TRIAL_CHANCE = 1.5

# Bits of weights in a packed graph: the most that the budget allows.
_WEIGHT_BITS = (16, 12, 10, 8, 7, 6, 5)

# Bits of a weight of fewer than which a graph is better with fewer edges.
_FINE_WEIGHT_BITS = 7

# What coordinates of lines there may be for a budget: hardly more than bits.
_DIRECTIONS_FOR_A_BIT = 1.25
_MORE_DIRECTIONS = 8

# How many lines are tried at first, as a part of the directions that would have more than one hub where they all were
# lines, and then, as a part of the number before.
_FIRST_LINES = 0.75
_FEWER_LINES = 0.8

# Where time is limited: what lines may take of what is left.
_LINES_TIME = 0.5

Made = TypeVar("Made")

Structure = Literal["hubs", "neighbors", "product", "complete", "star", "l0"]


class Selected(NamedTuple):
    """The graph that was taken, of which kind it is, how its run went, and whether much of the budget is left."""

    graph: AnyGraph
    structure: Structure
    monitor: Monitor
    is_unspent: bool = False


@dataclass
class Fit:
    """A graph that may be taken, and the run that fitted it."""

    graph: AnyGraph
    structure: Structure
    monitor: Monitor
    validation: Validation
    n_jobs: int | None
    ranks: Ranks

    @cached_property
    def measured(self) -> Measured:
        """What pairs set aside say of it; measured only where that decides something."""
        return self.monitor.insist(lambda: self.ranks.first(lambda: self.validation.measure(self.graph, self.n_jobs)))

    @property
    def error(self) -> float:
        """What the objective says of pairs set aside."""
        return self.measured.objective

    def take(self, is_unspent: bool = False) -> Selected:
        """Return it as the one that was taken."""
        return Selected(self.graph, self.structure, self.monitor, is_unspent)


# Makes a graph of so many numbers an item: as it was fitted, as it is in its file if that is small enough, and its run.
Run = Callable[[float], tuple[Graph, Fit | None, Monitor]]


@dataclass(frozen=True)
class Selection:
    """How graphs are fitted; parameters are those of :class:`prodige.DistanceCompressor`.

    Attributes
    ----------
    asked : Budget
        What the user gave, for messages: copies of items may leave less.
    near_weight : float
        How much near pairs count, as :func:`prodige.compression.objective.near_weight` has it.
    start : float
        When the fit began, by ``time.perf_counter``.
    n_items : int, optional
        Items that a product is to have in the end, where it is fitted to a sample of them.
    ranks : Ranks
        Processes that share the fit of a product; other graphs are fitted by the first of them.
    checkpoint : Checkpoint
        Of the fit of a product.
    """

    asked: Budget
    n_hubs: int | Literal["auto"]
    structure: Literal["auto", "graph", "product"]
    near_weight: float
    metric_only: bool
    max_time: float | None
    callbacks: Sequence[Callback]
    verbose: int
    n_jobs: int | None
    start: float = field(default_factory=time.perf_counter)
    n_items: int | None = None
    ranks: Ranks = ALONE
    checkpoint: Checkpoint = field(default_factory=Checkpoint.none)

    def fit(self, space: Space, budget: Budget, random: np.random.RandomState) -> Selected:
        """Return the best graph of distinct items within a budget."""
        if self.structure != "product" and (complete := complete_graph(space, budget)) is not None:
            return Selected(complete, "complete", Monitor(0))
        # What is no product is fitted by the first rank, to distances of all items.
        whole = self.structure != "product" and self.ranks.rank == 0
        landmarks = Landmarks.draw(space, self._count_landmarks(space), random, self.ranks, whole)
        return Choice(self, space, landmarks, budget, random).best()

    def monitor(self, n_steps: int, share: float = 1.0) -> Monitor:
        """Return the monitor of a run that gets a share of the time left."""
        spent = time.perf_counter() - self.start
        limit = None if self.max_time is None else spent + share * max(self.max_time - spent, 0)
        return Monitor(n_steps, limit, spent, self.callbacks, self.verbose)

    def _count_landmarks(self, space: Space) -> int:
        """Return how many landmarks there is time for."""
        if self.max_time is None:
            return _N_LANDMARKS
        possible = 0.0
        for n_tried in (1, _N_TRIED):  # one alone may take long, and says so
            began = time.perf_counter()
            space.distances(np.arange(min(n_tried, space.n_items)))
            now = time.perf_counter()
            possible = _LANDMARK_TIME * (self.max_time - (now - self.start)) / max(now - began, 1e-9) * n_tried
            if possible < _N_TRIED:
                break
        return int(np.clip(possible, _core.LANES, _N_LANDMARKS))


class Choice:
    """The graphs that may suit one data set, fitted one after the other as far as that is worth while.

    Parameters
    ----------
    how : Selection
    space : Space
        Distinct items.
    landmarks : Landmarks
    budget : Budget
    random : RandomState
    """

    def __init__(
        self, how: Selection, space: Space, landmarks: Landmarks, budget: Budget, random: np.random.RandomState
    ) -> None:
        self.how = how
        self.space = space
        self.landmarks = landmarks
        self.budget = budget
        self.random = random
        self.seed = int(random.randint(2**31))
        self.numbers = budget.numbers_of_edges(space.n_items)
        self.near = NearPairs.find(space, how.near_weight, landmarks.sources.size, how.ranks)
        self.validation = Validation(space, landmarks, self.near, how.near_weight, random)

    def best(self) -> Selected:
        """Return the best of what was fitted."""
        hurried = self.how.monitor(N_LOCAL_STEPS, share=0.5).in_a_hurry
        fits: list[Fit] = []
        if self._wants_graph and (local := self._fit_local(hurried)) is not None:
            fits.append(local)
            if local.error <= (_EXACT * self.landmarks.scale) ** 2:
                return local.take()
        is_stopped = bool(fits) and fits[0].monitor.stopped != "finished"
        if self._wants_lines and not is_stopped and (lines := self._fit_lines()) is not None:
            if self._lines_suffice:
                return lines.take()
            fits.append(lines)
            is_stopped = lines.monitor.stopped != "finished"
        if self._wants_product and not is_stopped and (product := self._fit_product(hurried)) is not None:
            fits.append(product)
            is_stopped = product.monitor.stopped != "finished"
        if self._wants_graph and (not fits or not (hurried or is_stopped)):
            fits += self._fit_hubs(fits)
        if not fits:
            raise ValueError(too_small(self.how.asked, self.space.n_items))
        best = min(unbeaten(fits), key=lambda fit: fit.error) if len(fits) > 1 else fits[0]
        best.monitor.stopped = fits[-1].monitor.stopped
        return best.take(is_unspent=best.structure == "hubs" and self._is_unspent(best, hurried))

    @property
    def _wants_product(self) -> bool:
        return self.how.structure != "graph" and self.how.n_hubs == "auto" and self.space.unit == 1

    @property
    def _wants_lines(self) -> bool:
        return (
            self._wants_product and self.budget.bits is not None and self.space.n_items >= LEAST_CODED
        )  # codes of fewer have the bits of their hubs

    @property
    def _lines_suffice(self) -> bool:
        """Whether nothing comes near a product of lines: all directions that matter get bits."""
        bits = self.budget.bits or 0
        return self.space.measure == "euclidean" and bits >= LINE_BITS

    @property
    def _wants_graph(self) -> bool:
        """Whether there is to be a graph with edges, and room for a tree at least."""
        n = self.space.n_items
        return self.how.structure != "product" and self.numbers * n >= n + 2 * (n - 1) - 1e-9

    def _is_unspent(self, fit: Fit, hurried: bool) -> bool:
        is_small = self.budget.numbers is not None and fit.graph.numbers_per_item < _SPENT * self.budget.numbers
        is_exact = fit.error <= (_EXACT * self.landmarks.scale) ** 2
        return fit.monitor.stopped == "finished" and is_small and not hurried and not is_exact

    # -- kinds of graphs ---------------------------------------------------------------------------------------------

    def _fit_local(self, hurried: bool) -> Fit | None:
        """Fit a graph of neighbours where paths seem to lead past them."""
        if self.how.n_hubs != "auto" or hurried or not self.how.ranks.gather(looks_local(self.space, self.random))[0]:
            return None
        return self._with_fine_weights(self._run_local, self.numbers)

    def _run_local(self, numbers: float) -> tuple[Graph, Fit | None, Monitor]:
        monitor = self.how.monitor(N_LOCAL_STEPS, share=0.5)

        def make() -> Graph:
            return fit_local(self.space, self.landmarks, numbers, monitor, self.seed, self.how.n_jobs).freeze()

        graph = self._by_first(make, monitor)
        return graph, self._packed(graph, "neighbors", monitor), monitor

    def _fit_lines(self) -> Fit | None:
        """Fit a product of lines; None where the budget has no room for one."""
        bits = self.budget.bits
        assert bits is not None
        width = self.space.points.shape[1] if self.space.measure == "euclidean" else self.space.n_items
        n_directions = max(1, int(min(width, _DIRECTIONS_FOR_A_BIT * bits + _MORE_DIRECTIONS)))
        monitor, n_jobs = self.how.monitor(N_TRIALS, _LINES_TIME), count_threads(self.how.n_jobs)
        coordinates = monitor.insist(
            lambda: find_coordinates(self.landmarks, PYTHAGOREAN, self.how.ranks, n_directions)
        )
        if not coordinates.variances.size:
            return None
        near = self._neighborhood()
        pendants = monitor.insist(lambda: PendantFit(self.landmarks, coordinates, n_jobs, self.how.ranks, near))
        # What is left out goes to the lengths, and steps of the other lines are smaller. So fewer lines are tried as
        # long as that is better, or else more.
        n_lines = max(1, round(_FIRST_LINES * count_lines(coordinates, bits)))
        best = self._run_lines(pendants, n_lines, bits, monitor)
        for factor in (_FEWER_LINES, 1 / _FEWER_LINES):
            is_better = False
            while best is not None and best.monitor.stopped == "finished":
                other = min(int(factor * n_lines), coordinates.variances.size)
                monitor = self.how.monitor(N_TRIALS, _LINES_TIME)
                if other in (0, n_lines) or self.how.ranks.any(monitor.in_a_hurry):
                    break
                found = self._run_lines(pendants, other, bits, monitor)
                if found is None or found.error >= best.error:
                    break
                best, n_lines, is_better = found, other, True
            if is_better:
                break
        return best

    def _neighborhood(self) -> Neighborhood | None:
        """Return the near pairs that lines are to keep; None of a sample if others will not be asked for theirs."""
        if not self.near.n_near or (self.how.n_items is not None and callable(self.space.metric)):
            return None
        return Neighborhood.of(self.near, self.how.near_weight, self.landmarks.scale)

    def _run_lines(self, pendants: PendantFit, n_lines: int, bits: float, monitor: Monitor) -> Fit | None:
        monitor.insist(lambda: pendants.begin(n_lines))
        is_over = partial(monitor.due, _LINES_TIME)
        monitor.insist(partial(pendants.learn, is_over=is_over))
        hung, n_jobs = monitor.insist(partial(pendants.hang, is_over)), count_threads(self.how.n_jobs)
        graph = self._by_first(
            lambda: fit_lines(hung, bits, self.landmarks.scale, monitor, self.how.n_items, n_jobs), monitor
        )
        return None if graph is None else self._fit(graph, "product", monitor)

    def _fit_product(self, hurried: bool) -> Fit | None:
        """Fit a product of graphs; None where the budget has no room for one."""
        share = _PRODUCT_TIME if self._wants_graph and not hurried else 1.0
        monitor = self.how.monitor(N_SWEEPS, share)
        is_short = hurried or (
            self.how.max_time is not None and trial_size(self.space) > self.landmarks.target.size / 4
        )
        ranks, checkpoint = self.how.ranks, self.how.checkpoint
        try:
            if (state := checkpoint.state("sweeps")) is not None:
                power, gauge = state.content["exponents"]
                exponents = (float(power), float(gauge))
            else:
                exponents = choose_exponents(self.space, self.budget, self.how.metric_only, is_short, self.seed, ranks)
        except KeyboardInterrupt:
            exponents, monitor.stopped = PYTHAGOREAN, "interrupt"  # the fit ends where it would begin
        random = np.random.RandomState(self.seed)
        graph = fit_product(
            self.landmarks,
            self.near,
            self.budget,
            exponents,
            monitor,
            random,
            self.how.n_jobs,
            self.how.n_items,
            ranks,
            checkpoint,
        )
        return None if graph is None else self._fit(graph, "product", monitor)

    def _fit_hubs(self, fits: list[Fit]) -> list[Fit]:
        """Fit a graph of hubs, unless a short run shows that others are far better; none if it is too large."""
        if self.numbers * self.space.n_items < 3 * self.space.n_items + 1:  # not one edge to spare for a hub
            return [self._fit_star()]
        if fits:
            trial = self._fit_hubs_in(min(self.numbers, _TRIAL_NUMBERS), int(_TRIAL_STEPS * N_STEPS))
            if trial is None or trial.error > _TRIAL_CHANCE * min(fit.error for fit in fits):
                return []
        fit = self._fit_hubs_in(self.numbers, N_STEPS)
        return [] if fit is None else [fit]

    def _fit_hubs_in(self, numbers: float, n_steps: int) -> Fit | None:
        return self._with_fine_weights(partial(self._run_hubs, n_steps), numbers)

    def _run_hubs(self, n_steps: int, numbers: float) -> tuple[Graph, Fit | None, Monitor]:
        monitor = self.how.monitor(n_steps)
        n_hubs = None if self.how.n_hubs == "auto" else self.how.n_hubs

        def make() -> Graph:
            return fit_hubs(self.landmarks, numbers, n_hubs, monitor, self.seed, self.how.n_jobs).freeze()

        graph = self._by_first(make, monitor)
        return graph, self._packed(graph, "hubs", monitor), monitor

    def _with_fine_weights(self, run: Run, numbers: float) -> Fit | None:
        """Fit a graph, and where bits leave its weights few also one with fewer edges; return the better."""
        graph, fit, monitor = run(numbers)
        fewer = self._numbers_of_fine_weights(graph, numbers)
        if fewer is None or monitor.stopped != "finished":
            return fit
        other = self._with_fine_weights(run, fewer)
        return min(filter(None, (fit, other)), key=lambda fit: fit.error, default=None)

    def _numbers_of_fine_weights(self, graph: Graph, numbers: float) -> float | None:
        """Return the numbers of a graph whose weights have bits enough in the budget; None where they have them."""
        bits = self.budget.bits
        if bits is None or (size := graph.rounded(_FINE_WEIGHT_BITS).bits_per_item) <= bits:
            return None
        fewer = numbers * bits / size
        return fewer if fewer * self.space.n_items >= 3 * self.space.n_items + 1 else None

    def _fit_star(self) -> Fit:
        """Return the best star around an item."""
        monitor = Monitor(0)
        graph = self._by_first(lambda: star_graph(self.landmarks, count_threads(self.how.n_jobs)).freeze(), monitor)
        fit = self._packed(graph, "star", monitor)
        assert fit is not None
        return fit

    def _by_first(self, make: Callable[[], Made], monitor: Monitor) -> Made:
        """Return a graph that the first rank makes, and let the monitors of the others say how it went."""
        graph, monitor.history, monitor.stopped = self.how.ranks.first(
            lambda: (make(), monitor.history, monitor.stopped)
        )
        return graph

    def _packed(self, graph: Graph, structure: Structure, monitor: Monitor) -> Fit | None:
        """Measure a graph as it will be in its file; None where it does not fit into the budget."""
        if self.budget.bits is not None and not self.budget.allows(graph):
            rounded = (graph.rounded(bits) for bits in _WEIGHT_BITS)
            graph = next((some for some in rounded if self.budget.allows(some)), graph)
            if not self.budget.allows(graph):
                return None
        return self._fit(graph, structure, monitor)

    def _fit(self, graph: AnyGraph, structure: Structure, monitor: Monitor) -> Fit:
        return Fit(graph, structure, monitor, self.validation, self.how.n_jobs, self.how.ranks)


def unbeaten(fits: list[Fit]) -> list[Fit]:
    """Return the fits that no other is better than at all distances and at the nearest items as well."""
    return [fit for fit in fits if not any(other.measured.beats(fit.measured) for other in fits)]


def too_small(budget: Budget, n_items: int) -> str:
    """Return what to say of a budget that allows no graph at all."""
    return (
        f"{budget} is too small: no connected graph of {n_items} different items fits into it; of so few items a file "
        "is mostly its header, so give more, or count numbers_per_item"
        if budget.bits is not None and n_items < 1000
        else f"{budget} is too small for a connected graph of {n_items} different items; give more"
    )


def complete_graph(space: Space, budget: Budget) -> Graph | None:
    """Return the graph of all distances, for a handful of items; None where the budget does not allow it."""
    n = space.n_items
    size = budget.numbers_of_edges(n) if budget.numbers is not None else (budget.bits or 0) / 8
    if n * (n - 1) + n > size * n:  # an edge of a file takes more than eight bits
        return None
    i, j = np.triu_indices(n, 1)
    graph = Graph.from_edges(i, j, space.distances(np.arange(n))[i, j], n_vertices=n)
    return graph if budget.allows(graph) else None


def star_graph(landmarks: Landmarks, n_jobs: int = 1) -> FittedGraph:
    """Return the best star around an item: the smallest connected graph there is."""
    radius = np.maximum(star_radii_of_means(landmarks.target.mean(axis=1, dtype=np.float64)), 0)
    centre = int(radius.argmin())
    others = np.delete(np.arange(landmarks.n_items, dtype=np.int32), centre)
    return FittedGraph(landmarks, 0, others, np.full_like(others, centre), radius[others], n_jobs)
