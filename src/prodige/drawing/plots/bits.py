"""Error against size: which method keeps distances best in how many bits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from prodige.drawing.plots.style import GREY, add_legend, color_of, get_axes, shorten, tidy
from prodige.metric.evaluation import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What keeps less than this for an item keeps nothing of it, and is drawn as a level to be below.
_LEAST_BITS = 1.0

NAMES = {
    "graph": "graph",
    "mds": "MDS",
    "star": "star",
    "pca": "PCA",
    "l0": "graph, by L0",
    "poincare": "Poincaré MDS",
    "residual": "residual coordinates",
    "constant": "one constant",
    "product": "product of graphs",
}

# Methods of this package stand out.
OURS = ("graph", "l0", "product", "free")


def plot_bits(results: Any, *, names: Mapping[str, str] = NAMES, ax: Axes | None = None) -> Axes:
    """Draw the error of methods against the bits they keep for an item, both on logarithmic axes.

    Parameters
    ----------
    results : mapping or iterable of mappings
        Rows with ``method``, ``bits_per_item`` and ``mse``: a number, several (of different seeds), or a
        :class:`prodige.metric.evaluation.Report`. Also what :func:`prodige.reproduce.table1.run` returns, which has
        them under ``rows``. Rows without an error are left out. Rows of one method are joined by a line.
    names : mapping
        What methods are called, in the order of their colours; those of the paper's first table when left out.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prodige.drawing.plots import plot_bits
    >>> rows = [{"method": "graph", "bits_per_item": bits, "mse": 1 / bits} for bits in (64, 128)]
    >>> ax = plot_bits([*rows, {"method": "constant", "bits_per_item": 0.0, "mse": 0.5}], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['graph', 'one constant']
    """
    ax = get_axes(ax)
    points: dict[str, list[tuple[float, list[float]]]] = {}
    for row in rows_of(results):
        errors = errors_of(row)
        if errors:
            points.setdefault(str(row["method"]), []).append((bits_of(row), errors))
    if not points:
        raise ValueError("results have no row with an error: there is nothing to draw")
    levels = {method for method, entries in points.items() if all(bits < _LEAST_BITS for bits, _ in entries)}
    ours = [method for method in points if method not in levels]
    places = places_of(names, points)
    handles: list[Any] = []
    texts = []
    for method in sorted(ours, key=lambda method: places[method]):
        entries = sorted(points[method])
        means = [float(np.mean(errors)) for _, errors in entries]
        spread = np.array(
            [[mean - min(errors), max(errors) - mean] for mean, (_, errors) in zip(means, entries, strict=True)]
        )
        color, marker = color_of(places[method])
        strong = method in OURS
        handles.append(
            ax.errorbar(
                [bits for bits, _ in entries],
                means,
                yerr=np.maximum(spread.T, 0),
                color=color,
                marker=marker,
                markersize=7 if strong else 5,
                linewidth=2.2 if strong else 1.2,
                capsize=2,
            )
        )
        texts.append(shorten(names.get(method, method)))
    for method in levels:
        error = float(np.mean([np.mean(errors) for _, errors in points[method]]))
        handles.append(ax.axhline(error, color=GREY, linestyle=":", linewidth=1.2))
        texts.append(shorten(names.get(method, method)))
    ax.set(xlabel="bits per item", ylabel="mean squared error", yscale="log")
    if ours:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:g}")
    tidy(ax)
    add_legend(ax, handles, texts, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
    return ax


def places_of(names: Iterable[str], methods: Iterable[str]) -> dict[str, int]:
    """Return which colour each method has: it depends on its name, not on what it is compared with."""
    return {method: place for place, method in enumerate(dict.fromkeys([*names, *methods]))}


def rows_of(results: Any) -> list[Mapping[str, Any]]:
    """Return the rows of one table, of several, or those given."""
    if isinstance(results, Mapping):
        return rows_of(results["rows"]) if "rows" in results else [check_row(results)]
    if not isinstance(results, Iterable) or isinstance(results, str):
        raise TypeError(f"results must be rows with 'method', 'bits_per_item' and 'mse', got {results!r}")
    return [row for entry in results for row in (rows_of(entry) if isinstance(entry, Mapping) else [check_row(entry)])]


def check_row(row: Any) -> Mapping[str, Any]:
    """Return a row after making sure that it has what is drawn."""
    missing = [key for key in ("method", "bits_per_item", "mse") if not isinstance(row, Mapping) or key not in row]
    if missing:
        raise ValueError(f"every row of results must have {', '.join(map(repr, missing))}, got {row!r}")
    found: Mapping[str, Any] = row
    return found


def errors_of(row: Mapping[str, Any]) -> list[float]:
    """Return the errors of a row, one for each seed."""
    errors = row["mse"].mse if isinstance(row["mse"], Report) else row["mse"]
    values = np.atleast_1d(np.asarray(errors, dtype=np.float64)).tolist()
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise ValueError(f"mse of {row['method']!r} must be finite and above 0 to be drawn, got {row['mse']!r}")
    return [float(value) for value in values]


def bits_of(row: Mapping[str, Any]) -> float:
    """Return the bits of a row."""
    bits = row["bits_per_item"]
    if not isinstance(bits, (int, float, np.number)) or not math.isfinite(bits) or bits < 0:
        raise ValueError(f"bits_per_item of {row['method']!r} must be a finite number of 0 or more, got {bits!r}")
    return float(bits)
