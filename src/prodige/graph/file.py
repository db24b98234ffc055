"""Files of graphs and of products of graphs; :mod:`prodige.graph.container` has the layout.

What a file says of either, its content and its arrays, may also be a part of another file, as that of a compressor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from prodige.graph import container, encoding, product_encoding
from prodige.graph.atomic import StrPath
from prodige.graph.graph import Graph
from prodige.graph.product import ProductGraph


def write(
    path: StrPath, graph: Graph | ProductGraph, metadata: Mapping[str, Any] | None = None, bits: int | None = None
) -> None:
    """Write a graph to a file; see :meth:`prodige.graph.graph.Graph.save`."""
    container.write(path, kind_of(graph), *encode(graph, bits), metadata)


def read(path: StrPath) -> Graph:
    """Read a graph from a file that holds nothing else."""
    return container.open_as(path, "graph", graph_of)


def read_product(path: StrPath) -> ProductGraph:
    """Read a product of graphs from a file that holds nothing else."""
    return container.open_as(path, "product", product_of)


def graph_of(contents: container.Contents, n_jobs: int | None = None) -> Graph:
    """Return the graph that a file holds; it keeps no number of threads."""
    graph = encoding.decode(contents.content, contents.arrays)
    check_names(contents)
    return graph


def product_of(contents: container.Contents, n_jobs: int | None = None) -> ProductGraph:
    """Return the product of graphs that a file holds; it keeps no number of threads."""
    product = product_encoding.decode(contents.content, contents.arrays)
    check_names(contents)
    return product


def check_names(contents: container.Contents) -> None:
    """Refuse arrays that what a file holds has no use for."""
    unknown = set(contents.arrays) - set(array_names(contents.content))
    if unknown:
        raise ValueError(f"{container.KINDS[contents.kind][0]} has no array {sorted(unknown)[0]!r}")


def size(graph: Graph | ProductGraph, bits: int | None = None, coded: bool = True) -> int:
    """Return the bytes of the file that a graph would make, without metadata.

    With ``coded`` False, those that it would take at most, whatever its codes are.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.graph import file
    >>> graph = Graph.from_edges(range(1000), range(1, 1001), [1 / (i + 1) for i in range(1000)])
    >>> file.size(graph), file.size(graph, bits=8)
    (5917, 2965)
    """
    return container.size(kind_of(graph), *encode(graph, bits, coded))


def kind_of(graph: Graph | ProductGraph) -> str:
    """Return the kind of the file that a graph is kept in."""
    return "product" if isinstance(graph, ProductGraph) else "graph"


def encode(
    graph: Graph | ProductGraph, bits: int | None = None, coded: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a graph or a product as content and arrays.

    Parameters
    ----------
    graph : Graph or ProductGraph
    bits : int, optional
        Of a graph's weights.
    coded : bool
        Whether codes of a product may be coded as rows.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.graph import file
    >>> file.encode(Graph.from_edges([0], [1], [2.0]))[0]["weight_bits"]
    1
    """
    if isinstance(graph, ProductGraph):
        if bits is not None:
            raise ValueError(f"bits = {bits}: a product of graphs has the bits of its grids, and no others")
        return product_encoding.encode(graph, coded)
    return encoding.encode(graph, bits)


def decode(content: Any, arrays: Mapping[str, NDArray[Any]]) -> Graph | ProductGraph:
    """Return what :func:`encode` took apart; among the arrays there may be others. ValueError if it is neither."""
    if product_encoding.is_product(content):
        return product_encoding.decode(content, arrays)
    return encoding.decode(content, arrays)


def array_names(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the arrays of a graph or of a product.

    Examples
    --------
    >>> from prodige.graph import file
    >>> file.array_names({"n_vertices": 2, "n_items": 2, "n_edges": 1})
    ('i', 'j', 'weight')
    """
    if product_encoding.is_product(content):
        return product_encoding.array_names(content)
    return encoding.array_names(content)
