"""Objectives: near pairs, and pairs set aside."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prodige import Graph
from prodige.compression.objective import NearPairs, Validation, near_weight
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space

X = np.random.default_rng(0).normal(size=(400, 4))
SPACE = Space(X)


def test_weights_rise_from_one_objective_to_the_other() -> None:
    weights = [near_weight(value) for value in (0, 0.25, 0.5, 0.75, 1)]
    assert weights == sorted(weights)
    assert (weights[0], weights[-1]) == (near_weight("distances"), near_weight("neighbors"))


def test_near_pairs_are_the_nearest() -> None:
    near = NearPairs.find(SPACE, 0.5, 128)
    truth = cdist(X, X)
    np.fill_diagonal(truth, np.inf)
    np.testing.assert_array_equal(near.items, np.argsort(truth, axis=1)[:, :64])
    np.testing.assert_allclose(near.distances, np.sort(truth, axis=1)[:, :64], rtol=1e-5)
    assert near.weight * near.n_near == 0.5 * 128
    assert NearPairs.find(SPACE, 0.0, 128).n_near == 0


@pytest.mark.parametrize("n_landmarks", [64, 4096])
def test_validation_measures_pairs_set_aside(n_landmarks: int) -> None:
    """Only those of items that are no landmarks, if there are any."""
    random = np.random.RandomState(0)
    landmarks = Landmarks.draw(SPACE, n_landmarks, random)
    near = NearPairs.find(SPACE, 1.0, landmarks.sources.size)
    validation = Validation(SPACE, landmarks, near, 1.0, random)
    if n_landmarks == 64:
        assert not np.isin(validation.targets, landmarks.sources).any()
    i, j = np.triu_indices(400, 1)
    truth = cdist(X, X)
    assert validation.measure(Graph.from_edges(i, j, truth[i, j]), 1).objective == pytest.approx(0, abs=1e-9)
    shifted = Graph.from_edges(i, j, truth[i, j] + 10)  # longer than any detour could be
    assert validation.measure(shifted, 1).objective == pytest.approx(100 + 100, rel=1e-4)
