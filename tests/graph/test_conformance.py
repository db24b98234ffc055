"""One suite for every kind of graph: they answer the same questions, under the same rules."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import prodige
from prodige import Graph, ProductGraph
from prodige.graph import reference
from prodige.graph.container import describe
from prodige.graph.queryable import Queryable
from strategies import Edges, graphs, hub_graph, make_edges, make_product, point_graph, products


def make_graph(edges: Edges) -> Graph:
    return Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)


def product(
    kinds: str, power: float, gauge: float, n_twins: int = 0, ties: bool = False, pendant: bool = False
) -> ProductGraph:
    return make_product(np.random.default_rng(len(kinds)), 60, kinds, power, gauge, n_twins, ties, pendant)


MODELS: dict[str, Callable[[], Graph | ProductGraph]] = {
    "hubs": lambda: make_graph(hub_graph(60, 4, 8)),
    "points": lambda: make_graph(point_graph(60, 4, 2)),
    "parts": lambda: make_graph(make_edges(np.random.default_rng(3), 60, 0, 0.02, "ties")),
    "product of positions": lambda: product("pppp", 2, 2),
    "product of grids": lambda: product("ggg", 1, 1.5),
    "product of graphs": lambda: product("cc", 1, 1),
    "product in parts": lambda: product("pd", 1.3, 1.7),
    "product of all kinds": lambda: product("pgcd", 1, 2),
    "product with ties": lambda: product("pcg", 2, 2, ties=True),
    "product with twins": lambda: product("pgc", 2, 2, n_twins=15),
    "product with twins and ties": lambda: product("pdpd", 1, 1, n_twins=15, ties=True),
    "product of two sides": lambda: product("bbb", 1, 1),
    "product of two sides with twins": lambda: product("bb", 1, 1, n_twins=15, ties=True),
    "product with a factor of two sides": lambda: product("pbg", 1, 2),
    "product with pendant lengths": lambda: product("ppg", 2, 2, pendant=True),
    "product with pendant lengths, in parts": lambda: product("gd", 1, 1.5, pendant=True),
    "product with pendant lengths, twins and ties": lambda: product("pcg", 2, 2, n_twins=15, ties=True, pendant=True),
    "no metric": lambda: product("pp", 2, 1),
}


@pytest.fixture(params=list(MODELS))
def model(request: pytest.FixtureRequest) -> Graph | ProductGraph:
    return MODELS[request.param]()


def hub_distances(graph: Graph) -> list[list[float]]:
    """Distances between all items of a graph, in plain Python."""
    columns = [column.tolist() for column in graph.edges]
    items = range(graph.n_items)
    trees = [reference.search(columns[0], columns[1], columns[2], source) for source in items]
    return [[tree.distance.get(target, np.inf) for target in items] for tree in trees]


def expected(model: Graph | ProductGraph) -> NDArray[np.float64]:
    """Distances between all items, in plain Python."""
    if isinstance(model, Graph):
        return np.array(hub_distances(model))
    tables = [hub_distances(factor.graph) for factor in model.factors]
    codes, lengths = model.codes.tolist(), model.lengths.tolist()
    places = range(model.n_items) if model._places is None else model._places.tolist()
    return np.array(
        [
            [
                0.0
                if places[i] == places[j]
                else reference.product_distance(tables, codes, lengths, model.power, model.gauge, model.pendant, i, j)
                for j in range(model.n_items)
            ]
            for i in range(model.n_items)
        ]
    )


def same(found: NDArray[Any], truth: NDArray[Any]) -> None:
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-6)


def nearest(row: NDArray[np.float32], source: int) -> list[tuple[float, int]]:
    """Other items that can be reached, by distance, then id."""
    return sorted((d, v) for v, d in enumerate(row.tolist()) if v != source and np.isfinite(d))


def check_answers(model: Graph | ProductGraph) -> None:
    """All questions about items, against plain Python and against each other."""
    n = model.n_items
    distances = model.distances()
    assert distances.shape == (n, n)
    assert distances.dtype == np.float32
    same(distances, expected(model))
    assert (np.diagonal(distances) == 0).all()
    if isinstance(model, ProductGraph):
        assert (distances == distances.T).all()
    k = min(4, n - 1)
    for source in range(n):
        order = nearest(distances[source], source)
        if k:
            near, items = model.kneighbors([source], k)
            n_found = len(order[:k])
            assert list(zip(near[0, :n_found].tolist(), items[0, :n_found].tolist(), strict=True)) == order[:k]
            assert np.isinf(near[0, n_found:]).all()
            assert (items[0, n_found:] == -1).all()
        radius = order[len(order) // 2][0] if order else 1.0
        near_rows, item_rows = model.within([source], radius)
        found = list(zip(near_rows[0].tolist(), item_rows[0].tolist(), strict=True))
        assert found == [pair for pair in order if pair[0] <= radius]


@given(edges=graphs())
def test_graphs_answer_as_the_reference(edges: Edges) -> None:
    check_answers(make_graph(edges))


@given(product=products())
def test_products_answer_as_the_reference(product: ProductGraph) -> None:
    check_answers(product)


def test_answers(model: Graph | ProductGraph) -> None:
    check_answers(model)


@given(model=graphs().map(make_graph) | products(), data=st.data())
def test_triangles(model: Graph | ProductGraph, data: st.DataObject) -> None:
    if isinstance(model, ProductGraph) and not model.is_metric:
        return
    ids = st.integers(0, model.n_items - 1)
    i, j, k = data.draw(ids), data.draw(ids), data.draw(ids)
    assert model.distance(i, k) <= (model.distance(i, j) + model.distance(j, k)) * (1 + 1e-5) + 1e-6


def test_a_power_above_the_gauge_breaks_triangles() -> None:
    line = ProductGraph.from_factors([[[0.0], [1.0], [2.0]]], [[0], [1], [2]], [0.0] * 3, power=2, gauge=1)
    assert not line.is_metric
    assert line.distance(0, 2) > line.distance(0, 1) + line.distance(1, 2)


def test_answers_do_not_depend_on_what_else_is_asked(model: Graph | ProductGraph) -> None:
    rng = np.random.default_rng(0)
    distances = model.distances()
    for sources in ([5], [7, 3], rng.integers(0, model.n_items, 20).tolist()):
        np.testing.assert_array_equal(model.distances(sources), distances[sources])
        for targets in ([2], [9, 9, 4], rng.integers(0, model.n_items, 50).tolist()):
            np.testing.assert_array_equal(model.distances(sources, targets), distances[np.ix_(sources, targets)])
    i, j = rng.integers(0, model.n_items, (2, 300))
    pairs = model.pair_distances(i, j)
    assert pairs.dtype == np.float32
    np.testing.assert_array_equal(pairs, distances[i, j])
    assert [model.distance(a, b) for a, b in zip(i[:20], j[:20], strict=True)] == pairs[:20].tolist()
    near, items = model.kneighbors(k=6)
    for source in range(model.n_items):
        one = model.kneighbors([source], k=6)
        np.testing.assert_array_equal(one[0][0], near[source])
        np.testing.assert_array_equal(one[1][0], items[source])


def test_bits_do_not_depend_on_threads(model: Graph | ProductGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prodige.threads._WORK_PER_THREAD", 1)
    i = np.arange(model.n_items)
    calls: list[Callable[[int], Any]] = [
        lambda n_jobs: model.distances(n_jobs=n_jobs).tobytes(),
        lambda n_jobs: model.pair_distances(i, i[::-1], n_jobs=n_jobs).tobytes(),
        lambda n_jobs: [part.tobytes() for part in model.kneighbors(k=7, n_jobs=n_jobs)],
        lambda n_jobs: [part.tobytes() for row in model.within(None, 1.0, n_jobs=n_jobs) for part in row],
    ]
    for call in calls:
        assert call(1) == call(2) == call(5)


def test_paths_are_as_long_as_distances(model: Graph | ProductGraph) -> None:
    for i, j in np.random.default_rng(1).integers(0, model.n_items, (20, 2)).tolist():
        if isinstance(model, Graph):
            assert length(model, model.path(i, j)) == pytest.approx(model.distance(i, j), rel=1e-5)
            continue
        paths = model.path(i, j)
        ends = [[path[0], path[-1]] for path in paths if path]
        codes = [pair for pair, path in zip(model.codes[[i, j]].T.tolist(), paths, strict=True) if path]
        assert ends == codes
        steps = (length(factor.graph, path) for factor, path in zip(model.factors, paths, strict=True))
        total, both = sum(step**model.power for step in steps), model.lengths[i] + model.lengths[j]
        whole = both + total ** (1 / model.gauge) if model.pendant else (both + total) ** (1 / model.gauge)
        if model.distance(i, j) > 0 or whole == 0:
            assert whole == pytest.approx(model.distance(i, j), rel=1e-5)


def length(graph: Graph, path: list[int]) -> float:
    """Return the sum of the edges of a path; infinite where there is none."""
    edges = dict(zip(zip(graph.edges.i.tolist(), graph.edges.j.tolist(), strict=True), graph.edges.weight, strict=True))
    steps = itertools.pairwise(path)
    return float(sum(edges[min(a, b), max(a, b)] for a, b in steps)) if path else np.inf


def test_what_was_saved_comes_back(model: Graph | ProductGraph, tmp_path: Path) -> None:
    path = tmp_path / "some.prodige"
    model.save(path)
    assert model.bits_per_item == 8 * path.stat().st_size / model.n_items
    model.save(path, {"made by": "Ada"})
    assert describe(path).metadata == {"made by": "Ada"}
    loaded: Any
    for loaded in (type(model).load(path), prodige.load(path)):
        assert loaded == model
        assert hash(loaded) == hash(model)
        assert isinstance(loaded, type(model))
        assert loaded.distances().tobytes() == model.distances().tobytes()
        assert loaded.numbers_per_item == model.numbers_per_item
    first = path.read_bytes()
    type(model).load(path).save(path, {"made by": "Ada"})
    assert path.read_bytes() == first


def test_other_kinds_are_refused(model: Graph | ProductGraph, tmp_path: Path) -> None:
    model.save(tmp_path / "some.prodige")
    other, name = (ProductGraph, "Graph") if isinstance(model, Graph) else (Graph, "ProductGraph")
    with pytest.raises(prodige.graph.FileFormatError, match=f"open it with prodige.load or {name}.load"):
        other.load(tmp_path / "some.prodige")


def test_objects(model: Graph | ProductGraph) -> None:
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert hash(again) == hash(model)
    assert again.distances().tobytes() == model.distances().tobytes()
    assert copy.copy(model) is copy.deepcopy(model) is model
    assert len({model, again}) == 1
    assert model != "graph"
    assert f"n_items={model.n_items}" in repr(model)
    assert f"numbers_per_item={model.numbers_per_item:.4g}" in repr(model)
    with pytest.raises(AttributeError):
        model.n_items = 3  # type: ignore[misc, unused-ignore]
    with pytest.raises(AttributeError):
        model.more = 3  # type: ignore[union-attr]
    with pytest.raises(TypeError, match=r"use .*from_"):
        type(model)()


def test_one_object_in_many_threads(model: Graph | ProductGraph) -> None:
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda: results.append(model.distances().tobytes())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert len(set(results)) == 1


def test_small_questions(model: Graph | ProductGraph) -> None:
    assert model.distances([]).shape == (0, model.n_items)
    assert model.distances([0], []).shape == (1, 0)
    assert model.pair_distances([], []).shape == (0,)
    assert model.pair_distances(3, 3).tolist() == [0]
    assert [part.shape for part in model.kneighbors([], k=2)] == [(0, 2), (0, 2)]
    assert model.within([], 1.0)[0].shape == (0,)
    assert model.kneighbors([0], k=model.n_items - 1)[0].shape == (1, model.n_items - 1)
    reachable = np.isfinite(model.distances([0])).sum() - 1
    assert model.within([0], np.inf)[1][0].size == reachable


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.distances([400]), IndexError, r"sources\[0\] = 400 is not a vertex: the graph has vertices 0 to"),
        (lambda g: g.distances([0], [1, -1]), IndexError, r"targets\[1\] = -1"),
        (lambda g: g.distances([0.0]), TypeError, "sources must hold integers"),
        (lambda g: g.distances([[0]]), ValueError, "sources must be one-dimensional"),
        (lambda g: g.distances(n_jobs=0), ValueError, "n_jobs must not be 0"),
        (lambda g: g.distance(0, 400), IndexError, "j = 400 is not a vertex: the graph has vertices 0 to"),
        (lambda g: g.distance(True, 1), TypeError, "i must be an integer"),
        (lambda g: g.path(-1, 0), IndexError, "i = -1 is not a vertex"),
        (lambda g: g.pair_distances([0, 1], [1]), ValueError, "i and j must have the same length, got 2 and 1"),
        (lambda g: g.pair_distances([0], [400]), IndexError, r"j\[0\] = 400 is not a vertex"),
        (lambda g: g.pair_distances([-1], [0]), IndexError, r"i\[0\] = -1 is not a vertex"),
        (lambda g: g.pair_distances([0.5], [0]), TypeError, "i must hold integers"),
        (lambda g: g.pair_distances([[0]], [[0]]), ValueError, "i must be one-dimensional"),
        (lambda g: g.pair_distances([0], [0], n_jobs=1.5), TypeError, "n_jobs must be an integer"),
        (lambda g: g.kneighbors([0], 400), ValueError, "k must be between 1 and .*, got 400"),
        (lambda g: g.kneighbors([0], 0), ValueError, "k must be between 1 and .*, got 0"),
        (lambda g: g.within([0], -1), ValueError, "radius must be 0 or more, got -1"),
        (lambda g: g.within([0], "far"), TypeError, "radius must be a number, got 'far'"),
        (lambda g: g.save(3), TypeError, "path must be a str or path-like"),
        (lambda g: g.save("x", {"a": object()}), ValueError, "metadata cannot be written as JSON"),
    ],
)
def test_bad_calls(model: Graph | ProductGraph, call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(model)


def test_pages(model: Graph | ProductGraph, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    places = np.random.default_rng(0).normal(size=(model.n_items, 2))
    model.to_html(path, labels=[f"item {i}" for i in range(model.n_items)], positions=places, title="Towns")
    page = path.read_text()
    assert "Towns" in page
    assert json.dumps("item 7") in page
    assert ("joined to their 5 nearest" in page) == isinstance(model, ProductGraph)


def test_both_are_queryable(model: Graph | ProductGraph) -> None:
    assert isinstance(model, Queryable)
