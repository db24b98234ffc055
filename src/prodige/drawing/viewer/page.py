"""One file out of the graph and the parts of the page.

Nothing of the data becomes markup or code. Arrays are embedded as base64, texts as JSON in which no character is left
that could end the element around it, and the page's own policy lets the browser run this package's script and style,
known by their hashes, and nothing else: no other script, no request to any host.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige.drawing.layout import place
from prodige.drawing.viewer.inputs import check_groups, check_labels, check_positions
from prodige.drawing.viewer.sprites import pack
from prodige.graph.atomic import StrPath, as_text, replacing
from prodige.graph.container import little_endian

if TYPE_CHECKING:
    from prodige.graph.graph import Graph

# In this order: classes before those that extend or start them.
SCRIPTS = (
    *("data", "paths", "camera", "finder", "marks", "edges", "scene"),
    *("overlay", "labels", "panel", "gestures", "viewer", "main"),
)


def write(
    path: StrPath,
    graph: Graph,
    labels: Sequence[Any] | NDArray[Any] | None = None,
    groups: Sequence[Any] | NDArray[Any] | None = None,
    images: NDArray[np.uint8] | None = None,
    positions: ArrayLike | None = None,
    title: str | None = None,
    words: str | None = None,
) -> None:
    """Write the page; see :meth:`prodige.Graph.to_html`.

    Examples
    --------
    >>> import os, tempfile
    >>> from prodige import Graph
    >>> from prodige.drawing import viewer
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     viewer.write(f"{directory}/pair.html", Graph.from_edges([0], [1], [2.0]), labels=["left", "right"])
    ...     os.path.getsize(f"{directory}/pair.html") < 100_000
    True
    """
    name = as_text(path)
    page = render(graph, labels, groups, images, positions, title, words)
    with replacing(name) as file:
        file.write(page.encode())


def render(
    graph: Graph,
    labels: Sequence[Any] | NDArray[Any] | None = None,
    groups: Sequence[Any] | NDArray[Any] | None = None,
    images: NDArray[np.uint8] | None = None,
    positions: ArrayLike | None = None,
    title: str | None = None,
    words: str | None = None,
) -> str:
    """Return the page as text; see :meth:`prodige.Graph.to_html`.

    ``words`` say what the graph is; when left out, what it consists of.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.drawing import viewer
    >>> "<b>" in viewer.render(Graph.from_edges([0], [1], [2.0]), labels=["<b>left</b>", "right"])
    False
    """
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a str, got {title!r} of type {type(title).__name__}")
    title = f"Graph of {graph.n_items:,} items" if title is None else title
    names = check_labels(labels, graph)
    grouping = check_groups(groups, graph)
    sheets = None if images is None else pack(images, graph)
    # The slowest part comes last, when all that users gave is known to be right.
    places = place(graph) if positions is None else check_positions(positions, graph)
    i, j, weight = graph.edges
    data = {
        "title": title,
        "words": words,
        "n_items": graph.n_items,
        "n_vertices": graph.n_vertices,
        "starts": encode(np.searchsorted(i, np.arange(graph.n_vertices + 1)).astype(np.int32)),
        "ends": encode(j),
        "weights": encode(weight),
        "positions": encode(places),
        "labels": names,
        "groups": None if grouping is None else {"names": grouping.names, "codes": encode(grouping.codes)},
        "images": None if sheets is None else sheets._asdict(),
    }
    return assemble(title, describe(graph) if words is None else words, to_json(data))


def assemble(title: str, words: str, data: str) -> str:
    """Put everything where the page has a place for it, marked as ``@@name@@``."""
    from prodige import __version__

    folder = files("prodige.drawing.viewer") / "assets"
    style = (folder / "style.css").read_text("utf-8")
    script = '"use strict";\n' + "\n".join((folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    parts = {
        "policy": policy(script, style),
        "version": __version__,
        "title": html.escape(title).encode("ascii", "xmlcharrefreplace").decode(),
        "words": html.escape(words),
        "style": style,
        "script": script,
        "data": data,
    }
    # All at once: what looks like a mark in the data is none.
    return re.sub("@@([a-z]+)@@", lambda mark: parts[mark[1]], (folder / "page.html").read_text("utf-8"))


def policy(script: str, style: str) -> str:
    """Return a content security policy: one script, one style, images from the file itself, and nothing else."""

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def describe(graph: Graph) -> str:
    """Say what the graph consists of."""
    return f"A graph of {graph.n_items:,} items, {graph.n_hubs:,} hubs and {graph.n_edges:,} edges."


def encode(array: NDArray[Any]) -> str:
    """Return the numbers of an array as base64, little-endian."""
    return base64.b64encode(little_endian(np.ascontiguousarray(array))).decode()


def to_json(value: Any) -> str:
    r"""Return JSON that can stand inside an element of a page: ASCII, and without the signs that markup is made of.

    Examples
    --------
    >>> from prodige.drawing.viewer.page import to_json
    >>> print(to_json("</script>\u2028&"))
    "\u003c/script\u003e\u2028\u0026"
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
