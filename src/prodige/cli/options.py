"""Options that several commands have, declared once: a letter and a name mean the same everywhere.

``-n`` is the size (numbers per item), ``-k`` how many answers, ``-o`` where to write, ``-j`` threads, ``-f`` force and
``-q`` quiet. Values that no data could make right are wrong usage.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import typer

_MOST_THREADS = 2**15


def check_jobs(value: int | None) -> int | None:
    """Return a number of threads, or leave with a usage error.

    Examples
    --------
    >>> from prodige.cli.options import check_jobs
    >>> check_jobs(2), check_jobs(-1), check_jobs(None)
    (2, -1, None)
    """
    if value is not None and (value == 0 or abs(value) > _MOST_THREADS):
        raise typer.BadParameter(f"{value} is no number of threads; give 1 or more, or -1 for all processors")
    return value


def check_positive(value: float | None) -> float | None:
    """Return a finite number above 0, or leave with a usage error.

    Examples
    --------
    >>> from prodige.cli.options import check_positive
    >>> check_positive(2.5), check_positive(None)
    (2.5, None)
    """
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"{value} is not a finite number above 0")
    return value


def check_bytes(value: str | None) -> str | None:
    """Return a number of bytes as it was written, or leave with a usage error.

    Examples
    --------
    >>> from prodige.cli.options import check_bytes
    >>> check_bytes("4GB"), check_bytes(None)
    ('4GB', None)
    """
    if value is None:
        return None
    from prodige.compression.memory import parse_bytes

    try:
        parse_bytes("memory_limit", value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is no number of bytes; give one such as 4GB or 500MB") from None
    return value


def refuse(context: typer.Context, names: Collection[str], why: str) -> None:
    """Leave with a usage error if one of these options was given: it would change nothing."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(why, param_hint=f"'{option.opts[0]}'")


def flag(*names: str, help: str) -> Any:  # noqa: A002 - as typer calls it
    """Declare an option that takes no value; it is off when left out."""
    return typer.Option(False, *names, help=help, metavar="")


def output(help: str) -> Any:  # noqa: A002 - as typer calls it
    """Declare where to write."""
    return typer.Option(None, "--output", "-o", help=help, show_default=False)


def numbers_per_item(default: float | None, help: str) -> Any:  # noqa: A002 - as typer calls it
    """Declare the size of a graph."""
    return typer.Option(default, "--numbers-per-item", "-n", help=help, callback=check_positive)


def count(help: str) -> Any:  # noqa: A002 - as typer calls it
    """Declare how many answers to give."""
    return typer.Option(10, "-k", min=1, help=help)


def header(help: str) -> Any:  # noqa: A002 - as typer calls it
    """Declare whether a table has names of columns; both answers can be right."""
    return typer.Option(None, "--header/--no-header", metavar="", help=help, show_default=False)


JOBS = typer.Option(
    None,
    "--jobs",
    "-j",
    help="Threads; all processors that this process may use when left out.",
    show_default=False,
    callback=check_jobs,
)
SEED = typer.Option(
    0, min=0, max=2**32 - 1, help="The same seed gives the same result on the same machine, with any number of threads."
)
MAX_TIME = typer.Option(
    None, min=0.1, help="Most seconds that the fit may take.", show_default=False, callback=check_positive
)
FORCE = flag("--force", "-f", help="Replace an existing file.")
AS_JSON = flag("--json", help="Print one JSON object and nothing else.")
QUIET = flag("--quiet", "-q", help="Show no progress, notes or figures: only answers and errors.")
