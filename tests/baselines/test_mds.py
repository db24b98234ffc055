"""Vectors with the right distances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

from prodige.baselines import MDS, PCA
from prodige.baselines.classical import start
from prodige.metric.space import Space

RNG = np.random.default_rng(5)


def test_points_of_few_dimensions_are_found_again() -> None:
    flat = RNG.normal(size=(60, 2)) @ np.linalg.qr(RNG.normal(size=(10, 10)))[0][:2] + 100
    model = MDS(2, n_steps=300, random_state=0).fit(flat)
    assert -model.score(flat) < 1e-4
    other = MDS(2, "precomputed", n_steps=300, random_state=0).fit(squareform(pdist(flat)))
    assert -other.score(squareform(pdist(flat))) < 1e-4


def test_as_good_as_a_second_order_optimiser() -> None:
    points = RNG.normal(size=(30, 6))
    target = pdist(points)
    i, j = np.triu_indices(30, 1)

    def stress(flat: np.ndarray) -> tuple[float, np.ndarray]:
        x = flat.reshape(30, 2)
        difference = x[i] - x[j]
        length = np.linalg.norm(difference, axis=1)
        force = (2 * (length - target) / length)[:, None] * difference / target.size
        gradient = np.zeros_like(x)
        np.add.at(gradient, i, force)
        np.add.at(gradient, j, -force)
        return float(np.mean((length - target) ** 2)), gradient.ravel()

    begin = start(Space(points), 2, np.random.RandomState(0))
    peer = minimize(stress, begin.embedding.ravel() * begin.mean_distance, jac=True, method="L-BFGS-B").fun
    ours = -MDS(2, n_steps=500, random_state=0).fit(points).score(points)
    assert ours < 1.05 * peer


def test_better_than_pca_and_ever_better() -> None:
    points = RNG.normal(size=(150, 20))
    model = MDS(3, n_steps=200, random_state=0).fit(points)
    assert model.score(points) > 0.5 * PCA(3).fit(points).score(points)
    assert len(model.history_) == 200
    first, last = (np.mean([record.loss for record in part]) for part in (model.history_[:10], model.history_[-10:]))
    assert last < 0.95 * first
    assert last == pytest.approx(-model.score(points), rel=0.1)
    assert 0 < model.history_[0].seconds < model.history_[-1].seconds


def test_bad_input() -> None:
    points = RNG.normal(size=(10, 3))
    with pytest.raises(ValueError, match="n_components must be between 1"):
        MDS(0).fit(points)
    with pytest.raises(ValueError, match="learning_rate must be a finite number above 0, got 0"):
        MDS(learning_rate=0).fit(points)
    with pytest.raises(ValueError, match="n_steps must be between 1"):
        MDS(n_steps=0).fit(points)
