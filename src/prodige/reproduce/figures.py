"""The paper's pictures, and two of ours: a complete graph thinned, learning curves, degrees, distances, error by size.

Each experiment gives a figure and the facts beside it: what was fitted and how it came out.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prodige.baselines import Star
from prodige.compression.compressor import DistanceCompressor
from prodige.compression.paper.l0 import N_STEPS, L0Result, fit_l0
from prodige.datasets import Dataset
from prodige.drawing import plots
from prodige.drawing.powerlaw import fit_power_law
from prodige.graph.graph import Graph
from prodige.metric.evaluation import mean_squared_error
from prodige.metric.space import Space, unit_rows
from prodige.provenance import in_words, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = ("figure1", "curves", "degrees", "distances", "bits")

# The paper's first figure: images of five classes, of which all pairs are edges, and the share that is kept.
CLASSES = (0, 1, 2, 3, 4)
IMAGES_PER_CLASS = 20
KEPT = 0.05

# Nearest items that each item is joined to at first, of which 4 is what the fit takes by itself; steps; and numbers
# per item, of these graphs and of the one of all items.
NEIGHBORS = (2, 4, 16, 64)
CURVE_STEPS = N_STEPS
SMOOTH = 15  # steps, as the error of one is that of a small batch
BUDGET = 8

Tell = Callable[[str], None]
Facts = dict[str, Any]


def run(
    data: Dataset,
    names: Sequence[str] = NAMES,
    n_seeds: int = 5,
    n_items: int = 1000,
    tables: Path | None = None,
    n_jobs: int | None = None,
    report: Tell = lambda text: None,
) -> tuple[dict[str, Figure], dict[str, Any]]:
    """Draw figures from one data set.

    Parameters
    ----------
    data : Dataset
        With images as rows, and classes as labels.
    names : sequence of str
        Some of :data:`NAMES`. ``"bits"`` needs ``tables`` and is left out without.
    n_seeds : int
        Runs behind each learning curve; 0 is the first seed.
    n_items : int
        Items of the learning curves, the first of the data: each of ``n_seeds`` times 4 runs takes them in.
    tables : Path, optional
        Folder with results of :mod:`prodige.reproduce.table1`.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    report : callable
        Told what is going on.

    Returns
    -------
    figures : dict of matplotlib.figure.Figure
        By name.
    result : dict
        ``dataset``, ``n_items``, ``n_seeds``, ``format``, ``figures`` (facts by name) and ``origin``, ready for JSON.

    Examples
    --------
    >>> from prodige.reproduce import figures
    >>> drawn, result = figures.run(figures.digits(), ["curves"], n_seeds=1, n_items=12)
    >>> sorted(result["figures"]["curves"]["mse"])  # by the number of neighbours
    ['2', '4']
    """
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ValueError(f"names must be some of {', '.join(NAMES)}, got {unknown[0]!r}")
    drawn: dict[str, Figure] = {}
    facts: dict[str, Facts] = {}
    fitted: Graph | None = None
    learned: L0Result | None = None
    if "figure1" in names:
        drawn["figure1"], facts["figure1"] = thinned_complete_graph(data, n_jobs, report)
    if {"curves", "degrees"} & set(names):
        figure, found, learned = learning_curves(data, n_seeds, n_items, n_jobs, report, "curves" in names)
        if "curves" in names:
            drawn["curves"], facts["curves"] = figure, found
    if {"degrees", "distances"} & set(names):
        report(f"{data.name} in {BUDGET} numbers an item")
        fitted = DistanceCompressor(BUDGET, structure="graph", random_state=0, n_jobs=n_jobs).fit(data.X).graph_
    if "degrees" in names and fitted is not None and learned is not None:
        drawn["degrees"], facts["degrees"] = degree_histograms(fitted, learned.graph)
    if "distances" in names and fitted is not None:
        drawn["distances"], facts["distances"] = distance_scatter(fitted, data)
    if "bits" in names and tables is not None:
        drawn["bits"], facts["bits"] = error_by_size(tables)
    chosen = "" if tuple(drawn) == NAMES else f"--only {','.join(drawn)} "
    command = f"prodige reproduce figures {'--digits ' * (data.name == 'digits')}{chosen}"
    command += f"--seeds {n_seeds} --items {n_items}{' --tables docs/results' * ('bits' in drawn)}"
    return drawn, {
        "dataset": data.name,
        "n_items": len(data.X),
        "n_seeds": n_seeds,
        "format": "png",
        "figures": facts,
        "origin": provenance(command),
    }


def digits() -> Dataset:
    """Return the digits of scikit-learn as rows of length 1, for where MNIST is not at hand.

    Examples
    --------
    >>> from prodige.reproduce.figures import digits
    >>> digits()
    Dataset('digits', 1797 rows of 64 numbers)
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    rows = unit_rows(bunch.data).astype(np.float32)
    return Dataset("digits", rows, bunch.target.astype(np.int64), Path("digits"))


# -- one figure each -------------------------------------------------------------------------------------------------


def thinned_complete_graph(data: Dataset, n_jobs: int | None, report: Tell) -> tuple[Figure, Facts]:
    """Draw images joined to all others, by one in twenty of these edges, and by hubs in a graph of that size."""
    from prodige.drawing.layout import place

    items = pick_images(data.labels)
    X, labels = data.X[items], data.labels[items]
    space = Space(X)
    report(f"{len(X)} images of {data.name}")
    complete = complete_graph(X)
    numbers = (len(X) + 2 * math.ceil(KEPT * complete.n_edges)) / len(X)
    # With all others as neighbours, the candidates are the complete graph.
    learned = fit_l0(space, numbers, 0, n_jobs, n_steps=CURVE_STEPS, n_neighbors=len(X) - 1).graph
    fitted = DistanceCompressor(numbers, structure="graph", random_state=0, n_jobs=n_jobs).fit(X).graph_
    where = place(complete, "tsne", 0, n_jobs)
    width, height = np.ptp(where, axis=0)
    if height > width:
        where, width, height = where[:, ::-1], height, width
    figure = new_figure(8, 3 * (0.6 + 7 * height / width))
    errors = {}
    for ax, (name, graph) in zip(
        figure.subplots(3, 1),
        {"complete": complete, "the way of the paper": learned, "by budget": fitted}.items(),
        strict=True,
    ):
        errors[name] = mean_squared_error(graph, space)
        plots.plot_graph(graph, labels, with_hubs(graph, where), images=as_images(X), ax=ax)
        hubs = f" and {graph.n_hubs} hubs" if graph.n_hubs else ""
        error = "no error" if graph is complete else f"mean squared error {errors[name]:.2g}"
        ax.set_title(f"{name}: {graph.n_edges:,} edges{hubs}, {error}", fontsize=10)
        if graph is not fitted:
            ax.get_legend().remove()
    true = space.distances(np.arange(len(X)))[np.triu_indices(len(X), 1)]
    return figure, {
        "n_items": len(X),
        "classes": list(CLASSES),
        "numbers_per_item": numbers,
        "n_edges": [complete.n_edges, learned.n_edges, fitted.n_edges],
        "mse": errors,
        "mse_of_a_constant": float(true.var()),
        "mse_of_a_star": -Star().fit(X).score(X),
    }


def learning_curves(
    data: Dataset, n_seeds: int, n_items: int, n_jobs: int | None, report: Tell, all_runs: bool
) -> tuple[Figure, Facts, L0Result]:
    """Draw how graphs are learned the way of the paper, from different numbers of neighbours.

    Where not all runs are wanted, one is made for what it becomes. Returned is also the last run with as many
    neighbours as the fit takes by itself.
    """
    X = data.X[:n_items]
    space = Space(X)
    runs: dict[str, list[L0Result]] = {}
    for n_neighbors in NEIGHBORS if all_runs else (4,):
        if n_neighbors >= len(X):
            continue
        for seed in range(n_seeds if all_runs else 1):
            report(f"{len(X):,} items of {data.name}, {n_neighbors} neighbours to begin with, seed {seed}")
            result = fit_l0(space, BUDGET, seed, n_jobs, n_steps=CURVE_STEPS, n_neighbors=n_neighbors)
            runs.setdefault(str(n_neighbors), []).append(result)
    histories = {f"{name} neighbours": [one.history for one in results] for name, results in runs.items()}
    figure = new_figure(11, 3.8)
    left, right = figure.subplots(1, 2)
    plots.plot_history(histories, "loss", smooth=SMOOTH, ax=left)
    plots.plot_history(histories, "numbers_per_item", ax=right)
    left.set_ylabel("mean squared error")
    right.get_legend().remove()
    errors = {name: [mean_squared_error(one.graph, space) for one in results] for name, results in runs.items()}
    seconds = {name: [one.history[-1].seconds for one in results] for name, results in runs.items()}
    facts = {"n_items": len(X), "numbers_per_item": BUDGET, "mse": errors, "seconds": seconds}
    return figure, facts, runs["4"][-1]


def degree_histograms(fitted: Graph, learned: Graph) -> tuple[Figure, Facts]:
    """Draw the degrees of a graph with hubs, and of one learned the way of the paper."""
    figure = new_figure(11, 4)
    facts: Facts = {"numbers_per_item": BUDGET}
    for ax, (name, graph) in zip(
        figure.subplots(1, 2), {"by budget": fitted, "the way of the paper": learned}.items(), strict=True
    ):
        plots.plot_degrees(graph, ax=ax)
        ax.set_title(f"{name}: {graph.n_items:,} items, {graph.n_hubs:,} hubs", fontsize=11)
        law = fit_power_law(graph.degrees())
        facts[name] = {
            "n_items": graph.n_items,
            "n_hubs": graph.n_hubs,
            "n_edges": graph.n_edges,
            "largest_degree": int(graph.degrees().max()),
            "power_law": None if law is None else law._asdict(),
        }
    return figure, facts


def distance_scatter(graph: Graph, data: Dataset) -> tuple[Figure, Facts]:
    """Draw the distances of a graph against the true ones."""
    figure = new_figure(5.4, 5)
    plots.plot_distances(graph, data.X, ax=figure.subplots())
    return figure, {"numbers_per_item": graph.numbers_per_item, "n_edges": graph.n_edges}


def error_by_size(tables: Path) -> tuple[Figure, Facts]:
    """Draw the error of all methods against bits per item, one picture for each data set of the tables."""
    results: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(tables.glob("table1-*.json")):
        table = json.loads(path.read_text(encoding="utf-8"))
        results.setdefault(table["dataset"], []).append(table)
    if not results:
        raise FileNotFoundError(f"{tables} has no table1-*.json; make them with prodige reproduce table1 -o {tables}")
    figure = new_figure(1.5 + 3.6 * len(results), 3.8)
    axes: list[Axes] = list(figure.subplots(1, len(results), squeeze=False)[0])
    for ax, (name, found) in zip(axes, results.items(), strict=True):
        plots.plot_bits(found, ax=ax)
        ax.set_title(name, fontsize=11)
        if ax is not axes[-1]:
            ax.get_legend().remove()  # type: ignore[union-attr]
    return figure, {"tables": {name: sorted({table["budget"] for table in found}) for name, found in results.items()}}


# -- parts -----------------------------------------------------------------------------------------------------------


def new_figure(width: float, height: float) -> Figure:
    """Return a figure that pyplot knows nothing of."""
    from prodige.drawing.plots.style import check_matplotlib

    check_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def pick_images(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return the first images of five classes, in the order of the data."""
    chosen = [np.flatnonzero(labels == kind)[:IMAGES_PER_CLASS] for kind in CLASSES]
    if any(found.size < IMAGES_PER_CLASS for found in chosen):
        raise ValueError(f"labels must have {IMAGES_PER_CLASS} items of each of the classes {CLASSES}")
    return np.sort(np.concatenate(chosen))


def as_images(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows as square images between 0 and 1."""
    side = round(X.shape[1] ** 0.5)
    brightest = X.max(axis=1, keepdims=True)
    return np.asarray((X / brightest).clip(0, 1).reshape(-1, side, side))


def complete_graph(X: NDArray[np.float32]) -> Graph:
    """Return the graph of all pairs."""
    from prodige.metric import candidates

    edges = candidates.complete(X)
    return Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)


def with_hubs(graph: Graph, where: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the places of items, and each hub amid the items that it is joined to."""
    places = np.zeros((graph.n_vertices, 2))
    places[: graph.n_items] = where
    i, j, _ = graph.edges
    joins = (i < graph.n_items) & (j >= graph.n_items)  # hubs have the larger numbers
    count = np.bincount(j[joins], minlength=graph.n_vertices)
    for axis in range(2):
        total = np.bincount(j[joins], where[i[joins], axis], graph.n_vertices)
        places[graph.n_items :, axis] = (total / np.maximum(count, 1))[graph.n_items :]
    return places


# -- as files --------------------------------------------------------------------------------------------------------

CAPTIONS = {
    "figure1": "Images of five classes over t-SNE: joined to all others; by one in twenty of these edges, chosen the "
    "way of the paper; and by as large a graph with hubs, which `DistanceCompressor` finds. Short edges are strong; "
    "edges within a class have its colour.",
    "curves": "Learning by the way of the paper, from different numbers of nearest neighbours among the candidate "
    f"edges: mean over the seeds and {SMOOTH} steps, and the band between the lowest and the highest. The error rises "
    "while edges are given up (right).",
    "degrees": f"Edges of a vertex at {BUDGET} numbers an item, with and without hubs.",
    "distances": f"True distances and those of the graph at {BUDGET} numbers an item; yellow is many pairs.",
    "bits": "Error against size of all methods, as measured by `prodige reproduce table1`. Vectors are kept in 32 bits "
    "a number.",
}


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a PNG or SVG file; the same figure gives the same bytes."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "prodige"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(buffer, format=kind, dpi=120, facecolor="white", metadata=metadata)
    return buffer.getvalue()


def markdown(result: dict[str, Any]) -> str:
    """Return a page with all figures, what is known about them, and where they come from."""
    kind = result["format"]
    lines = [f"# Figures of {result['dataset']}", "", in_words(result["origin"])]
    for name, facts in result["figures"].items():
        lines += ["", f"## {name}", "", f"![{name}]({name}.{kind})", "", CAPTIONS[name], ""]
        lines += [f"- {key.replace('_', ' ')}: {in_text(value)}" for key, value in facts.items()]
    return "\n".join(lines) + "\n"


def in_text(value: Any) -> str:
    """Return a fact as text.

    Examples
    --------
    >>> from prodige.reproduce.figures import in_text
    >>> in_text({"4": [0.25, 0.5]}), in_text(None), in_text(1000)
    ('4: 0.25, 0.5', 'none', '1,000')
    """
    if isinstance(value, dict):
        return "; ".join(f"{key.replace('_', ' ')}: {in_text(entry)}" for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(in_text(entry) for entry in value)
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
