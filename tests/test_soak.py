"""Fits leave nothing behind: two rounds of each. benchmarks/soak.py runs the same for as long as one likes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SOAK: dict[str, Any] = runpy.run_path(str(Path(__file__).parent.parent / "benchmarks" / "soak.py"))


@pytest.mark.parametrize("name", SOAK["FITS"])
def test_nothing_stays_behind(name: str) -> None:
    grown = SOAK["soak"](SOAK["FITS"][name], n_jobs=1, seconds=0)
    assert grown["runs"] == 1
    assert grown["objects"] == 0
    assert grown["threads and files"] <= 0


def test_soaking_notices_what_stays_behind() -> None:
    kept: list[Any] = []

    def leaky(n_jobs: int | None) -> None:
        embedding = SOAK["GraphEmbedding"]([0], [1], n_jobs=n_jobs)
        kept.append(embedding)

    assert SOAK["soak"](leaky, n_jobs=1, seconds=0)["objects"] >= 2
