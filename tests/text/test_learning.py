"""A whole fit: what is recorded, what ends it, and what is left then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corpora import draw
from prodige.progress import Monitor
from prodige.text import learning
from prodige.text.fitting import Problem
from prodige.text.learning import Learned, find_candidates, learn
from prodige.text.selection import Selection
from prodige.text.tokens import prepare

TEXTS, CLASSES = draw(120)
DOCUMENTS = prepare(TEXTS)


def run(monitor: Monitor) -> Learned:
    return learn(DOCUMENTS, CLASSES, 2, np.ones(CLASSES.size), 600, monitor, 1)


def test_a_fit() -> None:
    monitor = Monitor(1)
    learned = run(monitor)
    assert learned.trial is not None
    assert learned.settings == learned.trial.settings
    assert min(record.loss for record in monitor.history) == learned.trial.loss
    assert [record.step for record in monitor.history] == list(range(len(monitor.history)))
    assert (monitor.stopped, monitor.history[0].stage) == ("finished", "validation")


def test_a_callback_ends_it() -> None:
    monitor = Monitor(1, callbacks=[lambda record: record.step == 1])
    learned = run(monitor)
    assert (len(monitor.history), monitor.stopped) == (2, "callback")
    assert learned.trial is not None
    assert learned.graph is learned.trial.graph


def test_no_time_for_another_trial() -> None:
    monitor = Monitor(1, max_time=1e-6)
    learned = run(monitor)
    assert (len(monitor.history), monitor.stopped) == (1, "finished")
    assert learned.trial is not None
    assert learned.graph is learned.trial.graph


@pytest.mark.parametrize("where", [(Selection, "_attempt"), (Problem, "fit")])
def test_an_interrupt(where: tuple[type, str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = getattr(*where)
    left = iter(range(1 if where[1] == "_attempt" else 0))

    def interrupted(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(*where, interrupted)
    monitor = Monitor(1)
    learned = run(monitor)
    assert monitor.stopped == "interrupt"
    assert learned.trial is not None
    assert learned.graph is learned.trial.graph
    if where[1] == "_attempt":
        with pytest.raises(KeyboardInterrupt):  # before there is anything
            run(Monitor(1))


def test_candidates_that_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = find_candidates(DOCUMENTS, 2).features
    assert everything.frequencies.min() == 1
    monkeypatch.setattr(learning, "_MOST_WEIGHTS", 50)
    fewer = find_candidates(DOCUMENTS, 2).features
    assert 0 < fewer.n_columns <= 50
    frequencies = np.sort(everything.frequencies)[::-1]
    assert fewer.n_columns == (frequencies > frequencies[50]).sum()
