"""What the tables of the paper share: which methods are run, what is missing, and how figures become a page."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from prodige.provenance import in_words, provenance
from prodige.threads import count_threads, torch_threads


@dataclass(frozen=True)
class Plan:
    """Which methods a table has, and how they are fitted.

    Parameters
    ----------
    methods : sequence of str
        Some of the table's ``METHODS``.
    n_seeds : int
        Fits of each method that depends on a seed; 0 is the first seed.
    n_jobs : int, optional
        Threads.
    report : callable
        Told what is going on.
    """

    methods: Sequence[str]
    n_seeds: int = 1
    n_jobs: int | None = None
    report: Callable[[str], None] = lambda text: None


@dataclass
class Row:
    """What came of one method, in any table.

    Attributes
    ----------
    method : str
    seconds : list of float
        One entry per seed: of the fit alone.
    note : str
        Why there are no figures, or what to know about them.
    """

    method: str
    seconds: list[float] = field(default_factory=list)
    note: str = ""


AnyRow = TypeVar("AnyRow", bound=Row)

# -- fitting ---------------------------------------------------------------------------------------------------------


def fit_rows(
    plan: Plan,
    about: str,
    labels: Mapping[str, str],
    seeded: AbstractSet[str],
    new: Callable[[str], AnyRow],
    fit: Callable[[AnyRow, int], None],
    prepare: Callable[[AnyRow], None] = lambda row: None,
) -> list[AnyRow]:
    """Fit all methods of a plan, in the order of a table.

    Parameters
    ----------
    plan : Plan
    about : str
        What is fitted, for reports.
    labels : mapping
        What the methods of the table are called.
    seeded : set of str
        Methods that depend on a seed; others are fitted once.
    new : callable
        Makes the row of a method.
    fit : callable
        Fits the method of a row with a seed, and adds figures to the row.
    prepare : callable
        Done once for each row, before its first fit.

    Examples
    --------
    >>> from prodige.reproduce.tables import Plan, Row, fit_rows
    >>> def fit(row, seed):
    ...     row.seconds.append(float(seed))
    >>> fit_rows(Plan(["star"], n_seeds=2), "toy", {"star": "best star"}, {"star"}, Row, fit)
    [Row(method='star', seconds=[0.0, 1.0], note='')]
    """
    rows = []
    for method in select(plan.methods, tuple(labels)):
        row = new(method)
        with noting_missing(row), torch_threads(count_threads(plan.n_jobs)):
            prepare(row)
            for seed in range(plan.n_seeds if method in seeded else 1):
                plan.report(f"{about}: {labels[method]}, seed {seed}")
                fit(row, seed)
        rows.append(row)
    return rows


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
def noting_missing(row: Row) -> Iterator[None]:
    """Where a method needs an extra that is not installed, note it and go on without."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").split(".")[0] == "prodige":
            raise
        row.note = f"left out: {error}"


def timed_fit(row: Row, model: Any, *data: Any) -> None:
    """Fit a model and add the seconds to its row."""
    began = time.perf_counter()
    model.fit(*data)
    row.seconds.append(time.perf_counter() - began)


def result(table: str, plan: Plan, rows: Sequence[Row], options: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """Return a table ready for JSON: facts about the data, ``n_seeds``, ``rows`` and ``origin``.

    Options are those of ``prodige reproduce`` that make the same table again, beside methods and seeds.
    """
    entries = [asdict(row) for row in rows]
    origin = provenance(command(table, entries, **options, seeds=plan.n_seeds))
    return {**facts, "n_seeds": plan.n_seeds, "rows": entries, "origin": origin}


def command(table: str, rows: Sequence[dict[str, Any]], **options: Any) -> str:
    """Return how to get a table again; options that are lists are given several times.

    Examples
    --------
    >>> from prodige.reproduce.tables import command
    >>> command("table2", [{"method": "svd"}, {"method": "product"}], budget=8, seeds=1)
    'prodige reproduce table2 --budget 8 --seeds 1 --methods svd,product'
    >>> command("bits", [{"method": "mds"}, {"method": "mds"}], budget=[16, 24])
    'prodige reproduce bits --budget 16 --budget 24 --methods mds'
    """
    options |= {"methods": ",".join(dict.fromkeys(row["method"] for row in rows))}
    pairs = [(name, one) for name, value in options.items() for one in (value if isinstance(value, list) else [value])]
    return " ".join([f"prodige reproduce {table}", *(f"--{name} {value}" for name, value in pairs)])


# -- as text ---------------------------------------------------------------------------------------------------------


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


def row_notes(rows: Sequence[dict[str, Any]], labels: Mapping[str, str]) -> list[str]:
    """Return what to know about rows.

    Examples
    --------
    >>> from prodige.reproduce.tables import row_notes
    >>> row_notes([{"method": "als", "note": "left out"}, {"method": "svd", "note": ""}], {"als": "ALS", "svd": "SVD"})
    ['ALS: left out']
    """
    return [f"{labels[row['method']]}: {row['note']}" for row in rows if row["note"]]


def page(
    title: str,
    origin: dict[str, Any],
    about: str,
    headers: Sequence[str],
    cells: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> str:
    """Return a table as a page of Markdown, with what it is about before it and notes after it."""
    lines = [f"# {title}", "", in_words(origin), "", about, "", *table_lines(headers, cells)]
    lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines).rstrip() + "\n"


def table_lines(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """Return a table in Markdown; the first column is text, all others are numbers.

    Examples
    --------
    >>> from prodige.reproduce.tables import table_lines
    >>> table_lines(["", "error"], [["star", "0.5"]])
    ['|  | error |', '| --- | ---: |', '| star | 0.5 |']
    """
    lines = [f"| {' | '.join(headers)} |", "| --- |" + " ---: |" * (len(headers) - 1)]
    return lines + [f"| {' | '.join(row)} |" for row in cells]
