"""A graph as the content and the arrays of a file, and back; the layout is in :mod:`prodige.graph.container`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige._validation import find_isolated
from prodige.graph.edges import Edges
from prodige.graph.graph import Graph
from prodige.graph.header import check_counts
from prodige.graph.packing import Packing

COLUMNS = {"i": "int32", "j": "int32", "weight": "float32"}
COUNTS = ("n_vertices", "n_items", "n_edges")


def encode(graph: Graph, bits: int | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a graph as content and arrays, with weights of so many bits, or of as few as keep them if it is None.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.graph import encoding
    >>> encoding.encode(Graph.from_edges([0], [1], [2.0]))[0]["weight_bits"]
    1
    """
    if problem := find_isolated(graph.n_vertices, graph.n_edges):
        raise ValueError(f"graph cannot be saved: {problem}; leave out vertices without edges")
    counts = {name: getattr(graph, name) for name in COUNTS}
    packing = Packing.of(graph.edges, graph.n_vertices, graph.n_items, bits)
    if bits is None and sum(packing.lengths().values()) > sum(column.nbytes for column in graph.edges):
        return counts, graph.edges._asdict()  # of so many vertices next to none has an edge
    arrays = zip(packing.lengths(), packing.pack(graph.edges), strict=True)
    return counts | packing.fields(), {name: np.frombuffer(data, np.uint8) for name, data in arrays}


def decode(content: Any, arrays: Mapping[str, NDArray[Any]]) -> Graph:
    """Return the graph of content and arrays, among which there may be others; ValueError if they are no graph's."""
    if not isinstance(content, dict) or not set(COUNTS) <= set(content):
        raise ValueError(f"a graph needs {', '.join(COUNTS)}")
    n_vertices, n_items, n_edges = check_counts(content)
    fields = {key: value for key, value in content.items() if key not in COUNTS}
    columns = [arrays[name] for name in array_names(content)]
    if fields:
        packing = Packing.from_fields(fields, n_vertices, n_items, n_edges)
        for (name, length), column in zip(packing.lengths().items(), columns, strict=True):
            check_array(name, column, "uint8", length)
        i, j, weight = packing.unpack(columns)
    else:
        for (name, dtype), column in zip(COLUMNS.items(), columns, strict=True):
            check_array(name, column, dtype, n_edges)
        i, j, weight = columns
    if problem := find_bad_edge(i, j, weight, n_vertices):
        raise ValueError(problem)
    return Graph._make(Edges(i, j, weight), n_vertices, n_items)


def array_names(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the arrays of a graph.

    Examples
    --------
    >>> from prodige.graph import encoding
    >>> encoding.array_names({"n_vertices": 2, "n_items": 2, "n_edges": 1, "weight_bits": 8})
    ('degree', 'j', 'weight')
    """
    if set(content) == set(COUNTS):
        return tuple(COLUMNS)
    return ("degree", "j", "weight", "local") if "n_local" in content else ("degree", "j", "weight")


def check_array(name: str, array: NDArray[Any], dtype: str, n: int) -> None:
    """Refuse an array of another type or size than a graph's."""
    if array.dtype != np.dtype(dtype) or array.shape != (n,):
        raise ValueError(f"{name} should have {n} numbers of {dtype}, not shape {array.shape} of {array.dtype}")


def find_bad_edge(
    i: NDArray[np.int32], j: NDArray[np.int32], weight: NDArray[np.float32], n_vertices: int
) -> str | None:
    """Say what is wrong with the first bad edge, if there is one."""
    later = (i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1]))
    in_order = np.concatenate([[True], later])[: i.size]
    checks = {
        f"does not join two vertices i < j of 0 to {n_vertices - 1}": (i >= 0) & (i < j) & (j < n_vertices),
        "is repeated or out of order": in_order,
        # -0 counts as negative: graphs that are equal would have hashes that are not.
        "has a weight that is negative or not finite": np.isfinite(weight) & ~np.signbit(weight),
    }
    for problem, good in checks.items():
        if not good.all():
            e = int(np.argmin(good))
            return f"edge {e}, i = {i[e]}, j = {j[e]}, weight = {weight[e]}, {problem}"
    return None
