r"""The way of the paper: every edge a coin, and a price on edges that meets a budget.

Edge :math:`e` of the candidates is present with probability :math:`p_e = \sigma(\theta_e)`. Learned is what minimises
the expected error over all pairs and the price of the edges (equation 4 of the paper):

.. math:: R = \mathbb{E}_G \operatorname{mean}_{i \ne j} \bigl(d_G(i, j) - D_{ij}\bigr)^2
          + \lambda \operatorname{mean}_e p_e

In the end the edges with :math:`p \ge 0.5` are kept. Three things make this work in minutes:

*Candidates.* Every item is joined to its nearest ones and to some random ones, and the random ones are the same for
all: the *pool*. Some of its items become hubs. They take the place of virtual ones, which the paper does not have.

*Credit.* The score function :math:`(L - c)(b_e - p_e)` of the paper, with the loss of a whole search as :math:`L`,
charges every edge with the noise of all others. Here a pair's loss is charged to the edges that decide it: those at its
two ends, and those between items of the pool. Ways lead over the pool, so this leaves out little: that an edge between
neighbours may lie in the middle of a way of others. All sources of a step search the same few drawn graphs; a search
thereby says something about the edges of every item it reaches, not of its source only. What an item loses in one graph
is compared with its losses in the other graphs of the step (leave-one-out baseline).

*Price.* :math:`\lambda` is solved for at every step, such that the expected number of edges falls geometrically to the
budget and stays there. So users name a size, and learn the price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.utils import check_random_state

from prodige import _core, candidates
from prodige._validation import check_integer
from prodige.engine import Engine, count_threads
from prodige.fitting import spanning_tree
from prodige.graph import Graph
from prodige.pace import Callback, Pace, Stopped
from prodige.space import Space

# Steps of a whole run; the shares of it when edges begin to be judged, begin to cost something, are as few as the
# budget wants, and are settled. What is left of the run learns weights alone.
N_STEPS = 400
JUDGED = 0.04
PRICED = 0.08
THINNED = 0.5
SETTLED = 0.65

# Sources of a step, and graphs drawn for it. A graph serves all sources, so it costs little to draw.
_N_SOURCES = 64
_N_GRAPHS = 4

# Probabilities to begin with; where an edge is given up; and how sure one may become (it must stay in doubt to learn).
_START = 0.9
_HOPELESS = -4.0
_SURE = 4.0

# Steps of the logits, by the part of the loss an edge is worth; those of edges in the pool, which all pairs judge, by
# the typical difference between two drawn graphs; and steps of the weights, in mean distances.
_RATE = 0.5
_POOL_RATE = 0.05
_WEIGHT_RATE = 0.04

# No weight starts below this part of the mean distance: the slope of softplus would be lost.
_SHORTEST = 0.02

# Distances that the start is worked out from, and columns of them, at most: 128 MiB as float32.
_START_DISTANCES = 1 << 25
_START_COLUMNS = 1024

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
    history : list of dict
        One record per step: ``step``, ``progress``, ``loss``, ``n_edges`` (those with p ≥ 0.5), ``numbers_per_item``,
        ``lambda_``, ``seconds``.
    lambda_ : float
        The price that met the budget, in squared distances; 0 where all candidates fit in.
    stopped : {"finished", "callback", "interrupt"}
        Why the run ended.
    """

    graph: Graph
    history: list[dict[str, float]]
    lambda_: float
    stopped: Stopped

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self.stopped == "interrupt"


def fit_l0(
    space: Space,
    numbers_per_item: float,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callbacks: Sequence[Callback] = (),
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
        A seed gives the same graph with any number of threads, unless ``max_time`` is set.
    n_jobs : int, optional
        Threads; all available processors when left out.
    verbose : int
        Above 0 shows a progress bar.
    callbacks : sequence of callable
        Each is called with a :class:`prodige.pace.Status` after every step; one that returns True ends the run.
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
    >>> from prodige.l0fit import fit_l0
    >>> from prodige.space import Space
    >>> space = Space(np.random.default_rng(0).normal(size=(200, 5)))
    >>> result = fit_l0(space, numbers_per_item=4, random_state=0, n_steps=50)
    >>> result.graph.n_items, result.graph.numbers_per_item, result.lambda_ > 0
    (200, 4.0, True)
    """
    pace = Pace(check_integer("n_steps", n_steps, 1, 2**31), max_time, callbacks=callbacks, verbose=verbose)
    n = space.n_items
    n_edges = edges_allowed(numbers_per_item, n)
    random = check_random_state(random_state)
    if n_random is None:
        n_random = choose_n_random(n, n_edges, relative_variance(space, random))
    check_integer("n_random", n_random, 1, most_random(n, n_edges))
    pool = np.sort(random.choice(n, n_random, replace=False))
    start = Start.of(space, pool, random)
    edges = join(space, pool, start, check_integer("n_neighbors", n_neighbors, 0, 2**31), n_jobs)
    run = Run(space, edges, pool, start, n_edges, random, count_threads(n_jobs))
    try:
        for progress in pace.run():
            loss = run.step(progress)
            likely = run.edges.n_likely
            pace.record(progress, loss, likely, (n + 2 * likely) / n)
            pace.history[-1]["lambda_"] = run.lambda_
    except KeyboardInterrupt:
        pace.stopped = "interrupt"
        if pace.history:  # a callback may be where it came
            pace.history[-1].setdefault("lambda_", run.lambda_)
    return L0Result(run.finish(), pace.history, run.mean_lambda, pace.stopped)


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


def most_random(n_items: int, n_edges: int) -> int:
    """Return how large the pool may be: all edges within it must fit into the budget, since they are the last to go."""
    return min(n_items, int((1 + math.isqrt(1 + 8 * n_edges)) / 2))


def choose_n_random(n_items: int, n_edges: int, variance: float) -> int:
    """Return the size of the pool: enough to choose from, and few enough to be hubs.

    An item that is a hub is half as far from the others as it should be. Of all pairs, 2h/N are between h hubs and an
    item, so they cost h/2N of the mean distance squared. That is kept to 15 % of the variance, what a constant costs.

    Parameters
    ----------
    n_items, n_edges : int
    variance : float
        Of the distances, in squares of their mean.
    """
    if n_edges >= n_items * (n_items - 1) // 2:
        return n_items
    wanted = min(n_items**0.5 / 4, 0.3 * n_items * variance)
    return int(np.clip(round(max(wanted, n_edges / n_items)), 1, most_random(n_items, n_edges)))


def relative_variance(space: Space, random: np.random.RandomState, n_sources: int = 64) -> float:
    """Return the variance of the distances in squares of their mean, from those of some items to all."""
    sources = random.permutation(space.n_items)[:n_sources]
    block = space.distances(sources).astype(np.float64)
    n_pairs = block.size - sources.size  # without the item itself, whose 0 changes no sum
    mean = block.sum() / n_pairs
    return float((block**2).sum() / n_pairs / mean**2 - 1) if mean > 0 else 0.0


# -- where it starts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """Weights to begin with, in mean distances: from every item to every item of the pool, shape [N, H].

    With items grouped around the pool, and the radii r of the best star, an item is farther from a group than the radii
    say by c, the mean of D_ij - r_i - r_j over the group. So r_i + c is the weight of its edge to there.

    Attributes
    ----------
    weight : ndarray of float32, shape [N, H]
    scale : float
        Mean distance; 1 where all distances are 0.
    unreachable : float
        Stands for the distance where there is no path: somewhat more than the mean. A constant guess costs about that,
        so an item that is cut off looks as bad as it is, and no worse.
    """

    weight: Floats
    scale: float
    unreachable: float

    @classmethod
    def of(cls, space: Space, pool: NDArray[np.int64], random: np.random.RandomState, n_rounds: int = 6) -> Start:
        """Group the items and work out the weights, from the distances to a sample of items."""
        n, n_groups = space.n_items, pool.size
        n_columns = int(np.clip(_START_DISTANCES // n, 1, _START_COLUMNS))
        columns = np.union1d(random.permutation(n)[:n_columns], pool)
        wanted = space.distances(columns).T
        scale = float(wanted.mean(dtype=np.float64)) or 1.0
        wanted = wanted / np.float32(scale)
        radius = wanted.sum(axis=1) / (columns.size - np.isin(np.arange(n), columns)).astype(np.float32)
        radius -= radius.mean() / 2
        excess = wanted - radius[:, None] - radius[columns]

        # As in k-means: an item fits a group that sees all groups as it does, apart from how far out it is itself.
        view = excess[:, np.searchsorted(columns, pool)]
        share = np.full(n_groups, 1 / n_groups, dtype=np.float32)
        centre = view[pool]
        for _ in range(n_rounds):
            group = nearest_group(view, centre, share)
            group[pool] = np.arange(n_groups)  # no group is ever empty
            is_member = (group[columns][:, None] == np.arange(n_groups)).astype(np.float32)
            share = is_member.mean(axis=0)
            view = excess @ (is_member / is_member.sum(axis=0))
            centre = np.stack([np.bincount(group, column, n_groups) for column in view.T], axis=1).astype(np.float32)
            centre /= np.bincount(group, minlength=n_groups)[:, None]

        # Within a group there is no edge to shorten: the radii give way, and the edges to other groups make up for it.
        within = np.minimum(np.diagonal(centre), 0)
        weight = radius[:, None] + view - within / 2
        weight[np.arange(n), group] = radius + within[group] / 2
        weight[pool] = (centre + centre.T - within[:, None] - within) / 2
        return cls(np.maximum(weight, _SHORTEST), scale, 1 + 0.5 * float(wanted.std()))


def nearest_group(view: Floats, centre: Floats, share: Floats) -> NDArray[np.int64]:
    """Return the centre that each row is closest to, apart from a constant; columns count by their share."""
    view, centre = ((rows - rows @ share[:, None]) * np.sqrt(share) for rows in (view, centre))
    return np.asarray(((centre**2).sum(axis=1) - 2 * view @ centre.T).argmin(axis=1))


@dataclass(frozen=True)
class CoinEdges:
    """Candidate edges with their parameters; replaced as a whole, so that an interrupt never finds half of a change.

    Attributes
    ----------
    tail, head : ndarray of int32, shape [E]
    theta_w, theta_b : ndarray of float32, shape [E]
        Weight softplus(theta_w) in mean distances, probability sigmoid(theta_b).
    mean, square : ndarray of float32, shape [E]
        Running means of Adam for theta_w.
    """

    tail: Ids
    head: Ids
    theta_w: Floats
    theta_b: Floats
    mean: Floats
    square: Floats

    @property
    def size(self) -> int:
        """Number of edges."""
        return self.tail.size

    @property
    def n_likely(self) -> int:
        """Number of edges with p ≥ 0.5."""
        return int((self.theta_b >= 0).sum())

    @property
    def weight(self) -> Floats:
        """Weights in mean distances."""
        return np.logaddexp(np.float32(0), self.theta_w)

    def keep(self, mask: Mask) -> CoinEdges:
        """Return the edges where the mask is True."""
        return CoinEdges(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))


def join(space: Space, pool: NDArray[np.int64], start: Start, n_neighbors: int, n_jobs: int | None) -> CoinEdges:
    """Return candidate edges from every item to the pool and to its nearest items."""
    n = space.n_items
    tail, head = np.repeat(np.arange(n), pool.size), np.tile(pool, n)
    weight = start.weight.ravel()
    if n_neighbors > 0:
        near = candidates.knn(space.X, n_neighbors, space.metric, n_jobs=n_jobs)
        tail, head = np.concatenate([tail, near.i]), np.concatenate([head, near.j])
        weight = np.concatenate([weight, np.maximum(near.weight / start.scale, _SHORTEST)])
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    _, first = np.unique(low * n + high, return_index=True)  # of two, that to the pool
    first = first[low[first] != high[first]]
    theta_w = weight[first] + np.log(-np.expm1(-weight[first]))
    theta_b = np.full(first.size, math.log(_START / (1 - _START)))
    nothing = np.zeros(first.size)
    ends = (end[first].astype(np.int32) for end in (low, high))
    return CoinEdges(*ends, *(values.astype(np.float32) for values in (theta_w, theta_b, nothing, nothing)))


# -- learning --------------------------------------------------------------------------------------------------------


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


class Run:
    """The moving parts of one call of :func:`fit_l0`. Distances are in units of their mean."""

    def __init__(
        self,
        space: Space,
        edges: CoinEdges,
        pool: NDArray[np.int64],
        start: Start,
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
        self.in_pool = np.zeros(space.n_items, dtype=bool)
        self.in_pool[pool] = True
        self.lambda_ = 0.0
        self._engine: Engine | None = None
        self._lambdas: list[float] = []
        self._n_steps = 0
        self._loss: float | None = None
        self._spread: float | None = None
        self._order = np.empty(0, dtype=np.int32)

    @property
    def mean_lambda(self) -> float:
        """Price of an edge since the graph reached its size; before, the latest one."""
        return float(np.mean(self._lambdas)) if self._lambdas else self.lambda_

    def step(self, progress: float) -> float:
        """Take one step; return the mean squared error in squared distances."""
        sources = self._draw_sources()
        wanted = self.space.distances(sources) / np.float32(self.scale)
        rate = _WEIGHT_RATE
        if progress < SETTLED and self.n_edges < self.n_candidates:
            drawn = [self._draw_graph() for _ in range(_N_GRAPHS)]
            losses = self._search(sources, wanted, drawn)
            if progress >= JUDGED:
                self._learn_probabilities(losses, drawn, progress)
            self._learn_weights(losses.slope, rate)
            self._give_up()
        else:
            self._settle()
            losses = self._search(sources, wanted, [np.ones(self.edges.size, dtype=bool)])
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

    def _draw_graph(self) -> Mask:
        """Toss the coin of every edge."""
        return np.asarray(self.random.random_sample(self.edges.size) < expit(self.edges.theta_b))

    def _search(self, sources: Ids, wanted: Floats, graphs: list[Mask]) -> Losses:
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
            residual -= wanted
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
        layout = _core.HubLayout(topology, self.in_pool.astype(np.uint8))
        # With many edges between neighbours the hub engine has no less to search, and more to prepare.
        best = layout if 2 * layout.n_core < n else None
        engine = Engine(topology, edges.weight[present], n, best, self.n_jobs)
        self._engine = engine if present.all() else None
        return engine

    def _learn_weights(self, slope: Floats, rate: float) -> None:
        """Take a step of Adam."""
        edges = self.edges
        self._n_steps += 1
        gradient = slope * expit(edges.theta_w)  # through softplus
        mean = 0.9 * edges.mean + 0.1 * gradient
        square = 0.99 * edges.square + 0.01 * gradient**2
        unbiased = math.sqrt(1 - 0.99**self._n_steps) / (1 - 0.9**self._n_steps)
        theta_w = edges.theta_w - (rate * unbiased) * mean / (np.sqrt(square) + np.float32(1e-8))
        self.edges = replace(edges, theta_w=theta_w, mean=mean, square=square)

    def _learn_probabilities(self, losses: Losses, drawn: list[Mask], progress: float) -> None:
        """Move every logit by what its edge is worth, less the price of an edge."""
        edges, n = self.edges, self.space.n_items
        worth = estimate_worth(losses.of_item, drawn, edges.tail, edges.head, expit(edges.theta_b), self.in_pool)
        shared = self.in_pool[edges.tail] & self.in_pool[edges.head]
        self._loss = running(self._loss, float(losses.mean.mean()))
        self._spread = running(self._spread, float(np.std(losses.mean, ddof=1)))
        rate = np.float32(_RATE * n / 2 / max(self._loss, 1e-12))
        pool_rate = np.float32(_POOL_RATE / max(self._spread, 1e-12))
        rates: Floats = np.where(shared, np.minimum(pool_rate, rate), rate)
        theta_b: Floats = edges.theta_b + rates * worth
        if progress >= PRICED:
            price = find_price(theta_b, rates, self._target(progress))
            theta_b -= rates * np.float32(price)
            self.lambda_ = price * self.n_candidates * self.scale**2
            if progress >= THINNED:
                self._lambdas.append(self.lambda_)
        self.edges = replace(edges, theta_b=np.clip(theta_b, _HOPELESS, _SURE))

    def _target(self, progress: float) -> float:
        """Return the number of edges to be expected at this point of the run."""
        share = min((progress - PRICED) / (THINNED - PRICED), 1)
        first = _START * self.n_candidates
        return float(first * min(self.n_edges / first, 1) ** share)

    def _give_up(self) -> None:
        """Drop edges that will not come back, so that searches get faster, without leaving an item alone."""
        edges = self.edges
        hopeless = edges.theta_b <= _HOPELESS
        if edges.size // 50 < hopeless.sum() <= edges.size - self.n_edges:
            tree = spanning_tree(edges.tail, edges.head, edges.theta_b, self.space.n_items)
            self.edges = edges.keep(~hopeless | tree)

    def _settle(self) -> None:
        """Keep the most probable edges for good: a spanning tree, then as many as the budget allows."""
        edges = self.edges
        if edges.size <= self.n_edges:
            return
        order = np.lexsort((edges.theta_w, -edges.theta_b))  # of two equally probable edges the shorter one
        rank = np.empty(edges.size)
        rank[order] = -np.arange(edges.size)
        mask = spanning_tree(edges.tail, edges.head, rank, self.space.n_items)
        others = order[~mask[order]]
        mask[others[: self.n_edges - int(mask.sum())]] = True
        kept = edges.keep(mask)
        self.edges = replace(kept, theta_b=np.maximum(kept.theta_b, 0))  # those that had to be kept count as kept


def estimate_worth(
    losses: NDArray[np.float64], drawn: Sequence[Mask], tail: Ids, head: Ids, p: Floats, in_pool: Mask
) -> Floats:
    """Estimate by how much the expected error would fall with the probability of each edge: -dR/dp, at no price.

    The score function, divided by p (1 - p). That is the Fisher information of a coin: divided by it, the gradient by
    theta is that by p, and edges that are nearly certain learn as fast as others.

    Parameters
    ----------
    losses : ndarray, shape [K, N]
        Mean squared error of the distances of each item, in each of K graphs.
    drawn : sequence of K ndarrays of bool, shape [E]
        Which edges each graph has.
    tail, head, p : ndarray, shape [E]
    in_pool : ndarray of bool, shape [N]
    """
    of_item = leave_one_out(losses) * (2 / losses.shape[1])  # a pair counts for both its items
    of_item[:, in_pool] = 0
    of_all = leave_one_out(losses.mean(axis=1))
    shared = in_pool[tail] & in_pool[head]
    worth = np.zeros(tail.size, dtype=np.float32)
    for own, common, present in zip(of_item.astype(np.float32), of_all.astype(np.float32), drawn, strict=True):
        worth -= (own[tail] + own[head] + common * shared) * (present - p)
    return np.asarray(worth / (len(drawn) * p * (1 - p)))


def leave_one_out(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much each loss is above the mean of the others of its column, shape [K, ...]."""
    n_samples = len(losses)
    return np.asarray((losses - losses.mean(axis=0)) * (n_samples / (n_samples - 1)))


def running(mean: float | None, value: float) -> float:
    """Return a mean in which older values count less."""
    return value if mean is None else 0.9 * mean + 0.1 * value


def find_price(theta: Floats, rates: Floats, target: float) -> float:
    """Return the price x ≥ 0 with Σ sigmoid(theta - rates · x) = target; 0 where the sum is no more than that.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.l0fit import find_price
    >>> theta, rates = np.zeros(4, dtype=np.float32), np.ones(4, dtype=np.float32)
    >>> round(find_price(theta, rates, target=1.0), 3)  # sigmoid(-log 3) = 1/4
    1.099
    """

    def surplus(price: float) -> float:
        return float(expit(theta - rates * np.float32(price)).sum(dtype=np.float64)) - target

    if theta.size == 0 or surplus(0.0) <= 0:
        return 0.0
    most = 0.01 / float(rates.max())
    while surplus(most) > 0:
        most *= 2
    return float(brentq(surplus, 0.0, most, xtol=1e-4 * most))


__all__ = ["L0Result", "fit_l0"]
