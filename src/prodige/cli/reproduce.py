"""``prodige reproduce``: the experiments of the paper."""

from __future__ import annotations

import json
from enum import Enum

import typer


class Start(str, Enum):
    """Where the weights of the sanity check start."""

    distances = "distances"
    equal = "equal"


app = typer.Typer(help="Repeat the experiments of the paper.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Repeat the experiments of the paper."""


@app.command()
def sanity(
    graphs: int = typer.Option(100, min=1, help="Number of random graphs."),
    start: Start = typer.Option(Start.distances, help="Initial weights: the distances, or all the same."),
    seed: int = typer.Option(0, min=0, help="Seed of the graphs."),
    n_jobs: int = typer.Option(-1, help="Processes; -1 for all processors."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
) -> None:
    """Learn random graphs from their distances; count how many are found again."""
    from prodige.reproduce import sanity as experiment

    figures = experiment.run(graphs, start.value, seed, n_jobs, verbose=0 if as_json else 1)
    if as_json:
        typer.echo(json.dumps({key: value for key, value in figures.items() if key != "outcomes"}))
        return

    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{graphs} random graphs learned from their distances ({figures['seconds']} s)")
    table.add_column("")
    table.add_column("here", justify="right")
    table.add_column("paper", justify="right")
    paper = experiment.PAPER
    table.add_row("every needed edge recovered", f"{figures['recovered']}", f"{paper['recovered']} of 100")
    table.add_row("all distances within 0.001", f"{figures['within_1e-3']}", f"{paper['within_1e-3']} of 100")
    table.add_row("largest error", f"{figures['largest_error']:.2g}", "")
    table.add_row("edges, on average", f"{figures['edges']:.1f} ({figures['edges_needed']:.1f} needed)", "")
    Console().print(table)
