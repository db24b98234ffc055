"""The command line."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from prodige import __version__
from prodige.cli import app

runner = CliRunner()


def test_version_and_help() -> None:
    assert runner.invoke(app, ["--version"]).output == f"prodige {__version__}\n"
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("compress", "encode-faces", "info", "distance", "neighbors", "recommend", "classify", "reproduce"):
        assert command in result.output
    assert runner.invoke(app, ["nonsense"]).exit_code == 2


def test_reproduce_sanity_prints_one_json_object() -> None:
    result = runner.invoke(app, ["reproduce", "sanity", "--graphs", "2", "--n-jobs", "1", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["graphs"] == figures["recovered"] == figures["within_1e-3"] == 2
    assert figures["seconds"] > 0


def test_reproduce_sanity_prints_a_table() -> None:
    result = runner.invoke(app, ["reproduce", "sanity", "--graphs", "1", "--n-jobs", "1"])
    assert result.exit_code == 0
    assert "recovered" in result.stdout
    assert "91 of 100" in result.stdout


def test_bad_options() -> None:
    assert runner.invoke(app, ["reproduce", "sanity", "--graphs", "0"]).exit_code == 2
    assert runner.invoke(app, ["reproduce", "sanity", "--start", "nowhere"]).exit_code == 2
    result = runner.invoke(app, ["reproduce", "sanity", "--jobs", "0"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: n_jobs must not be 0")
