"""Rows that processes share: each has some, in the order of the ranks, and together they are the data of one fit.

Before a fit begins all ranks compare what they were given. Settings must be the same, and rows must go together: as
wide as those of the others, of the same kind, and not the same rows again, which is what happens if every process reads
all of a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from prodige.graph.header import shortened
from prodige.metric.duplicates import row_keys
from prodige.metric.sources import Block, Source, stack
from prodige.ranks import Ranks

# Rows that two ranks may have in common, as a share of those of one that are unlike all others of it.
_MOST_SHARED = 0.5


class SharedSource(Source):
    """The rows of all ranks, of which this process can read its own; others come from their ranks.

    Parameters
    ----------
    own : Source
        Rows of this rank.
    ranks : Ranks

    Attributes
    ----------
    first : int
        The number of the first row of this rank among all.
    keys : ndarray of uint64, shape [N, 2]
        Of all rows: the same where rows are the same.
    """

    def __init__(self, own: Source, ranks: Ranks) -> None:
        self.own = own
        self.ranks = ranks
        kinds = []
        keys = []
        for _, rows in own.blocks():
            kinds.append(kind_of(rows))
            keys.append(row_keys(rows))
        check_alike(ranks, {"n_features": own.n_features, "dtype": " and ".join(sorted(set(kinds)))}, "X")
        found = ranks.gather(np.concatenate(keys))
        check_disjoint(found)
        self.keys = np.concatenate(found)
        self.first = sum(len(some) for some in found[: ranks.rank])
        self.n_items, self.n_features = len(self.keys), own.n_features

    def read(self) -> Iterator[Any]:
        """Yield the rows of this rank."""
        return self.own.read()

    def blocks(self, begin: int = 0, end: int | None = None) -> Iterator[Block]:
        """Yield ``(number of the first row among all, rows)`` of this rank's own rows, as far as they are asked for."""
        stop = self.first + self.own.n_items
        low, high = max(begin, self.first), stop if end is None else min(end, stop)
        if low < high:
            for number, rows in self.own.blocks(low - self.first, high - self.first):
                yield self.first + number, rows

    def take(self, items: NDArray[np.int64]) -> Any:
        """Return some rows, given by their numbers in ascending order, on all ranks; all of them have to ask."""
        begin, end = np.searchsorted(items, [self.first, self.first + self.own.n_items])
        mine = self.own.take(items[begin:end] - self.first) if end > begin else None
        return stack([rows for rows in self.ranks.gather(mine) if rows is not None])


def kind_of(rows: Any) -> str:
    """Return what numbers a block has, and how they are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.sharing import kind_of
    >>> kind_of(np.zeros((2, 2), np.float32))
    'float32'
    """
    return f"sparse {rows.dtype}" if scipy.sparse.issparse(rows) else str(rows.dtype)


def check_alike(ranks: Ranks, values: dict[str, Any], where: str) -> None:
    """Refuse what is not the same on all ranks, and name the first rank and value that differ.

    Parameters
    ----------
    ranks : Ranks
    values : dict
        By name.
    where : str
        What they are of.
    """
    everywhere = ranks.gather(values)
    for rank, there in enumerate(everywhere):
        for name, value in everywhere[0].items():
            if there[name] != value:
                raise ValueError(
                    f"ranks must agree on {where}: {name} is {shortened(value)} on rank 0 and "
                    f"{shortened(there[name])} on rank {rank}; give the same on all of them"
                )


def check_disjoint(keys: list[NDArray[np.uint64]]) -> None:
    """Refuse ranks that have the same rows; a few that are alike, as there are in most data, do not matter.

    Parameters
    ----------
    keys : list of ndarray of uint64, shape [N, 2]
        Of the rows of each rank.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.sharing import check_disjoint
    >>> keys = np.arange(8, dtype=np.uint64).reshape(4, 2)
    >>> check_disjoint([keys[:2], keys[1:]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: ranks must have rows of their own: of the 2 rows of rank 0, 1 are also on rank 1, ...
    """
    seen = [single_rows(some[:, 0]) for some in keys]
    for rank, (rows, mine) in enumerate(seen):
        for other, (_, theirs) in enumerate(seen):
            if other == rank:
                continue
            is_there = np.isin(mine, theirs, assume_unique=True)
            if is_there.any() and is_there.sum() >= _MOST_SHARED * len(keys[rank]):
                raise ValueError(
                    f"ranks must have rows of their own: of the {len(keys[rank])} rows of rank {rank}, "
                    f"{is_there.sum()} are also on rank {other}, among them its row {rows[is_there].min()}; give each "
                    "rank its part of the data"
                )


def single_rows(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the rows that are unlike all others of a rank, and their keys; copies do not say where rows are from."""
    values, rows, counts = np.unique(keys, return_index=True, return_counts=True)
    return rows[counts == 1], values[counts == 1]


def digest_of(keys: NDArray[np.uint64]) -> str:
    """Return a digest of rows in their order, whoever has which of them.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.sharing import digest_of
    >>> digest_of(np.zeros((2, 2), np.uint64))
    '66687aadf862bd776c8fc18b8e9f8e20'
    """
    import hashlib

    return hashlib.sha256(np.ascontiguousarray(keys).astype("<u8").tobytes()).hexdigest()[:32]
