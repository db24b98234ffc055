"""Fitting a graph of hubs to distances: the best way known to meet a budget.

Every item is attached to one or a few hubs, and the hubs are joined to each other. Two things are learned in turn:

*Weights*, with the edges fixed: passes of :mod:`prodige.compression.fitting`.

*Edges*, with the weights fixed. What an item's distances would be with other hubs is known without trying: the shortest
of (distance from the hub + weight). So items choose hubs anew, one after the other, each for what it adds. Hubs get new
edges where the paths between them are too long. All edges, old and proposed, are then ranked by how much the squared
error would rise without them, and the budget takes the best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state, gen_batches

from prodige import _core
from prodige.compression.fitting import Blocks, FittedGraph, Floats, Ids, Stress
from prodige.graph.engine import Engine
from prodige.graph.spanning import spanning_forest
from prodige.metric.clusters import cluster_in_parts
from prodige.metric.landmarks import Landmarks
from prodige.metric.star import star_radii_of_means
from prodige.progress import IsOver, Monitor, never, patience
from prodige.threads import count_threads

# Passes of a whole run; between two rounds of choosing edges; and the shares of the run after which the graph has its
# final size, and its final edges.
N_STEPS = 192
ROUND = 12
THINNED = 0.5
REWIRED = 0.75

# Blocks of landmarks for one pass over the data.
_BATCH = 16

# Of the edges, at least so many stay when some are dropped together.
_GENTLY = 0.85

# Items that choose hubs in one round, at most: choosing is the slowest part where there are many.
_MOST_CHOOSING = 20_000

# Edges between hubs to begin with, at most, in numbers of the budget: several times as many as where they are chosen.
_MOST_JOINED = 4

# Entries of tables of flows between hubs that are filled at once: 256 MiB.
_FLOWS = 1 << 23

# Bytes for every pair of hubs while edges are proposed, and what may be taken in all.
_PAIR_BYTES = 100
_MOST_BYTES = 1 << 31

# Where time is limited: the parts of it for grouping items; and in one round for searching between hubs, for choosing
# them, and for proposing edges between them.
_GROUPING = 0.1
_SEARCHING = 0.15
_CHOOSING = 0.1
_PROPOSING = 0.05

# Items that choose hubs before the clock is looked at.
_PART = 1024

# Landmarks that items look at when they choose hubs: weights are learned from all of them later.
WINDOW = 1024


def fit_hubs(
    landmarks: Landmarks,
    numbers_per_item: float,
    n_hubs: int | None = None,
    monitor: Monitor | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> HubGraph:
    """Fit a graph of hubs within a budget.

    Parameters
    ----------
    landmarks : Landmarks
        The distances to fit.
    numbers_per_item : float
        Memory: one number per vertex and two per edge, divided by the items. More than 3 + 1 / N, a star around a hub.
    n_hubs : int, optional
        Hubs to begin with; those that end up without an edge do not count.
    monitor : Monitor, optional
        How long to take; :data:`N_STEPS` passes when left out.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads; all processors that this process may use when left out. The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.hubs import fit_hubs
    >>> from prodige.metric.landmarks import Landmarks
    >>> from prodige.metric.space import Space
    >>> space = Space(np.random.default_rng(0).normal(size=(200, 5)))
    >>> landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    >>> graph = fit_hubs(landmarks, numbers_per_item=4, random_state=0).freeze()
    >>> graph.n_items, graph.numbers_per_item <= 4
    (200, True)
    """
    random = check_random_state(random_state)
    monitor = Monitor(N_STEPS) if monitor is None else monitor
    n = landmarks.n_items
    n_hubs = choose_n_hubs(n, numbers_per_item) if n_hubs is None else n_hubs
    n_hubs = min(n_hubs, most_hubs(n, numbers_per_item))
    check_memory(n_hubs)
    hurried = monitor.in_a_hurry
    if hurried:  # no time to thin a graph out: it starts within the budget
        n_hubs = min(n_hubs, math.isqrt(int((numbers_per_item - 3) * n)))
    n_edges = int((numbers_per_item * n - n - n_hubs) / 2 + 1e-9)
    n_arcs = max(2, round(numbers_per_item))
    most_joined = int(_MOST_JOINED * numbers_per_item * n)
    graph = start_graph(landmarks, n_hubs, random, count_threads(n_jobs), most_joined, monitor)
    n_start = max(graph.n_edges, n_edges) + n_edges - n  # room to choose from in the first rounds
    blocks = Blocks(landmarks.n_blocks, _BATCH, random)
    choosing = min(0.5, _MOST_CHOOSING / n)
    try:
        for progress in monitor.run():
            turn = len(monitor.history) % ROUND
            # The last quarter only learns weights, in ever smaller steps.
            if turn == 0 and 0 < progress < REWIRED and monitor.history and not hurried:
                share = min(progress / THINNED, 1)
                limit = round(n_start * (n_edges / n_start) ** share)
                graph = shrink(graph, round(limit / _GENTLY), choosing, n_arcs, blocks, monitor)
                graph = rewire(
                    graph, limit, 1.0 if len(monitor.history) == ROUND else choosing, n_arcs, random, monitor
                )
            elif progress >= REWIRED and graph.n_edges > n_edges:
                graph = shrink(graph, n_edges, choosing, n_arcs, blocks, monitor)
            late = max(progress - REWIRED, 0) / (1 - REWIRED)
            loss = graph.newton(blocks.draw(), rate=1 - 0.9 * late)
            monitor.record(progress, loss, graph.n_edges, graph.numbers_per_item)
    except KeyboardInterrupt:
        monitor.stopped = "interrupt"
    if graph.n_edges > n_edges or monitor.stopped != "finished":
        graph = shrink(graph, n_edges, choosing, n_arcs, blocks, monitor)
        for _ in range(1 if monitor.is_over else ROUND):
            graph.newton(blocks.draw(), rate=0.5)
    return graph


def check_memory(n_hubs: int) -> None:
    """Refuse more hubs than there can be room for, before any is taken."""
    most = math.isqrt(_MOST_BYTES // _PAIR_BYTES)
    if n_hubs > most:
        raise ValueError(
            f"n_hubs = {n_hubs} would take about {_PAIR_BYTES * n_hubs**2 / 2**30:.1f} GiB for the paths between them; "
            f"give at most {most}, or 'auto'"
        )


class HubGraph(FittedGraph):
    """A graph in which every edge touches a hub, measured by the engine made for that.

    Item edges have an item as their tail; edges between hubs have a hub at both ends.
    """

    def _make_engine(self, topology: _core.Topology) -> Engine:
        is_hub = np.zeros(topology.n_vertices, dtype=np.uint8)
        is_hub[self.n_items :] = 1
        return Engine(topology, self.weight, self.n_items, _core.HubLayout(topology, is_hub), self.n_jobs)

    @property
    def of_item(self) -> NDArray[np.bool_]:
        """Which edges join an item to a hub."""
        return self.tail < self.n_items

    def hub_distances(self, targets: Ids | None = None) -> NDArray[np.float32]:
        """Return the distances from every hub to some vertices, to all hubs when left out."""
        hubs = np.arange(self.n_items, self.n_items + self.n_hubs, dtype=np.int32)
        return self.engine.distances(hubs, hubs if targets is None else targets, self.n_jobs)

    def _measure(self, blocks: Ids, with_flows: bool) -> tuple[Any, ...]:
        sources, target = self.landmarks.sources, self.landmarks.target
        return self.engine.measure_stress(sources, target, blocks, self._longest, with_flows, self.n_jobs)

    def stress(self, blocks: Ids) -> Stress:
        """Measure residuals over blocks of landmarks."""
        return Stress(*self._measure(blocks, with_flows=False)[:5])

    def flows(self, blocks: Ids) -> tuple[Floats, Floats]:
        """Return residuals and number of the pairs whose path enters at one hub and leaves at another, both [H, H]."""
        *_, residuals, uses = self._measure(blocks, with_flows=True)
        residuals, uses = (flow.reshape(self.n_hubs, self.n_hubs) for flow in (residuals, uses))
        return residuals + residuals.T, uses + uses.T

    def importance(self) -> Floats:
        """Return what the squared error of all ordered pairs would rise by without each edge."""
        importance = super().importance()
        importance[self.of_item] *= 2  # measured from the target's side only
        return importance


def most_hubs(n_items: int, numbers_per_item: float) -> int:
    """Return how many hubs a budget allows: items on one hub each, the hubs in a tree, with an edge to spare each."""
    return max(1, int(((numbers_per_item - 3) * n_items + 2) / 5))


def choose_n_hubs(n_items: int, numbers_per_item: float) -> int:
    """Return how many hubs suit a data set: enough to tell groups apart, few enough to be joined to each other.

    Found best, within a wide margin, on images, words, faces, tables and noise of 178 to 10,000 items.
    """
    return int(np.clip(round(1.25 * (n_items * numbers_per_item) ** 0.5), 1, 512))


def start_graph(
    landmarks: Landmarks,
    n_hubs: int,
    random: np.random.RandomState,
    n_jobs: int,
    most_joined: int | None = None,
    monitor: Monitor | None = None,
) -> HubGraph:
    """Return items grouped around hubs, one hub each, and all hubs joined, with weights in closed form.

    Where that would be more edges than are worth thinning out, only the shortest, and those that hold all together.

    With d(i, j) = r_i + W_gh + r_j the mean over two groups gives W once the radii r are known, and those are the ones
    of the best star. Only the distances within a group have no W to adjust: there the radii give way.
    """
    n, columns = landmarks.n_items, landmarks.sources
    group = group_items(landmarks.target, n_hubs, random, n_jobs, patience(monitor, _GROUPING))
    column_group = group[columns]
    radius = star_radii_of_means(landmarks.target.mean(axis=1, dtype=np.float64))

    rows = csr_array((np.ones(n, np.float32), (group, np.arange(n))), shape=(n_hubs, n))
    members = np.bincount(group, minlength=n_hubs)
    column_members = np.bincount(column_group, minlength=n_hubs)
    by_column = coo_array((np.ones(columns.size, np.float32), (np.arange(columns.size), column_group)))
    by_column.resize((columns.size, n_hubs))
    total = np.asarray((rows @ landmarks.target) @ by_column.tocsr(), dtype=np.float64)
    count = np.outer(members, column_members)
    radii = np.outer(np.bincount(group, radius, n_hubs), column_members)
    radii += np.outer(members, np.bincount(column_group, radius[columns], n_hubs))
    total, count, radii = total + total.T, count + count.T, radii + radii.T
    between = np.divide(total - radii, count, out=np.full(count.shape, np.nan), where=count > 0)

    within = np.nan_to_num(np.minimum(np.diagonal(between), 0))
    radius += within[group] / 2
    between -= (within[:, None] + within[None]) / 2
    between[np.isnan(between)] = np.nanmean(between) if (count > 0).any() else landmarks.scale
    a, b = join_hubs(between, most_joined)
    return HubGraph(
        landmarks,
        n_hubs,
        np.concatenate([np.arange(n), n + a]),
        np.concatenate([n + group, n + b]),
        np.maximum(np.concatenate([radius, between[a, b]]), 0.01 * landmarks.scale),
        n_jobs,
    )


def join_hubs(between: Floats, n_edges: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends of all edges between hubs, or of so many: the shortest ones, and those that hold all together."""
    a, b = np.triu_indices(len(between), 1)
    if n_edges is None or n_edges >= a.size:
        return a, b
    short = np.sort(np.argpartition(between[a, b], n_edges)[:n_edges])
    a, b = a[short], b[short]
    joined = csr_array((np.ones(a.size), (a, b)), shape=between.shape)
    part = connected_components(joined, directed=False)[1]
    first = np.unique(part, return_index=True)[1]
    return np.concatenate([a, first[:-1]]), np.concatenate([b, first[1:]])


def group_items(
    target: NDArray[np.float32],
    n_groups: int,
    random: np.random.RandomState,
    n_jobs: int = 1,
    is_over: IsOver = never,
    n_columns: int = 512,
) -> Ids:
    """Group items that see the landmarks alike, whatever the metric; return the group of each, shape [N].

    k-means on the distances to some landmarks. The mean of each row is taken out first: how far an item is from
    everything is the business of its weight, not of its hub.
    """
    rows = torch.tensor(np.ascontiguousarray(target[:, :n_columns]))
    rows = rows - rows.mean(dim=1, keepdim=True)
    return cluster_in_parts(rows, n_groups, random, n_jobs, is_over)


def rewire(
    graph: HubGraph,
    n_edges: int,
    share: float,
    n_arcs: int,
    random: np.random.RandomState,
    monitor: Monitor | None = None,
) -> HubGraph:
    """Let a share of the items choose hubs anew, propose edges between hubs, and keep the ``n_edges`` best of all.

    Parameters
    ----------
    graph : HubGraph
        Some passes old, so that it knows how important its edges are.
    n_edges : int
        Edges of the result, at most.
    share : float
        Part of the items that choose; if all did at once, each would answer what the others no longer do.
    n_arcs : int
        Hubs an item may choose, at most.
    monitor : Monitor, optional
        Where its time is limited, so is that of choosing and proposing; without enough of it edges are only dropped.
    """
    if monitor is not None and not has_time_to_rewire(graph, monitor):
        return thin(graph, n_edges)
    n, of_item, importance = graph.n_items, graph.of_item, graph.importance()
    # An item that others' paths lead over would take those with it: it stays, and its edges count for what they carry.
    uses = np.bincount(graph.tail[of_item], graph.passes.uses[of_item], minlength=n)
    is_end = uses <= 1.01 * graph.passes.n_sources
    items = np.flatnonzero((random.random_sample(n) < share) & is_end).astype(np.int32)
    attachments = Attachments.choose(graph, items, n_arcs, random, patience(monitor, _CHOOSING))
    chooses = np.zeros(n + graph.n_hubs, dtype=bool)
    chooses[attachments.items] = True
    stays = np.flatnonzero(of_item & ~chooses[graph.tail])
    between = np.flatnonzero(~of_item)
    grown = propose_hub_edges(graph, between.size // 10, random, patience(monitor, _PROPOSING))

    hub_tail = np.concatenate([graph.tail[between], grown.tail])
    hub_head = np.concatenate([graph.head[between], grown.head])
    hub_weight = np.concatenate([graph.weight[between], grown.weight])
    hub_importance = np.concatenate([importance[between], grown.importance])
    needed = [
        first_of_item(graph.tail[stays], importance[stays]),
        attachments.arc == 0,
        spanning_forest(hub_tail - n, hub_head - n, hub_importance, graph.n_hubs),
    ]
    ranked = np.concatenate([importance[stays], attachments.importance, hub_importance])
    ranked[np.concatenate(needed)] = np.inf
    taken = np.zeros(ranked.size, dtype=bool)
    taken[np.argsort(-ranked, kind="stable")[:n_edges]] = True
    taken &= ranked > 0
    of_stays, of_attached, of_hubs = np.split(taken, np.cumsum([stays.size, attachments.arc.size]))
    tail, head, weight = attachments.take(of_attached)
    stays = stays[of_stays]
    return HubGraph(
        graph.landmarks,
        graph.n_hubs,
        np.concatenate([graph.tail[stays], tail, hub_tail[of_hubs]]),
        np.concatenate([graph.head[stays], head, hub_head[of_hubs]]),
        np.concatenate([graph.weight[stays], weight, hub_weight[of_hubs]]),
        graph.n_jobs,
    )


def shrink(graph: HubGraph, n_edges: int, share: float, n_arcs: int, blocks: Blocks, monitor: Monitor) -> HubGraph:
    """Drop edges until at most ``n_edges`` are left, not too many at once unless the time is up.

    The importance of an edge is measured while all others are there; the more go together, the less that says.
    """
    while graph.n_edges > n_edges:
        if monitor.is_over:
            return thin(graph, n_edges)
        for _ in range(3):
            if not monitor.is_over:
                graph.newton(blocks.draw(), rate=1.0)
        gently = 0 if monitor.is_over else int(_GENTLY * graph.n_edges)
        graph = rewire(graph, max(n_edges, gently), share, n_arcs, blocks.random, monitor)
        graph.newton(blocks.draw(), rate=1.0)
    return graph


def has_time_to_rewire(graph: HubGraph, monitor: Monitor) -> bool:
    """Tell whether the paths between all hubs can be searched twice in the time that one round may take."""
    if monitor.max_time is None:
        return True
    began = monitor.seconds
    some = np.arange(graph.n_items, graph.n_items + min(graph.n_hubs, 16), dtype=np.int32)
    graph.engine.distances(some, graph.landmarks.sources[:WINDOW], graph.n_jobs)
    now = monitor.seconds
    longest = (now - began) * 2 * graph.n_hubs / some.size
    return longest <= _SEARCHING * monitor.max_time and now + longest + (_CHOOSING + _PROPOSING) * monitor.max_time <= (
        monitor.max_time
    )


def thin(graph: HubGraph, n_edges: int) -> HubGraph:
    """Keep the most important edges, as far as that is known, without another look at the data."""
    if graph.n_edges <= n_edges:
        return graph
    n, of_item, importance = graph.n_items, graph.of_item, graph.importance()
    of_items, between = np.flatnonzero(of_item), np.flatnonzero(~of_item)
    tail, head = graph.tail[between] - n, graph.head[between] - n
    importance[of_items[first_of_item(graph.tail[of_items], importance[of_items])]] = np.inf
    importance[between[spanning_forest(tail, head, importance[between], graph.n_hubs)]] = np.inf
    keep = np.sort(np.argsort(-importance, kind="stable")[:n_edges])
    return HubGraph(graph.landmarks, graph.n_hubs, graph.tail[keep], graph.head[keep], graph.weight[keep], graph.n_jobs)


@dataclass
class Attachments:
    """Hubs that items would choose, an entry for each item and arc, and what each adds to those before it."""

    n_items: int
    items: Ids
    hubs: Ids  # [item, arc], -1 where another hub would not help
    weights: NDArray[np.float32]  # [item, number of arcs taken - 1, arc]
    row: NDArray[np.int64]
    arc: NDArray[np.int64]
    importance: Floats

    @classmethod
    def choose(
        cls, graph: HubGraph, items: Ids, n_arcs: int, random: np.random.RandomState, is_over: IsOver = never
    ) -> Attachments:
        """Find the best few hubs for each of some items; for the first of them where the time is over before the last.

        Parameters
        ----------
        graph : HubGraph
        items : ndarray of int32
        n_arcs : int
            Hubs of an item, at most.
        random : RandomState
        is_over : callable
            Tells whether the time is over.
        """
        sources, target = graph.landmarks.sources, graph.landmarks.target
        n_columns = min(WINDOW, sources.size)
        first = int(random.randint(sources.size - n_columns + 1))
        from_hubs = graph.hub_distances(sources[first : first + n_columns])
        found = []
        for part in gen_batches(items.size, _PART) if items.size else [slice(0, 0)]:
            found.append(_core.attach(items[part], sources, target, from_hubs, first, n_arcs, graph.n_jobs))
            if is_over():
                break
        hubs, weights, errors = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        items = items[: len(hubs)]
        importance = np.full(errors.shape, np.inf)
        # Each pair counts from both its ends. Importance falls along the arcs: none is taken without those before.
        importance[:, 1:] = -np.diff(errors, axis=1) * (2 * graph.n_items / n_columns)
        importance = np.minimum.accumulate(importance, axis=1)
        row, arc = np.nonzero(hubs >= 0)
        return cls(graph.n_items, items, hubs, weights, row, arc, importance[row, arc])

    def take(self, taken: NDArray[np.bool_]) -> tuple[Ids, Ids, NDArray[np.float32]]:
        """Return tails, heads and weights of the entries taken."""
        n_taken = np.bincount(self.row[taken], minlength=self.items.size)
        row, arc = self.row[taken], self.arc[taken]
        head = (self.n_items + self.hubs[row, arc]).astype(np.int32)
        return self.items[row], head, self.weights[row, n_taken[row] - 1, arc]


class HubEdges(NamedTuple):
    """Edges between hubs, by vertex ids."""

    tail: Ids
    head: Ids
    weight: NDArray[np.float32]
    importance: Floats


def propose_hub_edges(
    graph: HubGraph, n_edges: int, random: np.random.RandomState, is_over: IsOver = never
) -> HubEdges:
    """Propose edges between hubs where the paths between them are too long, as far as there is time to see."""
    n, n_hubs = graph.n_items, graph.n_hubs
    blocks = random.permutation(graph.landmarks.n_blocks)[:32].astype(np.int32)
    residuals, uses = np.zeros((2, n_hubs, n_hubs))
    n_seen = 0
    for part in gen_batches(blocks.size, max(1, _FLOWS // n_hubs**2)):
        more, used = graph.flows(blocks[part])
        residuals += more
        uses += used
        n_seen = part.stop
        if is_over():
            break
    excess = np.maximum(residuals, 0) / np.maximum(uses, 1)
    importance = excess * np.maximum(residuals, 0) * (n / (n_seen * _core.LANES))
    of_hubs = ~graph.of_item
    tail, head = graph.tail[of_hubs] - n, graph.head[of_hubs] - n
    importance[tail, head] = importance[head, tail] = 0  # there already
    a, b = np.nonzero(np.triu(importance, 1))
    best = np.argsort(-importance[a, b], kind="stable")[:n_edges]
    a, b = a[best], b[best]
    weight = np.maximum(graph.hub_distances()[a, b] - excess[a, b], 0)
    return HubEdges((n + a).astype(np.int32), (n + b).astype(np.int32), weight.astype(np.float32), importance[a, b])


def first_of_item(tail: Ids, importance: Floats) -> NDArray[np.bool_]:
    """Return which edges are the most important one of their item."""
    order = np.lexsort((-importance, tail))
    first = np.ones(tail.size, dtype=bool)
    first[1:] = tail[order][1:] != tail[order][:-1]
    mask = np.zeros(tail.size, dtype=bool)
    mask[order[first]] = True
    return mask
