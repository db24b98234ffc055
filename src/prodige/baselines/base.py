"""What all baselines share: fitted to a data set, they give the distances between its items, by blocks.

A baseline is transductive, as the graph is: it knows the items it was fitted to by their numbers, and no others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from prodige._validation import check_ids
from prodige.metric.evaluation import mean_squared_error
from prodige.metric.space import Metric, Space, check_metric, check_scale
from prodige.refitting import refitting
from prodige.threads import count_threads, one_thread

if TYPE_CHECKING:
    from typing import Self

# Distances in one block of an all-pairs pass: 64 MiB as float32.
_BLOCK = 1 << 24

Items = NDArray[np.int64]


class Baseline(BaseEstimator, ABC):  # type: ignore[misc]
    """The interface of all baselines; a new one implements ``_fit``, ``_distances`` and ``numbers_per_item``.

    Parameters
    ----------
    metric : str or callable
        Any scikit-learn metric name, ``"precomputed"``, or a function of two rows.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Attributes
    ----------
    n_items_ : int
        Items of the data set it was fitted to.
    n_features_in_ : int
        Columns of that data set.

    Shapes:
        - sources ``[S]``, targets ``[T]``: item ids
        - distances ``[S, T]``: float32

    Examples
    --------
    >>> from prodige.baselines import Star
    >>> star = Star().fit([[0.0], [1.0], [3.0]])
    >>> star.distances([0])
    array([[0., 1., 3.]], dtype=float32)
    >>> [block.shape for _, block in star.pairwise_distances()]
    [(3, 3)]
    """

    def __init__(self, metric: Metric = "euclidean", *, n_jobs: int | None = None) -> None:
        self.metric = metric
        self.n_jobs = n_jobs

    @property
    @abstractmethod
    def numbers_per_item(self) -> float:
        """Numbers kept for each item, as the paper counts vectors: their coordinates and nothing else."""

    @property
    def shared_numbers(self) -> int:
        """Numbers kept once for the whole data set, which ``numbers_per_item`` leaves out."""
        return 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the numbers that give the distances of ``X`` best.

        Parameters
        ----------
        X : array-like or sparse matrix, shape [N, D], or [N, N] if ``metric="precomputed"``
        y : ignored
        """
        with refitting(self) as fresh, one_thread():
            count_threads(self.n_jobs)
            space = Space(X, self.metric, n_jobs=self.n_jobs)
            if space.n_items < 2:
                raise ValueError(f"X must have 2 items or more, got {space.n_items}: there are no distances to keep")
            check_metric(space)
            check_scale(space)
            fresh._fit(space)
            fresh.n_items_ = space.n_items
            fresh.n_features_in_ = int(space.X.shape[1])
        return self

    def distances(self, sources: ArrayLike, targets: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the distances from some items to others, to all when ``targets`` is left out."""
        check_is_fitted(self)
        rows = check_ids("sources", sources, self.n_items_, "item")
        columns = np.arange(self.n_items_) if targets is None else check_ids("targets", targets, self.n_items_, "item")
        result = np.asarray(self._distances(rows, columns), dtype=np.float32)
        result[rows[:, None] == columns[None]] = 0
        return result

    def pairwise_distances(self) -> Iterator[tuple[Items, NDArray[np.float32]]]:
        """Yield ``(sources, distances to all items)`` in blocks of bounded memory, over all items."""
        check_is_fitted(self)
        for part in gen_batches(self.n_items_, max(1, _BLOCK // self.n_items_)):
            sources = np.arange(part.start, part.stop)
            yield sources, self.distances(sources)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the negative mean squared error of the distances of all pairs of different items.

        Parameters
        ----------
        X : array-like or sparse matrix
            The items it was fitted to, in the same order.
        y : ignored
        """
        check_is_fitted(self)
        return -mean_squared_error(self, Space(X, self.metric, n_jobs=self.n_jobs))

    @abstractmethod
    def _fit(self, space: Space) -> None:
        """Check the parameters and learn; there are 2 items or more."""

    @abstractmethod
    def _distances(self, rows: Items, columns: Items) -> NDArray[Any]:
        """Return a new array of distances of valid items; what it says of an item and itself is overwritten."""


class Vectors(Baseline):
    """A baseline that keeps a vector for each item.

    Attributes
    ----------
    embedding_ : ndarray of float32, shape [N, n_components]
    """

    n_components: int

    @property
    def numbers_per_item(self) -> float:
        """The coordinates."""
        return float(self.n_components)


def flat_space(points: NDArray[Any], n_jobs: int | None = None) -> Space:
    """Return the space of points, all in one place where they have no coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.base import flat_space
    >>> flat_space(np.empty((2, 0))).distances([0])
    array([[0., 0.]], dtype=float32)
    """
    return Space(points if points.shape[1] else np.zeros((len(points), 1), np.float32), n_jobs=n_jobs)
