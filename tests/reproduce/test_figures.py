"""The figures of the paper on a few digits, with fits cut short."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from typer.testing import CliRunner

from prodige import Graph, datasets
from prodige.cli import app
from prodige.compression import selection
from prodige.datasets import Dataset
from prodige.reproduce import figures

runner = CliRunner()


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a fraction of a second, and few digits."""
    monkeypatch.setattr(selection, "N_STEPS", 24)
    monkeypatch.setattr(figures, "CURVE_STEPS", 30)
    monkeypatch.setattr(figures, "NEIGHBORS", (2, 4))
    every = figures.digits()
    monkeypatch.setattr(figures, "digits", lambda: Dataset("digits", every.X[:240], every.labels[:240], every.path))


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, ["reproduce", "figures", "--jobs", "1", *arguments])


def test_a_complete_graph_is_thinned() -> None:
    figure, facts = figures.thinned_complete_graph(figures.digits(), 1, lambda text: None)
    assert facts["n_edges"][:2] == [4950, 248]
    assert facts["mse"]["complete"] == pytest.approx(0, abs=1e-10)
    assert facts["mse"]["by budget"] < facts["mse_of_a_star"] < facts["mse_of_a_constant"]
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[0] == "complete: 4,950 edges, no error"
    assert titles[1].startswith("the way of the paper: 248 edges, mean squared error ")
    legend = figure.axes[2].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2", "3", "4", "hubs"]


def test_hubs_are_amid_their_items() -> None:
    graph = Graph.from_edges([0, 1, 2, 3], [3, 3, 4, 4], 1.0, n_items=3, n_vertices=6)
    where = np.array([[0, 0], [2, 4], [5, 5]], dtype=np.float32)
    assert figures.with_hubs(graph, where)[3:].tolist() == [[1, 2], [5, 5], [0, 0]]


def test_all_figures(tmp_path: Path) -> None:
    table = {"dataset": "toy", "budget": 4, "rows": [{"method": "graph", "bits_per_item": 64, "mse": [0.1]}]}
    (tmp_path / "table1-toy-4.json").write_text(json.dumps(table))
    said: list[str] = []
    drawn, result = figures.run(figures.digits(), n_seeds=2, n_items=60, tables=tmp_path, n_jobs=1, report=said.append)
    assert tuple(drawn) == tuple(result["figures"]) == figures.NAMES
    assert json.loads(json.dumps(result)) == result
    assert said[0] == "100 images of digits"
    assert "60 items of digits, 4 neighbours to begin with, seed 1" in said
    curves = result["figures"]["curves"]
    assert {name: len(errors) for name, errors in curves["mse"].items()} == {"2": 2, "4": 2}
    assert [line.get_xdata()[-1] for line in drawn["curves"].axes[0].lines] == [29, 29]  # type: ignore[index]
    degrees = result["figures"]["degrees"]
    assert degrees["by budget"]["n_items"] == 240
    assert degrees["the way of the paper"]["n_hubs"] == 0
    assert result["figures"]["distances"]["numbers_per_item"] <= 8
    assert result["figures"]["bits"] == {"tables": {"toy": [4]}}
    for figure in drawn.values():
        assert figures.render(figure, "png").startswith(b"\x89PNG")
    assert pyplot.get_fignums() == []
    page = figures.markdown(result)
    assert all(f"![{name}]({name}.png)" in page for name in figures.NAMES)
    assert result["origin"]["command"] in page


def test_the_same_figure_is_the_same_file() -> None:
    files = []
    for _ in range(2):
        drawn, _ = figures.run(figures.digits(), ["curves"], n_seeds=1, n_items=40, n_jobs=1)
        drawn["curves"].axes[0].lines[0].set_ydata(np.ones(30))
        files.append(figures.render(drawn["curves"], "svg"))
    assert files[0] == files[1]


def test_bits_need_tables(tmp_path: Path) -> None:
    drawn, _ = figures.run(figures.digits(), ["bits"])
    assert drawn == {}
    with pytest.raises(FileNotFoundError, match=r"has no table1-\*\.json"):
        figures.run(figures.digits(), ["bits"], tables=tmp_path)


def test_wrong_input() -> None:
    with pytest.raises(ValueError, match=r"names must be some of figure1, .* got 'figure7'"):
        figures.run(figures.digits(), ["figure7"])
    with pytest.raises(ValueError, match="20 items of each of the classes"):
        figures.pick_images(np.zeros(100, dtype=int))


# -- the command -----------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "figures"
    result = invoke("--digits", "--only", "curves", "--seeds", "1", "--items", "40", "-o", str(folder))
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert sorted(os.listdir(folder)) == ["curves.png", "figures.json", "figures.md"]
    facts = json.loads((folder / "figures.json").read_text())
    assert (facts["dataset"], facts["n_seeds"]) == ("digits", 1)
    assert facts["origin"]["command"] == "prodige reproduce figures --digits --only curves --seeds 1 --items 40"
    assert str(tmp_path) not in (folder / "figures.md").read_text()
    assert (folder / "figures.md").read_text() == figures.markdown(facts)


def test_svg_and_json(tmp_path: Path) -> None:
    options = ("--digits", "--only", "curves", "--seeds", "1", "--items", "40", "-o", str(tmp_path), "--format", "svg")
    result = invoke(*options, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["dataset"] == "digits"
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
    assert "(curves.svg)" in (tmp_path / "figures.md").read_text()


def test_digits_stand_in_for_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, data_dir: Path | None = None) -> Dataset:
        raise FileNotFoundError(f"no {name} here")

    monkeypatch.setattr(datasets, "load", load)
    options = ("--only", "curves", "--seeds", "1", "--items", "40", "-o", str(tmp_path))
    result = invoke(*options)
    assert result.exit_code == 0, result.output
    assert result.stderr == "Note: the digits of scikit-learn stand in for mnist10k: no mnist10k here\n"
    result = invoke(*options, "--data-dir", str(tmp_path))  # whoever names a folder means it
    assert (result.exit_code, result.stderr) == (1, "Error: no mnist10k here\n")


def test_usage_errors(tmp_path: Path) -> None:
    for arguments in (
        ["--only", "figure7"],
        ["--only", "bits"],
        ["--seeds", "0"],
        ["--items", "3"],
        ["--format", "gif"],
    ):
        assert invoke(*arguments, "-o", str(tmp_path)).exit_code == 2
    assert os.listdir(tmp_path) == []
