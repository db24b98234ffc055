"""Runs that go on where another ended: rows of the same commit with enough seeds stay, and the others are made.

A run is given an earlier result of the same data (``known``), whose rows stay unless they are asked for and of another
commit or other seeds. It hands out the result so far after every row (``keep``); it may be told to make all rows that
are asked for anew (``again``). A row is told from others by its method and, where a table has several, its budget: that
is its key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prodige.reproduce.tables import Plan, Row

Result = dict[str, Any]
Key = tuple[Any, ...]
Rows = dict[Key, dict[str, Any]]


def read(path: Path, methods: Sequence[str], size: str = "n_items") -> Result | None:
    """Return an earlier result that has rows of these methods alone; None where there is no such file.

    Rows that do not say which commit made them are of that of the whole; those of early tables have no notes.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        result: Result = json.loads(text)
        for row in result["rows"]:
            row.setdefault("commit", result["origin"]["commit"])
            row.setdefault("note", "")
        if all(row["method"] in methods for row in result["rows"]) and result[size] > 0:
            return result
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise ValueError(f"{path} is no table of this version; move it away, or name another folder")


def known_rows(known: Result | None, sizes: Mapping[str, int], *fields: str) -> Rows:
    """Return the rows of an earlier result by their keys; none where it is of data of other sizes.

    Examples
    --------
    >>> from prodige.reproduce.resuming import known_rows
    >>> known = {"n_items": 9, "rows": [{"method": "star", "budget": 4}]}
    >>> known_rows(known, {"n_items": 9}, "method", "budget")
    {('star', 4): {'method': 'star', 'budget': 4}}
    >>> known_rows(known, {"n_items": 8}, "method", "budget")
    {}
    """
    if known is None or any(known.get(name) != size for name, size in sizes.items()):
        return {}
    return {tuple(row[field] for field in fields): row for row in known["rows"]}


def due(
    rows: Rows, keys: Iterable[Key], plan: Plan, seeded: AbstractSet[str], here: str | None, again: bool = False
) -> list[Key]:
    """Return which of the rows that are asked for are to be made.

    Parameters
    ----------
    rows : dict
        Those that are there.
    keys : iterable of tuple
        Those that are asked for; each begins with the method.
    plan : Plan
    seeded : set of str
        Methods that depend on a seed; others need but one fit.
    here : str or None
        The commit of the code.
    again : bool
        Make all of them.
    """
    return [key for key in keys if again or not is_done(rows.get(key), here, plan.n_seeds if key[0] in seeded else 1)]


def is_done(row: dict[str, Any] | None, here: str | None, n_seeds: int) -> bool:
    """Whether a row need not be made again: same commit, and enough seeds or a reason why there are none."""
    if row is None or here is None or row["commit"] != here:
        return False
    return len(row["seconds"]) == n_seeds or bool(row["note"])


def go_on(
    rows: Rows,
    todo: Iterable[Key],
    make: Callable[[Key], Row],
    gather: Callable[[], Result],
    keep: Callable[[Result], None],
) -> Result:
    """Make rows and return the result; after each of them, the result so far is kept.

    Parameters
    ----------
    rows : dict
        Those that are there; those that are made join them.
    todo : iterable of tuple
        Keys of those to be made.
    make : callable
        Makes the row of a key.
    gather : callable
        Returns the result that all rows make.
    keep : callable
        Given the result so far.
    """
    for key in todo:
        rows[key] = asdict(make(key))
        keep(gather())
    return gather()
