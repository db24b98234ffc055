"""Edges that are coins: the estimate of what they are worth is exact, and the price meets its target."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import expit

from prodige import Graph
from prodige.compression.paper.bernoulli import estimate_importance, find_penalty

# Items 0 and 1 are the pool; 2, 3 and 4 hang on both. Edge 0 is the one within the pool.
TAIL = np.array([0, 0, 0, 0, 1, 1, 1], dtype=np.int32)
HEAD = np.array([1, 2, 3, 4, 2, 3, 4], dtype=np.int32)
WEIGHT = np.array([0.2, 0.5, 0.7, 0.6, 0.4, 0.9, 0.8])
TARGET = cdist(*[np.random.default_rng(0).normal(size=(5, 2))] * 2)
IN_POOL = np.arange(5) < 2


def losses_of(present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean squared error of each item's distances in one graph."""
    graph = Graph.from_edges(TAIL[present], HEAD[present], WEIGHT[present], n_vertices=5)
    distances = graph.distances().astype(np.float64)
    error = (np.where(np.isinf(distances), 2.0, distances) - TARGET) ** 2
    return np.asarray(error.sum(axis=1) / 4)


def expectations(p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Exact -dR/dp of every edge, and the expectation of its estimate from two graphs, both by enumeration."""
    graphs = np.array(list(itertools.product([False, True], repeat=p.size)))
    chance = np.where(graphs, p, 1 - p).prod(axis=1)
    graphs, chance = graphs[chance > 1e-5], chance[chance > 1e-5]
    losses = np.array([losses_of(present) for present in graphs])
    exact = np.array(
        [-np.sum(chance * losses.mean(axis=1) * np.where(b, 1 / p[e], -1 / (1 - p[e]))) for e, b in enumerate(graphs.T)]
    )
    estimate = sum(
        chance[one]
        * chance[other]
        * estimate_importance(losses[[one, other]], graphs[[one, other]], TAIL, HEAD, p.astype(np.float32), IN_POOL)
        for one, other in itertools.product(range(len(graphs)), repeat=2)
    )
    return exact, np.asarray(estimate)


def test_edges_of_items_get_the_exact_gradient() -> None:
    p = np.array([1 - 1e-6, 0.5, 0.6, 0.7, 0.6, 0.5, 0.8])  # a pool in one piece, so that no item is on others' ways
    exact, estimate = expectations(p)
    np.testing.assert_allclose(estimate[1:], exact[1:], rtol=1e-3, atol=1e-4)
    assert np.ptp(exact[1:]) > 0.1


def test_edges_of_the_pool_get_the_exact_gradient() -> None:
    exact, estimate = expectations(np.array([0.6, 0.5, 0.6, 1 - 1e-6, 0.6, 0.5, 1 - 1e-6]))
    np.testing.assert_allclose(estimate[0], exact[0], rtol=1e-3)
    assert abs(exact[0]) > 0.01


@given(
    st.lists(st.floats(-4, 4), min_size=1, max_size=20),
    st.floats(0.01, 0.99),
    st.lists(st.floats(0.1, 10), min_size=20, max_size=20),
)
def test_the_price_meets_the_target(logits: list[float], share: float, rates: list[float]) -> None:
    theta, speed = np.array(logits, dtype=np.float32), np.array(rates[: len(logits)], dtype=np.float32)
    target = share * len(logits)
    penalty = find_penalty(theta, speed, target)
    expected = expit(theta - speed * np.float32(penalty)).sum()
    if expit(theta).sum() <= target:
        assert penalty == 0
    else:
        assert penalty > 0
        assert abs(expected - target) < 0.01 * len(logits)
