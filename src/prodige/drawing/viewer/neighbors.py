"""A product of graphs as a page: items, each joined to those that are nearest.

A product has as many vertices as its factors have tuples of hubs, far more than a page can show, and most of them are
no item. What can be drawn honestly are distances between items. So the page shows another graph than the product, and
says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige.drawing.viewer.page import write
from prodige.graph.atomic import StrPath
from prodige.graph.graph import Graph

if TYPE_CHECKING:
    from prodige.graph.product import ProductGraph

N_NEIGHBORS = 5


def write_neighbors(
    path: StrPath,
    product: ProductGraph,
    labels: Sequence[Any] | NDArray[Any] | None = None,
    groups: Sequence[Any] | NDArray[Any] | None = None,
    images: NDArray[np.uint8] | None = None,
    positions: ArrayLike | None = None,
    title: str | None = None,
) -> None:
    """Write the page; see :meth:`prodige.ProductGraph.to_html`.

    Examples
    --------
    >>> import os, tempfile
    >>> from prodige import ProductGraph
    >>> from prodige.drawing import viewer
    >>> product = ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1]], [0.5, 0.5])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     viewer.write_neighbors(f"{directory}/pair.html", product, labels=["left", "right"])
    ...     os.path.getsize(f"{directory}/pair.html") < 100_000
    True
    """
    graph = neighbor_graph(product)
    kind = f"product of {product.n_factors} graphs"
    words = (
        f"A {kind} of {product.n_items:,} items. Each is joined to its {N_NEIGHBORS} nearest by edges as long as their "
        f"distances, {graph.n_edges:,} in all; paths over these edges are not those of the product."
    )
    given = f"Items of a {kind}" if title is None else title
    if isinstance(given, str):
        given += f" (joined to their {N_NEIGHBORS} nearest)"
    write(path, graph, labels, groups, images, positions, given, words)


def neighbor_graph(product: ProductGraph) -> Graph:
    """Return the graph of items and their few nearest, with edges as long as their distances.

    Examples
    --------
    >>> from prodige import ProductGraph
    >>> from prodige.drawing.viewer.neighbors import neighbor_graph
    >>> neighbor_graph(ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1]], [0.0, 0.0])).edges.weight
    array([1.], dtype=float32)
    """
    n_items = product.n_items
    if n_items == 1:
        return Graph.from_edges([], [], [], n_vertices=1)
    distances, items = product.kneighbors(k=min(N_NEIGHBORS, n_items - 1))
    found = items >= 0
    sources = np.repeat(np.arange(n_items), found.sum(axis=1))
    return Graph.from_edges(sources, items[found], distances[found], n_vertices=n_items)
