r"""The L0 penalty of the paper: Bernoulli edges, and a penalty on their number that meets a budget.

Edge :math:`e` of the candidates is present with probability :math:`p_e = \sigma(\theta_e)`. Learned is what minimises
the expected error over all pairs and the penalty of the edges (equation 4 of the paper):

.. math:: R = \mathbb{E}_G \operatorname{mean}_{i \ne j} \bigl(d_G(i, j) - D_{ij}\bigr)^2
          + \lambda \operatorname{mean}_e p_e

In the end the edges with :math:`p \ge 0.5` are kept. Three things make this work in minutes:

*Candidates.* Every item is joined to its nearest ones and to some random ones, and the random ones are the same for
all (:mod:`prodige.compression.paper.candidates`).

*Credit.* A pair's loss is charged to the edges that decide it, not to all that were drawn
(:mod:`prodige.compression.paper.bernoulli`). All sources of a step search the same few drawn graphs; a search thereby
says something about the edges of every item it reaches, not of its source only.

*Penalty.* :math:`\lambda` is solved for at every step, such that the expected number of edges falls geometrically to
the budget and stays there. So users name a size, and learn the penalty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from prodige import _core
from prodige._validation import check_integer, check_number
from prodige.compression.paper.bernoulli import START, BernoulliEdges, estimate_importance, find_penalty
from prodige.compression.paper.candidates import StarStart, choose_n_random, join, most_random, relative_variance
from prodige.graph.engine import Engine
from prodige.graph.graph import Graph
from prodige.graph.spanning import keep_connected, spanning_forest
from prodige.metric.space import Space
from prodige.progress import Callback, Monitor, Record, Stopped
from prodige.threads import count_threads, one_thread

# Steps of a whole run; the shares of it when edges begin to be judged, begin to cost something, are as few as the
# budget wants, and are settled. What is left of the run learns weights alone.
N_STEPS = 400
JUDGED = 0.04
PENALISED = 0.08
THINNED = 0.5
SETTLED = 0.65

# Sources of a step, and graphs drawn for it. A graph serves all sources, so it costs little to draw.
_N_SOURCES = 64
_N_GRAPHS = 4

# Logits where an edge is given up, and how sure one may become (it must stay in doubt to learn).
_HOPELESS = -4.0
_SURE = 4.0

# Steps of the logits, by the importance of an edge as a part of the loss; those of edges between random items, which
# all pairs judge, by the typical difference between two drawn graphs; and steps of the weights, in mean distances.
_RATE = 0.5
_RANDOM_RATE = 0.05
_WEIGHT_RATE = 0.04

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class L0Result:
    """A graph within the budget, and how it came about.

    Attributes
    ----------
    graph : Graph
        Connects all items; no hubs.
    history : list of prodige.progress.Record
        One for each step; its edges are those with p ≥ 0.5.
    lambda_ : float
        The penalty that met the budget, in squared distances; 0 where all candidates fit in.
    stopped : {"finished", "callback", "interrupt"}
        Why the run ended.
    """

    graph: Graph
    history: list[Record]
    lambda_: float
    stopped: Stopped

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self.stopped == "interrupt"


@one_thread()
def fit_l0(
    space: Space,
    numbers_per_item: float,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callbacks: Sequence[Callback] | None = None,
    n_steps: int = N_STEPS,
    max_time: float | None = None,
    n_neighbors: int = 4,
    n_random: int | None = None,
) -> L0Result:
    """Fit a graph of items alone, its edges chosen by the score function under a penalty on their number.

    Edges with p ≥ 0.5 are kept. Their number meets the budget up to a few; these are settled by probability too: the
    most probable spanning tree is kept so that no item is cut off, and the most probable of the others fill the budget.

    Parameters
    ----------
    space : Space
        The items with their metric; at least 2.
    numbers_per_item : float
        Memory: one number per vertex and two per edge, divided by the items. It takes 3 - 2/N to connect N items.
    random_state : int, RandomState or None
        A seed gives the same graph on the same machine with any number of threads, unless ``max_time`` is set.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    verbose : int
        Above 0 shows a progress bar.
    callbacks : sequence of callable, optional
        Each is called with a :class:`prodige.progress.Record` after every step; one that returns True ends the run.
    n_steps : int
        Length of the run.
    max_time : float, optional
        Seconds; replaces the number of steps as the measure of progress.
    n_neighbors : int
        Nearest items that each is joined to by candidate edges.
    n_random : int, optional
        Random items, the same for all, that each is joined to; few enough that all edges among them fit into the
        budget. When left out: a quarter of the root of N, or fewer where distances differ little.

    Returns
    -------
    L0Result
        Ctrl-C ends a run early, but not without a graph once the first step has begun.

    Raises
    ------
    ValueError
        If no connected graph is as small as the budget.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.paper.l0 import fit_l0
    >>> from prodige.metric.space import Space
    >>> space = Space(np.random.default_rng(0).normal(size=(200, 5)))
    >>> result = fit_l0(space, numbers_per_item=4, random_state=0, n_steps=50)
    >>> result.graph.n_items, result.graph.numbers_per_item, result.lambda_ > 0
    (200, 4.0, True)
    """
    n_threads = count_threads(n_jobs)
    if max_time is not None:
        max_time = check_number("max_time", max_time)
    n_steps = check_integer("n_steps", n_steps, 1, 2**31)
    monitor = Monitor(n_steps, max_time, callbacks=callbacks, verbose=verbose)
    n = space.n_items
    n_edges = edges_allowed(numbers_per_item, n)
    random = check_random_state(random_state)
    if n_random is None:
        n_random = choose_n_random(n, n_edges, relative_variance(space, random))
    check_integer("n_random", n_random, 1, most_random(n, n_edges))
    random_items = np.sort(random.choice(n, n_random, replace=False))
    start = StarStart.of(space, random_items, random)
    n_neighbors = check_integer("n_neighbors", n_neighbors, 0, 2**31)
    if monitor.in_a_hurry:  # finding neighbours takes long
        n_neighbors = 0
    edges = join(space, random_items, start, n_neighbors, n_threads)
    run = L0Fit(space, edges, random_items, start, n_edges, random, n_threads)
    try:
        for progress in monitor.run():
            loss = run.step(progress)
            likely = run.edges.n_likely
            monitor.record(progress, loss, likely, (n + 2 * likely) / n, run.lambda_)
    except KeyboardInterrupt:
        monitor.stopped = "interrupt"
    return L0Result(run.finish(), monitor.history, run.mean_lambda, monitor.stopped)


def edges_allowed(numbers_per_item: float, n_items: int) -> int:
    """Return how many edges a budget allows; refuse one that connects no graph."""
    if n_items < 2:
        raise ValueError(f"space must have 2 items or more, got {n_items}: there are no distances to keep")
    least = 3 - 2 / n_items
    if not (math.isfinite(numbers_per_item) and numbers_per_item >= least - 1e-9):
        raise ValueError(
            f"numbers_per_item must be finite and enough to connect the items, got {numbers_per_item}: "
            f"{n_items} items need {n_items - 1} edges, {least:.4g} numbers an item; "
            f"give at least {math.ceil(least * 1000) / 1000:.4g}"
        )
    return int((numbers_per_item - 1) * n_items / 2 + 1e-9)


@dataclass(frozen=True)
class Losses:
    """What the searches of one step found.

    Attributes
    ----------
    of_item : ndarray, shape [K, N]
        Mean squared error of each item's distances to the sources, in each graph.
    mean : ndarray, shape [K]
        Mean squared error of all pairs.
    slope : ndarray, shape [E]
        Derivative of the mean over the graphs by each weight.
    """

    of_item: NDArray[np.float64]
    mean: NDArray[np.float64]
    slope: Floats


class L0Fit:
    """The moving parts of one call of :func:`fit_l0`. Distances are in units of their mean."""

    def __init__(
        self,
        space: Space,
        edges: BernoulliEdges,
        random_items: NDArray[np.int64],
        start: StarStart,
        n_edges: int,
        random: np.random.RandomState,
        n_jobs: int,
    ) -> None:
        self.space = space
        self.edges = edges
        self.scale = start.scale
        self.unreachable = start.unreachable
        self.n_edges = min(n_edges, edges.size)
        self.random = random
        self.n_jobs = n_jobs
        self.n_candidates = edges.size
        self.is_random = np.zeros(space.n_items, dtype=bool)
        self.is_random[random_items] = True
        self.lambda_ = 0.0
        self._engine: Engine | None = None
        self._lambdas: list[float] = []
        self._n_steps = 0
        self._loss: float | None = None
        self._spread: float | None = None
        self._order = np.empty(0, dtype=np.int32)

    @property
    def mean_lambda(self) -> float:
        """Penalty of an edge since the graph reached its size; before, the latest one."""
        return float(np.mean(self._lambdas)) if self._lambdas else self.lambda_

    def step(self, progress: float) -> float:
        """Take one step; return the mean squared error in squared distances."""
        sources = self._draw_sources()
        target = self.space.distances(sources) / np.float32(self.scale)
        rate = _WEIGHT_RATE
        if progress < SETTLED and self.n_edges < self.n_candidates:
            drawn = [self.edges.sample(self.random) for _ in range(_N_GRAPHS)]
            losses = self._search(sources, target, drawn)
            if progress >= JUDGED:
                self._learn_probabilities(losses, drawn, progress)
            self._learn_weights(losses.slope, rate)
            self._give_up()
        else:
            self._settle()
            losses = self._search(sources, target, [np.ones(self.edges.size, dtype=bool)])
            rate *= 1 - max(progress - SETTLED, 0) / (1 - SETTLED)
            self._learn_weights(losses.slope, rate)
        return float(losses.mean.mean()) * self.scale**2

    def finish(self) -> Graph:
        """Return the graph of the edges kept."""
        self._settle()
        edges, n = self.edges, self.space.n_items
        return Graph.from_edges(edges.tail, edges.head, edges.weight * self.scale, n_vertices=n, n_items=n)

    def _draw_sources(self) -> Ids:
        """Return the sources of the next step; every item comes once before any comes again."""
        size = min(_N_SOURCES, self.space.n_items)
        if self._order.size < size:
            self._order = self.random.permutation(self.space.n_items).astype(np.int32)
        sources, self._order = self._order[:size], self._order[size:]
        return sources

    def _search(self, sources: Ids, target: Floats, graphs: list[Mask]) -> Losses:
        """Search every graph from all sources."""
        n, rows = self.space.n_items, np.arange(sources.size)
        of_item = np.empty((len(graphs), n))
        slope = np.zeros(self.edges.size, dtype=np.float32)
        n_pairs = sources.size * (n - 1)
        for loss, present in zip(of_item, graphs, strict=True):
            engine = self._engine_of(present)
            forest = engine.search(sources, self.n_jobs)
            threads = engine.threads(self.n_jobs, sources.size)
            residual = forest.distances(None, n, threads)
            cut_off = np.isinf(residual)
            residual[cut_off] = self.unreachable
            residual -= target
            residual[rows, sources] = 0
            np.sum(np.square(residual), axis=0, out=loss)
            residual[cut_off] = 0  # no weight can help there
            slope[present] += forest.backward(residual * np.float32(2 / n_pairs / len(graphs)), None, threads)
        mean = of_item.sum(axis=1) / n_pairs
        n_others = np.full(n, sources.size)
        n_others[sources] -= 1
        of_item /= np.maximum(n_others, 1)
        return Losses(of_item, mean, slope)

    def _engine_of(self, present: Mask) -> Engine:
        edges, n = self.edges, self.space.n_items
        if present.all() and self._engine is not None and self._engine.topology.n_edges == edges.size:
            self._engine = self._engine.with_weights(edges.weight, self.n_jobs)
            return self._engine
        topology = _core.Topology(n, edges.tail[present], edges.head[present])
        layout = _core.HubLayout(topology, self.is_random.astype(np.uint8))
        # With many edges between neighbours the hub engine has no less to search, and more to prepare.
        best = layout if 2 * layout.n_core < n else None
        engine = Engine(topology, edges.weight[present], n, best, self.n_jobs)
        self._engine = engine if present.all() else None
        return engine

    def _learn_weights(self, slope: Floats, rate: float) -> None:
        """Take a step of Adam."""
        self._n_steps += 1
        self.edges = replace(self.edges, weights=self.edges.weights.descend(slope, rate, self._n_steps))

    def _learn_probabilities(self, losses: Losses, drawn: list[Mask], progress: float) -> None:
        """Move every logit by the importance of its edge, less the penalty of an edge."""
        edges, n = self.edges, self.space.n_items
        importance = estimate_importance(
            losses.of_item, drawn, edges.tail, edges.head, edges.probability, self.is_random
        )
        shared = self.is_random[edges.tail] & self.is_random[edges.head]
        self._loss = running(self._loss, float(losses.mean.mean()))
        self._spread = running(self._spread, float(np.std(losses.mean, ddof=1)))
        rate = np.float32(_RATE * n / 2 / max(self._loss, 1e-12))
        random_rate = np.float32(_RANDOM_RATE / max(self._spread, 1e-12))
        rates: Floats = np.where(shared, np.minimum(random_rate, rate), rate)
        theta: Floats = edges.theta + rates * importance
        if progress >= PENALISED:
            penalty = find_penalty(theta, rates, self._target(progress))
            theta -= rates * np.float32(penalty)
            self.lambda_ = penalty * self.n_candidates * self.scale**2
            if progress >= THINNED:
                self._lambdas.append(self.lambda_)
        self.edges = replace(edges, theta=np.clip(theta, _HOPELESS, _SURE))

    def _target(self, progress: float) -> float:
        """Return the number of edges to be expected at this point of the run."""
        share = min((progress - PENALISED) / (THINNED - PENALISED), 1)
        first = START * self.n_candidates
        return float(first * min(self.n_edges / first, 1) ** share)

    def _give_up(self) -> None:
        """Drop edges that will not come back, so that searches get faster, without leaving an item alone."""
        edges = self.edges
        hopeless = edges.theta <= _HOPELESS
        if edges.size // 50 < hopeless.sum() <= edges.size - self.n_edges:
            tree = spanning_forest(edges.tail, edges.head, edges.theta, self.space.n_items)
            self.edges = edges.keep(~hopeless | tree)

    def _settle(self) -> None:
        """Keep the most probable edges for good: a spanning tree, then as many as the budget allows."""
        edges = self.edges
        if edges.size <= self.n_edges:
            return
        order = np.lexsort((edges.weights.theta, -edges.theta))  # of two equally probable edges the shorter one
        kept = edges.keep(keep_connected(edges.tail, edges.head, order, self.space.n_items, self.n_edges))
        self.edges = replace(kept, theta=np.maximum(kept.theta, 0))  # those that had to be kept count as kept


def running(mean: float | None, value: float) -> float:
    """Return a mean in which older values count less."""
    return value if mean is None else 0.9 * mean + 0.1 * value


__all__ = ["L0Result", "fit_l0"]
