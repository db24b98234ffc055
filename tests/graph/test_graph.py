"""Graph: answers against networkx and scipy, its behaviour as an object, and every kind of bad input."""

from __future__ import annotations

import copy
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, dijkstra

from prodige import Graph
from strategies import Edges, graphs, hub_graph, point_graph


def make(edges: Edges) -> Graph:
    return Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)


@given(edges=graphs())
def test_answers_match_networkx(edges: Edges) -> None:
    graph = make(edges)
    peer = graph.to_networkx()
    distances = graph.distances()
    assert distances.shape == (edges.n_items, edges.n_items)
    assert distances.dtype == np.float32
    for i in range(edges.n_items):
        lengths = networkx.single_source_dijkstra_path_length(peer, i)
        for j in range(edges.n_items):
            assert graph.distance(i, j) == pytest.approx(lengths.get(j, np.inf), abs=1e-5)
            assert distances[i, j] == pytest.approx(lengths.get(j, np.inf), abs=1e-5)
            path = graph.path(i, j)
            if j not in lengths:
                assert path == []
                continue
            assert path[0] == i
            assert path[-1] == j
            assert networkx.path_weight(peer, path, "weight") == pytest.approx(lengths[j], abs=1e-5)


@given(edges=graphs(), data=st.data())
def test_neighbors_match_distances(edges: Edges, data: st.DataObject) -> None:
    graph = make(edges)
    if edges.n_items < 2:
        return
    k = data.draw(st.integers(1, edges.n_items - 1))
    distances, indices = graph.kneighbors(k=k)
    everything = graph.distances()
    for i in range(edges.n_items):
        order = sorted((everything[i, j], j) for j in range(edges.n_items) if j != i and np.isfinite(everything[i, j]))
        found = [(d, v) for d, v in zip(distances[i], indices[i], strict=True) if v >= 0]
        assert found == order[:k]
        assert np.isinf(distances[i, len(found) :]).all()
        radius = float(order[len(order) // 2][0]) if order else 1.0
        near, items = graph.within([i], radius)
        assert list(zip(near[0], items[0], strict=True)) == [pair for pair in order if pair[0] <= radius]


@pytest.mark.parametrize("edges", [hub_graph(), point_graph(400)], ids=["hubs", "points"])
def test_both_engines_serve_graphs(edges: Edges) -> None:
    graph = make(edges)
    assert graph._engine.name == ("hubs" if edges.n_items < edges.n_vertices else "general")
    expected = dijkstra(edges.matrix(), directed=False)
    np.testing.assert_allclose(graph.distances(), expected[: edges.n_items, : edges.n_items], atol=1e-5)
    sources, targets = [5, 3, 3], [7, 7, edges.n_vertices - 1, 3]
    np.testing.assert_allclose(graph.distances(sources, targets), expected[np.ix_(sources, targets)], atol=1e-5)
    assert graph.distances(n_jobs=1).tobytes() == graph.distances(n_jobs=2).tobytes()
    distances, indices = graph.kneighbors([3], k=9)
    np.testing.assert_allclose(distances[0], np.sort(expected[3, : edges.n_items])[1:10], atol=1e-5)
    np.testing.assert_allclose(expected[3, indices[0]], distances[0], atol=1e-5)


@given(edges=graphs())
def test_structure_matches_scipy(edges: Edges) -> None:
    graph = make(edges)
    n_components, labels = connected_components(edges.matrix(), directed=False)
    ours = graph.components()
    assert ours.max() + 1 == n_components
    assert len(set(zip(ours.tolist(), labels.tolist(), strict=True))) == n_components
    assert graph.is_connected == (len(set(labels[: edges.n_items])) == 1)
    np.testing.assert_array_equal(graph.degrees(), np.bincount(np.r_[edges.i, edges.j], minlength=edges.n_vertices))
    assert graph.n_edges == edges.i.size
    assert graph.numbers_per_item == (edges.n_vertices + 2 * edges.i.size) / edges.n_items


@given(edges=graphs())
def test_round_trips(edges: Edges) -> None:
    graph = make(edges)
    assert Graph.from_edges(*graph.edges, graph.n_vertices, graph.n_items) == graph
    assert Graph.from_scipy(graph.to_scipy(), n_items=graph.n_items) == graph
    assert Graph.from_scipy(scipy.sparse.triu(graph.to_scipy()), n_items=graph.n_items) == graph
    assert Graph.from_networkx(graph.to_networkx()) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert copy.copy(graph) == copy.deepcopy(graph) == graph
    assert hash(pickle.loads(pickle.dumps(graph))) == hash(graph)
    i, j, weight = edges.i[::-1], edges.j[::-1], edges.weight[::-1]
    assert Graph.from_edges(j, i, weight, edges.n_vertices, edges.n_items) == graph


def test_equality_sees_every_field() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [1, 2])
    assert graph != Graph.from_edges([0, 1], [1, 2], [1, 3])
    assert graph != Graph.from_edges([0, 0], [1, 2], [1, 2])
    assert graph != Graph.from_edges([0, 1], [1, 2], [1, 2], n_vertices=4)
    assert graph != Graph.from_edges([0, 1], [1, 2], [1, 2], n_items=2)
    assert graph != "graph"
    assert len({graph, Graph.from_edges([1, 0], [2, 1], [2, 1])}) == 1


def test_graph_cannot_change() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [1, 2])
    for column in graph.edges:
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    with pytest.raises(AttributeError):
        graph.n_items = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="from_edges"):
        Graph()
    i = np.array([0, 1], np.int32)
    weight = np.array([1, 2], np.float32)
    graph = Graph.from_edges(i, i + 1, weight)
    weight[:] = 9
    assert graph.distance(0, 2) == 3


def test_parallel_edges_keep_the_smallest_weight() -> None:
    graph = Graph.from_edges([0, 1, 0], [1, 0, 1], [3.0, 1.0, 2.0])
    assert graph.n_edges == 1
    assert graph.distance(0, 1) == 1


def test_hubs_may_be_sources_and_targets() -> None:
    graph = Graph.from_edges([0, 1], [2, 2], [1, 2], n_items=2)
    assert graph.distances([2], [2, 0]).tolist() == [[0, 1]]
    assert graph.kneighbors([2], k=2)[1].tolist() == [[0, 1]]


def test_one_graph_in_many_threads() -> None:
    graph = make(hub_graph())
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(graph.distances())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({result.tobytes() for result in results}) == 1


def read_only(values: Any) -> Any:
    array = np.array(values)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        read_only,
        lambda v: np.array(v, dtype=">i8"),
        lambda v: np.array(v, dtype="<u2"),
        lambda v: np.array([v, v]).T[:, 0],
        lambda v: np.repeat(v, 2)[::2],
        lambda v: __import__("torch").tensor(v),
        lambda v: __import__("array").array("q", v),
    ],
    ids=["list", "tuple", "read-only", "big-endian", "uint16", "column", "strided", "torch", "array"],
)
def test_kinds_of_arrays(convert: Callable[[list[int]], Any]) -> None:
    graph = Graph.from_edges(convert([0, 1, 2]), convert([1, 2, 3]), convert([1, 2, 3]))
    assert graph.distances(convert([0]), convert([3, 1])).tolist() == [[6, 1]]


def test_kinds_of_weights() -> None:
    for weight in (np.array([1.5], ">f8"), np.array([1.5], np.float16), [1.5], read_only([1.5])):
        assert Graph.from_edges([0], [1], weight).distance(0, 1) == 1.5
    assert Graph.from_edges([0, 1], [1, 2], 2).distance(0, 2) == 4
    assert Graph.from_edges([0], [1], [-0.0]).distances().tolist() == [[0, 0], [0, 0]]


def test_small_and_empty() -> None:
    single = Graph.from_edges([], [], [], n_vertices=1)
    assert single.distances().tolist() == [[0]]
    assert single.is_connected
    assert single.path(0, 0) == [0]
    loose = Graph.from_edges([], [], [], n_items=3)
    assert np.isinf(loose.distances()[0, 1:]).all()
    assert not loose.is_connected
    assert loose.distances([]).shape == (0, 3)
    assert loose.distances([0], []).shape == (1, 0)
    assert loose.kneighbors([], k=2)[0].shape == (0, 2)
    assert loose.kneighbors([0], k=2)[1].tolist() == [[-1, -1]]
    assert [found.size for found in loose.within(None, np.inf)[1]] == [0, 0, 0]
    assert repr(loose) == "Graph(n_items=3, n_hubs=0, n_edges=0, numbers_per_item=1)"


NAN = float("nan")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0], [1], [NAN]), ValueError, r"weight\[0\] = nan"),
        (([0, 0], [1, 2], [1, -2.5]), ValueError, r"weight\[1\] = -2.5"),
        (([0], [1], [float("inf")]), ValueError, r"weight\[0\] = inf"),
        (([0], [1], [1e300]), ValueError, r"weight\[0\] = 1e\+300.*float32"),
        (([0], [1], ["a"]), TypeError, "weight must hold real numbers"),
        (([0], [1], [1j]), TypeError, "weight must hold real numbers"),
        (([0], [1], [True]), TypeError, "weight must hold real numbers"),
        (([-1], [1], [1]), ValueError, r"i\[0\] = -1"),
        (([0], [2**40], [1]), ValueError, r"j\[0\] = 1099511627776"),
        (([0], [np.uint64(2**64 - 1)], [1]), ValueError, r"j\[0\] = 18446744073709551615"),
        (([0], [7], [1], 3), ValueError, r"j\[0\] = 7.*0 to 2"),
        (([0.5], [1], [1]), TypeError, "i must hold integers.*float64.*0.5"),
        (([True], [1], [1]), TypeError, "i must hold integers.*bool"),
        (([[0]], [[1]], [1]), ValueError, r"i must be one-dimensional, got shape \(1, 1\)"),
        (([0, 1], [1], [1]), ValueError, "same length, got 2 and 1"),
        (([0, 1], [1, 2], [1, 2, 3]), ValueError, "got 3 for 2 edges"),
        (([0, 1], [1, 2], []), ValueError, "got 0 for 2 edges"),
        (([0, 4], [1, 4], [1, 1]), ValueError, "edge 1 joins vertex 4 to itself"),
        (([], [], []), ValueError, "needs n_vertices"),
        (([0], [1], [1], 2, 3), ValueError, "n_items must be between 1 and 2, got 3"),
        (([0], [1], [1], 2, 0), ValueError, "n_items must be between 1 and 2, got 0"),
        (([0], [1], [1], -2), ValueError, "n_vertices must be between 1"),
        (([0], [1], [1], 2**31), ValueError, "n_vertices must be between 1"),
        (([0], [1], [1], 2.0), TypeError, "n_vertices must be an integer, got 2.0"),
        (([0], [1], [1], True), TypeError, "n_vertices must be an integer, got True"),
        ((None, [1], [1]), TypeError, "i must hold integers"),
    ],
)
def test_bad_edges(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Graph.from_edges(*arguments)


@pytest.mark.parametrize(
    ("edges", "n_vertices", "problem"),
    [
        (([0], [1], [1]), 2**31 - 2, "2147483646 vertices for 1 edges would take 107.4 GB"),
        (([0], [2**31 - 2], [1]), None, "2147483647 vertices for 1 edges would take 107.4 GB"),
        (([0, 1], [1, 0], [1, 2]), 2**22 + 3, "4194307 vertices for 1 edges would take 0.2 GB"),
        (([], [], []), 2**22 + 1, "4194305 vertices for 0 edges would take 0.2 GB"),
    ],
)
def test_too_many_vertices_without_edges(edges: Any, n_vertices: int | None, problem: str) -> None:
    i, j, weight = edges
    with pytest.raises(ValueError, match=re.escape(problem) + ".* leave out vertices without edges"):
        Graph.from_edges(i, j, weight, n_vertices)


def test_too_many_edges() -> None:
    many = np.broadcast_to(np.int32(0), 2**30)  # takes no memory
    with pytest.raises(ValueError, match="1073741824 edges make more than"):
        Graph.from_edges(many, many, np.broadcast_to(np.float32(1), 2**30))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.distances([3]), IndexError, r"sources\[0\] = 3 is not a vertex: the graph has vertices 0 to 2"),
        (lambda g: g.distances([0], [1, -1]), IndexError, r"targets\[1\] = -1"),
        (lambda g: g.distances([0.0]), TypeError, "sources must hold integers"),
        (lambda g: g.distances([[0]]), ValueError, "sources must be one-dimensional"),
        (lambda g: g.distances(n_jobs=0), ValueError, "n_jobs must not be 0"),
        (lambda g: g.distances(n_jobs=1.5), TypeError, "n_jobs must be an integer"),
        (lambda g: g.distance(0, 3), IndexError, "j = 3 is not a vertex"),
        (lambda g: g.distance("a", 1), TypeError, "i must be an integer"),
        (lambda g: g.path(-1, 0), IndexError, "i = -1 is not a vertex"),
        (lambda g: g.kneighbors([0], 3), ValueError, "k must be between 1 and 2, got 3"),
        (lambda g: g.kneighbors([0], 0), ValueError, "k must be between 1 and 2, got 0"),
        (lambda g: g.within([0], -1), ValueError, "radius must be 0 or more, got -1"),
        (lambda g: g.within([0], NAN), ValueError, "radius must be 0 or more, got nan"),
        (lambda g: g.within([0], "far"), TypeError, "radius must be a number, got 'far'"),
        (lambda g: Graph.from_scipy(np.eye(2)), TypeError, "scipy.sparse.csr_array"),
        (lambda g: Graph.from_scipy(scipy.sparse.csr_array((2, 3))), ValueError, r"square, got shape \(2, 3\)"),
        (lambda g: Graph.from_scipy(scipy.sparse.eye_array(2)), ValueError, "to itself"),
        (lambda g: Graph.from_networkx(networkx.DiGraph([(0, 1)])), ValueError, "to_undirected"),
    ],
)
def test_bad_calls(call: Callable[[Graph], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(Graph.from_edges([0, 1], [1, 2], [1, 2]))
