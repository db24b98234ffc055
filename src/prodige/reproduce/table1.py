"""The paper's first table: distances kept in 4 or 8 numbers an item, by the graph and by vectors.

Errors are means over all N² pairs, an item and itself among them, as the paper prints them. Four methods are added that
the paper does not have: two floors, one constant for all distances and the best star; principal coordinates with a
residual energy, the strongest closed form; and a product of graphs, of which codes, lengths and coordinates of hubs are
a number each.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import baselines
from prodige.compression.compressor import DistanceCompressor
from prodige.datasets import Dataset
from prodige.graph.graph import Graph
from prodige.metric.duplicates import find_copies
from prodige.metric.evaluation import mean_squared_error
from prodige.metric.space import Space
from prodige.reproduce import tables
from prodige.reproduce.tables import Plan, fit_rows, page, row_notes, seeds_in_words, spread, timed_fit

# Mean squared errors as printed, by numbers per item, method and data set.
PAPER: dict[int, dict[str, dict[str, float]]] = {
    4: {
        "PRODIGE": {"mnist10k": 0.00938, "glove10k": 0.03289, "celeba10k": 0.00374},
        "MDS": {"mnist10k": 0.05414, "glove10k": 0.13142, "celeba10k": 0.01678},
        "Poincare MDS": {"mnist10k": 0.04683, "glove10k": 0.11386, "celeba10k": 0.01649},
        "PCA": {"mnist10k": 0.30418, "glove10k": 0.84912, "celeba10k": 0.09078},
    },
    8: {
        "PRODIGE": {"mnist10k": 0.00886, "glove10k": 0.02856, "celeba10k": 0.00367},
        "MDS": {"mnist10k": 0.01857, "glove10k": 0.05584, "celeba10k": 0.00621},
        "Poincare MDS": {"mnist10k": 0.01503, "glove10k": 0.04839, "celeba10k": 0.00619},
        "PCA": {"mnist10k": 0.16237, "glove10k": 0.62424, "celeba10k": 0.05298},
    },
}
BUDGETS = tuple(PAPER)

# What the paper calls each of our methods; the floors, residual coordinates and products are not in it.
PAPER_NAMES = {"pca": "PCA", "mds": "MDS", "poincare": "Poincare MDS", "graph": "PRODIGE", "l0": "PRODIGE"}
LABELS = {
    "constant": "constant",
    "star": "star",
    "pca": "PCA",
    "mds": "MDS",
    "poincare": "Poincaré MDS",
    "residual": "residual coordinates",
    "l0": "graph, by L0",
    "graph": "graph",
    "product": "product of graphs",
}
METHODS = tuple(LABELS)
SEEDED = {"mds", "poincare", "l0", "graph", "product"}

# Whose figures of the paper the clock is stopped at.
MARKS = ("PRODIGE", "MDS")


@dataclass(kw_only=True)
class Row(tables.Row):
    """What came of one method.

    Attributes
    ----------
    paper_mse : float or None
        As printed.
    mse : list of float
        One entry per seed.
    seconds_to : dict of list
        One entry per seed: seconds until the error of a graph, a product or MDS was as low as the paper's of that name,
        None if it never was.
    numbers_per_item, bits_per_item : float
        Of the last fit: as the paper counts, and 8 times the bytes of the file; vectors in float32.
    """

    paper_mse: float | None
    mse: list[float] = field(default_factory=list)
    seconds_to: dict[str, list[float | None]] = field(default_factory=dict)
    numbers_per_item: float | None = None
    bits_per_item: float | None = None


def run(data: Dataset, budget: int, plan: Plan) -> dict[str, Any]:
    """Fit all methods of a plan to one data set, in ``budget`` numbers per item.

    Returns
    -------
    dict
        ``dataset``, ``budget``, ``n_items``, ``n_seeds``, ``rows`` (of :class:`Row`) and ``origin``, ready for JSON.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from prodige.datasets import Dataset
    >>> from prodige.reproduce import table1
    >>> from prodige.reproduce.tables import Plan
    >>> X = np.random.default_rng(0).normal(size=(100, 20)).astype(np.float32)
    >>> result = table1.run(Dataset("toy", X, np.arange(100), Path("toy.npz")), 4, Plan(["constant", "star"]))
    >>> [row["mse"][0] > 0 for row in result["rows"]]
    [True, True]
    """

    def new(method: str) -> Row:
        return Row(method, paper_mse=printed(budget, PAPER_NAMES.get(method), data.name))

    about = f"{data.name}, {budget} numbers"
    rows = fit_rows(plan, about, LABELS, SEEDED, new, partial(fit, data, budget, plan.n_jobs))
    options = {"dataset": data.name, "budget": budget}
    return tables.result("table1", plan, rows, options, dataset=data.name, budget=budget, n_items=len(data.X))


def printed(budget: int, name: str | None, dataset: str) -> float | None:
    """Return a figure of the paper, None if it has none."""
    return PAPER.get(budget, {}).get(name or "", {}).get(dataset)


# -- one fit ---------------------------------------------------------------------------------------------------------


def fit(data: Dataset, budget: int, n_jobs: int | None, row: Row, seed: int) -> None:
    """Fit one method with one seed and add its figures to the row."""
    model = make(row.method, budget, seed, n_jobs)
    timed_fit(row, model, data.X)
    n = len(data.X)
    if isinstance(model, DistanceCompressor):
        answers = model.graph_
        row.numbers_per_item, row.bits_per_item = answers.numbers_per_item, answers.bits_per_item
    else:
        answers = model
        row.numbers_per_item = model.numbers_per_item
        row.bits_per_item = 32 * (model.numbers_per_item + model.shared_numbers / n)
    row.mse.append(mean_squared_error(answers, Space(data.X)) * (n - 1) / n)
    if row.method in ("mds", "graph", "product"):
        steps = follow(model, data.X)
        for mark in MARKS:
            figure = printed(budget, mark, data.name)
            reached = None if figure is None else seconds_to(steps, figure, budget)
            row.seconds_to.setdefault(mark, []).append(reached)
    if row.method == "poincare":
        row.note = "the curvature is learned; the paper keeps it at 1"


def make(method: str, budget: int, seed: int, n_jobs: int | None) -> Any:
    """Return what is to be fitted."""
    common: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs}
    if method in ("graph", "product"):
        return DistanceCompressor(budget, **common | {"structure": method})
    if method == "l0":
        return DistanceCompressor(budget, method="l0", **common)
    if method in ("constant", "star"):
        return {"constant": baselines.Constant, "star": baselines.Star}[method](n_jobs=n_jobs)
    kinds = {
        "pca": baselines.PCA,
        "mds": baselines.MDS,
        "poincare": baselines.PoincareMDS,
        "residual": baselines.ResidualCoordinates,
    }
    return kinds[method](budget, **common)


Step = tuple[float, float, float]


def follow(model: DistanceCompressor | baselines.MDS, X: NDArray[np.float32]) -> list[Step]:
    """Return seconds since the fit began, error and numbers per item after every step."""
    history = model.history_
    if not isinstance(model, DistanceCompressor):
        return [(step.seconds, step.loss, model.numbers_per_item) for step in history]
    # The fit counts one of several items in the same place. The others are joined later, by a vertex and an edge each,
    # or share the codes of a product.
    n, n_places = len(X), find_copies(Space(X))[0].size
    n_copies = n - n_places
    added = 3 * n_copies if isinstance(model.graph_, Graph) else min(2 * n_copies, n)
    return [(step.seconds, step.loss, ((step.numbers_per_item or 0.0) * n_places + added) / n) for step in history]


def seconds_to(steps: list[Step], figure: float, budget: float) -> float | None:
    """Return when an error was first reached by a graph within the budget: larger ones come before and have it easier.

    Examples
    --------
    >>> from prodige.reproduce.table1 import seconds_to
    >>> seconds_to([(1.0, 0.1, 9.0), (2.0, 0.3, 4.0), (3.0, 0.2, 4.0)], figure=0.2, budget=4)
    3.0
    """
    small = budget + 1e-9  # rounding
    return next((seconds for seconds, loss, numbers in steps if numbers <= small and loss <= figure), None)


# -- as a table ------------------------------------------------------------------------------------------------------

HEADERS = [
    "",
    "mean squared error",
    "paper",
    "numbers per item",
    "bits per item",
    "seconds",
    *(f"seconds to the paper's {mark}" for mark in MARKS),
]


def title(result: dict[str, Any]) -> str:
    """Return what a table is about."""
    return f"{result['dataset']} in {result['budget']} numbers an item"


def cells(result: dict[str, Any]) -> list[list[str]]:
    """Return the rows of a table as text, as :data:`HEADERS` names the columns."""
    table = []
    for row in result["rows"]:
        paper = "" if row["paper_mse"] is None else f"{row['paper_mse']:.5f}"
        if not row["mse"]:
            table.append([LABELS[row["method"]], "", paper, *[""] * (len(HEADERS) - 3)])
            continue
        table.append(
            [
                LABELS[row["method"]],
                spread(row["mse"]),
                paper,
                f"{row['numbers_per_item']:.3g}",
                f"{row['bits_per_item']:.3g}",
                f"{np.mean(row['seconds']):.1f}",
                *(in_time(row["seconds_to"].get(mark, [])) for mark in MARKS),
            ]
        )
    return table


def notes(result: dict[str, Any]) -> list[str]:
    """Return what to know about the rows."""
    return row_notes(result["rows"], LABELS)


def in_time(seconds: list[float | None]) -> str:
    """Return the mean over the seeds that got there.

    Examples
    --------
    >>> from prodige.reproduce.table1 import in_time
    >>> in_time([1.0, 2.0]), in_time([1.0, None]), in_time([None]), in_time([])
    ('1.5', '1.0 (1 of 2)', 'never', '')
    """
    reached = [value for value in seconds if value is not None]
    if not reached:
        return "never" if seconds else ""
    mean = f"{statistics.fmean(reached):.1f}"
    return mean if len(reached) == len(seconds) else f"{mean} ({len(reached)} of {len(seconds)})"


def markdown(result: dict[str, Any]) -> str:
    """Return a result as a page."""
    about = f"{seeds_in_words(result['n_seeds'])} Errors are over all pairs, times of the fit alone."
    return page(title(result), result["origin"], about, HEADERS, cells(result), notes(result))
