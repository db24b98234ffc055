"""``prodige explain``: which words of a text a saved model decided by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from prodige.cli import options
from prodige.cli.errors import clean_errors, printable
from prodige.cli.output import print_table
from prodige.interrupts import loading


def register(app: typer.Typer) -> None:
    """Add the command to the main one."""
    app.command()(explain)


@clean_errors()
def explain(
    model: Path = typer.Argument(
        ..., metavar="FILE", help="A .prodige file saved by prodige classify.", show_default=False
    ),
    text: str = typer.Argument(..., metavar="TEXT", help="The text, in quotes.", show_default=False),
    label: str | None = typer.Option(
        None, help="The label to speak for or against; the predicted one when left out.", show_default=False
    ),
    k: int = options.count("How many words and sequences to show."),
    as_json: bool = options.AS_JSON,
) -> None:
    """Say which words and sequences of words of a text speak for its label, over which path."""
    with loading():
        from prodige.text.classifier import GraphTextClassifier

    found = GraphTextClassifier.load(model, n_jobs=1)
    by_name = {str(one): one for one in found.classes_.tolist()}
    if label is not None and label not in by_name:
        raise typer.BadParameter(f"{label!r} is none of the {len(by_name)} labels", param_hint="'--label'")
    chosen = found.predict([text])[0] if label is None else by_name[label]
    reasons = found.explain(text, chosen, k)
    probability = float(found.predict_proba([text])[0, list(by_name).index(str(chosen))])
    if as_json:
        shown: dict[str, Any] = {"label": str(chosen), "probability": round(probability, 6)}
        typer.echo(json.dumps(shown | {"reasons": [reason._asdict() for reason in reasons]}))
        return
    typer.echo(f"{printable(str(chosen))}: probability {probability:.4f}")
    if not reasons:
        typer.echo("No word of the text is known: the label is the one that the model begins with.")
        return
    rows = [
        (
            printable(reason.vertex),
            f"{reason.contribution:+.3f}",
            printable(" - ".join(reason.path)),
            " + ".join(f"{length:.4g}" for length in reason.lengths),
        )
        for reason in reasons
    ]
    print_table(["vertex", "says", "path", "lengths"], rows)
