"""Curves of a fit: what is drawn are the records, means and bands of several runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from canvases import draw, legend_texts, new_axes
from prodige.drawing import plots
from prodige.progress import Record


def history(n_steps: int = 20, start: float = 1.0, monitor: float = 0.1) -> list[Record]:
    return [
        Record(step, step / n_steps, start / (1 + step), monitor * step, n_edges=400 - step, numbers_per_item=8.0)
        for step in range(n_steps)
    ]


def test_one_run() -> None:
    run = history()
    for y in ("loss", "n_edges", "numbers_per_item"):
        for x in ("step", "seconds"):
            ax = plots.plot_history(run, y, x, ax=new_axes())
            draw(ax)
            assert np.array_equal(ax.lines[0].get_xdata(), [getattr(record, x) for record in run])
            assert np.array_equal(ax.lines[0].get_ydata(), [getattr(record, y) for record in run])
            assert ax.get_legend() is None
    assert plots.plot_history(run, ax=new_axes()).get_yscale() == "log"
    assert plots.plot_history(run, "n_edges", ax=new_axes()).get_yscale() == "linear"


def test_several_runs_are_a_mean_and_a_band() -> None:
    ax = plots.plot_history({"a": [history(start=1), history(start=3)], "b": history()}, ax=new_axes())
    draw(ax)
    assert legend_texts(ax) == ["a", "b"]
    target = 2 / (1 + np.arange(20))
    assert np.allclose(np.asarray(ax.lines[0].get_ydata()), target)
    (band,) = ax.collections
    vertices = np.asarray(band.get_paths()[0].vertices)
    assert vertices[:, 1].max() == 3
    assert vertices[:, 1].min() == pytest.approx(1 / 20)


def test_noise_is_smoothed_and_straight_lines_stay() -> None:
    noisy = [Record(step, step / 40, 5 + (-1) ** step, 0.1 * step) for step in range(40)]
    drawn = np.asarray(plots.plot_history(noisy, smooth=4, ax=new_axes()).lines[0].get_ydata())
    assert drawn.shape == (40,)
    assert np.allclose(drawn[2:-2], 5)
    line = np.asarray(plots.plot_history(history(), "n_edges", smooth=5, ax=new_axes()).lines[0].get_ydata())
    assert np.allclose(line[2:-2], 400 - np.arange(2, 18))
    everything = np.asarray(plots.plot_history(noisy, smooth=1000, ax=new_axes()).lines[0].get_ydata())
    assert everything.shape == (40,)
    assert everything[20] == 5
    with pytest.raises(ValueError, match="smooth"):
        plots.plot_history(noisy, smooth=0, ax=new_axes())


def test_runs_of_different_pace_are_compared_while_both_run() -> None:
    ax = plots.plot_history([history(monitor=0.1), history(monitor=0.2, n_steps=30)], "loss", "seconds", ax=new_axes())
    reach = np.asarray(ax.lines[0].get_xdata())
    assert (reach[0], reach[-1]) == (0, pytest.approx(1.9))
    # After 1 s: step 10 of the one, step 5 of the other.
    assert np.interp(1.0, reach, np.asarray(ax.lines[0].get_ydata())) == pytest.approx((1 / 11 + 1 / 6) / 2, rel=1e-3)


def test_estimators_have_a_history() -> None:
    class Fitted:
        history_ = history()

    ax = plots.plot_history({"one": Fitted(), "two": [Fitted(), Fitted()]}, ax=new_axes())
    assert len(ax.lines) == 2


def test_histories_that_cannot_be_drawn() -> None:
    nothing: list[Any] = [[], [[]], {"kind": []}, {"kind": [history(), []]}]
    for empty in nothing:
        with pytest.raises(ValueError, match="has no steps to draw"):
            plots.plot_history(empty, ax=new_axes())
    with pytest.raises(ValueError, match="empty mapping"):
        plots.plot_history({}, ax=new_axes())
    with pytest.raises(TypeError, match="history must be a list of records"):
        plots.plot_history(3, ax=new_axes())
    with pytest.raises(TypeError, match=r"history must hold records of a fit .* got \[3\]"):
        plots.plot_history([[3]], ax=new_axes())
    with pytest.raises(ValueError, match="have no 'stage'"):
        plots.plot_history([replace(history()[0], stage="graph")], "stage", ax=new_axes())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="have no 'lambda_'; they have 'step', 'progress', 'loss'"):
        plots.plot_history(history(), "lambda_", ax=new_axes())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="loss of record 1 of history is nan"):
        plots.plot_history([history()[0], replace(history()[1], loss=np.nan)], ax=new_axes())


def test_names_of_runs_may_be_anything() -> None:
    ax = plots.plot_history({"$\\frac{1}$ <b> 🪨": history(), "_" * 10_000: history()}, ax=new_axes())
    draw(ax)
    assert legend_texts(ax)[0] == "$\\frac{1}$ <b> □"
