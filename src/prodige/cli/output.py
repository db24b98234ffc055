"""What commands write: places are checked before the work, notes and tables are shown after it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from prodige.cli.errors import printable
from prodige.interrupts import loading

if TYPE_CHECKING:
    from rich.table import Table

# -- before the work -------------------------------------------------------------------------------------------------


def check_output(data: Path, output: Path, force: bool, option: str = "--output") -> None:
    """Make sure that a result can be written, by doing all of it but the writing."""
    if output.exists() and data.exists() and output.samefile(data):
        raise typer.BadParameter("the result would replace the data; name another file", param_hint=f"'{option}'")
    if os.path.lexists(output) and not output.is_dir() and not force:
        raise ValueError(f"{output} exists; use --force to replace it, or {option} to name another file")
    rehearse(output)


def rehearse(output: Path) -> None:
    """Do all of the writing of a file but the last step."""
    with loading():
        from prodige.graph.atomic import replacing

    with suppress(RehearsalError), replacing(str(output)):
        raise RehearsalError


class RehearsalError(Exception):
    """Ends the writing of a file before it takes the place of another."""


# -- after it --------------------------------------------------------------------------------------------------------


def show_notes(notes: Sequence[str], silent: bool = False) -> None:
    """Print notes on stderr."""
    for note in [] if silent else notes:
        typer.echo(f"Note: {printable(note)}", err=True)


def leave_interrupted(best: str) -> None:
    """Say what there is after Ctrl-C, and leave.

    Examples
    --------
    >>> import typer
    >>> from prodige.cli.output import leave_interrupted
    >>> try:
    ...     leave_interrupted("the best graph so far is in g.prodige")
    ... except typer.Exit as leaving:
    ...     print(leaving.exit_code)
    130
    """
    typer.echo(f"Interrupted: {printable(best)}", err=True)
    raise typer.Exit(130)


def print_facts(rows: dict[str, str]) -> None:
    """Print names and what they stand for, one on a line.

    Examples
    --------
    >>> from prodige.cli.output import print_facts
    >>> print_facts({"items": "3", "hubs": "1"})
    ┌───────┬───┐
    │ items │ 3 │
    │ hubs  │ 1 │
    └───────┴───┘
    """
    from rich.console import Console

    Console().print(frame(["", ""], list(rows.items()), n_names=2, show_header=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], n_names: int = 0, title: str = "") -> None:
    """Print rows below the names of their columns; the first ``n_names`` columns are words, the others numbers.

    Examples
    --------
    >>> from prodige.cli.output import print_table
    >>> print_table(["item", "distance"], [("12", "0.5")])
    ┏━━━━━━┳━━━━━━━━━━┓
    ┃ item ┃ distance ┃
    ┡━━━━━━╇━━━━━━━━━━┩
    │   12 │      0.5 │
    └──────┴──────────┘
    """
    from rich.console import Console

    Console().print(frame(columns, rows, n_names, title=title))


def print_wide_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, notes: Sequence[str]) -> None:
    """Print a table whose figures are never broken, and notes below it.

    Names of columns may be broken between words. A narrow terminal may break lines: figures that are cut off say
    nothing.
    """
    from rich.console import Console

    table = frame(columns, rows, n_names=1, title=title)
    for place, column in enumerate(table.columns):
        column.width = max(len(text) for text in (*columns[place].split(), *(row[place] for row in rows), ""))
    least = sum((column.width or 0) + 3 for column in table.columns) + 1  # a column has 3 characters around it
    console = Console(width=max(Console().width, least))
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False)


def frame(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    n_names: int,
    show_header: bool = True,
    title: str = "",
) -> Table:
    """Return a table; what comes from files is shown as it is, neither markup nor control codes."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)) if title else None, show_header=show_header)
    for place, column in enumerate(columns):
        table.add_column(Text(column), overflow="fold", justify="left" if place < n_names else "right")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
