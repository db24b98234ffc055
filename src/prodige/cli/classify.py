"""``prodige classify``: texts with labels become a model, which labels other texts or is judged by their labels."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors, printable
from prodige.cli.fitting import Fitted, fit, nothing_written
from prodige.cli.output import check_output, leave_interrupted, print_table, show_notes
from prodige.interrupts import loading

if TYPE_CHECKING:
    from prodige.cli.labelled import Labelled
    from prodige.text.classifier import GraphTextClassifier

SAVED = ".prodige"

# Options that change nothing where a saved model is asked; and those of tables, where it reads none.
OF_FITS = ("architecture", "max_bytes", "max_time", "seed")
OF_TABLES = ("text_column", "label_column", "header")


class Architecture(StrEnum):
    """What a model is made of."""

    ngrams = "ngrams"
    paper = "paper"


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
    evaluate: Path | None = typer.Option(
        None,
        metavar="TABLE",
        help="Texts with labels, as SOURCE, that the model has not seen: how many of them it gets right, by label.",
        show_default=False,
    ),
    architecture: Architecture = typer.Option(
        Architecture.ngrams, help="Words and sequences of words on hubs; or the network of the paper."
    ),
    max_bytes: int = typer.Option(50_000, min=1, help="Most bytes of the file; the paper's network has its own size."),
    max_time: float | None = options.MAX_TIME,
    seed: int = typer.Option(0, min=0, max=2**32 - 1, help="Of the paper's network; nothing else is left to chance."),
    jobs: int | None = options.JOBS,
    force: bool = options.FORCE,
    as_json: bool = options.AS_JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Learn labels of texts, or label texts with a saved model."""
    task = Task(source, texts, output, evaluate, silent=quiet or as_json)
    check_combination(task)
    if task.is_saved:
        refused = OF_FITS if evaluate is not None else (*OF_FITS, *OF_TABLES)
        options.refuse(context, refused, "a saved model is asked, not fitted: leave this option out")
    with loading():
        from prodige.cli.labelled import read_labelled, read_lines
        from prodige.text.classifier import GraphTextClassifier

    figures: dict[str, Any] = {"input": str(source), "interrupted": False}
    # All is read before the fit, which takes long.
    judged = None if evaluate is None else read_labelled(evaluate, text_column, label_column, header)
    if task.is_saved:
        model = load(source, jobs)
        lines = read_lines(texts) if texts is not None or judged is None else []
    else:
        if output is not None:
            check_output(source, output, force)
        data = read_labelled(source, text_column, label_column, header)
        lines = [] if texts is None else read_lines(texts)
        model = GraphTextClassifier(max_bytes, architecture.value, max_time=max_time, random_state=seed, n_jobs=jobs)
        figures |= learn(task, model, data)
    figures |= {"classes": model.classes_.tolist(), "predictions": ask(model, lines, proba)}
    if judged is not None:
        figures["evaluation"] = judge(model, judged)
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        show(figures, task.silent or task.is_saved)
    if figures["interrupted"]:
        leave_interrupted("the best model so far " + ("was asked" if output is None else f"is in {output}"))


@dataclass(frozen=True)
class Task:
    """What to read, what to label, what to write, what to be judged by, and how much to say."""

    source: Path
    texts: Path | None
    output: Path | None
    evaluate: Path | None
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
    if not task.is_saved and task.output is None and task.texts is None and task.evaluate is None:
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
    return {
        "n_texts": len(data.texts),
        "n_vertices": len(model.vertices_),
        "numbers_per_item": model.numbers_per_item_,
        "validation_accuracy": model.validation_accuracy_,
        "seconds": fitted.seconds,
        "interrupted": fitted.interrupted,
        "notes": fitted.notes,
    }


def judge(model: GraphTextClassifier, data: Labelled) -> dict[str, Any]:
    """Return how many of the labels are found, in all and of each label."""
    from sklearn.metrics import precision_recall_fscore_support

    found = [str(label) for label in model.predict(data.texts).tolist()]
    labels = sorted({*map(str, model.classes_.tolist()), *data.labels})
    rows = precision_recall_fscore_support(data.labels, found, labels=labels, zero_division=0.0)
    return {
        "n_texts": len(data.texts),
        "accuracy": sum(one == other for one, other in zip(found, data.labels, strict=True)) / len(found),
        "labels": {
            label: {"precision": float(p), "recall": float(r), "f1": float(f), "n_texts": int(n)}
            for label, p, r, f, n in zip(labels, *rows, strict=True)
        },
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
    if "evaluation" in figures:
        show_evaluation(figures["evaluation"])


def show_evaluation(evaluation: dict[str, Any]) -> None:
    """Print a row for each label, and one for all of them."""
    rows = [
        (printable(label), *(f"{row[name]:.4f}" for name in ("precision", "recall", "f1")), f"{row['n_texts']:,}")
        for label, row in evaluation["labels"].items()
    ]
    total = ("all: accuracy", f"{evaluation['accuracy']:.4f}", "", "", f"{evaluation['n_texts']:,}")
    print_table(["label", "precision", "recall", "f1", "texts"], [*rows, total])


def in_words(figures: dict[str, Any]) -> str:
    """Return the figures of a fit as one line."""
    words = (
        f"{figures['n_texts']:,} texts, {figures['n_vertices']:,} words and sequences, "
        f"{len(figures['classes'])} labels; {figures['seconds']:.1f} s"
    )
    if figures["validation_accuracy"] is not None:
        words += f"; {figures['validation_accuracy']:.1%} right in validation"
    if "output" in figures:
        words += f"; {figures['output']}: {figures['bytes']:,} bytes"
    return words
