"""``prodige classify``: texts with labels become a model, which is asked for the labels of other texts."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors, printable
from prodige.cli.fitting import Fitted, fit, nothing_written
from prodige.cli.output import check_output, leave_interrupted, show_notes
from prodige.interrupts import loading

if TYPE_CHECKING:
    from prodige.cli.labelled import Labelled
    from prodige.text.classifier import GraphTextClassifier

SAVED = ".prodige"

# Options that change nothing where a saved model is asked.
OF_FITS = ("text_column", "label_column", "header", "numbers", "max_vocabulary", "epochs", "seed")


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(classify)


@clean_errors()
def classify(
    context: typer.Context,
    source: Path = typer.Argument(
        ...,
        metavar="SOURCE",
        help="Texts with labels, .csv, .tsv or .jsonl; or a .prodige file saved by this command.",
        show_default=False,
    ),
    texts: Path | None = typer.Argument(
        None,
        metavar="TEXTS",
        help="Texts to label, one on each line; with a saved model, standard input when left out.",
        show_default=False,
    ),
    output: Path | None = options.output("File to save the fitted model in."),
    proba: bool = options.flag("--proba", help="Print the probability of each label as well."),
    text_column: str = typer.Option("text", help="Column of the texts: its name, or number from 1."),
    label_column: str = typer.Option("label", help="Column of the labels: its name, or number from 1."),
    header: bool | None = options.header(
        "Whether line 1 of a table has names of columns; yes when left out, unless both columns are numbers."
    ),
    numbers: float = options.numbers_per_item(
        5.0, "Size: one number per vertex and two per edge, divided by the number of words."
    ),
    max_vocabulary: int = typer.Option(32_000, min=1, help="How many words to know: the most frequent ones."),
    epochs: int = typer.Option(8, min=1, help="Most passes over the texts."),
    seed: int = options.SEED,
    jobs: int | None = options.JOBS,
    force: bool = options.FORCE,
    as_json: bool = options.AS_JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Learn labels of texts, or label texts with a saved model."""
    task = Task(source, texts, output, silent=quiet or as_json)
    check_combination(task)
    if task.is_saved:
        options.refuse(context, OF_FITS, "a saved model is asked, not fitted: leave this option out")
    with loading():
        from prodige.cli.labelled import read_labelled, read_lines
        from prodige.text.classifier import GraphTextClassifier

    figures: dict[str, Any] = {"input": str(source), "interrupted": False}
    if task.is_saved:
        model = load(source, jobs)
        lines = read_lines(texts)
    else:
        if output is not None:
            check_output(source, output, force)
        data = read_labelled(source, text_column, label_column, header)
        lines = [] if texts is None else read_lines(texts)  # before the fit, which takes long
        model = GraphTextClassifier(
            numbers, max_vocabulary=max_vocabulary, n_epochs=epochs, random_state=seed, n_jobs=jobs
        )
        figures |= learn(task, model, data)
    figures |= {"classes": model.classes_.tolist(), "predictions": ask(model, lines, proba)}
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        show(figures, task.silent or task.is_saved)
    if figures["interrupted"]:
        leave_interrupted("the best model so far " + ("was asked" if output is None else f"is in {output}"))


@dataclass(frozen=True)
class Task:
    """What to read, what to label, what to write, and how much to say."""

    source: Path
    texts: Path | None
    output: Path | None
    silent: bool

    @property
    def is_saved(self) -> bool:
        """Whether a saved model is asked."""
        return self.source.suffix.lower() == SAVED


def check_combination(task: Task) -> None:
    """Refuse options that contradict each other, and a command that asks for nothing."""
    if task.is_saved and task.output is not None:
        raise typer.BadParameter(
            "a saved model is asked, not fitted: there is nothing to save", param_hint="'--output'"
        )
    if not task.is_saved and task.output is None and task.texts is None:
        raise typer.BadParameter("name a file to save the model in, or texts to label with it", param_hint="'--output'")


# -- the model -------------------------------------------------------------------------------------------------------


def learn(task: Task, model: GraphTextClassifier, data: Labelled) -> dict[str, Any]:
    """Fit a model, and save it if there is a place for it; return its figures."""
    model.set_params(verbose=int(not task.silent and sys.stderr.isatty()))
    with nothing_written("model"):
        fitted = fit(model, data.texts, data.labels)
    figures = describe(model, data, fitted)
    if task.output is not None:
        model.save(task.output)
        figures |= {"output": str(task.output), "bytes": os.path.getsize(task.output)}
    show_notes(fitted.notes, task.silent)
    return figures


def load(path: Path, jobs: int | None) -> GraphTextClassifier:
    """Return a saved model."""
    from prodige.text.classifier import GraphTextClassifier

    return GraphTextClassifier.load(path, jobs)


def describe(model: GraphTextClassifier, data: Labelled, fitted: Fitted) -> dict[str, Any]:
    """Return the figures of a fit."""
    from prodige.text.vocabulary import SPECIAL

    return {
        "n_texts": len(data.texts),
        "n_words": len(model.vocabulary_) - len(SPECIAL),
        "numbers_per_item": model.numbers_per_item_,
        "validation_accuracy": max(
            (record.accuracy or 0.0 for record in model.history_ if record.stage == "graph"), default=None
        ),
        "seconds": fitted.seconds,
        "interrupted": fitted.interrupted,
        "notes": fitted.notes,
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


def show(figures: dict[str, Any], silent: bool) -> None:
    """Print labels, after the figures of a fit on stderr."""
    if not silent:
        typer.echo(printable(in_words(figures)), err=True)
    for answer in figures["predictions"]:
        typer.echo(as_line(answer))


def in_words(figures: dict[str, Any]) -> str:
    """Return the figures of a fit as one line."""
    words = (
        f"{figures['n_texts']:,} texts, {figures['n_words']:,} words, {len(figures['classes'])} labels; "
        f"{figures['numbers_per_item']:.4g} numbers a word; {figures['seconds']:.1f} s"
    )
    if figures["validation_accuracy"] is not None:
        words += f"; {figures['validation_accuracy']:.1%} right in validation"
    if "output" in figures:
        words += f"; {figures['output']}: {figures['bytes']:,} bytes"
    return words
