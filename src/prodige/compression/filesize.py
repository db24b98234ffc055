"""How large the file of a product will be, and what to do where that is too much.

Files are written by an arithmetic coder (:mod:`prodige.graph.rows`), so what an item takes depends on how frequent its
codes are. It is found by writing.
"""

from __future__ import annotations

import numpy as np

from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph

# By how much lengths are rounded more coarsely where a file is too large.
_COARSER = 1.25


def expect_bits(product: ProductGraph, n_items: int | None = None) -> float:
    """Return the bits an item of the file of a product, or of one of more items: what all share weighs less there.

    Examples
    --------
    >>> from prodige import ProductGraph
    >>> from prodige.compression.filesize import expect_bits
    >>> product = ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1]] * 200, [0.5] * 400)
    >>> expect_bits(product) == product.bits_per_item, expect_bits(product, 10**6) < product.bits_per_item
    (True, True)
    """
    n = product.n_items
    if n_items is None or n_items <= n:
        return product.bits_per_item
    half = product.remove(np.arange(0, n, 2))
    total, of_half = product.bits_per_item * n, half.bits_per_item * half.n_items
    of_each = (total - of_half) / (n - half.n_items)
    return of_each + (total - n * of_each) / n_items


def shorten(product: ProductGraph, bits: float, n_items: int | None = None) -> ProductGraph:
    """Return a product with coarser lengths where its file has more bits an item than it may.

    That is as far as they go: with next to no lengths left it may still be too large.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige import ProductGraph
    >>> from prodige.compression.filesize import shorten
    >>> from prodige.graph.grid import Grid
    >>> lengths = Grid.round(np.random.default_rng(0).random(1000), 8)
    >>> product = ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1]] * 500, lengths)
    >>> product.bits_per_item > 8, shorten(product, 8).bits_per_item <= 8
    (True, True)
    """
    given, times = product.length_grid, _COARSER
    while given is not None and times < 2 * 2**given.bits and expect_bits(product, n_items) > bits:
        lengths = Grid(np.rint(given.levels / times).astype(np.uint16), given.bits, given.least, given.step * times)
        product = product.with_vertices(product.codes, lengths)
        times *= _COARSER
    return product
