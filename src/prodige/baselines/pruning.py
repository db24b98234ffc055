"""Tables of items by items in a given size: the largest weights are kept, in few bits each.

An item's row is a sorted list of other items and a level for each. A list of k of n items takes k⌈log₂ n⌉ bits, or, as
gaps in the manner of Elias and Fano, k(2 + ⌈log₂(n / k)⌉), whichever is less; a row also says how long it is. Levels
are shared by all weights (:mod:`prodige.baselines.rounding`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.baselines.rounding import rounded, stored_bits


def pruned(weights: csr_array, budget: float, weight_bits: int, by_row: bool = False) -> csr_array:
    """Return the largest weights that fit into so many bits, rounded.

    Parameters
    ----------
    weights : csr_array, shape [I, I]
        Weights of 0 are not there.
    budget : float
        Bits of the whole table.
    weight_bits : int
        1 to 8, of each weight.
    by_row : bool
        Keep as many of each row, and not the largest of all.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from prodige.baselines.pruning import pruned
    >>> table = csr_array([[0, 3.0, 1.0], [2.0, 0, 1.0], [1.0, 1.0, 0]])
    >>> pruned(table, budget=200, weight_bits=8, by_row=True).nnz, pruned(table, budget=10, weight_bits=8).nnz
    (6, 0)
    """
    order = ranks(weights, by_row)
    low, high = 0, int(weights.nnz)
    while low < high:  # but for a few bits of rounding, more entries take more
        middle = (low + high + 1) // 2
        if table_bits(taken(weights, order, middle), weight_bits) <= budget:
            low = middle
        else:
            high = middle - 1
    kept = taken(weights, order, low)
    if kept.nnz:
        kept.data = rounded(kept.data.astype(np.float64), weight_bits).astype(np.float32)
    return kept


def ranks(weights: csr_array, by_row: bool) -> NDArray[np.int64]:
    """Return the place of each entry in the order of being kept: by size, or by its place in its row, then by size."""
    size = -np.abs(weights.data)
    order = np.argsort(size, kind="stable")
    if by_row:
        row = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
        sorted_rows = np.lexsort((size, row))
        place = np.empty(size.size, np.int64)
        place[sorted_rows] = np.arange(size.size) - np.repeat(weights.indptr[:-1], np.diff(weights.indptr))
        order = np.lexsort((size, place))
    result = np.empty(size.size, np.int64)
    result[order] = np.arange(size.size)
    return result


def taken(weights: csr_array, order: NDArray[np.int64], n: int) -> csr_array:
    """Return the first ``n`` entries in some order."""
    chosen = order < n
    ends = np.concatenate([[0], np.cumsum(chosen)])[weights.indptr]
    return csr_array((weights.data[chosen], weights.indices[chosen], ends), shape=weights.shape)


def table_bits(table: csr_array, weight_bits: int) -> float:
    """Return the size of a table: lists of items, their lengths, weights and levels.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from prodige.baselines.pruning import table_bits
    >>> table_bits(csr_array([[0, 1.0], [1.0, 0]]), weight_bits=8)  # a bit for an item, another for a length
    84.0
    """
    if not table.nnz:
        return 0.0
    n_rows, n_columns = table.shape
    lengths = np.diff(table.indptr)
    plain = lengths * np.ceil(np.log2(n_columns))
    gaps = lengths * (2 + np.ceil(np.log2(n_columns / np.maximum(lengths, 1))))
    heads = n_rows * np.ceil(np.log2(lengths.max() + 1))
    return float(np.minimum(plain, gaps).sum() + heads + table.nnz * stored_bits(weight_bits, table.nnz))
