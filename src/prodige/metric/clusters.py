"""Clusters of rows by k-means, with the same bits for a seed whatever the number of threads.

Three ways to the same thing, as rows are many and time may be short: by scikit-learn, all rows or batches of them in a
round; by batches until the time is over; and by torch on several threads, which takes the place of an empty cluster
where rows fit worst.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from prodige.progress import IsOver, never
from prodige.threads import in_parts, one_thread

# Rows that a thread looks at: what is computed must not depend on how many threads there are.
_PART = 1024

# Rows that k-means++ draws from, at least, and for each cluster: its time grows with rows times clusters.
_DRAWN_FROM = 8192
_DRAWN_FOR_EACH = 16

_warnings_lock = threading.RLock()


def k_means(
    X: NDArray[Any],
    n_clusters: int,
    random_state: int | np.random.RandomState,
    sample_weight: NDArray[np.float64] | None = None,
    batch_size: int | None = None,
    max_iter: int = 30,
) -> Any:
    """Return k-means of scikit-learn, fitted: ``cluster_centers_``, ``labels_``, ``transform``.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    n_clusters : int
    random_state : int or RandomState
    sample_weight : ndarray, shape [N], optional
    batch_size : int, optional
        Rows of a round; all of them when left out.
    max_iter : int
        Passes over the rows, at most.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.clusters import k_means
    >>> k_means(np.array([[0.0], [1.0], [9.0], [10.0]]), 2, random_state=0).cluster_centers_
    array([[9.5],
           [0.5]])
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    options = {"n_init": 1, "max_iter": max_iter, "random_state": random_state}
    if batch_size is None:
        means = KMeans(n_clusters, **options)
    else:
        means = MiniBatchKMeans(n_clusters, batch_size=batch_size, **options)
    # What is warned about is set for the whole process: of two that overlap, the later would keep what the first set.
    with one_thread(), _warnings_lock, warnings.catch_warnings():
        # Of fewer distinct rows than clusters: then some clusters are alike.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return means.fit(X, sample_weight=sample_weight)


def k_means_in_time(
    X: NDArray[Any],
    n_clusters: int,
    random: np.random.RandomState,
    batch_size: int,
    is_over: IsOver,
    max_iter: int = 30,
) -> Any:
    """Return k-means of scikit-learn, fitted to a batch after the other until the time is over; without ``labels_``.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.clusters import k_means_in_time
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> k_means_in_time(X, 2, np.random.RandomState(0), batch_size=4, is_over=lambda: True).predict(X).shape
    (4,)
    """
    from sklearn.cluster import MiniBatchKMeans

    seed = random.randint(2**31)
    means = MiniBatchKMeans(n_clusters, n_init=1, compute_labels=False, random_state=seed)
    for _ in range(max_iter):
        shuffled = random.permutation(len(X))
        for part in gen_batches(len(X), batch_size):
            if part.stop - part.start >= n_clusters:
                means.partial_fit(X[shuffled[part]])
            if is_over():
                return means
    return means


def cluster_in_parts(
    rows: torch.Tensor,
    n_clusters: int,
    random: np.random.RandomState,
    n_threads: int = 1,
    is_over: IsOver = never,
    n_rounds: int = 12,
    init: Literal["random", "k-means++"] = "random",
) -> NDArray[np.int32]:
    """Return the cluster of each row, shape [N]; none is empty unless rows are alike.

    Parameters
    ----------
    rows : Tensor, shape [N, D]
    n_clusters : int
    random : RandomState
    n_threads : int
    is_over : callable
        Says whether the time is over.
    n_rounds : int
        Passes over the rows, at most; it ends when no row changes its cluster.
    init : {"random", "k-means++"}
        Where clusters begin: at random rows, or at rows far from each other, which is worth its time where columns
        are few and clusters many.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from prodige.metric.clusters import cluster_in_parts
    >>> cluster_in_parts(torch.tensor([[0.0], [1.0], [9.0], [10.0]]), 2, np.random.RandomState(0))
    array([0, 0, 1, 1], dtype=int32)
    """
    squares = (rows**2).sum(dim=1)
    if init == "random":
        centres = rows[torch.from_numpy(random.choice(len(rows), n_clusters, replace=False))]
    else:
        centres = spread_rows(rows, n_clusters, random)
    parts = list(gen_batches(len(rows), _PART))
    before = torch.empty(0, dtype=torch.int64)
    for _ in range(n_rounds):
        nearest, cluster = nearest_centres(rows, centres, parts, n_threads)
        if torch.equal(cluster, before):
            break
        before = cluster
        count = torch.bincount(cluster, minlength=n_clusters)
        sums = torch.zeros_like(centres).index_add_(0, cluster, rows)
        centres = torch.where(count[:, None] > 0, sums / count.clamp(min=1)[:, None], centres)
        empty = (count == 0).nonzero().ravel()
        if empty.numel():  # goes where rows fit worst
            centres[empty] = rows[(nearest + squares).topk(empty.numel()).indices]
        if is_over():
            break
    return cluster.numpy().astype(np.int32)


def spread_rows(rows: torch.Tensor, n_clusters: int, random: np.random.RandomState) -> torch.Tensor:
    """Return rows far from each other, as k-means++ draws them: from a sample where there are very many."""
    from sklearn.cluster import kmeans_plusplus

    n_drawn = min(len(rows), max(_DRAWN_FROM, _DRAWN_FOR_EACH * n_clusters))
    drawn = rows[torch.from_numpy(np.sort(random.permutation(len(rows))[:n_drawn]))]
    with one_thread():
        found, _ = kmeans_plusplus(drawn.numpy(), n_clusters, random_state=random)
    return torch.from_numpy(np.ascontiguousarray(found))


def nearest_centres(
    rows: torch.Tensor, centres: torch.Tensor, parts: list[slice], n_threads: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the squared distance of each row to its nearest centre, less the square of the row, and which it is."""
    squares = (centres**2).sum(dim=1)
    found = in_parts(lambda part: (squares - 2 * rows[part] @ centres.T).min(dim=1), parts, n_threads)
    nearest, cluster = (torch.cat(values) for values in zip(*found, strict=True))
    return nearest, cluster
