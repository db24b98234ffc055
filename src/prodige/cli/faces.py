"""``prodige encode-faces``: a folder of photographs becomes a data set."""

from __future__ import annotations

from pathlib import Path

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors, printable
from prodige.cli.output import check_output
from prodige.interrupts import loading


@clean_errors()
def encode_faces(
    folder: Path = typer.Argument(..., metavar="FOLDER", help="Photographs, .jpg or .png.", show_default=False),
    output: Path = typer.Option(Path("celeba10k.npz"), "--output", "-o", help="File to write."),
    limit: int | None = typer.Option(
        None, min=1, help="Most faces; 10000 for the paper's data set.", show_default=False
    ),
    jobs: int | None = options.JOBS,
    force: bool = options.FORCE,
    quiet: bool = options.QUIET,
) -> None:
    """Encode the largest face of every photograph by face_recognition (extra "faces")."""
    with loading():
        from prodige.datasets import faces

    check_output(folder, output, force)
    n_faces, n_without = faces.encode_faces(folder, output, limit, jobs, verbose=0 if quiet else 1)
    typer.echo(f"{printable(str(output))}: {n_faces} faces; {n_without} photographs without one left out")
