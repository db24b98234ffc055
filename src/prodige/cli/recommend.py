"""``prodige recommend``: pairs of users and items become a graph, which is asked what users may like.

A saved graph can be asked again without the pairs. It does not know them, so what a user has met is then left out only
if the pairs are named.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prodige.cli.compress import check_output, show_notes
from prodige.cli.errors import clean_errors, printable
from prodige.cli.options import JOBS, check_positive
from prodige.interrupts import loading

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from prodige.cli.pairs import Pairs
    from prodige.recommendation.recommender import GraphRecommender

SAVED = ".prodige"


class Edges(StrEnum):
    """Which edges may exist, as in :class:`prodige.recommendation.recommender.GraphRecommender`."""

    hubs = "hubs"
    normal = "normal"
    bipartite = "bipartite"
    random = "random"


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(recommend)


@clean_errors()
def recommend(
    source: Path = typer.Argument(
        ...,
        metavar="SOURCE",
        help="Pairs of users and items, .csv, .tsv or .parquet; or a .prodige file saved by this command.",
        show_default=False,
    ),
    user: list[str] | None = typer.Option(
        None, "--user", "-u", help="Whom to recommend to. May be given several times.", show_default=False
    ),
    n: int = typer.Option(10, "-n", min=1, help="Items for each user; fewer where fewer are left."),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="File to save the fitted graph in.", show_default=False
    ),
    interacted: Path | None = typer.Option(
        None, help="Pairs whose items are left out, if SOURCE is a saved graph.", show_default=False
    ),
    numbers: float = typer.Option(
        4.0,
        "--numbers-per-item",
        help="Size: one number per vertex and two per edge, divided by users and items.",
        callback=check_positive,
    ),
    edges: Edges = typer.Option(Edges.hubs, help="Which edges may exist; all but hubs are ways of the paper."),
    user_column: str | None = typer.Option(
        None,
        help="Its name, or number from 1; known by its name, such as user or userId, or the first.",
        show_default=False,
    ),
    item_column: str | None = typer.Option(
        None,
        help="Its name, or number from 1; known by its name, such as item or movieId, or the second.",
        show_default=False,
    ),
    weight_column: str | None = typer.Option(
        None,
        "--weight-column",
        "--count-column",
        help='How often a user met an item, 0 for never; "count" or "weight" if there is one.',
        show_default=False,
    ),
    header: bool | None = typer.Option(
        None, "--header/--no-header", help="Whether line 1 has names of columns; guessed when left out."
    ),
    max_time: float | None = typer.Option(
        None, min=0.1, help="Seconds for the fit.", show_default=False, callback=check_positive
    ),
    seed: int = typer.Option(
        0, min=0, max=2**32 - 1, help="A seed gives the same graph on the same machine, with any number of threads."
    ),
    jobs: int | None = JOBS,
    force: bool = typer.Option(False, "--force", "-f", help="Replace an existing file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and no notes: only what was asked for."),
) -> None:
    """Recommend items to users, from pairs of users and items or from a saved graph."""
    is_saved = source.suffix.lower() == SAVED
    check_combination(is_saved, bool(user), output, interacted)

    with loading():
        from prodige.cli.pairs import Columns, read_pairs
        from prodige.recommendation.recommender import GraphRecommender  # noqa: F401

    silent = quiet or as_json
    columns = Columns(user_column, item_column, weight_column)
    figures: dict[str, Any] = {"input": str(source)}
    if is_saved:
        model, notes, interrupted = load(source), [], False
        users, items = model.user_labels_ or [], model.item_labels_ or []
        pairs = None if interacted is None else read_pairs(interacted, columns, header)
        if pairs is None:
            notes.append("what users have met is not in a saved graph, so it is not left out; --met names the pairs")
    else:
        if output is not None:
            check_output(source, output, force)
        pairs = read_pairs(source, columns, header)
        check_users(user or [], pairs.users)  # before the fit, which takes long
        show_notes(pairs.notes, silent)
        began = time.perf_counter()
        users, items = pairs.users, pairs.items
        kept = output is not None  # names are for the file, which may have no room for them
        model, notes, interrupted = fit(pairs, kept, numbers, edges, max_time, seed, jobs, shown=not silent)
        figures["seconds"] = round(time.perf_counter() - began, 3)
        if output is not None:
            model.save(output)
            figures |= {"output": str(output), "bytes": os.path.getsize(output)}
    show_notes(notes, silent)

    figures |= {
        "n_users": model.n_users_,
        "n_items": model.n_items_,
        "n_edges": model.graph_.n_edges,
        "numbers_per_item": model.numbers_per_item_,
        "interrupted": interrupted,
        "notes": [*(pairs.notes if pairs is not None and not is_saved else []), *notes],
        "recommendations": ask(model, user or [], users, items, pairs, n),
    }
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        show(figures, silent)
    if interrupted:
        where = "" if output is None else f" is in {printable(str(output))}"
        typer.echo(f"Interrupted: the best graph so far{where or ' was asked'}", err=True)
        raise typer.Exit(130)


# -- before the fit --------------------------------------------------------------------------------------------------


def check_combination(is_saved: bool, has_user: bool, output: Path | None, interacted: Path | None) -> None:
    """Refuse options that contradict each other, and a command that asks for nothing."""
    if is_saved and output is not None:
        raise typer.BadParameter(
            "a saved graph is asked, not fitted: there is nothing to save", param_hint="'--output'"
        )
    if not is_saved and interacted is not None:
        raise typer.BadParameter("what users have met is in SOURCE already", param_hint="'--met'")
    if not has_user and (is_saved or output is None):
        raise typer.BadParameter(
            "name a user to recommend to" + ("" if is_saved else ", or a file to save the graph in with --output"),
            param_hint="'--user'",
        )


def check_users(target: list[str], users: list[str]) -> list[int]:
    """Return the numbers of users, or leave with a usage error if one is not known.

    Examples
    --------
    >>> from prodige.cli.recommend import check_users
    >>> check_users(["bob"], ["ada", "bob"])
    [1]
    """
    places = {label: place for place, label in enumerate(users)}
    for label in target:
        if label not in places:
            some = ", ".join(repr(printable(one)) for one in users[:3])
            raise typer.BadParameter(
                f"{printable(label)!r} is not a user: there are {len(users):,}, such as {some}", param_hint="'--user'"
            )
    return [places[label] for label in target]


# -- the graph -------------------------------------------------------------------------------------------------------


def fit(
    pairs: Pairs,
    named: bool,
    numbers: float,
    edges: Edges,
    max_time: float | None,
    seed: int,
    jobs: int | None,
    shown: bool,
) -> tuple[GraphRecommender, list[str], bool]:
    """Return a fitted graph, with names if wanted, what was warned about, and whether it was interrupted."""
    from sklearn.exceptions import ConvergenceWarning

    from prodige.cli.progress import FitProgress
    from prodige.recommendation.recommender import GraphRecommender

    progress = FitProgress(shown=shown, measure="loss")
    model = GraphRecommender(
        edges=edges.value,
        numbers_per_item=numbers,
        random_state=seed,
        n_jobs=jobs,
        max_time=max_time,
        callbacks=[progress],
    )
    try:
        with progress, warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("default", category=UserWarning)
            warnings.filterwarnings("ignore", category=ConvergenceWarning)  # of the interrupt, which is reported here
            labels = {"user_labels": pairs.users, "item_labels": pairs.items} if named else {}
            model.fit(pairs.user_items, **labels)
    except KeyboardInterrupt:
        typer.echo("Interrupted before there was a graph: nothing was written", err=True)
        raise
    return model, list(dict.fromkeys(str(warning.message) for warning in caught)), model.stopped_ == "interrupt"


def load(path: Path) -> GraphRecommender:
    """Return a saved graph with labels."""
    from prodige.recommendation.recommender import GraphRecommender

    model = GraphRecommender.load(path)
    if model.user_labels_ is None or model.item_labels_ is None:
        raise ValueError(f"{path}: it has no names of users and items; save it with 'prodige recommend PAIRS -o FILE'")
    return model


# -- asking ----------------------------------------------------------------------------------------------------------


def ask(
    model: GraphRecommender, target: list[str], users: list[str], items: list[str], pairs: Pairs | None, n: int
) -> list[dict[str, Any]]:
    """Return what to recommend to each user, best first."""
    if not target:
        return []
    rows = check_users(target, users)
    known = None if pairs is None else rows_of(target, pairs, items)
    ids, scores = model.recommend(rows, known, N=min(n, model.n_items_), filter_already_liked_items=pairs is not None)
    return [
        {
            "user": label,
            "items": [
                {"item": items[item], "score": score}
                for item, score in zip(row.tolist(), values.tolist(), strict=True)
                if item >= 0
            ],
        }
        for label, row, values in zip(target, ids, scores, strict=True)
    ]


def rows_of(users: list[str], pairs: Pairs, items: list[str]) -> csr_array:
    """Return what users have met, with columns in the order of these items; others do not matter."""
    from scipy.sparse import coo_array, csr_array

    rows = {label: row for row, label in enumerate(pairs.users)}
    columns = {label: column for column, label in enumerate(items)}
    found: list[tuple[int, int]] = []
    for place, label in enumerate(users):
        if label in rows:
            row = rows[label]
            interacted = pairs.user_items.indices[pairs.user_items.indptr[row] : pairs.user_items.indptr[row + 1]]
            found += [(place, columns[name]) for name in (pairs.items[item] for item in interacted) if name in columns]
    coordinates = tuple(zip(*found, strict=True)) if found else ([], [])
    return csr_array(coo_array(([1.0] * len(found), coordinates), shape=(len(users), len(items))))


def show(figures: dict[str, Any], silent: bool) -> None:
    """Print the figures of a fit, and what was asked for, as tables."""
    from prodige.cli.graphs import print_table

    if "seconds" in figures and not silent:
        rows = {
            "graph": f"{figures['n_users']:,} users, {figures['n_items']:,} items, {figures['n_edges']:,} edges",
            "numbers per user and item": f"{figures['numbers_per_item']:.4g}",
            "time": f"{figures['seconds']:.1f} s",
        }
        if "output" in figures:
            rows["file"] = f"{figures['output']}: {figures['bytes']:,} bytes"
        print_table([], list(rows.items()))
    answers = figures["recommendations"]
    if len(answers) == 1:
        print_table(["item", "score"], [(one["item"], f"{one['score']:.4g}") for one in answers[0]["items"]])
    elif answers:
        lines = [(answer["user"], one["item"], f"{one['score']:.4g}") for answer in answers for one in answer["items"]]
        print_table(["user", "item", "score"], lines)
