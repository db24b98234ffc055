"""What all methods make of the same bits: the graph, products of graphs, and the strongest vectors and codes there are.

For each data set and budget every method has the best of its splits of dimensions and bits, chosen by the error of the
distances from a thousand items; what is shown of it is measured on all pairs. What all splits found is kept as well:
error and recall of the nearest together, the front that a method reaches.

Everything that is needed to answer counts: levels of coordinates, codebooks, headers of files. Codes are shown a second
time with their codebooks for free, as they are where there are millions of items.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prodige import baselines
from prodige.drawing.plots.front import Point, best_points
from prodige.provenance import commit, in_words, provenance
from prodige.reproduce import budgets as budgets_table
from prodige.reproduce import tables
from prodige.reproduce.budgets import Row, budgets_of, headers, mean, ordered
from prodige.reproduce.coded import Coded
from prodige.reproduce.families import Family
from prodige.reproduce.judging import N_SOURCES, Judge, K
from prodige.reproduce.ours import FRONT_BUDGETS, Bits, OneGraph
from prodige.reproduce.peers import Bench, Candidate, Codes, Method, Residual, Rounded
from prodige.reproduce.quantisers import KINDS
from prodige.reproduce.resuming import Key, Rows, due, go_on, known_rows
from prodige.reproduce.resuming import read as read_result
from prodige.reproduce.tables import Plan, command, fit_rows, table_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGETS = (16, 24, 32, 48, 64, 96, 128)

OURS: dict[str, tuple[str, Method]] = {
    "product": ("DistanceCompressor", Bits(metric_only=True)),
    "free": ("the same, no metric", Bits(metric_only=False)),
    "graph": ("one graph", OneGraph()),
}
VECTORS: dict[str, tuple[str, Method]] = {
    "residual": ("residual coordinates", Residual()),
    "coded": ("the same, coded", Coded()),
    "vivaldi": ("Vivaldi", Rounded(baselines.Vivaldi)),
    "mds": ("MDS", Rounded(baselines.MDS)),
    "poincare": ("Poincaré MDS", Rounded(baselines.PoincareMDS)),
}
# Codes with an energy and without, with their books and without.
CODES: dict[str, tuple[str, Method]] = {
    f"{kind}{'-energy' * energy}{'-codes' * (not whole)}": (
        f"{kind.upper()}{' + energy' * energy}{', books free' * (not whole)}",
        Codes(kind, energy, whole),
    )
    for whole in (True, False)
    for energy in (True, False)
    for kind in KINDS
}
PEERS = VECTORS | CODES
METHODS = OURS | PEERS
LABELS = {name: label for name, (label, _) in METHODS.items()}
SEEDED = set(METHODS) - {"residual", "coded"}


def run(
    family: Family,
    budgets: Sequence[int],
    plan: Plan,
    known: dict[str, Any] | None = None,
    keep: Callable[[dict[str, Any]], None] = lambda result: None,
    again: bool = False,
) -> dict[str, Any]:
    """Fit all methods of a plan to one data set, in every budget.

    Parameters
    ----------
    family : Family
        The data.
    budgets : sequence of int
        Bits an item.
    plan : Plan
        Methods, seeds and threads.
    known, keep, again
        An earlier result, who is given the result so far, and whether to make all rows anew: see
        :mod:`prodige.reproduce.resuming`.

    Returns
    -------
    dict
        ``dataset``, ``n_items``, ``metric``, ``n_seeds``, ``rows`` (of :class:`Row`) and ``origin``, ready for JSON.

    Examples
    --------
    >>> from prodige.reproduce import bits
    >>> from prodige.reproduce.families import manifold
    >>> from prodige.reproduce.tables import Plan
    >>> result = bits.run(manifold(200), [16, 32], Plan(["residual"]))
    >>> errors = [row["figures"][0]["share"] for row in result["rows"]]
    >>> errors[1] < errors[0] < 1
    True
    """
    asked = tables.select(plan.methods, tuple(METHODS))
    space = family.space(plan.n_jobs)
    rows = known_rows(known, {"n_items": space.n_items}, "method", "budget")
    here = commit()
    todo = due(rows, product(asked, budgets), plan, SEEDED, here, again)
    bench = Bench(family, Judge(space), max(budgets, default=0), plan.n_jobs) if todo else None

    def make(key: Key) -> Row:
        assert bench is not None
        method, budget = key
        return made(bench, method, budget, plan, here)

    return go_on(rows, todo, make, lambda: gathered(family, rows, plan), keep)


def gathered(family: Family, rows: Rows, plan: Plan) -> dict[str, Any]:
    """Return all rows in the order of the table, ready for JSON."""
    entries = ordered(rows, list(METHODS))
    budgets = sorted({row["budget"] for row in entries})
    again = command("bits", entries, dataset=family.name, budget=budgets, seeds=plan.n_seeds)
    return {
        "dataset": family.name,
        "n_items": len(family.X),
        "metric": family.metric,
        "n_seeds": plan.n_seeds,
        "rows": entries,
        "origin": provenance(again),
    }


def read(path: Path) -> dict[str, Any] | None:
    """Return an earlier result; None where there is no such file."""
    return read_result(path, list(METHODS))


# -- one row ---------------------------------------------------------------------------------------------------------


def made(bench: Bench, method: str, budget: int, plan: Plan, here: str | None) -> Row:
    """Return the row of a method and a budget."""
    alone = Plan([method], plan.n_seeds, plan.n_jobs, plan.report)
    about = f"{bench.family.name}, {budget} bits"

    def fit(row: Row, seed: int) -> None:
        began = time.perf_counter()
        candidates = METHODS[method][1].candidates(bench, budget, seed)
        found = best_of(bench, counted(candidates, plan, f"{about}: {LABELS[method]}, seed {seed}"))
        row.seconds.append(time.perf_counter() - began)
        if found is None:
            row.note = f"nothing fits into {budget} bits"
        else:
            row.figures.append(found)

    (row,) = fit_rows(alone, about, LABELS, SEEDED, lambda name: Row(name, budget=budget, commit=here), fit)
    return row


def counted(candidates: Iterable[Candidate], plan: Plan, about: str) -> Iterator[Candidate]:
    """Say how many candidates there were so far: some methods take their time."""
    for place, candidate in enumerate(candidates, 1):
        plan.report(f"{about}, {place} split{'s' * (place > 1)} so far")
        yield candidate


def best_of(bench: Bench, candidates: Iterable[Candidate]) -> dict[str, Any] | None:
    """Return the figures of the candidate with the least error, and what a glance says of all; None of none."""
    best: tuple[float, Candidate] | None = None
    tried = []
    for one in candidates:
        mse, recall = bench.judge.glance(one.model)
        tried.append({"split": one.split, "bits_per_item": one.bits_per_item, "mse": mse, "recall": recall})
        if best is None or mse < best[0]:
            best = mse, one
    if best is None:
        return None
    chosen = best[1]
    figures = asdict(bench.judge.examine(chosen.model))
    return {"split": chosen.split, "bits_per_item": chosen.bits_per_item, **figures, "tried": tried}


# -- as a table ------------------------------------------------------------------------------------------------------


def title(result: dict[str, Any]) -> str:
    """Return what the first table is about."""
    return f"{result['dataset']}: error / variance by bits an item"


def by_budget(result: dict[str, Any], show: Callable[[dict[str, Any]], str]) -> list[list[str]]:
    """Return a table of something that is shown of each row, a line for each method."""
    return budgets_table.by_budget(result, LABELS, show)


def cells(result: dict[str, Any]) -> list[list[str]]:
    """Return error / variance of all methods by budget."""
    return by_budget(result, lambda row: f"{mean(row, 'share'):.4f}")


def notes(result: dict[str, Any]) -> list[str]:
    """Return what to know about rows: what did not fit or is missing, and rows of another commit."""
    return budgets_table.notes(result, LABELS)


# -- the front -------------------------------------------------------------------------------------------------------


def points_of(row: dict[str, Any]) -> list[Point]:
    """Return error / variance and recall of all splits, as a glance saw them."""
    points = []
    for figures in row["figures"]:
        variance = figures["mse"] / figures["share"]
        points += [(one["mse"] / variance, one["recall"]) for one in figures["tried"]]
    return points


def most_recall(row: dict[str, Any]) -> str:
    """Return the highest recall of all splits, and the error that goes with it."""
    error, recall = max(points_of(row), key=lambda point: point[1])
    return f"{recall:.3f} ({error:.3f})"


def front_of(result: dict[str, Any], budget: int) -> list[list[str]]:
    """Return the points that no other of all methods is better than, with whose they are."""
    whose: dict[Point, list[str]] = {}
    for row in result["rows"]:
        if row["budget"] == budget and not row["method"].endswith("-codes"):
            for point in points_of(row):
                whose.setdefault(point, []).append(LABELS[row["method"]])
    return [
        [" and ".join(dict.fromkeys(whose[point])), f"{point[0]:.4f}", f"{point[1]:.3f}"]
        for point in best_points(list(whose))
    ]


# -- as a page -------------------------------------------------------------------------------------------------------


def markdown(result: dict[str, Any]) -> str:
    """Return a result as a page."""
    name = f"bits-{result['dataset']}"
    lines = [f"# {result['dataset']} at equal bits", "", in_words(result["origin"]), "", about(result), ""]
    lines += [f"![Error by bits, and recall by error]({name}.png)"]
    columns = headers(result)
    for heading, show in (
        ("Error / variance", lambda row: f"{mean(row, 'share'):.4f}"),
        ("Mean squared error", lambda row: f"{mean(row, 'mse'):.5g}"),
        (f"Recall of the {K} nearest", lambda row: f"{mean(row, 'recall'):.3f}"),
        ("Spearman", lambda row: f"{mean(row, 'spearman'):.4f}"),
        ("The most recall of all splits (and error / variance there)", most_recall),
    ):
        lines += ["", f"## {heading}", "", *table_lines(columns, by_budget(result, show))]
    for budget in sorted(set(budgets_of(result)) & set(FRONT_BUDGETS)):
        lines += ["", f"## {budget} bits: points that no other is better than at both, books counted", ""]
        lines += table_lines(["", "error / variance", "recall"], front_of(result, budget))
        lines += ["", f"## {budget} bits: error / variance of the nearest tenth of pairs, and of the others", ""]
        lines += table_lines(*by_distance(result, budget))
    splits = by_budget(result, lambda row: f"{row['figures'][0]['split']}: {row['figures'][0]['bits_per_item']:.1f}")
    lines += ["", "## How bits are spent, and how many are", "", *table_lines(columns, splits)]
    if found := notes(result):
        lines += ["", "## Notes", "", *(f"- {note}" for note in found)]
    return "\n".join(lines) + "\n"


def about(result: dict[str, Any]) -> str:
    """Return what the page shows."""
    return (
        f"{result['n_items']:,} items, metric {result['metric']}. {tables.seeds_in_words(result['n_seeds'])} Each "
        "method has the best of its splits of dimensions and bits, by the error of the distances from "
        f"{N_SOURCES:,} items; errors and recalls shown are of all pairs, those of all splits and by distance of the "
        "pairs of these items. All that is needed to answer counts: levels (bytes, and a range of two floats a "
        "coordinate), codebooks (bytes), files with headers. *Books free*: codebooks are floats and do not count. "
        "*Energy*: squared distances are those of codewords plus a number of either item. DistanceCompressor and one "
        "graph are measured on what comes back from their files."
    )


def by_distance(result: dict[str, Any], budget: int) -> tuple[list[str], list[list[str]]]:
    """Return the error of the nearest tenth of all pairs, of the next, and so on, as a share of the variance."""
    table = []
    for row in result["rows"]:
        if row["budget"] == budget and row["figures"]:
            figures = row["figures"][0]
            variance = figures["mse"] / figures["share"]
            table.append([LABELS[row["method"]], *(f"{value / variance:.4f}" for value in figures["deciles"])])
    return ["", *(f"{place}." for place in range(1, 11))], table


# -- as a picture ----------------------------------------------------------------------------------------------------


def figure(result: dict[str, Any]) -> Figure:
    """Draw error by bits of all methods whose books count, and recall by error at one budget."""
    from prodige.drawing import plots
    from prodige.reproduce.figures import new_figure

    rows = [row for row in result["rows"] if row["figures"] and not row["method"].endswith("-codes")]
    if not rows:
        raise ValueError("result has no row with figures: there is nothing to draw")
    drawn = new_figure(13, 4.6)
    left, right = drawn.subplots(1, 2)
    plots.plot_bits(
        [
            {
                "method": row["method"],
                "bits_per_item": row["budget"],
                "mse": [figures["share"] for figures in row["figures"]],
            }
            for row in rows
        ],
        names=LABELS,
        ax=left,
    )
    left.set_ylabel("error / variance")
    left.get_legend().remove()
    budgets = budgets_of({"rows": rows})
    budget = 64 if 64 in budgets else budgets[-1]
    front = {row["method"]: points_of(row) for row in rows if row["budget"] == budget}
    plots.plot_front(front, names=LABELS, ax=right)
    right.set(xlabel="error / variance", title=f"{budget} bits an item")
    left.set_title(f"{result['dataset']}, {result['n_items']:,} items")
    return drawn
