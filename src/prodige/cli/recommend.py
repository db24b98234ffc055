"""``prodige recommend``: pairs of users and items become a graph, which is asked what users may like.

A saved graph can be asked again without the pairs: it keeps them, and what a user has interacted with is never
recommended again. Where it was saved without, they can be named.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors, printable
from prodige.cli.fitting import fit, nothing_written
from prodige.cli.output import check_output, leave_interrupted, print_facts, print_table, show_notes
from prodige.interrupts import loading

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from prodige.cli.evaluation import HeldOut
    from prodige.cli.pairs import Pairs
    from prodige.recommendation.recommender import GraphRecommender

SAVED = ".prodige"

# Options that change nothing where a saved graph is asked.
OF_FITS = ("numbers", "bits", "items_only", "edges", "max_time", "seed")


class Edges(StrEnum):
    """Which edges may exist, as in :class:`prodige.recommendation.recommender.GraphRecommender`."""

    product = "product"
    normal = "normal"
    bipartite = "bipartite"
    random = "random"


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(recommend)


@clean_errors()
def recommend(
    context: typer.Context,
    source: Path = typer.Argument(
        ...,
        metavar="SOURCE",
        help="Pairs of users and items, .csv, .tsv or .parquet; or a .prodige file saved by this command.",
        show_default=False,
    ),
    user: list[str] | None = typer.Option(
        None, "--user", "-u", help="Whom to recommend to. May be given several times.", show_default=False
    ),
    k: int = options.count("How many items for each user; fewer where fewer are left."),
    output: Path | None = options.output("File to save the fitted graph in."),
    interacted: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="Further pairs whose items are left out, if SOURCE is a saved graph.",
        show_default=False,
    ),
    numbers: float | None = options.numbers_per_item(
        None, "Size in numbers for each user and item, as the paper counts; 64 bits for each when left out."
    ),
    bits: float | None = typer.Option(
        None,
        "--bits-per-item",
        help="Size in bits of the graph's file for each user and item.",
        show_default=False,
        callback=options.check_positive,
    ),
    items_only: bool = options.flag("--items-only", help="Keep no users: compute them from their pairs when asked."),
    edges: Edges = typer.Option(Edges.product, help="Which edges may exist; all but product are of the paper."),
    evaluate: bool = options.flag(
        "--evaluate", help="Hold out one item of each user, or take those of --test, and say how well they are found."
    ),
    test: Path | None = typer.Option(
        None, metavar="FILE", help="Pairs to look for with --evaluate; the graph has not seen them.", show_default=False
    ),
    user_column: str | None = typer.Option(
        None,
        help="Its name, or number from 1; found by its name, such as user or userId, or the first.",
        show_default=False,
    ),
    item_column: str | None = typer.Option(
        None,
        help="Its name, or number from 1; found by its name, such as item or movieId, or the second.",
        show_default=False,
    ),
    weight_column: str | None = typer.Option(
        None,
        help='How often a user interacted with an item, 0 for never; "count" or "weight" if there is one.',
        show_default=False,
    ),
    header: bool | None = options.header("Whether line 1 has names of columns; guessed when left out."),
    max_time: float | None = options.MAX_TIME,
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
    force: bool = options.FORCE,
    as_json: bool = options.AS_JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Recommend items to users, from pairs of users and items or from a saved graph."""
    task = Task(source, user or [], output, interacted, evaluate, test, seed, silent=quiet or as_json)
    check_combination(task)
    if numbers is not None and bits is not None:
        raise typer.BadParameter("give --numbers-per-item or --bits-per-item, not both", param_hint="'--bits-per-item'")
    if task.is_saved:
        options.refuse(context, OF_FITS, "a saved graph is asked, not fitted: leave this option out")
    with loading():
        from prodige.cli.pairs import Columns, read_pairs
        from prodige.recommendation.recommender import GraphRecommender

    columns = Columns(user_column, item_column, weight_column)
    wanted = None if test is None else read_pairs(test, columns, header)
    if task.is_saved:
        known = load(task, None if interacted is None else read_pairs(interacted, columns, header), jobs)
    else:
        if output is not None:
            check_output(source, output, force)
        model = GraphRecommender(
            bits_per_item=bits,
            numbers_per_item=numbers,
            edges=edges.value,
            store_users=not items_only,
            max_time=max_time,
            random_state=seed,
            n_jobs=jobs,
        )
        known = learn(task, model, read_pairs(source, columns, header))
    figures = {"input": str(source), **known.figures, "recommendations": ask(known, task.users, k)}
    if evaluate:
        figures["evaluation"] = judge(known, wanted)
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        show(figures, task.silent)
    if known.figures["interrupted"]:
        leave_interrupted("the best graph so far " + ("was asked" if output is None else f"is in {output}"))


@dataclass(frozen=True)
class Task:
    """What to read, whom to recommend to, what to write, and how much to say."""

    source: Path
    users: list[str]
    output: Path | None
    interacted: Path | None
    evaluate: bool
    test: Path | None
    seed: int
    silent: bool

    @property
    def holds_out(self) -> bool:
        """Whether items are held out of the fit."""
        return self.evaluate and self.test is None

    @property
    def is_saved(self) -> bool:
        """Whether a saved graph is asked."""
        return self.source.suffix.lower() == SAVED


class Known(NamedTuple):
    """A graph that can be asked, names of users and items, their pairs, its figures, and what was held out."""

    model: GraphRecommender
    users: list[str]
    items: list[str]
    pairs: Pairs | None
    figures: dict[str, Any]
    held: HeldOut | None = None


# -- before the fit --------------------------------------------------------------------------------------------------


def check_combination(task: Task) -> None:
    """Refuse options that contradict each other, and a command that asks for nothing."""
    if task.is_saved and task.output is not None:
        raise typer.BadParameter(
            "a saved graph is asked, not fitted: there is nothing to save", param_hint="'--output'"
        )
    if not task.is_saved and task.interacted is not None:
        raise typer.BadParameter("SOURCE has the pairs of users and items already", param_hint="'--interacted'")
    if task.test is not None and not task.evaluate:
        raise typer.BadParameter("pairs to look for go with --evaluate", param_hint="'--test'")
    if task.holds_out and task.is_saved:
        raise typer.BadParameter(
            "a saved graph has seen all items: name new pairs with --test", param_hint="'--evaluate'"
        )
    if task.holds_out and task.output is not None:
        raise typer.BadParameter(
            "a graph fitted without the held-out items is not to be saved: evaluate without --output, or with --test",
            param_hint="'--evaluate'",
        )
    if not task.users and not task.evaluate and (task.is_saved or task.output is None):
        raise typer.BadParameter(
            "name a user to recommend to" + ("" if task.is_saved else ", or a file to save the graph in with --output"),
            param_hint="'--user'",
        )


def check_users(asked: list[str], users: list[str]) -> list[int]:
    """Return the numbers of users, or leave with a usage error if one is not known.

    Examples
    --------
    >>> from prodige.cli.recommend import check_users
    >>> check_users(["bob"], ["ada", "bob"])
    [1]
    """
    places = {label: place for place, label in enumerate(users)}
    for label in asked:
        if label not in places:
            some = ", ".join(repr(printable(one)) for one in users[:3])
            raise typer.BadParameter(
                f"{printable(label)!r} is not a user: there are {len(users):,}, such as {some}", param_hint="'--user'"
            )
    return [places[label] for label in asked]


# -- the graph -------------------------------------------------------------------------------------------------------


def learn(task: Task, model: GraphRecommender, pairs: Pairs) -> Known:
    """Fit a graph to pairs, and save it if there is a place for it."""
    from prodige.cli.progress import FitProgress

    check_users(task.users, pairs.users)  # before the fit, which takes long
    show_notes(pairs.notes, task.silent)
    held = None
    if task.holds_out:
        from prodige.cli.evaluation import hold_out

        pairs, held = hold_out(pairs, task.seed)
    progress = FitProgress(shown=not task.silent, measure="loss")
    model.set_params(callbacks=[progress])
    # Names are for the file, which may have no room for them.
    labels = {} if task.output is None else {"user_labels": pairs.users, "item_labels": pairs.items}
    with nothing_written("graph"), progress:
        fitted = fit(model, pairs.user_items, **labels)
    figures: dict[str, Any] = {"seconds": fitted.seconds}
    if task.output is not None:
        model.save(task.output)
        figures |= {"output": str(task.output), "bytes": os.path.getsize(task.output)}
    show_notes(fitted.notes, task.silent)
    figures |= describe(model, pairs.notes + fitted.notes, fitted.interrupted)
    return Known(model, pairs.users, pairs.items, pairs, figures, held)


def load(task: Task, pairs: Pairs | None, jobs: int | None) -> Known:
    """Return a saved graph with labels."""
    from prodige.recommendation.recommender import GraphRecommender

    model = GraphRecommender.load(task.source)
    model.set_params(n_jobs=jobs)
    users, items = model.user_labels_, model.item_labels_
    if users is None or items is None:
        raise ValueError(
            f"{task.source}: it has no names of users and items; save it with 'prodige recommend PAIRS -o FILE'"
        )
    notes = []
    if pairs is None and model.interactions_ is None:
        notes.append(
            "this graph was saved without the pairs, so items that users interacted with are not left out; "
            "name the pairs with --interacted"
        )
    show_notes(notes, task.silent)
    return Known(model, users, items, pairs, describe(model, notes, interrupted=False))


def describe(model: GraphRecommender, notes: list[str], interrupted: bool) -> dict[str, Any]:
    """Return the figures of a graph; a product has factors in place of edges."""
    from prodige.graph.graph import Graph

    return {
        "n_users": model.n_users_,
        "n_items": model.n_items_,
        "n_edges": model.graph_.n_edges if isinstance(model.graph_, Graph) else None,
        "numbers_per_item": model.numbers_per_item_,
        "bits_per_item": model.bits_per_item_,
        "interrupted": interrupted,
        "notes": notes,
    }


# -- asking ----------------------------------------------------------------------------------------------------------


def ask(known: Known, asked: list[str], k: int) -> list[dict[str, Any]]:
    """Return what to recommend to each user, best first."""
    if not asked:
        return []
    model, users, items, pairs = known[:4]
    rows = check_users(asked, users)
    interactions = None if pairs is None else rows_of(asked, pairs, items)
    if interactions is not None and model.interactions_ is not None:
        interactions = interactions + model.interactions_[rows]
    is_known = pairs is not None or model.interactions_ is not None
    ids, scores = model.recommend(rows, interactions, N=min(k, model.n_items_), filter_already_liked_items=is_known)
    return [
        {
            "user": label,
            "items": [
                {"item": items[item], "score": score}
                for item, score in zip(row.tolist(), values.tolist(), strict=True)
                if item >= 0
            ],
        }
        for label, row, values in zip(asked, ids, scores, strict=True)
    ]


def judge(known: Known, test: Pairs | None) -> dict[str, Any]:
    """Return how well held-out items, or those of a file, are found."""
    from prodige.cli.evaluation import evaluate, of_file

    if known.held is not None:
        return evaluate(known.model, known.held)
    assert test is not None
    model, users, items, pairs = known[:4]
    seen = model.interactions_ if pairs is None else rows_of(users, pairs, items)
    if seen is None:
        raise ValueError("this graph was saved without the pairs that it was fitted to; name them with --interacted")
    return evaluate(model, of_file(model, users, items, seen, test))


def rows_of(users: list[str], pairs: Pairs, items: list[str]) -> csr_array:
    """Return what users interacted with, with columns in the order of these items; others do not matter."""
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
    if "seconds" in figures and not silent:
        edges = "" if figures["n_edges"] is None else f", {figures['n_edges']:,} edges"
        rows = {
            "graph": f"{figures['n_users']:,} users, {figures['n_items']:,} items{edges}",
            "numbers per user and item": f"{figures['numbers_per_item']:.4g}",
            "bits per user and item": f"{figures['bits_per_item']:.4g}",
            "time": f"{figures['seconds']:.1f} s",
        }
        if "output" in figures:
            rows["file"] = f"{figures['output']}: {figures['bytes']:,} bytes"
        print_facts(rows)
    if "evaluation" in figures:
        from prodige.cli.evaluation import lines_of

        found = figures["evaluation"]
        title = f"{found['n_held_out']:,} held-out items of {found['n_users']:,} users"
        print_table(["", "mean", "95 % interval"], lines_of(found), n_names=1, title=title)
    answers = figures["recommendations"]
    if len(answers) == 1:
        print_table(["item", "score"], [(one["item"], f"{one['score']:.4g}") for one in answers[0]["items"]])
    elif answers:
        lines = [(answer["user"], one["item"], f"{one['score']:.4g}") for answer in answers for one in answer["items"]]
        print_table(["user", "item", "score"], lines)
