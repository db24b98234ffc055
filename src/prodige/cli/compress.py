"""``prodige compress``: a file of numbers becomes a graph.

No work is lost where that can be helped: the place of the result is tried before the fit, and Ctrl-C keeps the best
graph so far.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from prodige.cli.errors import clean_errors, printable
from prodige.cli.options import JOBS, check_positive
from prodige.interrupts import loading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prodige.cli.progress import FitProgress
    from prodige.compression.compressor import DistanceCompressor
    from prodige.graph.graph import Graph
    from prodige.metric.evaluation import Report

# Neighbours that the report asks for.
N_NEIGHBORS = 10


class Method(StrEnum):
    """Ways to fit, as in :class:`prodige.DistanceCompressor`."""

    budget = "budget"
    l0 = "l0"


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(compress)


@clean_errors()
def compress(
    data: Path = typer.Argument(
        ..., metavar="DATA", help="Rows of numbers: .npy, .npz (also sparse), .csv or .parquet.", show_default=False
    ),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="File to write; DATA with the ending .prodige when left out.", show_default=False
    ),
    numbers: float = typer.Option(
        4.0,
        "--numbers-per-item",
        "-n",
        help="Size: one number per vertex and two per edge, divided by the items.",
        callback=check_positive,
    ),
    bits: int | None = typer.Option(
        None, min=1, max=16, help="Round weights to so many bits: a fifth of the size with 8.", show_default=False
    ),
    metric: str = typer.Option("euclidean", help='Any metric of scikit-learn; "precomputed" for a distance matrix.'),
    normalize: bool = typer.Option(False, "--normalize", help="Bring rows to length 1 first, as in the paper."),
    hubs: str = typer.Option("auto", help='Virtual vertices to begin with: a number, or "auto".'),
    method: Method = typer.Option(Method.budget, help='"l0" is the way of the paper; it takes long.'),
    max_time: float | None = typer.Option(
        None, min=0.1, help="Seconds for the fit.", show_default=False, callback=check_positive
    ),
    seed: int = typer.Option(
        0, min=0, max=2**32 - 1, help="A seed gives the same graph on the same machine, with any number of threads."
    ),
    jobs: int | None = JOBS,
    key: str | None = typer.Option(None, help="Which array of an .npz file with several.", show_default=False),
    report_to: Path | None = typer.Option(
        None, "--report", metavar="FILE", help="Write a page about the run (.html); extra plot.", show_default=False
    ),
    force: bool = typer.Option(False, "--force", "-f", help="Replace an existing file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no table: only errors."),
) -> None:
    """Compress a data set into a graph whose shortest paths are its distances."""
    n_hubs = parse_hubs(hubs)
    check_combination(data, metric, normalize, n_hubs, method, key)
    output = data.with_suffix(".prodige") if output is None else output
    check_output(data, output, force)
    if report_to is not None:
        check_report(data, output, report_to, force)

    with loading():
        from prodige import DistanceCompressor
        from prodige.cli.matrices import read_matrix
        from prodige.cli.progress import FitProgress

    check_metric(metric)
    silent = quiet or as_json
    X, notes = read_matrix(data, key)
    show_notes(notes, silent)
    if normalize:
        from sklearn.preprocessing import normalize as unit_length

        X = unit_length(X)
    progress = FitProgress(shown=not silent)
    compressor = DistanceCompressor(
        numbers, metric, n_hubs, method.value, max_time, random_state=seed, n_jobs=jobs, callbacks=[progress]
    )
    began = time.perf_counter()
    try:
        with progress:
            warned = fit(compressor, X)
            seconds = time.perf_counter() - began
            if bits is not None:  # what is measured and told of is what is written
                compressor.graph_ = compressor.graph_.rounded(bits)
            report = None if compressor.stopped_ == "interrupt" else measure(compressor, X, seed, progress)
    except KeyboardInterrupt:
        typer.echo("Interrupted before there was a graph: nothing was written", err=True)
        raise
    show_notes(warned, silent)

    graph = compressor.graph_
    graph.save(output, describe(compressor, data, normalize, report), bits=bits)
    figures = {
        "input": str(data),
        "output": str(output),
        **summarize(graph, os.path.getsize(output)),
        **errors(report),
        "structure": compressor.structure_,
        "interrupted": report is None,
        "seconds": round(seconds, 3),
        "notes": notes + warned,
    }
    if report_to is not None and report is not None:
        command = to_repeat(compressor, data, output, normalize, key, bits, report_to)
        write_page(report_to, compressor, X, data.name, command, notes + warned, report, bits, silent)
        figures["report"] = str(report_to)
    if as_json:
        typer.echo(json.dumps(figures))
    elif report is not None and not quiet:
        show(figures, report)
    if report is None:
        without = "" if report_to is None else "; there is no report"
        typer.echo(f"Interrupted: the best graph so far is in {printable(str(output))}{without}", err=True)
        raise typer.Exit(130)


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


def check_combination(
    data: Path, metric: str, normalize: bool, n_hubs: int | Literal["auto"], method: Method, key: str | None
) -> None:
    """Refuse options that contradict each other."""
    if normalize and metric == "precomputed":
        raise typer.BadParameter("a matrix of distances has no rows to normalize", param_hint="'--normalize'")
    if n_hubs != "auto" and method is Method.l0:
        raise typer.BadParameter("there are no hubs with --method l0", param_hint="'--hubs'")
    if key is not None and data.suffix.lower() != ".npz":
        raise typer.BadParameter("only .npz files hold several arrays", param_hint="'--key'")


def check_metric(metric: str) -> None:
    """Refuse a name that scikit-learn does not know."""
    from sklearn.neighbors import VALID_METRICS

    known = sorted(VALID_METRICS["brute"])
    if metric not in known:
        raise typer.BadParameter(f"{metric!r} is none of {', '.join(known)}", param_hint="'--metric'")


def check_report(data: Path, output: Path, report_to: Path, force: bool) -> None:
    """Make sure that a report can be drawn and written, and that it is not the graph."""
    from prodige.drawing.plots.style import check_matplotlib

    check_matplotlib()
    if os.path.realpath(report_to) == os.path.realpath(output):
        raise typer.BadParameter("the report would replace the graph; name another file", param_hint="'--report'")
    check_output(data, report_to, force, "--report")


def check_output(data: Path, output: Path, force: bool, option: str = "--output") -> None:
    """Make sure that the result can be written, by doing all of it but the writing."""
    if output.exists() and data.exists() and output.samefile(data):
        raise typer.BadParameter("the result would replace the data; name another file", param_hint=f"'{option}'")
    if os.path.lexists(output) and not output.is_dir() and not force:
        raise ValueError(f"{output} exists; use --force to replace it, or {option} to name another file")
    rehearse(output)


def rehearse(output: Path) -> None:
    """Do all of the writing of a file but the last step."""
    from prodige.graph.atomic import replacing

    with suppress(RehearsalError), replacing(str(output)):
        raise RehearsalError


class RehearsalError(Exception):
    """Ends the writing of a file before it takes the place of another."""


# -- the fit ---------------------------------------------------------------------------------------------------------


def fit(compressor: DistanceCompressor, X: Any) -> list[str]:
    """Fit and return what was warned about."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("default", category=UserWarning)
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # of the interrupt, which is reported here
        compressor.fit(X)
    return list(dict.fromkeys(str(warning.message) for warning in caught))


def measure(compressor: DistanceCompressor, X: Any, seed: int, progress: FitProgress) -> Report | None:
    """Compare the graph with the data; nothing if interrupted, as a finished graph is worth more than its figures."""
    from prodige.metric.evaluation import evaluate
    from prodige.metric.space import Space

    progress.measuring()
    try:
        model = Answers(compressor.graph_, compressor.n_jobs)
        space = Space(X, compressor.metric, n_jobs=compressor.n_jobs)
        return evaluate(model, space, k=N_NEIGHBORS, random_state=seed)
    except KeyboardInterrupt:
        return None


@dataclass(frozen=True)
class Answers:
    """A graph that is asked with a given number of threads."""

    graph: Graph
    n_jobs: int | None

    def distances(self, sources: NDArray[np.int64], targets: None = None, /) -> NDArray[np.float32]:
        """Return the distances from some items to all."""
        return self.graph.distances(sources, targets, n_jobs=self.n_jobs)


# -- after the fit ---------------------------------------------------------------------------------------------------


def describe(compressor: DistanceCompressor, data: Path, normalize: bool, report: Report | None) -> dict[str, Any]:
    """Return the metadata of the file: what was asked for and how it came out.

    Nothing in it depends on the clock or on where files lie, so the same data and seed make the same file on the same
    machine.
    """
    from prodige import __version__

    settings = compressor.get_params()
    return {
        "prodige": __version__,
        "data": data.name,
        "normalized": normalize,
        **{name: settings[name] for name in ("metric", "numbers_per_item", "n_hubs", "method", "max_time")},
        "seed": settings["random_state"],
        "structure": compressor.structure_,
        "stopped": compressor.stopped_,
        **{name: value if value is None else float(f"{value:.6g}") for name, value in errors(report).items()},
    }


def summarize(graph: Graph, n_bytes: int) -> dict[str, Any]:
    """Return the figures of a graph and its file."""
    return {
        "n_items": graph.n_items,
        "n_hubs": graph.n_vertices - graph.n_items,
        "n_edges": graph.n_edges,
        "numbers_per_item": graph.numbers_per_item,
        "bytes": n_bytes,
        "bits_per_item": 8 * n_bytes / graph.n_items,
    }


def errors(report: Report | None) -> dict[str, float | None]:
    """Return how far the distances are off, None for what is not known or not a number, as JSON wants it."""
    names = ("mse", "relative_error", "variance", "spearman", "recall")
    values = {name: math.nan if report is None else getattr(report, name) for name in names}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def to_repeat(
    compressor: DistanceCompressor,
    data: Path,
    output: Path,
    normalize: bool,
    key: str | None,
    bits: int | None,
    report_to: Path,
) -> str:
    """Return the command that makes the same graph and report again; every setting is named, as defaults may change."""
    settings = compressor.get_params()
    options: dict[str, Any] = {
        "--output": output,
        "--numbers-per-item": settings["numbers_per_item"],
        "--metric": settings["metric"],
        "--hubs": settings["n_hubs"],
        "--method": settings["method"],
        "--max-time": settings["max_time"],
        "--seed": settings["random_state"],
        "--jobs": settings["n_jobs"],
        "--key": key,
        "--bits": bits,
        "--report": report_to,
    }
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    return shlex.join(["prodige", "compress", str(data), *words, *(["--normalize"] if normalize else [])])


def write_page(
    path: Path,
    compressor: DistanceCompressor,
    X: Any,
    name: str,
    command: str,
    notes: list[str],
    measured: Report,
    bits: int | None,
    silent: bool,
) -> None:
    """Write the report; the graph is safe by now, whatever happens here."""
    from prodige.cli.progress import FitProgress
    from prodige.drawing.report import write_report

    try:
        with FitProgress(shown=not silent) as progress:
            write_report(
                path,
                compressor,
                X,
                name=name,
                command=command,
                notes=notes,
                measured=measured,
                bits=bits,
                random_state=compressor.random_state,
                tell=progress.stage,
            )
    except KeyboardInterrupt:
        typer.echo("Interrupted: the graph is written, the report is not", err=True)
        raise


def show_notes(notes: list[str], silent: bool) -> None:
    """Print notes on stderr."""
    for note in [] if silent else notes:
        typer.echo(f"Note: {printable(note)}", err=True)


def show(figures: dict[str, Any], report: Report) -> None:
    """Print the figures as a table."""
    from prodige.cli.graphs import print_table

    sampled = "" if report.n_sources == report.n_items else f", from {report.n_sources:,} of the items"
    rows = {
        "graph": f"{figures['n_items']:,} items, {figures['n_hubs']:,} hubs, {figures['n_edges']:,} edges",
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
    print_table([], list(rows.items()))
