"""What commands write: places are tried without a trace, and tables show what files say but do not obey it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import typer

from prodige.cli.output import (
    check_output,
    leave_interrupted,
    print_facts,
    print_table,
    print_wide_table,
    rehearse,
    show_notes,
)


def test_a_place_is_tried_without_a_trace(tmp_path: Path) -> None:
    rehearse(tmp_path / "new")
    assert os.listdir(tmp_path) == []
    with pytest.raises(OSError, match="No such file or directory"):
        rehearse(tmp_path / "nowhere" / "new")


def test_nothing_is_replaced_by_chance(tmp_path: Path) -> None:
    data, output = tmp_path / "data", tmp_path / "output"
    data.write_text("data")
    output.write_text("precious")
    with pytest.raises(ValueError, match="output exists; use --force to replace it, or --report to name another file"):
        check_output(data, output, force=False, option="--report")
    check_output(data, output, force=True)
    assert output.read_text() == "precious"
    link = tmp_path / "link"
    link.symlink_to(data)
    with pytest.raises(typer.BadParameter, match="would replace the data"):
        check_output(data, link, force=True)


def test_notes(capsys: pytest.CaptureFixture[str]) -> None:
    show_notes(["a\x1b[2J", "b"])
    show_notes(["c"], silent=True)
    assert capsys.readouterr() == ("", "Note: a\\x1b[2J\nNote: b\n")


def test_after_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as leaving:
        leave_interrupted("the best graph so far is in a\nb")
    assert leaving.value.exit_code == 130
    assert capsys.readouterr() == ("", "Interrupted: the best graph so far is in a\\nb\n")


def test_tables_do_not_obey(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts({"[red]a": "\x1b[2J"})
    print_table(["item"], [["[b]x\n"]], title="[u]t")
    print_wide_table(["[i]h"], [["[b]y"]], "[u]w", ["[s]note"])
    shown = capsys.readouterr().out
    for text in ("[red]a", "\\x1b[2J", "[b]x\\n", "[u]t", "[i]h", "[b]y", "[u]w", "[s]note"):
        assert text in shown
    assert "\x1b" not in shown


def test_no_figure_is_cut_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    figures = [f"{place}.23456 ± 0.00001" for place in range(6)]
    print_wide_table(["", *(f"a long name {place}" for place in range(6))], [["row", *figures]], "title", [])
    shown = capsys.readouterr().out
    assert all(figure in shown for figure in figures)
