"""The closed form is the least-squares optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from prodige.baselines import Constant, Star
from prodige.metric.star import star_radii


def least_squares(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    i, j = np.triu_indices(len(matrix), 1)
    design = np.zeros((i.size, len(matrix)))
    design[np.arange(i.size), i] = design[np.arange(i.size), j] = 1
    return np.asarray(np.linalg.lstsq(design, matrix[i, j], rcond=None)[0], dtype=np.float64)


@settings(deadline=None, max_examples=30)
@given(st.integers(3, 20), st.integers(0, 2**32 - 1))
def test_radii_match_least_squares(n: int, seed: int) -> None:
    matrix = squareform(np.random.default_rng(seed).uniform(0, 1, n * (n - 1) // 2))
    np.testing.assert_allclose(star_radii(matrix.sum(axis=1)), least_squares(matrix), atol=1e-9)
    np.testing.assert_allclose(Star("precomputed").fit(matrix).radius_, least_squares(matrix), atol=1e-5)


def test_a_star_is_found_again() -> None:
    radius = np.random.default_rng(0).uniform(0.1, 1, 30)
    matrix = radius[:, None] + radius[None]
    np.fill_diagonal(matrix, 0)
    model = Star("precomputed").fit(matrix)
    np.testing.assert_allclose(model.radius_, radius, rtol=1e-5)
    assert model.score(matrix) == pytest.approx(0, abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 20), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_no_radius_is_negative_in_a_metric_space(n: int, n_columns: int, seed: int) -> None:
    points = np.random.default_rng(seed).standard_cauchy((n, n_columns))
    matrix = squareform(pdist(points))
    assert (star_radii(matrix.sum(axis=1)) >= -1e-9 * matrix.max()).all()


def test_negative_radii_are_kept_and_negative_distances_are_not() -> None:
    # Squares break the triangle inequality: opposite points are four times as far apart as from the middle.
    points = np.zeros((10, 1))
    points[4:7], points[7:] = 1, -1
    matrix = squareform(pdist(points)) ** 2
    model = Star("sqeuclidean").fit(points)
    assert (model.radius_[:4] < 0).all()
    np.testing.assert_allclose(model.radius_, least_squares(matrix), atol=1e-5)
    assert model.distances([0], [1])[0, 0] == 0
    i, j = np.triu_indices(10, 1)
    unclipped = np.mean((model.radius_[i] + model.radius_[j] - matrix[i, j]) ** 2)
    assert -model.score(points) < unclipped


def test_better_than_a_constant() -> None:
    points = np.random.default_rng(2).normal(size=(60, 8))
    assert Star().fit(points).score(points) > Constant().fit(points).score(points)
