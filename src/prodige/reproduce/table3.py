"""The paper's third table: film reviews in favour or against, with words in a graph or in vectors.

The network is the same in all rows but the linear one. Sizes are given twice: as the paper counts, four bytes for each
number of the embedding, and as the file that holds all it takes to predict, vocabulary and network included.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from prodige import baselines
from prodige.datasets import LabelledTexts
from prodige.provenance import provenance
from prodige.reproduce.tables import command, page, seeds_in_words, select, spread
from prodige.text.classifier import GraphTextClassifier

# Accuracy and megabytes as printed.
PAPER = {"graph": (0.8443, 2.16), "glove-100": (0.8483, 12.24), "glove-18": (0.8028, 2.20)}

LABELS = {
    "tfidf": "linear, tf-idf of words and pairs",
    "vectors-100": "vectors, 100-d, from PPMI",
    "vectors-18": "vectors, 18-d, from PPMI",
    "glove-100": "vectors, 100-d, from GloVe",
    "glove-18": "vectors, 18-d, from GloVe",
    "distilled-18-8bit": "vectors, 18-d, distilled, 8 bits",
    "distilled-8-8bit": "vectors, 8-d, distilled, 8 bits",
    "distilled-4-8bit": "vectors, 4-d, distilled, 8 bits",
    "distilled-6-5bit": "vectors, 6-d, distilled, 5 bits",
    "graph": "graph, 32 anchors",
}
METHODS = tuple(LABELS)
HEADERS = ["", "accuracy", "paper's accuracy", "MB in float32", "paper's MB", "MB of the file", "seconds"]


@dataclass
class Row:
    """What came of one method.

    Attributes
    ----------
    method : str
    paper_accuracy, paper_megabytes : float or None
        As printed.
    accuracy, seconds : list of float
        One entry per seed: share of the test texts, and seconds from texts to the fitted model.
    float32_bytes, file_bytes : int or None
        Of the last fit: the embedding at four bytes a number, and the whole model as a file.
    """

    method: str
    paper_accuracy: float | None
    paper_megabytes: float | None
    accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    float32_bytes: int | None = None
    file_bytes: int | None = None


def run(
    data: LabelledTexts,
    methods: Sequence[str] = METHODS,
    n_seeds: int = 3,
    n_jobs: int | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Fit all methods to one set of texts.

    Parameters
    ----------
    data : LabelledTexts
    methods : sequence of str
        Some of :data:`METHODS`.
    n_seeds : int
        Fits of each method that depends on a seed; 0 is the first seed.
    n_jobs : int, optional
        Threads.
    report : callable
        Told what is going on.

    Returns
    -------
    dict
        ``dataset``, ``n_train``, ``n_test``, ``n_seeds``, ``rows`` (of :class:`Row`) and ``origin``, ready for JSON.
    """
    rows = []
    for method in select(methods, METHODS):
        row = Row(method, *PAPER.get(method, (None, None)))
        for seed in range(1 if method == "tfidf" else n_seeds):
            report(f"{data.name}: {LABELS[method]}, seed {seed}")
            fit(row, data, seed, n_jobs)
        rows.append(asdict(row))
    return {
        "dataset": data.name,
        "n_train": len(data.train),
        "n_test": len(data.test),
        "n_seeds": n_seeds,
        "rows": rows,
        "origin": provenance(command("table3", rows, seeds=n_seeds)),
    }


def fit(row: Row, data: LabelledTexts, seed: int, n_jobs: int | None) -> None:
    """Fit one method with one seed and add its figures to the row."""
    model = make(row.method, seed, n_jobs)
    began = time.perf_counter()
    model.fit(data.train, data.train_labels)
    row.seconds.append(time.perf_counter() - began)
    row.accuracy.append(float(np.mean(model.predict(data.test) == np.asarray(data.test_labels))))
    if isinstance(model, baselines.TfidfClassifier):
        row.float32_bytes = 4 * model.n_numbers
        return
    row.file_bytes = model.size_bytes
    if isinstance(model, GraphTextClassifier):
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
    if method == "graph":
        return GraphTextClassifier(random_state=seed, n_jobs=n_jobs)
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
            spread(row["accuracy"]),
            "" if row["paper_accuracy"] is None else f"{row['paper_accuracy']:.4f}",
            megabytes(row["float32_bytes"]),
            "" if row["paper_megabytes"] is None else f"{row['paper_megabytes']:.2f}",
            megabytes(row["file_bytes"]),
            f"{statistics.fmean(row['seconds']):.0f}",
        ]
        for row in result["rows"]
    ]


def notes(result: dict[str, Any]) -> list[str]:
    """Return what to know about the rows."""
    return [
        "distilled: a network over 100-d vectors is trained first, and what its filters see of the words is kept in "
        "fewer directions and trained on, as the graph is",
        "the linear model has no file format here; its size leaves out its vocabulary",
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
