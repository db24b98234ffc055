"""Where baselines start from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prodige.baselines import classical
from prodige.baselines.classical import best_scale, start
from prodige.metric.space import Space

POINTS = np.random.default_rng(4).normal(size=(80, 3))
DISTANCES = cdist(POINTS, POINTS)


def test_start_is_in_units_of_the_mean_distance() -> None:
    found = start(Space(100 * POINTS), 3, np.random.RandomState(0), n_landmarks=80)
    mean = 100 * DISTANCES.sum() / (80 * 79)
    assert found.mean_distance == pytest.approx(mean, rel=1e-5)
    np.testing.assert_allclose(found.distances, 100 * DISTANCES / mean, atol=1e-4)
    # Up to the noise.
    np.testing.assert_allclose(cdist(found.embedding, found.embedding), found.distances, atol=0.15)
    few = start(Space(POINTS), 2, np.random.RandomState(0), n_landmarks=20)
    assert few.distances.shape == (20, 80)
    np.testing.assert_array_equal(few.landmarks, np.unique(few.landmarks))
    np.testing.assert_allclose(few.distances[3] * few.mean_distance, DISTANCES[few.landmarks[3]], atol=1e-4)


def test_many_items_have_few_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classical, "_MOST_DISTANCES", 80 * 10)
    assert start(Space(POINTS), 2, np.random.RandomState(0)).landmarks.size == 10
    assert start(Space(POINTS), 30, np.random.RandomState(0)).landmarks.size == 31


def test_start_without_distances() -> None:
    assert start(Space(np.ones((4, 2))), 2, np.random.RandomState(0)).mean_distance == 1


def test_best_scale() -> None:
    given = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    target = np.array([2.0, 5.0, 5.0], dtype=np.float32)
    assert best_scale(given, target) == pytest.approx(np.linalg.lstsq(given[:, None], target, rcond=None)[0][0])
    assert best_scale(np.zeros(3, np.float32), target) == 1
