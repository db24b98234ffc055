"""Items with a metric: distances by blocks, never all pairs at once.

Everything that learns from distances asks a :class:`Space` for them, so that dense rows, sparse rows, a matrix of
distances and a function all look alike from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_array, gen_batches

from prodige.candidates import Candidates, knn

Metric = str | Callable[[Any, Any], float]

# Distances of one block of an all-pairs pass: 64 MiB as float32.
_BLOCK = 1 << 24

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

    Shapes:
        - sources ``[S]``, targets ``[T]``: item ids
        - distances ``[S, T]``: float32

    Examples
    --------
    >>> from prodige.space import Space
    >>> space = Space([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> space.distances([0])
    array([[0., 5., 1.]], dtype=float32)
    """

    def __init__(self, X: Any, metric: Metric = "euclidean", unit: float = 1.0) -> None:
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1)
        if X.dtype == np.float32 and round_unit(largest(X)) != 1:
            X = X.astype(np.float64)  # squares of such numbers do not fit into single precision
        self.X = check_matrix(X) if metric == "precomputed" else X
        self.metric = metric
        self.unit = unit
        self._rows: torch.Tensor | None = None
        self._squares: torch.Tensor | None = None
        dense = isinstance(X, np.ndarray)
        if dense and (metric == "euclidean" or (metric == "cosine" and X.any(axis=1).all())):
            # |x - y|² = |x|² + |y|² - 2xy loses digits where rows are far from the origin, so that is moved first.
            rows = X - X.mean(axis=0, dtype=np.float64) if metric == "euclidean" else unit_rows(X)
            self._row_unit = round_unit(largest(rows))
            rows = rows if self._row_unit == 1 else rows / self._row_unit
            self._rows = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32))
            self._squares = (self._rows.double() ** 2).sum(dim=1).float()
            self._mean_square = float(self._squares.mean())

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.X.shape[0])

    def take(self, items: NDArray[np.int64]) -> Space:
        """Return the space of some of the items."""
        if self.metric == "precomputed":
            return Space(self.X[np.ix_(items, items)], self.metric, self.unit)
        return Space(self.X[items], self.metric, self.unit)

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

    def neighbors(self, n_neighbors: int, n_jobs: int | None = None) -> Candidates:
        """Return edges from every item to its nearest ones, as long as these are far."""
        near = knn(self.X, n_neighbors, self.metric, n_jobs=n_jobs)
        return near if self.unit == 1 else replace(near, weight=self._in_units(near.weight))

    def _in_units(self, distances: NDArray[Any]) -> NDArray[np.float32]:
        """Return distances as float32, divided by the unit."""
        return np.ascontiguousarray(distances if self.unit == 1 else distances / self.unit, dtype=np.float32)

    def _fast(self, rows: NDArray[np.int64], columns: NDArray[np.int64] | None) -> NDArray[np.float32]:
        assert self._rows is not None
        assert self._squares is not None
        sources = self._rows[rows]
        targets = self._rows if columns is None else self._rows[columns]
        squares = self._squares if columns is None else self._squares[columns]
        result = torch.addmm(squares[None], sources, targets.T, alpha=-2)
        result += self._squares[rows][:, None]
        if self.metric == "cosine":
            return result.clamp_(min=0).mul_(0.5 / self.unit).numpy()
        # Of near items little is left after so much is subtracted: those are measured again, and where only a few
        # distances are asked for all of them.
        near_square = 2e-3 * self._mean_square if result.numel() > 4096 else torch.inf
        row, column = torch.nonzero(result < near_square, as_tuple=True)
        near = np.empty(row.numel(), dtype=np.float32)
        for part in gen_batches(near.size, max(1, _BLOCK // self.X.shape[1])) if near.size else ():
            ends = columns[column[part]] if columns is not None else column[part].numpy()
            difference = self.X[rows[row[part]]].astype(np.float64) - self.X[ends]
            with np.errstate(over="ignore"):  # infinity says what there is to say
                near[part] = np.sqrt((difference**2).sum(axis=1)) / self.unit
        result.clamp_(min=0).sqrt_()
        if self._row_unit != self.unit:
            result *= self._row_unit / self.unit
        result[row, column] = torch.from_numpy(near)
        return result.numpy()

    def to_others(self, Y: Any) -> NDArray[np.float32]:
        """Return the distances from every row of ``Y`` to every item, shape [M, N].

        Rows are as those of ``X``; of a precomputed metric they are distances to the items already.
        """
        if self.metric == "precomputed":
            return self._in_units(Y)
        if self._rows is not None and isinstance(Y, np.ndarray):
            # Pair by pair, not by matrix products: no row depends on the others, to the last bit.
            distances = cdist(Y, self.X, self.metric)
            return self._in_units(np.where(np.isnan(distances), 1, distances))  # nan: no direction
        return self._in_units(distances_between(Y, self.X, self.metric))

    def blocks(self, sources: ArrayLike | None = None) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield ``(sources, distances)`` in blocks of bounded memory, over all items when ``sources`` is left out.

        Examples
        --------
        >>> from prodige.space import Space
        >>> [block.shape for _, block in Space([[0.0], [1.0], [3.0]]).blocks()]
        [(3, 3)]
        """
        ids = np.arange(self.n_items) if sources is None else np.asarray(sources, dtype=np.int64)
        for part in gen_batches(len(ids), max(1, _BLOCK // self.n_items)):
            yield ids[part], self.distances(ids[part])


def natural_unit(space: Space, n_sources: int = 16) -> float:
    """Return the unit in which distances and their squares fit into single precision: 1 nearly always.

    Examples
    --------
    >>> from prodige.space import Space, natural_unit
    >>> natural_unit(Space([[0.0], [3.0], [5.0]]))
    1.0
    >>> space = Space([[0.0], [3e20], [5e20]])
    >>> Space(space.X, unit=natural_unit(space)).distances([0]).round(1)
    array([[0. , 0.5, 0.8]], dtype=float32)
    """
    sources = np.unique(np.linspace(0, space.n_items - 1, n_sources).astype(np.int64))
    longest = float(space.distances(sources).max(initial=0)) * space.unit
    if not np.isfinite(longest):
        raise ValueError(
            f"the distances of X are too large for single precision, which ends at {np.finfo(np.float32).max:.1g}; "
            "divide X by a constant"
        )
    return round_unit(longest)


def round_unit(longest: float) -> float:
    """Return a power of two near the longest of some lengths; 1 where their squares are easy to handle anyway."""
    return 1.0 if longest == 0 or 1e-12 < longest < 1e12 else 2.0 ** round(math.log2(longest))


def largest(X: Any) -> float:
    """Return the largest absolute value of a dense or sparse array."""
    values = X.data if scipy.sparse.issparse(X) else X
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


def distances_between(A: Any, B: Any, metric: Metric) -> NDArray[np.float32]:
    """Return the distances between the rows of two arrays as float32, with an error where they are not distances."""
    if metric == "cosine":  # it has no unit, and scikit-learn takes very short rows for zeros
        A, B = (rows if (unit := round_unit(largest(rows))) == 1 else rows / unit for rows in (A, B))
    result = np.asarray(pairwise_distances(A, B, metric=metric), dtype=np.float32)
    if not np.isfinite(result).all() or (result < 0).any():
        bad = result[~(np.isfinite(result) & (result >= 0))][0]
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))
        raise ValueError(f"metric {name!r} gives {bad}; distances must be finite and 0 or more")
    return result


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
