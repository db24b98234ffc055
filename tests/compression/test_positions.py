"""Positions of hubs against finite differences, and wishes that can be met."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prodige.compression.positions import Floats, distance_powers, move_hubs, newton_step, slopes

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_distance_powers(power: float) -> None:
    positions = RNG.normal(size=(9, 3))
    np.testing.assert_allclose(distance_powers(positions, power), cdist(positions, positions) ** power, atol=1e-12)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_slopes_are_those_of_finite_differences(power: float) -> None:
    positions = RNG.normal(size=(6, 2))
    weight = RNG.random((6, 6))
    weight = weight + weight.T
    np.fill_diagonal(weight, 0)
    wish = distance_powers(RNG.normal(size=(6, 2)), power)

    def residuals(flat: Floats) -> Floats:
        some = flat.reshape(6, 2)
        half = np.triu_indices(6, 1)
        return np.sqrt(weight[half]) * (distance_powers(some, power) - wish)[half]

    step = 1e-6
    jacobian = np.stack(
        [(residuals(positions.ravel() + step * unit) - residuals(positions.ravel() - step * unit)) / (2 * step)
         for unit in np.eye(12)],
        axis=1,
    )  # fmt: skip
    gradient, stiffness = slopes(positions, weight, wish, power)
    np.testing.assert_allclose(gradient.ravel(), jacobian.T @ residuals(positions.ravel()), atol=1e-6)
    matrix = jacobian.T @ jacobian
    damping = 0.01 * (np.diag(matrix) + np.diag(matrix).mean())
    found = newton_step(positions, gradient, stiffness, 0.01)
    left = (matrix + np.diag(damping)) @ found.ravel() - gradient.ravel()
    assert np.linalg.norm(left) < 2e-3 * np.linalg.norm(gradient)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_wishes_that_can_be_met_are(power: float) -> None:
    truth = RNG.normal(size=(12, 3))
    positions = truth + 0.2 * RNG.normal(size=truth.shape)
    weights = RNG.random((12, 12))
    for _ in range(30):
        residuals = weights * (distance_powers(positions, power) - distance_powers(truth, power))
        positions = move_hubs(positions, residuals, weights, power)
    np.testing.assert_allclose(distance_powers(positions, power), distance_powers(truth, power), atol=1e-4)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_never_worse(power: float) -> None:
    """Also where hubs are in one place, nobody is at some, or wishes contradict each other."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        positions = random.normal(size=(8, 2)) * (random.random(8) < 0.7)[:, None]
        weights = random.random((8, 8)) * (random.random((8, 8)) < 0.5)
        wish = 5 * random.random((8, 8))
        residuals = weights * (distance_powers(positions, power) - wish)

        def loss(some: Floats, weights: Floats = weights, wish: Floats = wish) -> float:
            return float((weights * (distance_powers(some, power) - wish) ** 2).sum())

        moved = move_hubs(positions, residuals, weights, power, n_steps=3)
        assert np.isfinite(moved).all()
        assert loss(moved) <= loss(positions) * (1 + 1e-9)


def test_nobody_anywhere() -> None:
    positions = RNG.normal(size=(4, 2))
    assert move_hubs(positions, np.zeros((4, 4)), np.zeros((4, 4)), 2.0) is positions
