r"""Ranking by the method of the paper: users and items are the vertices of one graph, and there are no others.

The distances from a user :math:`u` to all items are learned by a softmax (equation 6 of the paper, with all items as
negatives; one search gives all distances, so they are free), over the items :math:`P_u` that the user interacted with:

.. math:: L_u = \operatorname{mean}_{x \in P_u} d(u, x) + \log \sum_x e^{-d(u, x)}

For most users it is enough that paths begin there; they need not lead through. So the graph has two parts. The backbone
(:mod:`prodige.recommendation.paper.backbone`) joins all items, by edges between them and over some users, the
connectors. Every other user is attached to one or a few vertices of it, its anchors
(:mod:`prodige.recommendation.paper.users`), and d(u, x) is the least w(u, a) + d(a, x). A user ranks items the same if
all its edges grow by as much; so they are made long enough that no path of others leads through it. That leaves little
to search, and one search from an anchor serves all users that are attached to it.

Edges of the backbone are thinned out by importance: how far distances would move without an edge, times the absolute
gradient of the loss. With the sign kept, edges towards negatives look harmful one by one, and dropping them together
wrecks the ranking. The weights of those that stay are learned by gradient descent.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from prodige import _core
from prodige.graph.engine import Engine
from prodige.graph.graph import Graph
from prodige.learning.adam import Weights
from prodige.metric.candidates import Candidates
from prodige.progress import Monitor
from prodige.recommendation.interactions import check_interactions
from prodige.recommendation.paper.backbone import Backbone, choose_backbone
from prodige.recommendation.paper.candidates import SHORTEST, CandidateEdges, join
from prodige.recommendation.paper.softmax import reach, softmax_loss
from prodige.recommendation.paper.users import MOST_ANCHORS, Anchors, Choice, draw_positives
from prodige.threads import count_threads, one_thread

# Steps of a whole run, the shares of it between which the backbone is thinned, and those after which users choose
# anchors again: late, when searches are fast. What is left of the run learns weights, in ever smaller steps.
N_STEPS = 96
THINNING = 0.08
THINNED = 0.6
CHOICES = [0.4, 0.6]

# Edges of the backbone to begin with: for each vertex of the graph, and of those it is to have in the end.
_START_EDGES = 2.5
_START_ROOM = 1.25

# Edges beyond those that connect the graph: the part of them that goes into the backbone. The others are for users.
_BACKBONE_SHARE = 0.9

# The share of a time limit after which weights are learned no more: at last, users choose anchors once again.
# They judge what they may be attached to until this share is over, and for so many seconds after Ctrl-C.
_LEARNED = 0.6
_JUDGED = 0.9
_PATIENCE = 2.0

# Sources of a step, and its rate in nats.
_N_SOURCES = 256
_RATE = 0.04

Ids = NDArray[np.int32]


@one_thread()
def fit_ranking(
    user_items: Any,
    edges: CandidateEdges = "normal",
    numbers_per_item: float = 4.0,
    *,
    monitor: Monitor | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Graph:
    """Fit a graph of users and items in which the items nearest to a user are those to recommend.

    Parameters
    ----------
    user_items : sparse matrix or array-like, shape [U, I]
        Above 0 where a user interacted with an item; how far above does not matter.
    edges : {"normal", "bipartite", "random"}
        Candidates: the 16 users nearest to each user and the 16 items nearest to each item, by the cosine of their
        interactions, and all pairs of ``user_items``; those pairs alone; or 50 random edges of each vertex.
    numbers_per_item : float
        Memory: one number per vertex and two per edge, divided by the vertices, which are users and items.
    monitor : Monitor, optional
        How long to take, with callbacks and progress; :data:`N_STEPS` steps when left out. The loss it records is that
        of the step's sources, in nats.
    random_state : int, RandomState or None
        A seed gives the same graph with any number of threads, unless ``monitor`` goes by time.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Returns
    -------
    Graph
        Users are vertices 0 to U - 1, items U to U + I - 1. It connects what the candidates connect: with
        ``"bipartite"``, users and items without an interaction stay alone. Ctrl-C ends a run early, but not without a
        graph once the first step has begun.

    Raises
    ------
    ValueError
        If the budget is too small to connect what the candidates connect, or if there is nothing to learn from.

    Examples
    --------
    Two groups of users, with a taste for odd or for even items:

    >>> import numpy as np
    >>> from prodige.progress import Monitor
    >>> from prodige.recommendation.paper.fit import fit_ranking
    >>> rng = np.random.default_rng(0)
    >>> taste = np.arange(60)[:, None] % 2 == np.arange(20) % 2
    >>> liked = taste & (rng.random((60, 20)) < 0.5)
    >>> graph = fit_ranking(liked, numbers_per_item=4, monitor=Monitor(16), random_state=0)
    >>> graph.n_items, graph.numbers_per_item
    (80, 4.0)
    >>> distances = graph.distances(np.arange(60), np.arange(60, 80))
    >>> bool(distances[taste].mean() < distances[~taste].mean())
    True
    """
    random = check_random_state(random_state)
    monitor = Monitor(N_STEPS) if monitor is None else monitor
    interacted = check_interactions(user_items)
    interacted.data[:] = 1
    joined = join(interacted, edges, random, monitor)
    run = RankingFit(
        interacted, joined, edges_allowed(numbers_per_item, joined), random, count_threads(n_jobs), monitor
    )
    monitor.prepared(until=_LEARNED)
    try:
        for progress in monitor.run():
            loss = run.step(progress)
            monitor.record(progress, loss, run.n_kept, 1 + 2 * run.n_kept / joined.n_vertices)
    except KeyboardInterrupt:
        monitor.stopped = "interrupt"
    return monitor.insist(run.finish)


def edges_allowed(numbers_per_item: float, joined: Candidates) -> int:
    """Return how many edges a budget allows; refuse one that cannot connect what the candidates connect."""
    n = joined.n_vertices
    n_needed = n - _core.Topology(n, joined.i, joined.j).n_components
    least = 1 + 2 * n_needed / n
    if not (math.isfinite(numbers_per_item) and numbers_per_item >= least - 1e-9):
        raise ValueError(
            f"numbers_per_item must be finite and enough to connect users and items, got {numbers_per_item}: "
            f"{n} of them need {n_needed} edges; give at least {math.ceil(least * 1000) / 1000:.4g}"
        )
    return min(int((numbers_per_item - 1) * n / 2 + 1e-9), joined.n_edges)


class RankingFit:
    """The moving parts of one call of :func:`fit_ranking`."""

    def __init__(
        self,
        interacted: csr_array,
        joined: Candidates,
        n_edges: int,
        random: np.random.RandomState,
        n_jobs: int,
        monitor: Monitor | None = None,
    ) -> None:
        self.interacted = interacted
        self.joined = joined
        self.n_edges = n_edges
        self.random = random
        self.n_jobs = n_jobs
        self.monitor = Monitor(0) if monitor is None else monitor
        n_users, n_items = map(int, interacted.shape)
        n_start = max(_START_EDGES * joined.n_vertices, _START_ROOM * (n_edges - n_users))
        self.backbone = Backbone.of(joined, n_items, *choose_backbone(joined, n_users, int(n_start), random))
        self.n_start = self.backbone.n_edges
        self.anchors: Anchors | None = None
        self._has_edges = np.bincount(np.concatenate([joined.i, joined.j]), minlength=joined.n_vertices) > 0
        self._prepared: tuple[Backbone, Engine] | None = None
        self._order = np.empty(0, dtype=np.int32)
        self._n_steps = 0
        self._choices = list(CHOICES)
        self._until = math.inf

    @property
    def n_kept(self) -> int:
        """Edges of the graph as it is."""
        return self.backbone.n_edges + (0 if self.anchors is None else self.anchors.users.size)

    @property
    def engine(self) -> Engine:
        """The backbone, ready to be searched."""
        backbone, last = self.backbone, self._prepared
        if last is not None and last[0] is backbone:
            return last[1]
        if last is not None and last[0].tail is backbone.tail:  # only weights have changed
            engine = last[1].with_weights(backbone.weight, self.n_jobs)
        else:
            n = backbone.members.size
            topology = _core.Topology(n, backbone.tail, backbone.head)
            engine = Engine(topology, backbone.weight, n, None, self.n_jobs)
        self._prepared = (backbone, engine)
        return engine

    def step(self, progress: float) -> float:
        """Take one step; return the loss of its sources in nats."""
        if self._n_steps == 0:
            self._choose(most=1, judge=False)
            self._calibrate()
        if progress >= THINNING:
            share = min((progress - THINNING) / (THINNED - THINNING), 1)
            self.backbone = self.backbone.thin(round(self.n_start ** (1 - share) * self._final_size() ** share))
        if self._choices and progress >= self._choices[0]:
            del self._choices[0]
            self._choose(most=1)
        late = max(progress - THINNED, 0) / (1 - THINNED)
        return self._learn(_RATE * (1 - late), judge=progress < THINNED)

    def finish(self) -> Graph:
        """Return the graph within the budget, with the anchors that suit it."""
        self.backbone = self.backbone.thin(self._final_size())
        anchors = self._choose(MOST_ANCHORS)
        backbone, n = self.backbone, self.joined.n_vertices
        return Graph.from_edges(
            np.concatenate([backbone.members[backbone.tail], anchors.users]),
            np.concatenate([backbone.members[backbone.head], backbone.members[anchors.members]]),
            np.concatenate([backbone.weight, anchors.weight]),
            n_vertices=n,
            n_items=n,
        )

    def _final_size(self) -> int:
        """Return how many edges the backbone is to have in the end."""
        n_forest = self.backbone.members.size - self.engine.topology.n_components
        n_attached = int(self._has_edges.sum()) - int(self._has_edges[self.backbone.members].sum())
        return int(n_forest + _BACKBONE_SHARE * max(self.n_edges - n_attached - n_forest, 0))

    def _draw_sources(self, n_sources: int) -> Ids:
        """Return members to search from; every one that is asked comes once before any comes again."""
        assert self.anchors is not None
        if self._order.size == 0:
            asked = np.flatnonzero(np.diff(self.anchors.target.indptr))
            self._order = self.random.permutation(asked).astype(np.int32)
        sources, self._order = self._order[:n_sources], self._order[n_sources:]
        return sources

    def _learn(self, rate: float, judge: bool) -> float:
        """Take a step of Adam on the weights, and look at the importance of edges; return the loss."""
        assert self.anchors is not None
        sources, backbone, items = self._draw_sources(_N_SOURCES), self.backbone, self.backbone.items
        self._n_steps += 1
        forest = self.engine.search(sources, self.n_jobs)
        distance, cut_off, far = reach(forest.distances(items, items.size, self.n_jobs))
        loss, gradient = softmax_loss(distance, self.anchors.target[sources])
        gradient[cut_off] = 0  # no weight can help there
        slope = forest.backward(gradient, items, self.n_jobs)
        weights = backbone.weights.descend(slope, rate, self._n_steps, least=1e-9)
        importance = backbone.importance
        if judge:
            # Losing the only path must never look cheap, whatever stands for it in the loss.
            cost = forest.removal_cost(np.abs(gradient), np.zeros_like(gradient), items, 2 * far, self.n_jobs)
            n_asked = max(int(np.count_nonzero(np.diff(self.anchors.target.indptr))), 1)
            importance = math.exp(-sources.size / n_asked) * importance + cost
        self.backbone = replace(backbone, weights=weights, importance=importance)
        return loss

    def _calibrate(self) -> None:
        """Multiply all weights by what suits the softmax best: the start knows near from far, but not the unit."""
        assert self.anchors is not None
        sources, backbone = self._draw_sources(_N_SOURCES), self.backbone
        distance, _, _ = reach(self.engine.distances(sources, backbone.items, self.n_jobs))
        target = self.anchors.target[sources]
        found = minimize_scalar(
            lambda log_scale: softmax_loss(distance * np.float32(math.exp(log_scale)), target)[0],
            bounds=(-2.5, 2.5),
            method="bounded",
            options={"xatol": 0.02},
        )
        weight = np.maximum(backbone.weight * np.float32(math.exp(found.x)), np.float32(SHORTEST))
        self.backbone = replace(backbone, weights=Weights.of(weight))

    def _is_late(self) -> bool:
        """Whether users must choose by what is known: the time is up, or Ctrl-C was pressed a while ago."""
        monitor = self.monitor
        if monitor.stopped == "interrupt":
            self._until = min(self._until, monitor.seconds + _PATIENCE)
        return monitor.seconds > self._until or (
            monitor.max_time is not None and monitor.seconds > _JUDGED * monitor.max_time
        )

    def _choose(self, most: int, judge: bool = True) -> Anchors:
        """Let all users outside the backbone choose anchors, up to so many each."""
        self.backbone = self.backbone.release()
        positives = draw_positives(self.interacted, self.random)
        choice = Choice(self.backbone, self.engine, self.joined, positives, self.n_jobs, self._is_late)
        self.anchors = choice.make(most, self.n_edges - self.backbone.n_edges, judge)
        self._order = np.empty(0, dtype=np.int32)
        return self.anchors


__all__ = ["fit_ranking"]
