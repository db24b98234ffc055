"""Which kind of graph suits a data set and a budget, by fitting those that may.

A handful of items keep all their distances. A budget of not one edge beyond a tree gets a star or a tree of neighbours.
All others get a graph of hubs, unless shortest paths seem to lead past neighbours: then a graph of neighbours is fitted
first, and hubs only if it has an error. The better one is taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from prodige import _core
from prodige.compression.fitting import FittedGraph
from prodige.compression.hubs import N_STEPS, fit_hubs
from prodige.compression.neighbors import N_STEPS as N_LOCAL_STEPS
from prodige.compression.neighbors import fit_local, looks_local
from prodige.graph.graph import Graph
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.metric.star import star_radii_of_means
from prodige.progress import Callback, Monitor
from prodige.threads import count_threads

# Items that all distances are measured to: four thousand leave less than 3 % between the error seen and the true one.
_N_LANDMARKS = 4096

# Where time is limited: the part of it for measuring distances to landmarks, and those measured to see how long that
# takes.
_LANDMARK_TIME = 0.15
_N_TRIED = 64

# Blocks of landmarks that graphs are compared by.
_N_BLOCKS = 16

# A fit that uses less of its budget says so.
_SPENT = 0.6

# A graph whose distances are this close, as a part of the mean, is exact.
_EXACT = 1e-5

Structure = Literal["hubs", "neighbors", "complete", "star", "l0"]


class Selected(NamedTuple):
    """The graph that was taken, of which kind it is, how its run went, and whether much of the budget is left."""

    graph: Graph
    structure: Structure
    monitor: Monitor
    is_unspent: bool = False


@dataclass
class Fit:
    """A graph that may be taken, and the run that fitted it."""

    graph: FittedGraph
    structure: Structure
    monitor: Monitor

    @cached_property
    def error(self) -> float:
        """Mean squared residual over some landmarks; measured only where it decides something."""
        return self.graph.error(np.arange(min(_N_BLOCKS, self.graph.landmarks.n_blocks), dtype=np.int32))

    @property
    def is_exact(self) -> bool:
        """Whether the error is rounding."""
        return self.error <= (_EXACT * self.graph.landmarks.scale) ** 2

    def take(self, is_unspent: bool = False) -> Selected:
        """Return it as the one that was taken."""
        return Selected(self.graph.freeze(), self.structure, self.monitor, is_unspent)


@dataclass(frozen=True)
class Selection:
    """How graphs are fitted; parameters are those of :class:`prodige.DistanceCompressor`.

    Attributes
    ----------
    start : float
        When the fit began, by ``time.perf_counter``.
    """

    n_hubs: int | Literal["auto"]
    max_time: float | None
    callbacks: Sequence[Callback]
    verbose: int
    n_jobs: int | None
    start: float

    def fit(self, space: Space, numbers_per_item: float, random: np.random.RandomState) -> Selected:
        """Return the best graph of distinct items within a budget."""
        n = space.n_items
        if n * (n - 1) + n <= numbers_per_item * n:
            return Selected(complete_graph(space), "complete", Monitor(0))
        landmarks = Landmarks.draw(space, self._count_landmarks(space), random)
        if int((numbers_per_item - 3) * n) < 1:  # not one edge to spare: a hub of its own is too much
            return self._fit_tree(space, landmarks, numbers_per_item)
        return self._fit_graph(space, landmarks, numbers_per_item, random)

    def _fit_tree(self, space: Space, landmarks: Landmarks, numbers_per_item: float) -> Selected:
        """Return the best star around an item, or a tree of neighbours where it is better."""
        star = Fit(star_graph(landmarks, count_threads(self.n_jobs)), "star", Monitor(0))
        monitor = self._monitor(N_LOCAL_STEPS)
        if not self._tries_neighbors(space, monitor.in_a_hurry, np.random.RandomState(0)):
            return star.take()
        tree = fit_local(space, landmarks, numbers_per_item, monitor, 0, self.n_jobs)
        fit = Fit(tree, "neighbors", monitor)
        return (fit if fit.error < star.error else star).take()

    def _fit_graph(
        self, space: Space, landmarks: Landmarks, numbers_per_item: float, random: np.random.RandomState
    ) -> Selected:
        """Return a graph of hubs, or one of neighbours where it is no worse."""
        seed = int(random.randint(2**31))
        hurried = self._monitor(N_LOCAL_STEPS, share=0.5).in_a_hurry
        local: Fit | None = None
        if self._tries_neighbors(space, hurried, random):
            monitor = self._monitor(N_LOCAL_STEPS, share=0.5)
            graph = fit_local(space, landmarks, numbers_per_item, monitor, seed, self.n_jobs)
            local = Fit(graph, "neighbors", monitor)
            if local.is_exact:
                return local.take()
        hubs = self._fit_hubs(landmarks, numbers_per_item, seed, local)
        if local is not None and local.error <= hubs.error:
            local.monitor.stopped = hubs.monitor.stopped
            return local.take()
        is_over = hubs.monitor.stopped == "finished" and not hurried
        is_small = hubs.graph.numbers_per_item < _SPENT * numbers_per_item
        return hubs.take(is_unspent=is_over and is_small and not hubs.is_exact)

    def _fit_hubs(self, landmarks: Landmarks, numbers_per_item: float, seed: int, before: Fit | None) -> Fit:
        """Fit a graph of hubs; it does not go beyond its start where the run before was stopped."""
        monitor = self._monitor(N_STEPS)
        if before is not None and before.monitor.stopped != "finished":
            # Who stopped one run does not want another: hubs as they start, thinned.
            monitor.stopped, monitor.history = before.monitor.stopped, before.monitor.history
        n_hubs = None if self.n_hubs == "auto" else self.n_hubs
        return Fit(fit_hubs(landmarks, numbers_per_item, n_hubs, monitor, seed, self.n_jobs), "hubs", monitor)

    def _tries_neighbors(self, space: Space, hurried: bool, random: np.random.RandomState) -> bool:
        return self.n_hubs == "auto" and not hurried and looks_local(space, random)

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

    def _monitor(self, n_steps: int, share: float = 1.0) -> Monitor:
        """Return the monitor of a run that gets a share of the time left."""
        spent = time.perf_counter() - self.start
        limit = None if self.max_time is None else spent + share * max(self.max_time - spent, 0)
        return Monitor(n_steps, limit, spent, self.callbacks, self.verbose)


def complete_graph(space: Space) -> Graph:
    """Return the graph of all distances, for a handful of items."""
    n = space.n_items
    i, j = np.triu_indices(n, 1)
    return Graph.from_edges(i, j, space.distances(np.arange(n))[i, j], n_vertices=n)


def star_graph(landmarks: Landmarks, n_jobs: int = 1) -> FittedGraph:
    """Return the best star around an item: the smallest connected graph there is."""
    radius = np.maximum(star_radii_of_means(landmarks.target.mean(axis=1, dtype=np.float64)), 0)
    centre = int(radius.argmin())
    others = np.delete(np.arange(landmarks.n_items, dtype=np.int32), centre)
    return FittedGraph(landmarks, 0, others, np.full_like(others, centre), radius[others], n_jobs)
