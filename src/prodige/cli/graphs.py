"""Commands that ask a saved graph: ``prodige info``, ``prodige distance`` and ``prodige neighbors``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prodige.cli.errors import clean_errors, printable
from prodige.interrupts import loading

if TYPE_CHECKING:
    from prodige.graph.graph import Graph

FILE = typer.Argument(..., metavar="FILE", help="A graph, saved as a .prodige file.", show_default=False)
AS_JSON = typer.Option(False, "--json", help="Print one JSON object and nothing else.")

# Taken for an option, a negative id would not be recognised as one; so it is refused for what it is.
NUMBERS = {"ignore_unknown_options": True}


def register(app: typer.Typer) -> None:
    """Add the commands to the main one."""
    app.command()(info)
    app.command(context_settings=NUMBERS)(distance)
    app.command(context_settings=NUMBERS)(neighbors)


@clean_errors()
def info(file: Path = FILE, as_json: bool = AS_JSON) -> None:
    """Show what a graph consists of and how much room it takes."""
    with loading():
        from prodige.loading import load_described

    graph, description = load_described(file)
    degrees = graph.degrees()
    figures: dict[str, Any] = {
        "file": str(file),
        "format_version": description.version,
        "n_items": graph.n_items,
        "n_hubs": graph.n_vertices - graph.n_items,
        "n_edges": graph.n_edges,
        "numbers_per_item": graph.numbers_per_item,
        "bytes": description.n_bytes,
        "bits_per_item": 8 * description.n_bytes / graph.n_items,
        "weight_bits": description.content.get("weight_bits", 32),
        "degree": {"min": int(degrees.min()), "mean": float(degrees.mean()), "max": int(degrees.max())},
        "connected": graph.is_connected,
        "metadata": description.metadata,
    }
    if as_json:
        typer.echo(json.dumps(figures))
        return

    degree = figures["degree"]
    rows = {
        "items": f"{figures['n_items']:,}",
        "hubs": f"{figures['n_hubs']:,}",
        "edges": f"{figures['n_edges']:,}",
        "numbers per item": f"{figures['numbers_per_item']:.4g}",
        "file": f"{file}: {figures['bytes']:,} bytes, {figures['bits_per_item']:.4g} bits per item",
        "weights": f"of {figures['weight_bits']} bits",
        "degree": f"{degree['min']} to {degree['max']}, {degree['mean']:.4g} on average",
        "connected": "yes" if figures["connected"] else "no: some items cannot be reached from others",
    }
    for key, value in description.metadata.items():
        rows[f"metadata: {key}"] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    print_table([], list(rows.items()))


@clean_errors()
def distance(
    file: Path = FILE,
    i: int = typer.Argument(..., metavar="I", help="A vertex: an item or a hub.", show_default=False),
    j: int = typer.Argument(..., metavar="J", help="Another one.", show_default=False),
    as_json: bool = AS_JSON,
) -> None:
    """Print the length of the shortest path between two vertices; inf (null in JSON) if there is none."""
    with loading():
        from prodige import Graph

    graph = Graph.load(file)
    check_vertex(graph, "I", i)
    check_vertex(graph, "J", j)
    length = graph.distance(i, j)
    if as_json:
        typer.echo(json.dumps({"i": i, "j": j, "distance": length if math.isfinite(length) else None}))
    else:
        typer.echo(f"{length:.7g}")


@clean_errors()
def neighbors(
    file: Path = FILE,
    vertex: int = typer.Argument(..., metavar="I", help="A vertex: an item or a hub.", show_default=False),
    k: int = typer.Option(10, "-k", min=1, help="How many; fewer are shown where fewer can be reached."),
    as_json: bool = AS_JSON,
) -> None:
    """Print the items nearest to a vertex, nearest first."""
    with loading():
        from prodige import Graph

    graph = Graph.load(file)
    check_vertex(graph, "I", vertex)
    found = nearest(graph, vertex, k)
    if as_json:
        entries = [{"item": item, "distance": length} for item, length in found]
        typer.echo(json.dumps({"vertex": vertex, "k": k, "neighbors": entries}))
    else:
        print_table(["item", "distance"], [(str(item), f"{length:.7g}") for item, length in found])


def nearest(graph: Graph, vertex: int, k: int) -> list[tuple[int, float]]:
    """Return up to ``k`` items that can be reached, with their distances."""
    others = graph.n_items - (1 if vertex < graph.n_items else 0)
    if others == 0:
        return []
    distances, items = graph.kneighbors([vertex], k=min(k, others))
    reached = items[0] >= 0
    return list(zip(items[0][reached].tolist(), distances[0][reached].tolist(), strict=True))


def check_vertex(graph: Graph, name: str, vertex: int) -> None:
    """Leave with a usage error if the graph has no such vertex."""
    if not 0 <= vertex < graph.n_vertices:
        raise typer.BadParameter(
            f"{vertex} is not a vertex: the graph has vertices 0 to {graph.n_vertices - 1}", param_hint=f"'{name}'"
        )


def print_table(columns: list[str], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows, of two cells where columns have no names.

    What comes from files is shown as it is, neither markup nor control codes.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=bool(columns))
    for column in columns or ["", ""]:
        table.add_column(column, overflow="fold", justify="right" if columns else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console().print(table)
