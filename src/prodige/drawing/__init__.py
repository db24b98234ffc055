"""Graphs to look at: plots, interactive pages and reports.

A graph gets places for its vertices (:func:`place`), then becomes a plot (``plot_*``, by matplotlib, extra ``plot``), a
page for the browser (:mod:`~prodige.drawing.viewer`) or part of the page about a run (:mod:`~prodige.drawing.report`).
"""

from prodige.drawing.layout import place
from prodige.drawing.plots import plot_bits, plot_degrees, plot_distances, plot_front, plot_graph, plot_history

__all__ = ["place", "plot_bits", "plot_degrees", "plot_distances", "plot_front", "plot_graph", "plot_history"]
