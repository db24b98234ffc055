"""``prodige compress``: a file of numbers becomes a graph or a product of graphs.

No work is lost where that can be helped: the place of the result is tried before the fit, and Ctrl-C keeps the best
graph so far. What is told of the result is measured on the file itself, read back. Started by ``torchrun``, its
processes share the fit, and the first of them does the rest (:mod:`prodige.cli.launch`).
"""

from __future__ import annotations

import json
import math
import os
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors
from prodige.cli.fitting import Fitted, fit, nothing_written
from prodige.cli.graphs import figures_of_product, is_metric_in_words
from prodige.cli.launch import Launch, joined, launched
from prodige.cli.output import check_output, leave_interrupted, print_facts, show_notes
from prodige.interrupts import loading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prodige.cli.progress import FitProgress
    from prodige.compression.compressor import DistanceCompressor
    from prodige.graph.graph import Graph
    from prodige.graph.product import ProductGraph
    from prodige.metric.evaluation import Report

# Neighbours that the measured recall asks for.
N_NEIGHBORS = 10


class Method(StrEnum):
    """How graphs are learned, as in :class:`prodige.DistanceCompressor`."""

    budget = "budget"
    l0 = "l0"


class Structure(StrEnum):
    """What to fit, as in :class:`prodige.DistanceCompressor`."""

    auto = "auto"
    graph = "graph"
    product = "product"


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(compress)


@clean_errors()
def compress(
    data: Path = typer.Argument(
        ..., metavar="DATA", help="Rows of numbers: .npy, .npz (also sparse), .csv or .parquet.", show_default=False
    ),
    output: Path | None = options.output("File to write; DATA with the ending .prodige when left out."),
    numbers: float | None = options.numbers_per_item(
        None,
        "Size as the paper counts: one number per vertex and two per edge, or one per code, length and coordinate of a "
        "hub, divided by the number of items; 4 if neither size is given.",
    ),
    bits_per_item: float | None = typer.Option(
        None,
        help="Size in bits of the whole file, divided by the number of items.",
        show_default=False,
        callback=options.check_positive,
    ),
    structure: Structure = typer.Option(
        Structure.auto, help='"graph" has edges, "product" is one of several graphs, "auto" is whichever is better.'
    ),
    objective: str = typer.Option(
        "distances", help='What to keep: "distances", "neighbors", or a number from 0 to 1 between the two.'
    ),
    allow_non_metric: bool = options.flag(
        "--allow-non-metric", help="Let a product break the triangle inequality where that lowers its error."
    ),
    bits: int | None = typer.Option(
        None,
        min=1,
        max=16,
        help="Round weights of a graph to so many bits: with 8, the file is a fifth as large.",
        show_default=False,
    ),
    metric: str = typer.Option("euclidean", help='A metric of scikit-learn; "precomputed" for a distance matrix.'),
    normalize: bool = options.flag("--normalize", help="Scale rows to length 1 first, as the paper does."),
    hubs: str = typer.Option("auto", help='How many virtual vertices to begin with: a number, or "auto".'),
    method: Method = typer.Option(Method.budget, help='"l0" learns as the paper does; it takes long.'),
    max_time: float | None = options.MAX_TIME,
    memory_limit: str | None = typer.Option(
        None,
        metavar="BYTES",
        help="Memory that the fit may take beside the data, such as 4GB: it is then one of a sample that has room.",
        show_default=False,
        callback=options.check_bytes,
    ),
    appendable: bool = options.flag(
        "--appendable", help='Also keep what placing new items takes: "prodige insert" can then add some.'
    ),
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
    key: str | None = typer.Option(None, help="Which array to read from an .npz file of several.", show_default=False),
    report_to: Path | None = typer.Option(
        None, "--report", metavar="FILE", help="Also write a report (.html); needs the extra plot.", show_default=False
    ),
    checkpoint: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="Leave behind what it takes to go on, now and then; removed when the result is written.",
        show_default=False,
    ),
    checkpoint_every: float = typer.Option(60.0, min=0.0, metavar="SECONDS", help="Least time between two of them."),
    resume: bool = options.flag("--resume", help="Go on from the file of --checkpoint, if it is there."),
    force: bool = options.FORCE,
    as_json: bool = options.AS_JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Compress a data set into a graph, or a product of graphs, whose shortest paths are its distances."""
    output = data.with_suffix(".prodige") if output is None else output
    launch = launched()
    is_resumed = resume or (launch.n_restarts > 0 and checkpoint is not None)
    silent = quiet or as_json or not launch.is_first
    task = Task(data, output, report_to, key, normalize, bits, appendable, silent, launch)
    settings = {
        "numbers_per_item": numbers,
        "bits_per_item": bits_per_item,
        "metric": metric,
        "n_hubs": parse_hubs(hubs),
        "structure": structure.value,
        "objective": parse_objective(objective),
        "metric_only": not allow_non_metric,
        "method": method.value,
        "max_time": max_time,
        "memory_limit": memory_limit,
        "random_state": seed,
        "n_jobs": jobs,
        "checkpoint": checkpoint,
        "checkpoint_interval": checkpoint_every,
        "resume": is_resumed,
    }
    check_combination(task, settings)
    if launch.is_first:
        check_places(task, force or launch.n_restarts > 0)
        check_fresh(checkpoint, is_resumed or force)
    outcome = learn(task, settings)
    if not launch.is_first:
        raise typer.Exit(130 if outcome.fitted.interrupted else 0)
    figures = tell(task, outcome)
    if as_json:
        typer.echo(json.dumps(figures))
    elif outcome.report is not None and not quiet:
        show(figures, outcome.report)
    if outcome.report is None:
        without = "" if report_to is None else "; there is no report"
        leave_interrupted(f"the best graph so far is in {output}{without}")


@dataclass(frozen=True)
class Task:
    """What to read, what to write, and how much to say."""

    data: Path
    output: Path
    report_to: Path | None
    key: str | None
    normalize: bool
    bits: int | None
    appendable: bool
    silent: bool
    launch: Launch


class Outcome(NamedTuple):
    """A fit, the data, what is to be noted about both, and how good the file is; None after Ctrl-C.

    The graph of the compressor is the one in the file.
    """

    compressor: DistanceCompressor
    X: Any
    fitted: Fitted
    notes: list[str]
    report: Report | None


# -- before the fit --------------------------------------------------------------------------------------------------


def parse_hubs(text: str) -> int | Literal["auto"]:
    """Return what ``--hubs`` asks for.

    Examples
    --------
    >>> from prodige.cli.compress import parse_hubs
    >>> parse_hubs("auto"), parse_hubs("64")
    ('auto', 64)
    """
    if text == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither 'auto' nor a number of hubs, 1 or more", param_hint="'--hubs'")
    return int(text)


def parse_objective(text: str) -> str | float:
    """Return what ``--objective`` asks for.

    Examples
    --------
    >>> from prodige.cli.compress import parse_objective
    >>> parse_objective("neighbors"), parse_objective("0.5")
    ('neighbors', 0.5)
    """
    if text in ("distances", "neighbors"):
        return text
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise typer.BadParameter(
            f"{text!r} is neither 'distances' nor 'neighbors' nor a number from 0 to 1", param_hint="'--objective'"
        )
    return share


def check_combination(task: Task, settings: dict[str, Any]) -> None:
    """Refuse options that contradict each other."""
    in_bits = settings["bits_per_item"] is not None
    has_hubs, is_product = settings["n_hubs"] != "auto", settings["structure"] == "product"
    is_l0, is_rounded = settings["method"] == "l0", task.bits is not None
    for is_wrong, option, why in (
        (
            in_bits and settings["numbers_per_item"] is not None,
            "--bits-per-item",
            "give it or --numbers-per-item, not both",
        ),
        (in_bits and is_l0, "--bits-per-item", "--method l0 counts as the paper does; give --numbers-per-item"),
        (in_bits and is_rounded, "--bits", "--bits-per-item finds the bits of weights by itself; leave this out"),
        (is_product and is_rounded, "--bits", "a product has no weights to round: the fit rounds all it keeps"),
        (is_product and has_hubs, "--hubs", "a product has hubs in every factor, as many as suit its size"),
        (is_product and is_l0, "--structure", "--method l0 learns the edges of a graph, not a product"),
        (
            settings["memory_limit"] is not None and (has_hubs or is_l0 or settings["structure"] == "graph"),
            "--memory-limit",
            "it is for products; --hubs, --method l0 and --structure graph ask for a graph with edges",
        ),
        (has_hubs and is_l0, "--hubs", "there are no hubs with --method l0"),
        (settings["resume"] and settings["checkpoint"] is None, "--resume", "name the file as --checkpoint"),
        (
            task.normalize and settings["metric"] == "precomputed",
            "--normalize",
            "a matrix of distances has no rows to normalize",
        ),
        (
            task.key is not None and task.data.suffix.lower() != ".npz",
            "--key",
            "only .npz files hold several arrays",
        ),
    ):
        if is_wrong:
            raise typer.BadParameter(why, param_hint=f"'{option}'")


def check_places(task: Task, force: bool) -> None:
    """Make sure that the graph can be written, that a report can be drawn and written, and that these are two files."""
    check_output(task.data, task.output, force)
    if task.report_to is None:
        return
    with loading():
        from prodige.drawing.plots.style import check_matplotlib

    check_matplotlib()
    if os.path.realpath(task.report_to) == os.path.realpath(task.output):
        raise typer.BadParameter("the report would replace the graph; name another file", param_hint="'--report'")
    check_output(task.data, task.report_to, force, "--report")


def check_fresh(checkpoint: Path | None, is_wanted: bool) -> None:
    """Refuse to replace a checkpoint, which may be of a day's work."""
    if checkpoint is not None and checkpoint.exists() and not is_wanted:
        raise ValueError(f"{checkpoint} exists; --resume goes on from it, --force begins anew")


def check_metric(metric: str) -> None:
    """Refuse a name that scikit-learn does not know."""
    from sklearn.neighbors import VALID_METRICS

    known = sorted(VALID_METRICS["brute"])
    if metric not in known:
        raise typer.BadParameter(f"{metric!r} is none of {', '.join(known)}", param_hint="'--metric'")


# -- the fit ---------------------------------------------------------------------------------------------------------


def learn(task: Task, settings: dict[str, Any]) -> Outcome:
    """Read the data, fit a graph, write it and compare the file with the data."""
    with loading():
        from prodige import DistanceCompressor
        from prodige.cli.progress import FitProgress
        from prodige.cli.rows import read_rows

    check_metric(settings["metric"])
    X, notes, needs = read_rows(task.data, task.key, task.normalize, settings)
    show_notes(notes, task.silent)
    if needs is not None and not task.silent:
        typer.echo(f"The fit takes {needs}", err=True)
    progress = FitProgress(shown=not task.silent)
    compressor = DistanceCompressor(**settings, callbacks=[progress])
    with progress, joined(task.launch) as together:
        with nothing_written("graph"):
            fitted = fit(compressor, task.launch.share(X), **together)
            if not task.launch.is_first:
                return Outcome(compressor, X, fitted, notes, None)
            fitted.notes.extend(round_weights(compressor, task.bits))
            write(task, compressor, None)
        report = None if fitted.interrupted else measure(task, compressor, X, progress)
    if settings["checkpoint"] is not None and not fitted.interrupted:
        settings["checkpoint"].unlink(missing_ok=True)  # the result says it all
    show_notes(fitted.notes, task.silent)
    return Outcome(compressor, X, fitted, notes + fitted.notes, report)


def round_weights(compressor: DistanceCompressor, bits: int | None) -> list[str]:
    """Round the weights of a graph; return what is to be noted where there are none."""
    from prodige.graph.graph import Graph

    if bits is None:
        return []
    if not isinstance(compressor.graph_, Graph):
        return [f"--bits {bits} is not used: a product of graphs is rounded in its fit; --structure graph has weights"]
    compressor.graph_ = compressor.graph_.rounded(bits)
    return []


def measure(task: Task, compressor: DistanceCompressor, X: Any, progress: FitProgress) -> Report | None:
    """Compare the file with the data, and write the figures into it.

    Nothing if interrupted, as a finished graph is worth more than its figures.
    """
    from prodige.cli.rows import compare
    from prodige.loading import load

    progress.measuring()
    try:
        saved: Any = load(task.output)
        compressor.graph_ = saved.graph_ if task.appendable else saved
        report = compare(Answers(compressor.graph_, compressor.n_jobs), X, compressor, N_NEIGHBORS)
        write(task, compressor, report)
    except KeyboardInterrupt:
        return None
    return report


def write(task: Task, compressor: DistanceCompressor, report: Report | None) -> None:
    """Write the graph with its metadata; without, where these would take the file beyond its budget of bits."""
    if task.appendable:
        compressor.save(task.output)
        return
    graph, bits_per_item = compressor.graph_, compressor.bits_per_item
    graph.save(task.output, describe(compressor, task, report))
    if bits_per_item is not None and 8 * os.path.getsize(task.output) > bits_per_item * graph.n_items:
        graph.save(task.output)


@dataclass(frozen=True)
class Answers:
    """A graph that is asked with a given number of threads."""

    graph: Graph | ProductGraph
    n_jobs: int | None

    def distances(self, sources: NDArray[np.int64], targets: NDArray[np.int64] | None = None, /) -> NDArray[np.float32]:
        """Return the distances from some items to others, to all when ``targets`` is left out."""
        return self.graph.distances(sources, targets, n_jobs=self.n_jobs)


# -- after the fit ---------------------------------------------------------------------------------------------------


def tell(task: Task, outcome: Outcome) -> dict[str, Any]:
    """Return the figures of the file, and write the report if it is asked for."""
    compressor, report = outcome.compressor, outcome.report
    figures = {
        "input": str(task.data),
        "output": str(task.output),
        **summarize(compressor.graph_, os.path.getsize(task.output)),
        **errors(report),
        "structure": compressor.structure_,
        "interrupted": report is None,
        "seconds": outcome.fitted.seconds,
        "notes": outcome.notes,
    }
    if task.report_to is not None and report is not None:
        write_page(task.report_to, task, outcome, report)
        figures["report"] = str(task.report_to)
    return figures


def describe(compressor: DistanceCompressor, task: Task, report: Report | None) -> dict[str, Any]:
    """Return the metadata of the file: what was asked for and how it came out.

    Nothing in it depends on the clock or on where files lie, so the same data and seed make the same file on the same
    machine.
    """
    from prodige import __version__

    settings = compressor.get_params()
    return {
        "prodige": __version__,
        "data": task.data.name,
        "normalized": task.normalize,
        **size_of(compressor),
        **{name: settings[name] for name in ("metric", "n_hubs", "objective", "metric_only", "method", "max_time")},
        "seed": settings["random_state"],
        "structure": compressor.structure_,
        "stopped": compressor.stopped_,
        **{name: value if value is None else float(f"{value:.6g}") for name, value in errors(report).items()},
    }


def size_of(compressor: DistanceCompressor) -> dict[str, float]:
    """Return the size that was asked for, by the name of its parameter."""
    budget = compressor._budget
    sizes = {"numbers_per_item": budget.numbers, "bits_per_item": budget.bits}
    return {name: value for name, value in sizes.items() if value is not None}


def summarize(graph: Graph | ProductGraph, n_bytes: int) -> dict[str, Any]:
    """Return the figures of a graph and its file."""
    from prodige.graph.graph import Graph

    return {
        "n_items": graph.n_items,
        "n_hubs": graph.n_hubs,
        **({"n_edges": graph.n_edges} if isinstance(graph, Graph) else figures_of_product(graph)),
        "numbers_per_item": graph.numbers_per_item,
        "bytes": n_bytes,
        "bits_per_item": 8 * n_bytes / graph.n_items,
    }


def errors(report: Report | None) -> dict[str, float | None]:
    """Return how far the distances are off; None for what is not known or not finite, as JSON has no other word."""
    names = ("mse", "relative_error", "variance", "spearman", "recall")
    values = {name: math.nan if report is None else getattr(report, name) for name in names}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def to_repeat(compressor: DistanceCompressor, task: Task) -> str:
    """Return the command that makes the same graph and report again; every setting is named, as defaults may change."""
    settings = compressor.get_params()
    values: dict[str, Any] = {
        "--output": task.output,
        **{f"--{name.replace('_', '-')}": value for name, value in size_of(compressor).items()},
        "--metric": settings["metric"],
        "--hubs": settings["n_hubs"],
        "--structure": settings["structure"],
        "--objective": settings["objective"],
        "--method": settings["method"],
        "--max-time": settings["max_time"],
        "--memory-limit": settings["memory_limit"],
        "--seed": settings["random_state"],
        "--jobs": settings["n_jobs"],
        "--key": task.key,
        "--bits": task.bits,
        "--report": task.report_to,
    }
    flags = {
        "--allow-non-metric": not settings["metric_only"],
        "--normalize": task.normalize,
        "--appendable": task.appendable,
    }
    words = [word for name, value in values.items() if value is not None for word in (name, str(value))]
    return shlex.join(["prodige", "compress", str(task.data), *words, *(name for name, on in flags.items() if on)])


def write_page(path: Path, task: Task, outcome: Outcome, measured: Report) -> None:
    """Write the report; the graph is safe by now, whatever happens here."""
    from prodige.cli.progress import FitProgress
    from prodige.drawing.report import write_report

    try:
        with FitProgress(shown=not task.silent) as progress:
            write_report(
                path,
                outcome.compressor,
                outcome.X,
                name=task.data.name,
                command=to_repeat(outcome.compressor, task),
                notes=outcome.notes,
                measured=measured,
                random_state=outcome.compressor.random_state,
                tell=progress.stage,
            )
    except KeyboardInterrupt:
        typer.echo("Interrupted: the graph is written, the report is not", err=True)
        raise


def show(figures: dict[str, Any], report: Report) -> None:
    """Print the figures as a table."""
    sampled = "" if report.n_sources == report.n_items else f", from {report.n_sources:,} of the items"
    rows = {
        **graph_rows(figures),
        "mean squared error": f"{report.mse:.4g} (of one constant: {report.variance:.4g}){sampled}",
        "relative error": f"{report.relative_error:.2%}",
        "Spearman correlation": f"{report.spearman:.4f}",
        f"neighbour recall@{report.k}": f"{report.recall:.1%}",
        "numbers per item": f"{figures['numbers_per_item']:.4g}",
        "file": f"{figures['output']}: {figures['bytes']:,} bytes, {figures['bits_per_item']:.4g} bits per item",
        "time": f"{figures['seconds']:.1f} s",
    }
    if "report" in figures:
        rows["report"] = figures["report"]
    print_facts(rows)


def graph_rows(figures: dict[str, Any]) -> dict[str, str]:
    """Return what kind of graph it is, and how large.

    Examples
    --------
    >>> from prodige.cli.compress import graph_rows
    >>> graph_rows({"n_items": 60, "n_hubs": 4, "n_edges": 70})
    {'graph': '60 items, 4 hubs, 70 edges'}
    >>> graph_rows({"n_items": 60, "n_hubs": 16, "n_factors": 2, "is_metric": True})
    {'product of graphs': '60 items, 2 factors, 16 hubs', 'is a metric': 'yes'}
    """
    items, hubs = f"{figures['n_items']:,} items", f"{figures['n_hubs']:,} hubs"
    if "n_edges" in figures:
        return {"graph": f"{items}, {hubs}, {figures['n_edges']:,} edges"}
    factors = f"{figures['n_factors']:,} factor{'s' * (figures['n_factors'] != 1)}"
    return {"product of graphs": f"{items}, {factors}, {hubs}", "is a metric": is_metric_in_words(figures["is_metric"])}
