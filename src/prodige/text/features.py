"""Features: which text has which of many features, and sums over them in both directions.

A text has a feature or has it not, so all there is to store are numbers of features. What a model makes of a text is a
sum over its features, and the gradient of a feature's weight a sum over its texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.threads import threads_for


@dataclass(frozen=True, eq=False)
class Features:
    """Texts by features.

    Attributes
    ----------
    offsets : ndarray of int64, shape [N + 1]
        Text i has the features ``columns[offsets[i]:offsets[i + 1]]``, each of them once.
    columns : ndarray of int32
    n_columns : int

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.features import Features
    >>> features = Features(np.array([0, 2, 3]), np.array([0, 2, 2], dtype=np.int32), 3)
    >>> features.n_texts, features.frequencies
    (2, array([1, 0, 2]))
    >>> features.sums(np.array([[1.0], [10.0], [100.0]])).ravel()
    array([101., 100.])
    """

    offsets: NDArray[np.int64]
    columns: NDArray[np.int32]
    n_columns: int

    @property
    def n_texts(self) -> int:
        """Number of texts."""
        return self.offsets.size - 1

    @cached_property
    def by_column(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The texts of each feature, as offsets and numbers of texts."""
        return _core.transpose(self.offsets, self.columns, self.n_columns)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many features each text has."""
        return np.diff(self.offsets)

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """How many texts have each feature."""
        return np.bincount(self.columns, minlength=self.n_columns)

    def sums(self, table: NDArray[np.float64], n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return for each text the sum of the table's rows of its features, shape [N, K]."""
        threads = threads_for(n_jobs, self.columns.size * table.shape[1])
        return _core.sum_rows(self.offsets, self.columns, np.ascontiguousarray(table), threads)

    def column_sums(self, table: NDArray[np.float64], n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return for each feature the sum of the table's rows of its texts, shape [n_columns, K]."""
        threads = threads_for(n_jobs, self.columns.size * table.shape[1])
        return _core.sum_rows(*self.by_column, np.ascontiguousarray(table), threads)

    def take(self, texts: NDArray[np.int64]) -> Features:
        """Return some of the texts."""
        starts = self.offsets[texts]
        lengths = self.offsets[texts + 1] - starts
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Features(offsets, self.columns[places], self.n_columns)

    def keep(self, columns: NDArray[np.int64]) -> Features:
        """Return the texts with some of the features, numbered in the order given."""
        numbers = np.full(self.n_columns, -1, dtype=np.int32)
        numbers[columns] = np.arange(columns.size, dtype=np.int32)
        found = numbers[self.columns]
        is_kept = found >= 0
        ends = np.concatenate([[0], np.cumsum(is_kept)])
        return Features(ends[self.offsets], found[is_kept], columns.size)
