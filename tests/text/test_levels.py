"""Levels: each is the mean of what is nearest to it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prodige.text.levels import find_levels, nearest_level

VALUES = st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=60)


@given(VALUES, st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_levels_are_means(values: list[float], n_levels: int, seed: int) -> None:
    numbers, importance = np.array(values), np.random.default_rng(seed).uniform(0.5, 2, len(values))
    levels = find_levels(numbers, importance, n_levels)
    assert 1 <= levels.size <= n_levels
    assert (np.diff(levels) > 0).all()
    own = nearest_level(numbers, levels)
    np.testing.assert_array_equal(np.abs(levels[own] - numbers), np.abs(levels - numbers[:, None]).min(axis=1))
    if len(set(values)) <= 1:
        np.testing.assert_allclose(levels, numbers[:1], rtol=1e-6)


def test_more_levels_are_nearer() -> None:
    rng = np.random.default_rng(0)
    values, importance = rng.laplace(size=3000), rng.random(3000)
    errors = []
    for n_levels in (2, 4, 8, 16):
        levels = find_levels(values, importance, n_levels)
        error = importance @ (levels[nearest_level(values, levels)] - values) ** 2
        even = np.linspace(values.min(), values.max(), n_levels).astype(np.float32)
        assert error < importance @ (even[nearest_level(values, even)] - values) ** 2
        errors.append(error)
    assert errors == sorted(errors, reverse=True)
