"""``prodige reproduce``: the experiments of the paper."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import typer

from prodige.cli.errors import clean_errors, printable
from prodige.cli.options import check_jobs
from prodige.interrupts import loading

if TYPE_CHECKING:
    from prodige.datasets import Dataset, Interactions


class Start(StrEnum):
    """Where the weights of the sanity check start."""

    distances = "distances"
    equal = "equal"


class Name(StrEnum):
    """The data sets of the compression table."""

    mnist10k = "mnist10k"
    glove10k = "glove10k"
    celeba10k = "celeba10k"


class Kind(StrEnum):
    """Files that figures are saved as."""

    png = "png"
    svg = "svg"


class Budget(StrEnum):
    """The sizes of both tables, in numbers per item."""

    four = "4"
    eight = "8"


DATA_DIR = typer.Option(None, help="Folder with the data, instead of PRODIGE_DATA or a download.", show_default=False)
OUTPUT = typer.Option(
    None, "--output", "-o", help="Folder for a .json and a .md file for each table.", show_default=False
)
JOBS = typer.Option(-1, "--jobs", "-j", "--n-jobs", help="Processors to use; -1 for all.", callback=check_jobs)
AS_JSON = typer.Option(False, "--json", help="Print one JSON object and nothing else.")

app = typer.Typer(help="Repeat the experiments of the paper.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Repeat the experiments of the paper."""


@app.command()
@clean_errors()
def sanity(
    graphs: int = typer.Option(100, min=1, help="Number of random graphs."),
    start: Start = typer.Option(Start.distances, help="Initial weights: the distances, or all the same."),
    seed: int = typer.Option(0, min=0, help="Seed of the graphs."),
    n_jobs: int = JOBS,
    as_json: bool = AS_JSON,
) -> None:
    """Learn random graphs from their distances; count how many are found again."""
    with loading():
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


@app.command()
@clean_errors()
def table1(
    dataset: list[Name] | None = typer.Option(
        None, help="May be given several times; all that can be had when left out.", show_default=False
    ),
    budget: list[Budget] | None = typer.Option(
        None, help="Numbers per item. May be given several times; both when left out.", show_default=False
    ),
    data_dir: Path | None = DATA_DIR,
    seeds: int = typer.Option(3, min=1, help="Fits of each method that depends on a seed."),
    methods: str = typer.Option(
        "constant,star,pca,mds,graph", help='Some of these, "poincare" and "l0", which take long; or "all".'
    ),
    output: Path | None = OUTPUT,
    n_jobs: int = JOBS,
    as_json: bool = AS_JSON,
) -> None:
    """Keep distances in 4 or 8 numbers an item: the graph beside vectors and the paper's figures."""
    with loading():
        from prodige.reproduce import table1 as experiment

    chosen = choose_methods(methods, experiment.METHODS)
    make_folder(output)
    data, missing = load(dataset, data_dir)
    for note in [] if as_json else missing:
        typer.echo(f"Note: {printable(note)}", err=True)

    fit = Fitting(experiment, "table1", chosen, seeds, n_jobs, output, as_json)
    results = [fit(one, size) for one in data for size in budget or list(Budget)]
    if as_json:
        typer.echo(json.dumps({"results": results, "notes": missing}))


@app.command()
@clean_errors()
def table2(
    budget: list[Budget] | None = typer.Option(
        None, help="Numbers per user and item. May be given several times; both when left out.", show_default=False
    ),
    data_dir: Path | None = DATA_DIR,
    seeds: int = typer.Option(1, min=1, help="Fits of each method that depends on a seed."),
    methods: str = typer.Option(
        "all",
        help="Some of popularity, svd, als, bpr, metric; random, bipartite, normal, hubs (graphs); item-knn, ease "
        "(uncompressed).",
    ),
    output: Path | None = OUTPUT,
    n_jobs: int = JOBS,
    as_json: bool = AS_JSON,
) -> None:
    """Recommend in 4 or 8 numbers per user and item: the graph beside vectors and the paper's figures."""
    with loading():
        from prodige import datasets
        from prodige.reproduce import table2 as experiment

    chosen = choose_methods(methods, experiment.METHODS)
    make_folder(output)
    data = datasets.load_interactions("pinterest", data_dir)
    fit = Fitting(experiment, "table2", chosen, seeds, n_jobs, output, as_json)
    results = [fit(data, size) for size in budget or list(Budget)]
    if as_json:
        typer.echo(json.dumps({"results": results}))


@app.command()
@clean_errors()
def table3(
    data_dir: Path | None = DATA_DIR,
    seeds: int = typer.Option(3, min=1, help="Fits of each method that depends on a seed."),
    methods: str = typer.Option(
        "all",
        help="Some of tfidf; vectors-100, vectors-18, glove-100, glove-18, distilled-18-8bit, distilled-8-8bit, "
        "distilled-4-8bit, distilled-6-5bit (vectors); graph.",
    ),
    output: Path | None = OUTPUT,
    n_jobs: int = JOBS,
    as_json: bool = AS_JSON,
) -> None:
    """Classify film reviews: the graph beside vectors and the paper's figures."""
    with loading():
        from rich.console import Console

        from prodige import datasets
        from prodige.reproduce import table3 as experiment

    chosen = choose_methods(methods, experiment.METHODS)
    make_folder(output)
    data = datasets.load_texts("imdb", data_dir)
    with nullcontext() if as_json else Console(stderr=True).status("") as status:
        report = status.update if status is not None else ignore
        result = experiment.run(data, chosen, seeds, n_jobs, report)
    if output is not None:
        write(experiment, output / f"table3-{data.name}", result)
    if as_json:
        typer.echo(json.dumps({"results": [result]}))
    else:
        show(experiment, result)


@app.command()
@clean_errors()
def figures(
    only: str = typer.Option(
        "all", help="Some of figure1, curves, degrees, distances, bits, separated by commas.", show_default=False
    ),
    data_dir: Path | None = typer.Option(
        None, help="Folder with mnist10k, instead of PRODIGE_DATA or a download.", show_default=False
    ),
    digits: bool = typer.Option(False, "--digits", help="Take the digits of scikit-learn, and look for nothing else."),
    output: Path = typer.Option(Path("docs/figures"), "--output", "-o", help="Folder for the figures."),
    seeds: int = typer.Option(5, min=1, help="Runs behind each learning curve."),
    items: int = typer.Option(1000, min=10, help="Items of the learning curves; more take longer."),
    tables: Path | None = typer.Option(
        None, help="Folder with results of table1, which the figure of bits is drawn from.", show_default=False
    ),
    kind: Kind = typer.Option(Kind.png, "--format", help="Of the figures."),
    n_jobs: int = JOBS,
    as_json: bool = AS_JSON,
) -> None:
    """Draw the paper's figures: a complete graph thinned, learning curves, degrees; and what goes with them."""
    with loading():
        from rich.console import Console

        from prodige.graph.atomic import replacing
        from prodige.reproduce import figures as experiment

    chosen = choose_methods(only, experiment.NAMES, "--only")
    if "bits" in chosen and only != "all" and tables is None:
        raise typer.BadParameter("the figure of bits is drawn from results: name their folder", param_hint="'--tables'")
    output.mkdir(parents=True, exist_ok=True)
    data, notes = find_images(data_dir, digits)
    for note in [] if as_json else notes:
        typer.echo(f"Note: {printable(note)}", err=True)
    with nullcontext() if as_json else Console(stderr=True).status("") as status:
        report = status.update if status is not None else ignore
        drawn, result = experiment.run(data, chosen, seeds, items, tables, n_jobs, report)
    for name, figure in drawn.items():
        with replacing(str(output / f"{name}.{kind.value}")) as file:
            file.write(experiment.render(figure, kind.value))
    write(experiment, output / "figures", result | {"format": kind.value})
    if as_json:
        typer.echo(json.dumps(result))
    else:
        for name in drawn:
            typer.echo(printable(str(output / f"{name}.{kind.value}")))


def find_images(data_dir: Path | None, digits: bool) -> tuple[Dataset, list[str]]:
    """Return MNIST, or the digits of scikit-learn where it is not to be had, and a note that says so."""
    from prodige import datasets
    from prodige.reproduce.figures import digits as load_digits

    if digits:
        return load_digits(), []
    try:
        return datasets.load("mnist10k", data_dir), []
    except FileNotFoundError as error:
        if data_dir is not None:
            raise
        return load_digits(), [f"the digits of scikit-learn stand in for mnist10k: {error}"]


@dataclass(frozen=True)
class Fitting:
    """How tables are made: one is shown and written as soon as it is there."""

    experiment: ModuleType
    name: str
    methods: list[str]
    seeds: int
    n_jobs: int
    output: Path | None
    as_json: bool

    def __call__(self, data: Dataset | Interactions, budget: Budget) -> dict[str, Any]:
        """Make one table."""
        from rich.console import Console

        # Cleared before the table is printed: a status line and a table do not go well on one terminal.
        with nullcontext() if self.as_json else Console(stderr=True).status("") as status:
            report = status.update if status is not None else ignore
            result: dict[str, Any] = self.experiment.run(
                data, int(budget.value), self.methods, self.seeds, self.n_jobs, report
            )
        if self.output is not None:
            write(self.experiment, self.output / f"{self.name}-{data.name}-{budget.value}", result)
        if not self.as_json:
            show(self.experiment, result)
        return result


def make_folder(output: Path | None) -> None:
    """Make the folder for tables before anything is fitted: what cannot be written is known at once."""
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)


def choose_methods(text: str, known: tuple[str, ...], option: str = "--methods") -> list[str]:
    """Return the methods that are asked for.

    Examples
    --------
    >>> from prodige.cli.reproduce import choose_methods
    >>> choose_methods("star, graph", ("star", "mds", "graph"))
    ['star', 'graph']
    >>> choose_methods("all", ("star", "graph"))
    ['star', 'graph']
    """
    if text == "all":
        return list(known)
    methods = [part.strip() for part in text.split(",")]
    for method in methods:
        if method not in known:
            raise typer.BadParameter(f"{method!r} is none of {', '.join(known)} or all", param_hint=f"'{option}'")
    return methods


def load(names: list[Name] | None, data_dir: Path | None) -> tuple[list[Dataset], list[str]]:
    """Load data sets before anything is fitted; return also which ones could not be had and why.

    One that is asked for by name must be there. Otherwise one of them is enough: CelebA is not for everybody.
    """
    from prodige import datasets

    found: list[Dataset] = []
    missing: list[str] = []
    for name in names or list(Name):
        try:
            found.append(datasets.load(name.value, data_dir))
        except FileNotFoundError as error:
            if names:
                raise
            missing.append(f"{name.value} left out: {error}")
    if not found:
        raise FileNotFoundError("; ".join(missing))
    return found, missing


def write(experiment: ModuleType, path: Path, result: dict[str, Any]) -> None:
    """Write a table as data and as a page."""
    from prodige.graph.atomic import replacing

    for suffix, text in ((".json", json.dumps(result, indent=1) + "\n"), (".md", experiment.markdown(result))):
        with replacing(str(path) + suffix) as file:
            file.write(text.encode())


def show(experiment: ModuleType, result: dict[str, Any]) -> None:
    """Print a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=experiment.title(result))
    rows = experiment.cells(result)
    for place, header in enumerate(experiment.HEADERS):
        # Headers may be broken between words, figures not at all.
        width = max(len(text) for text in (*header.split(), *(row[place] for row in rows), ""))
        table.add_column(header, justify="right" if place else "left", width=width)
    for row in rows:
        table.add_row(*row)
    console = Console()
    # A narrow terminal may break lines: figures that are cut off say nothing. A column has 3 characters around it.
    least = sum((column.width or 0) + 3 for column in table.columns) + 1
    console = Console(width=max(console.width, least))
    console.print(table)
    for note in experiment.notes(result):
        console.print(note, markup=False, highlight=False)


def ignore(text: str) -> None:
    """Say nothing."""
