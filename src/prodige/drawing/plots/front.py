"""Two aims at once: who keeps all distances, who keeps the nearest, and who can do both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from prodige.drawing.plots.bits import NAMES, OURS, places_of
from prodige.drawing.plots.style import add_legend, color_of, get_axes, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]


def best_points(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other is better than in error and in recall, by rising error.

    Examples
    --------
    >>> from prodige.drawing.plots.front import best_points
    >>> best_points([(0.3, 0.5), (0.1, 0.4), (0.2, 0.3), (0.1, 0.2)])
    [(0.1, 0.4), (0.3, 0.5)]
    """
    best: list[Point] = []
    for error, recall in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or recall > best[-1][1]:
            best.append((error, recall))
    return best


def plot_front(
    results: Mapping[str, Sequence[Point]], *, names: Mapping[str, str] = NAMES, ax: Axes | None = None
) -> Axes:
    """Draw error and recall of methods, each with a line through the best of its points; the upper left is best.

    Parameters
    ----------
    results : mapping
        For each method its points: an error, and the share of the nearest neighbours that it finds.
    names : mapping
        What methods are called, in the order of their colours, as in :func:`plot_bits`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prodige.drawing.plots import plot_front
    >>> ax = plot_front({"graph": [(0.1, 0.4), (0.2, 0.6)], "mds": [(0.3, 0.5)]}, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['graph', 'MDS']
    """
    ax = get_axes(ax)
    drawn = {method: list(points) for method, points in results.items() if points}
    if not drawn:
        raise ValueError("results have no method with a point: there is nothing to draw")
    handles = []
    places = places_of(names, drawn)
    for method, points in drawn.items():
        for error, recall in points:
            if not (0 < error < math.inf and 0 <= recall <= 1):
                raise ValueError(
                    f"points of {method!r} must be an error above 0 and a recall of 0 to 1, got {(error, recall)}"
                )
        color, marker = color_of(places[method])
        errors, recalls = zip(*points, strict=True)
        ax.scatter(errors, recalls, color=color, marker=marker, s=12, alpha=0.3, linewidths=0)
        width = 2.2 if method in OURS else 1.2
        best = zip(*best_points(points), strict=True)
        (line,) = ax.plot(*best, color=color, marker=marker, markersize=5, linewidth=width)
        handles.append(line)
    ax.set(xlabel="error", ylabel="recall of the nearest", xscale="log")
    tidy(ax)
    texts = [shorten(names.get(method, method)) for method in drawn]
    add_legend(ax, handles, texts, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
    return ax
