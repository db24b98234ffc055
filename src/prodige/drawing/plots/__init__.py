"""Pictures of graphs and of how they came about, with matplotlib (extra ``plot``).

Every function draws on the axes it is given, or on new ones, and returns them. Given axes, nothing of pyplot is
touched; settings of matplotlib are read and never changed. Colours are those of Okabe and Ito, which all kinds of
colour vision tell apart.

>>> from matplotlib.figure import Figure
>>> from prodige import Graph
>>> from prodige.drawing.plots import plot_degrees
>>> axes = plot_degrees(Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 2], 1.0), ax=Figure().subplots())
>>> axes.get_xlabel()
'edges of a vertex'
"""

from prodige.drawing.plots.bits import plot_bits
from prodige.drawing.plots.degrees import plot_degrees
from prodige.drawing.plots.front import plot_front
from prodige.drawing.plots.graphs import plot_graph
from prodige.drawing.plots.history import plot_history
from prodige.drawing.plots.scatter import plot_distances

__all__ = ["plot_bits", "plot_degrees", "plot_distances", "plot_front", "plot_graph", "plot_history"]
