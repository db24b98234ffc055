"""Layout: finite places for any graph, near in the picture what is near in the graph, parts apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist, squareform

from prodige import Graph
from prodige.drawing.layout import GAP, LEAST_APART, Method, parted, place, side_by_side, spread
from strategies import Edges, graphs, hub_graph

METHODS: tuple[Method, ...] = ("auto", "tsne", "mds")


def as_graph(edges: Edges) -> Graph:
    return Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)


def ring(n: int) -> Graph:
    return Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n, np.ones(n))


def closeness(graph: Graph, places: NDArray[np.float32]) -> float:
    """How long edges are drawn, as a part of what random pairs are apart."""
    i, j, _ = graph.edges
    return float(np.linalg.norm(places[i] - places[j], axis=1).mean() / pdist(places).mean())


@given(edges=graphs(), method=st.sampled_from(METHODS))
@settings(max_examples=25, deadline=None)
def test_places_are_finite_and_apart(edges: Edges, method: Method) -> None:
    graph = as_graph(edges)
    places = place(graph, method, n_jobs=1)
    assert places.shape == (graph.n_vertices, 2)
    assert places.dtype == np.float32
    assert np.isfinite(places).all()
    if graph.n_vertices > 1:
        assert pdist(places).min() > 1e-3  # ties and edges of length 0 among them
    np.testing.assert_allclose(places.min(axis=0), -places.max(axis=0), atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_one_vertex(method: Method) -> None:
    np.testing.assert_array_equal(place(Graph.from_edges([], [], [], n_vertices=1), method), [[0, 0]])


def test_scaling_keeps_distances_of_a_plane() -> None:
    points = np.random.default_rng(0).uniform(size=(40, 2))
    target = squareform(pdist(points))
    i, j = np.triu_indices(40, 1)
    drawn = squareform(pdist(place(Graph.from_edges(i, j, target[i, j]), "mds")))
    np.testing.assert_allclose(drawn / drawn.max(), target / target.max(), atol=1e-3)


@pytest.mark.parametrize("method", ["tsne", "mds"])
def test_neighbours_are_near(method: Method) -> None:
    graph = ring(120)
    assert closeness(graph, place(graph, method)) < 0.2
    shuffled = np.random.default_rng(0).permutation(place(graph, method))
    assert closeness(graph, shuffled) > 0.7


def test_crowds_come_apart() -> None:
    """Items on their own hub with short edges, hubs joined by long ones."""
    n, n_hubs = 240, 4
    rng = np.random.default_rng(0)
    crowd = np.arange(n) % n_hubs
    i = np.concatenate([np.arange(n), n + np.repeat(np.arange(n_hubs), n_hubs)])
    j = np.concatenate([n + crowd, n + np.tile(np.arange(n_hubs), n_hubs)])
    weight = np.concatenate([rng.uniform(0.2, 0.4, n), np.full(n_hubs**2, 3.0)])
    places = place(Graph.from_edges(i[i != j], j[i != j], weight[i != j], n_items=n))
    near = np.argsort(cdist(places[:n], places[:n]), axis=1)[:, 1:11]
    assert (crowd[near] == crowd[:, None]).mean() > 0.98
    nearest_item = cdist(places[n:], places[:n]).argmin(axis=1)
    np.testing.assert_array_equal(crowd[nearest_item], np.arange(n_hubs))  # hubs are among their own


def test_parts_are_side_by_side() -> None:
    """A ring, a pair, and vertices alone: boxes do not overlap, larger parts take more room."""
    large, small = ring(60), ring(20)
    i, j, weight = (np.concatenate([a, b]) for a, b in zip(large.edges, small.edges, strict=True))
    i[60:] += 60
    j[60:] += 60
    graph = Graph.from_edges(np.r_[i, 80], np.r_[j, 81], np.r_[weight, 1], n_vertices=85, n_items=84)
    places = place(graph)
    components = graph.components()
    boxes = [(part.min(axis=0), part.max(axis=0)) for part in (places[components == c] for c in range(6))]
    for a, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:a]:
            assert ((low >= other_high + GAP - 1e-3) | (high <= other_low - GAP + 1e-3)).any()
    assert np.prod(boxes[0][1] - boxes[0][0]) > 2 * np.prod(boxes[1][1] - boxes[1][0])


def test_same_bits_for_any_number_of_threads() -> None:
    graph = as_graph(hub_graph(300, 6))
    places = place(graph, n_jobs=1)
    np.testing.assert_array_equal(places, place(graph, n_jobs=2))
    assert not np.array_equal(places, place(graph, random_state=1))


def test_long_edges_are_no_obstacle() -> None:
    """Lengths whose sum float32 does not hold."""
    assert np.isfinite(place(Graph.from_edges([0, 1, 2], [1, 2, 3], [3e38, 3e38, 1e-38]), "mds")).all()


def test_star_of_equal_edges_is_spread() -> None:
    n = 500  # more than landmarks: all others have the same distances to those
    places = place(Graph.from_edges(np.zeros(n - 1, int), np.arange(1, n), np.ones(n - 1)), "mds")
    nearest = np.sort(squareform(pdist(places)), axis=1)[:, 1]
    assert np.median(nearest) > 0.1


def test_parted_moves_only_what_coincides() -> None:
    places = np.array([[0.0, 0.0], [5.0, 5.0], [0.0, 0.0], [0.0, 0.0]])
    moved = parted(places)
    np.testing.assert_array_equal(moved[:2], places[:2])
    assert pdist(moved).min() > 0.1
    assert np.linalg.norm(moved[2:], axis=1).max() < 1


def test_spread_pushes_crowds_apart() -> None:
    """A crowd within a tenth of what it needs, and a vertex far off, which stays where it is."""
    rng = np.random.default_rng(0)
    crowd = rng.normal(scale=0.2, size=(100, 2))
    moved = spread(np.vstack([crowd, [[50.0, 50.0]]]))
    np.testing.assert_array_equal(moved[-1], [50, 50])
    nearest = np.sort(squareform(pdist(moved)), axis=1)[:, 1]
    assert np.quantile(nearest, 0.1) > 0.5 * LEAST_APART
    assert np.abs(moved[:-1]).max() < 10
    outwards = np.linalg.norm(crowd, axis=1)
    assert np.corrcoef(outwards, np.linalg.norm(moved[:-1], axis=1))[0, 1] > 0.4  # who was outside mostly still is


def test_rows_of_drawings_are_about_square() -> None:
    places = side_by_side([np.zeros((1, 2))] * 400)
    width, height = np.ptp(places, axis=0)
    assert 0.5 < width / height < 2
    assert pdist(places).min() == pytest.approx(GAP)


def test_method_is_checked() -> None:
    with pytest.raises(ValueError, match=r'method must be "auto", "tsne" or "mds", got \'umap\''):
        place(ring(4), "umap")  # type: ignore[arg-type]
