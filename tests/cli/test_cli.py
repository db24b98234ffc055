"""The command line."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

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


# -- all commands alike ----------------------------------------------------------------------------------------------

# What a letter stands for, wherever there is one.
LETTERS = {
    "-n": {"--numbers-per-item", "--budget"},
    "-k": set[str](),
    "-o": {"--output"},
    "-j": {"--jobs"},
    "-f": {"--force"},
    "-q": {"--quiet"},
    "-u": {"--user"},
}


def commands(group: Any, name: str = "prodige") -> Iterator[tuple[str, Any]]:
    for part, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {part}")
        else:
            yield f"{name} {part}", command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_letters_mean_one_thing() -> None:
    assert {"prodige compress", "prodige reproduce table1"} <= set(COMMANDS)
    for name, command in COMMANDS.items():
        for option in command.params:
            letters = [one for one in option.opts if re.fullmatch("-[a-z]", one)]
            names = {one for one in option.opts if one.startswith("--")}
            for letter in letters:
                assert names <= LETTERS[letter], f"{name}: {option.opts}"
            expected = [letter for letter, known in LETTERS.items() if known & names]
            assert letters == (expected or letters), f"{name}: {option.opts}"
            assert len(names) <= 1, f"{name}: {option.opts}"


def test_flags_are_shown_as_flags() -> None:
    """Only names of columns can be said to be there or not to be there: otherwise a file decides."""
    for name, command in COMMANDS.items():
        for option in command.params:
            if getattr(option, "is_flag", False):
                assert option.metavar == "", f"{name}: {option.opts}"
                assert option.secondary_opts == (["--no-header"] if option.name == "header" else []), name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_in_sentences(name: str) -> None:
    command = COMMANDS[name]
    assert command.help.endswith(".")
    assert all(option.help and option.help.endswith(".") for option in command.params), name
    assert runner.invoke(app, [*name.split()[1:], "--help"]).exit_code == 0


def run_program(*arguments: str, **environment: str) -> str:
    program = [sys.executable, "-m", "prodige", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_completion() -> None:
    script = run_program("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_PRODIGE_COMPLETE=complete_bash" in script
    assert script.rstrip().endswith("_prodige_completion prodige")
    asked = {"_PRODIGE_COMPLETE": "complete_bash", "COMP_WORDS": "prodige re", "COMP_CWORD": "1"}
    assert run_program(**asked).split() == ["recommend", "reproduce"]


def test_help_takes_little() -> None:
    """Seconds of the processor; nothing is loaded that help does not need."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Usage: prodige" in run_program("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.6
    code = "import sys, prodige.cli; print(sorted({'numpy', 'scipy', 'torch', 'sklearn'} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert loaded.stdout == "[]\n"


# -- reproduce -------------------------------------------------------------------------------------------------------


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
