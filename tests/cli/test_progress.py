"""Progress of a fit: a panel on a terminal, lines now and then elsewhere, nothing where nothing is wanted."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from prodige.cli.progress import FitProgress, in_minutes, sparkline
from prodige.progress import Record


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def status(step: int, progress: float, loss: float = 0.0123) -> Record:
    return Record(step, progress, loss, 1.0, 1234, 4.5)


def shown(progress: FitProgress, width: int = 100) -> str:
    """What the panel looks like at this moment."""
    console = Console(file=io.StringIO(), record=True, width=width)
    console.print(progress.panel())
    return console.export_text()


def test_the_panel() -> None:
    stream, clock = io.StringIO(), Clock()
    console = Console(file=stream, force_terminal=True, width=100)
    with FitProgress(True, console, clock=clock) as progress:
        assert "preparing" in shown(progress)
        progress(status(0, 0.0, loss=0.8))
        clock.now += 10
        progress(status(1, 0.25, loss=0.1))
        text = shown(progress)
        for part in ("fitting", "25%", "mse", "█▁  0.1", "1,234 edges, 4.50 numbers an item", "10 s, about 30 s left"):
            assert part in text
        progress(status(0, 0.0))  # a second way begins
        clock.now += 1
        progress(status(1, 0.5))
        assert "fitting, graph 2" in shown(progress)
        assert "about 1 s left" in shown(progress)
        progress.measuring()
        text = shown(progress)
        assert "measuring" in text
        assert "left" not in text
        progress.stage("comparing with MDS")
        assert "comparing with MDS" in shown(progress)
    assert "comparing with MDS" in stream.getvalue()  # the last state is shown before it is cleared


def test_a_product_has_no_edges() -> None:
    progress = FitProgress(False)
    progress(Record(0, 0.25, 0.0123, 1.0, None, 3.95))
    assert progress.figures() == "fitting 25%: mse 0.0123, 3.95 numbers an item"
    assert "edges" not in shown(progress)


@pytest.mark.parametrize("width", [20, 40, 200])
def test_the_panel_fits_the_terminal(width: int) -> None:
    progress = FitProgress(True, Console(file=io.StringIO(), force_terminal=True, width=width))
    progress(status(0, 0.5))
    assert all(len(line) <= min(width, 76) for line in shown(progress, width).splitlines())


def test_a_terminal_without_unicode() -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii") as stream:
        with FitProgress(True, Console(file=stream, force_terminal=True, width=80)) as progress:
            progress(status(0, 0.5))
        stream.flush()
        assert b"0.0123" in raw.getvalue()


def test_lines_where_there_is_no_terminal() -> None:
    stream, clock = io.StringIO(), Clock()
    with FitProgress(True, Console(file=stream, width=40), clock=clock) as progress:
        for step in range(50):
            clock.now += 1
            progress(status(step, step / 50))
        clock.now += 15
        progress.measuring()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 6  # every ten seconds, and not broken by a narrow window
    assert lines[0] == "fitting 18%: mse 0.0123, 1,234 edges, 4.50 numbers an item (10 s, about 41 s left)"
    assert lines[-1] == "measuring (1:05 min)"


def test_a_short_run_says_nothing() -> None:
    stream, clock = io.StringIO(), Clock()
    with FitProgress(True, Console(file=stream), clock=clock) as progress:
        clock.now += 9.9
        progress(status(0, 0.5))
    assert stream.getvalue() == ""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_is_shown(is_terminal: bool) -> None:
    stream, clock = io.StringIO(), Clock()
    with FitProgress(False, Console(file=stream, force_terminal=is_terminal), clock=clock) as progress:
        clock.now += 1000
        progress(status(0, 0.5))
        progress.measuring()
    assert stream.getvalue() == ""


def test_time_left_is_not_made_up() -> None:
    clock = Clock()
    progress = FitProgress(False, clock=clock)
    assert progress.seconds_left() is None
    progress(status(0, 0.1))
    assert progress.seconds_left() is None  # one step has no length yet
    clock.now += 4
    progress(status(1, 0.3))
    assert progress.seconds_left() == pytest.approx(14)


@given(st.lists(st.floats(allow_nan=True), max_size=100), st.integers(1, 60))
def test_any_curve(values: list[float], width: int) -> None:
    line = sparkline(values, width)
    known = [value for value in values if math.isfinite(value)]
    assert len(line) == min(width, len(known))
    assert set(line) <= set("▁▂▃▄▅▆▇█")


def test_curves() -> None:
    assert sparkline([-1, 0, 1], 3) == "▁▅█"
    assert sparkline([100, 10, 1], 3) == "█▅▁"  # by orders of magnitude
    assert sparkline([1, 3, 100, 300], 2) == "▁█"
    assert sparkline([], 5) == ""


def test_times() -> None:
    assert [in_minutes(seconds) for seconds in (-1, 0.4, 59.4, 59.6, 3599, 3600, 7265)] == [
        "0 s",
        "0 s",
        "59 s",
        "1:00 min",
        "59:59 min",
        "1:00 h",
        "2:01 h",
    ]
