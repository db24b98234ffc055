"""Progress: steps or seconds, callbacks, history."""

from __future__ import annotations

import threading
from dataclasses import FrozenInstanceError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from prodige import DistanceCompressor, GraphRecommender, GraphTextClassifier
from prodige.progress import Bar, Monitor, Record, patience

FIELDS = {"step", "progress", "loss", "n_edges", "numbers_per_item", "seconds"}


@pytest.mark.parametrize("n_steps", [1, 7])
def test_steps(n_steps: int) -> None:
    monitor = Monitor(n_steps)
    assert list(monitor.run()) == [step / n_steps for step in range(n_steps)]
    assert monitor.stopped == "finished"
    assert monitor.history == []


def test_a_run_may_end_early() -> None:
    assert list(Monitor(8).run(end=0.5)) == [0, 1 / 8, 2 / 8, 3 / 8]


def test_time_replaces_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [7.0]
    monkeypatch.setattr("prodige.progress.time", SimpleNamespace(perf_counter=lambda: now[0]))
    monitor = Monitor(2, max_time=8)
    seen = []
    for progress in monitor.run():
        seen.append(progress)
        now[0] += 2
    assert seen == [0, 0.25, 0.5, 0.75]  # more than steps would allow
    assert monitor.seconds == 8
    assert monitor.is_over


def test_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("prodige.progress.time", SimpleNamespace(perf_counter=lambda: now[0]))
    monitor = Monitor(5, max_time=10)
    now[0] = 6.0
    shares = {share: patience(monitor, share) for share in (0.1, 0.3, 0.9)}
    over = {}
    for now[0] in (6.5, 7.5, 9.5, 10.5):
        over[now[0]] = [is_over() for is_over in shares.values()]
        assert not patience(Monitor(5), 0.1)()
        assert not patience(None, 0.1)()
    assert over == {6.5: [False] * 3, 7.5: [True, False, False], 9.5: [True, True, False], 10.5: [True] * 3}


def test_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("prodige.progress.time", SimpleNamespace(perf_counter=lambda: now[0]))
    steps, quick, slow = Monitor(5, spent=1), Monitor(5, max_time=3, spent=1), Monitor(5, max_time=9, spent=1)
    assert [monitor.in_a_hurry for monitor in (steps, quick, slow)] == [False, True, False]
    assert not any(monitor.is_over for monitor in (steps, quick, slow))
    now[0] = 2.5
    assert [monitor.in_a_hurry for monitor in (steps, quick, slow)] == [False, True, True]
    assert [monitor.is_over for monitor in (steps, quick, slow)] == [False, True, False]


def test_shares_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("prodige.progress.time", SimpleNamespace(perf_counter=lambda: now[0]))
    steps, timed = Monitor(5), Monitor(5, max_time=10, spent=1)
    assert [timed.due(share) for share in (0.05, 0.1, 0.2)] == [True, True, False]
    now[0] = 3.0
    assert [timed.due(share) for share in (0.2, 0.4, 0.5)] == [True, True, False]
    assert not steps.due(0)
    steps.stopped = "interrupt"
    assert steps.due(1)


def test_preparation_is_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("prodige.progress.time", SimpleNamespace(perf_counter=lambda: now[0]))
    monitor = Monitor(5, max_time=10)
    now[0] = 2.0
    monitor.prepared(until=0.6)  # from second 2 to second 6
    seen = []
    for progress in monitor.run():
        seen.append(progress)
        now[0] += 1
    assert seen == pytest.approx([0, 0.25, 0.5, 0.75])


@pytest.mark.parametrize("n_presses", [0, 1, 2])
def test_what_a_run_was_for_is_made_despite_ctrl_c(n_presses: int) -> None:
    monitor, presses = Monitor(1), [KeyboardInterrupt] * n_presses

    def work() -> str:
        if presses:
            raise presses.pop()
        return "graph"

    if n_presses == 2:  # they mean it
        with pytest.raises(KeyboardInterrupt):
            monitor.insist(work)
    else:
        assert monitor.insist(work) == "graph"
    assert monitor.stopped == ("interrupt" if n_presses else "finished")


def test_no_callbacks() -> None:
    monitor = Monitor(2, callbacks=None)
    for progress in monitor.run():
        monitor.record(progress, 0.0, 1, 1.0)
    assert len(monitor.history) == 2


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (print, "must be a sequence of functions, got one"),
        ([3], r"must be functions of a prodige\.progress\.Record, got 3"),
    ],
)
def test_what_is_no_callback(callbacks: Any, message: str) -> None:
    X = np.arange(12.0)[:, None]
    for refuses in (
        lambda: Monitor(2, callbacks=callbacks),
        lambda: DistanceCompressor(callbacks=callbacks).fit(X),
        lambda: GraphRecommender(callbacks=callbacks).fit(np.eye(4)),
        lambda: GraphTextClassifier(callbacks=callbacks).fit(["a b", "b c"], [0, 1]),
    ):
        with pytest.raises(TypeError, match=message):
            refuses()


def test_what_is_not_known_is_left_out() -> None:
    record = Record(3, 0.5, 0.25, 1.0, learning_rate=0.1)
    assert record.known() == {"step": 3, "progress": 0.5, "loss": 0.25, "seconds": 1.0, "learning_rate": 0.1}
    with pytest.raises(FrozenInstanceError):
        record.loss = 0.0  # type: ignore[misc]


def test_history_and_callbacks() -> None:
    seen: list[Record] = []
    monitor = Monitor(3, callbacks=[seen.append])
    for progress in monitor.run():
        monitor.record(progress, loss=1 - progress, n_edges=10, numbers_per_item=4.5)
    assert [record.step for record in monitor.history] == [0, 1, 2]
    assert [record.loss for record in monitor.history] == pytest.approx([1, 2 / 3, 1 / 3])
    assert monitor.history == seen
    for record in seen:
        assert set(record.known()) == FIELDS
    seconds = [record.seconds for record in monitor.history]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] <= seconds[-1] <= monitor.seconds


def test_a_callback_stops_the_run_after_all_were_called() -> None:
    calls: list[str] = []

    def first(record: Record) -> bool:
        calls.append("first")
        return record.step == 1

    def second(record: Record) -> None:
        calls.append("second")

    monitor = Monitor(10, callbacks=[first, second])
    for progress in monitor.run():
        monitor.record(progress, 0.0, 1, 1.0)
    assert monitor.stopped == "callback"
    assert len(monitor.history) == 2
    assert calls == ["first", "second"] * 2


def test_progress_bar(capfd: pytest.CaptureFixture[str]) -> None:
    for verbose, shown in ((0, False), (1, True)):
        monitor = Monitor(3, verbose=verbose)
        for progress in monitor.run():
            monitor.record(progress, 0.125, 10, 4.5)
        text = capfd.readouterr().err
        assert ("100%" in text) == shown
        assert ("loss=0.125" in text) == shown


def test_bars_start_no_thread(capsys: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    for disable in (True, False):
        with Bar(total=3, disable=disable) as bar:
            bar.update(3)
            assert threading.active_count() == before
    assert "3/3" in capsys.readouterr().err
