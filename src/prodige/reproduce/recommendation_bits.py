"""Recommendation at equal bits: the graph beside rounded vectors, codes and pruned tables of items.

For each data set and budget every method has the best of its splits (:mod:`prodige.reproduce.recommenders`), chosen on
one training item a user that is held out for that; then it is fitted to all training data, and the test items are
looked for once. All that a file holds counts: codes, codebooks, levels, lists of items.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prodige.datasets import Interactions
from prodige.provenance import commit, in_words, provenance
from prodige.reproduce import budgets as rows_by_budget
from prodige.reproduce import tables
from prodige.reproduce.budgets import Row, headers, mean, ordered
from prodige.reproduce.recommenders import (
    FIGURES,
    GRIDS,
    Bench,
    Coded,
    Method,
    Ours,
    Popular,
    Pruned,
    Rounded,
    Split,
    Stage,
)
from prodige.reproduce.resuming import Key, Result, Rows, due, go_on, known_rows
from prodige.reproduce.resuming import read as read_result
from prodige.reproduce.tables import Plan, command, fit_rows, table_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGETS = (16, 32, 64, 128, 256)

METHODS: dict[str, tuple[str, Method]] = {
    "product": ("GraphRecommender", Ours(store_users=True)),
    "ials": ("iALS rounded", Rounded("ials")),
    "ials-pq": ("iALS, PQ", Coded("ials")),
    "als": ("implicit's ALS rounded", Rounded("als")),
    "als-pq": ("implicit's ALS, PQ", Coded("als")),
    "svd": ("SVD rounded", Rounded("svd")),
    "popularity": ("popularity", Popular()),
    "items": ("GraphRecommender, users not stored", Ours(store_users=False)),
    "ease": ("EASE pruned, users not stored", Pruned("ease")),
    "item-knn": ("item-kNN pruned, users not stored", Pruned("item-knn")),
}
LABELS = {name: label for name, (label, _) in METHODS.items()}
SEEDED = {"product", "ials", "ials-pq", "als", "als-pq", "items"}


def run(
    data: Interactions,
    budgets: Sequence[int],
    plan: Plan,
    known: Result | None = None,
    keep: Callable[[Result], None] = lambda result: None,
    again: bool = False,
) -> Result:
    """Fit all methods of a plan to one data set, in every budget.

    Parameters
    ----------
    data : Interactions
    budgets : sequence of int
        Bits for each user and item, or for each item where users are not stored.
    plan : Plan
        Methods, seeds and threads.
    known, keep, again
        An earlier result, who is given the result so far, and whether to make all rows anew: see
        :mod:`prodige.reproduce.resuming`.

    Returns
    -------
    dict
        ``dataset``, ``n_users``, ``n_items``, ``n_seeds``, ``rows`` (of :class:`prodige.reproduce.budgets.Row`) and
        ``origin``, ready for JSON.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from prodige.datasets import Interactions
    >>> from prodige.recommendation.ranking import sample_negatives, split_leave_one_out
    >>> from prodige.reproduce import recommendation_bits
    >>> from prodige.reproduce.tables import Plan
    >>> train, held_out = split_leave_one_out(np.random.default_rng(0).random((40, 30)) < 0.2, random_state=0)
    >>> negatives = sample_negatives(train, held_out, 9, random_state=0)
    >>> data = Interactions("toy", train, held_out, negatives, Path("toy.npz"))
    >>> result = recommendation_bits.run(data, [64], Plan(["popularity", "svd"]))
    >>> [row["figures"][0]["bits_per_item"] <= 64 for row in result["rows"]]
    [True, True]
    """
    asked = tables.select(plan.methods, tuple(METHODS))
    n_users, n_items = data.train.shape
    rows = known_rows(known, {"n_users": n_users, "n_items": n_items}, "method", "budget")
    here = commit()
    todo = due(rows, product(asked, budgets), plan, SEEDED, here, again)
    bench = Bench.of(stage_of(data, plan.n_jobs)) if todo else None

    def make(key: Key) -> Row:
        assert bench is not None
        method, budget = key
        return made(bench, data.name, method, budget, plan, here)

    return go_on(rows, todo, make, lambda: gathered(data, rows, plan), keep)


def stage_of(data: Interactions, n_jobs: int | None) -> Stage:
    """Return the task of a data set: an interaction is there or it is not, however often it was."""
    return Stage(data.train.astype(bool).astype("float32"), data.held_out, data.negatives, n_jobs)


def gathered(data: Interactions, rows: Rows, plan: Plan) -> Result:
    """Return all rows in the order of the table, ready for JSON."""
    entries = ordered(rows, list(METHODS))
    budgets = sorted({row["budget"] for row in entries})
    again = command("recommendation-bits", entries, dataset=data.name, budget=budgets, seeds=plan.n_seeds)
    n_users, n_items = data.train.shape
    return {
        "dataset": data.name,
        "n_users": n_users,
        "n_items": n_items,
        "n_negatives": data.negatives.shape[1],
        "n_seeds": plan.n_seeds,
        "rows": entries,
        "origin": provenance(again),
    }


def read(path: Path) -> Result | None:
    """Return an earlier result; None where there is no such file."""
    return read_result(path, list(METHODS))


# -- one row ---------------------------------------------------------------------------------------------------------


def made(bench: Bench, name: str, method: str, budget: int, plan: Plan, here: str | None) -> Row:
    """Return the row of a method and a budget."""
    alone = Plan([method], plan.n_seeds, plan.n_jobs, plan.report)
    about = f"{name}, {budget} bits"
    kind = METHODS[method][1]
    tried: list[dict[str, Any]] = []

    def choose(row: Row) -> None:
        plan.report(f"{about}: {LABELS[method]}, settings and splits")
        tried.extend(glance(bench, kind, budget))
        if not tried:
            row.note = f"nothing fits into {budget} bits"

    def fit(row: Row, seed: int) -> None:
        if not tried:
            return
        split = max(tried, key=lambda one: float(one["quality"]))["split"]
        began = time.perf_counter()
        answer = kind.answer(bench, bench.whole, split, seed)
        row.seconds.append(time.perf_counter() - began)
        figures = bench.whole.judge(answer.model)
        row.figures.append({"split": split, "bits_per_item": answer.bits_per_item, **figures, "tried": tried})

    (row,) = fit_rows(alone, about, LABELS, SEEDED, lambda name: Row(name, budget=budget, commit=here), fit, choose)
    return row


def glance(bench: Bench, kind: Method, budget: int) -> list[dict[str, Any]]:
    """Return how good the splits of a method are on what was held out; one alone need not be looked at."""
    splits: list[Split] = list(kind.splits(bench, budget))
    if len(splits) == 1:
        return [{"split": splits[0], "quality": 0.0}]
    found = []
    for split in splits:
        answer = kind.answer(bench, bench.held, split, 0)
        found.append({"split": split, "quality": bench.held.quality(answer.model)})
    return found


# -- as a table ------------------------------------------------------------------------------------------------------

MEANINGS = {
    "HR@5": "HR@5, sampled",
    "HR@10": "HR@10, sampled",
    "NDCG@10": "NDCG@10 over all items",
    "Recall@20": "Recall@20 over all items",
}


def title(result: Result) -> str:
    """Return what the first table is about."""
    return f"{result['dataset']}: HR@5 / HR@10 by bits"


def cells(result: Result) -> list[list[str]]:
    """Return sampled hit ratios of all methods by budget."""
    return rows_by_budget.by_budget(
        result, LABELS, lambda row: " / ".join(f"{mean(row, name):.3f}" for name in ("HR@5", "HR@10"))
    )


def notes(result: Result) -> list[str]:
    """Return what to know about rows."""
    return rows_by_budget.notes(result, LABELS)


def with_error(row: dict[str, Any], name: str) -> str:
    """Return the mean of a figure over the seeds, and its standard error by users."""
    return f"{mean(row, name):.4f} ± {mean(row, f'{name} error'):.4f}"


def spent(row: dict[str, Any]) -> str:
    """Return how bits are spent, and how many are."""
    figures = row["figures"][0]
    split = ", ".join(f"{name} {value:g}" for name, value in figures["split"].items() if name != "budget")
    return f"{split}: {figures['bits_per_item']:.1f}" if split else f"{figures['bits_per_item']:.1f}"


def markdown(result: Result) -> str:
    """Return a result as a page."""
    name = f"recommendation-bits-{result['dataset']}"
    lines = [f"# Recommendation on {result['dataset']} at equal bits", "", in_words(result["origin"])]
    lines += ["", about(result), "", f"![Hit ratio and NDCG by bits]({name}.png)"]
    columns = headers(result)
    for figure_name in FIGURES:
        table = rows_by_budget.by_budget(result, LABELS, partial(with_error, name=figure_name))
        lines += ["", f"## {MEANINGS[figure_name]}", "", *table_lines(columns, table)]
    for heading, show in (
        ("How bits are spent, and how many are", spent),
        ("Seconds of the last fit", lambda row: f"{row['seconds'][-1]:.1f}"),
    ):
        lines += ["", f"## {heading}", "", *table_lines(columns, rows_by_budget.by_budget(result, LABELS, show))]
    if found := notes(result):
        lines += ["", "## Notes", "", *(f"- {note}" for note in found)]
    return "\n".join(lines) + "\n"


def about(result: Result) -> str:
    """Return what the page shows."""
    grids = "; ".join(
        f"{kind}: "
        + ", ".join(f"{name} {', '.join(f'{value:g}' for value in values)}" for name, values in grid.items())
        for kind, grid in GRIDS.items()
    )
    seeds = "One seed" if result["n_seeds"] == 1 else f"Means of {result['n_seeds']} seeds"
    return (
        f"{result['n_users']:,} users, {result['n_items']:,} items. {seeds}; ± is one standard error by users. "
        f"*Sampled*: the held-out item among {result['n_negatives']} others. Rivals have the best of their settings "
        f"({grids}), then the best split of bits, by the mean of the four figures on one training item a user that "
        "is held out for that; the graph chooses its own in the same manner. Everything in a file counts: codes, "
        "codebooks in bytes, levels of coordinates, headers of the graph. Bits are those for each user and item; where "
        "users are not stored, those for each item, and what users interacted with is given when the model is asked. "
        "Seconds are without the search for settings, but that of the graph, and without vectors that another row has "
        "fitted already."
    )


# -- as a picture ----------------------------------------------------------------------------------------------------


def figure(result: Result) -> Figure:
    """Draw HR@10 (sampled) and NDCG@10 (over all items) of all methods by bits."""
    from prodige.drawing.plots.bits import places_of
    from prodige.drawing.plots.style import add_legend, color_of, tidy
    from prodige.reproduce.figures import new_figure

    rows = [row for row in result["rows"] if row["figures"]]
    if not rows:
        raise ValueError("result has no row with figures: there is nothing to draw")
    drawn = new_figure(13, 4.6)
    places = places_of(LABELS, ())
    for ax, name in zip(drawn.subplots(1, 2), ("HR@10", "NDCG@10"), strict=True):
        handles: list[Any] = []
        shown = [method for method in LABELS if any(row["method"] == method for row in rows)]
        for method in shown:
            mine = [row for row in rows if row["method"] == method]
            color, marker = color_of(places[method])
            handles.append(
                ax.errorbar(
                    [row["budget"] for row in mine],
                    [mean(row, name) for row in mine],
                    yerr=[mean(row, f"{name} error") for row in mine],
                    color=color,
                    marker=marker,
                    linewidth=2.2 if isinstance(METHODS[method][1], Ours) else 1.2,
                    capsize=2,
                )
            )
        ax.set(xlabel="bits", ylabel=MEANINGS[name])
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:g}")
        tidy(ax)
    add_legend(ax, handles, [LABELS[method] for method in shown], loc="upper left", bbox_to_anchor=(1.0, 1.0))
    drawn.suptitle(f"{result['dataset']}, {result['n_users']:,} users, {result['n_items']:,} items")
    return drawn
