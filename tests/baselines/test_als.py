"""ALS: at its fixed point, every vector solves the least squares given all others."""

from __future__ import annotations

import numpy as np
import pytest

from prodige.baselines import ALS

pytest.importorskip("implicit")

TABLE = np.random.default_rng(0).random((30, 12)) < 0.3


def test_a_fixed_point() -> None:
    alpha, ridge = 3.0, 0.5
    model = ALS(2, ridge, alpha, n_iterations=500, random_state=0).fit(TABLE)
    items = model.item_factors_.astype(float)
    for user in range(30):
        confidence = np.where(TABLE[user], alpha, 1.0)
        left = (items.T * confidence) @ items + ridge * np.eye(2)
        target = np.linalg.solve(left, items.T @ (confidence * TABLE[user]))
        np.testing.assert_allclose(model.user_factors_[user], target, atol=2e-3)


def test_seeds() -> None:
    first, again, other = (ALS(2, n_iterations=1, random_state=seed).fit(TABLE).user_factors_ for seed in (0, 0, 1))
    assert first.tobytes() == again.tobytes() != other.tobytes()
    drawn = np.random.RandomState(0)
    one, two = (ALS(2, n_iterations=1, random_state=drawn).fit(TABLE).user_factors_ for _ in range(2))
    assert one.tobytes() != two.tobytes()
