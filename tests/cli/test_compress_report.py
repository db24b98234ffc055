"""``prodige compress --report``: a page beside the graph, and never instead of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from prodige import DistanceCompressor
from prodige.cli import app
from prodige.cli.progress import FitProgress
from prodige.compression import selection
from prodige.drawing import report
from prodige.graph import container
from prodige.progress import Record

runner = CliRunner()

X = np.random.default_rng(0).normal(size=(60, 8))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(selection, "N_STEPS", 24)
    monkeypatch.setattr(report, "N_MDS_STEPS", 20)
    np.save("x y.npy", X)
    return "x y.npy"


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, ["compress", *arguments, "--jobs", "1"])


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["-n", "5", "--hubs", "6", "--bits", "7"], "graph"),
        (["--bits-per-item", "128", "--objective", "0.5", "--allow-non-metric", "--metric", "cityblock"], "product"),
    ],
)
def test_the_command_on_the_page_repeats_the_run(data: str, options: list[str], kind: str) -> None:
    places = ["-o", "a.prodige", "--report", "run.html"]
    result = invoke(data, *options, *places, "--seed", "3", "--normalize", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["report"] == "run.html"
    page = Path("run.html").read_text()
    found = re.search("<pre>(.*)</pre>", page)
    assert found is not None
    command = shlex.split(unescape(found[1]))
    assert command[:3] == ["prodige", "compress", data]
    os.rename("a.prodige", "before")
    os.rename("run.html", "before.html")
    result = runner.invoke(app, command[1:])
    assert result.exit_code == 0, result.output
    assert container.describe("a.prodige").kind == kind
    assert Path("a.prodige").read_bytes() == Path("before").read_bytes()
    assert Path("run.html").exists()
    assert f"<td>{data}</td>" in page


def test_table_names_the_report(data: str) -> None:
    result = invoke(data, "--report", "run.html")
    assert result.exit_code == 0, result.output
    assert "run.html" in result.stdout
    assert result.stderr == ""


def test_the_place_is_tried_first(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DistanceCompressor, "fit", lambda self, X: pytest.fail("nothing must be fitted"))
    Path("old.html").write_text("precious")
    for name, code, message in (
        ("nowhere/run.html", 1, "Error: nowhere/run.html: No such file or directory"),
        ("old.html", 1, "old.html exists; use --force to replace it, or --report to name another file"),
        ("x y.prodige", 2, "the report would replace the graph"),
        (data, 2, "the result would replace the data"),
    ):
        result = invoke(data, "--report", name)
        assert result.exit_code == code, result.output
        assert message in " ".join(result.stderr.replace("│", " ").split())
    assert sorted(os.listdir()) == ["old.html", data]
    assert Path("old.html").read_text() == "precious"


def test_without_matplotlib(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    result = invoke(data, "--report", "run.html")
    assert (result.exit_code, result.stderr) == (1, "Error: plots need matplotlib; pip install 'prodige[plot]'\n")
    assert os.listdir() == [data]


def test_an_interrupted_fit_has_no_report(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(self: FitProgress, record: Record) -> None:
        if record.step == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(FitProgress, "__call__", press)
    result = invoke(data, "--report", "run.html")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted: the best graph so far is in x y.prodige; there is no report\n"
    assert sorted(os.listdir()) == [data, "x y.prodige"]


def test_an_interrupted_report_leaves_the_graph(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "compare", lambda *arguments: signal.raise_signal(signal.SIGINT))
    result = invoke(data, "--report", "run.html")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted: the graph is written, the report is not\n"
    assert sorted(os.listdir()) == [data, "x y.prodige"]
