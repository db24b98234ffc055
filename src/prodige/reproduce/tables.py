"""What the tables of the paper share: which methods are run, what is missing, and how figures become a page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from prodige.provenance import in_words
from prodige.threads import count_threads, torch_threads


class Noted(Protocol):
    """A row of a table that can say why it has no figures."""

    note: str


def select(methods: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the methods that are asked for, in the order of a table.

    Examples
    --------
    >>> from prodige.reproduce.tables import select
    >>> select(["mds", "star"], ("constant", "star", "mds"))
    ['star', 'mds']
    """
    unknown = [method for method in methods if method not in known]
    if unknown:
        raise ValueError(f"methods must be some of {', '.join(known)}, got {unknown[0]!r}")
    return [method for method in known if method in methods]


@contextmanager
def fitting(row: Noted, n_jobs: int | None) -> Iterator[None]:
    """Give torch its threads; where a method needs an extra that is not installed, note it and go on without."""
    try:
        with torch_threads(count_threads(n_jobs)):
            yield
    except ImportError as error:
        if (error.name or "").split(".")[0] == "prodige":
            raise
        row.note = f"left out: {error}"


def command(table: str, rows: Sequence[dict[str, Any]], **options: Any) -> str:
    """Return how to get a table again.

    Examples
    --------
    >>> from prodige.reproduce.tables import command
    >>> command("table2", [{"method": "svd"}, {"method": "hubs"}], budget=8, seeds=1)
    'prodige reproduce table2 --budget 8 --seeds 1 --methods svd,hubs'
    """
    options |= {"methods": ",".join(row["method"] for row in rows)}
    return " ".join([f"prodige reproduce {table}", *(f"--{name} {value}" for name, value in options.items())])


def spread(values: list[float]) -> str:
    """Return mean and standard deviation.

    Examples
    --------
    >>> from prodige.reproduce.tables import spread
    >>> spread([0.25]), spread([0.1, 0.2])
    ('0.25000', '0.15000 ± 0.07071')
    """
    mean = f"{statistics.fmean(values):.5f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.5f}"


def seeds_in_words(n_seeds: int) -> str:
    """Return what figures are means of."""
    seeds = "One seed" if n_seeds == 1 else f"Mean ± standard deviation over {n_seeds} seeds"
    return f"{seeds} where a method depends on one."


def page(
    title: str,
    origin: dict[str, Any],
    about: str,
    headers: Sequence[str],
    cells: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> str:
    """Return a table as a page of Markdown, with what it is about before it and notes after it."""
    lines = [f"# {title}", "", in_words(origin), "", about]
    lines += ["", f"| {' | '.join(headers)} |", "| --- |" + " ---: |" * (len(headers) - 1)]
    lines += [f"| {' | '.join(row)} |" for row in cells]
    lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines).rstrip() + "\n"
