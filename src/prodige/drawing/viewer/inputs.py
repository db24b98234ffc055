"""Checks on what a page is to show: labels, groups and positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from prodige.graph.graph import Graph

MOST_GROUPS = 256  # 28 pairs of colour and shape can be told apart; beyond, the legend still can be read


class Groups(NamedTuple):
    """Names of groups, in the order of the legend, and the group of each vertex that has one."""

    names: list[str]
    codes: NDArray[np.uint16]


def check_labels(labels: Sequence[Any] | NDArray[Any] | None, graph: Graph) -> list[str] | None:
    """Return labels as texts.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.drawing.viewer.inputs import check_labels
    >>> check_labels([7, "seven"], Graph.from_edges([0], [1], [1]))
    ['7', 'seven']
    """
    return None if labels is None else as_texts("labels", labels, graph)


def check_groups(groups: Sequence[Any] | NDArray[Any] | None, graph: Graph) -> Groups | None:
    """Return groups in order: numbers by their size, then texts by the alphabet.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.drawing.viewer.inputs import check_groups
    >>> check_groups([10, 9, "a"], Graph.from_edges([0, 1], [1, 2], [1, 1])).names
    ['9', '10', 'a']
    """
    if groups is None:
        return None
    texts = as_texts("groups", groups, graph)
    names = sorted(set(texts), key=by_size)
    if len(names) > MOST_GROUPS:
        raise ValueError(
            f"groups has {len(names)} different values, at most {MOST_GROUPS} can be shown; merge some, "
            "or pass them as labels"
        )
    code = {name: place for place, name in enumerate(names)}
    return Groups(names, np.array([code[text] for text in texts], np.uint16))


def check_positions(positions: ArrayLike, graph: Graph) -> NDArray[np.float32]:
    """Return a place for every vertex; hubs that have none go to the middle of the items that they are joined to.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.drawing.viewer.inputs import check_positions
    >>> check_positions([[0, 0], [4, 2]], Graph.from_edges([0, 1], [2, 2], [1, 1], n_items=2))[2]
    array([2., 1.], dtype=float32)
    """
    given = np.asarray(positions)
    n_items, n_vertices = graph.n_items, graph.n_vertices
    if given.ndim != 2 or given.shape[1] != 2 or len(given) not in (n_items, n_vertices):
        raise ValueError(f"positions must have shape {sizes(graph, ', 2')}, got {given.shape}")
    if given.dtype.kind not in "fiu":
        raise TypeError(f"positions must hold real numbers, got dtype {given.dtype}")
    with np.errstate(over="ignore"):
        places = given.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(places).all(axis=1))
    if bad.size:
        raise ValueError(
            f"positions[{bad[0]}] = {given[bad[0]].tolist()} is no place in the plane ({bad.size} such rows): "
            "give finite numbers that fit into float32, or leave positions out"
        )
    return places if len(places) == n_vertices else np.concatenate([places, middles(places, graph)])


def middles(places: NDArray[np.float32], graph: Graph) -> NDArray[np.float32]:
    """Return the mean place of the items at each hub, of all items where a hub has none."""
    item, other, _ = graph.edges  # a hub is always the larger end
    joins = (item < graph.n_items) & (other >= graph.n_items)
    hub = other[joins] - graph.n_items
    count = np.bincount(hub, minlength=graph.n_hubs)
    sums = np.stack([np.bincount(hub, places[item[joins], axis], graph.n_hubs) for axis in range(2)], axis=1)
    return np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], places.mean(axis=0)).astype(np.float32)


def as_texts(name: str, values: Sequence[Any] | NDArray[Any], graph: Graph) -> list[str]:
    """Return one text per item or per vertex."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
        raise TypeError(f"{name} must be a sequence with one entry per item, got {type(values).__name__}")
    if len(values) not in (graph.n_items, graph.n_vertices):
        raise ValueError(f"{name} must have {sizes(graph)} entries, got {len(values)}")
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional, got shape {values.shape}")
        values = values.tolist()
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in values]


def sizes(graph: Graph, after: str = "") -> str:
    """Say how long an argument may be."""
    items = f"[{graph.n_items}{after}]" if after else str(graph.n_items)
    if not graph.n_hubs:
        return items
    vertices = f"[{graph.n_vertices}{after}]" if after else str(graph.n_vertices)
    return f"{items} (items) or {vertices} (with hubs)"


def by_size(text: str) -> tuple[bool, float, str]:
    """Return a key that orders numbers by their size and everything else after them."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    return (False, number, text) if math.isfinite(number) else (True, 0.0, text)
