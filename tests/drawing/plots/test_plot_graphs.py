"""Graphs as pictures: places, colours, sizes, and labels of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox

from canvases import draw, legend_texts, new_axes
from prodige import Graph
from prodige.drawing.plots import plot_graph
from prodige.drawing.plots.groups import MOST_GROUPS, Groups
from prodige.drawing.plots.style import GREY, OKABE_ITO
from strategies import graphs

# Four items around a hub, and an edge between the first two.
GRAPH = Graph.from_edges([0, 1, 2, 3, 0], [4, 4, 4, 4, 1], [1, 1, 2, 3, 0.5], n_items=4)
PLACES = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.5, 0.5]])


def lines(ax: Axes) -> LineCollection:
    (found,) = (entry for entry in ax.collections if isinstance(entry, LineCollection))
    return found


def test_edges_join_the_places_and_short_ones_are_strong() -> None:
    ax = plot_graph(GRAPH, positions=PLACES, ax=new_axes())
    draw(ax)
    drawn = lines(ax)
    segments = {tuple(map(tuple, segment.tolist())) for segment in drawn.get_segments()}
    i, j, weight = GRAPH.edges
    assert segments == {(tuple(PLACES[a].tolist()), tuple(PLACES[b].tolist())) for a, b in zip(i, j, strict=True)}
    widths, opacities = np.asarray(drawn.get_linewidth()), np.asarray(drawn.get_colors())[:, 3]
    # Long ones come first, below the others.
    assert (np.diff(widths) >= 0).all()
    assert (np.diff(opacities) >= 0).all()
    assert widths[-1] > 2 * widths[0]
    assert weight.min() == 0.5  # and that one is drawn last
    assert tuple(map(tuple, drawn.get_segments()[-1].tolist())) == ((0.0, 1.0), (1.0, 1.0))


def test_hubs_are_marked() -> None:
    ax = plot_graph(GRAPH, positions=PLACES, ax=new_axes())
    assert legend_texts(ax) == ["hubs"]
    assert np.array_equal(np.asarray(ax.collections[-1].get_offsets()), PLACES[4:])
    bare = plot_graph(Graph.from_edges([0], [1], [1.0]), positions=PLACES[:2], ax=new_axes())
    assert bare.get_legend() is None


def test_items_with_more_edges_are_larger() -> None:
    star = Graph.from_edges([0, 0, 0], [1, 2, 3], 1.0)
    ax = plot_graph(star, positions=PLACES[:4], ax=new_axes())
    points = ax.collections[-1]
    assert isinstance(points, PathCollection)
    sizes = points.get_sizes()
    assert sizes[0] > sizes[1] == sizes[2]


def test_labels_are_colours() -> None:
    ax = plot_graph(GRAPH, ["b", "b", "a", "a"], PLACES, ax=new_axes())
    draw(ax)
    assert legend_texts(ax) == ["a", "b", "hubs"]
    points = {tuple(np.asarray(entry.get_facecolor())[0, :3]): entry.get_offsets() for entry in ax.collections[1:3]}
    assert np.array_equal(np.asarray(points[to_rgb(OKABE_ITO[1])]), PLACES[:2])
    # The edge between the first two items has their colour, those to the hub none.
    colors = np.asarray(lines(ax).get_colors())[:, :3]
    assert colors[-1] == pytest.approx(to_rgb(OKABE_ITO[1]))
    assert colors[:-1] == pytest.approx(np.tile(to_rgb(GREY), (4, 1)))


def test_real_numbers_are_a_scale() -> None:
    figure = Figure()
    ax = plot_graph(GRAPH, np.array([0.0, 0.5, np.nan, 1.0]), PLACES, ax=figure.subplots())
    draw(ax)
    assert len(figure.axes) == 2  # the scale
    assert legend_texts(ax) == ["hubs"]
    draw(plot_graph(GRAPH, np.full(4, np.nan), PLACES, ax=new_axes()))


def test_integers_are_in_order() -> None:
    assert Groups.of([10, 9, 10, 2], 4).names == ["2", "9", "10"]
    assert Groups.of(np.array([True, False]), 2).names == ["False", "True"]


def test_many_groups() -> None:
    n = MOST_GROUPS + 12
    labels = [f"group {place:03}" for place in range(n)] * 2 + ["group 000"] * 3
    groups = Groups.of(labels, len(labels))
    assert len(groups.names) == MOST_GROUPS - 1
    assert groups.names[0] == "group 000"
    assert (groups.group == -1).sum() == 2 * (n - MOST_GROUPS + 1)
    graph = Graph.from_edges(np.arange(len(labels) - 1), np.arange(1, len(labels)), 1.0)
    ax = plot_graph(graph, labels, np.random.default_rng(0).normal(size=(len(labels), 2)), ax=new_axes())
    draw(ax)
    assert legend_texts(ax)[0] == "others"


ODD = ["$\\frac{1}$", "<script>alert(1)</script>", "🙂🪨" * 50, "שלום", "x" * 10_000]


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_any_label(kind: str) -> None:
    graph = Graph.from_edges(np.arange(4), np.arange(1, 5), 1.0)
    ax = plot_graph(graph, ODD, PLACES, labels=ODD, ax=new_axes())
    draw(ax, kind)
    assert len(ax.texts) == 5
    assert max(len(text) for text in legend_texts(ax)) <= 24
    anything: Any = [None, 1, "a", (1, 2), 2.5]
    mixed = plot_graph(graph, anything, PLACES, ax=new_axes())
    draw(mixed)
    assert set(legend_texts(mixed)) == {"None", "1", "a", "(1, 2)", "2.5"}


def test_labels_of_the_best_joined() -> None:
    star = Graph.from_edges([2, 2, 2], [0, 1, 3], 1.0)
    ax = plot_graph(star, positions=PLACES[:4], labels=["a", "b", "c", "d"], n_labels=2, ax=new_axes())
    assert [text.get_text() for text in ax.texts] == ["c", "a"]


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((4, 3, 5)),
        np.full((4, 2, 2), 255, dtype=np.uint8),
        np.random.default_rng(0).random((4, 6, 6, 3)),
        np.random.default_rng(0).random((4, 6, 6, 4)),
    ],
)
def test_images(images: Any) -> None:
    ax = plot_graph(GRAPH, [0, 0, 1, 1], PLACES, images=images, ax=new_axes())
    draw(ax)
    boxes = [artist for artist in ax.artists if isinstance(artist, AnnotationBbox)]
    assert [tuple(box.xy) for box in boxes] == [tuple(place) for place in PLACES[:4].tolist()]


def test_images_that_cannot_be_drawn() -> None:
    for images, message in (
        (np.zeros((3, 2, 2)), r"images must have shape \(4, height, width\)"),
        (np.zeros((4, 2)), r"got \(4, 2\)"),
        (np.zeros((4, 0, 2)), r"got \(4, 0, 2\)"),
        (np.zeros((4, 2, 2, 5)), "3 or 4 colours in their last axis, got 5"),
        (np.full((4, 2, 2), 7.0), "0 to 1 otherwise, got 7.0 to 7.0"),
        (np.full((4, 2, 2), np.nan), "0 to 1 otherwise"),
        (np.full((4, 2, 2), 300), "0 to 255 as integers"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_graph(GRAPH, positions=PLACES, images=images, ax=new_axes())
    with pytest.raises(TypeError, match="images must hold numbers"):
        plot_graph(GRAPH, positions=PLACES, images=np.full((4, 2, 2), "x"), ax=new_axes())


def test_wrong_input() -> None:
    nowhere = PLACES.copy()
    nowhere[2, 1] = np.nan
    for options, message in (
        ({"positions": nowhere}, r"positions\[2\] = \[1.0, nan\] cannot be drawn \(1 such vertices\)"),
        ({"positions": PLACES[:4]}, r"positions must have shape \(5, 2\)"),
        ({"positions": PLACES, "groups": [1, 2, 3, 4, 5]}, "one entry for each of the 4 items and none for hubs"),
        ({"positions": PLACES, "labels": ["a"]}, "labels must have one entry for each of the 4 items, got 1"),
        ({"positions": PLACES, "n_labels": -1}, "n_labels must be between 0"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_graph(GRAPH, ax=new_axes(), **options)


def test_one_vertex() -> None:
    ax = plot_graph(Graph.from_edges([], [], [], n_vertices=1), ["alone"], ax=new_axes())
    draw(ax)
    assert legend_texts(ax) == ["alone"]


@settings(max_examples=15, deadline=None)
@given(graphs(max_items=8))
def test_any_graph_at_given_places(edges: Any) -> None:
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    places = np.random.default_rng(0).normal(size=(graph.n_vertices, 2))
    ax = plot_graph(graph, np.arange(graph.n_items) % 3, places, ax=new_axes())
    draw(ax)
    shown = sum(isinstance(entry, LineCollection) for entry in ax.collections)
    assert shown == (graph.n_edges > 0)


def test_places_are_found() -> None:
    """Two far groups, and items without a way to the others."""
    graph = Graph.from_edges([0, 0, 1, 3, 3, 4, 2], [1, 2, 2, 4, 5, 5, 3], [1, 1, 1, 1, 1, 1, 30.0], n_vertices=8)
    ax = plot_graph(graph, ax=new_axes())
    draw(ax)
    where = np.asarray(ax.collections[-1].get_offsets())
    assert where.shape == (8, 2)
    assert np.isfinite(where).all()
