"""Points of hyperbolic space with the right distances."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np
import pytest
import torch

from prodige.baselines import MDS, PoincareMDS, Star
from prodige.baselines.classical import start
from prodige.baselines.poincare import hyperbolic, hyperbolic_start, import_geoopt, landmark_radii
from prodige.metric.space import Space
from prodige.metric.star import star_radii

RNG = np.random.default_rng(6)


def test_distances_match_geoopt() -> None:
    direction = RNG.normal(size=(30, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    points = torch.from_numpy(direction * np.tanh(np.linspace(0, 6, 30) / 2)[:, None])
    expected = import_geoopt().PoincareBall().dist(points[:, None], points[None])
    sources, targets = torch.tensor([0, 7, 29]), torch.tensor([3, 28])
    np.testing.assert_allclose(hyperbolic(points, sources), expected[sources], atol=1e-5)
    np.testing.assert_allclose(hyperbolic(points, sources, targets), expected[sources][:, targets], atol=1e-5)


def test_distances_add_up_along_a_line_to_the_rim() -> None:
    place = np.linspace(-12, 12, 25)
    points = torch.from_numpy(np.tanh(place / 2)[:, None])
    given = hyperbolic(points, torch.arange(25)).numpy()
    np.testing.assert_allclose(given, np.abs(place[:, None] - place[None]), atol=1e-4)


def test_gradient_is_finite_where_points_meet() -> None:
    points = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    hyperbolic(points, torch.arange(4)).sum().backward()  # type: ignore[no-untyped-call]
    assert points.grad is not None
    assert torch.isfinite(points.grad).all()


def test_hyperbolic_points_are_found_again() -> None:
    direction = RNG.normal(size=(60, 2))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    points = torch.from_numpy(direction * np.tanh(RNG.uniform(0, 4, 60) / 2)[:, None])
    matrix = 0.3 * hyperbolic(points, torch.arange(60)).numpy()
    np.fill_diagonal(matrix, 0)
    model = PoincareMDS(2, "precomputed", n_steps=400, random_state=0).fit(matrix)
    assert -model.score(matrix) < 0.01 * matrix.var()
    assert -model.score(matrix) < -0.2 * MDS(2, "precomputed", n_steps=400, random_state=0).fit(matrix).score(matrix)
    assert model.scale_ == pytest.approx(0.3, rel=0.2)
    assert (np.linalg.norm(model.embedding_, axis=1) < 1).all()


def test_better_than_flat_and_star_on_data_of_many_dimensions() -> None:
    points = RNG.normal(size=(120, 30))
    scores = [model.fit(points).score(points) for model in (PoincareMDS(3, n_steps=150, random_state=0), Star())]
    assert scores[0] > scores[1] > MDS(3, n_steps=150, random_state=0).fit(points).score(points)


def test_given_scale_stays() -> None:
    points = RNG.normal(size=(50, 5))
    flat = PoincareMDS(2, scale=100.0, n_steps=200, random_state=0).fit(points)
    assert flat.scale_ == pytest.approx(100)
    # Hardly curved: the same as vectors.
    assert flat.score(points) == pytest.approx(MDS(2, n_steps=200, random_state=0).fit(points).score(points), rel=0.1)
    for scale in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="scale must be a finite number above 0"):
            PoincareMDS(scale=scale).fit(points)


def test_start() -> None:
    space = Space(RNG.normal(size=(90, 10)))
    begin = start(space, 3, np.random.RandomState(0))
    expected = star_radii(space.distances(np.arange(90)).sum(axis=1).astype(np.float64)) / begin.mean_distance
    np.testing.assert_allclose(landmark_radii(begin), np.maximum(expected, 0.05), atol=1e-5)
    few = start(space, 3, np.random.RandomState(0), n_landmarks=45)
    assert np.abs(landmark_radii(few) - expected).mean() < 0.05

    points, scale = hyperbolic_start(begin, None)
    assert points.dtype == torch.float64
    assert (points.norm(dim=1) < 1).all()
    learned = np.mean((hyperbolic(points, torch.arange(90)).numpy() * scale - begin.distances[np.arange(90)]) ** 2)
    fixed, same = hyperbolic_start(begin, 0.5)
    assert same == 0.5
    other = np.mean((hyperbolic(fixed, torch.arange(90)).numpy() * 0.5 - begin.distances) ** 2)
    assert learned < other


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: Any) -> Any:
        if name == "geoopt":
            raise ImportError(name)
        return original(name, *arguments)

    monkeypatch.delitem(sys.modules, "geoopt", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'prodige\[hyperbolic\]'"):
        PoincareMDS().fit([[0.0], [1.0]])
