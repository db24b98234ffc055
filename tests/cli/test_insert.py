"""``prodige insert`` and ``prodige compress --memory-limit``: many items, and more of them later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from prodige import DistanceCompressor, ProductGraph, load
from prodige.cli import app
from prodige.cli.rows import read_rows
from prodige.compression import memory

runner = CliRunner()

X = np.random.default_rng(0).normal(size=(1200, 6)).astype(np.float32)
COMPRESS = ("compress", "x.npy", "--bits-per-item", "24", "--memory-limit", "172MB", "--jobs", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows and others in an empty folder; a limit of memory leaves room for a small sample."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "_LEAST_SAMPLE", 400)
    monkeypatch.setattr(memory, "_SAMPLE_LANDMARKS", (128, 128, 128))
    np.save("x.npy", X[:1000])
    np.save("more.npy", X[1000:])


def run(*arguments: str, code: int = 0) -> Any:
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result


def test_items_are_added_to_a_file() -> None:
    run(*COMPRESS, "--appendable", "--quiet")
    before = load("x.prodige")
    assert isinstance(before, DistanceCompressor)
    figures = json.loads(run("insert", "x.prodige", "more.npy", "--json").stdout)
    assert (figures["n_items"], figures["n_new"]) == (1200, 200)
    after: Any = load("x.prodige")
    assert after.graph_ == before.insert(X[1000:])
    assert figures["mse"] == pytest.approx(-before.score(X[1000:]))
    assert "1,400, 200 of them new" in run("insert", "x.prodige", "more.npy", "-o", "y.prodige").stdout
    assert load("x.prodige").graph_ == after.graph_  # type: ignore[union-attr]


def test_what_a_fit_takes_is_said_before() -> None:
    stderr = run(*COMPRESS).stderr
    assert "The fit takes about 17" in stderr
    assert "MB of memory beside the data" in stderr
    assert "a sample of" in stderr
    assert isinstance(load("x.prodige"), ProductGraph)


def test_rows_are_normalized_by_blocks_as_well() -> None:
    settings = DistanceCompressor(bits_per_item=24, memory_limit="172MB").get_params()
    rows, _, needs = read_rows(Path("x.npy"), None, True, settings)
    assert needs is not None
    assert not needs.is_whole
    found = np.concatenate([block for _, block in rows.blocks()])
    assert np.array_equal(found, read_rows(Path("x.npy"), None, True, settings | {"memory_limit": None}).X)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("insert", "x.npy", "more.npy"), 1, "x.npy"),
        (("insert", "graph.prodige", "more.npy"), 1, "--appendable"),
        (("insert", "none.prodige", "more.npy"), 1, "none.prodige"),
        ((*COMPRESS[:4], "--memory-limit", "1MB"), 1, "at least"),
        ((*COMPRESS[:4], "--memory-limit", "much"), 2, "no number of bytes"),
        ((*COMPRESS, "--structure", "graph"), 2, "--memory-limit"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[str, ...], code: int, words: str) -> None:
    ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1], [1]], [0.0, 0.5, 0.25]).save("graph.prodige")
    assert words in run(*arguments, code=code).stderr.replace("\n", " ")


def test_a_number_that_is_none_is_named() -> None:
    bad = X[:1000].copy()
    bad[777, 3] = np.nan
    np.save("x.npy", bad)
    stderr = run(*COMPRESS, code=1).stderr
    assert "block 0, row 777" in stderr
    assert not Path("x.prodige").exists()
