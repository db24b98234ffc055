"""The native core against the reference, scipy, finite differences and itself with other numbers of threads."""

from __future__ import annotations

import math
import multiprocessing
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from prodige import _core
from prodige.graph import reference
from strategies import Edges, graphs, hub_graph, make_edges, point_graph

DTYPES = [np.float32, np.float64]
ENGINES = ["general", "hubs"]


def build(edges: Edges, engine: str = "general", is_hub: NDArray[np.uint8] | None = None) -> Any:
    """Return a searchable network in the precision of the weights."""
    topology = _core.Topology(edges.n_vertices, edges.i, edges.j)
    single = edges.weight.dtype == np.float32
    network: Any = (_core.Network32 if single else _core.Network64)(topology, edges.weight, 1)
    if engine == "general":
        return network
    if is_hub is None:
        is_hub = (np.arange(edges.n_vertices) >= edges.n_items).astype(np.uint8)
    return (_core.HubNetwork32 if single else _core.HubNetwork64)(network, _core.HubLayout(topology, is_hub))


def all_sources(edges: Edges) -> NDArray[np.int32]:
    return np.arange(edges.n_vertices, dtype=np.int32)


def tolerance(dtype: Any) -> float:
    return 1e-5 if dtype == np.float32 else 1e-12


def check_trees(forest: Any, edges: Edges, expected: NDArray[np.float64]) -> None:
    """Every tree is a shortest-path tree of its source, parents first."""
    offsets, vertices, parents = forest.offsets, forest.vertices, forest.parents
    distances, tree_edges = forest.settled_distances, forest.edges
    for source, (begin, end) in enumerate(pairwise(offsets)):
        assert vertices[begin] == source
        assert parents[begin] == tree_edges[begin] == -1
        assert distances[begin] == 0
        assert sorted(vertices[begin:end]) == np.flatnonzero(np.isfinite(expected[source])).tolist()
        np.testing.assert_allclose(
            distances[begin:end], expected[source][vertices[begin:end]], rtol=0, atol=tolerance(edges.weight.dtype)
        )
        rows = np.arange(begin + 1, end)
        parent, edge = parents[rows], tree_edges[rows]
        assert ((parent >= 0) & (parent < rows - begin)).all()
        ends = np.sort([vertices[rows], vertices[begin + parent]], axis=0)
        np.testing.assert_array_equal(ends, np.sort([edges.i[edge], edges.j[edge]], axis=0))
        steps = distances[begin + parent].astype(np.float64) + edges.weight[edge]
        np.testing.assert_allclose(distances[rows], steps, rtol=0, atol=tolerance(edges.weight.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("engine", ENGINES)
@given(edges=graphs(), data=st.data())
def test_distances_and_trees_match_scipy(engine: str, dtype: Any, edges: Edges, data: st.DataObject) -> None:
    edges = edges.with_dtype(dtype)
    is_hub = np.array(
        data.draw(st.lists(st.integers(0, 1), min_size=edges.n_vertices, max_size=edges.n_vertices)), np.uint8
    )
    network = build(edges, engine, is_hub)
    expected = dijkstra(edges.matrix(), directed=False)
    found = network.distances(all_sources(edges), None, edges.n_vertices, 1)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance(dtype))
    check_trees(network.search(all_sources(edges)), edges, expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("edges", [point_graph(), hub_graph()], ids=["points", "hubs"])
def test_large_graphs_match_scipy(engine: str, edges: Edges) -> None:
    """Large enough for the ceiling and the horizon of the search to come into play."""
    network = build(edges, engine, None if edges.n_items < edges.n_vertices else np.ones(edges.n_vertices, np.uint8))
    expected = dijkstra(edges.matrix(), directed=False)
    np.testing.assert_allclose(
        network.distances(all_sources(edges), None, edges.n_vertices, 2), expected, rtol=0, atol=1e-5
    )
    check_trees(network.search(all_sources(edges)), edges, expected)


def test_many_ties_on_a_large_graph() -> None:
    """Equal distances must not keep the search from moving its horizon on."""
    edges = point_graph(1500, 4, 4)
    for weight in (np.ones(edges.i.size), np.random.default_rng(0).integers(0, 3, edges.i.size)):
        tied = Edges(edges.n_vertices, edges.n_items, edges.i, edges.j, weight.astype(np.float32))
        expected = dijkstra(tied.matrix(), directed=False, indices=all_sources(tied)[::50])
        found = build(tied).distances(all_sources(tied)[::50].copy(), None, tied.n_vertices, 1)
        np.testing.assert_array_equal(found, expected)


@given(edges=graphs(weights=("real",)))
def test_trees_match_reference(edges: Edges) -> None:
    edges = edges.with_dtype(np.float64)
    forest = build(edges).search(all_sources(edges))
    for source in range(edges.n_vertices):
        tree = reference.search(edges.i.tolist(), edges.j.tolist(), edges.weight.tolist(), source)
        rows = slice(forest.offsets[source], forest.offsets[source + 1])
        parents = dict(zip(forest.vertices[rows][1:], forest.edges[rows][1:], strict=True))
        assert parents == tree.edge
        assert dict(zip(forest.vertices[rows], forest.settled_distances[rows], strict=True)) == tree.distance


@given(edges=graphs(), data=st.data())
def test_bounded_searches(edges: Edges, data: st.DataObject) -> None:
    network = build(edges)
    hubs = build(edges, "hubs")
    sources = all_sources(edges)
    expected = network.distances(sources, None, edges.n_vertices, 1)

    targets = np.array(data.draw(st.lists(st.integers(0, edges.n_vertices - 1), min_size=1, max_size=5)), np.int32)
    for engine in (network, hubs):
        np.testing.assert_allclose(engine.distances(sources, targets, 0, 1), expected[:, targets], atol=1e-5)
    bounded = network.search(sources, targets=targets)
    np.testing.assert_array_equal(bounded.distances(targets, 0, 1), expected[:, targets])

    k = data.draw(st.integers(1, edges.n_vertices))
    radius = float(data.draw(st.sampled_from(sorted(set(expected[np.isfinite(expected)].tolist())))))
    for engine in (network, hubs):
        own = engine.distances(sources, None, edges.n_vertices, 1)
        near = engine.neighbors(sources, edges.n_items, k, None, 1)
        around = engine.neighbors(sources, edges.n_items, None, radius, 1)
        for source in sources:
            order = sorted((own[source, v], v) for v in range(edges.n_items) if v != source and own[source, v] < np.inf)
            for (offsets, vertices, distances), target in (
                (near, order[:k]),
                (around, [pair for pair in order if pair[0] <= np.float32(radius)]),
            ):
                row = slice(offsets[source], offsets[source + 1])
                assert list(zip(distances[row], vertices[row], strict=True)) == target


def test_bounded_search_keeps_only_what_it_settled() -> None:
    edges = point_graph()
    forest = build(edges).search(np.array([3], np.int32), k=5, n_items=edges.n_items)
    assert forest.offsets[-1] == 6
    assert forest.nbytes < 2**15


@pytest.mark.parametrize("engine", ENGINES)
@given(edges=graphs(weights=("real",)), seed=st.integers(0, 2**32 - 1))
def test_backward_matches_finite_differences(engine: str, edges: Edges, seed: int) -> None:
    edges = edges.with_dtype(np.float64)
    rng = np.random.default_rng(seed)
    network = build(edges, engine)
    sources = rng.integers(0, edges.n_vertices, 5).astype(np.int32)
    targets = rng.integers(0, edges.n_vertices, 7).astype(np.int32)
    factor = rng.normal(size=(5, 7))

    def loss(weight: NDArray[np.float64]) -> float:
        d = network.with_weights(weight, 1).distances(sources, targets, 0, 1)
        return float((factor * np.where(np.isfinite(d), d, 0)).sum())

    gradient = network.search(sources).backward(factor, targets, 1)
    epsilon = 1e-7  # well below the differences between paths
    for edge in range(edges.i.size):
        bumped = edges.weight.copy()
        bumped[edge] += epsilon
        rise = (loss(bumped) - loss(edges.weight)) / epsilon
        assert gradient[edge] == pytest.approx(rise, abs=1e-5)


def edge_effects(
    edges: Edges, probability: float | None, seed: int, gradient: NDArray[np.float64], curvature: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Backward, removal cost and toggle of a search from every vertex, by the reference."""
    tails, heads, weights = edges.i.tolist(), edges.j.tolist(), edges.weight.tolist()
    backward, removal, present_effect, refused_effect = np.zeros((4, edges.i.size))
    for source in range(edges.n_vertices):
        present = None
        if probability is not None:
            present = lambda e, s=source: reference.is_present(e, probability, seed, s)  # noqa: E731
        tree = reference.search(tails, heads, weights, source, present)
        backward += reference.edge_gradient(tree, gradient[source].tolist(), edges.i.size)
        for v, e in tree.edge.items():
            below = list(tree.subtree(v))
            shift = reference.shift(tree, tails, heads, weights, v, 9.0, present)
            removal[e] += shift * gradient[source, below].sum() + shift**2 / 2 * curvature[source, below].sum()
            present_effect[e] -= shift * gradient[source, below].sum()
        for e, there in tree.asked.items():
            for u, v in ((tails[e], heads[e]), (heads[e], tails[e])):
                if there or u not in tree.distance:
                    continue
                gain = tree.distance.get(v, 9.0) - tree.distance[u] - weights[e]
                below = list(tree.subtree(v)) if v in tree.distance else [v]
                refused_effect[e] -= max(gain, 0) * gradient[source, below].sum()
    return backward, removal, present_effect, refused_effect


@pytest.mark.parametrize("probability", [None, 0.7])
@given(edges=graphs(weights=("real",), max_items=9), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_effects_of_edges_match_reference(probability: float | None, edges: Edges, seed: int) -> None:
    edges = edges.with_dtype(np.float64)
    rng = np.random.default_rng(seed)
    gradient, curvature = rng.normal(size=(2, edges.n_vertices, edges.n_vertices))
    sampling: dict[str, Any] = {}
    if probability is not None:
        sampling = {"probabilities": np.full(edges.i.size, probability), "seed": seed}
    backward, removal, *toggle = edge_effects(edges, probability, seed, gradient, curvature)
    for engine in ENGINES:
        forest = build(edges, engine).search(all_sources(edges), **sampling)
        np.testing.assert_allclose(forest.backward(gradient, None, 1), backward, atol=1e-9)
        np.testing.assert_allclose(forest.removal_cost(gradient, curvature, None, 9.0, 1), removal, atol=1e-9)
        present, refused = forest.toggle(gradient, None, 9.0, 1)
        np.testing.assert_allclose(present, toggle[0], atol=1e-9)
        if not forest.asked_all:  # the hub engine asks about every edge, so it also sees those the search never met
            np.testing.assert_allclose(refused, toggle[1], atol=1e-9)


def test_removal_cost_is_the_rise_of_the_loss() -> None:
    """For items that nothing hangs below, removing an edge and searching again gives the predicted rise exactly."""
    edges = hub_graph(60, 4, 0).with_dtype(np.float64)
    rng = np.random.default_rng(1)
    target = rng.uniform(0.5, 2, (edges.n_items, edges.n_items))
    source = np.array([0], np.int32)

    def loss(keep: NDArray[np.bool_]) -> float:
        rest = Edges(edges.n_vertices, edges.n_items, edges.i[keep], edges.j[keep], edges.weight[keep])
        d = build(rest, "hubs").distances(source, None, edges.n_items, 1)
        return float(((d - target[:1]) ** 2).sum())

    forest = build(edges, "hubs").search(source)
    residual = forest.distances(None, edges.n_items, 1) - target[:1]
    cost = forest.removal_cost(2 * residual, np.full_like(residual, 2.0), None, math.inf, 1)
    inner = set(forest.vertices[forest.parents[1:]])
    base = loss(np.ones(edges.i.size, bool))
    checked = 0
    for v, e in zip(forest.vertices[1:], forest.edges[1:], strict=True):
        if v in inner:
            continue
        keep = np.arange(edges.i.size) != e
        assert cost[e] == pytest.approx(loss(keep) - base, abs=1e-9) if np.isfinite(cost[e]) else loss(keep) == math.inf
        checked += 1
    assert checked > 30


@pytest.mark.parametrize("engine", ENGINES)
@given(edges=graphs(), seed=st.integers(0, 2**64 - 1), probability=st.sampled_from([0.0, 0.3, 0.9, 1.0]))
def test_sampled_search_is_a_search_of_the_sampled_graph(
    engine: str, edges: Edges, seed: int, probability: float
) -> None:
    sources = all_sources(edges)
    groups = (sources % 3).astype(np.uint64)
    p = np.full(edges.i.size, probability, np.float32)
    forest = build(edges, engine).search(sources, probabilities=p, seed=seed, groups=groups)
    found = forest.distances(None, edges.n_vertices, 1)
    for group in range(3):
        keep = np.array([reference.is_present(e, probability, seed, group) for e in range(edges.i.size)], bool)
        sampled = Edges(edges.n_vertices, edges.n_items, edges.i[keep], edges.j[keep], edges.weight[keep])
        expected = build(sampled).distances(sources, None, edges.n_vertices, 1)
        np.testing.assert_allclose(found[groups == group], expected[groups == group], atol=1e-5)


@given(edges=graphs(weights=("real",)), seed=st.integers(0, 2**64 - 1))
def test_asked_edges_match_reference(edges: Edges, seed: int) -> None:
    edges = edges.with_dtype(np.float64)
    forest = build(edges).search(all_sources(edges), probabilities=np.full(edges.i.size, 0.6), seed=seed)
    for source in range(edges.n_vertices):
        tree = reference.search(
            edges.i.tolist(),
            edges.j.tolist(),
            edges.weight.tolist(),
            source,
            lambda e, s=source: reference.is_present(e, 0.6, seed, s),  # type: ignore[misc]
        )
        row = slice(forest.asked_offsets[source], forest.asked_offsets[source + 1])
        assert dict(zip(forest.asked[row], forest.present[row] == 1, strict=True)) == tree.asked
        assert len(set(forest.asked[row])) == row.stop - row.start


def test_frequencies_match_probabilities() -> None:
    """Over many groups each edge is present as often as its probability says, independently of the other edge."""
    topology = _core.Topology(3, np.array([0, 0], np.int32), np.array([1, 2], np.int32))
    network = _core.Network32(topology, np.ones(2, np.float32), 1)
    n = 20_000
    p = np.array([0.3, 0.8])
    forest = network.search(
        np.zeros(n, np.int32), probabilities=p.astype(np.float32), seed=7, groups=np.arange(n, dtype=np.uint64)
    )
    present = np.isfinite(forest.distances(None, 3, 2))[:, 1:]
    error = np.sqrt(p * (1 - p) / n)
    assert (np.abs(present.mean(0) - p) < 4 * error).all()
    assert abs(np.corrcoef(present.T)[0, 1]) < 4 / np.sqrt(n)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_for_any_number_of_threads(engine: str, dtype: Any) -> None:
    edges = hub_graph().with_dtype(dtype)
    sources = all_sources(edges)[::3].copy()
    rng = np.random.default_rng(0)
    gradient = rng.normal(size=(sources.size, edges.n_items)).astype(dtype)
    p = rng.uniform(0.5, 1, edges.i.size).astype(dtype)

    def everything(n_jobs: int) -> list[NDArray[Any]]:
        network = build(edges, engine)
        forest = network.search(sources, probabilities=p, seed=3, groups=(sources % 8).astype(np.uint64), n_jobs=n_jobs)
        offsets, vertices, distances = network.neighbors(sources, edges.n_items, 7, None, n_jobs)
        return [
            network.distances(sources, None, edges.n_vertices, n_jobs),
            forest.distances(None, edges.n_items, n_jobs),
            forest.edges,
            forest.asked,
            forest.backward(gradient, None, n_jobs),
            forest.removal_cost(gradient, gradient, None, 5.0, n_jobs),
            *forest.toggle(gradient, None, 5.0, n_jobs),
            offsets,
            vertices,
            distances,
        ]

    one = everything(1)
    for n_jobs in (2, 5):
        for mine, other in zip(one, everything(n_jobs), strict=True):
            assert mine.tobytes() == other.tobytes()


def test_with_weights_equals_a_new_network() -> None:
    edges = point_graph(200)
    rng = np.random.default_rng(0)
    network = build(edges)
    for scale in (0.01, 10.0):  # a small change is re-sorted in place, a large one afresh
        weight = (edges.weight * np.exp(scale * rng.normal(size=edges.weight.size))).astype(np.float32)
        network = network.with_weights(weight, 2)
        fresh = build(Edges(edges.n_vertices, edges.n_items, edges.i, edges.j, weight))
        mine, other = network.search(all_sources(edges)), fresh.search(all_sources(edges))
        for field in ("vertices", "settled_distances", "parents", "edges"):
            assert getattr(mine, field).tobytes() == getattr(other, field).tobytes()


def test_two_python_threads_share_a_network() -> None:
    edges = hub_graph()
    results: dict[tuple[str, int], NDArray[Any]] = {}
    networks = {engine: build(edges, engine) for engine in ENGINES}

    def work(engine: str, worker: int) -> None:
        for _ in range(5):
            results[engine, worker] = networks[engine].distances(all_sources(edges), None, edges.n_items, 2)

    threads = [threading.Thread(target=work, args=(e, w)) for e in ENGINES for w in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for engine in ENGINES:
        expected = networks[engine].distances(all_sources(edges), None, edges.n_items, 1)
        for worker in range(2):
            assert results[engine, worker].tobytes() == expected.tobytes()


def _search_in_child(edges: Edges, pipe: Any) -> None:
    pipe.send(build(edges, "hubs").distances(all_sources(edges), None, edges.n_items, 2).sum())


# CPython warns of forks in processes with threads; ours are all joined, and other libraries' do not matter here.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_after_use() -> None:
    edges = hub_graph()
    expected = build(edges, "hubs").distances(all_sources(edges), None, edges.n_items, 2).sum()
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_search_in_child, args=(edges, there))
    child.start()
    assert here.poll(30)
    assert here.recv() == expected
    child.join(30)
    assert child.exitcode == 0


@given(edges=graphs(weights=("real", "ties")))
def test_symmetry_and_triangle_inequality(edges: Edges) -> None:
    for engine in ENGINES:
        d = build(edges, engine).distances(all_sources(edges), None, edges.n_vertices, 1).astype(float)
        np.testing.assert_allclose(d, d.T, atol=1e-5)
        assert (d <= (d[:, :, None] + d[None]).min(axis=1) + 1e-5).all()


def test_bad_arguments_raise() -> None:
    ids = np.array([0, 1], np.int32)
    with pytest.raises(ValueError, match="heads\\[1\\] = 5 is not a vertex"):
        _core.Topology(3, ids, np.array([1, 5], np.int32))
    with pytest.raises(ValueError, match="self-loop"):
        _core.Topology(3, ids, ids)
    topology = _core.Topology(3, ids, np.array([2, 2], np.int32))
    for weight in (np.nan, -1.0, np.inf):
        with pytest.raises(ValueError, match=r"weights\[0\]"):
            _core.Network32(topology, np.array([weight, 1], np.float32), 1)
    network = _core.Network32(topology, np.ones(2, np.float32), 1)
    with pytest.raises(IndexError, match=r"sources\[0\] = -1"):
        network.distances(np.array([-1], np.int32), None, 3, 1)
    with pytest.raises(ValueError, match="n_jobs = 0"):
        network.distances(ids, None, 3, 0)
    with pytest.raises(ValueError, match=r"probabilities\[1\]"):
        network.search(ids, probabilities=np.array([0.5, 1.5], np.float32))
    with pytest.raises(ValueError, match="k = 0"):
        network.search(ids, k=0, n_items=3)
    with pytest.raises(ValueError, match="k = 0"):
        network.neighbors(ids, 3, 0, None, 1)
    forest = network.search(ids)
    with pytest.raises(ValueError, match="rows"):
        forest.backward(np.ones((3, 3), np.float32), None, 1)
    with pytest.raises(ValueError, match="unreachable"):
        forest.toggle(np.ones((2, 3), np.float32), None, math.inf, 1)


def test_hubs_are_chosen_by_structure() -> None:
    hubs, points = hub_graph(), point_graph(300)
    chosen = _core.Topology(hubs.n_vertices, hubs.i, hubs.j).choose_hubs(hubs.n_items)
    assert chosen is not None
    assert chosen[hubs.n_items :].all()
    # The same hubs are found when nobody says which vertices they are.
    found = _core.Topology(hubs.n_vertices, hubs.i, hubs.j).choose_hubs(hubs.n_vertices)
    assert found is not None
    assert found[hubs.n_items :].all()
    assert _core.Topology(points.n_vertices, points.i, points.j).choose_hubs(points.n_items) is None
    empty = make_edges(np.random.default_rng(0), 5, 0, 0.0, "real")
    assert _core.Topology(empty.n_vertices, empty.i, empty.j).choose_hubs(5) is None
