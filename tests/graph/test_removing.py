"""Removing items: distances between the others stay as they are, in graphs and in products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prodige import Graph, ProductGraph
from strategies import Edges, graphs, products


def some_of(data: st.DataObject, n: int) -> list[int]:
    return data.draw(st.lists(st.integers(0, n - 1), max_size=n).filter(lambda items: len(set(items)) < n))


@given(graphs(), st.data())
def test_distances_of_a_graph_stay(edges: Edges, data: st.DataObject) -> None:
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, n_vertices=edges.n_vertices, n_items=edges.n_items)
    removed = some_of(data, graph.n_items)
    kept = np.setdiff1d(np.arange(graph.n_items), removed)
    smaller = graph.remove(removed)
    assert smaller.n_items == kept.size
    assert smaller.n_vertices <= graph.n_vertices
    assert np.allclose(smaller.distances(), graph.distances(kept, kept), rtol=1e-6)
    if not removed:
        assert smaller == graph


@given(products(), st.data())
def test_distances_of_a_product_stay(product: ProductGraph, data: st.DataObject) -> None:
    removed = some_of(data, product.n_items)
    kept = np.setdiff1d(np.arange(product.n_items), removed)
    smaller = product.remove(removed)
    assert np.array_equal(smaller.distances(), product.distances(kept, kept))
    assert len(smaller._codes) <= len(product._codes)
    if not removed:
        assert smaller == product


def test_branches_go_and_bridges_stay() -> None:
    comb = Graph.from_edges([0, 1, 1, 3], [1, 2, 3, 4], 1.0)
    assert comb.remove([3, 4]).n_vertices == 3  # both go: what is left of a branch is one
    bridge = comb.remove([1, 4])
    assert (bridge.n_items, bridge.n_hubs) == (3, 1)


def test_what_cannot_be_removed() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], 1.0)
    product = ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1], [1]], [0.0, 0.5, 0.25])
    for some in (graph, product):
        with pytest.raises(ValueError, match="leave one at least"):
            some.remove([0, 1, 2])
        with pytest.raises(IndexError, match=r"items\[1\] = 3 is not a vertex"):
            some.remove([0, 3])
        with pytest.raises(TypeError, match="items must hold integers"):
            some.remove([0.5])
