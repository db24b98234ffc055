"""Placing: items whose distances are those of a product are found in it, and the core does what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from prodige import Graph, ProductGraph, _core
from prodige.compression.placing import LinearPlacing


def product(seed: int, n_items: int, gauge: float = 2.0) -> ProductGraph:
    random = np.random.default_rng(seed)
    factors = [random.normal(size=(12, 2)), random.normal(size=(7, 1)), random.normal(size=(16, 3))]
    codes = np.stack([random.integers(0, len(some), n_items) for some in factors], axis=1)
    return ProductGraph.from_factors(factors, codes, random.uniform(0.1, 0.3, n_items), 2.0, gauge)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), gauge=st.sampled_from([1.0, 1.5, 2.0]))
def test_items_of_a_product_are_found_in_it(seed: int, gauge: float) -> None:
    graph = product(seed, 400, gauge)
    anchors = np.arange(300)
    placing = LinearPlacing.make(graph, anchors, graph.distances(anchors, anchors))
    assert placing is not None
    new = np.arange(300, 400)
    codes, lengths = placing.place(graph.distances(new, anchors), n_jobs=1)
    assert (codes == graph.codes[new]).mean() > 0.99  # single precision may tell two near hubs wrongly
    is_right = (codes == graph.codes[new]).all(axis=1)
    assert np.allclose(lengths[is_right], graph.lengths[new][is_right], atol=0.02)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), n_jobs=st.integers(1, 3))
def test_the_core_does_what_numpy_does(seed: int, n: int, n_jobs: int) -> None:
    graph = product(seed, 200)
    placing = LinearPlacing.make(graph, np.arange(200), graph.distances())
    assert placing is not None
    target = np.random.default_rng(seed).uniform(0.5, 3, (n, 200)).astype(np.float32)
    codes, left = _core.place(target, **placing.arguments, n_jobs=n_jobs)
    some = {name: np.asarray(value, np.float64) for name, value in placing.arguments.items()}
    powers = target.astype(np.float64) ** 2
    places = powers @ some["weights"].T - some["offsets"]
    length, hub, slope, begin = powers.mean(axis=1) + some["rest"], 0, 0, 0
    for m, factor in enumerate(graph.factors):
        size = int(some["n_dimensions"][m])
        slopes = some["slopes"][slope : slope + factor.n_hubs * size].reshape(-1, size)
        costs = places[:, begin : begin + size] @ slopes.T + some["constants"][hub : hub + factor.n_hubs]
        rows = np.arange(n)
        assert (costs[rows, codes[:, m]] <= costs.min(axis=1) + 1e-3 * (1 + np.abs(costs).max())).all()
        length -= some["shares"][hub + codes[:, m].astype(int)]
        hub, slope, begin = hub + factor.n_hubs, slope + slopes.size, begin + size
    assert np.allclose(left, length, atol=1e-3)
    alone = [_core.place(row[None], **placing.arguments, n_jobs=1) for row in target]
    assert np.array_equal(codes, np.concatenate([found[0] for found in alone]))
    assert np.array_equal(left, np.concatenate([found[1] for found in alone]))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 7), st.integers(0, 10**6))
def test_rows_are_measured(n: int, n_anchors: int, n_features: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, anchors = (random.normal(size=(size, n_features)).astype(np.float32) for size in (n, n_anchors))
    found = _core.measure_rows(rows, anchors, 2)
    assert np.allclose(found, cdist(rows, anchors), rtol=1e-5, atol=1e-6)
    assert np.array_equal(found[n // 2 :], _core.measure_rows(rows[n // 2 :], anchors, 1))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 70), st.integers(0, 10**6))
def test_products_of_a_row_do_not_depend_on_others(n: int, n_others: int, n_features: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, others = (random.normal(size=(size, n_features)).astype(np.float32) for size in (n, n_others))
    found = _core.multiply_rows(rows, others, 2)
    assert np.allclose(found, rows @ others.T, rtol=1e-5, atol=1e-4)
    assert np.array_equal(found[n // 2 :], _core.multiply_rows(rows[n // 2 :], others, 1))
    assert np.array_equal(found[:, : n_others // 2], _core.multiply_rows(rows, others[: n_others // 2], 1))


def test_what_has_no_positions_is_not_placed() -> None:
    ring = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], 1.0)
    codes = np.random.default_rng(0).integers(0, 4, (100, 1))
    graph = ProductGraph.from_factors([ring], codes, np.full(100, 0.1))
    assert LinearPlacing.make(graph, np.arange(100), graph.distances()) is None
    straight = ProductGraph.from_factors([[[0.0], [1.0], [2.0], [3.0]]], codes, np.full(100, 0.1), power=1, gauge=1)
    assert LinearPlacing.make(straight, np.arange(100), straight.distances()) is None
    few = product(0, 20)
    assert LinearPlacing.make(few, np.arange(20), few.distances()) is None


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("weights", np.zeros((2, 200), np.float32), "weights has the shape"),
        ("offsets", np.zeros(1, np.float32), "offsets has 1 entries"),
        ("slopes", np.zeros(1, np.float32), "slopes has 1 entries"),
        ("n_hubs", np.array([0, 7, 16], np.int32), "1 to 65536 hubs"),
        ("n_dimensions", np.array([2], np.int32), "n_dimensions has 1 entries"),
        ("shares", np.zeros(1, np.float32), "shares has 1 entries"),
        ("quarters", 3, "between 4 and 8 quarters"),
    ],
)
def test_the_core_refuses_what_does_not_fit(name: str, value: object, words: str) -> None:
    graph = product(0, 200)
    placing = LinearPlacing.make(graph, np.arange(200), graph.distances())
    assert placing is not None
    with pytest.raises(ValueError, match=words):
        _core.place(graph.distances(), **(placing.arguments | {name: value}), n_jobs=1)
    with pytest.raises(ValueError, match="anchors has the shape"):
        _core.measure_rows(np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32), 1)
    with pytest.raises(ValueError, match="others has the shape"):
        _core.multiply_rows(np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32), 1)
