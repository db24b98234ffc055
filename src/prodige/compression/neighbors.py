"""Fitting a graph of neighbours to distances: for metrics that are paths already.

Roads, trees and points of a plane have something that images and words have not: the path to a far item leads past near
ones. There a graph of neighbours says it all, often without any error. Whether a data set is of this kind is measured:
how often the distance to a near item is also the length of a detour over a nearer one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from prodige.compression.fitting import Blocks, FittedGraph, Floats, Ids
from prodige.graph.spanning import spanning_forest
from prodige.metric.candidates import Candidates
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.progress import IsOver, Monitor, never, patience
from prodige.threads import count_threads

# Passes of a whole run, blocks of landmarks in each, and passes between two rounds of thinning.
N_STEPS = 96
_BATCH = 4
_ROUND = 6

# Nearest items that are joined to begin with.
_N_NEIGHBORS = 16

# Where time is limited: the part of it for looking at detours, and for edges that join no neighbours.
_LOOKING = 0.2

# A detour this much longer than the straight path is none: rounding of single precision.
_EXACT = 1e-5


def looks_local(space: Space, random: np.random.RandomState, n_sources: int = 64) -> bool:
    """Tell whether the path to most of an item's neighbours nearly leads past nearer ones.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.neighbors import looks_local
    >>> from prodige.metric.space import Space
    >>> random = np.random.RandomState(0)
    >>> looks_local(Space(random.normal(size=(500, 2))), random)
    True
    >>> looks_local(Space(random.normal(size=(500, 50))), random)
    False
    """
    n = space.n_items
    k = min(_N_NEIGHBORS, n - 1)
    if k < 3:
        return False
    items = random.permutation(n)[:n_sources]
    order = np.argsort(space.distances(items), axis=1, kind="stable")
    detours = []
    for item, row in zip(items, order, strict=True):
        detours.append(find_detours(space, int(item), row[row != item][:k]))
    return float(np.mean(np.concatenate(detours) < 1.1)) > 0.5


def find_detours(space: Space, item: int, neighbors: NDArray[np.int64]) -> Floats:
    """Return, for each neighbour, the shortest path over another one as a multiple of the straight one."""
    around = np.append(neighbors, item)
    distances = space.distances(around, around).astype(np.float64)
    straight = distances[-1, :-1]
    paths = straight[:, None] + distances[:-1, :-1]
    # Over itself is no detour. Nor is a path over an item in the same place, or twins would each call the other spare.
    paths[np.arange(straight.size), np.arange(straight.size)] = np.inf
    paths[straight == 0] = np.inf
    paths[(distances[:-1, :-1] == 0)] = np.inf
    detours: Floats = np.divide(paths.min(axis=0), straight, out=np.full(straight.size, np.inf), where=straight > 0)
    return detours


def fit_local(
    space: Space,
    landmarks: Landmarks,
    numbers_per_item: float,
    monitor: Monitor | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> FittedGraph:
    """Fit a graph of neighbours within a budget.

    Neighbours are joined, edges that a detour replaces exactly are left out, and of the rest the least important go,
    a few at a time, until the budget is met.

    Parameters
    ----------
    space : Space
    landmarks : Landmarks
        The distances to fit, of the same items.
    numbers_per_item : float
        Memory: one number per vertex and two per edge, divided by the items.
    monitor : Monitor, optional
        How long to take; :data:`N_STEPS` passes when left out.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads; all processors that this process may use when left out. The result does not depend on it.

    Examples
    --------
    Points on a line need no more than the line:

    >>> import numpy as np
    >>> from prodige.metric.landmarks import Landmarks
    >>> from prodige.compression.neighbors import fit_local
    >>> from prodige.metric.space import Space
    >>> space = Space(np.random.default_rng(0).random((200, 1)))
    >>> landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    >>> fit_local(space, landmarks, numbers_per_item=4, random_state=0).n_edges
    199
    """
    random = check_random_state(random_state)
    monitor = Monitor(N_STEPS) if monitor is None else monitor
    n_edges = int((numbers_per_item - 1) * space.n_items / 2 + 1e-9)
    edges = join_components(space, Candidates.of_neighbors(*space.neighbors(_N_NEIGHBORS)))
    graph = FittedGraph(landmarks, 0, edges.i, edges.j, edges.weight, count_threads(n_jobs))
    detours = measure_detours(space, edges, patience(monitor, _LOOKING))
    n_start = max(min(int((detours > 1 + _EXACT).sum()), 3 * n_edges), n_edges)
    graph = complete(space, thin(graph, detours, n_start, above=1 + _EXACT), patience(monitor, _LOOKING))
    blocks = Blocks(landmarks.n_blocks, _BATCH, random)
    n_start = graph.n_edges
    try:
        for progress in monitor.run():
            if graph.n_edges > n_edges and len(monitor.history) % _ROUND == 0 and monitor.history:
                share = min(progress / 0.6, 1)
                graph = thin(graph, graph.importance(), round(n_start * (n_edges / n_start) ** share))
            late = max(progress - 0.6, 0) / 0.4
            loss = graph.newton(blocks.draw(), rate=1 - 0.9 * late)
            monitor.record(progress, loss, graph.n_edges, graph.numbers_per_item)
            if loss <= (_EXACT * landmarks.scale) ** 2 and graph.n_edges <= n_edges:
                break
    except KeyboardInterrupt:
        monitor.stopped = "interrupt"
    return graph if graph.n_edges <= n_edges else thin(graph, graph.importance(), n_edges)


def complete(space: Space, graph: FittedGraph, is_over: IsOver = never, n_rounds: int = 16) -> FittedGraph:
    """Add edges that the metric has but that join no neighbours, as long roads do; none where it is not exact.

    The nearest item that comes out too far from a source must miss its last edge: the one to the item nearest to it
    among those that lie on the path and come out right.
    """
    landmarks = graph.landmarks
    tolerance = _EXACT * landmarks.scale
    for turn in range(n_rounds):
        sources = landmarks.sources[64 * turn : 64 * (turn + 1)]
        if sources.size == 0 or is_over():
            break
        target = space.distances(sources)
        excess = graph.engine.distances(sources, None, graph.n_jobs) - target
        nearest = np.where(excess > tolerance, target, np.inf).argmin(axis=1)
        wrong = np.flatnonzero(excess[np.arange(sources.size), nearest] > tolerance)
        if wrong.size == 0:
            continue
        items = nearest[wrong]
        around = space.distances(items)
        on_the_path = target[wrong] + around <= target[wrong, items][:, None] + tolerance
        on_the_path &= excess[wrong] <= tolerance
        on_the_path[np.arange(wrong.size), items] = False
        length = np.where(on_the_path, around, np.inf)
        before = length.argmin(axis=1)
        found = np.isfinite(length[np.arange(wrong.size), before])
        tail, head = items[found].astype(np.int32), before[found].astype(np.int32)
        edges = Candidates.make(
            np.concatenate([graph.tail, tail]),
            np.concatenate([graph.head, head]),
            np.concatenate([graph.weight, around[found, before[found]]]),
            graph.n_items,
            graph.n_items,
        )
        graph = FittedGraph(landmarks, 0, edges.i, edges.j, edges.weight, graph.n_jobs)
    return graph


def thin(graph: FittedGraph, importance: Floats, n_edges: int, above: float = -np.inf) -> FittedGraph:
    """Return the graph with its most important edges, all above a bound but those that hold the graph together."""
    rank = np.where(spanning_forest(graph.tail, graph.head, importance, graph.n_items), np.inf, importance)
    keep = np.sort(np.argsort(-rank, kind="stable")[:n_edges])
    keep = keep[rank[keep] > above]
    return FittedGraph(graph.landmarks, 0, graph.tail[keep], graph.head[keep], graph.weight[keep], graph.n_jobs)


def measure_detours(space: Space, edges: Candidates, is_over: IsOver = never) -> Floats:
    """Return, for each edge, the shortest path over a common neighbour as a multiple of its length.

    Edges that there is no time to look at count as needed.
    """
    n = edges.n_items
    number = np.arange(edges.n_edges)
    ends = csr_array(
        (
            np.concatenate([number, number]) + 1,
            (np.concatenate([edges.i, edges.j]), np.concatenate([edges.j, edges.i])),
        ),
        shape=(n, n),
    )
    detours = np.full(edges.n_edges, np.inf)
    for item in range(n):
        if item % 64 == 0 and is_over():
            break
        begin, end = ends.indptr[item], ends.indptr[item + 1]
        neighbors, ids = ends.indices[begin:end], ends.data[begin:end] - 1
        detours[ids] = np.minimum(detours[ids], find_detours(space, item, neighbors.astype(np.int64)))
    return detours


def join_components(space: Space, edges: Candidates) -> Candidates:
    """Add the shortest edge out of each component, as far as a few of its members show, until there is only one."""
    n = edges.n_items
    while True:
        matrix = csr_array((np.ones(edges.n_edges), (edges.i, edges.j)), shape=(n, n))
        n_components, component = connected_components(matrix, directed=False)
        if n_components == 1:
            return edges
        tails, heads, weights = [], [], []
        for c in range(1, n_components):
            members: Ids = np.flatnonzero(component == c)[:64].astype(np.int32)
            outside = np.flatnonzero(component != c)
            distances = space.distances(members, outside)
            row, column = np.unravel_index(distances.argmin(), distances.shape)
            tails.append(members[row])
            heads.append(outside[column])
            weights.append(distances[row, column])
        edges = edges | Candidates.make(tails, heads, weights, n, n)
