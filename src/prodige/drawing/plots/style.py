"""What all plots share: axes to draw on, colours, and text that matplotlib can draw whatever it says."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

# Okabe and Ito's palette without black, which text and hubs have; the order keeps neighbours far apart.
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")

# For what is there but not meant to be looked at.
GREY = "#8C8C8C"

# Where there are more groups than colours, the shape changes.
MARKERS = ("o", "s", "^", "D")

# Letters of a label that are drawn.
MOST_LETTERS = 24


def get_axes(ax: Axes | None) -> Axes:
    """Return the axes themselves, or new ones of a new figure of pyplot.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from prodige.drawing.plots.style import get_axes
    >>> ax = Figure().subplots()
    >>> get_axes(ax) is ax
    True
    """
    check_matplotlib()
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be one matplotlib Axes, got {type(ax).__name__}; take one with axes.flat[0]")
    return ax


def check_matplotlib() -> None:
    """Say what to install if plots cannot be drawn."""
    try:
        import matplotlib.axes  # noqa: F401
    except ImportError as error:
        raise ImportError("plots need matplotlib; pip install 'prodige[plot]'") from error


def text_color() -> Any:
    """Return the colour of text, which stands out from any background a user has chosen."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def tidy(ax: Axes, grid: bool = True) -> None:
    """Take away the lines that say nothing, and add faint ones to read values by."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if grid:
        ax.grid(True, which="major", color=GREY, alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)


def color_of(place: int) -> tuple[str, str]:
    """Return the colour and the marker of a group by its place.

    Examples
    --------
    >>> from prodige.drawing.plots.style import color_of
    >>> color_of(0), color_of(7)
    (('#0072B2', 'o'), ('#0072B2', 's'))
    """
    return OKABE_ITO[place % len(OKABE_ITO)], MARKERS[place // len(OKABE_ITO) % len(MARKERS)]


def shorten(label: Any, limit: int = MOST_LETTERS) -> str:
    r"""Return a label as one short line: no control characters, and none that the fonts in use have no sign for.

    Examples
    --------
    >>> from prodige.drawing.plots.style import shorten
    >>> shorten("two\nlines \u202eof text"), shorten("x" * 10_000, limit=5), shorten("\U0001faa8 rock")
    ('two lines of text', 'xxxx…', '□ rock')
    """
    # A look at the beginning is enough; a label may be a whole book.
    start = " ".join(str(label)[: 40 * limit].split())
    visible = "".join(letter for letter in start if unicodedata.category(letter)[0] != "C")
    drawable = "".join(letter if is_drawable(letter, families()) else "□" for letter in visible)
    return drawable if len(drawable) <= limit else drawable[: limit - 1].rstrip() + "…"


def families() -> tuple[str, ...]:
    """Return the names of the fonts in use."""
    from matplotlib.font_manager import FontProperties

    return tuple(FontProperties().get_family())


@lru_cache(maxsize=4096)
def is_drawable(letter: str, fonts: tuple[str, ...]) -> bool:
    """Whether one of the fonts has a sign for a letter; matplotlib would warn of it and draw a box."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    files = (findfont(FontProperties(family=[name])) for name in fonts)
    return letter.isspace() or any(get_font(file).get_char_index(ord(letter)) for file in files)


def add_legend(ax: Axes, handles: Sequence[Any], texts: Sequence[str], **options: Any) -> Legend:
    """Add a legend whose texts are drawn as they are: ``$`` opens no formula, and ``_`` hides nothing."""
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"} | options
    legend: Legend = ax.legend(
        list(handles),
        [str(place) for place in range(len(texts))],
        **looks,
    )
    for entry, text in zip(legend.get_texts(), texts, strict=True):
        entry.set_parse_math(False)
        entry.set_text(text)
    return legend
