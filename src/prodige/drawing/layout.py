"""Where to draw the vertices of a graph, so that what is near in the graph is near in the picture.

Distances in the graph are what counts, so vertices without a common edge come together if a short path joins them. The
graph's parts that no path joins are laid out by themselves and put side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from prodige.drawing.tsne import descend
from prodige.metric.scaling import classical_scaling

if TYPE_CHECKING:
    from prodige.graph.graph import Graph

Method = Literal["auto", "tsne", "mds"]

N_LANDMARKS = 200  # vertices whose distances to all others say where these are; more change the picture little
N_NEIGHBORS = 30
PERPLEXITY = N_NEIGHBORS / 3  # with three times as many neighbours, those left out would have had no weight

# Fewer items have too few neighbours to tell near from far, and classical scaling shows them better.
LEAST_FOR_TSNE = 30
MOST_FOR_TSNE = 50_000  # vertices; more take minutes

GAP = 2.0  # between parts; neighbours are about 1 apart
LEAST_APART = 0.6  # what t-SNE brings nearer than this is pushed apart again


def place(
    graph: Graph,
    method: Method = "auto",
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
) -> NDArray[np.float32]:
    """Return a place in the plane for every vertex, hubs included.

    Parameters
    ----------
    graph : Graph
    method : {"auto", "tsne", "mds"}
        ``"tsne"`` keeps neighbours together: the 30 nearest items of each vertex attract it. ``"mds"`` keeps long
        distances: classical scaling from landmarks, which takes a second for 10,000 vertices. ``"auto"`` is t-SNE
        for parts of 30 items to 50,000 vertices, scaling for others. Parts with fewer than 4 items are always scaled.
    random_state : int, RandomState or None
        Which landmarks are drawn. A seed gives the same picture on the same machine, with any number of threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Returns
    -------
    ndarray of float32, shape [V, 2]
        Finite and around 0, with vertices about 1 apart. Vertices that would hide each other are moved apart a little.

    Examples
    --------
    A path of three vertices is a line:

    >>> from prodige import Graph
    >>> from prodige.drawing.layout import place
    >>> abs(place(Graph.from_edges([0, 1], [1, 2], [1, 1]))[:, 0]).round(2)
    array([0.87, 0.  , 0.87], dtype=float32)
    """
    if method not in ("auto", "tsne", "mds"):
        raise ValueError(f'method must be "auto", "tsne" or "mds", got {method!r}')
    from sklearn.utils import check_random_state
    from threadpoolctl import threadpool_limits

    random = check_random_state(random_state)
    components = graph.components()
    members = np.argsort(components, kind="stable")
    parts = np.split(members, np.cumsum(np.bincount(components))[:-1])
    with threadpool_limits(1):  # sums in another order have other last digits, which a descent makes large
        drawings = [place_part(graph, part, method, random, n_jobs) for part in parts]
    positions = np.empty((graph.n_vertices, 2), np.float32)
    positions[members] = side_by_side(drawings)
    return positions


def place_part(
    graph: Graph, vertices: NDArray[np.int64], method: Method, random: np.random.RandomState, n_jobs: int | None
) -> NDArray[np.float64]:
    """Lay out vertices that paths join, from 0 on, with about the same room for each."""
    n = vertices.size
    if n == 1:
        return np.zeros((1, 2))
    start = scale_classically(graph, vertices, random, n_jobs)
    n_items = int((vertices < graph.n_items).sum())
    if method == "auto":
        method = "tsne" if n_items >= LEAST_FOR_TSNE and n <= MOST_FOR_TSNE else "mds"
    if method == "mds" or n_items < 4:
        return parted(scaled(start))
    k = min(N_NEIGHBORS, n_items - 1)
    distances, items = graph.kneighbors(vertices, k, n_jobs)
    rank = np.full(graph.n_vertices + 1, -1)  # the last one stands for "no neighbour", which is -1
    rank[vertices] = np.arange(n)
    # Forces do not part what is on one place.
    start += random.normal(scale=0.01 * float(start.std()) or 1.0, size=start.shape)
    return spread(parted(scaled(descend(start, rank[items], distances.astype(np.float64), min(PERPLEXITY, k)))))


def scale_classically(
    graph: Graph, vertices: NDArray[np.int64], random: np.random.RandomState, n_jobs: int | None
) -> NDArray[np.float64]:
    """Place vertices by their distances to a few of them, drawn at random."""
    landmarks = np.sort(random.choice(vertices.size, min(N_LANDMARKS, vertices.size), replace=False))
    distances = graph.distances(vertices[landmarks], vertices, n_jobs).astype(np.float64)
    # Lengths may add up to more than float32 holds; and units do not matter.
    distances = np.minimum(distances, np.finfo(np.float32).max)
    distances /= distances.max() or 1.0
    return classical_scaling(distances, landmarks, 2)


def scaled(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring a part to a size that leaves each vertex a square of side 1, from 0 on."""
    places = places - places.min(axis=0)
    places *= np.sqrt(len(places)) / (float(places.max()) or 1.0)
    return places


def parted(places: NDArray[np.float64], nearest: float = 0.01, step: float = 0.2) -> NDArray[np.float64]:
    """Set vertices on one place around it, like the seeds of a sunflower."""
    _, group = np.unique(np.round(places / nearest).astype(np.int64), axis=0, return_inverse=True)
    group = group.ravel()
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    rank = np.empty(len(places))
    rank[order] = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    angle = rank * (np.pi * (3 - np.sqrt(5)))
    around: NDArray[np.float64] = np.sqrt(rank)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return places + step * around


def spread(places: NDArray[np.float64], least: float = LEAST_APART, n_rounds: int = 30) -> NDArray[np.float64]:
    """Push apart vertices that are nearer than ``least``, so that crowds can be seen for what they are."""
    from scipy.spatial import cKDTree

    # Little by little, as a crowd within reach of each other means all its pairs; then some more to settle.
    for radius in (*np.linspace(0, least, n_rounds + 1)[1:], *(least,) * n_rounds):
        pairs = cKDTree(places).query_pairs(radius, output_type="ndarray")
        between = places[pairs[:, 0]] - places[pairs[:, 1]]
        apart = np.maximum(np.linalg.norm(between, axis=1), 1e-9)
        push = between * ((radius - apart) / 2 / apart)[:, None]
        for axis in range(2):
            there = np.bincount(pairs[:, 0], push[:, axis], len(places))
            places[:, axis] += there - np.bincount(pairs[:, 1], push[:, axis], len(places))
    return places


def side_by_side(drawings: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Put drawings into rows, the largest first, around 0; return all places one after the other."""
    boxes = np.array([np.ptp(drawing, axis=0) for drawing in drawings])
    width = max(float(boxes[:, 0].max()), 1.2 * float(np.sqrt((boxes + GAP).prod(axis=1).sum())))
    corner, height = np.zeros(2), 0.0
    moved: list[NDArray[np.float64]] = list(drawings)
    for which in np.lexsort((np.arange(len(boxes)), -boxes.max(axis=1))):
        box = boxes[which]
        if corner[0] > 0 and corner[0] + box[0] > width:
            corner, height = np.array([0.0, corner[1] - height - GAP]), 0.0
        low = drawings[which].min(axis=0)
        moved[which] = drawings[which] - low + corner - [0.0, box[1]]
        corner = corner + np.array([box[0] + GAP, 0.0])
        height = max(height, float(box[1]))
    places: NDArray[np.float64] = np.concatenate(moved)
    places -= (places.min(axis=0) + places.max(axis=0)) / 2
    return places
