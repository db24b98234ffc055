"""Landmarks: full blocks, each item equally often, the right distances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from prodige import _core
from prodige.metric import landmarks
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space


def draw(n_items: int, n_landmarks: int, seed: int = 0) -> tuple[Landmarks, NDArray[np.float64]]:
    points = np.random.default_rng(1).normal(size=(n_items, 3))
    return Landmarks.draw(Space(points), n_landmarks, np.random.RandomState(seed)), points


@given(n_items=st.integers(2, 300), n_landmarks=st.sampled_from([_core.LANES, 100, 4096]))
@settings(max_examples=60, deadline=None)
def test_landmarks(n_items: int, n_landmarks: int) -> None:
    drawn, points = draw(n_items, n_landmarks)
    sources = drawn.sources
    assert sources.dtype == np.int32
    assert sources.size % _core.LANES == 0
    assert drawn.n_blocks == sources.size // _core.LANES > 0
    assert drawn.n_items == n_items
    counts = np.bincount(sources, minlength=n_items)
    if n_items <= min(n_landmarks, 8 * _core.LANES):  # all of them, equally often
        assert counts.min() == counts.max() >= 1
        assert sources.size == math.lcm(n_items, _core.LANES)
    else:  # each once at most, as many as full blocks hold
        assert counts.max() == 1
        assert sources.size == min(n_items, n_landmarks) // _core.LANES * _core.LANES
    assert drawn.target.shape == (n_items, sources.size)
    assert drawn.target.dtype == np.float32
    np.testing.assert_allclose(drawn.target, cdist(points, points[sources]), atol=1e-5)
    assert (drawn.target[sources, np.arange(sources.size)] == 0).all()


def test_draw_follows_the_seed() -> None:
    first, again, other = draw(500, 64, 3)[0], draw(500, 64, 3)[0], draw(500, 64, 4)[0]
    assert first.sources.tolist() == again.sources.tolist() != other.sources.tolist()
    np.testing.assert_array_equal(first.target, again.target)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landmarks, "_MOST_DISTANCES", 500 * 40)
    assert draw(500, 4096)[0].sources.size == 32
    monkeypatch.setattr(landmarks, "_MOST_DISTANCES", 1)
    assert draw(500, 4096)[0].sources.size == _core.LANES


def test_scale() -> None:
    drawn, points = draw(50, 4096)
    assert drawn.scale == pytest.approx(cdist(points, points).mean(), rel=1e-5)
    assert Landmarks.draw(Space(np.ones((40, 2))), 64, np.random.RandomState(0)).scale == 1
