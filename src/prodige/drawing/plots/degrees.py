"""How many edges vertices have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige._validation import check_vector
from prodige.drawing.plots.style import OKABE_ITO, add_legend, get_axes, text_color, tidy
from prodige.drawing.powerlaw import fit_power_law
from prodige.graph.graph import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Columns of the histogram while degrees grow tenfold.
_PER_DECADE = 8


def plot_degrees(graph: Graph | ArrayLike, k_min: int | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the histogram of degrees on logarithmic axes, with the power law that fits it best.

    Columns widen with the degree, and heights are shares of all vertices per degree, so that a power law is a straight
    line. The exponent in the legend is the most likely one.

    Parameters
    ----------
    graph : Graph or array-like of int
        A graph, or the degrees of its vertices. Those of a graph are told apart as items and hubs.
    k_min : int, optional
        Edges from where on the power law is fitted; where it fits best when left out.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import numpy as np
    >>> from prodige.drawing.plots import plot_degrees
    >>> ax = plot_degrees(np.random.default_rng(0).zipf(2.5, size=1000), ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['vertices', 'power law from 1 edge on: exponent 2.46, off by up to 1%']
    """
    ax = get_axes(ax)
    degrees = graph.degrees() if isinstance(graph, Graph) else check_vector("degrees", graph)
    law = fit_power_law(degrees, k_min)  # refuses what are no degrees
    if not (degrees > 0).any():
        raise ValueError(f"graph has no edges to count: all {degrees.size} vertices have degree 0")
    edges = columns(int(degrees.max()))
    if isinstance(graph, Graph) and graph.n_hubs:
        groups = {"items": degrees[: graph.n_items], "hubs": degrees[graph.n_items :]}
    else:
        groups = {"vertices": degrees}
    handles: list[Any] = []
    texts = []
    for color, (name, values) in zip(OKABE_ITO, groups.items(), strict=False):
        heights = np.histogram(values, edges)[0] / np.diff(edges) / degrees.size
        handles.append(ax.stairs(heights, edges, fill=True, color=color, alpha=0.75, linewidth=0))
        n_bare = int((values == 0).sum())
        texts.append(name if n_bare == 0 else f"{name} ({n_bare:,} more have no edge)")
    if law is not None:
        reach = np.geomspace(law.k_min, degrees.max(), 50)
        shares = law.density(reach) * law.n_tail / degrees.size
        handles += ax.plot(reach, shares, color=text_color(), linestyle="--", linewidth=1.4)
        texts.append(
            f"power law from {law.k_min:,} edge{'s' * (law.k_min > 1)} on: exponent {law.exponent:.2f}, "
            f"off by up to {law.distance:.0%}"
        )
    ax.set(xscale="log", yscale="log", xlabel="edges of a vertex", ylabel="share of vertices")
    # A column has no lower end on a logarithmic axis: leave room for one vertex in the widest, and for the legend.
    ax.set_ylim(0.5 / degrees.size / np.diff(edges).max(), 8)
    tidy(ax)
    add_legend(ax, handles, texts, loc="upper right")
    return ax


def columns(most: int) -> NDArray[np.float64]:
    """Return the ends of columns for degrees from 1 on: between whole numbers, so that none falls on one.

    Examples
    --------
    >>> from prodige.drawing.plots.degrees import columns
    >>> columns(4)
    array([0.5, 1.5, 2.5, 3.5, 4.5])
    """
    n_columns = int(np.ceil(np.log10(most + 1) * _PER_DECADE)) + 1
    whole = np.unique(np.rint(np.geomspace(1, most + 1, max(n_columns, 2))))
    return np.asarray(whole - 0.5)
