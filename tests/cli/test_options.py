"""Options of several commands: what no data could make right is wrong usage."""

from __future__ import annotations

import math

import pytest
import typer

from prodige.cli.options import check_jobs, check_positive


def test_threads() -> None:
    for value in (None, 1, 2, -1, -2, 2**15):
        assert check_jobs(value) is value
    for value in (0, 2**15 + 1, -(10**9)):
        with pytest.raises(typer.BadParameter, match=f"{value} is no number of threads; give 1 or more"):
            check_jobs(value)


def test_positive_numbers() -> None:
    for value in (None, 1e-300, 4.0):
        assert check_positive(value) is value
    for value in (0.0, -1.0, math.inf, -math.inf, math.nan):
        with pytest.raises(typer.BadParameter, match="is not a finite number above 0"):
            check_positive(value)
