"""Stress and attachment of the core, against sums over scipy's shortest paths and searches through all hubs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from prodige import _core
from strategies import Edges

Floats = NDArray[np.float64]
LANES = _core.LANES
LONGEST = 50.0


@dataclass
class Case:
    """A hub graph, and wanted distances from some sources (columns) to the first vertices (rows)."""

    edges: Edges
    is_hub: NDArray[np.uint8]
    sources: NDArray[np.int32]
    target: NDArray[np.float32]

    def network(self) -> _core.HubNetwork32:
        topology = _core.Topology(self.edges.n_vertices, self.edges.i, self.edges.j)
        network = _core.Network32(topology, self.edges.weight, 1)
        return _core.HubNetwork32(network, _core.HubLayout(topology, self.is_hub))

    def blocks(self) -> NDArray[np.int32]:
        return np.arange(self.sources.size // LANES, dtype=np.int32)

    def measure(
        self, blocks: NDArray[np.int32] | None = None, longest: float = LONGEST, flows: bool = True, n_jobs: int = 1
    ) -> Measured:
        chosen = self.blocks() if blocks is None else blocks
        return Measured(
            *_core.measure_stress(self.network(), self.sources, self.target, chosen, longest, flows, n_jobs)
        )


class Measured(NamedTuple):
    """What the core returns, or the oracle."""

    loss: float
    n_pairs: float
    gradient: Floats
    uses: Floats
    cost: Floats
    flow_residuals: Floats
    flow_uses: Floats


def make_case(
    rng: np.random.Generator,
    n_items: int,
    n_hubs: int,
    *,
    most_arcs: int = 4,
    n_local: int = 0,
    n_blocks: int = 2,
    hub_items: int = 0,
    rows: int | None = None,
) -> Case:
    """Items with one to ``most_arcs`` hubs each, hubs in a tree and more, some edges between items.

    Sources are hubs and items whose first edge surely leads to a hub: those without an edge to another item.
    """
    n = n_items + n_hubs
    ends = {
        (v, n_items + int(h))
        for v in range(n_items)
        for h in rng.choice(n_hubs, int(rng.integers(1, min(most_arcs, n_hubs) + 1)), replace=False)
    }
    ends |= {(n_items + int(rng.integers(0, h)), n_items + h) for h in range(1, n_hubs)}
    ends |= {(n_items + g, n_items + h) for h in range(n_hubs) for g in range(h) if rng.random() < 0.3}
    locals_ = {tuple(sorted(rng.choice(n_items, 2, replace=False).tolist())) for _ in range(n_local)}
    pairs = rng.permutation(np.array(sorted(ends | locals_), np.int32))
    weight = rng.uniform(0.05, 1, len(pairs)).astype(np.float32)
    edges = Edges(n, n_items, pairs[:, 0].copy(), pairs[:, 1].copy(), weight)
    is_hub = (np.arange(n) >= n_items).astype(np.uint8)
    is_hub[:hub_items] = 1
    possible = np.setdiff1d(np.arange(n), [v for pair in locals_ for v in pair if not is_hub[v]])
    sources = rng.choice(possible, n_blocks * LANES).astype(np.int32)
    target = rng.uniform(0.2, 3, (n_items if rows is None else rows, sources.size)).astype(np.float32)
    return Case(edges, is_hub, sources, target)


@st.composite
def cases(draw: st.DrawFn, n_local: int = 4) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_items, n_hubs = draw(st.integers(2, 24)), draw(st.integers(1, 6))
    return make_case(
        rng,
        n_items,
        n_hubs,
        most_arcs=draw(st.integers(1, 6)),
        n_local=draw(st.integers(0, n_local)),
        hub_items=draw(st.integers(0, 2)),
        rows=draw(st.sampled_from([n_items, n_items + n_hubs])),
    )


def shortest_paths(case: Case) -> tuple[Floats, NDArray[np.int32]]:
    """Distances and predecessors from the sources by scipy."""
    distances, before = dijkstra(case.edges.matrix(), directed=False, indices=case.sources, return_predecessors=True)
    return distances, before


def has_ties(case: Case) -> bool:
    """Whether two ways to a vertex are equally short, so that rounding decides which one is charged."""
    edges = case.edges
    distances, _ = shortest_paths(case)
    n_last = np.zeros(distances.shape, int)  # edges that a shortest path may end with
    for tail, head in ((edges.i, edges.j), (edges.j, edges.i)):
        tight = distances[:, tail] + edges.weight - distances[:, head] < 1e-5
        for e in range(head.size):
            n_last[:, head[e]] += tight[:, e]
    return bool((n_last > 1).any())


def brute_force(case: Case, columns: NDArray[Any] | None = None, longest: float = LONGEST) -> tuple[Measured, Floats]:
    """Sum over all pairs, path by path; also return how often an edge is used in the middle of a path.

    Costs are those of edges that end a path: the next best edge of the target takes over, all else stays. A source
    that is no hub is not charged for the edge it leaves by.
    """
    edges, n_hubs = case.edges, int(case.is_hub.sum())
    distances, before = shortest_paths(case)
    edge_of = {(a, b): e for e, (i, j) in enumerate(zip(edges.i, edges.j, strict=True)) for a, b in ((i, j), (j, i))}
    arcs: list[list[tuple[int, int]]] = [[] for _ in range(edges.n_vertices)]
    for (a, b), e in edge_of.items():
        arcs[a].append((b, e))
    hub_number = np.cumsum(case.is_hub) - 1
    loss = n_pairs = 0.0
    gradient, uses, cost, middle = np.zeros((4, edges.i.size))
    flow_residuals, flow_uses = np.zeros((2, n_hubs, n_hubs))
    for column in range(case.sources.size) if columns is None else columns:
        source = int(case.sources[column])
        for goal in range(len(case.target)):
            if goal == source:
                continue
            target = float(case.target[goal, column])
            residual = min(distances[column, goal], longest) - target
            loss += residual**2
            n_pairs += 1
            path = [goal]
            while path[-1] != source:
                path.append(int(before[column, path[-1]]))
            charged = [edge_of[pair] for pair in zip(path[1:], path[:-1], strict=True)]
            if not case.is_hub[source]:
                charged = charged[:-1]
            gradient[charged] += residual
            uses[charged] += 1
            inner = path[not case.is_hub[goal] : len(path) - (not case.is_hub[source])]
            if case.is_hub[inner[0]] and case.is_hub[inner[-1]]:
                where = hub_number[inner[-1]], hub_number[inner[0]]
                flow_residuals[where] += residual
                flow_uses[where] += 1
            if case.is_hub[goal] or not charged:
                middle[charged] += 1
                continue
            middle[charged[1:]] += 1
            others = [distances[column, v] + edges.weight[e] for v, e in arcs[goal] if e != charged[0]]
            cost[charged[0]] += (min([longest, *others]) - target) ** 2 - residual**2
    return Measured(loss, n_pairs, gradient, uses, cost, flow_residuals.ravel(), flow_uses.ravel()), middle


def assert_close(found: Any, expected: Any, scale: float = 1.0) -> None:
    """Equal up to single precision, relative to the largest entry or ``scale``."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(scale, float(np.abs(expected).max(initial=0))))


# -- measure_stress


@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_stress_is_the_sum_over_paths(case: Case) -> None:
    assume(not has_ties(case))
    expected, middle = brute_force(case)
    found = case.measure()
    assert found.n_pairs == expected.n_pairs
    assert found.loss == pytest.approx(expected.loss, rel=1e-5)
    np.testing.assert_array_equal(found.uses, expected.uses)
    assert_close(found.gradient, expected.gradient, expected.n_pairs)
    # Exactly the rise where an edge of an item only ever ends paths.
    edges = case.edges
    local = np.isin(np.arange(edges.n_vertices), np.r_[edges.i, edges.j][np.tile(edges.j < edges.n_items, 2)])
    ending = (middle == 0) & (edges.j >= edges.n_items) & ~local[edges.i] & (case.is_hub[edges.i] == 0)
    assert_close(found.cost[ending], expected.cost[ending], expected.loss)
    if not local.any():
        np.testing.assert_array_equal(found.flow_uses, expected.flow_uses)
        assert_close(found.flow_residuals, expected.flow_residuals, expected.n_pairs)


def test_the_oracle_sees_what_it_should() -> None:
    """The cases above have paths over items and costs of second-best edges, or they would test little."""
    case = make_case(np.random.default_rng(5), 40, 6)
    expected, middle = brute_force(case)
    of_item = case.edges.i < case.edges.n_items
    assert case.network().n_shortcuts > 0
    assert (middle[of_item] > 0).any()
    assert ((middle == 0) & of_item & (expected.uses > 0)).sum() > 10
    degree = np.bincount(case.edges.i[of_item], minlength=40)
    costs = expected.cost[of_item & (middle == 0) & (degree[np.minimum(case.edges.i, 39)] > 1)]
    assert (costs > 0).any()
    assert (costs < 0).any()  # some items come out better without


def test_flows_add_up() -> None:
    case = make_case(np.random.default_rng(1), 60, 5, n_blocks=3)
    distances, _ = shortest_paths(case)
    found = case.measure()
    residuals = (distances[:, :60] - case.target.T)[case.sources[:, None] != np.arange(60)]
    assert found.flow_uses.sum() == found.n_pairs == residuals.size
    assert found.flow_residuals.sum() == pytest.approx(residuals.sum(), rel=1e-4)
    assert found.loss == pytest.approx((residuals**2).sum(), rel=1e-5)
    without = case.measure(flows=False)
    assert without.flow_residuals.size == without.flow_uses.size == 0
    for mine, other in zip(found[:5], without[:5], strict=True):
        np.testing.assert_array_equal(mine, other)


def test_gradient_of_hub_edges_is_half_the_derivative() -> None:
    """No path starts with an edge between hubs, so it is charged in full: finite differences of scipy's distances."""
    case = make_case(np.random.default_rng(2), 30, 6, most_arcs=2)
    case.sources = np.random.default_rng(3).integers(0, 30, 2 * LANES).astype(np.int32)
    edges, found = case.edges, case.measure()

    def loss(edge: int, step: float) -> float:
        moved = edges.with_dtype(np.float64)
        moved.weight[edge] += step
        distances, _ = shortest_paths(Case(moved, case.is_hub, case.sources, case.target))
        residuals = distances[:, :30] - case.target.T
        return float((residuals[case.sources[:, None] != np.arange(30)] ** 2).sum())

    between = np.flatnonzero(edges.i >= 30)
    assert between.size > 4
    for edge in between.tolist():
        derivative = (loss(edge, 1e-5) - loss(edge, -1e-5)) / 2e-5
        assert 2 * found.gradient[edge] == pytest.approx(derivative, rel=1e-3, abs=1e-3)


@given(seed=st.integers(0, 2**32 - 1), n_hubs=st.integers(2, 8))
@settings(max_examples=30, deadline=None)
def test_cost_of_hub_edges(seed: int, n_hubs: int) -> None:
    """Items have one hub each. Without an edge, all behind it moves away by as much as its nearer end does."""
    case = make_case(np.random.default_rng(seed), 20, n_hubs, most_arcs=1)
    assume(not has_ties(case))
    edges = case.edges
    distances, before = shortest_paths(case)
    expected = np.zeros(edges.i.size)
    for column, source in enumerate(case.sources):
        behind = {v: {v} for v in range(edges.n_vertices)}
        for v in np.argsort(-distances[column]).tolist():
            if v != source:
                behind[int(before[column, v])] |= behind[v]
        for e in np.flatnonzero(edges.i >= 20):
            for near, far in ((edges.i[e], edges.j[e]), (edges.j[e], edges.i[e])):
                if before[column, far] != near:
                    continue
                items = [v for v in behind[int(far)] if v < 20]
                residual = distances[column, items] - case.target[items, column]
                other = [
                    distances[column, a] + edges.weight[o]
                    for o in range(edges.i.size)
                    for a, b in ((edges.i[o], edges.j[o]), (edges.j[o], edges.i[o]))
                    if b == far and o != e and int(a) not in behind[int(far)]
                ]
                shift = min([LONGEST, *other]) - distances[column, far]
                expected[e] += ((residual + shift) ** 2 - residual**2).sum()
    of_hubs = edges.i >= 20
    found = case.measure()
    assert_close(found.cost[of_hubs], expected[of_hubs], found.loss)


def test_cost_of_a_hub_edge_is_the_rise_without_it() -> None:
    """Three hubs in a triangle: only what hangs on the far hub moves, so the rise is that of a new search."""
    i = np.array([0, 1, 2, 3, 4, 5, 6, 6, 7], np.int32)
    j = np.array([6, 6, 7, 7, 8, 8, 7, 8, 8], np.int32)
    weight = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0, 1.1, 1.3], np.float32)
    sources = (np.arange(LANES) % 6).astype(np.int32)
    target = np.random.default_rng(0).uniform(0.5, 4, (6, LANES)).astype(np.float32)
    is_hub = (np.arange(9) >= 6).astype(np.uint8)
    full = Case(Edges(9, 6, i, j, weight), is_hub, sources, target).measure()
    for edge in (6, 7, 8):
        keep = np.arange(9) != edge
        less = Case(Edges(9, 6, i[keep], j[keep], weight[keep]), is_hub, sources, target).measure()
        assert full.cost[edge] == pytest.approx(less.loss - full.loss, rel=1e-4)


def test_blocks_choose_columns() -> None:
    """The sums of blocks are those of their columns; a block that comes twice counts twice."""
    case = make_case(np.random.default_rng(4), 25, 4, n_blocks=4)
    parts = [case.measure(np.array([b], np.int32)) for b in range(4)]
    for blocks in ([2], [3, 0], [1, 1, 2], [0, 1, 2, 3], []):
        found = case.measure(np.array(blocks, np.int32))
        for mine, theirs in zip(found, zip(*parts, strict=True), strict=True):
            assert_close(mine, sum((theirs[b] for b in blocks), np.zeros_like(mine)))
    expected, _ = brute_force(case, np.arange(2 * LANES, 3 * LANES))
    np.testing.assert_array_equal(parts[2].uses, expected.uses)
    assert parts[2].loss == pytest.approx(expected.loss, rel=1e-5)


def test_unreachable_items_are_at_the_longest_distance() -> None:
    """Two parts of two items each: from one to the other it counts as the longest way."""
    edges = Edges(6, 4, np.arange(4, dtype=np.int32), np.array([4, 4, 5, 5], np.int32), np.full(4, 0.5, np.float32))
    is_hub = (np.arange(6) >= 4).astype(np.uint8)
    case = Case(edges, is_hub, np.zeros(LANES, np.int32), np.ones((4, LANES), np.float32))
    found = case.measure(longest=3.0)
    assert found.n_pairs == 3 * LANES
    assert found.loss == LANES * (0 + 2**2 + 2**2)
    assert found.uses.tolist() == [0, LANES, LANES, LANES]
    assert found.gradient.tolist() == [0, 0, 2 * LANES, 2 * LANES]
    assert found.cost.tolist() == [0, LANES * 2**2, 0, 0]  # nothing is longer than the longest


def test_stress_has_the_same_bits_for_any_number_of_threads() -> None:
    case = make_case(np.random.default_rng(6), 1000, 20, n_local=10, n_blocks=20)
    one = case.measure()
    for n_jobs in (1, 2, 2, 5):
        for mine, other in zip(one, case.measure(n_jobs=n_jobs), strict=True):
            assert np.asarray(mine).tobytes() == np.asarray(other).tobytes()


def test_bad_arguments_of_stress() -> None:
    case = make_case(np.random.default_rng(7), 10, 2)
    hubs, sources, target, blocks = case.network(), case.sources, case.target, case.blocks()

    def measure(**changes: Any) -> None:
        arguments: dict[str, Any] = {"sources": sources, "target": target, "blocks": blocks, "n_jobs": 1} | changes
        _core.measure_stress(hubs, longest=1.0, with_flows=False, **arguments)

    measure()
    with pytest.raises(ValueError, match=r"sources has 31 entries"):
        measure(sources=sources[:-1].copy())
    with pytest.raises(ValueError, match=f"sources has 31 entries, not a multiple of {LANES}"):
        measure(sources=sources[:-1].copy(), target=target[:, :-1].copy())
    for block in (2, -1):
        with pytest.raises(IndexError, match=f"there is no block {block}"):
            measure(blocks=np.array([0, block], np.int32))
    with pytest.raises(ValueError, match="target has more rows than there are vertices"):
        measure(target=np.ones((13, sources.size), np.float32))
    for vertex in (12, -1):
        with pytest.raises(IndexError, match=rf"sources\[3\] = {vertex}"):
            measure(sources=np.where(np.arange(sources.size) == 3, vertex, sources).astype(np.int32))
    with pytest.raises(ValueError, match="n_jobs = 0"):
        measure(n_jobs=0)
    with pytest.raises(TypeError, match="incompatible"):
        measure(target=target[0].copy())


# -- attach


@dataclass
class Places:
    """Hubs, their distances to the sources, and items that look for some."""

    sources: NDArray[np.int32]
    target: NDArray[np.float32]
    distances: NDArray[np.float32]
    first_column: int = 0

    def attach(
        self, n_arcs: int, items: NDArray[np.int32] | None = None, n_jobs: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
        chosen = np.arange(len(self.target), dtype=np.int32) if items is None else items
        return _core.attach(chosen, self.sources, self.target, self.distances, self.first_column, n_arcs, n_jobs)

    def window(self, item: int) -> tuple[Floats, Floats]:
        """What an item looks at: wanted distances and those from the hubs, without its own columns."""
        columns = slice(self.first_column, self.first_column + self.distances.shape[1])
        others = self.sources[columns] != item
        return self.target[item, columns][others].astype(float), self.distances[:, others].astype(float)


def make_places(
    rng: np.random.Generator, n_items: int, n_hubs: int, n_blocks: int = 2, first_block: int = 0, n_after: int = 0
) -> Places:
    """Points of a plane: an item's own distance is 0, as it is in use."""
    items, hubs = rng.normal(size=(n_items, 2)), rng.normal(size=(n_hubs, 2))
    sources = rng.integers(0, n_items, (first_block + n_blocks + n_after) * LANES).astype(np.int32)
    target = np.linalg.norm(items[:, None] - items[sources], axis=2)
    columns = slice(first_block * LANES, (first_block + n_blocks) * LANES)
    distances = np.linalg.norm(hubs[:, None] - items[sources[columns]], axis=2) + rng.uniform(0, 0.5, (n_hubs, 1))
    return Places(sources, target.astype(np.float32), distances.astype(np.float32), first_block * LANES)


@st.composite
def places(draw: st.DrawFn) -> Places:
    return make_places(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        draw(st.integers(2, 40)),
        draw(st.integers(1, 40)),
        draw(st.integers(1, 3)),
        draw(st.integers(0, 2)),
        draw(st.integers(0, 1)),
    )


@given(places=places(), n_arcs=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_attachments(places: Places, n_arcs: int) -> None:
    hubs, weights, errors = places.attach(n_arcs)
    n_items, n_hubs = len(places.target), len(places.distances)
    k = min(n_arcs, n_hubs)
    assert hubs.shape == errors.shape == (n_items, k)
    assert weights.shape == (n_items, k, k)
    assert (weights >= 0).all()
    for item in range(n_items):
        target, distances = places.window(item)
        if target.size == 0:
            continue
        # The first hub is the best of all, with the mean as its weight.
        best = np.maximum((target - distances).mean(axis=1), 0)
        alone = ((distances + best[:, None] - target) ** 2).sum(axis=1)
        first = hubs[item, 0]
        assert alone[first] <= alone.min() + 1e-4
        assert weights[item, 0, 0] == pytest.approx(best[first], abs=1e-5)
        # What it says of every number of arcs is true.
        n_found = int((hubs[item] >= 0).sum())
        assert len(set(hubs[item, :n_found].tolist())) == n_found
        for taken in range(1, n_found + 1):
            chosen = hubs[item, :taken]
            paths = distances[chosen] + weights[item, taken - 1, :taken, None]
            error = ((paths.min(axis=0) - target) ** 2).sum()
            assert errors[item, taken - 1] == pytest.approx(error, rel=1e-4, abs=1e-5)
        # Each arc helps; from where none does there are no more.
        assert (np.diff(errors[item, :n_found]) < 0).all()
        assert (hubs[item, n_found:] == -1).all()
        assert (errors[item, n_found:] == errors[item, n_found - 1]).all()


def test_second_hub_is_found_where_one_is_not_enough() -> None:
    """Wanted distances made from two hubs each: two arcs bring the error down to nearly nothing."""
    rng = np.random.default_rng(0)
    places = make_places(rng, 50, 12, n_blocks=8)
    places.sources[:] = -1
    pairs = np.array([rng.choice(12, 2, replace=False) for _ in range(50)])
    paths = places.distances[pairs] + rng.uniform(0.05, 0.3, (50, 2, 1)).astype(np.float32)
    places.target = paths.min(axis=1)
    _, _, errors = places.attach(2)
    worth_it = errors[:, 0] > 1
    assert worth_it.sum() > 20
    assert np.median(errors[worth_it, 1] / errors[worth_it, 0]) < 0.02


def test_an_item_on_a_hub_needs_no_second() -> None:
    places = make_places(np.random.default_rng(1), 10, 5)
    places.sources[:] = -1
    places.target = places.distances[np.arange(10) % 5]
    hubs, weights, errors = places.attach(3)
    np.testing.assert_array_equal(hubs, np.stack([np.arange(10) % 5, np.full(10, -1), np.full(10, -1)], axis=1))
    np.testing.assert_allclose(weights[:, 0, 0], 0, atol=1e-6)
    np.testing.assert_allclose(errors, 0, atol=1e-9)


def test_own_columns_do_not_count() -> None:
    """Whatever is wanted of an item to itself does not change its best hub; what is wanted to others does."""
    places = make_places(np.random.default_rng(2), 12, 6, n_blocks=4)
    plain = places.attach(3)
    own = places.sources[None] == np.arange(12)[:, None]
    odd = Places(places.sources, np.where(own, np.float32(9), places.target), places.distances)
    changed = odd.attach(3)
    np.testing.assert_array_equal(plain[0][:, 0], changed[0][:, 0])
    np.testing.assert_allclose(plain[1][:, 0, 0], changed[1][:, 0, 0], atol=1e-5)
    np.testing.assert_allclose(plain[2][:, 0], changed[2][:, 0], atol=1e-3)
    nobody = Places(np.full_like(places.sources, -1), odd.target, places.distances)
    assert (nobody.attach(3)[2][:, 0] > plain[2][:, 0] + 1).all()


def test_sources_that_are_no_items() -> None:
    """-1, or a vertex beyond the rows, is somebody else."""
    places = make_places(np.random.default_rng(3), 12, 6)
    nowhere = Places(np.full_like(places.sources, -1), places.target, places.distances)
    beyond = Places(np.full_like(places.sources, 12), places.target, places.distances)
    for mine, other in zip(nowhere.attach(3), beyond.attach(3), strict=True):
        assert mine.tobytes() == other.tobytes()
    target, distances = places.target[0].astype(float), places.distances.astype(float)
    best = np.maximum((target - distances).mean(axis=1), 0)
    error = ((distances + best[:, None] - target) ** 2).sum(axis=1).min()
    assert nowhere.attach(1)[2][0, 0] == pytest.approx(error, rel=1e-4)


def test_a_window_is_a_table_of_its_own() -> None:
    places = make_places(np.random.default_rng(4), 30, 8, n_blocks=2, first_block=1, n_after=1)
    columns = slice(LANES, 3 * LANES)
    cut = Places(places.sources[columns].copy(), places.target[:, columns].copy(), places.distances)
    for mine, other in zip(places.attach(3), cut.attach(3), strict=True):
        assert mine.tobytes() == other.tobytes()
    begin = Places(places.sources, places.target, places.distances, 0)
    assert begin.attach(3)[2].tobytes() != cut.attach(3)[2].tobytes()


def test_attachments_do_not_depend_on_company_or_threads() -> None:
    places = make_places(np.random.default_rng(5), 200, 20, n_blocks=4)
    every = places.attach(4)
    items = np.random.default_rng(0).permutation(200)[:77].astype(np.int32)
    for n_jobs in (1, 2, 3):
        for mine, other in zip(every, places.attach(4, items, n_jobs), strict=True):
            assert mine[items].tobytes() == other.tobytes()
    for some, width in zip(places.attach(4, items[:0]), ((4,), (4, 4), (4,)), strict=True):
        assert some.shape == (0, *width)


def test_number_of_arcs_is_bounded() -> None:
    rng = np.random.default_rng(6)
    assert make_places(rng, 5, 3).attach(8)[0].shape == (5, 3)
    hubs, _, errors = make_places(rng, 5, 40).attach(40)
    assert hubs.shape == (5, 16)
    assert (np.diff(errors, axis=1) <= 0).all()


def test_bad_arguments_of_attach() -> None:
    places = make_places(np.random.default_rng(7), 10, 4)
    items = np.arange(10, dtype=np.int32)

    def attach(**changes: Any) -> None:
        arguments: dict[str, Any] = {
            "items": items,
            "sources": places.sources,
            "target": places.target,
            "distances": places.distances,
            "first_column": 0,
            "n_jobs": 1,
        } | changes
        _core.attach(n_arcs=2, **arguments)

    attach()
    for item in (10, -1):
        with pytest.raises(IndexError, match=rf"items\[1\] = {item}"):
            attach(items=np.array([0, item], np.int32))
    with pytest.raises(ValueError, match="sources has 31 entries"):
        attach(sources=places.sources[:-1].copy())
    with pytest.raises(ValueError, match=f"not a multiple of {LANES}"):
        attach(sources=places.sources[:-1].copy(), target=places.target[:, :-1].copy())
    for first_column, width in ((1, 32), (LANES, 32), (0, 31), (33, LANES), (0, 48)):
        with pytest.raises(ValueError, match=f"distances has {width} columns, which is no window"):
            attach(first_column=first_column, distances=np.ones((4, width), np.float32))
    with pytest.raises(ValueError, match="n_jobs = 0"):
        attach(n_jobs=0)
    with pytest.raises(TypeError, match="incompatible"):
        attach(first_column=-1)
    with pytest.raises(TypeError, match="incompatible"):
        attach(distances=places.distances[0].copy())
