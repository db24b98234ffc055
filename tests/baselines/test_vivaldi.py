"""Coordinates with a height."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from prodige.baselines import MDS, Star, Vivaldi
from prodige.baselines.classical import start
from prodige.baselines.vivaldi import best_size
from prodige.metric.space import Space

RNG = np.random.default_rng(6)


def test_a_network_with_access_links_is_found_again() -> None:
    places, links = RNG.normal(size=(60, 2)), RNG.uniform(0.2, 1, 60)
    matrix = squareform(pdist(places)) + links[:, None] + links
    np.fill_diagonal(matrix, 0)
    model = Vivaldi(3, "precomputed", n_steps=600, random_state=0).fit(matrix)
    assert -model.score(matrix) < 1e-3 * matrix.var()
    np.testing.assert_allclose(model.height_, links, atol=0.1)
    np.testing.assert_allclose(pdist(model.embedding_), pdist(places), atol=0.2)


def test_one_number_is_a_star() -> None:
    points = RNG.normal(size=(80, 10))
    model = Vivaldi(1, n_steps=300, random_state=0).fit(points)
    assert model.embedding_.shape == (80, 0)
    assert model.score(points) == pytest.approx(Star().fit(points).score(points), rel=0.01)


def test_heights_pay_in_many_dimensions() -> None:
    points = RNG.normal(size=(150, 30))
    model = Vivaldi(4, n_steps=200, random_state=0).fit(points)
    assert model.score(points) > 0.5 * MDS(4, n_steps=200, random_state=0).fit(points).score(points)
    assert model.score(points) > Star().fit(points).score(points)
    assert len(model.history_) == 200


def test_starts_where_the_best_size_is() -> None:
    points = RNG.normal(size=(100, 30))
    begin = start(Space(points), 2, np.random.RandomState(0))
    where, heights = best_size(begin, 2)
    sizes = np.linalg.norm(where, axis=1) / np.linalg.norm(begin.embedding, axis=1)
    assert sizes.std() < 1e-9
    assert sizes[0] < 1  # heights take their part
    predicted = squareform(pdist(where)) + heights[:, None] + heights
    np.fill_diagonal(predicted, 0)
    star = np.square(Star().fit(points).distances(np.arange(100)) / begin.mean_distance - begin.distances).mean()
    assert np.square(predicted - begin.distances).mean() < 1.05 * star


def test_bad_input() -> None:
    points = RNG.normal(size=(10, 3))
    with pytest.raises(ValueError, match="n_components must be between 1"):
        Vivaldi(0).fit(points)
    with pytest.raises(ValueError, match="learning_rate must be a finite number above 0, got -1"):
        Vivaldi(learning_rate=-1).fit(points)
