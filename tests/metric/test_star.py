"""The closed form is the least-squares optimum, and the short form comes near it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prodige.metric.star import star_radii, star_radii_of_means


@pytest.mark.parametrize("n", [3, 4, 30])
def test_no_radius_can_be_moved_for_the_better(n: int) -> None:
    points = np.random.default_rng(n).normal(size=(n, 2))
    matrix = cdist(points, points)
    radii = star_radii(matrix.sum(axis=1))
    residual = radii[:, None] + radii - matrix
    np.fill_diagonal(residual, 0)
    np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-9)


def test_few_items() -> None:
    np.testing.assert_array_equal(star_radii(np.zeros(1)), [0])
    np.testing.assert_array_equal(star_radii(np.array([3.0, 3.0])), [1.5, 1.5])


def test_means_of_many_items_say_the_same() -> None:
    points = np.random.default_rng(0).normal(size=(800, 20))
    matrix = cdist(points, points)
    exact = star_radii(matrix.sum(axis=1))
    np.testing.assert_allclose(star_radii_of_means(matrix.mean(axis=1)), exact, rtol=0.01)
    assert star_radii_of_means(np.ones(3, dtype=np.float32)).dtype == np.float32
