"""What must stay so that nothing falls apart."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from prodige.graph.spanning import keep_connected, spanning_forest
from strategies import Edges, graphs


@given(edges=graphs(), seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["real", "ties", "infinite"]))
@settings(max_examples=60)
def test_spanning_forest(edges: Edges, seed: int, kind: str) -> None:
    """As important as the one of networkx, and it joins all that the graph joins."""
    rng = np.random.default_rng(seed)
    importance = rng.normal(size=edges.i.size) if kind == "real" else rng.integers(0, 3, edges.i.size).astype(float)
    if kind == "infinite":
        importance[importance == 2] = np.inf
    chosen = spanning_forest(edges.i, edges.j, importance, edges.n_vertices)
    assert chosen.dtype == bool
    assert chosen.shape == edges.i.shape
    full = networkx.Graph()
    finite = np.where(np.isfinite(importance), importance, 1e6)
    full.add_weighted_edges_from(zip(edges.i.tolist(), edges.j.tolist(), finite.tolist(), strict=True))
    best = networkx.maximum_spanning_tree(full)
    assert chosen.sum() == best.number_of_edges()
    assert finite[chosen].sum() == pytest.approx(best.size(weight="weight"))
    kept = Edges(edges.n_vertices, edges.n_items, edges.i[chosen], edges.j[chosen], np.ones(int(chosen.sum())))
    ones = Edges(edges.n_vertices, edges.n_items, edges.i, edges.j, np.ones(edges.i.size))
    assert connected_components(kept.matrix())[0] == connected_components(ones.matrix())[0]


@given(edges=graphs(), seed=st.integers(0, 2**32 - 1), n_edges=st.integers(0, 40))
@settings(max_examples=60)
def test_keeping_edges_disconnects_nothing(edges: Edges, seed: int, n_edges: int) -> None:
    """The first edges in an order, but for those that something must give way to."""
    order = np.random.default_rng(seed).permutation(edges.i.size)
    mask = keep_connected(edges.i, edges.j, order, edges.n_vertices, n_edges)
    full, kept = networkx.empty_graph(edges.n_vertices), networkx.empty_graph(edges.n_vertices)
    tree = networkx.utils.UnionFind(range(edges.n_vertices))
    room = n_edges - edges.n_vertices
    full.add_edges_from(zip(edges.i.tolist(), edges.j.tolist(), strict=True))
    kept.add_edges_from(zip(edges.i[mask].tolist(), edges.j[mask].tolist(), strict=True))
    assert set(map(frozenset, networkx.connected_components(kept))) == set(
        map(frozenset, networkx.connected_components(full))
    )
    room += networkx.number_connected_components(full)
    for edge in order.tolist():  # Kruskal's algorithm, and what is left over fills the room
        i, j = int(edges.i[edge]), int(edges.j[edge])
        joins = tree[i] != tree[j]
        tree.union(i, j)
        assert mask[edge] == (joins or room > 0)
        room -= not joins
