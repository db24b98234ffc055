"""How a fit went: its figures against steps or time, of one run or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from prodige._validation import check_integer
from prodige.drawing.plots.style import OKABE_ITO, add_legend, get_axes, shorten, tidy
from prodige.progress import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

History = Sequence[Record]

LABELS = {
    "loss": "loss",
    "n_edges": "edges",
    "numbers_per_item": "numbers per item",
    "seconds": "seconds",
    "step": "step",
}

# Points of a curve that is the mean of several.
_N_POINTS = 400


def plot_history(
    history: Any,
    y: Literal["loss", "n_edges", "numbers_per_item"] = "loss",
    x: Literal["step", "seconds"] = "step",
    *,
    smooth: int = 1,
    ax: Axes | None = None,
) -> Axes:
    """Draw how a figure of a fit changed, one curve for each kind of run.

    Several runs of a kind are drawn as their mean and, behind it, the band between the lowest and the highest. Against
    seconds, runs are compared while all of them were running.

    Parameters
    ----------
    history : fitted estimator, history, sequence of these, or mapping
        ``history_`` of an estimator, or the estimator. A sequence of them is several runs of one kind; a mapping has
        the name of a kind, and its run or runs.
    y : {"loss", "n_edges", "numbers_per_item"}
        What to draw, or another field of :class:`prodige.progress.Record`.
    x : {"step", "seconds"}
        Against what.
    smooth : int
        Each value is the mean of so many around it; losses of single batches are hard to read.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prodige.drawing.plots import plot_history
    >>> from prodige.progress import Record
    >>> runs = [[Record(step, step / 9, start / (1 + step), step / 10) for step in range(9)] for start in (1.0, 3.0)]
    >>> ax = plot_history({"two seeds": runs}, ax=Figure().subplots())
    >>> ax.lines[0].get_ydata()[0].item()
    2.0
    """
    check_integer("smooth", smooth, 1, 2**31 - 1)
    ax = get_axes(ax)
    kinds = gather(history)
    handles = []
    least, most = np.inf, -np.inf
    for place, (name, runs) in enumerate(kinds.items()):
        color = OKABE_ITO[place % len(OKABE_ITO)]
        style = ("-", "--", ":", "-.")[place // len(OKABE_ITO) % 4]
        reach, values = curves(runs, x, y, name, smooth)
        least, most = min(least, values.min()), max(most, values.max())
        if len(values) > 1:
            ax.fill_between(reach, values.min(axis=0), values.max(axis=0), color=color, alpha=0.2, linewidth=0)
        handles += ax.plot(reach, values.mean(axis=0), color=color, linestyle=style, linewidth=1.6)
    ax.set(xlabel=LABELS.get(x, x), ylabel=LABELS.get(y, y))
    if 0 < 10 * least < most:
        ax.set_yscale("log")
    tidy(ax)
    if len(kinds) > 1 or "" not in kinds:
        add_legend(ax, handles, [shorten(name, 48) for name in kinds])
    return ax


def gather(history: Any) -> dict[str, list[History]]:
    """Return runs by the name of their kind; a kind without one is called ``""``."""
    if isinstance(history, Mapping):
        if not history:
            raise ValueError("history is an empty mapping: give the name of at least one kind of run, and its runs")
        return {str(name): as_runs(runs, f"history[{name!r}]") for name, runs in history.items()}
    return {"": as_runs(history, "history")}


def as_runs(runs: Any, name: str) -> list[History]:
    """Return a run or several of them as a list, none of them empty."""
    runs = getattr(runs, "history_", runs)
    if not isinstance(runs, Sequence) or isinstance(runs, str):
        raise TypeError(f"{name} must be a list of records, a list of such lists or a fitted estimator, got {runs!r}")
    if runs and isinstance(runs[0], Record):
        runs = [runs]
    found: list[History] = [getattr(run, "history_", run) for run in runs]
    for run in found:
        if not isinstance(run, Sequence) or not all(isinstance(record, Record) for record in run):
            raise TypeError(f"{name} must hold records of a fit (prodige.progress.Record), got {run!r:.80}")
    if not found or not all(found):
        raise ValueError(
            f"{name} has no steps to draw: so small a graph is not fitted step by step, or the run was stopped too soon"
        )
    return found


def curves(runs: list[History], x: str, y: str, name: str = "", smooth: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return where values are known and the values of each run there, shapes [G] and [R, G]."""
    points = [(column(run, x, name), running_mean(column(run, y, name), smooth)) for run in runs]
    reach = points[0][0]
    if any(not np.array_equal(reach, others) for others, _ in points[1:]):
        begin, end = max(places[0] for places, _ in points), min(places[-1] for places, _ in points)
        if end < begin:
            raise ValueError(f"the runs of {name or 'history'} have no {LABELS.get(x, x)} in common: draw them apart")
        reach = np.linspace(begin, end, _N_POINTS)
    return reach, np.stack([np.interp(reach, places, values) for places, values in points])


def running_mean(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the mean of ``width`` values around each, of fewer at the ends.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.drawing.plots.history import running_mean
    >>> running_mean(np.array([0.0, 3.0, 6.0]), 3)
    array([1.5, 3. , 4.5])
    """
    window = np.ones(min(width, values.size))
    sums, counts = (np.convolve(numbers, window, mode="same") for numbers in (values, np.ones(values.size)))
    return np.asarray(sums / counts)


def column(run: History, key: str, name: str) -> NDArray[np.float64]:
    """Return one figure of every record."""
    found = [getattr(record, key, None) for record in run]
    if any(not isinstance(value, (int, float)) for value in found):
        known = ", ".join(repr(field) for field, value in run[0].known().items() if not isinstance(value, str))
        raise ValueError(f"the records of {name or 'history'} have no {key!r}; they have {known}")
    values = np.array(found, dtype=np.float64)
    if not np.isfinite(values).all():
        step = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{key} of record {step} of {name or 'history'} is {values[step]}: it must be finite")
    return values
