"""The command line."""

from __future__ import annotations

import json
import re

import pytest
import typer
from typer.testing import CliRunner

from prodige import __version__
from prodige.cli import app, reproduce
from prodige.reproduce import figures, table2, table3

runner = CliRunner()


def test_version_and_help() -> None:
    assert runner.invoke(app, ["--version"]).output == f"prodige {__version__}\n"
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("compress", "encode-faces", "info", "distance", "neighbors", "recommend", "classify", "reproduce"):
        assert command in result.output
    assert runner.invoke(app, ["nonsense"]).exit_code == 2


def test_reproduce_sanity_prints_one_json_object() -> None:
    result = runner.invoke(app, ["reproduce", "sanity", "--graphs", "2", "--jobs", "1", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["graphs"] == figures["recovered"] == figures["within_1e-3"] == 2
    assert figures["seconds"] > 0


def test_reproduce_sanity_prints_a_table() -> None:
    result = runner.invoke(app, ["reproduce", "sanity", "--graphs", "1", "--jobs", "1"])
    assert result.exit_code == 0
    assert "recovered" in result.stdout
    assert "91 of 100" in result.stdout


def test_bad_options() -> None:
    assert runner.invoke(app, ["reproduce", "sanity", "--graphs", "0"]).exit_code == 2
    assert runner.invoke(app, ["reproduce", "sanity", "--start", "nowhere"]).exit_code == 2
    for command in ("sanity", "table1", "table2", "table3", "figures"):
        result = runner.invoke(app, ["reproduce", command, "--jobs", "0"])
        assert result.exit_code == 2
        assert "0 is no number of threads" in result.stderr


@pytest.mark.parametrize(
    ("command", "known"),
    [
        ("table2", table2.METHODS),
        ("table3", table3.METHODS),
        ("figures", (*figures.NAMES, "separated by commas")),
    ],
)
def test_help_names_what_can_be_chosen(command: str, known: tuple[str, ...]) -> None:
    """All of it, and nothing that would be refused."""
    options = typer.main.get_command(reproduce.app).commands[command].params  # type: ignore[attr-defined]
    text = next(option.help for option in options if option.name in ("methods", "only"))
    names = re.sub(r"\(.*?\)", "", text.removeprefix("Some of ").removesuffix("."))
    assert tuple(name.strip() for name in re.split("[,;]", names)) == known
