"""Anchors far away: a graph whose distances to anchors are coordinates that are given.

The distance to a point far away in some direction is the coordinate along that direction, but for a constant. Anchors
far away in K directions therefore see K coordinates of an item. Items are attached to hubs, and every hub to each
anchor: an item with one edge has the coordinates of its hub, all of them longer by the edge. So what all coordinates of
an item have in common costs nothing but a length, and hubs are what k-means finds in the rest. Further edges go to the
items they bring most: for each anchor an item takes the nearer of its hubs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state

from prodige.learning.anchor_layout import AnchorLayout
from prodige.learning.anchors_from_vectors import Vectors, check_weights, cluster, distances, share_budget
from prodige.learning.embedding import GraphEmbedding
from prodige.progress import Bar
from prodige.threads import one_thread

# An item has at most this many edges.
_MOST_EDGES = 8
# Hubs that are looked at for another edge of an item: those nearest to it.
_NEAR = 48
# Lengths that are looked at: what an edge to the hub alone would have, and so many deviations from it more.
_LONGER = (0.0, 0.5, 1.0, 1.5, 2.0)
# A round looks at so many times the items that can still get an edge, and gives edges to a share of them.
_LOOKS = 4
_ROUND = 0.5
_BLOCK = 512


def directions(n_dimensions: int, n_anchors: int, random_state: int | np.random.RandomState | None = None) -> Vectors:
    """Return K directions to look at vectors from, shape [D, K]: lengths and angles of D <= K dimensions are kept.

    All directions see the first dimension alike, and the others each in its own way; the first should be the one that
    matters most, since a graph of :func:`attach_to_anchors` stores it in the lengths of its edges.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.learning.anchors_from_coordinates import directions
    >>> turn = directions(2, 4, random_state=0)
    >>> turn[0], np.allclose(turn @ turn.T, np.eye(2), atol=1e-6)
    (array([0.5, 0.5, 0.5, 0.5], dtype=float32), True)
    """
    columns = check_random_state(random_state).normal(size=(n_anchors, n_dimensions))
    columns[:, 0] = 1.0
    orthonormal, _ = np.linalg.qr(columns)
    return np.asarray((orthonormal * np.sign(orthonormal[0, 0])).T, dtype=np.float32)


@one_thread()
def attach_to_anchors(
    coordinates: ArrayLike,
    numbers_per_item: float = 5.0,
    n_hubs: int | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[GraphEmbedding, float, float]:
    """Return a graph laid out as an :class:`AnchorLayout` says, and what makes its distances coordinates.

    Parameters
    ----------
    coordinates : array-like, shape [N, K]
        What (distance - offset) / scale is to be, for each item and anchor.
    numbers_per_item : float
        Size of the graph, hubs and anchors included, as :attr:`prodige.Graph.numbers_per_item` counts it.
    n_hubs : int, optional
        Number of hubs H; by the number of items and the budget when left out.
    sample_weight : array-like, shape [N], optional
        How much the error of each item counts; all alike when left out.
    random_state : int, RandomState or None
        A seed gives the same graph on the same machine with any number of threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    verbose : int
        Above 0 shows a progress bar.

    Returns
    -------
    graph : GraphEmbedding
    offset, scale : float

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.learning.anchor_layout import AnchorLayout
    >>> from prodige.learning.anchors_from_coordinates import attach_to_anchors
    >>> coordinates = np.random.RandomState(0).normal(size=(1000, 4))
    >>> graph, offset, scale = attach_to_anchors(coordinates, random_state=0)
    >>> found = (graph(np.arange(1000), AnchorLayout.of(graph, 4).anchors).detach() - offset) / scale
    >>> bool(((found.numpy() - coordinates) ** 2).mean() < 0.06)
    True
    """
    target: Vectors = check_array(coordinates, dtype=np.float32, input_name="coordinates")
    n_items, n_anchors = target.shape
    weights = check_weights(sample_weight, n_items)
    random = check_random_state(random_state)
    n_hubs, n_edges = share_budget(n_items, n_anchors, numbers_per_item, n_hubs)
    spread = float(np.sqrt(np.mean(np.square(target, dtype=np.float64))))
    scale = 1 / spread if spread > 0 else 1.0
    target = target * np.float32(scale)
    alone = target.mean(axis=1, keepdims=True)
    hubs, _ = cluster(target - alone, n_hubs, weights, random)
    item, hub, length = choose_edges(target, hubs, weights, n_edges, verbose)
    between, length, offset = far_enough(hubs, length)
    layout = AnchorLayout(n_items, n_hubs, n_anchors)
    graph = GraphEmbedding(
        *layout.join(item, hub),
        np.concatenate([length, between.ravel()]),
        probability=1.0,
        n_vertices=layout.n_vertices,
        n_items=n_items,
        n_jobs=n_jobs,
    )
    return graph, offset, scale


def choose_edges(
    target: Vectors, hubs: Vectors, weights: NDArray[np.float64], n_edges: int, verbose: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64], Vectors]:
    """Return edges from items to hubs, whose rows have a mean of 0: item, hub and length, which may be below 0.

    Every item has one edge, to the hub that is nearest but for a constant. The others are given out in rounds, one at
    most to an item, to those whose weighted squared error they lower most.
    """
    n_items = len(target)
    hub = np.full((n_items, _MOST_EDGES), -1)
    length = np.zeros(hub.shape, dtype=np.float32)
    for first in range(0, n_items, _BLOCK):
        block = target[first : first + _BLOCK]
        hub[first : first + _BLOCK, 0] = distances(block - block.mean(axis=1, keepdims=True), hubs).argmin(axis=1)
    length[:, 0] = (target - hubs[hub[:, 0]]).mean(axis=1)
    found = hubs[hub[:, 0]] + length[:, :1]
    degree = np.ones(n_items, dtype=np.int64)
    n_left = n_edges - n_items
    bar = Bar(total=n_left, desc="edges", disable=verbose <= 0, unit="edge")
    while n_left > 0:
        errors = weights * np.square(found - target).sum(axis=1)
        errors[degree == min(_MOST_EDGES, len(hubs))] = 0
        worst = np.argsort(-errors, kind="stable")[: _LOOKS * n_left]
        worst = worst[errors[worst] > 0]
        gain, near, long = best_edges(target[worst], found[worst], hub[worst], hubs)
        gain *= weights[worst]
        best = np.argsort(-gain, kind="stable")[: int(np.ceil(_ROUND * n_left))]
        best = best[gain[best] > 0]
        if not best.size:
            break  # no edge brings anything
        item = worst[best]
        hub[item, degree[item]], length[item, degree[item]] = near[best], long[best]
        degree[item] += 1
        found[item] = np.minimum(found[item], hubs[near[best]] + long[best, None])
        n_left -= best.size
        bar.update(best.size)
    bar.close()
    item, place = np.nonzero(hub >= 0)
    return item, hub[item, place], length[item, place]


def best_edges(
    target: Vectors, found: Vectors, taken: NDArray[np.int64], hubs: Vectors
) -> tuple[NDArray[np.float64], NDArray[np.int64], Vectors]:
    """Return for each item one more edge, to a hub it has none to: by how much it lowers the error, hub and length."""
    n_items = len(target)
    gain, hub, length = np.zeros(n_items), np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.float32)
    for first in range(0, n_items, _BLOCK):
        part = slice(first, first + _BLOCK)
        block = target[part]
        away = distances(block - block.mean(axis=1, keepdims=True), hubs)
        row = np.arange(len(block))[:, None]
        is_taken = taken[part] >= 0
        away[np.nonzero(is_taken)[0], taken[part][is_taken]] = np.inf
        near = np.argsort(away, axis=1, kind="stable")[:, :_NEAR]
        missing = block[:, None] - hubs[near]
        middle, deviation = missing.mean(axis=2), missing.std(axis=2)
        now = np.square(found[part] - block).sum(axis=1)
        for longer in _LONGER:
            lengths = middle + np.float32(longer) * deviation
            there = np.minimum((found[part] - block)[:, None], lengths[:, :, None] - missing)
            gains = np.where(np.isinf(away[row, near]), 0.0, now[:, None] - np.square(there).sum(axis=2))
            best = gains.argmax(axis=1)
            better = np.flatnonzero(gains[row[:, 0], best] > gain[part])
            gain[first + better] = gains[better, best[better]]
            hub[first + better] = near[better, best[better]]
            length[first + better] = lengths[better, best[better]]
    return gain, hub, length


def far_enough(hubs: Vectors, length: Vectors) -> tuple[Vectors, Vectors, float]:
    """Return lengths from hubs to anchors and from items to hubs, and by how much a distance exceeds its coordinate.

    Everything is moved away by the range of the hubs' coordinates: no path that visits a second hub, over an item or
    over an anchor, is then shorter than one that does not.
    """
    low, high = float(hubs.min()), float(hubs.max())
    reach = max(high - low, 1e-3)
    to_anchor, to_hub = reach - low, reach - float(length.min())
    return hubs + np.float32(to_anchor), length + np.float32(to_hub), to_anchor + to_hub
