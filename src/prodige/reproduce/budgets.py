"""Rows by method and budget, and how they become tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prodige.reproduce import tables
from prodige.reproduce.resuming import Result, Rows


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


def ordered(rows: Rows, methods: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows in the order of a table."""
    return [rows[key] for key in sorted(rows, key=lambda key: (methods.index(key[0]), key[1]))]


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
