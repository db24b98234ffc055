"""What all plots share: any text can be drawn, and nothing global is touched."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.figure import Figure

from canvases import draw
from prodige.drawing.plots.style import MARKERS, OKABE_ITO, add_legend, color_of, get_axes, shorten

ODD = [
    "$\\frac{1}$",
    "$",
    "_hidden",
    "<b>bold</b> & <script>alert(1)</script>",
    "🙂🪨",
    "שלום עולם",
    "\u202eright to left",
    "x" * 10_000,
    "two\nlines",
    "\x00\x1b[2J",
    "",
]


def test_any_text_in_a_legend() -> None:
    figure = Figure()
    ax = figure.subplots()
    handles = [ax.plot([0, 1], [0, place])[0] for place in range(len(ODD))]
    legend = add_legend(ax, handles, [shorten(text) for text in ODD])
    draw(ax)
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts[0] == "$\\frac{1}$"
    assert texts[2] == "_hidden"
    assert texts[3] == "<b>bold</b> & <script>a…"
    assert texts[5] == "שלום עולם"
    assert texts[6] == "right to left"
    assert all(len(text) <= 24 for text in texts)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.integers(2, 30))
def test_labels_are_short_and_on_one_line(label: str, limit: int) -> None:
    short = shorten(label, limit)
    assert len(short) <= limit
    assert short.isprintable()


def test_short_labels_stay() -> None:
    assert shorten("Ada Lovelace") == "Ada Lovelace"
    assert shorten(7) == "7"


def test_groups_are_told_apart() -> None:
    looks = [color_of(place) for place in range(len(OKABE_ITO) * len(MARKERS))]
    assert len(set(looks)) == len(looks)
    assert color_of(len(looks)) == color_of(0)


def test_axes() -> None:
    before = pyplot.get_fignums()
    ax = Figure().subplots()
    assert get_axes(ax) is ax
    assert pyplot.get_fignums() == before
    new = get_axes(None)
    assert new.figure is pyplot.gcf()
    pyplot.close("all")
    with pytest.raises(TypeError, match="ax must be one matplotlib Axes, got ndarray"):
        get_axes(Figure().subplots(2))


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(ImportError, match=r"pip install 'prodige\[plot\]'"):
        get_axes(None)


def test_importing_plots_does_not_import_matplotlib() -> None:
    code = "import sys, prodige.drawing.plots; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
