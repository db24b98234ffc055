"""True distances against those of a model: every pair once, and the error of all."""

from __future__ import annotations

import numpy as np
import pytest

from canvases import draw, legend_texts, new_axes
from prodige import Graph
from prodige.baselines import Star
from prodige.drawing import plots
from prodige.metric.evaluation import evaluate
from prodige.metric.space import Space

X = np.random.default_rng(0).normal(size=(80, 6))


def test_the_error_is_that_of_all_pairs() -> None:
    star = Star().fit(X)
    ax = plots.plot_distances(star, X, ax=new_axes())
    draw(ax)
    report = evaluate(star, Space(X))
    assert legend_texts(ax)[1:] == [
        f"mean squared error {report.mse:.3g}",
        f"relative error {100 * report.relative_error:.1f} %",
    ]
    counts = ax.collections[0].get_array()
    assert counts is not None
    assert counts.sum() == 80 * 79
    assert ax.get_aspect() == 1


def test_a_perfect_model_lies_on_the_diagonal() -> None:
    ax = plots.plot_distances(Space(X), Space(X), n_sources=20, ax=new_axes())
    assert legend_texts(ax)[1:] == ["mean squared error 0", "relative error 0.0 %"]
    places = np.asarray(ax.collections[0].get_offsets())
    assert np.abs(places[:, 0] - places[:, 1]).max() <= places.max() / 34  # the height of a hexagon


def test_pairs_without_a_path() -> None:
    graph = Graph.from_edges([0, 2], [1, 3], [1.0, 1.0])
    ax = plots.plot_distances(graph, [[0.0], [1.0], [5.0], [6.0]], ax=new_axes())
    draw(ax)
    assert legend_texts(ax)[1:] == ["mean squared error 0", "relative error 0.0 %", "left out: 8 pairs without a path"]
    with pytest.raises(ValueError, match="joins none of the pairs"):
        plots.plot_distances(Graph.from_edges([], [], [], n_vertices=3), X[:3], ax=new_axes())


def test_items_in_one_place() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [0.0, 0.0])
    ax = plots.plot_distances(graph, np.zeros((3, 2)), ax=new_axes())
    draw(ax)
    assert legend_texts(ax)[1:] == ["mean squared error 0"]


def test_one_item_has_no_distances() -> None:
    with pytest.raises(ValueError, match="2 items or more, got 1"):
        plots.plot_distances(Graph.from_edges([], [], [], n_vertices=1), [[1.0]], ax=new_axes())
