"""Progress of a fit: a live panel on a terminal, a line now and then elsewhere; both on stderr.

Standard output stays what was asked for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from prodige.progress import Record

# Seconds between two lines where there is no terminal: a log of a short run stays empty.
SECONDS_PER_LINE = 10.0

# Characters of a curve and of the panel around it.
_CURVE = 48
_PANEL = 76

_LEVELS = "▁▂▃▄▅▆▇█"


class FitProgress(AbstractContextManager["FitProgress"]):
    """The stage of a fit, its error as a curve, the size of the graph so far, and the time left.

    Parameters
    ----------
    shown : bool
        False for nothing at all.
    console : rich.console.Console, optional
        Where to; stderr when left out. A terminal gets a panel, anything else lines.
    measure : str
        What to call the error.
    clock : callable
        Seconds.

    Examples
    --------
    >>> from prodige.cli.progress import FitProgress
    >>> from prodige.progress import Record
    >>> with FitProgress(shown=False) as progress:
    ...     progress(Record(step=0, progress=0.5, loss=0.01, seconds=0.1, n_edges=12, numbers_per_item=4.2))
    """

    def __init__(
        self,
        shown: bool = True,
        console: Console | None = None,
        measure: str = "mse",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True) if console is None else console
        self._shown = shown
        self._measure = measure
        self._clock = clock
        self._began = self._said = clock()
        self._stage = "preparing"
        self._rounds = 0
        self._first: tuple[float, float] = (0.0, 0.0)  # time and progress when the round was first heard of
        self._last: Record | None = None
        self._losses: list[float] = []
        self._live = (
            Live(console=self._console, transient=True, get_renderable=self.panel, refresh_per_second=8)
            if shown and self._console.is_terminal
            else None
        )

    def __enter__(self) -> FitProgress:
        self._began = self._said = self._clock()
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, record: Record) -> None:
        """Show the state after a step: a callback of the fit."""
        from prodige.progress import ALL_ITEMS

        if record.step == 0:  # where two kinds of graph are tried, steps are counted anew for the second
            self._rounds += 1
            self._first = (self._clock(), record.progress)
            self._losses.clear()
        self._stage = "fitting" if self._rounds <= 1 else f"fitting, graph {self._rounds}"
        if record.stage == ALL_ITEMS:
            self._stage = f"fitting, {ALL_ITEMS}"
        self._last = record
        self._losses.append(record.loss)
        self._say()

    def measuring(self) -> None:
        """Show that the fit is over and the graph is compared with the data."""
        self.stage("measuring")

    def stage(self, name: str) -> None:
        """Show what is being done after the fit."""
        self._stage = name
        self._say()

    def seconds_left(self) -> float | None:
        """Return how long this round of the fit goes on if it goes on as it did; None if that is not known yet."""
        if self._last is None or not self._stage.startswith("fitting"):
            return None
        began, start = self._first
        done = self._last.progress - start
        return (self._clock() - began) * (1 - self._last.progress) / done if done > 0 else None

    def figures(self) -> str:
        """Return the state in words."""
        if self._last is None or not self._stage.startswith("fitting"):
            return self._stage
        last = self._last
        loss = f"{self._stage} {last.progress:.0%}: {self._measure} {last.loss:.4g}"
        return ", ".join([loss, *size(last)])

    def panel(self) -> RenderableType:
        """Return what a terminal shows."""
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        fitting = self._last is not None and self._stage.startswith("fitting")
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(ratio=1, no_wrap=True)
        share = self._last.progress if self._last is not None and fitting else None
        bar = ProgressBar(total=1, completed=share or 0, pulse=share is None, width=_CURVE)
        table.add_row("progress" if share is None else f"{share:.0%}", bar)
        if self._last is not None:
            # Not every terminal has the signs of a curve.
            curve = "" if self._console.options.ascii_only else sparkline(self._losses, _CURVE) + "  "
            table.add_row(self._measure, Text.assemble((curve, "cyan"), f"{self._last.loss:.4g}"))
            if size(self._last):
                table.add_row("graph", ", ".join(size(self._last)))
        table.add_row("time", self._time())
        return Panel(
            table,
            title=self._stage,
            title_align="left",
            border_style="dim",
            width=min(self._console.width, _PANEL),
        )

    def _time(self) -> str:
        left = self.seconds_left()
        spent = in_minutes(self._clock() - self._began)
        return spent if left is None else f"{spent}, about {in_minutes(left)} left"

    def _say(self) -> None:
        """Write a line where there is no terminal, if the last one is long enough ago."""
        if not self._shown or self._live is not None or self._clock() - self._said < SECONDS_PER_LINE:
            return
        self._said = self._clock()
        self._console.print(f"{self.figures()} ({self._time()})", markup=False, highlight=False, soft_wrap=True)


def size(record: Record) -> list[str]:
    """Return the size of the graph in words; nothing where a fit has none yet.

    Examples
    --------
    >>> from prodige.cli.progress import size
    >>> from prodige.progress import Record
    >>> size(Record(0, 0.5, 0.01, 0.1, n_edges=1200, numbers_per_item=4.2))
    ['1,200 edges', '4.20 numbers an item']
    """
    edges = [] if record.n_edges is None else [f"{record.n_edges:,} edges"]
    numbers = [] if record.numbers_per_item is None else [f"{record.numbers_per_item:.2f} numbers an item"]
    return edges + numbers


def sparkline(values: Sequence[float], width: int) -> str:
    """Return a curve of at most ``width`` characters, on a logarithmic scale where all values are above 0.

    Examples
    --------
    >>> from prodige.cli.progress import sparkline
    >>> sparkline([1, 2, 4, 8, 16, 32, 64, 128], width=8)
    '▁▂▃▄▅▆▇█'
    >>> sparkline([5, 5, 5, 5], width=2)
    '▁▁'
    """
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    n = min(width, len(known))
    ends = [len(known) * place // n for place in range(n + 1)]
    means = [sum(known[begin:end]) / (end - begin) for begin, end in pairwise(ends)]
    if min(means) > 0:
        means = [math.log(mean) for mean in means]
    low, high = min(means), max(means)
    reach = high - low
    if not 1e-12 < reach < math.inf:
        return _LEVELS[0] * n
    return "".join(_LEVELS[round((len(_LEVELS) - 1) * ((mean - low) / reach))] for mean in means)


def in_minutes(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> from prodige.cli.progress import in_minutes
    >>> in_minutes(4.2), in_minutes(125), in_minutes(3700)
    ('4 s', '2:05 min', '1:01 h')
    """
    whole = round(max(seconds, 0))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02} h"
