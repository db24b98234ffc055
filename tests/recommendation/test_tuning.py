"""Tuning: alpha and penalty together, where one at a time stops beside the best."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from prodige.progress import Monitor
from prodige.recommendation.distillation import ProductFit, Trials
from prodige.recommendation.plan import Budget
from prodige.recommendation.teacher import TeacherSettings
from prodige.recommendation.tuning import LEAST_GAIN, N_TEACHERS, Tuning
from strategies import crowds


def along_a_slope(settings: TeacherSettings) -> float:
    """Best at alpha = .12, penalty = .0075, on a narrow ridge on which the penalty halves where alpha is four times."""
    belief, held = log2(settings.alpha / 0.12), log2(settings.penalty / 0.0075)
    return -abs(held + belief / 2) - 0.1 * abs(belief)


def test_what_one_change_at_a_time_does_not_find() -> None:
    start = TeacherSettings(rank=8, alpha=0.03, penalty=0.015)
    for alpha, penalty in ((2.0, 1.0), (0.5, 1.0), (1.0, 2.0), (1.0, 0.5)):
        other = TeacherSettings(rank=8, alpha=start.alpha * alpha, penalty=start.penalty * penalty)
        assert along_a_slope(other) < along_a_slope(start)
    tuning = Tuning(start, along_a_slope)
    qualities = list(tuning.steps())
    assert qualities == sorted(qualities)
    np.testing.assert_allclose([tuning.best.alpha, tuning.best.penalty], [0.12, 0.0075])


def test_a_search_ends_and_asks_once() -> None:
    asked: list[TeacherSettings] = []

    def judge(settings: TeacherSettings) -> float:
        asked.append(settings)
        return settings.alpha  # there is no best

    tuning = Tuning(TeacherSettings(rank=8), judge)
    list(tuning.steps())
    assert len(asked) == len(set(asked)) == N_TEACHERS
    assert tuning.best == max(asked, key=lambda settings: settings.alpha)


@pytest.mark.parametrize(("gain", "is_taken"), [(0.5 * LEAST_GAIN, False), (2 * LEAST_GAIN, True)])
def test_gains_by_chance_are_not_taken(gain: float, is_taken: bool) -> None:
    start = TeacherSettings(rank=8)
    tuning = Tuning(
        start, lambda one: (gain if one.alpha > start.alpha else 0.0) - 0.1 * (one.penalty != start.penalty)
    )
    list(tuning.steps())
    assert (tuning.best != start) == is_taken
    assert {one.alpha > start.alpha for one in tuning.runners_up(1, 0.002)} == {True}


def test_runners_up_are_those_not_far_behind() -> None:
    tuning = Tuning(TeacherSettings(rank=8, alpha=0.03, penalty=0.015), along_a_slope)
    assert tuning.runners_up(3, 9.0) == []
    list(tuning.steps())
    best, others = along_a_slope(tuning.best), tuning.runners_up(9, 0.6)
    found = [along_a_slope(settings) for settings in others]
    assert found == sorted(found, reverse=True)
    assert all(quality >= best - 0.6 for quality in found)
    assert others[:1] == tuning.runners_up(1, 0.6)
    assert tuning.best not in others


def test_codes_are_tried_with_what_is_nearly_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that are a little behind in floats, but the best of all with codes, are taken."""
    wanted = {"alpha": 0.03, "penalty": 0.015}

    def is_wanted(settings: TeacherSettings) -> bool:
        return (settings.alpha, settings.penalty) == (wanted["alpha"], wanted["penalty"])

    start = TeacherSettings()
    floats = {(start.alpha, start.penalty): 0.5, (wanted["alpha"], wanted["penalty"]): 0.499}
    monkeypatch.setattr(
        Trials, "judge_floats", lambda self, one: floats.get((one.alpha, one.penalty), 0.1 * np.exp(-one.alpha))
    )

    def judge(self: Trials, shape: object) -> float:
        self.known[shape] = 0.4 + 0.1 * is_wanted(shape.teacher)  # type: ignore[index, attr-defined]
        return self.known[shape]  # type: ignore[index]

    monkeypatch.setattr(Trials, "judge", judge)
    table = crowds(300, 100)
    fit = ProductFit(table, Budget(64, None, 300, 100), np.random.RandomState(0), 1)
    list(fit._choose_shape(Monitor(1000)))
    assert is_wanted(fit.shape.teacher)
