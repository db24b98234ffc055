"""Run report: one page about a fit, for people who were not there.

The page is a single file that needs no network and runs no script: pictures are inline SVG in the colours of the page,
light or dark, and everything that comes from data is escaped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from prodige import baselines
from prodige.compression.compressor import DistanceCompressor
from prodige.drawing.plots.bits import NAMES, OURS
from prodige.graph.atomic import StrPath, replacing
from prodige.graph.graph import Graph
from prodige.graph.product import ProductGraph
from prodige.metric.evaluation import Report, evaluate
from prodige.metric.space import Space, name_of
from prodige.provenance import provenance

if TYPE_CHECKING:
    import numpy as np

TEMPLATE = Path(__file__).with_name("report.html")

# Neighbours that recall asks for.
N_NEIGHBORS = 10

# Steps of MDS: fewer than it takes by itself, and enough that more change the third digit only.
N_MDS_STEPS = 300


@dataclass(frozen=True)
class Entry:
    """A method in the table of errors.

    Attributes
    ----------
    method : str
        As :func:`prodige.drawing.plots.plot_bits` knows it.
    numbers_per_item, bits_per_item : float
        As the paper counts, and 8 times the bytes of a file; vectors in float32, unless they are asked for in bits.
    report : Report
    seconds : float or None
        Of the fit.
    """

    method: str
    numbers_per_item: float
    bits_per_item: float
    report: Report
    seconds: float | None


def write_report(
    path: StrPath,
    compressor: DistanceCompressor,
    X: Any,
    *,
    name: str = "",
    command: str | None = None,
    notes: Sequence[str] = (),
    measured: Report | None = None,
    random_state: int | np.random.RandomState | None = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Write a page about a fit: data, settings, curves, degrees, errors beside other methods, and how to repeat it.

    Star, MDS, PCA and residual coordinates are fitted for comparison, with as many numbers or bits an item as the graph
    may have. Of a product of graphs there are no degrees, and the picture shows items joined to their nearest.

    Parameters
    ----------
    path : str or path-like
        File to write, by custom ending in ``.html``; one that is there is replaced in one step.
    compressor : DistanceCompressor
        Fitted.
    X : array-like or sparse matrix
        What it was fitted to.
    name : str
        Of the data.
    command : str, optional
        How to repeat the fit; the estimator as Python when left out.
    notes : sequence of str
        To be mentioned below the errors.
    measured : Report, optional
        Errors of the graph, if they are known already.
    random_state : int, RandomState or None
        Seed of MDS and of the pairs that are compared.
    tell : callable
        Told what is going on.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from prodige import DistanceCompressor
    >>> from prodige.drawing.report import write_report
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> compressor = DistanceCompressor(random_state=0, n_jobs=1).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.html")
    ...     write_report(path, compressor, X, name="60 points")
    ...     "<title>60 points as a product of graphs</title>" in path.read_text()
    True
    """
    page = make_page(compressor, X, name, command, notes, measured, random_state, tell)
    with replacing(str(path)) as file:
        file.write(page.encode())


def make_page(
    compressor: DistanceCompressor,
    X: Any,
    name: str,
    command: str | None,
    notes: Sequence[str],
    measured: Report | None,
    random_state: int | np.random.RandomState | None,
    tell: Callable[[str], None],
) -> str:
    """Return the page."""
    from prodige.drawing import svg

    check_is_fitted(compressor)
    graph = compressor.graph_
    space = Space(X, compressor.metric, n_jobs=compressor.n_jobs)
    if space.n_items != graph.n_items:
        raise ValueError(f"X must be what compressor was fitted to: {graph.n_items} items, got {space.n_items}")
    entries = compare(compressor, space, measured, random_state, tell)
    tell("drawing")
    ours = entries[0]
    command = in_python(compressor) if command is None else command
    drawn = svg.draw(compressor, space, entries, random_state)
    title = f"{name or f'{graph.n_items:,} items'} as a {NAMES[ours.method]}"
    curves = drawn.pop("curves", None)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        lead=escape(describe_graph(graph)),
        tiles="".join(tile(value, label) for label, value in headline(ours).items()),
        comparison=error_table(entries),
        remarks="".join(f"<p>{escape(note)}</p>" for note in [*remarks(entries), *notes]),
        curves="<p>There were no steps: the graph follows from the data in closed form.</p>"
        if curves is None
        else curves,
        pictures="".join(drawn.values()),
        data=pairs_table(describe_data(name, space)),
        settings=pairs_table(describe_settings(compressor)),
        environment=pairs_table(describe_environment(command)),
        command=escape(command),
    )


# -- figures ---------------------------------------------------------------------------------------------------------


def compare(
    compressor: DistanceCompressor,
    space: Space,
    measured: Report | None,
    random_state: int | np.random.RandomState | None,
    tell: Callable[[str], None],
) -> list[Entry]:
    """Return the errors of the graph, and of what else can be had for as many numbers an item."""
    graph, n = compressor.graph_, space.n_items
    if measured is None:
        tell("measuring")
        measured = evaluate(graph, space, k=N_NEIGHBORS, random_state=random_state)
    history = compressor.history_
    seconds = history[-1].seconds if history else None
    method = "graph" if isinstance(graph, Graph) else "product"
    entries = [Entry(method, graph.numbers_per_item, graph.bits_per_item, measured, seconds)]
    for method, model in others(compressor, space, random_state).items():
        tell(f"comparing with {NAMES[method]}")
        began = time.perf_counter()
        model.fit(space.X)
        seconds = time.perf_counter() - began
        report = evaluate(model, space, k=N_NEIGHBORS, random_state=random_state)
        numbers = model.numbers_per_item
        bits = model.bits_per_item_ if method == "residual" else 32 * (numbers + model.shared_numbers / n)
        entries.append(Entry(method, numbers, bits, report, seconds))
    return entries


def others(
    compressor: DistanceCompressor, space: Space, random_state: int | np.random.RandomState | None
) -> dict[str, Any]:
    """Return what to compare with, by name, in the size that was asked for: numbers, or bits as far as these go."""
    budget, n = compressor._budget, space.n_items
    common: dict[str, Any] = {"metric": space.metric, "n_jobs": compressor.n_jobs}
    seeded = common | {"random_state": random_state}
    size = max(1, math.floor(budget.numbers or (budget.bits or 0) / 32))
    flat = space.metric == "euclidean" and not scipy.sparse.issparse(space.X)
    most = min(size, *space.X.shape) if flat else min(size, n)
    found: dict[str, Any] = {
        "mds": baselines.MDS(min(size, n), n_steps=N_MDS_STEPS, **seeded),
        "star": baselines.Star(**common),
    }
    if flat:
        found["pca"] = baselines.PCA(most, n_jobs=compressor.n_jobs)
    found["residual"] = baselines.ResidualCoordinates(most, bits_per_item=budget.bits, **seeded)
    return found


def in_python(compressor: DistanceCompressor) -> str:
    """Return an estimator as one writes it, without callbacks, which nobody could repeat."""
    plain = type(compressor)(**(compressor.get_params() | {"callbacks": None, "verbose": 0}))
    return " ".join(f"{plain!r}.fit(X)".split())


def describe_graph(graph: Graph | ProductGraph) -> str:
    """Return what distances are made of, in a sentence or two.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.drawing.report import describe_graph
    >>> describe_graph(Graph.from_edges([0, 1], [1, 2], 1.0))
    '3 items, 0 hubs and 2 edges: the distance between two items is the length of their shortest path.'
    """
    if isinstance(graph, Graph):
        return (
            f"{graph.n_items:,} items, {graph.n_hubs:,} hubs and {graph.n_edges:,} edges: the distance between two "
            "items is the length of their shortest path."
        )
    promise = "a metric" if graph.is_metric else "not promised to be a metric"
    return (
        f"{graph.n_items:,} items at {graph.n_hubs:,} hubs of {graph.n_factors:,} graphs: an item is one hub in each, "
        f"and a length of its own{', that of an edge it hangs by' * graph.pendant}. Shortest paths in all of them add "
        f"up to the distance between two items, by power {graph.power:g} and gauge {graph.gauge:g}; it is {promise}."
    )


def headline(entry: Entry) -> dict[str, str]:
    """Return the figures to see first."""
    report = entry.report
    return {
        "mean squared error": number(report.mse),
        "relative error": share(report.relative_error),
        f"{report.k} nearest kept": share(report.recall),
        "numbers per item": number(entry.numbers_per_item),
        "bits per item": number(entry.bits_per_item),
        "seconds": "" if entry.seconds is None else f"{entry.seconds:.1f}",
    }


def remarks(entries: list[Entry]) -> list[str]:
    """Return what to know about the errors."""
    report = entries[0].report
    lines = [
        f"One constant for all distances would have a mean squared error of {number(report.variance)}. Bits are those "
        "of the saved file, and 32 for each number of a vector unless these are rounded to a budget in bits; what is "
        "shared by all items counts."
    ]
    if report.n_sources < report.n_items:
        lines.append(f"Errors are over the pairs of {report.n_sources:,} items, drawn at random, with all items.")
    return lines


def describe_data(name: str, space: Space) -> dict[str, str]:
    """Return what went in."""
    kind = "sparse" if scipy.sparse.issparse(space.X) else "dense"
    facts = {"data": name} if name else {}
    return facts | {
        "items": f"{space.n_items:,}",
        "numbers of an item": f"{space.X.shape[1]:,}",
        "kept as": f"{kind}, {space.X.dtype}",
        "metric": name_of(space.metric),
    }


def describe_settings(compressor: DistanceCompressor) -> dict[str, str]:
    """Return what was asked for, and what it led to."""
    asked = {key: str(value) for key, value in compressor.get_params().items() if key not in ("callbacks", "verbose")}
    found = {"structure": compressor.structure_, "ended by": compressor.stopped_}
    if hasattr(compressor, "lambda_"):
        found["penalty that met the budget"] = number(compressor.lambda_)
    if compressor.history_:
        found["steps"] = f"{len(compressor.history_):,}"
    return asked | found


def describe_environment(command: str) -> dict[str, str]:
    """Return where it ran."""
    origin = provenance(command)
    facts = {"prodige": str(origin["prodige"])}
    if origin["commit"] is not None:
        facts["commit"] = str(origin["commit"])
    return facts | {key: str(value) for key, value in origin["machine"].items()}


# -- as HTML ---------------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Return a figure with four digits.

    Examples
    --------
    >>> from prodige.drawing.report import number
    >>> number(0.0030949), number(float("nan"))
    ('0.003095', 'none')
    """
    return "none" if math.isnan(value) else f"{value:.4g}"


def share(value: float) -> str:
    """Return a figure in per cent."""
    return "none" if math.isnan(value) else f"{value:.1%}"


def tile(value: str, label: str) -> str:
    """Return one of the figures to see first."""
    return f'<div class="tile"><b>{escape(value) or "–"}</b><span>{escape(label)}</span></div>'


def pairs_table(facts: dict[str, str]) -> str:
    """Return facts as a table of two columns."""
    rows = (f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>' for key, value in facts.items())
    return f"<table>{''.join(rows)}</table>"


def error_table(entries: list[Entry]) -> str:
    """Return the errors of all methods as a table."""
    headers = (
        "",
        "numbers per item",
        "bits per item",
        "mean squared error",
        "relative error",
        "Spearman correlation",
        f"recall@{entries[0].report.k}",
        "seconds",
    )
    head = "".join(f'<th scope="col">{escape(header)}</th>' for header in headers)
    body = []
    for entry in entries:
        report = entry.report
        cells = (
            NAMES[entry.method],
            number(entry.numbers_per_item),
            number(entry.bits_per_item),
            number(report.mse),
            share(report.relative_error),
            number(report.spearman),
            share(report.recall),
            "" if entry.seconds is None else f"{entry.seconds:.1f}",
        )
        kind = ' class="ours"' if entry.method in OURS else ""
        body.append(f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    return f'<table class="figures"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
