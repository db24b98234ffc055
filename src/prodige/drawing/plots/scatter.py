"""True distances against those of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from prodige.drawing.plots.style import add_legend, get_axes, text_color, tidy
from prodige.metric.evaluation import Model, check_size, compare, draw_others, draw_sources, sums
from prodige.metric.space import Metric, Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Sources when none are asked for; their pairs are enough for two digits of the error.
_N_SOURCES = 500


def plot_distances(
    model: Model,
    X: Any,
    metric: Metric = "euclidean",
    *,
    n_sources: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often which distance of a model stands for which true distance.

    Of a perfect model all pairs lie on the diagonal. The legend has the error over all pairs of the sources.

    Parameters
    ----------
    model
        A :class:`prodige.Graph`, a baseline, or anything with ``distances(sources, targets=None)``.
    X : array-like, sparse matrix or Space
        The items that the model stands for.
    metric : str or callable
        Of the items; that of the space if ``X`` is one.
    n_sources : int, optional
        Items whose distances to others are compared; 500 at most when left out.
    random_state : int, RandomState or None
        Seed of the sources, and of the pairs that are drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prodige import Graph
    >>> from prodige.drawing.plots import plot_distances
    >>> graph = Graph.from_edges([0, 1], [1, 2], [1.0, 3.0])
    >>> ax = plot_distances(graph, [[0.0], [1.0], [3.0]], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['no error', 'mean squared error 0.667', 'relative error 33.3 %']
    """
    ax = get_axes(ax)
    space = X if isinstance(X, Space) else Space(X, metric)
    n = check_size(space)
    random = check_random_state(random_state)
    sources = draw_sources(n, min(n, _N_SOURCES) if n_sources is None else n_sources, random)
    others = draw_others(sources, n, random)
    totals, n_apart, done = np.zeros(4), 0, 0
    pairs = []
    for rows, true, predicted in compare(model, space, sources):
        chosen = others[done : done + rows.size]
        done += rows.size
        pairs.append(np.stack([np.take_along_axis(block, chosen, axis=1).ravel() for block in (true, predicted)]))
        apart = np.isinf(predicted)
        n_apart += int(apart.sum())
        totals += sums(np.where(apart, 0, true), np.where(apart, 0, predicted))
    true, predicted = np.concatenate(pairs, axis=1)
    joined = np.isfinite(predicted)
    if not joined.any():
        raise ValueError("model joins none of the pairs: there is no distance to draw")
    squared, absolute, total, _ = totals
    n_pairs = sources.size * (n - 1) - n_apart
    most = max(true[joined].max(), predicted[joined].max()) or 1.0

    ax.hexbin(
        true[joined],
        predicted[joined],
        gridsize=60,
        extent=(0, most, 0, most),
        bins="log",
        mincnt=1,
        cmap="cividis",
        linewidths=0.1,
    )
    (diagonal,) = ax.plot([0, most], [0, most], color=text_color(), linestyle="--", linewidth=1)
    (nothing,) = ax.plot([], [], linestyle="none")
    texts = ["no error", f"mean squared error {squared / n_pairs:.3g}"]
    if total > 0:
        texts.append(f"relative error {100 * absolute / total:.1f} %")
    if n_apart:
        texts.append(f"left out: {n_apart:,} pairs without a path")
    ax.set(xlabel="true distance", ylabel="distance in the graph", aspect="equal")
    tidy(ax)
    add_legend(ax, [diagonal, *[nothing] * (len(texts) - 1)], texts, loc="lower right")
    return ax
