"""Nearest neighbours as arrays: distances and ids, exact or by an index that may miss some."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

from prodige._validation import check_integer
from prodige.ranks import ALONE, Ranks
from prodige.threads import count_threads, limit, one_thread

Metric = str | Callable[[Any, Any], float]


def nearest_neighbors(
    X: Any,
    n_neighbors: int,
    metric: Metric = "euclidean",
    method: Literal["exact", "approximate"] = "exact",
    n_jobs: int | None = None,
    ranks: Ranks = ALONE,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return distances and ids of the nearest items of each but itself, shape [N, K]; an id is -1 where none was found.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape [N, D], or [N, N] if ``metric="precomputed"``
    n_neighbors : int
        K, or fewer where there are fewer other items.
    metric : str or callable
        Any scikit-learn metric.
    method : {"exact", "approximate"}
        See :func:`prodige.metric.candidates.knn`.
    n_jobs : int, optional
        Threads; all available processors when left out.
    ranks : Ranks, optional
        Processes that share an exact search; all of them have ``X``, and get everything that is found.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.neighbors import nearest_neighbors
    >>> distances, ids = nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> ids.ravel()
    array([1, 0, 1])
    """
    n = X.shape[0]
    k = min(check_integer("n_neighbors", n_neighbors, 1, 2**31 - 1), n - 1)
    n_threads = count_threads(n_jobs)
    if method not in ("exact", "approximate"):
        raise ValueError(f"method must be 'exact' or 'approximate', got {method!r}")
    if k == 0:
        return np.empty((n, 0)), np.empty((n, 0), dtype=np.int64)
    if method == "exact":
        return exact_neighbors(X, k, metric, n_threads, ranks=ranks)
    with one_thread() if n_threads == 1 else nullcontext():
        return approximate_neighbors(X, k, metric)


@one_thread()
def exact_neighbors(
    X: Any, k: int, metric: Metric, n_threads: int, block: int = 4096, ranks: Ranks = ALONE
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return distances and ids of nearest neighbours, the same for any number of threads and ranks, shape [N, K]."""

    def of_block(rows: slice) -> tuple[NDArray[Any], NDArray[np.int64]]:
        with limit("openmp"):  # a setting of this thread alone
            distance, nearest = search.kneighbors(X[rows], k + 1)
        return without_self(distance, nearest, np.arange(rows.start, rows.stop))

    search = NearestNeighbors(metric=metric, algorithm="brute", n_jobs=1).fit(X)
    found = ranks.in_parts(of_block, list(gen_batches(X.shape[0], block)), n_threads)
    distances, ids = zip(*found, strict=True)
    return np.concatenate(distances), np.concatenate(ids)


def without_self(
    distance: NDArray[Any], nearest: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Leave each item out of its own neighbours; the last of them where so many others are as near.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.neighbors import without_self
    >>> without_self(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0, 5], [3, 4]]), np.array([0, 1]))[1]
    array([[5],
           [3]])
    """
    is_self = nearest == rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    k = nearest.shape[1] - 1
    return distance[~is_self].reshape(-1, k), nearest[~is_self].reshape(-1, k)


def approximate_neighbors(X: Any, k: int, metric: Metric) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return distances and ids of nearest neighbours by a hierarchical navigable small world."""
    if metric not in ("euclidean", "cosine") or scipy.sparse.issparse(X):
        raise ValueError(
            f"the approximate index knows dense rows and the metrics 'euclidean' and 'cosine', got {metric!r} and "
            f"{type(X).__name__}; use method='exact'"
        )
    try:
        import faiss
    except ImportError as error:
        raise ImportError("approximate neighbours need faiss; pip install 'prodige[ann]'") from error

    rows = np.ascontiguousarray(X, dtype=np.float32)
    if metric == "cosine":
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    index = faiss.IndexHNSWFlat(rows.shape[1], 32)
    index.hnsw.efSearch = max(64, 2 * k)
    index.add(rows)
    squared, nearest = index.search(rows, k + 1)
    squared, nearest = without_self(squared, nearest, np.arange(len(rows)))
    return (squared / 2 if metric == "cosine" else np.sqrt(np.maximum(squared, 0))), nearest
