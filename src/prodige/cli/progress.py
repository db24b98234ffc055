"""Progress of a fit on a terminal: a bar on stderr, so that stdout stays what was asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from prodige.pace import Status


class FitProgress(AbstractContextManager["FitProgress"]):
    """A bar with the error and the size of the graph so far; nothing where stderr is not a terminal.

    Parameters
    ----------
    shown : bool
        False for no bar at all.
    console : rich.console.Console, optional
        Where to; stderr when left out.
    measure : str
        What to call the error.

    Examples
    --------
    >>> from prodige.cli.progress import FitProgress
    >>> from prodige.pace import Status
    >>> with FitProgress(shown=False) as progress:
    ...     progress(Status(step=0, progress=0.5, loss=0.01, n_edges=12, numbers_per_item=4.2, seconds=0.1))
    """

    def __init__(self, shown: bool = True, console: Console | None = None, measure: str = "mse") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True) if console is None else console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not (shown and console.is_terminal),
        )
        self._task = self._progress.add_task("preparing", total=None, figures="")
        self._rounds = 0
        self._measure = measure

    def __enter__(self) -> FitProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, status: Status) -> None:
        """Show the state after a step: a callback of the fit."""
        # Where two kinds of graph are tried, steps are counted anew for the second.
        self._rounds += status.step == 0
        self._show(
            "fitting" if self._rounds <= 1 else f"fitting, way {self._rounds}",
            total=1,
            completed=status.progress,
            figures=f"{self._measure} {status.loss:.4g}, {status.numbers_per_item:.2f} numbers an item",
        )

    def measuring(self) -> None:
        """Show that the fit is over and the graph is compared with the data."""
        self._show("measuring", total=None, figures="")

    def _show(self, description: str, **fields: Any) -> None:
        self._progress.update(self._task, description=description, **fields)
