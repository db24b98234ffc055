"""The histogram of degrees: every vertex is counted, and the law goes through the columns."""

from __future__ import annotations

import numpy as np
import pytest

from canvases import draw, legend_texts, new_axes
from prodige import Graph
from prodige.drawing import plots
from prodige.drawing.plots.degrees import columns

HUB_GRAPH = Graph.from_edges(
    np.r_[:80, 0, 1], np.r_[np.full(80, 80), 1, 2], np.r_[np.full(80, 2.0), 1.0, 1.0], n_items=80
)


def test_the_histogram_counts_every_vertex() -> None:
    degrees = np.random.default_rng(0).zipf(2.2, size=3000)
    degrees[:7] = 0
    ax = plots.plot_degrees(degrees, ax=new_axes())
    draw(ax)
    (stairs,) = ax.patches
    heights, edges, _ = stairs.get_data()  # type: ignore[attr-defined]
    assert (heights * np.diff(edges)).sum() == pytest.approx(2993 / 3000)
    assert legend_texts(ax)[0] == "vertices (7 more have no edge)"
    assert legend_texts(ax)[1].startswith("power law from 1 edge on: exponent 2.")
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_the_law_is_drawn_over_the_histogram() -> None:
    """The line passes through the columns it was fitted to."""
    degrees = np.random.default_rng(0).zipf(2.5, size=50_000)
    ax = plots.plot_degrees(degrees, k_min=1, ax=new_axes())
    reach, shares = (np.asarray(values) for values in ax.lines[0].get_data())
    for degree in (1, 2, 3):
        assert np.interp(degree, reach, shares) == pytest.approx((degrees == degree).mean(), rel=0.1)


def test_items_and_hubs() -> None:
    ax = plots.plot_degrees(HUB_GRAPH, ax=new_axes())
    draw(ax)
    assert legend_texts(ax)[:2] == ["items", "hubs"]


def test_columns_hold_whole_degrees() -> None:
    for most in (1, 2, 9, 10, 1000, 12_345):
        edges = columns(most)
        assert edges[0] == 0.5
        assert edges[-1] == most + 0.5
        assert (edges % 1 == 0.5).all()
        assert (np.diff(edges) >= 1).all()


def test_degrees_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="all 4 vertices have degree 0"):
        plots.plot_degrees(Graph.from_edges([], [], [], n_vertices=4), ax=new_axes())
    with pytest.raises(TypeError, match="degrees must hold integers"):
        plots.plot_degrees([0.5], ax=new_axes())
    ax = plots.plot_degrees([3, 3], ax=new_axes())  # no power law, but a column
    assert legend_texts(ax) == ["vertices"]
    draw(ax)
