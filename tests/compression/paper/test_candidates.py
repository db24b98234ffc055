"""The pool: where compression the paper's way starts from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from clusters import clusters
from prodige.compression.paper.candidates import StarStart, choose_n_random, join, most_random, relative_variance
from prodige.metric.space import Space


def test_the_start_reproduces_groups() -> None:
    # All items of a group are alike: 2 + 0.5 + 2 from those of another group, 2 + 2 from each other.
    group = np.arange(200) % 4
    matrix = np.where(group[:, None] == group, 4.0, 4.5) * (1 - np.eye(200))
    space, pool = Space(matrix, metric="precomputed"), np.arange(4)
    start = StarStart.of(space, pool, np.random.RandomState(0))
    weight = start.weight[4:] * start.scale
    np.testing.assert_allclose(weight[group[4:, None] == np.arange(4)], 2.0, atol=0.05)
    np.testing.assert_allclose(weight[group[4:, None] != np.arange(4)], 2.5, atol=0.05)
    edges = join(space, pool, start, n_neighbors=0, n_jobs=1)
    assert edges.size == 196 * 4 + 6
    np.testing.assert_allclose(edges.weight[edges.head == 199], start.weight[199], rtol=1e-5)


def test_candidates_are_unique() -> None:
    space, pool = Space(clusters(60)), np.array([3, 7, 20])
    edges = join(space, pool, StarStart.of(space, pool, np.random.RandomState(0)), n_neighbors=5, n_jobs=1)
    assert (edges.tail < edges.head).all()
    assert np.unique(edges.tail * 60 + edges.head).size == edges.size
    degree = np.bincount(np.concatenate([edges.tail, edges.head]), minlength=60)
    assert (degree[pool] == 59).all()
    assert (degree >= 7).all()


@pytest.mark.parametrize("n_items", [2, 3, 10, 1000])
@pytest.mark.parametrize("variance", [0.0, 1e-4, 0.1, 10.0])
def test_size_of_the_pool(n_items: int, variance: float) -> None:
    least, most = n_items - 1, n_items * (n_items - 1) // 2
    n_random = choose_n_random(n_items, least, variance)
    assert 1 <= n_random <= most_random(n_items, least)
    assert n_random * (n_random - 1) / 2 <= least
    assert choose_n_random(n_items, most, variance) == most_random(n_items, most) == n_items


def test_relative_variance() -> None:
    distances = pdist(clusters(50))
    found = relative_variance(Space(clusters(50)), np.random.RandomState(0))
    assert found == pytest.approx(distances.var() / distances.mean() ** 2, rel=1e-4)
    assert relative_variance(Space(np.zeros((5, 2))), np.random.RandomState(0)) == 0
