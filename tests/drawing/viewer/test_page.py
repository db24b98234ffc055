"""The page as a file: whole, self-contained, and without a way out for what is in the data."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige import Graph
from prodige.drawing import viewer
from prodige.drawing.layout import place
from prodige.drawing.viewer import page
from prodige.drawing.viewer.page import SCRIPTS, assemble, to_json
from strategies import Edges, graphs


class Elements(HTMLParser):
    """Texts of all elements by name, and all attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {}
        self.attributes: list[tuple[str, str | None]] = []
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.attributes += attributes
        self.texts.setdefault(tag, []).append("")
        self._open = tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def pair() -> Graph:
    return Graph.from_edges([0, 1], [2, 2], [1.5, 2.5], n_items=2)


def embedded(text: str) -> Any:
    return json.loads(Elements(text).texts["script"][0])


def numbers(text: str, dtype: str) -> list[Any]:
    return list(np.frombuffer(base64.b64decode(text), dtype).tolist())


def test_data_are_those_of_the_graph() -> None:
    data = embedded(viewer.render(pair(), labels=["a", "b"], groups=["x", "y"], positions=[[0, 1], [2, 3], [4, 5]]))
    assert (data["n_items"], data["n_vertices"], data["title"]) == (2, 3, "Graph of 2 items")
    assert numbers(data["starts"], "<i4") == [0, 1, 2, 2]
    assert numbers(data["ends"], "<i4") == [2, 2]
    assert numbers(data["weights"], "<f4") == [1.5, 2.5]
    assert numbers(data["positions"], "<f4") == [0, 1, 2, 3, 4, 5]
    assert data["labels"] == ["a", "b"]
    assert data["groups"]["names"] == ["x", "y"]
    assert numbers(data["groups"]["codes"], "<u2") == [0, 1]
    assert data["images"] is None


@given(edges=graphs(max_items=8))
@settings(max_examples=15, deadline=None)
def test_edges_come_back(edges: Edges) -> None:
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    data = embedded(viewer.render(graph, positions=np.zeros((graph.n_vertices, 2))))
    i = np.repeat(np.arange(graph.n_vertices), np.diff(numbers(data["starts"], "<i4")))
    again = Graph.from_edges(
        i, numbers(data["ends"], "<i4"), numbers(data["weights"], "<f4"), data["n_vertices"], data["n_items"]
    )
    assert again == graph


def test_vertices_are_placed_when_users_do_not() -> None:
    data = embedded(viewer.render(pair()))
    assert numbers(data["positions"], "<f4") == place(pair()).ravel().tolist()


def test_nothing_is_fetched() -> None:
    """No address but names of the format itself, no attribute that loads or runs anything."""
    text = viewer.render(pair(), images=np.zeros((2, 2, 2), np.uint8))
    elements = Elements(text)
    for name, value in elements.attributes:
        assert not name.startswith("on")
        assert name != "style"
        if name in ("src", "href"):
            assert value is not None
            assert value.startswith(("#", "data:,"))
    assert re.findall(r"https?://[^\s\"'`]+|@import|url\(", text) == []


def test_policy_knows_the_script_and_the_style() -> None:
    elements = Elements(viewer.render(pair()))
    policy = next(
        value for name, value in elements.attributes if name == "content" and value and "default-src" in value
    )
    assert "default-src 'none'" in policy
    for kind, text in (("script", elements.texts["script"][1]), ("style", elements.texts["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


TEXTS = st.text(st.characters(codec=None), max_size=30) | st.sampled_from(
    ["</script>", "<!--", "]]>", "@@data@@", "\\u003c/script\\u003e", "\u2028", "&lt;", "\ud800", '"\\', "</title>"]
)


@given(labels=st.lists(TEXTS, min_size=2, max_size=2), title=TEXTS)
@settings(max_examples=60, deadline=None)
def test_texts_come_back_and_nothing_else_changes(labels: list[str], title: str) -> None:
    text = viewer.render(pair(), labels=labels, groups=labels, positions=np.zeros((3, 2)), title=title)
    elements = Elements(text)
    data = json.loads(elements.texts["script"][0])
    assert data["labels"] == labels
    assert data["title"] == title
    plain = Elements(viewer.render(pair(), positions=np.zeros((3, 2)), title="x"))
    assert {tag: len(texts) for tag, texts in elements.texts.items()} == {
        tag: len(texts) for tag, texts in plain.texts.items()
    }
    assert elements.attributes == plain.attributes
    text.encode()


def test_json_has_no_markup() -> None:
    assert not set("<>&\u2028\u2029") & set(to_json("<>&\u2028\u2029"))
    with pytest.raises(ValueError, match="JSON"):
        to_json(float("nan"))


def test_parts_of_the_page() -> None:
    """All scripts are used, and none ends its element."""
    folder = Path(page.__file__).parent / "assets"
    assert sorted(path.stem for path in folder.glob("*.js")) == sorted(SCRIPTS)
    for path in folder.iterdir():
        text = path.read_text("utf-8")
        assert "\r" not in text
        if path.suffix != ".html":
            assert not re.search(r"</(script|style)|<!--", text)
            assert "innerHTML" not in text
            assert "eval(" not in text
    assert "@@" not in assemble("title", "words", "{}")


def test_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.html"
    path.write_text("old")
    path.chmod(0o600)
    with pytest.raises(ValueError, match="labels"):
        pair().to_html(path, labels=["one"])
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        pair().to_html(path)
    assert path.read_text() == "old"
    monkeypatch.undo()
    pair().to_html(path)
    assert path.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["graph.html"]


def test_same_graph_same_page() -> None:
    assert viewer.render(pair()) == viewer.render(pair())


def test_title_is_checked() -> None:
    with pytest.raises(TypeError, match="title must be a str, got 3"):
        viewer.render(pair(), title=3)  # type: ignore[arg-type]
