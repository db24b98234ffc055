"""t-SNE: affinities of the wanted perplexity, repulsion as summed over all pairs, crowds apart."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from prodige.drawing.tsne import Grid, affinities, attracting, descend, joint_affinities


def test_affinities_have_the_perplexity() -> None:
    distances = np.sort(np.random.default_rng(0).uniform(0.1, 2, (50, 30)), axis=1) * np.logspace(-20, 20, 50)[:, None]
    weights = affinities(distances, 8)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=1)
    np.testing.assert_allclose(np.exp(entropy), 8, rtol=1e-4)
    assert (np.diff(weights, axis=1) <= 0).all()  # nearer ones count more


def test_affinities_of_ties_and_gaps() -> None:
    distances = np.array([[1.0, 1.0, 1.0, np.inf], [0.0, 0.0, 0.0, 0.0], [np.inf] * 4])
    np.testing.assert_allclose(affinities(distances, 2), np.array([[1 / 3, 1 / 3, 1 / 3, 0], [0.25] * 4, [0.0] * 4]))


def test_joint_affinities_are_symmetric() -> None:
    rng = np.random.default_rng(0)
    neighbors = np.stack([rng.permutation(np.delete(np.arange(20), row))[:6] for row in range(20)])
    neighbors[3, 4:] = -1
    matrix = joint_affinities(neighbors, rng.random((20, 6)), 3).toarray()
    np.testing.assert_array_equal(matrix, matrix.T)
    assert matrix.sum() == pytest.approx(1)
    joined = np.zeros((20, 20), bool)
    joined[np.repeat(np.arange(20), 6)[neighbors.ravel() >= 0], neighbors[neighbors >= 0]] = True
    np.testing.assert_array_equal(matrix > 0, joined | joined.T)


def pairs(places: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All differences of places, and the kernel of each pair."""
    return places[:, None] - places[None], 1 / (1 + cdist(places, places, "sqeuclidean"))


@pytest.mark.parametrize("extent", [1e-3, 3.0, 20.0])
def test_repulsion_is_the_sum_over_all_pairs(extent: float) -> None:
    places = np.random.default_rng(0).normal(scale=extent, size=(300, 2))
    difference, kernel = pairs(places)
    exact = (kernel[..., None] ** 2 * difference).sum(axis=1) / (kernel.sum() - len(places))
    found = Grid().repulsion(places)
    assert np.abs(found - exact).mean() < 0.15 * np.abs(exact).mean()  # near pairs are the hardest


def test_attraction_is_the_sum_over_neighbours() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(30, 2))
    neighbors = (np.arange(30)[:, None] + np.array([1, 2, 7])) % 30
    matrix = joint_affinities(neighbors, rng.random((30, 3)), 2)
    difference, kernel = pairs(places)
    exact = ((matrix.toarray() * kernel)[..., None] * difference).sum(axis=1)
    rows = np.repeat(np.arange(30), np.diff(matrix.indptr))
    np.testing.assert_allclose(attracting(places, matrix, rows), exact, atol=1e-12)


def test_crowds_come_apart() -> None:
    points = np.random.default_rng(0).normal(size=(150, 5)) + 8 * np.eye(5)[np.arange(150) % 3]
    distances = cdist(points, points)
    neighbors = np.argsort(distances, axis=1)[:, 1:16]
    start = np.random.default_rng(1).normal(size=(150, 2))
    places = descend(start, neighbors, np.take_along_axis(distances, neighbors, axis=1), 5)
    near = np.argsort(cdist(places, places), axis=1)[:, 1:6]
    assert (near % 3 == np.arange(150)[:, None] % 3).all()
