"""Fitting a model for a command: warnings become notes, and Ctrl-C before there is a result is told."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import typer


class Fitted(NamedTuple):
    """What is known about a fit.

    Attributes
    ----------
    notes : list of str
        What was warned about, each warning once.
    seconds : float
    interrupted : bool
        Whether Ctrl-C ended the fit; the model is the best so far.
    """

    notes: list[str]
    seconds: float
    interrupted: bool


def fit(model: Any, *data: Any, **labels: Any) -> Fitted:
    """Fit a model of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige import DistanceCompressor
    >>> from prodige.cli.fitting import fit
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> fit(DistanceCompressor(5, random_state=0), X).notes
    []
    """
    from sklearn.exceptions import ConvergenceWarning

    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("default", category=UserWarning)
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # of the interrupt, which commands report
        model.fit(*data, **labels)
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    return Fitted(notes, round(time.perf_counter() - began, 3), model.stopped_ == "interrupt")


@contextmanager
def nothing_written(result: str) -> Iterator[None]:
    """Say that there is nothing yet if Ctrl-C ends a block, outside of the progress that it shows."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Interrupted before there was a {result}: nothing was written", err=True)
        raise
