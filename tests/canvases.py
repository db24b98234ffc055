"""Axes to draw on in tests, and what can be read from them."""

from __future__ import annotations

import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def new_axes() -> Axes:
    """Axes that pyplot knows nothing of."""
    return Figure().subplots()


def draw(ax: Axes, kind: str = "png") -> str:
    """Draw in full; warnings are errors, so a missing sign or a broken formula is one. Return an SVG as text."""
    assert isinstance(ax.figure, Figure)
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format=kind)
    return buffer.getvalue().decode() if kind == "svg" else ""


def legend_texts(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]
