"""Graphs that fit into a number of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from corpora import make_problem
from prodige.text import encoding
from prodige.text.fitting import RoomError, Settings, strongest
from prodige.text.ngrams import Orders
from prodige.text.ratios import Linear, Penalty

SETTINGS = Settings(Orders(), Penalty(1e-4), 8)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("room", [150, 600, 10**6])
def test_the_room_is_used(n_classes: int, room: int) -> None:
    problem, documents = make_problem(n_classes, room)
    graph = problem.fit(SETTINGS)
    size = len(encoding.encode(graph))
    assert size <= room
    if room == 600:
        assert size > 0.85 * room
    scores = graph.scores(documents, 1)
    found = scores.argmax(axis=1) if n_classes > 2 else scores[:, 0] > 0
    assert np.mean(found == problem.classes) > (0.85 if room > 150 else 0.6)


def test_no_room() -> None:
    problem, _ = make_problem(2, 3)
    with pytest.raises(RoomError) as caught:
        problem.fit(SETTINGS)
    assert 5 < caught.value.n_missing < 200


def test_trials_come_near_the_room() -> None:
    problem, _ = make_problem(2, 700)
    graph = problem.attempt(SETTINGS)
    assert 0.8 < len(encoding.encode(graph)) / 700 < 1.1
    assert problem.attempt(SETTINGS, 25).vertex.size == 25


def test_parts_of_a_problem() -> None:
    problem, _ = make_problem(2, 700)
    texts = np.arange(0, 300, 3)
    part = problem.take(texts)
    np.testing.assert_array_equal(part.classes, problem.classes[texts])
    assert part.candidates.features.n_texts == 100
    assert part.gain > problem.gain  # a trial ends sooner


def test_strongest() -> None:
    problem, _ = make_problem(2, 700)
    features = problem.candidates.features
    weights = np.random.default_rng(0).normal(size=(features.n_columns, 1))
    weights[::2] = 0
    worth = np.abs(weights[:, 0]) * np.sqrt(features.frequencies)
    keep = strongest(Linear(weights, np.zeros(1)), features, 20)[:, 0]
    assert keep.sum() == 20
    assert worth[keep].min() >= worth[~keep].max()
    assert strongest(Linear(weights, np.zeros(1)), features, 10**6).sum() == (worth > 0).sum()
