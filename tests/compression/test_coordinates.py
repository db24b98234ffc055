"""Coordinates: those of PCA for Euclidean distances, and what their errors mean for distances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prodige.compression.coordinates import Coordinates, find_coordinates
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space

X = np.random.default_rng(0).normal(size=(400, 6)) * [4, 3, 2, 1, 1, 1]


def coordinates_of(n_directions: int = 96) -> tuple[Coordinates, float]:
    landmarks = Landmarks.draw(Space(X), 300, np.random.RandomState(0))
    return find_coordinates(landmarks, (2.0, 2.0), n_directions=n_directions), landmarks.scale


def test_distances_between_places_are_those_of_the_data() -> None:
    coordinates, scale = coordinates_of()
    assert coordinates.places.shape == (400, 6)
    np.testing.assert_allclose(scale * cdist(coordinates.places, coordinates.places), cdist(X, X), atol=1e-3)
    some = X[coordinates.judges]
    np.testing.assert_allclose(scale**2 * coordinates.squares, cdist(some, some) ** 2, atol=1e-3)
    assert coordinates_of(2)[0].places.shape == (400, 2)


def test_means_are_of_squares_to_landmarks() -> None:
    coordinates, scale = coordinates_of()
    squares = cdist(X, X[coordinates.landmarks], "sqeuclidean")
    n_others = (squares > 0).sum(axis=1)
    np.testing.assert_allclose(scale**2 * coordinates.means, squares.sum(axis=1) / n_others, rtol=1e-4)


def test_influences_say_what_errors_do_to_distances() -> None:
    """By trying: places moved at random along one direction, and lengths that are a little off."""
    coordinates, _ = coordinates_of()
    judges = coordinates.judges
    before = cdist(coordinates.places[judges], coordinates.places[judges])
    noise = 1e-4 * np.random.default_rng(1).choice([-1.0, 1.0], judges.size)
    for k in (0, 3):
        moved = coordinates.places[judges].copy()
        moved[:, k] += noise
        # Both ends of a pair are off.
        change = ((cdist(moved, moved) - before) ** 2).mean() / (2 * 1e-8)
        assert change == pytest.approx(coordinates.influences[k], rel=0.1)
    squares = before**2 + noise[:, None] + noise
    np.fill_diagonal(squares, 0)
    change = ((np.sqrt(squares) - before) ** 2).mean() / (2 * 1e-8)
    assert change == pytest.approx(coordinates.influence_of_lengths, rel=0.1)


def test_of_one_item_there_are_none() -> None:
    landmarks = Landmarks.draw(Space(np.zeros((1, 2))), 1, np.random.RandomState(0))
    assert find_coordinates(landmarks, (2.0, 2.0)).places.shape == (1, 0)
