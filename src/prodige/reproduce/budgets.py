"""Rows by method and budget: which are there, which are to be made, and how they become tables.

A run goes on where another ended: rows of the same commit with enough seeds are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prodige.reproduce import tables

Result = dict[str, Any]


@dataclass(kw_only=True)
class Row(tables.Row):
    """What came of one method in one budget; seconds are of all splits, with a glance at each.

    Attributes
    ----------
    budget : int
        Bits an item.
    figures : list of dict
        One entry per seed: ``split`` (how bits are spent), ``bits_per_item`` and what was measured; under ``tried``
        what a glance says of every split.
    commit : str or None
        Of the code that made the row.
    """

    budget: int
    figures: list[dict[str, Any]] = field(default_factory=list)
    commit: str | None = None


def key_of(row: dict[str, Any]) -> tuple[str, int]:
    """Return what tells a row from others."""
    return row["method"], row["budget"]


def is_done(row: dict[str, Any] | None, here: str | None, n_seeds: int) -> bool:
    """Whether a row need not be made again: same commit, and enough seeds or a reason why there are none."""
    if row is None or here is None or row["commit"] != here:
        return False
    return len(row["seconds"]) == n_seeds or bool(row["note"])


def ordered(rows: Mapping[tuple[str, int], dict[str, Any]], methods: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows in the order of a table."""
    return [rows[key] for key in sorted(rows, key=lambda key: (methods.index(key[0]), key[1]))]


def read(path: Path, methods: Sequence[str], size: str = "n_items") -> Result | None:
    """Return an earlier result that has rows of these methods alone; None where there is no such file.

    Rows that do not say which commit made them are of that of the whole.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        result: Result = json.loads(text)
        for row in result["rows"]:
            row.setdefault("commit", result["origin"]["commit"])
        if all(row["method"] in methods for row in result["rows"]) and result[size] > 0:
            return result
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise ValueError(f"{path} is no table of this version; move it away, or name another folder")


# -- as a table ------------------------------------------------------------------------------------------------------


def budgets_of(result: Result) -> list[int]:
    """Return the budgets that there are rows of."""
    return sorted({row["budget"] for row in result["rows"]})


def headers(result: Result) -> list[str]:
    """Return the columns of a table by budget."""
    return ["", *(f"{budget} bits" for budget in budgets_of(result))]


def by_budget(result: Result, labels: Mapping[str, str], show: Callable[[dict[str, Any]], str]) -> list[list[str]]:
    """Return a table of something that is shown of each row, a line for each method."""
    found = {key_of(row): row for row in result["rows"]}
    return [
        [
            label,
            *(
                show(found[method, budget]) if (method, budget) in found and found[method, budget]["figures"] else ""
                for budget in budgets_of(result)
            ),
        ]
        for method, label in labels.items()
        if any(row["method"] == method for row in result["rows"])
    ]


def mean(row: dict[str, Any], name: str) -> float:
    """Return the mean of a figure over the seeds."""
    values = [figures[name] for figures in row["figures"]]
    return float(sum(values) / len(values))


def notes(result: Result, labels: Mapping[str, str]) -> list[str]:
    """Return what to know about rows: what did not fit or is missing, and rows of another commit."""
    here = result["origin"]["commit"]
    lines = tables.row_notes(result["rows"], labels)
    others = [row for row in result["rows"] if row["commit"] != here]
    for other in dict.fromkeys(row["commit"] for row in others):
        names = dict.fromkeys(labels[row["method"]] for row in others if row["commit"] == other)
        lines.append(f"Made at commit {other or 'unknown'}: {', '.join(names)}")
    return list(dict.fromkeys(lines))
