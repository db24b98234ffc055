"""The streamed pass: items that no fit has seen get codes and lengths, a block at a time.

Given the tables of a product, codes of items are independent of each other: each follows from the item's own distances
to some anchors. So tables are learned from a sample, and all other items go by once, in any order and in blocks of any
size. It is what :meth:`~prodige.DistanceCompressor.insert` does, and each item comes out the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from prodige.compression.assignment import ProductOutOfSample
from prodige.graph.product import ProductGraph
from prodige.metric.sources import Block, Source, stack
from prodige.progress import Bar

# Distances to anchors that are held at a time: 16 MiB as float32.
_BLOCK = 1 << 22

Assigned = tuple[int, NDArray[np.uint16], NDArray[np.float32]]


def assign_blocks(
    source: Source, placing: ProductOutOfSample, begin: int = 0, end: int | None = None
) -> Iterator[Assigned]:
    """Yield ``(number of the first item, codes, lengths)`` of the items of a source, in their order.

    Parameters
    ----------
    source : Source
    placing : ProductOutOfSample
        A product, its anchors, and what distances to them are measured by. Lengths are on its grid.
    begin, end : int
        Which items; all when left out.

    Shapes:
        - codes: uint16 ``[B, factors]``
        - lengths: float32 ``[B]``
    """
    n_rows = max(1, _BLOCK // placing.from_anchors.anchors.size)
    blocks = source.blocks(begin, end)
    for first, rows in blocks if placing.near is None else aligned(blocks, n_rows):
        for part in gen_batches(rows.shape[0], n_rows):
            codes, lengths = placing.assign(rows[part], placing.grid)
            yield first + part.start, codes, lengths


def aligned(blocks: Iterator[Block], size: int) -> Iterator[Block]:
    """Yield the same rows in blocks that end at multiples of a size: how they were cut before is forgotten.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.streaming import aligned
    >>> [(begin, len(rows)) for begin, rows in aligned(iter([(2, np.zeros((3, 1))), (5, np.zeros((5, 1)))]), 4)]
    [(2, 2), (4, 4), (8, 2)]
    """
    held: list[Any] = []
    start = place = 0
    for first, rows in blocks:
        start = first if not held else start
        place, done = first, 0
        while done < rows.shape[0]:
            taken = min(rows.shape[0] - done, size - place % size)
            held.append(rows[done : done + taken])
            done, place = done + taken, place + taken
            if place % size == 0:
                yield start, stack(held)
                held, start = [], place
    if held:
        yield start, stack(held)


def insert_blocks(source: Source, placing: ProductOutOfSample, verbose: int = 0) -> ProductGraph:
    """Return a product with the items of a source after its own.

    Parameters
    ----------
    source : Source
    placing : ProductOutOfSample
    verbose : int
        Above 0 shows a progress bar.
    """
    codes, lengths = [], []
    with Bar(total=source.n_items, disable=verbose <= 0, unit=" items", unit_scale=True) as bar:
        for _, some_codes, some_lengths in assign_blocks(source, placing):
            codes.append(some_codes)
            lengths.append(some_lengths)
            bar.update(len(some_codes))
    return placing.graph.with_items(np.concatenate(codes), placing.on_grid(np.concatenate(lengths)))
