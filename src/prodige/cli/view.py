"""``prodige view``: a saved graph becomes a page for the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors, printable
from prodige.cli.graphs import FILE, graph_of, labels_of, sides_of
from prodige.cli.output import check_output
from prodige.interrupts import loading

if TYPE_CHECKING:
    from numpy.typing import NDArray


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(view)


@clean_errors()
def view(
    file: Path = FILE,
    output: Path | None = options.output("Page to write; FILE with the ending .html when left out."),
    labels: Path | None = typer.Option(
        None,
        help="Names of items: text in UTF-8, one on a line, or .npy; those in FILE when left out.",
        show_default=False,
    ),
    groups: Path | None = typer.Option(
        None, help="What colours show, in the same form; users and items in models of both.", show_default=False
    ),
    images: Path | None = typer.Option(
        None, help="Thumbnails: .npy of uint8, [N, h, w] or [N, h, w, 3].", show_default=False
    ),
    positions: Path | None = typer.Option(
        None, help="Where items are drawn: .npy of [N, 2]; t-SNE when left out.", show_default=False
    ),
    title: str | None = typer.Option(None, help="Heading; the name of FILE when left out.", show_default=False),
    force: bool = options.FORCE,
) -> None:
    """Write a page that shows a graph: move, zoom, search, see shortest paths. It needs no network."""
    with loading():
        from prodige.loading import load

    output = file.with_suffix(".html") if output is None else output
    check_output(file, output, force)
    model = load(file)
    try:
        graph_of(model).to_html(
            output,
            labels=labels_of(model) if labels is None else read_texts(labels),
            groups=sides_of(model) if groups is None else read_texts(groups),
            images=None if images is None else read_array(images),
            positions=None if positions is None else read_array(positions),
            title=file.stem if title is None else title,
        )
    except TypeError as error:  # here a wrong type is what a file holds, not a mistake of ours
        raise ValueError(str(error)) from error
    typer.echo(f"{printable(str(output))}: {os.path.getsize(output):,} bytes; open it in a browser")


def read_texts(path: Path) -> list[str] | NDArray[Any]:
    r"""Read one text a line, or an array of NumPy's.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from prodige.cli.view import read_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "names.txt")
    ...     _ = path.write_text("Ada\nGrace\n")
    ...     read_texts(path)
    ['Ada', 'Grace']
    """
    if path.suffix.lower() == ".npy":
        return read_array(path)
    try:
        lines = path.read_text("utf-8-sig").split("\n")  # only at ends of lines: labels may hold other separators
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8 text") from error
    return lines[:-1] if lines[-1] == "" else lines


def read_array(path: Path) -> NDArray[Any]:
    """Read an array of NumPy's without running anything in it."""
    from prodige.cli.matrices import read_npy

    if path.suffix.lower() != ".npy":
        raise ValueError(f"{path}: files of numbers must end in .npy; write one with numpy.save")
    try:
        array: NDArray[Any] = read_npy(path).X
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: {error}") from error
    return array
