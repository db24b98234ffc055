"""Candidates: which edges may exist, and their weights to start from.

Learning can drop edges but not invent them, so the candidates decide what a graph can become. Each function returns
unique undirected edges; ``|`` joins them, and where both sides have an edge the smaller weight stays:

>>> import numpy as np
>>> from prodige.metric import candidates
>>> points = np.random.default_rng(0).normal(size=(50, 3))
>>> edges = candidates.knn(points, 5) | candidates.random(points, 5, random_state=0)
>>> edges.n_items, edges.n_vertices
(50, 50)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_array, check_random_state

from prodige._validation import MAX_EDGES, check_integer, check_number, check_weights
from prodige.graph.edges import unique_edges
from prodige.metric.clusters import k_means
from prodige.metric.neighbors import Metric, nearest_neighbors
from prodige.metric.space import check_distances, distances_between
from prodige.metric.star import star_radii
from prodige.threads import one_thread

RandomState = int | np.random.RandomState | None


@dataclass(frozen=True)
class Candidates:
    """Unique undirected edges with initial weights.

    Attributes
    ----------
    i, j : ndarray of int32, shape [E]
        Ends, ``i < j``, ordered.
    weight : ndarray of float32, shape [E]
    n_vertices, n_items : int
        The first ``n_items`` vertices are data, the others are hubs.

    Examples
    --------
    >>> from prodige import GraphEmbedding
    >>> from prodige.metric import candidates
    >>> edges = candidates.complete([[0.0], [1.0], [3.0]])
    >>> GraphEmbedding.from_candidates(edges).n_edges
    3
    """

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    weight: NDArray[np.float32]
    n_vertices: int
    n_items: int

    @classmethod
    def make(cls, i: Any, j: Any, weight: Any, n_vertices: int, n_items: int) -> Candidates:
        """Orient, order and merge edges; self-loops are left out."""
        i, j = np.asarray(i, dtype=np.int32), np.asarray(j, dtype=np.int32)
        real = i != j
        edges = unique_edges(i[real], j[real], check_weights("weight", weight)[real])
        return cls(edges.i, edges.j, edges.weight, n_vertices, n_items)

    @classmethod
    def of_neighbors(cls, distances: NDArray[Any], ids: NDArray[np.int64]) -> Candidates:
        """Join every item to its neighbours, as :func:`prodige.metric.neighbors.nearest_neighbors` returns them."""
        n, k = ids.shape
        found = ids.ravel() >= 0
        i = np.repeat(np.arange(n), k)
        return cls.make(i[found], ids.ravel()[found], np.maximum(distances.ravel()[found], 0), n, n)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.i.size

    def __or__(self, other: Candidates) -> Candidates:
        if self.n_items != other.n_items:
            raise ValueError(f"cannot join candidates for {self.n_items} items and for {other.n_items}")
        return Candidates.make(
            np.concatenate([self.i, other.i]),
            np.concatenate([self.j, other.j]),
            np.concatenate([self.weight, other.weight]),
            max(self.n_vertices, other.n_vertices),
            self.n_items,
        )


def knn(
    X: Any,
    n_neighbors: int = 32,
    metric: Metric = "euclidean",
    method: Literal["exact", "approximate"] = "exact",
    n_jobs: int | None = None,
) -> Candidates:
    """Join every item to its nearest ones; weights are the distances.

    Parameters
    ----------
    X : array-like or sparse matrix, shape [N, D], or [N, N] if ``metric="precomputed"``
    n_neighbors : int
        Edges from each item; fewer where there are fewer other items.
    metric : str or callable
        Any scikit-learn metric.
    method : {"exact", "approximate"}
        Exact search works in blocks and never holds all pairs. The approximate index (HNSW of faiss, extra ``ann``)
        is for large N; it knows ``"euclidean"`` and ``"cosine"`` and dense rows.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out. Exact neighbours do not
        depend on it; the approximate index comes out a little different each time where it is built by more than one.

    Examples
    --------
    >>> from prodige.metric import candidates
    >>> candidates.knn([[0.0], [1.0], [3.0]], n_neighbors=1).j
    array([1, 2], dtype=int32)
    """
    return Candidates.of_neighbors(*nearest_neighbors(check_data(X, metric), n_neighbors, metric, method, n_jobs))


@one_thread()
def random(X: Any, n_edges: int = 32, metric: Metric = "euclidean", random_state: RandomState = None) -> Candidates:
    """Join every item to some drawn at random; weights are the distances.

    Parameters
    ----------
    X : array-like or sparse matrix, shape [N, D], or [N, N] if ``metric="precomputed"``
    n_edges : int
        Edges drawn for each item; pairs drawn twice count once.
    metric : str or callable
        Any scikit-learn metric.
    random_state : int, RandomState or None

    Examples
    --------
    >>> from prodige.metric import candidates
    >>> candidates.random([[0.0], [1.0]], n_edges=5, random_state=0).n_edges
    1
    """
    X = check_data(X, metric)
    n = X.shape[0]
    check_integer("n_edges", n_edges, 1, MAX_EDGES // n)
    generator = check_random_state(random_state)
    i = np.repeat(np.arange(n), n_edges)
    j = generator.randint(n, size=i.size)
    pairs = np.unique(np.sort(np.stack([i, j], axis=1)[i != j], axis=1), axis=0)
    return Candidates.make(pairs[:, 0], pairs[:, 1], pair_distances(X, pairs, metric), n, n)


@one_thread()
def complete(X: Any, metric: Metric = "euclidean") -> Candidates:
    """Join every item to every other, for a few hundred items; weights are the distances.

    Examples
    --------
    >>> from prodige.metric import candidates
    >>> candidates.complete([[0.0], [1.0], [3.0]]).weight
    array([1., 3., 2.], dtype=float32)
    """
    X = check_data(X, metric)
    n = X.shape[0]
    i, j = np.triu_indices(n, 1)
    return Candidates.make(i, j, pairwise_distances(X, metric=metric)[i, j], n, n)


def bipartite(matrix: Any, weight: float = 1.0) -> Candidates:
    """Join users to the items they interacted with: rows are items 0 to R - 1, columns R to R + C - 1.

    Parameters
    ----------
    matrix : array-like or sparse matrix, shape [R, C]
        Every stored non-zero entry is an edge.
    weight : float
        Initial weight of all edges.

    Examples
    --------
    >>> from prodige.metric import candidates
    >>> edges = candidates.bipartite([[1, 0], [1, 1]])
    >>> edges.i, edges.j
    (array([0, 1, 1], dtype=int32), array([2, 2, 3], dtype=int32))
    """
    entries = scipy.sparse.coo_array(matrix)
    if entries.ndim != 2:
        raise ValueError(f"matrix must have two dimensions, users and items, got shape {entries.shape}")
    if np.isnan(entries.data).any():
        raise ValueError("matrix must not hold nan: leave out or set to 0 what is not known")
    weight = check_number("weight", weight)
    n_rows, n_columns = entries.shape
    row, column = entries.coords
    real = entries.data != 0
    n = n_rows + n_columns
    return Candidates.make(row[real], n_rows + column[real], np.full(int(real.sum()), weight), n, n)


@one_thread()
def hubs(
    X: Any,
    n_hubs: int = 32,
    n_nearest: int | None = None,
    metric: Metric = "euclidean",
    random_state: RandomState = None,
) -> Candidates:
    """Join every item to virtual vertices, its nearest hubs, and the hubs to each other.

    Hubs start at the centres of k-means where the metric is Euclidean and the rows are dense, at far-apart items
    otherwise. The weights start from the closed-form star, the best graph with one hub (r_i + r_j for every pair), with
    nearer hubs a little closer.

    Parameters
    ----------
    X : array-like or sparse matrix, shape [N, D], or [N, N] if ``metric="precomputed"``
    n_hubs : int
        Virtual vertices to add.
    n_nearest : int, optional
        Hubs each item is joined to; all when left out.
    metric : str or callable
        Any scikit-learn metric.
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric import candidates
    >>> points = np.random.default_rng(0).normal(size=(40, 3))
    >>> edges = candidates.hubs(points, n_hubs=4, random_state=0)
    >>> edges.n_items, edges.n_vertices, edges.n_edges
    (40, 44, 166)
    """
    X = check_data(X, metric)
    n = X.shape[0]
    n_hubs = check_integer("n_hubs", n_hubs, 1, n)
    n_nearest = n_hubs if n_nearest is None else check_integer("n_nearest", n_nearest, 1, n_hubs)
    generator = check_random_state(random_state)
    to_hub = distances_to_hubs(X, n_hubs, metric, generator)
    radius = radii_of(X, metric, generator)
    nearest = np.argsort(to_hub, axis=1, kind="stable")[:, :n_nearest]
    detour = np.take_along_axis(to_hub, nearest, axis=1)
    detour = (detour - detour[:, :1]) / 2
    scale = 2 * max(float(radius.mean()), 1e-12)  # the mean distance, nearly
    noise = generator.uniform(0, 0.01 * scale, size=detour.shape)  # so that equal paths part
    weight = np.maximum(radius[:, None], 0) + detour + noise
    a, b = np.triu_indices(n_hubs, 1)
    return Candidates.make(
        np.concatenate([np.repeat(np.arange(n), n_nearest), n + a]),
        np.concatenate([n + nearest.ravel(), n + b]),
        np.concatenate([weight.ravel(), np.full(a.size, 0.05 * scale)]),
        n + n_hubs,
        n,
    )


def check_data(X: Any, metric: Metric) -> Any:
    """Return the data as a finite float array or CSR matrix, float32 kept as it is."""
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1)
    if metric == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(f"a precomputed metric needs a square matrix of distances, got shape {X.shape}")
    return X


def pair_distances(X: Any, pairs: NDArray[Any], metric: Metric, block: int = 1 << 16) -> NDArray[np.float64]:
    """Return the distances of chosen pairs, a block of pairs at a time."""
    if metric == "precomputed":
        return np.asarray(X[pairs[:, 0], pairs[:, 1]], dtype=np.float64).ravel()
    if metric == "euclidean":
        parts = []
        for begin in range(0, len(pairs), block):
            rows = pairs[begin : begin + block]
            difference = X[rows[:, 0]] - X[rows[:, 1]]
            squares = difference.multiply(difference) if scipy.sparse.issparse(X) else difference**2
            parts.append(np.sqrt(np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()))
        return np.concatenate(parts) if parts else np.empty(0)
    # One row of distances per first item: any metric, few calls.
    distances = np.empty(len(pairs))
    starts = np.flatnonzero(np.r_[True, pairs[1:, 0] != pairs[:-1, 0]]).tolist() if len(pairs) else []
    for begin, end in zip(starts, [*starts[1:], len(pairs)], strict=True):
        row = slice(pairs[begin, 0], pairs[begin, 0] + 1)
        distances[begin:end] = pairwise_distances(X[row], X[pairs[begin:end, 1]], metric=metric)[0]
    return distances


def columns_of(X: Any, columns: NDArray[Any], metric: Metric) -> NDArray[np.float64]:
    """Return the distances of all items to chosen ones, shape [N, C]."""
    if metric == "precomputed":
        block = X[:, columns]
        block = check_distances(block.toarray() if scipy.sparse.issparse(block) else block, metric)
    else:
        block = distances_between(X, X[columns], metric)
    return np.asarray(block, dtype=np.float64)


def radii_of(X: Any, metric: Metric, random_state: np.random.RandomState, n_columns: int = 1000) -> NDArray[np.float64]:
    """Return the radii of the best star, from all pairs of up to ``n_columns`` items; beyond that from a sample."""
    n = X.shape[0]
    columns = np.arange(n) if n <= n_columns else np.sort(random_state.choice(n, n_columns, replace=False))
    return star_radii(columns_of(X, columns, metric).sum(axis=1) * (n / columns.size))


def distances_to_hubs(X: Any, n_hubs: int, metric: Metric, random_state: np.random.RandomState) -> NDArray[np.float64]:
    """Return the distances of all items to the places hubs start from, shape [N, H]."""
    if metric == "euclidean" and not scipy.sparse.issparse(X):
        means = k_means(X, n_hubs, random_state, batch_size=4096, max_iter=20)
        return np.asarray(means.transform(X), dtype=np.float64)
    chosen = [int(random_state.randint(X.shape[0]))]
    columns = [columns_of(X, np.array(chosen), metric)[:, 0]]
    closest = columns[0].copy()
    while len(chosen) < n_hubs:
        chosen.append(int(closest.argmax()))
        columns.append(columns_of(X, np.array(chosen[-1:]), metric)[:, 0])
        closest = np.minimum(closest, columns[-1])
    return np.stack(columns, axis=1)


__all__ = ["Candidates", "bipartite", "complete", "hubs", "knn", "random"]
