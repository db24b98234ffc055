"""Factors: distances against scipy and against their own graphs, and every kind of bad input."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from scipy.spatial.distance import cdist

from prodige import Graph
from prodige.graph import GeometricFactor, GraphFactor, Grid
from prodige.graph.factors import Factor, as_factor
from strategies import Edges, graphs

POSITIONS = arrays_of.arrays(
    np.float32,
    st.tuples(st.integers(1, 9), st.integers(1, 4)),
    elements=st.floats(-(2.0**20), 2.0**20, width=32),
)


@given(positions=POSITIONS)
def test_geometric_distances(positions: Any) -> None:
    factor = GeometricFactor(positions)
    distances = factor.distances()
    assert distances.dtype == np.float32
    assert (distances == distances.T).all()
    assert (np.diagonal(distances) == 0).all()
    truth = cdist(positions.astype(float), positions.astype(float))
    np.testing.assert_allclose(distances, truth, rtol=1e-6, atol=1e-37)
    assert distances.max() <= factor.reach * (1 + 1e-6)
    assert factor.n_numbers == positions.size
    np.testing.assert_array_equal(factor.positions, positions)


@given(positions=POSITIONS)
def test_the_edge_is_the_shortest_path(positions: Any) -> None:
    """So a complete graph of straight edges is what positions stand for."""
    factor = GeometricFactor(positions)
    graph = factor.graph
    assert graph.n_edges == factor.n_hubs * (factor.n_hubs - 1) // 2
    np.testing.assert_allclose(graph.distances(), factor.distances(), rtol=1e-5, atol=1e-6)


def test_paths() -> None:
    geometric = GeometricFactor([[0.0], [1.0], [5.0]])
    assert (geometric.path(2, 0), geometric.path(1, 1)) == ([2, 0], [1])
    chain = GraphFactor(Graph.from_edges([0, 1], [2, 2], [1.0, 2.0], n_vertices=4, n_items=2))
    assert (chain.path(0, 1), chain.path(1, 1), chain.n_hubs) == ([0, 2, 1], [1], 2)


@given(edges=graphs())
def test_graph_distances(edges: Edges) -> None:
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    factor = GraphFactor(graph)
    distances = factor.distances()
    assert distances.shape == (edges.n_items, edges.n_items)
    assert (distances == distances.T).all()
    np.testing.assert_allclose(distances, graph.distances(), rtol=1e-6)
    assert distances[np.isfinite(distances)].max() <= factor.reach * (1 + 1e-5)
    assert factor.n_numbers == edges.n_vertices + 2 * edges.i.size
    assert factor.graph is graph


def test_positions_on_a_grid() -> None:
    grid = Grid.round([[0.0, 1.0], [0.3, 0.7]], bits=3)
    factor = GeometricFactor(grid)
    assert factor.grid is grid
    np.testing.assert_array_equal(factor.positions, grid.values)
    assert repr(factor) == "GeometricFactor(n_hubs=2, n_dimensions=2, bits=3)"
    assert factor != GeometricFactor(grid.values)


@pytest.mark.parametrize(
    "factor",
    [
        GeometricFactor([[0.0], [1.0]]),
        GeometricFactor(Grid.round([[0.0], [1.0]], bits=3)),
        GraphFactor(Graph.from_edges([0], [1], [2.0])),
    ],
)
def test_objects(factor: Factor) -> None:
    again = pickle.loads(pickle.dumps(factor))
    assert again == factor
    assert hash(again) == hash(factor)
    assert copy.copy(factor) is copy.deepcopy(factor) is factor
    assert factor not in (GeometricFactor([[0.0], [2.0]]), GraphFactor(Graph.from_edges([0], [1], [3.0])), "factor")
    assert as_factor("factors[0]", factor) is factor


def test_positions_cannot_change() -> None:
    positions = np.array([[0.0], [1.0]], np.float32)
    factor = GeometricFactor(positions)
    positions[:] = 7
    assert factor.positions.tolist() == [[0], [1]]
    with pytest.raises(ValueError, match="read-only"):
        factor.positions[0] = 1


@pytest.mark.parametrize(
    ("given_factor", "error", "message"),
    [
        ([0.0, 1.0], ValueError, r"factors\[2\]: positions must have the shape \[hubs, coordinates\], got \(2,\)"),
        (np.zeros((0, 2)), ValueError, r"got \(0, 2\)"),
        (np.zeros((2, 0)), ValueError, r"got \(2, 0\)"),
        (np.zeros((4097, 1)), ValueError, "positions has 4097 hubs; at most 4096 are possible"),
        ([[0.0], [np.nan]], ValueError, r"positions\[1, 0\] = nan \(1 such entries\)"),
        ([[0.0], [1e39]], ValueError, r"positions\[1, 0\] = 1e\+39"),
        ([[-3e38], [3e38]], ValueError, r"positions are 6e\+38 apart, which float32 cannot hold"),
        ([["a"]], TypeError, "positions must hold real numbers, got dtype"),
        (None, TypeError, "positions must hold real numbers, got dtype object"),
        (Grid.round([0.0, 1.0], bits=2), ValueError, r"shape \[hubs, coordinates\]"),
        (Graph.from_edges([], [], [], n_vertices=4097), ValueError, "graph has 4097 items; a factor has at most 4096"),
    ],
)
def test_bad_factors(given_factor: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_factor("factors[2]", given_factor)


def test_a_graph_factor_needs_a_graph() -> None:
    with pytest.raises(TypeError, match="graph must be a Graph, got 3 of type int"):
        GraphFactor(3)  # type: ignore[arg-type]
