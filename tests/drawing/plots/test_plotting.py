"""All plots: they keep to the axes they are given."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib import pyplot

from canvases import draw, new_axes
from prodige import Graph
from prodige.drawing import plots
from prodige.progress import Record

X = np.random.default_rng(0).normal(size=(80, 6))
HUB_GRAPH = Graph.from_edges(
    np.r_[:80, 0, 1], np.r_[np.full(80, 80), 1, 2], np.r_[np.full(80, 2.0), 1.0, 1.0], n_items=80
)


def test_nothing_global_is_touched() -> None:
    settings, open_figures = dict(matplotlib.rcParams), pyplot.get_fignums()
    for ax in (
        plots.plot_degrees(HUB_GRAPH, ax=new_axes()),
        plots.plot_history([Record(0, 0.0, 1.0, 0.1)], ax=new_axes()),
        plots.plot_distances(HUB_GRAPH, X, ax=new_axes()),
        plots.plot_bits([{"method": "graph", "bits_per_item": 64, "mse": 0.1}], ax=new_axes()),
        plots.plot_graph(HUB_GRAPH, positions=np.zeros((81, 2)), ax=new_axes()),
    ):
        draw(ax)
    assert dict(matplotlib.rcParams) == settings
    assert pyplot.get_fignums() == open_figures
