"""Anchors, hubs and edges for vectors: the start of an :class:`prodige.learning.anchors.AnchorEmbedding`.

Items are attached to a few of H hubs, and every hub to each of K anchors. So a distance is that of the best of an
item's hubs plus the edge to it. Hubs are what k-means finds among the items, anchors what it finds among the hubs. With
many more hubs than anchors an item needs two or three edges, one of them already telling most of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state

from prodige._validation import check_integer
from prodige.learning.anchor_layout import AnchorLayout
from prodige.learning.embedding import GraphEmbedding
from prodige.metric.clusters import k_means
from prodige.threads import one_thread

Vectors = NDArray[np.float32]

# Hubs for n items: this times the square root of n.
_HUBS = 2.25
# Hubs and their edges to anchors take at most this share of the budget.
_HUB_SHARE = 1 / 3
# An item has at most this many edges; more bring next to nothing.
_MOST_EDGES = 8
# Edges start no shorter than this share of the mean: from a length of 0 there is no gradient.
_SHORTEST = 1e-3
# Above so many items k-means works on batches, of so many.
_MANY = 2**17
_BATCH = 1024


@one_thread()
def attach_to_hubs(
    X: ArrayLike,
    n_anchors: int = 100,
    numbers_per_item: float = 10.0,
    n_hubs: int | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> tuple[GraphEmbedding, Vectors]:
    """Return a graph laid out as an :class:`AnchorLayout` says, and the distances to anchors it is to have, [N, K].

    Parameters
    ----------
    X : array-like, shape [N, D]
        Vectors of the items.
    n_anchors : int
        Number of anchors K, at most N.
    numbers_per_item : float
        Size of the graph, hubs and anchors included, as :attr:`prodige.Graph.numbers_per_item` counts it. Items that
        weigh more get more of the edges, each at least one.
    n_hubs : int, optional
        Number of hubs H; by the number of items and the budget when left out.
    sample_weight : array-like, shape [N], optional
        How much each item counts; all alike when left out.
    random_state : int, RandomState or None
        A seed gives the same graph on the same machine with any number of threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.learning.anchors_from_vectors import attach_to_hubs
    >>> X = np.random.RandomState(0).normal(size=(1000, 8))
    >>> graph, target = attach_to_hubs(X, n_anchors=10, random_state=0)
    >>> graph.n_items, graph.n_vertices - graph.n_items > 10, graph.numbers_per_item <= 10, target.shape
    (1000, True, True, (1000, 10))
    """
    vectors: Vectors = check_array(X, dtype=np.float32, input_name="X")
    n_items = len(vectors)
    check_integer("n_anchors", n_anchors, 1, n_items)
    weights = check_weights(sample_weight, n_items)
    random = check_random_state(random_state)
    n_hubs, n_edges = share_budget(n_items, n_anchors, numbers_per_item, n_hubs)
    hubs, shares = cluster(vectors, n_hubs, weights, random)
    anchors, _ = cluster(hubs, min(n_anchors, n_hubs), shares, random)
    if len(anchors) < n_anchors:  # fewer hubs than anchors: the other anchors are items
        others = random.choice(n_items, n_anchors - len(anchors), replace=False)
        anchors = np.concatenate([anchors, vectors[others]])
    item, near, weight = nearest_hubs(vectors, hubs, share_edges(weights, n_edges, min(_MOST_EDGES, n_hubs)))
    layout = AnchorLayout(n_items, n_hubs, n_anchors)
    weight = np.concatenate([weight, distances(hubs, anchors).ravel()])
    graph = GraphEmbedding(
        *layout.join(item, near),
        np.maximum(weight, max(_SHORTEST * float(weight.mean()), 1e-6)),
        probability=1.0,
        n_vertices=layout.n_vertices,
        n_items=n_items,
        n_jobs=n_jobs,
    )
    return graph, distances(vectors, anchors)


def share_budget(n_items: int, n_anchors: int, numbers_per_item: float, n_hubs: int | None = None) -> tuple[int, int]:
    """Return the number of hubs, and that of edges which are left for the items.

    Examples
    --------
    >>> from prodige.learning.anchors_from_vectors import share_budget
    >>> share_budget(32_000, n_anchors=100, numbers_per_item=10)
    (402, 103549)
    """
    if not isinstance(numbers_per_item, (int, float, np.number)) or not math.isfinite(numbers_per_item):
        raise ValueError(f"numbers_per_item must be a finite number, got {numbers_per_item!r}")
    total = math.floor(numbers_per_item * n_items + 1e-6)  # 3.3 x 10 is a little less than 33 in binary
    per_hub = 2 * n_anchors + 1
    if n_hubs is None:
        room = min(int(_HUB_SHARE * total), total - 3 * n_items - n_anchors) // per_hub  # an edge for each item is left
        n_hubs = max(min(int(_HUBS * math.sqrt(n_items)), room, n_items), 1)
    check_integer("n_hubs", n_hubs, 1, n_items)
    n_edges = (total - n_items - n_anchors - per_hub * n_hubs) // 2
    if n_edges < n_items:
        least = (3 * n_items + n_anchors + per_hub * n_hubs) / n_items
        raise ValueError(
            f"numbers_per_item = {numbers_per_item} is too little for {n_items} items, {n_hubs} hubs and {n_anchors} "
            f"anchors: it takes {math.ceil(10 * least) / 10}. Raise it, or lower n_anchors"
        )
    return n_hubs, n_edges


def cluster(
    X: Vectors, n_clusters: int, weights: NDArray[np.float64], random: np.random.RandomState
) -> tuple[Vectors, NDArray[np.float64]]:
    """Return the centres of clusters and the weight of each, by k-means."""
    seed = random.randint(2**31 - 1)
    means = k_means(X, n_clusters, seed, weights, batch_size=None if len(X) <= _MANY else _BATCH)
    shares = np.bincount(means.labels_, weights=weights, minlength=n_clusters)
    return means.cluster_centers_.astype(np.float32), np.maximum(shares, 1e-9 * shares.max())


def share_edges(weights: NDArray[np.float64], n_edges: int, most: int) -> NDArray[np.int64]:
    """Return how many edges each item gets: at least one, at most ``most``, and by the square root of its weight.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.learning.anchors_from_vectors import share_edges
    >>> share_edges(np.array([1.0, 4.0, 16.0]), 7, most=8)
    array([1, 2, 4])
    """
    root = np.sqrt(weights)
    low, high = 0.0, most / max(root[root > 0].min(initial=np.inf), 1e-300)
    for _ in range(100):
        middle = (low + high) / 2
        if np.clip(np.floor(middle * root), 1, most).sum() <= n_edges:
            low = middle
        else:
            high = middle
    return np.clip(np.floor(low * root), 1, most).astype(np.int64)


def nearest_hubs(
    X: Vectors, hubs: Vectors, n_edges: NDArray[np.int64], block: int = 4096
) -> tuple[NDArray[np.int64], NDArray[np.int64], Vectors]:
    """Return edges from each item to its nearest hubs: item, hub and distance."""
    parts: list[tuple[Any, Any, Any]] = []
    for first in range(0, len(X), block):
        lengths = distances(X[first : first + block], hubs)
        target = n_edges[first : first + block]
        order = np.argsort(lengths, axis=1, kind="stable")[:, : target.max()]
        row, column = np.nonzero(np.arange(order.shape[1]) < target[:, None])
        near = order[row, column]
        parts.append((first + row, near, lengths[row, near]))
    items, near, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return items, near, weight


def distances(X: Vectors, Y: Vectors) -> Vectors:
    """Return Euclidean distances, shape [len(X), len(Y)]."""
    from sklearn.metrics.pairwise import euclidean_distances

    return np.asarray(euclidean_distances(X, Y), dtype=np.float32)


def check_weights(sample_weight: ArrayLike | None, n_items: int) -> NDArray[np.float64]:
    """Return how much each item counts, with a mean of 1."""
    if sample_weight is None:
        return np.ones(n_items)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_items,):
        raise ValueError(f"sample_weight must have one entry per item ({n_items}), got shape {weights.shape}")
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] = {weights[bad[0]]} must be finite and 0 or more")
    if not weights.any():
        raise ValueError("sample_weight is 0 for every item; give some of them weight, or leave it out")
    return np.asarray(weights / weights.mean())
