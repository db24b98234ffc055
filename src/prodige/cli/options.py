"""What options of several commands have in common: values that no data could make right are wrong usage."""

from __future__ import annotations

import math

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


JOBS = typer.Option(
    None,
    "--jobs",
    "-j",
    "--n-jobs",
    help="Threads; all processors when left out.",
    show_default=False,
    callback=check_jobs,
)
