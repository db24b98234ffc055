"""Pictures of a run report: plots as SVG to be set into a page, in whatever colour its text has."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from prodige.drawing import plots
from prodige.drawing.viewer.neighbors import N_NEIGHBORS, neighbor_graph
from prodige.graph.graph import Graph

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from prodige.compression.compressor import DistanceCompressor
    from prodige.drawing.report import Entry
    from prodige.graph.product import ProductGraph
    from prodige.metric.space import Space

# Stands for the colour of the page's text, which only the page knows; no plot has it otherwise.
INK = "#010203"

# Larger graphs are not drawn: finding places for their vertices takes longer than all else in a report.
MOST_VERTICES = 1000


def draw(
    compressor: DistanceCompressor,
    space: Space,
    entries: Sequence[Entry],
    random_state: int | np.random.RandomState | None,
) -> dict[str, str]:
    """Return the pictures as HTML, by name; no ``curves`` where a fit had no steps, no ``degrees`` without edges."""
    from matplotlib.figure import Figure

    graph, found = compressor.graph_, {}
    with in_ink():
        if compressor.history_:
            found["curves"] = draw_curves(compressor)
        if isinstance(graph, Graph) and graph.n_edges:
            figure = Figure(figsize=(5, 3.6), layout="constrained")
            plots.plot_degrees(graph, ax=figure.subplots())
            found["degrees"] = as_html(figure, "degrees", "Vertices by their number of edges.")
        n_sources = entries[0].report.n_sources  # and the same ones, so that the error is that of the table
        figure = Figure(figsize=(5, 3.6), layout="constrained")
        ax = plots.plot_distances(graph, space, n_sources=n_sources, random_state=random_state, ax=figure.subplots())
        ax.collections[0].set_rasterized(True)  # thousands of hexagons
        found["distances"] = as_html(
            figure, "distances", "True distances and those of the graph; yellow is many pairs."
        )
        rows: list[dict[str, Any]] = [
            {"method": one.method, "bits_per_item": one.bits_per_item, "mse": one.report.mse} for one in entries
        ]
        if all(0 < row["mse"] < float("inf") for row in rows):
            figure = Figure(figsize=(5, 3.6), layout="constrained")
            plots.plot_bits(rows, ax=figure.subplots())
            found["bits"] = as_html(figure, "bits", "Error against size of all methods.")
        if graph.n_items + graph.n_hubs <= MOST_VERTICES:
            found["graph"] = draw_graph(graph, compressor.n_jobs)
    return found


def draw_curves(compressor: DistanceCompressor) -> str:
    """Draw how the fit went; a product has the same size all the way."""
    from matplotlib.figure import Figure

    curves = [("loss", "step"), ("loss", "seconds")]
    words = "Loss by step and by time"
    if isinstance(compressor.graph_, Graph):
        curves.append(("numbers_per_item", "step"))
        words += ", and numbers per item by step"
    figure = Figure(figsize=(3.5 * len(curves), 2.9), layout="constrained")
    for ax, (y, x) in zip(figure.subplots(1, len(curves)), curves, strict=True):
        plots.plot_history(compressor, y, x, ax=ax)  # type: ignore[arg-type]
    return as_html(figure, "curves", f"{words}.")


def draw_graph(graph: Graph | ProductGraph, n_jobs: int | None) -> str:
    """Draw a graph, or the items of a product and who is near whom: it has far more vertices than can be drawn."""
    from matplotlib.figure import Figure

    caption = "The graph: near items are near, short edges strong."
    if not isinstance(graph, Graph):
        graph = neighbor_graph(graph)
        caption = f"Items, each joined to its {N_NEIGHBORS} nearest. A product has no edges between items of its own."
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    plots.plot_graph(graph, n_jobs=n_jobs, ax=figure.subplots())
    return as_html(figure, "graph", caption)


@contextmanager
def in_ink() -> Iterator[None]:
    """Draw in the colour of the page's text on no background; settings are as before afterwards."""
    from matplotlib import rc_context

    texts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    grounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    settings: Any = dict.fromkeys(texts, INK) | dict.fromkeys(grounds, "none")
    # Text stays text: to be found, and in the font of the page.
    with rc_context(settings | {"svg.fonttype": "none", "font.size": 9.0}):
        yield


def as_html(figure: Figure, name: str, caption: str) -> str:
    """Return a figure as SVG with a caption; the same figure gives the same text."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.hashsalt": f"prodige-{name}"}):  # ids of one picture must not be those of another
        figure.savefig(buffer, format="svg", metadata=nothing)
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :].replace(INK, "currentColor")
    drawn = re.sub('<g id="[^"]*"', "<g", drawn)  # all pictures call their parts alike
    drawn = drawn.replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"
