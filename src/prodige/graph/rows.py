"""Rows of small numbers in few bytes: codes and lengths of a product, an item a row.

Numbers that are not all equally frequent take less room than their bits, and numbers of an item say something of each
other: images of a one have codes that images of an eight have not. So an arithmetic coder learns what is frequent as it
goes (``_core.write_rows``), for each kind of item by itself. Kinds are found by how short they make the rows, and as
many are taken as pay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prodige import _core

# Kinds that are tried, ascending, with so many rows each at least; and how many rows they are learned from and tried
# on.
_N_KINDS = (1, 4, 16, 64, 128, 256, 512)
_ROWS_OF_A_KIND = 40
_N_LEARNED = 16384

MOST_KINDS = 1024  # that a file may have

# Numbers that a byte may stand for: rows that would be shorter are not read, as they could fill any memory.
MOST_PER_BYTE = 64
_ROOM = 1024


def pack_rows(rows: NDArray[np.uint16], sizes: NDArray[np.int32]) -> tuple[int, bytes] | None:
    """Return the number of kinds and the bytes of some rows; None where they would be too short to be read.

    Parameters
    ----------
    rows : ndarray of uint16, shape [N, M]
    sizes : ndarray of int32, shape [M]
        Numbers of a column are below its size.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.rows import pack_rows, unpack_rows
    >>> rows = np.random.default_rng(0).binomial(15, 0.5, (1000, 2)).astype(np.uint16)
    >>> sizes = np.array([16, 16], np.int32)
    >>> n_kinds, data = pack_rows(rows, sizes)
    >>> len(data) < 1000 * 0.8  # 4 bits each would be 1000 bytes
    True
    >>> np.array_equal(unpack_rows(data, 1000, sizes, n_kinds), rows)
    True
    """
    n_kinds = choose_kinds(rows, sizes)
    kinds = _core.find_kinds(rows, sizes, n_kinds, _N_LEARNED)
    data = _core.write_rows(rows, sizes, kinds, n_kinds)
    return (n_kinds, data) if can_hold(len(data), *rows.shape) else None


def choose_kinds(rows: NDArray[np.uint16], sizes: NDArray[np.int32]) -> int:
    """Return how many kinds make rows shortest, as some of them say."""
    some = np.ascontiguousarray(rows[:: max(1, -(-len(rows) // _N_LEARNED))])
    best, least = 1, np.inf
    for n_kinds in _N_KINDS:
        if n_kinds > max(1, len(some) // _ROWS_OF_A_KIND):
            break
        kinds = _core.find_kinds(some, sizes, n_kinds, _N_LEARNED)
        size = len(_core.write_rows(some, sizes, kinds, n_kinds))
        if size < least:
            best, least = n_kinds, size
    return best


def unpack_rows(data: bytes, n_rows: int, sizes: NDArray[np.int32], n_kinds: int) -> NDArray[np.uint16]:
    """Return what :func:`pack_rows` packed; ValueError where the data are not so many rows."""
    if not can_hold(len(data), n_rows, len(sizes)):
        raise ValueError(f"{len(data)} bytes cannot hold {n_rows} rows of {len(sizes)} numbers")
    return _core.read_rows(data, n_rows, sizes, n_kinds)


def can_hold(n_bytes: int, n_rows: int, n_columns: int) -> bool:
    """Whether so many numbers are believed to be in so many bytes."""
    return n_rows * n_columns <= MOST_PER_BYTE * n_bytes + _ROOM
