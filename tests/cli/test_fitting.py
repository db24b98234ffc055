"""Fits of commands: each warning is noted once, and Ctrl-C is told of."""

from __future__ import annotations

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from prodige.cli.fitting import fit, nothing_written


class Model:
    """Warns, and ends as it is told."""

    stopped_ = "finished"

    def fit(self, *data: object, **labels: object) -> None:
        for _ in range(2):
            warnings.warn("odd", UserWarning, stacklevel=1)
        warnings.warn("stopped", ConvergenceWarning, stacklevel=1)
        self.stopped_ = "interrupt" if "late" in labels else "finished"


def test_notes_and_interrupts() -> None:
    fitted = fit(Model(), 1)
    assert fitted.notes == ["odd"]
    assert 0 <= fitted.seconds < 1
    assert not fitted.interrupted
    assert fit(Model(), 1, late=True).interrupted


def test_before_there_is_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), nothing_written("model"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "Interrupted before there was a model: nothing was written\n"
    with pytest.raises(ValueError, match="other"), nothing_written("model"):
        raise ValueError("other")
    assert capsys.readouterr().err == ""
