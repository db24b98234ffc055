"""``prodige reproduce``: the experiments of the paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors, printable
from prodige.cli.output import print_table, print_wide_table, show_notes
from prodige.interrupts import loading

if TYPE_CHECKING:
    from prodige.datasets import Dataset, Interactions, LabelledTexts
    from prodige.reproduce.families import Family

Data = TypeVar("Data")


class Start(StrEnum):
    """Where the weights of the sanity check start."""

    distances = "distances"
    equal = "equal"


class Name(StrEnum):
    """The data sets of the compression table."""

    mnist10k = "mnist10k"
    glove10k = "glove10k"
    celeba10k = "celeba10k"


class TextsName(StrEnum):
    """The data sets of the table of texts."""

    imdb = "imdb"
    mr = "mr"


class FamilyName(StrEnum):
    """The data sets of the table at equal bits."""

    mnist10k = "mnist10k"
    glove10k = "glove10k"
    celeba10k = "celeba10k"
    digits = "digits"
    clusters = "clusters"
    manifold = "manifold"
    tree = "tree"


class InteractionsName(StrEnum):
    """The data sets of recommendation."""

    pinterest = "pinterest"
    lastfm = "lastfm"


class Kind(StrEnum):
    """Files that figures are saved as."""

    png = "png"
    svg = "svg"


class Budget(StrEnum):
    """The sizes of both tables, in numbers per item."""

    four = "4"
    eight = "8"


DATASET = typer.Option(
    None, help="May be given several times; all that are available when left out.", show_default=False
)
DATA_DIR = typer.Option(
    None, metavar="FOLDER", help="Where the data are, instead of PRODIGE_DATA or a download.", show_default=False
)
OUTPUT = typer.Option(
    None,
    "--output",
    "-o",
    metavar="FOLDER",
    help="Where to write a .json and a .md file for each table.",
    show_default=False,
)
AGAIN = options.flag("--again", help="Make rows anew that the files in the folder have from this commit.")
BUDGET = typer.Option(
    None,
    "--budget",
    "-n",
    help="Numbers per item (and user). May be given several times; both when left out.",
    show_default=False,
)

app = typer.Typer(help="Repeat the experiments of the paper.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Repeat the experiments of the paper."""


def seeds(default: int) -> Any:
    """Declare how often methods are fitted."""
    return typer.Option(default, "--seeds", min=1, help="Fits of each method that depends on a seed.")


def bits_per(what: str, usual: str) -> Any:
    """Declare budgets in bits."""
    told = f"Bits per {what}. May be given several times; {usual} when left out."
    return typer.Option(None, "--budget", "-n", min=4, help=told, show_default=False)


@app.command()
@clean_errors()
def sanity(
    graphs: int = typer.Option(100, min=1, help="How many random graphs."),
    start: Start = typer.Option(Start.distances, help="First weights: the distances, or all the same."),
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
    as_json: bool = options.AS_JSON,
) -> None:
    """Learn random graphs from their distances; count how many are recovered."""
    with loading():
        from prodige.reproduce import sanity as experiment

    figures = experiment.run(graphs, start.value, seed, jobs, verbose=0 if as_json else 1)
    if as_json:
        typer.echo(json.dumps({key: value for key, value in figures.items() if key != "outcomes"}))
        return
    paper = experiment.PAPER
    rows = [
        ("every needed edge recovered", f"{figures['recovered']}", f"{paper['recovered']} of 100"),
        ("all distances within 0.001", f"{figures['within_1e-3']}", f"{paper['within_1e-3']} of 100"),
        ("largest error", f"{figures['largest_error']:.2g}", ""),
        ("edges, on average", f"{figures['edges']:.1f} ({figures['edges_needed']:.1f} needed)", ""),
    ]
    title = f"{graphs} random graphs learned from their distances ({figures['seconds']} s)"
    print_table(["", "here", "paper"], rows, n_names=1, title=title)


@app.command()
@clean_errors()
def table1(
    dataset: list[Name] | None = DATASET,
    budget: list[Budget] | None = BUDGET,
    data_dir: Path | None = DATA_DIR,
    n_seeds: int = seeds(3),
    methods: str = typer.Option(
        "constant,star,pca,mds,residual,graph", help='Some of these, "poincare" and "l0", which take long; or "all".'
    ),
    output: Path | None = OUTPUT,
    jobs: int | None = options.JOBS,
    as_json: bool = options.AS_JSON,
) -> None:
    """Keep distances in 4 or 8 numbers per item: the graph beside vectors and the paper's figures."""
    with loading():
        from prodige import datasets
        from prodige.reproduce import table1 as experiment

    tables = Tables(experiment, choose_methods(methods, experiment.METHODS), n_seeds, jobs, output, as_json)
    tables.make_folder()
    data, missing = load(dataset, Name, lambda name: datasets.load(name, data_dir))
    show_notes(missing, as_json)
    results = [tables.make(one, size) for one in data for size in budget or list(Budget)]
    if as_json:
        typer.echo(json.dumps({"results": results, "notes": missing}))


@app.command()
@clean_errors()
def table2(
    budget: list[Budget] | None = BUDGET,
    data_dir: Path | None = DATA_DIR,
    n_seeds: int = seeds(1),
    methods: str = typer.Option(
        "all",
        help="Some of popularity, svd, als, ials, bpr, metric; random, bipartite, normal, product (graphs); item-knn, "
        "ease (uncompressed).",
    ),
    output: Path | None = OUTPUT,
    jobs: int | None = options.JOBS,
    as_json: bool = options.AS_JSON,
) -> None:
    """Recommend in 4 or 8 numbers per user and item: the graph beside vectors and the paper's figures."""
    with loading():
        from prodige import datasets
        from prodige.reproduce import table2 as experiment

    tables = Tables(experiment, choose_methods(methods, experiment.METHODS), n_seeds, jobs, output, as_json)
    tables.make_folder()
    data = datasets.load_interactions("pinterest", data_dir)
    results = [tables.make(data, size) for size in budget or list(Budget)]
    if as_json:
        typer.echo(json.dumps({"results": results}))


@app.command()
@clean_errors()
def table3(
    dataset: TextsName = typer.Option(TextsName.imdb, help="Reviews, or single sentences, split anew for each seed."),
    data_dir: Path | None = DATA_DIR,
    n_seeds: int = seeds(3),
    methods: str = typer.Option(
        "all",
        help="Some of tfidf, hashed, ratios; vectors-100, vectors-18, glove-100, glove-18, distilled-18-8bit, "
        "distilled-8-8bit, distilled-4-8bit, distilled-6-5bit (vectors); graph; ngrams-20kB, ngrams-40kB, "
        "ngrams-50kB, ngrams-150kB.",
    ),
    again: bool = AGAIN,
    output: Path | None = OUTPUT,
    jobs: int | None = options.JOBS,
    as_json: bool = options.AS_JSON,
) -> None:
    """Classify film reviews: the graph beside vectors and the paper's figures.

    With a folder to write to, every row is kept as soon as it is there; the next run goes on where this one ended.
    """
    with loading():
        from prodige import datasets
        from prodige.reproduce import table3 as experiment

    tables = Tables(experiment, choose_methods(methods, experiment.METHODS), n_seeds, jobs, output, as_json)
    tables.make_folder()
    result, _ = go_on(tables, datasets.load_texts(dataset.value, data_dir), again)
    if as_json:
        typer.echo(json.dumps({"results": [result]}))
    else:
        print_wide_table(
            experiment.HEADERS, experiment.cells(result), experiment.title(result), experiment.notes(result)
        )


@app.command()
@clean_errors()
def bits(
    dataset: list[FamilyName] | None = DATASET,
    budget: list[int] | None = bits_per("item", "16, 24, 32, 48, 64, 96 and 128"),
    data_dir: Path | None = DATA_DIR,
    n_seeds: int = seeds(1),
    methods: str = typer.Option(
        "all",
        help='"ours" (product, free, graph), "peers", or some of them: residual, vivaldi, mds, poincare; pq, opq, rq, '
        "lsq, each also with -energy, and all of these with -codes: codebooks do not count.",
    ),
    again: bool = AGAIN,
    output: Path | None = OUTPUT,
    jobs: int | None = options.JOBS,
    as_json: bool = options.AS_JSON,
) -> None:
    """Keep distances in 16 to 128 bits per item: graphs beside the strongest vectors and codes.

    With a folder to write to, every row is kept as soon as it is there; the next run goes on where this one ended.
    """
    with loading():
        from prodige.reproduce import bits as experiment
        from prodige.reproduce import families

    groups = {"ours": ",".join(experiment.OURS), "peers": ",".join(experiment.PEERS)}
    chosen = choose_methods(groups.get(methods, methods), tuple(experiment.METHODS))
    tables = Tables(experiment, chosen, n_seeds, jobs, output, as_json)
    make_all_by_bits(tables, dataset, FamilyName, lambda name: families.load(name, data_dir), budget, again)


@app.command()
@clean_errors()
def recommendation_bits(
    dataset: list[InteractionsName] | None = DATASET,
    budget: list[int] | None = bits_per("user and item", "16, 32, 64, 128 and 256"),
    data_dir: Path | None = DATA_DIR,
    n_seeds: int = seeds(1),
    methods: str = typer.Option(
        "all",
        help="Some of product (the graph), ials, als, svd (rounded), ials-pq, als-pq (codes), popularity; without "
        "users: items (the graph), ease, item-knn (pruned).",
    ),
    again: bool = AGAIN,
    output: Path | None = OUTPUT,
    jobs: int | None = options.JOBS,
    as_json: bool = options.AS_JSON,
) -> None:
    """Recommend in 16 to 256 bits per user and item: the graph beside vectors, codes and pruned tables.

    With a folder to write to, every row is kept as soon as it is there; the next run goes on where this one ended.
    """
    with loading():
        from prodige import datasets
        from prodige.reproduce import recommendation_bits as experiment

    chosen = choose_methods(methods, tuple(experiment.METHODS))
    tables = Tables(experiment, chosen, n_seeds, jobs, output, as_json)
    make_all_by_bits(
        tables, dataset, InteractionsName, lambda name: datasets.load_interactions(name, data_dir), budget, again
    )


@app.command()
@clean_errors()
def figures(
    only: str = typer.Option(
        "all", help="Some of figure1, curves, degrees, distances, bits, separated by commas.", show_default=False
    ),
    data_dir: Path | None = DATA_DIR,
    digits: bool = options.flag("--digits", help="Take the digits of scikit-learn, and look for nothing else."),
    output: Path = typer.Option(
        Path("docs/figures"), "--output", "-o", metavar="FOLDER", help="Where to write the figures."
    ),
    n_seeds: int = typer.Option(5, "--seeds", min=1, help="Runs behind each learning curve."),
    items: int = typer.Option(1000, min=10, help="Items of the learning curves; more take longer."),
    tables: Path | None = typer.Option(
        None,
        metavar="FOLDER",
        help="Where results of table1 are, which the figure of bits is drawn from.",
        show_default=False,
    ),
    kind: Kind = typer.Option(Kind.png, "--format", help="Which files to write."),
    jobs: int | None = options.JOBS,
    as_json: bool = options.AS_JSON,
) -> None:
    """Draw the paper's figures (a complete graph thinned, learning curves, degrees) and what goes with them."""
    with loading():
        from prodige.graph.atomic import replacing
        from prodige.reproduce import figures as experiment

    chosen = choose_methods(only, experiment.NAMES, "--only")
    if "bits" in chosen and only != "all" and tables is None:
        raise typer.BadParameter("the figure of bits is drawn from results: name their folder", param_hint="'--tables'")
    output.mkdir(parents=True, exist_ok=True)
    data, notes = find_images(data_dir, digits)
    show_notes(notes, as_json)
    with status(as_json) as report:
        drawn, result = experiment.run(data, chosen, n_seeds, items, tables, jobs, report)
    paths = [output / f"{name}.{kind.value}" for name in drawn]
    for path, figure in zip(paths, drawn.values(), strict=True):
        with replacing(str(path)) as file:
            file.write(experiment.render(figure, kind.value))
    write(experiment, output / "figures", result | {"format": kind.value})
    if as_json:
        typer.echo(json.dumps(result))
    else:
        for path in paths:
            typer.echo(printable(str(path)))


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
class Tables:
    """How tables are made: one is shown and written as soon as it is there."""

    experiment: ModuleType
    methods: list[str]
    n_seeds: int
    n_jobs: int | None
    output: Path | None
    as_json: bool

    def make_folder(self) -> None:
        """Make the folder for tables before anything is fitted: what cannot be written is known at once."""
        if self.output is not None:
            self.output.mkdir(parents=True, exist_ok=True)

    def make(self, data: Dataset | Interactions, *budget: Budget) -> dict[str, Any]:
        """Make one table, of a budget where there are several."""
        from prodige.reproduce.tables import Plan

        # The status is cleared before the table is printed: they do not go well together on one terminal.
        with status(self.as_json) as report:
            plan = Plan(self.methods, self.n_seeds, self.n_jobs, report)
            result: dict[str, Any] = self.experiment.run(data, *(int(size.value) for size in budget), plan)
        if self.output is not None:
            name = self.experiment.__name__.rpartition(".")[2]
            write(self.experiment, self.output / "-".join([name, data.name, *budget]), result)
        if not self.as_json:
            title, notes = self.experiment.title(result), self.experiment.notes(result)
            print_wide_table(self.experiment.HEADERS, self.experiment.cells(result), title, notes)
        return result


@contextmanager
def status(silent: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that says what is going on, in a line on stderr that does not stay."""
    if silent:
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as line:
        yield line.update


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


def go_on(
    tables: Tables, data: Family | Interactions | LabelledTexts, again: bool, *budgets: list[int]
) -> tuple[dict[str, Any], Path | None]:
    """Make the rows that a file does not have yet, and write each at once; return all, and where they are."""
    from prodige.reproduce.tables import Plan

    experiment = tables.experiment
    name = experiment.__name__.rpartition(".")[2].replace("_", "-")
    path = None if tables.output is None else tables.output / f"{name}-{data.name}"
    known = None if path is None else experiment.read(Path(f"{path}.json"))

    def keep(result: dict[str, Any]) -> None:
        if path is not None:
            write(experiment, path, result)

    with status(tables.as_json) as report:
        plan = Plan(tables.methods, tables.n_seeds, tables.n_jobs, report)
        result: dict[str, Any] = experiment.run(data, *budgets, plan, known, keep, again)
    keep(result)
    return result, path


def make_all_by_bits(
    tables: Tables,
    names: Sequence[Any] | None,
    every: type[StrEnum],
    read: Callable[[str], Family | Interactions],
    budgets: list[int] | None,
    again: bool,
) -> None:
    """Make the tables of all data sets that are asked for, in the budgets that are, or the usual ones."""
    tables.make_folder()
    data, missing = load(names, every, read)
    show_notes(missing, tables.as_json)
    chosen = sorted(set(budgets or tables.experiment.BUDGETS))
    results = [make_by_bits(tables, one, chosen, again) for one in data]
    if tables.as_json:
        typer.echo(json.dumps({"results": results, "notes": missing}))


def make_by_bits(tables: Tables, data: Family | Interactions, budgets: list[int], again: bool) -> dict[str, Any]:
    """Make the tables of one data set, where a file has some rows already the others."""
    from prodige.graph.atomic import replacing
    from prodige.reproduce.figures import render

    result, path = go_on(tables, data, again, budgets)
    experiment = tables.experiment
    if path is not None and any(row["figures"] for row in result["rows"]):
        with replacing(f"{path}.png") as file:
            file.write(render(experiment.figure(result), "png"))
    if not tables.as_json:
        headers, notes = experiment.headers(result), experiment.notes(result)
        print_wide_table(headers, experiment.cells(result), experiment.title(result), notes)
    return result


def load(
    names: Sequence[Any] | None, every: type[StrEnum], read: Callable[[str], Data]
) -> tuple[list[Data], list[str]]:
    """Load data sets before anything is fitted; return also which ones could not be had and why.

    One that is asked for by name must be there. Otherwise one of them is enough: CelebA is not for everybody.
    """
    found: list[Data] = []
    missing: list[str] = []
    for name in names or list(every):
        try:
            found.append(read(name.value))
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
