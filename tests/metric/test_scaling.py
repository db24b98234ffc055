"""Classical scaling from landmarks: Euclidean distances come back."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from prodige.metric.scaling import classical_scaling

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
