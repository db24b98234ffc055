"""``prodige encode-faces``: what it says, and how it ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from prodige.cli.faces import encode_faces
from prodige.datasets import faces

app = typer.Typer()
app.command()(encode_faces)
runner = CliRunner()


def test_says_what_was_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[Any] = []

    def encode(*arguments: Any, **options: Any) -> tuple[int, int]:
        calls.append((arguments, options))
        return 7, 2

    monkeypatch.setattr(faces, "encode_faces", encode)
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, [str(tmp_path), "-o", "out.npz", "--limit", "7", "--jobs", "1", "-q"])
    assert result.exit_code == 0, result.output
    assert result.output == "out.npz: 7 faces; 2 photographs without one left out\n"
    assert calls == [((tmp_path, Path("out.npz"), 7, 1), {"verbose": 0})]
    assert os.listdir(tmp_path) == []
    result = runner.invoke(app, [str(tmp_path), "-o", f"{tmp_path}/nowhere/out.npz"])
    assert (result.exit_code, len(calls)) == (1, 1)  # the place of the result is tried before the work
    assert result.stderr == f"Error: {tmp_path}/nowhere/out.npz: No such file or directory\n"
    Path("out.npz").write_text("precious")
    result = runner.invoke(app, [str(tmp_path), "-o", "out.npz"])
    assert (result.exit_code, len(calls)) == (1, 1)
    assert "out.npz exists; use --force to replace it" in result.stderr
    assert runner.invoke(app, [str(tmp_path), "-o", "out.npz", "--force"]).exit_code == 0
    assert len(calls) == 2


def test_errors_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = runner.invoke(app, [str(tmp_path / "missing")])
    assert result.exit_code == 1
    assert "existing folder of photographs" in result.stderr
    assert "Traceback" not in result.stderr

    def encode(*arguments: Any, **options: Any) -> tuple[int, int]:
        raise ImportError("pip install it")

    monkeypatch.setattr(faces, "encode_faces", encode)
    result = runner.invoke(app, [str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr == "Error: pip install it\n"
    assert runner.invoke(app, []).exit_code == 2
    assert runner.invoke(app, [str(tmp_path), "--limit", "0"]).exit_code == 2
    assert runner.invoke(app, [str(tmp_path), "--jobs", "0"]).exit_code == 2
