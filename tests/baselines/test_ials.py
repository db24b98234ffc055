"""IALS: against a solver in plain NumPy, and with widths that the core does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prodige.baselines import IALS
from tastes import tastes


def solve(weights: np.ndarray, partners: np.ndarray, alpha: float, penalty: float) -> np.ndarray:
    """One side given the other, a row at a time."""
    rows = []
    for row in weights:
        ridge = penalty * (row.sum() + alpha * len(partners))
        matrix = (partners.T * (row + alpha)) @ partners + ridge * np.eye(partners.shape[1])
        rows.append(np.linalg.solve(matrix, partners.T @ row))
    return np.array(rows)


@pytest.mark.parametrize("width", [3, 8, 11])
def test_against_numpy(width: int) -> None:
    table = tastes(30, 20)
    table.data[::3] = 4  # interactions count as 1 on average
    model = IALS(width, alpha=0.1, penalty=0.05, n_iterations=2, random_state=0, n_jobs=1).fit(table)
    weights = table.toarray() / table.data.mean()
    items = np.random.RandomState(0).standard_normal((20, width)) * 0.1 / np.sqrt(width)
    for _ in range(2):
        users = solve(weights, items, 0.1, 0.05)
        items = solve(weights.T, users, 0.1, 0.05)
    users = solve(weights, items, 0.1, 0.05)
    assert model.item_factors_.shape == (20, width)
    assert_allclose(model.scores(np.arange(30)), users @ items.T, atol=2e-3)


@pytest.mark.parametrize(("name", "value"), [("n_factors", 0), ("alpha", 0.0), ("penalty", -1.0), ("n_iterations", 0)])
def test_bad_parameters(name: str, value: float) -> None:
    bad: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=name):
        IALS(**bad).fit(tastes(20, 10))
