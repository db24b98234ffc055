"""A graph as points and lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige._validation import check_integer
from prodige.drawing.plots.groups import Groups
from prodige.drawing.plots.style import GREY, get_axes, shorten, text_color
from prodige.graph.graph import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More lines than this become a picture inside an SVG or PDF file: nothing shows so many one by one.
_MOST_LINES = 1000

# Widths in points and opacities, from the longest edge of a graph to the shortest.
_WIDTHS = (0.25, 1.8)
_OPACITIES = (0.2, 0.8)


def plot_graph(
    graph: Graph,
    groups: ArrayLike | None = None,
    positions: ArrayLike | None = None,
    *,
    labels: Sequence[Any] | None = None,
    n_labels: int = 40,
    images: ArrayLike | None = None,
    method: Literal["auto", "tsne", "mds"] = "auto",
    random_state: int = 0,
    n_jobs: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a graph: items as points that grow with their edges, hubs as black diamonds, short edges as strong lines.

    Parameters
    ----------
    graph : Graph
    groups : array-like, shape [n_items], optional
        What gives each item its colour. Real numbers become a scale of colours; anything else gets a colour for each
        value and a legend. Edges within a group have its colour.
    positions : array-like, shape [n_vertices, 2], optional
        Where to draw each vertex; found from the distances of the graph by ``method`` when left out.
    labels : sequence, shape [n_items], optional
        Names, written beside the ``n_labels`` items with the most edges, shortened.
    n_labels : int
    images : array-like, shape [n_items, height, width] or [n_items, height, width, 3 or 4], optional
        Drawn in the place of points, for up to a few hundred items: 0 to 255 as integers, 0 to 1 otherwise. Those of
        one channel are drawn as ink: the larger, the darker.
    method : {"auto", "tsne", "mds"}
        As in :func:`prodige.drawing.layout.place`.
    random_state : int
        Seed of the layout.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prodige import Graph
    >>> from prodige.drawing.plots import plot_graph
    >>> graph = Graph.from_edges([0, 1, 2], [3, 3, 3], [1.0, 2.0, 1.0], n_items=3)
    >>> ax = plot_graph(graph, ["a", "b", "a"], [[0, 1], [1, 0], [-1, 0], [0, 0]], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b', 'hubs']
    """
    ax = get_axes(ax)
    colors = Groups.of(groups, graph.n_items)
    if labels is not None and len(labels) != graph.n_items:
        raise ValueError(f"labels must have one entry for each of the {graph.n_items} items, got {len(labels)}")
    check_integer("n_labels", n_labels, 0, 2**31)
    pictures = None if images is None else check_images(images, graph.n_items)
    if positions is None:
        from prodige.drawing.layout import place

        positions = place(graph, method, random_state, n_jobs)
    where = check_positions(positions, graph.n_vertices)

    draw_edges(ax, graph, where, colors)
    sizes = point_sizes(graph) * (1 if pictures is None else 0.35)  # hubs must not hide images
    if pictures is None:
        handles, texts = colors.draw(ax, where[: graph.n_items], sizes[: graph.n_items])
    else:
        handles, texts = draw_images(ax, where, pictures, colors)
    if graph.n_hubs:
        handles.append(draw_hubs(ax, where[graph.n_items :], sizes[graph.n_items :]))
        texts.append("hubs")
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.margins(0.03)
    if labels is not None:
        draw_labels(ax, graph, where, labels, n_labels)
    if groups is not None or graph.n_hubs:
        colors.explain(ax, handles, texts)
    return ax


def draw_labels(ax: Axes, graph: Graph, where: NDArray[np.float64], labels: Sequence[Any], n_labels: int) -> None:
    """Write the names of the items with the most edges beside them."""
    for item in np.argsort(-graph.degrees()[: graph.n_items], kind="stable")[:n_labels]:
        ax.annotate(
            shorten(labels[item]),
            where[item],
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=7,
            parse_math=False,
            zorder=5,
        )


def check_positions(positions: ArrayLike, n_vertices: int) -> NDArray[np.float64]:
    """Return places of vertices after making sure that there is one for each, and that all can be drawn."""
    where = np.asarray(positions, dtype=np.float64)
    if where.shape != (n_vertices, 2):
        raise ValueError(
            f"positions must have shape ({n_vertices}, 2), two coordinates for each item and hub, got {where.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(where).all(axis=1))
    if bad.size:
        raise ValueError(
            f"positions[{bad[0]}] = {where[bad[0]].tolist()} cannot be drawn ({bad.size} such vertices): "
            "coordinates must be finite; leave positions out to have them found"
        )
    return where


def check_images(images: ArrayLike, n_items: int) -> NDArray[np.float64]:
    """Return images as colours with opacity between 0 and 1, shape [N, height, width, 4]."""
    pixels = np.asarray(images)
    if pixels.ndim not in (3, 4) or len(pixels) != n_items or 0 in pixels.shape:
        raise ValueError(
            f"images must have shape ({n_items}, height, width), or one more axis of 3 or 4 colours, got {pixels.shape}"
        )
    if pixels.ndim == 4 and pixels.shape[3] not in (3, 4):
        raise ValueError(f"images must have 3 or 4 colours in their last axis, got {pixels.shape[3]}")
    if pixels.dtype.kind not in "fiub":
        raise TypeError(f"images must hold numbers, got dtype {pixels.dtype}")
    colors = pixels / 255.0 if pixels.dtype.kind in "iu" else pixels.astype(np.float64)
    if not (np.isfinite(colors).all() and colors.min() >= 0 and colors.max() <= 1):
        raise ValueError(
            f"images must be 0 to 255 as integers or 0 to 1 otherwise, got {pixels.min()} to {pixels.max()}; "
            "divide them by their largest value"
        )
    if colors.ndim == 3:  # ink on paper
        paper = 1 - colors
        colors = np.stack([paper, paper, paper], axis=-1)
    if colors.shape[3] == 3:
        colors = np.concatenate([colors, np.ones((*colors.shape[:3], 1))], axis=-1)
    return colors


def point_sizes(graph: Graph) -> NDArray[np.float64]:
    """Return the areas of points: larger with more edges, smaller where there are many points."""
    degrees = graph.degrees()
    base = np.clip(9000 / graph.n_vertices, 3, 40)
    return np.asarray(base * np.clip(degrees / max(degrees.mean(), 1), 0.5, 4) ** 0.7)


def draw_edges(ax: Axes, graph: Graph, where: NDArray[np.float64], groups: Groups) -> None:
    """Draw the edges, long ones below short ones."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba_array

    i, j, weight = graph.edges
    if not weight.size:
        return
    # By rank, as the lengths of many graphs are nearly equal; equal ones are drawn alike.
    rank = np.unique(-weight, return_inverse=True)[1].ravel()
    strength = (rank / rank.max()) ** 1.5 if rank.max() > 0 else np.full(weight.size, 0.5)
    crowd = np.clip((800 / weight.size) ** 0.5, 0.3, 1)
    colors = to_rgba_array(groups.edge_colors(i, j) or [GREY])
    colors = np.broadcast_to(colors, (weight.size, 4)).copy()
    colors[:, 3] = (_OPACITIES[0] + (_OPACITIES[1] - _OPACITIES[0]) * strength) * crowd**0.5
    order = np.argsort(strength, kind="stable")
    ax.add_collection(
        LineCollection(
            list(np.stack([where[i], where[j]], axis=1)[order]),
            colors=colors[order],
            linewidths=((_WIDTHS[0] + (_WIDTHS[1] - _WIDTHS[0]) * strength) * crowd)[order],
            rasterized=weight.size > _MOST_LINES,
            zorder=1,
        )
    )


def draw_hubs(ax: Axes, where: NDArray[np.float64], sizes: NDArray[np.float64]) -> Any:
    """Draw hubs as diamonds; return what a legend needs."""
    return ax.scatter(where[:, 0], where[:, 1], s=sizes, c=[text_color()], marker="D", zorder=4)


def draw_images(
    ax: Axes, where: NDArray[np.float64], pictures: NDArray[np.float64], groups: Groups
) -> tuple[list[Any], list[str]]:
    """Draw images with frames in the colours of their groups; return what a legend needs."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    n_items, height = pictures.shape[:2]
    # Side by side they would fill about a tenth of a picture of usual size.
    zoom = np.clip(110 / n_items**0.5, 6, 28) / height
    handles, texts = groups.draw(ax, where[:n_items], np.full(n_items, 1.0))
    for picture, place, color in zip(pictures, where[:n_items], groups.item_colors(), strict=True):
        box = AnnotationBbox(
            OffsetImage(picture, zoom=zoom, interpolation="nearest"),
            (place[0], place[1]),
            frameon=True,
            pad=0.1,
            bboxprops={"edgecolor": color, "facecolor": color, "linewidth": 0.8, "boxstyle": "square,pad=0.1"},
            zorder=3,
        )
        ax.add_artist(box)
    return handles, texts
