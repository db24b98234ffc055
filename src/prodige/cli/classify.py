"""``prodige classify``: texts with labels become a model, which is asked for the labels of other texts."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prodige.cli.compress import check_output, show_notes
from prodige.cli.errors import clean_errors, printable
from prodige.cli.labelled import LABEL, TEXT
from prodige.cli.options import JOBS, check_positive
from prodige.interrupts import loading

if TYPE_CHECKING:
    from prodige.cli.labelled import Labelled
    from prodige.text.classifier import GraphTextClassifier

SAVED = ".prodige"


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(classify)


@clean_errors()
def classify(
    source: Path = typer.Argument(
        ...,
        metavar="SOURCE",
        help="Texts with labels, .csv, .tsv or .jsonl; or a .prodige file saved by this command.",
        show_default=False,
    ),
    texts: Path | None = typer.Argument(
        None,
        metavar="[TEXTS]",
        help="Texts to label, one in each line; with a saved model, standard input when left out.",
        show_default=False,
    ),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="File to save the fitted model in.", show_default=False
    ),
    proba: bool = typer.Option(False, "--proba", help="Print the probability of each label as well."),
    text_column: str = typer.Option(TEXT, help="Column of the texts: its name, or number from 1."),
    label_column: str = typer.Option(LABEL, help="Column of the labels: its name, or number from 1."),
    header: bool | None = typer.Option(
        None, "--header/--no-header", help="Whether line 1 of a table has names; so if a column is given by its name."
    ),
    numbers: float = typer.Option(
        5.0,
        "--numbers-per-item",
        help="Size of the graph: one number per vertex and two per edge, for each word.",
        callback=check_positive,
    ),
    max_vocabulary: int = typer.Option(32_000, min=1, help="Words to know, the most frequent."),
    epochs: int = typer.Option(8, min=1, help="Passes over the texts, at most."),
    seed: int = typer.Option(
        0,
        min=0,
        max=2**32 - 1,
        help="The same seed gives the same model on the same machine, with any number of jobs.",
    ),
    jobs: int | None = JOBS,
    force: bool = typer.Option(False, "--force", "-f", help="Replace an existing file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object and nothing else."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and no notes: only what was asked for."),
) -> None:
    """Learn labels of texts, or label texts with a saved model."""
    is_saved = source.suffix.lower() == SAVED
    check_combination(is_saved, texts, output)

    with loading():
        from prodige.cli.labelled import read_labelled, read_lines
        from prodige.text.classifier import GraphTextClassifier  # noqa: F401

    silent = quiet or as_json
    figures: dict[str, Any] = {"input": str(source)}
    interrupted = False
    if is_saved:
        model = load(source, jobs)
        lines = read_lines(texts)
    else:
        if output is not None:
            check_output(source, output, force)
        data = read_labelled(source, text_column, label_column, header)
        lines = [] if texts is None else read_lines(texts)  # before the fit, which takes long
        began = time.perf_counter()
        model, notes, interrupted = fit(data, numbers, max_vocabulary, epochs, seed, jobs, shown=not silent)
        figures |= describe(model, data, time.perf_counter() - began) | {"interrupted": interrupted, "notes": notes}
        if output is not None:
            model.save(output)
            figures |= {"output": str(output), "bytes": os.path.getsize(output)}
        show_notes(notes, silent)
    figures["classes"] = model.classes_.tolist()
    answers = ask(model, lines, proba)
    if as_json:
        typer.echo(json.dumps({**figures, "predictions": answers}))
    else:
        if not is_saved and not silent:
            show(figures)
        for answer in answers:
            typer.echo(as_line(answer))
    if interrupted:
        where = "was asked" if output is None else f"is in {printable(str(output))}"
        typer.echo(f"Interrupted: the best model so far {where}", err=True)
        raise typer.Exit(130)


def check_combination(is_saved: bool, texts: Path | None, output: Path | None) -> None:
    """Refuse options that contradict each other, and a command that asks for nothing."""
    if is_saved and output is not None:
        raise typer.BadParameter(
            "a saved model is asked, not fitted: there is nothing to save", param_hint="'--output'"
        )
    if not is_saved and output is None and texts is None:
        raise typer.BadParameter("name a file to save the model in, or texts to label with it", param_hint="'--output'")


# -- the model -------------------------------------------------------------------------------------------------------


def fit(
    data: Labelled, numbers: float, max_vocabulary: int, epochs: int, seed: int, jobs: int | None, shown: bool
) -> tuple[GraphTextClassifier, list[str], bool]:
    """Return a fitted model, what was warned about, and whether it was interrupted."""
    from sklearn.exceptions import ConvergenceWarning

    from prodige.text.classifier import GraphTextClassifier

    model = GraphTextClassifier(
        numbers_per_item=numbers,
        max_vocabulary=max_vocabulary,
        n_epochs=epochs,
        random_state=seed,
        n_jobs=jobs,
        verbose=int(shown and sys.stderr.isatty()),
    )
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("default", category=UserWarning)
            warnings.filterwarnings("ignore", category=ConvergenceWarning)  # of the interrupt, which is reported here
            model.fit(data.texts, data.labels)
    except KeyboardInterrupt:
        typer.echo("Interrupted before anything was learned: nothing was written", err=True)
        raise
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    return model, notes, model.stopped_ == "interrupt"


def load(path: Path, jobs: int | None) -> GraphTextClassifier:
    """Return a saved model."""
    from prodige.text.classifier import GraphTextClassifier

    return GraphTextClassifier.load(path, jobs)


def describe(model: GraphTextClassifier, data: Labelled, seconds: float) -> dict[str, Any]:
    """Return the figures of a fit."""
    from prodige.text.vocabulary import SPECIAL

    return {
        "n_texts": len(data.texts),
        "n_words": len(model.vocabulary_) - len(SPECIAL),
        "numbers_per_item": model.numbers_per_item_,
        "validation_accuracy": max(
            (entry["validation_accuracy"] for entry in model.history_ if entry["stage"] == "graph"), default=None
        ),
        "seconds": round(seconds, 3),
    }


# -- asking ----------------------------------------------------------------------------------------------------------


def ask(model: GraphTextClassifier, lines: list[str], proba: bool) -> list[dict[str, Any]]:
    """Return the label of each text, and the probabilities of all labels if they are asked for."""
    if not lines:
        return []
    probabilities = model.predict_proba(lines)
    labels = model.classes_.tolist()
    answers: list[dict[str, Any]] = []
    for row, best in zip(probabilities.tolist(), probabilities.argmax(axis=1).tolist(), strict=True):
        answer: dict[str, Any] = {"label": labels[best]}
        if proba:
            answer["probability"] = {str(label): round(share, 6) for label, share in zip(labels, row, strict=True)}
        answers.append(answer)
    return answers


def as_line(answer: dict[str, Any]) -> str:
    """Return an answer for a terminal or a pipe: the label, then each label with its probability, between tabs.

    Examples
    --------
    >>> from prodige.cli.classify import as_line
    >>> as_line({"label": "good", "probability": {"bad": 0.25, "good": 0.75}}).split()
    ['good', 'bad=0.2500', 'good=0.7500']
    """
    shares = answer.get("probability", {})
    return "\t".join(
        [printable(str(answer["label"])), *(f"{printable(label)}={share:.4f}" for label, share in shares.items())]
    )


def show(figures: dict[str, Any]) -> None:
    """Print the figures of a fit, on stderr where labels follow on stdout."""
    words = (
        f"{figures['n_texts']:,} texts, {figures['n_words']:,} words, {len(figures['classes'])} labels; "
        f"{figures['numbers_per_item']:.4g} numbers a word; {figures['seconds']:.1f} s"
    )
    if figures["validation_accuracy"] is not None:
        words += f"; {figures['validation_accuracy']:.1%} right in validation"
    if "output" in figures:
        words += f"; {figures['output']}: {figures['bytes']:,} bytes"
    typer.echo(printable(words), err=True)
