"""The paper's third table: film reviews in favour or against, with words in a graph or in vectors.

The network is the paper's in all rows but the linear ones and those of graphs whose anchors are the classes. Sizes are
given twice: as the paper counts, four bytes for each number of the embedding, and as the file that holds all it takes
to predict, vocabulary and network included.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from prodige import baselines
from prodige.datasets import LabelledTexts
from prodige.provenance import commit, provenance
from prodige.reproduce import budgets, tables
from prodige.reproduce.resuming import Key, due, go_on, known_rows
from prodige.reproduce.resuming import read as read_result
from prodige.reproduce.tables import Plan, command, fit_rows, page, seeds_in_words, spread, timed_fit
from prodige.text.classifier import GraphTextClassifier
from prodige.text.paper import AnchorTextClassifier

# Accuracy and megabytes as printed.
PAPER = {"graph": (0.8443, 2.16), "glove-100": (0.8483, 12.24), "glove-18": (0.8028, 2.20)}

LABELS = {
    "tfidf": "linear, tf-idf of words and pairs",
    "hashed": "linear, hashed words and pairs, in the manner of fastText",
    "ratios": "linear, log-count ratios of words, pairs and triples",
    "vectors-100": "vectors, 100-d, from PPMI",
    "vectors-18": "vectors, 18-d, from PPMI",
    "glove-100": "vectors, 100-d, from GloVe",
    "glove-18": "vectors, 18-d, from GloVe",
    "distilled-18-8bit": "vectors, 18-d, distilled, 8 bits",
    "distilled-8-8bit": "vectors, 8-d, distilled, 8 bits",
    "distilled-4-8bit": "vectors, 4-d, distilled, 8 bits",
    "distilled-6-5bit": "vectors, 6-d, distilled, 5 bits",
    "graph": "graph, 32 anchors",
    "ngrams-20kB": "graph of words, pairs, triples, 20 kB",
    "ngrams-40kB": "graph of words, pairs, triples, 40 kB",
    "ngrams-50kB": "graph of words, pairs, triples, 50 kB",
    "ngrams-150kB": "graph of words, pairs, triples, 150 kB",
}
METHODS = tuple(LABELS)
# Nothing is left to chance in the others; where there is no published split, every seed has a split of its own.
SEEDED = {*METHODS} - {"tfidf", "hashed", "ratios", *(method for method in METHODS if method.startswith("ngrams"))}
HEADERS = ["", "accuracy", "paper's accuracy", "MB in float32", "paper's MB", "MB of the file", "seconds"]


@dataclass(kw_only=True)
class Row(tables.Row):
    """What came of one method; seconds are from texts to the fitted model.

    Attributes
    ----------
    paper_accuracy, paper_megabytes : float or None
        As printed.
    accuracy : list of float
        One entry per seed: share of the test texts.
    float32_bytes, file_bytes : int or None
        Of the last fit: the embedding at four bytes a number, and the whole model as a file.
    commit : str or None
        Of the code that made the row.
    """

    paper_accuracy: float | None
    paper_megabytes: float | None
    accuracy: list[float] = field(default_factory=list)
    float32_bytes: int | None = None
    file_bytes: int | None = None
    commit: str | None = None


def run(
    data: LabelledTexts,
    plan: Plan,
    known: dict[str, Any] | None = None,
    keep: Callable[[dict[str, Any]], None] = lambda result: None,
    again: bool = False,
) -> dict[str, Any]:
    """Fit all methods of a plan to one set of texts.

    Parameters
    ----------
    data : LabelledTexts
    plan : Plan
        Methods, seeds and threads.
    known, keep, again
        An earlier result, who is given the result so far, and whether to make all rows anew: see
        :mod:`prodige.reproduce.resuming`.

    Returns
    -------
    dict
        ``dataset``, ``n_train``, ``n_test``, ``n_seeds``, ``rows`` (of :class:`Row`) and ``origin``, ready for JSON.
    """
    sizes = {"n_train": len(data.train), "n_test": len(data.test)}
    rows = known_rows(known, sizes, "method")
    seeded = SEEDED if data.has_published_split else set(METHODS)
    here = commit()

    def new(method: str) -> Row:
        accuracy, megabytes = PAPER.get(method, (None, None)) if data.has_published_split else (None, None)
        return Row(method, paper_accuracy=accuracy, paper_megabytes=megabytes, commit=here)

    def gathered() -> dict[str, Any]:
        entries = [rows[method,] for method in METHODS if (method,) in rows]
        origin = provenance(command("table3", entries, dataset=data.name, seeds=plan.n_seeds))
        return {"dataset": data.name, **sizes, "n_seeds": plan.n_seeds, "rows": entries, "origin": origin}

    def make_row(key: Key) -> Row:
        alone = replace(plan, methods=list(key))
        made: list[Row] = fit_rows(alone, data.name, LABELS, seeded, new, partial(fit, data, plan.n_jobs))
        return made[0]

    asked = [(method,) for method in tables.select(plan.methods, METHODS)]
    return go_on(rows, due(rows, asked, plan, seeded, here, again), make_row, gathered, keep)


def read(path: Path) -> dict[str, Any] | None:
    """Return an earlier result; None where there is no such file."""
    return read_result(path, METHODS, "n_train")


def fit(data: LabelledTexts, n_jobs: int | None, row: Row, seed: int) -> None:
    """Fit one method with one seed and add its figures to the row."""
    model = make(row.method, seed, n_jobs)
    if not data.has_published_split:
        data = data.split_again(seed)
    timed_fit(row, model, data.train, data.train_labels)
    row.accuracy.append(float(np.mean(model.predict(data.test) == np.asarray(data.test_labels))))
    if isinstance(model, baselines.TfidfClassifier | baselines.HashedClassifier | baselines.RatioClassifier):
        row.float32_bytes = 4 * model.n_numbers
        return
    row.file_bytes = model.size_bytes
    if isinstance(model, GraphTextClassifier):
        row.float32_bytes = round(4 * model.numbers_per_item_ * len(model.vertices_))
    elif isinstance(model, AnchorTextClassifier):
        embedding = model.network_.embedding
        numbers = model.graph_.numbers_per_item * model.graph_.n_items + embedding.embedding_dim + 1  # type: ignore[operator]
        row.float32_bytes = round(4 * float(numbers))
    else:
        row.float32_bytes = 4 * model.network_.embedding.weight.numel()


def make(method: str, seed: int, n_jobs: int | None) -> Any:
    """Return what is to be fitted.

    Examples
    --------
    >>> from prodige.reproduce.table3 import make
    >>> make("glove-18", 0, 1)
    VectorTextClassifier(n_components=18, n_jobs=1, random_state=0, vectors='glove')
    """
    if method == "tfidf":
        return baselines.TfidfClassifier()
    if method == "hashed":
        return baselines.HashedClassifier()
    if method == "ratios":
        return baselines.RatioClassifier(n_jobs=n_jobs)
    if method == "graph":
        return AnchorTextClassifier(random_state=seed, n_jobs=n_jobs)
    if method.startswith("ngrams"):
        return GraphTextClassifier(1000 * int(method.removeprefix("ngrams-").removesuffix("kB")), n_jobs=n_jobs)
    start, length, *bits = method.split("-")
    return baselines.VectorTextClassifier(
        int(length),
        bits=int(bits[0].removesuffix("bit")) if bits else 32,
        distill=100 if start == "distilled" else None,
        vectors="glove" if start == "glove" else "ppmi",
        random_state=seed,
        n_jobs=n_jobs,
    )


# -- as a table ------------------------------------------------------------------------------------------------------


def title(result: dict[str, Any]) -> str:
    """Return what a table is about."""
    return f"{result['dataset']}: {result['n_train']:,} texts to learn from, {result['n_test']:,} to test"


def cells(result: dict[str, Any]) -> list[list[str]]:
    """Return the rows of a table as text, as :data:`HEADERS` names the columns."""
    return [
        [
            LABELS[row["method"]],
            spread(row["accuracy"]) if row["accuracy"] else "",
            "" if row["paper_accuracy"] is None else f"{row['paper_accuracy']:.4f}",
            megabytes(row["float32_bytes"]),
            "" if row["paper_megabytes"] is None else f"{row['paper_megabytes']:.2f}",
            megabytes(row["file_bytes"]),
            f"{statistics.fmean(row['seconds']):.0f}" if row["seconds"] else "",
        ]
        for row in result["rows"]
    ]


def notes(result: dict[str, Any]) -> list[str]:
    """Return what to know about the rows."""
    return [
        *budgets.notes(result, LABELS),
        "distilled: a network over 100-d vectors is trained first, and what its filters see of the words is kept in "
        "fewer directions and trained on, as the graph is",
        "linear models have no file format here; their sizes leave out the vocabulary",
        "hashed: what fastText learns of words and pairs in buckets, by scikit-learn's logistic regression",
    ]


def megabytes(size: int | None) -> str:
    """Return bytes in millions.

    Examples
    --------
    >>> from prodige.reproduce.table3 import megabytes
    >>> megabytes(2_160_000), megabytes(None)
    ('2.160', '')
    """
    return "" if size is None else f"{size / 1e6:.3f}"


def markdown(result: dict[str, Any]) -> str:
    """Return a result as a page."""
    about = f"{seeds_in_words(result['n_seeds'])} Seconds are from texts to the fitted model."
    return page(title(result), result["origin"], about, HEADERS, cells(result), notes(result))
