"""Items with a metric: distances by blocks, never all pairs at once.

Everything that learns from distances asks a :class:`Space` for them, so that dense rows, sparse rows, a matrix of
distances and a function all look alike from there on.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_array, gen_batches

from prodige import _core
from prodige.metric.neighbors import Metric as Metric  # of everyone who holds a space
from prodige.metric.neighbors import nearest_neighbors
from prodige.ranks import ALONE, Ranks
from prodige.threads import count_threads, in_parts, one_thread, torch_threads

# Distances of one block of an all-pairs pass: 64 MiB as float32.
_BLOCK = 1 << 24

# Columns of a block that a thread takes: what it computes must not depend on how many threads there are.
_PART = 1024

# The longest distance must not be below this: of one a million times as short single precision has all digits still.
SHORTEST = 1e-31

# How far a matrix of distances may be from symmetric, relative to its largest entry: rounding, not meaning.
_TOLERANCE = 1e-5


class Space:
    """A data set and its metric.

    Parameters
    ----------
    X : array-like or sparse matrix, shape [N, D], or [N, N] if ``metric="precomputed"``
        float32 stays float32. A matrix of distances must be symmetric and 0 on the diagonal.
    metric : str or callable
        Any scikit-learn metric name, ``"precomputed"``, or a function of two rows.
    unit : float
        What distances are measured in: all that come out are divided by it. See :func:`natural_unit`.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out. Distances do not depend on it.
    parameters : dict, optional
        What the metric takes from the data, as :func:`metric_parameters` returns it; from ``X`` when left out.

    Shapes:
        - sources ``[S]``, targets ``[T]``: item ids
        - distances ``[S, T]``: float32

    Examples
    --------
    >>> from prodige.metric.space import Space
    >>> space = Space([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> space.distances([0])
    array([[0., 5., 1.]], dtype=float32)
    """

    def __init__(
        self,
        X: Any,
        metric: Metric = "euclidean",
        unit: float = 1.0,
        n_jobs: int | None = None,
        parameters: dict[str, NDArray[np.float64]] | None = None,
    ) -> None:
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1)
        if X.dtype == np.float32 and round_unit(largest(X)) != 1:
            X = X.astype(np.float64)  # squares of such numbers do not fit into single precision
        self.X = check_matrix(X) if metric == "precomputed" else X
        self.metric = metric
        self.unit = unit
        self.n_jobs = n_jobs
        self.parameters = metric_parameters(X, metric) if parameters is None else parameters
        # What is measured, and how: Euclidean distances of rows turned and stretched where that is what a metric means.
        self.points = X @ stretching(self.parameters) if self.parameters else X
        self.measure = "euclidean" if self.parameters else metric
        self._rows: torch.Tensor | None = None
        self._squares: torch.Tensor | None = None
        is_dense = isinstance(X, np.ndarray)
        if is_dense and (self.measure == "euclidean" or (self.measure == "cosine" and X.any(axis=1).all())):
            with torch_threads(1):
                self._prepare()

    def _prepare(self) -> None:
        """Make ready what products of matrices give distances from."""
        # |x - y|² = |x|² + |y|² - 2xy loses digits where rows are far from the origin, so that is moved first.
        points = self.points
        self._centre = points.mean(axis=0, dtype=np.float64)
        rows = points - self._centre if self.measure == "euclidean" else unit_rows(points)
        self._row_unit = round_unit(largest(rows))
        rows = rows if self._row_unit == 1 else rows / self._row_unit
        # In memory of torch: products have other last bits where rows do not begin at a multiple of 64 bytes.
        self._rows = torch.tensor(np.ascontiguousarray(rows, dtype=np.float32))
        self._squares = (self._rows.double() ** 2).sum(dim=1).float()
        self._mean_square = float(self._squares.mean())

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.X.shape[0])

    def take(self, items: NDArray[np.int64]) -> Space:
        """Return the space of some of the items."""
        some = self.X[np.ix_(items, items)] if self.metric == "precomputed" else self.X[items]
        return Space(some, self.metric, self.unit, self.n_jobs, self.parameters)

    def in_unit(self, unit: float) -> Space:
        """Return the same items, measured in another unit."""
        other = copy.copy(self)
        other.unit = unit
        return other

    def distances(self, sources: ArrayLike, targets: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the distances from some items to others, to all when ``targets`` is left out."""
        rows = np.asarray(sources, dtype=np.int64)
        columns = None if targets is None else np.asarray(targets, dtype=np.int64)
        if self.metric == "precomputed":
            block = self.X[rows] if columns is None else self.X[np.ix_(rows, columns)]
            return self._in_units(block)
        result: NDArray[np.float32]
        if self._rows is not None:
            result = self._fast(rows, columns)
        else:
            others = self.X if columns is None else self.X[columns]
            result = self._in_units(distances_between(self.X[rows], others, self.metric))
        # An item is at distance 0 from itself, whatever rounding says.
        if columns is None:
            result[np.arange(rows.size), rows] = 0
        else:
            result[rows[:, None] == columns[None]] = 0
        return result

    def longest(self, sources: ArrayLike) -> float:
        """Return the longest distance from some items to any, in the unit of the data, whatever its scale."""
        rows = np.asarray(sources, dtype=np.int64)
        if self.metric == "precomputed":
            return float(self.X[rows].max())
        if self._rows is not None:
            return float(self.in_unit(self._row_unit).distances(rows).max()) * self._row_unit
        return float(distances_between(self.X[rows], self.X, self.metric).max())

    def neighbors(
        self, n_neighbors: int, n_jobs: int | None = None, ranks: Ranks = ALONE
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return distances and ids of the nearest items of each but itself, shape [N, K]; ranks share the search."""
        distances, ids = nearest_neighbors(self.points, n_neighbors, self.measure, n_jobs=n_jobs, ranks=ranks)
        return self._in_units(distances), ids

    def _in_units(self, distances: NDArray[Any]) -> NDArray[np.float32]:
        """Return distances as float32, divided by the unit."""
        return in_units(distances, self.unit)

    def _fast(self, rows: NDArray[np.int64], columns: NDArray[np.int64] | None) -> NDArray[np.float32]:
        """Return distances by products of matrices, a part of the columns at a time."""
        assert self._rows is not None
        assert self._squares is not None
        points, squares, unit = self._rows, self._squares, self.unit
        n_columns = self.n_items if columns is None else columns.size
        result = torch.empty((rows.size, n_columns))
        sources, source_squares = points[rows], squares[rows][:, None]
        # Of near items little is left after so much is subtracted: those are measured again, and where only a few
        # distances are asked for all of them.
        near_square = 2e-3 * self._mean_square if result.numel() > 4096 else torch.inf

        def measure(part: slice) -> None:
            ends = part if columns is None else columns[part]
            block = torch.addmm(squares[ends][None], sources, points[ends].T, alpha=-2)
            block += source_squares
            if self.measure == "cosine":
                result[:, part] = block.clamp_(min=0).mul_(0.5 / unit)
                return
            row, column = torch.nonzero(block < near_square, as_tuple=True)
            block.clamp_(min=0).sqrt_()
            if self._row_unit != unit:
                block *= self._row_unit / unit
            far = column.numpy() + part.start
            near = self._near(rows[row.numpy()], far if columns is None else columns[far])
            block[row, column] = torch.from_numpy(near)
            result[:, part] = block

        in_parts(measure, slices(n_columns if rows.size else 0, _PART), count_threads(self.n_jobs))
        return result.numpy()

    def _near(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the distances of pairs, with all their digits."""
        near = np.empty(rows.size, dtype=np.float32)
        for part in slices(near.size, max(1, _BLOCK // self.points.shape[1])):
            difference = self.points[rows[part]].astype(np.float64) - self.points[columns[part]]
            if self._row_unit != 1:
                difference /= self._row_unit
            with np.errstate(over="ignore"):  # infinity says what there is to say
                near[part] = np.sqrt((difference**2).sum(axis=1)) * (self._row_unit / self.unit)
        return near

    def to_others(self, Y: Any) -> NDArray[np.float32]:
        """Return the distances from every row of ``Y`` to every item, shape [M, N].

        Rows are as those of ``X``; of a precomputed metric they are distances to the items already.
        """
        if self.metric == "precomputed":
            return self._in_units(Y)
        if self.metric == "euclidean" and self._rows is not None and isinstance(Y, np.ndarray) and self._is_plain(Y):
            rows = np.ascontiguousarray(Y - self._centre, dtype=np.float32)
            return self._in_units(_core.measure_rows(rows, self._rows.numpy(), count_threads(self.n_jobs)))
        if self._rows is not None and isinstance(Y, np.ndarray):
            # Pair by pair, not by matrix products: no row depends on the others, to the last bit.
            distances = cdist(Y, self.X, self.metric, **self.parameters)
            return self._in_units(np.where(np.isnan(distances), 1, distances))  # nan: no direction
        with one_thread():
            return self._in_units(distances_between(Y, self.X, self.metric))

    def _is_plain(self, Y: NDArray[Any]) -> bool:
        """Whether squares of rows fit into single precision."""
        return self._row_unit == 1 and (not Y.size or round_unit(largest(Y)) == 1)

    def blocks(self, sources: ArrayLike | None = None) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield ``(sources, distances)`` in blocks of bounded memory, over all items when ``sources`` is left out.

        Examples
        --------
        >>> from prodige.metric.space import Space
        >>> [block.shape for _, block in Space([[0.0], [1.0], [3.0]]).blocks()]
        [(3, 3)]
        """
        ids = np.arange(self.n_items) if sources is None else np.asarray(sources, dtype=np.int64)
        for part in gen_batches(len(ids), max(1, _BLOCK // self.n_items)):
            yield ids[part], self.distances(ids[part])


def in_units(distances: NDArray[Any], unit: float) -> NDArray[np.float32]:
    """Return distances as float32, divided by a unit."""
    return np.ascontiguousarray(distances if unit == 1 else distances / unit, dtype=np.float32)


def slices(n: int, size: int) -> list[slice]:
    """Return the parts of a range, each as long as ``size`` but the last."""
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def natural_unit(space: Space, n_sources: int = 16) -> float:
    """Return the unit in which distances and their squares fit into single precision: 1 nearly always.

    Examples
    --------
    >>> from prodige.metric.space import Space, natural_unit
    >>> natural_unit(Space([[0.0], [3.0], [5.0]]))
    1.0
    >>> space = Space([[0.0], [3e20], [5e20]])
    >>> Space(space.X, unit=natural_unit(space)).distances([0]).round(1)
    array([[0. , 0.5, 0.8]], dtype=float32)
    """
    return round_unit(check_scale(space, n_sources))


def check_scale(space: Space, n_sources: int = 16) -> float:
    """Return the longest distance from some items, after making sure that single precision has room for it."""
    sources = np.unique(np.linspace(0, space.n_items - 1, n_sources).astype(np.int64))
    with np.errstate(over="ignore", invalid="ignore"):
        longest = space.longest(sources)
    if not longest <= float(np.finfo(np.float32).max):
        raise ValueError(
            f"the distances of X are too large for single precision, which ends at {np.finfo(np.float32).max:.1g}; "
            "divide X by a constant"
        )
    # Squares of very small numbers are 0 even in double precision, which is no distance of X.
    vanishes = longest == 0 and space.metric != "precomputed" and 0 < largest(space.X) < SHORTEST
    if vanishes or 0 < longest < SHORTEST:
        raise ValueError(
            f"the distances of X are too small for single precision: the longest of some is {longest:.3g}, and below "
            f"{SHORTEST:.0e} there are not enough digits left; multiply X by a constant"
        )
    return longest


def round_unit(longest: float) -> float:
    """Return a power of two near the longest of some lengths; 1 where their squares are easy to handle anyway."""
    return 1.0 if longest == 0 or 1e-12 < longest < 1e12 else 2.0 ** round(math.log2(longest))


def largest(X: Any) -> float:
    """Return the largest absolute value of a dense or sparse array."""
    values = X.data if scipy.sparse.issparse(X) else X
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


def distances_between(A: Any, B: Any, metric: Metric) -> NDArray[Any]:
    """Return the distances between the rows of two arrays, with an error where they are not distances."""
    if metric == "cosine":  # it has no unit, and scikit-learn takes very short rows for zeros
        A, B = (rows if (unit := round_unit(largest(rows))) == 1 else rows / unit for rows in (A, B))
    return check_distances(np.asarray(pairwise_distances(A, B, metric=metric)), metric)


def check_distances(distances: NDArray[Any], metric: Metric) -> NDArray[Any]:
    """Return what a metric gave after making sure that these are distances."""
    if not np.isfinite(distances).all() or (distances < 0).any():
        bad = distances[~(np.isfinite(distances) & (distances >= 0))][0]
        raise ValueError(f"metric {name_of(metric)!r} gives {bad}; distances must be finite and 0 or more")
    return distances


def name_of(metric: Metric) -> str:
    """Return what to call a metric in a message."""
    return metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))


def metric_parameters(X: Any, metric: Metric) -> dict[str, NDArray[np.float64]]:
    """Return what a metric takes from the data, as scipy defines it: nothing but of two metrics.

    Examples
    --------
    >>> from prodige.metric.space import metric_parameters
    >>> metric_parameters(np.array([[0.0, 1.0], [2.0, 5.0]]), "seuclidean")
    {'V': array([2., 8.])}
    """
    if metric not in ("seuclidean", "mahalanobis"):
        return {}
    if not isinstance(X, np.ndarray) or len(X) < 2:
        raise ValueError(f"metric {metric!r} needs 2 dense rows or more, to take the variance of columns from")
    if metric == "seuclidean":
        variance = X.var(axis=0, ddof=1, dtype=np.float64)
        if not variance.all():
            column = int(np.flatnonzero(variance == 0)[0])
            raise ValueError(f"metric 'seuclidean' divides by the variance of columns; column {column} is constant")
        return {"V": variance}
    covariance = np.atleast_2d(np.cov(X.T.astype(np.float64)))
    if np.linalg.matrix_rank(covariance, hermitian=True) < len(covariance):
        raise ValueError(
            f"metric 'mahalanobis' inverts the covariance of the columns; of {len(X)} rows with {len(covariance)} "
            "columns it has no inverse: drop columns that depend on others, or use 'seuclidean'"
        )
    return {"VI": np.asarray(np.linalg.inv(covariance), dtype=np.float64)}


def stretching(parameters: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the matrix that rows are multiplied by to make their Euclidean distances those of the metric."""
    if "V" in parameters:
        return np.diag(parameters["V"] ** -0.5)
    return np.asarray(np.linalg.cholesky(parameters["VI"]), dtype=np.float64)


def check_metric(space: Space, n_items: int = 24) -> None:
    """Refuse a function of two rows that is no metric on some of them: not symmetric, or not 0 from a row to itself."""
    if not callable(space.metric):
        return
    items = np.unique(np.linspace(0, space.n_items - 1, n_items).astype(np.int64))
    rows = space.X[items]
    block = distances_between(rows, rows.copy(), space.metric)
    tolerance = _TOLERANCE * max(float(block.max()), 1e-300)
    uneven = np.abs(block - block.T) > tolerance
    if uneven.any():
        row, column = np.argwhere(uneven)[0]
        raise ValueError(
            f"metric {name_of(space.metric)!r} must be symmetric, got {block[row, column]} from item {items[row]} to "
            f"item {items[column]} and {block[column, row]} back; use the mean of both ways if that is meant"
        )
    if (np.diagonal(block) > tolerance).any():
        row = int(np.diagonal(block).argmax())
        raise ValueError(
            f"metric {name_of(space.metric)!r} must be 0 from an item to itself, got {block[row, row]} at item "
            f"{items[row]}"
        )


def check_matrix(X: Any) -> Any:
    """Return a matrix of distances after making sure it is one."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"metric='precomputed' needs a square matrix of distances, got shape {X.shape}")
    if scipy.sparse.issparse(X):
        raise ValueError(
            "metric='precomputed' needs a dense matrix, got a sparse one: missing entries would be distances of 0; "
            "use X.toarray() if they are meant to be"
        )
    for part in gen_batches(X.shape[0], max(1, _BLOCK // max(X.shape[0], 1))):
        block, mirror = X[part], X[:, part].T
        if (block < 0).any():
            row, column = np.argwhere(block < 0)[0]
            raise ValueError(
                f"Negative values in data: distances must be 0 or more, got {block[row, column]} at "
                f"[{part.start + row}, {column}]; if these are similarities, turn them into distances first"
            )
        scale = max(float(block.max(initial=0)), float(mirror.max(initial=0)), 1e-30)
        uneven = np.abs(block - mirror) > _TOLERANCE * scale
        if uneven.any():
            row, column = np.argwhere(uneven)[0]
            raise ValueError(
                f"distances must be symmetric, got {block[row, column]} at [{part.start + row}, {column}] and "
                f"{mirror[row, column]} at [{column}, {part.start + row}]; use (X + X.T) / 2 if the mean is meant"
            )
        diagonal = np.abs(np.diagonal(block, part.start)) > _TOLERANCE * scale
        if diagonal.any():
            row = part.start + int(diagonal.argmax())
            raise ValueError(f"the distance of an item to itself must be 0, got {X[row, row]} at [{row}, {row}]")
    return X


def unit_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Return rows of length 1; rows of zeros stay."""
    largest = np.abs(X).max(axis=1, keepdims=True)
    if ((largest > 0) & ~((largest > 1e-12) & (largest < 1e12))).any():  # squares may not fit into the type of X
        X = X / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.maximum(length, np.finfo(np.float32).tiny))
