"""Exponents follow the data."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from prodige.compression.budget import Budget
from prodige.compression.exponents import METRIC, OTHERS, choose_exponents
from prodige.metric.space import Space

BUDGET = Budget(numbers=8)
RNG = np.random.default_rng(0)


def test_candidates_are_metrics_where_they_must_be() -> None:
    assert all(power <= gauge for power, gauge in METRIC)
    assert all(power > gauge for power, gauge in OTHERS)


def test_lengths_of_paths_are_no_sides_of_triangles() -> None:
    i = np.arange(1, 300)
    tree = csr_array((0.5 + RNG.random(299), (i, RNG.integers(0, i))), shape=(300, 300))
    space = Space(shortest_path(tree, directed=False), "precomputed")
    assert choose_exponents(space, BUDGET) == (1.0, 1.0)
    assert choose_exponents(space, BUDGET, metric_only=False)[1] == 1.0


def test_euclidean_distances_are_recognised_in_a_matrix() -> None:
    X = RNG.normal(size=(300, 6))
    space = Space(np.linalg.norm(X[:, None] - X, axis=2), "precomputed")
    assert choose_exponents(space, BUDGET) == (2.0, 2.0)


def test_no_trial_in_a_hurry() -> None:
    space = Space(RNG.random((100, 5)), "manhattan")
    assert choose_exponents(space, BUDGET, hurried=True) == (2.0, 2.0)
