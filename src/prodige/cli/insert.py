"""``prodige insert``: new items for a file that was written to be added to.

The file is replaced in one step, or stays as it was: whoever reads it meanwhile has the one or the other.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors
from prodige.cli.fitting import nothing_written
from prodige.cli.output import check_output, print_facts, rehearse, show_notes
from prodige.interrupts import loading


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(insert)


@clean_errors()
def insert(
    model: Path = typer.Argument(
        ..., metavar="MODEL", help='A file of "prodige compress --appendable".', show_default=False
    ),
    data: Path = typer.Argument(
        ..., metavar="DATA", help="Rows of numbers: .npy, .npz (also sparse), .csv or .parquet.", show_default=False
    ),
    output: Path | None = options.output("File to write; MODEL itself when left out."),
    key: str | None = typer.Option(None, help="Which array to read from an .npz file of several.", show_default=False),
    jobs: int | None = options.JOBS,
    force: bool = options.FORCE,
    as_json: bool = options.AS_JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Add new items to a compressed data set, after those that are there; nothing is learned anew."""
    if output is None:
        rehearse(model)
    else:
        check_output(data, output, force)
    with loading():
        from prodige.cli.matrices import read_matrix
        from prodige.compression.compressor import DistanceCompressor
        from prodige.loading import load

    compressor: Any = load(model, n_jobs=jobs)
    if not isinstance(compressor, DistanceCompressor):
        raise ValueError(
            f"{model} holds no rows that new ones could be measured against; write it by prodige compress --appendable"
        )
    X, notes = read_matrix(data, key)
    show_notes(notes, quiet or as_json)
    began = time.perf_counter()
    with nothing_written("result"):
        score = compressor.score(X)
        compressor.partial_fit(X)
        seconds = time.perf_counter() - began
        compressor.save(model if output is None else output)
    figures = {
        "output": str(model if output is None else output),
        "n_new": int(X.shape[0]),
        "n_items": int(compressor.graph_.n_items),
        "mse": -score,
        "seconds": round(seconds, 3),
        "notes": notes,
    }
    if as_json:
        typer.echo(json.dumps(figures))
    elif not quiet:
        print_facts(
            {
                "items": f"{figures['n_items']:,}, {figures['n_new']:,} of them new",
                "mean squared error": f"{-score:.4g}, of the new items to {compressor.anchors_.size} anchors",
                "file": str(figures["output"]),
                "time": f"{seconds:.1f} s",
            }
        )
