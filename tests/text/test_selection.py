"""Blocks that are set aside, and the search among settings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import make_problem
from prodige.text.fitting import Settings
from prodige.text.ngrams import Orders
from prodige.text.ratios import Penalty
from prodige.text.selection import Selection, Trial, folds

START = Settings(Orders(3, False, False), Penalty(1e-5, 1e-3), 12)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=200))
def test_folds(labels: list[int]) -> None:
    classes = np.unique(labels, return_inverse=True)[1]
    counts = np.bincount(classes)
    seen: list[int] = []
    for learned, held_out in folds(classes):
        assert sorted([*learned, *held_out]) == list(range(classes.size))
        assert set(classes[learned]) == set(classes)
        seen += held_out.tolist()
    assert sorted(seen) == np.flatnonzero(counts[classes] > 1).tolist()


def test_neighbors_are_set_aside_together() -> None:
    classes = np.tile([0, 1], 20_000)
    ((learned, held_out),) = folds(classes)  # many texts: one fold is enough
    assert held_out.size == 8000
    assert learned.size == 32_000
    for label in (0, 1):
        own = held_out[classes[held_out] == label]
        assert (np.diff(own) > 2).sum() == 3  # four blocks


def test_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes downhill from where it starts, trying nothing twice, to the best of its neighbours."""
    tried: list[Settings] = []

    def loss(settings: Settings) -> float:
        distance = abs(np.log(settings.penalty.ridge / 3e-4)) + abs(np.log(settings.penalty.dropout / 2e-4))
        words = 2 * abs(settings.orders.longest - 2) + (not settings.orders.beginnings) + (not settings.orders.skips)
        return float(distance + words + abs(settings.n_levels - 18) / 10)

    def attempt(self: Selection, settings: Settings | None) -> bool:
        if settings is None or settings in tried:
            return False
        tried.append(settings)
        if self.best is None or loss(settings) < self.best.loss:
            self.best = Trial(settings, loss(settings), 0.0, 1.0, None)  # type: ignore[arg-type]
            return True
        return False

    monkeypatch.setattr(Selection, "_attempt", attempt)
    problem, documents = make_problem(2, 700)
    selection = Selection(problem, documents, lambda trial: False)
    selection.run(START)
    assert selection.best is not None
    best = selection.best.settings
    assert (best.orders, best.n_levels) == (Orders(2, True, True), 18)
    assert best.penalty == pytest.approx((1e-5 * 3**3, 1e-3 / 4))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_trials(n_classes: int) -> None:
    problem, documents = make_problem(n_classes, 700)
    trials: list[Trial] = []

    def report(trial: Trial) -> bool:
        trials.append(trial)
        return len(trials) == 3

    selection = Selection(problem, documents, report)
    selection.run(START)
    assert len(trials) == 3  # as the report wanted
    assert selection.best in trials
    assert selection.best.loss == min(trial.loss for trial in trials)
    assert trials[0].settings == START
    assert all(trial.loss < np.log(n_classes) for trial in trials)
    assert all(0.5 < trial.accuracy <= 1 for trial in trials)
