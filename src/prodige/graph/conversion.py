"""Graphs from and to those of others: sparse matrices of SciPy and graphs of networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

    from prodige.graph.graph import Graph


class Ends(NamedTuple):
    """Edges as others have them: in any order, perhaps more than once."""

    i: NDArray[Any]
    j: NDArray[Any]
    weight: NDArray[Any]


def edges_of_scipy(matrix: Any) -> Ends:
    """Return the stored entries of a square sparse matrix."""
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise TypeError(
            f"matrix must be a scipy.sparse array or matrix, got {type(matrix).__name__}; "
            "wrap a dense one with scipy.sparse.csr_array(matrix)"
        )
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix must be square, got shape {matrix.shape}")
    entries = matrix.tocoo()
    return Ends(entries.row, entries.col, entries.data)


def to_scipy(graph: Graph) -> scipy.sparse.csr_array:
    """Return the symmetric matrix of edge weights."""
    import scipy.sparse

    i, j, weight = graph.edges
    ends = (np.concatenate([i, j]), np.concatenate([j, i]))
    shape = (graph.n_vertices, graph.n_vertices)
    return scipy.sparse.csr_array((np.concatenate([weight, weight]), ends), shape=shape)


def edges_of_networkx(graph: networkx.Graph, weight: str) -> Ends:
    """Return the edges of an undirected graph, its nodes numbered in the order it lists them."""
    if graph.is_directed():
        raise ValueError("graph is directed, distances here are symmetric; pass graph.to_undirected()")
    position = {node: p for p, node in enumerate(graph.nodes)}
    edges = list(graph.edges(data=weight, default=1.0))
    return Ends(
        np.array([position[u] for u, _, _ in edges], dtype=np.int64),
        np.array([position[v] for _, v, _ in edges], dtype=np.int64),
        np.array([length for _, _, length in edges]),
    )


def to_networkx(graph: Graph) -> networkx.Graph:
    """Return a graph with edge attribute ``weight`` and graph attribute ``n_items``."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs networkx; pip install 'prodige[networkx]'") from error

    result = networkx.Graph(n_items=graph.n_items)
    result.add_nodes_from(range(graph.n_vertices))
    result.add_weighted_edges_from(zip(*(column.tolist() for column in graph.edges), strict=True))
    return result
