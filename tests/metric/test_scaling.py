"""Classical scaling from landmarks: Euclidean distances come back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prodige.metric.scaling import classical_scaling, largest_eigenvectors, scaling_basis

POINTS = np.random.default_rng(4).normal(size=(80, 3))
DISTANCES = cdist(POINTS, POINTS)


def test_enough_components_give_all_distances_back() -> None:
    for n_landmarks in (80, 10):
        landmarks = np.arange(n_landmarks)
        embedding = classical_scaling(DISTANCES[landmarks], landmarks, 3)
        np.testing.assert_allclose(cdist(embedding, embedding), DISTANCES, atol=1e-8)


def test_directions_without_extent_are_zero() -> None:
    embedding = classical_scaling(DISTANCES, np.arange(80), 5)
    assert embedding.shape == (80, 5)
    assert (embedding[:, 3:] == 0).all()
    assert (classical_scaling(np.zeros((4, 4)), np.arange(4), 2) == 0).all()


@pytest.mark.parametrize("rank", [3, 400])
def test_few_of_many_eigenvectors_are_the_largest(rank: int) -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(400, rank))
    matrix = half @ np.diag(rng.choice([-1.0, 1.0, 2.0], rank)) @ half.T
    values, vectors = largest_eigenvectors(matrix, 20)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:20], atol=1e-3 * np.abs(matrix).max())
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-2 * np.abs(matrix).max())
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(20), atol=1e-8)
    again = largest_eigenvectors(matrix, 20)
    assert (values.tobytes(), vectors.tobytes()) == (again[0].tobytes(), again[1].tobytes())


def test_landmarks_that_are_all_alike() -> None:
    assert not scaling_basis(np.zeros((400, 400)), 20)[1].any()
