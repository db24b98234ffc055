"""The compression table on a tiny data set under the name of a large one."""

from __future__ import annotations

import builtins
import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from typer.testing import CliRunner

from prodige import DistanceCompressor, Graph, ProductGraph, datasets
from prodige.baselines import PCA
from prodige.cli import app
from prodige.cli.reproduce import Budget, Name
from prodige.compression import selection
from prodige.datasets import Dataset
from prodige.graph import file
from prodige.metric.evaluation import evaluate
from prodige.metric.space import Space, unit_rows
from prodige.reproduce import table1, tables
from prodige.reproduce.tables import Plan

runner = CliRunner()

QUICK = ("constant", "star", "pca", "mds", "residual", "graph", "product")

X = unit_rows(np.random.default_rng(0).normal(size=(80, 12))).astype(np.float32)


def make(name: str = "mnist10k") -> Dataset:
    return Dataset(name, X, np.arange(len(X)), Path(f"{name}.npz"))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a fraction of a second."""
    monkeypatch.setattr(selection, "N_STEPS", 24)
    parts = table1.make

    def short(*arguments: Any) -> Any:
        model = parts(*arguments)
        return model.set_params(n_steps=20) if "n_steps" in model.get_params() else model

    monkeypatch.setattr(table1, "make", short)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path | None]]:
    """Put the tiny data in the place of the loader; return what was asked of it."""
    calls = []

    def load(name: str, data_dir: Path | None = None) -> Dataset:
        calls.append((name, data_dir))
        if name == "celeba10k":
            raise FileNotFoundError("celeba10k.npz is not in the cache; encode it")
        return make(name)

    monkeypatch.setattr(datasets, "load", load)
    return calls


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, ["reproduce", "table1", "--jobs", "1", *arguments])


# -- the experiment --------------------------------------------------------------------------------------------------


def test_figures() -> None:
    said: list[str] = []
    result = table1.run(make(), 4, Plan(QUICK, n_seeds=2, n_jobs=1, report=said.append))
    rows = {row["method"]: row for row in result["rows"]}
    assert list(rows) == list(QUICK)
    assert {name: len(row["mse"]) for name, row in rows.items()} == dict.fromkeys(QUICK, 1) | {
        "mds": 2,
        "graph": 2,
        "product": 2,
    }
    assert said[-1] == "mnist10k, 4 numbers: product of graphs, seed 1"
    space = Space(X)
    assert rows["pca"]["mse"][0] == pytest.approx(evaluate(PCA(4).fit(X), space).paper_mse)
    assert rows["pca"]["paper_mse"] == 0.30418
    assert rows["graph"]["paper_mse"] == 0.00938
    assert rows["constant"]["paper_mse"] is rows["product"]["paper_mse"] is None
    numbers = [rows[name]["numbers_per_item"] for name in ("constant", "star", "pca", "mds", "residual")]
    assert numbers == [0, 1, 4, 4, 4]
    assert 3 <= rows["graph"]["numbers_per_item"] <= 4
    assert 3 <= rows["product"]["numbers_per_item"] <= 4
    bits = [rows[name]["bits_per_item"] for name in ("constant", "star", "pca", "residual")]
    assert bits == [32 / 80, 32, 128, 128]
    assert rows["residual"]["mse"][0] < 0.1 * rows["pca"]["mse"][0]
    assert rows["graph"]["bits_per_item"] > 64  # a weight of 32 bits and where to, for more edges than items
    assert rows["product"]["mse"][0] < rows["star"]["mse"][0] < rows["constant"]["mse"][0]
    assert rows["graph"]["mse"][0] < rows["star"]["mse"][0]
    assert all(seconds > 0 for row in rows.values() for seconds in row["seconds"])
    for name in ("mds", "graph", "product"):
        assert set(rows[name]["seconds_to"]) == {"PRODIGE", "MDS"}
    assert rows["pca"]["seconds_to"] == {}
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize(("method", "kind"), [("graph", Graph), ("product", ProductGraph)])
def test_the_error_is_that_of_the_graph(method: str, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[Any] = []
    fit = DistanceCompressor.fit

    def keep(self: DistanceCompressor, X: Any) -> DistanceCompressor:
        graphs.append(fit(self, X).graph_)
        return self

    monkeypatch.setattr(DistanceCompressor, "fit", keep)
    (row,) = table1.run(make(), 8, Plan([method], n_seeds=1, n_jobs=1))["rows"]
    assert type(graphs[0]) is kind
    target = np.square(graphs[0].distances() - Space(X).distances(np.arange(80)), dtype=np.float64).mean()
    assert row["mse"] == [pytest.approx(target)]
    assert row["numbers_per_item"] == graphs[0].numbers_per_item
    assert row["bits_per_item"] == 8 * file.size(graphs[0]) / 80


def test_seconds_to_a_figure() -> None:
    large = [(1.0, 0.01, 8.0), (2.0, 0.02, 6.0)]
    assert table1.seconds_to([*large, (3.0, 0.04, 4.0), (4.0, 0.03, 4.0)], 0.03, 4) == 4.0
    assert table1.seconds_to([*large, (3.0, 0.04, 4.0)], 0.03, 4) is None
    assert table1.seconds_to(large, 0.03, 4) is None
    assert table1.seconds_to([], 0.03, 4) is None


@pytest.mark.parametrize("structure", ["graph", "product"])
def test_copies_count_as_in_the_whole_graph(structure: Literal["graph", "product"]) -> None:
    """A fit that leaves out copies has more numbers for each of the others."""
    twice = np.concatenate([X, X[:40]])
    compressor = DistanceCompressor(4, structure=structure, random_state=0, n_jobs=1).fit(twice)
    assert (compressor.history_[-1].numbers_per_item or 0) > 4
    numbers = table1.follow(compressor, twice)[-1][2]
    assert compressor.graph_.numbers_per_item - 1e-9 <= numbers <= 4 + 1e-9  # hubs without an edge are dropped later


def test_when_the_paper_was_beaten(monkeypatch: pytest.MonkeyPatch) -> None:
    easy, hard = {"mnist10k": 1e9}, {"mnist10k": 0.0}
    monkeypatch.setattr(table1, "PAPER", {4: {"PRODIGE": easy, "MDS": hard}})
    result = table1.run(make(), 4, Plan(["mds", "graph"], n_seeds=2, n_jobs=1))
    for row in result["rows"]:
        assert all(0 < when <= total for when, total in zip(row["seconds_to"]["PRODIGE"], row["seconds"], strict=True))
        assert row["seconds_to"]["MDS"] == [None, None]
    for cells in table1.cells(result):
        assert cells[-1] == "never"
        assert float(cells[-2]) >= 0


def test_poincare_without_geoopt(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: Any) -> Any:
        if name == "geoopt":
            raise ImportError("No module named 'geoopt'", name="geoopt")
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    result = table1.run(make(), 4, Plan(["poincare", "constant"], n_seeds=2, n_jobs=1))
    row = result["rows"][-1]
    assert (row["method"], row["mse"]) == ("poincare", [])
    assert "prodige[hyperbolic]" in row["note"]
    assert table1.cells(result)[-1][:3] == ["Poincaré MDS", "", "0.04683"]
    assert "- Poincaré MDS: left out:" in table1.markdown(result)


def test_poincare() -> None:
    pytest.importorskip("geoopt")
    constant, row = table1.run(make(), 4, Plan(["constant", "poincare"], n_seeds=1, n_jobs=1))["rows"]
    assert 0 < row["mse"][0] < constant["mse"][0]
    assert "curvature" in row["note"]


def test_l0_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fit(self: DistanceCompressor, X: Any) -> DistanceCompressor:
        asked.append(self.method)
        self.graph_ = Graph.from_edges(np.arange(79), np.full(79, 79), 0.5)
        return self

    monkeypatch.setattr(DistanceCompressor, "fit", fit)
    (row,) = table1.run(make(), 4, Plan(["l0"], n_seeds=2, n_jobs=1))["rows"]
    assert asked == ["l0", "l0"]
    assert row["paper_mse"] == 0.00938


def test_a_part_of_ours_that_is_missing_is_no_reason_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(self: DistanceCompressor, X: Any) -> None:
        raise ModuleNotFoundError("No module named 'prodige.something'", name="prodige.something")

    monkeypatch.setattr(DistanceCompressor, "fit", fit)
    with pytest.raises(ModuleNotFoundError):
        table1.run(make(), 4, Plan(["graph"]))


def test_unknown_methods() -> None:
    with pytest.raises(ValueError, match="got 'umap'"):
        table1.run(make(), 4, Plan(["star", "umap"]))


# -- the command -----------------------------------------------------------------------------------------------------


def test_names_and_budgets_are_those_of_the_library() -> None:
    assert tuple(name.value for name in Name) == datasets.NAMES
    assert tuple(int(size.value) for size in Budget) == table1.BUDGETS
    for budget in table1.PAPER.values():
        for figures in budget.values():
            assert set(figures) == set(datasets.NAMES)


def test_json(fake: list[Any], tmp_path: Path) -> None:
    options = ("--dataset", "glove10k", "--budget", "8", "--data-dir", str(tmp_path), "--seeds", "1", "--json")
    result = invoke(*options, "--methods", "graph, star")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    (table,) = found["results"]
    assert (table["dataset"], table["budget"], table["n_items"]) == ("glove10k", 8, 80)
    assert [row["method"] for row in table["rows"]] == ["star", "graph"]
    command = "prodige reproduce table1 --dataset glove10k --budget 8 --seeds 1 --methods star,graph"
    assert table["origin"]["command"] == command  # without the folder, which is nobody's business
    assert fake == [("glove10k", tmp_path)]


def test_tables_and_files(fake: list[Any], tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "results"
    result = invoke("--seeds", "2", "--output", str(folder), "--methods", "star,graph")
    assert result.exit_code == 0, result.output
    assert result.stderr == "Note: celeba10k left out: celeba10k.npz is not in the cache; encode it\n"
    assert [name for name, _ in fake] == ["mnist10k", "glove10k", "celeba10k"]
    written = [f"table1-{name}-{size}" for name in ("glove10k", "mnist10k") for size in (4, 8)]
    assert sorted(os.listdir(folder)) == [name + suffix for name in written for suffix in (".json", ".md")]
    for name in written:
        table = json.loads((folder / f"{name}.json").read_text())
        page = (folder / f"{name}.md").read_text()
        assert page == table1.markdown(table)
        assert table["origin"]["command"] in page
        assert str(tmp_path) not in page
        assert f"| {tables.spread(table['rows'][1]['mse'])} |" in page
        assert table1.title(table) in result.stdout
    assert "0.03289" in (folder / "table1-glove10k-4.md").read_text()


def test_missing_data_is_an_error(fake: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke("--dataset", "celeba10k")
    assert result.exit_code == 1
    assert result.stderr == "Error: celeba10k.npz is not in the cache; encode it\n"

    def load(name: str, data_dir: Path | None = None) -> Dataset:
        raise FileNotFoundError(f"no {name}")

    monkeypatch.setattr(datasets, "load", load)
    result = invoke()
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: mnist10k left out: no mnist10k; glove10k")


def test_damaged_data_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "mnist10k.npz").write_bytes(b"nonsense")
    result = invoke("--dataset", "mnist10k", "--data-dir", str(tmp_path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "mnist10k.npz" in result.stderr
    assert result.stderr.count("\n") == 1
    result = invoke("--dataset", "mnist10k", "--data-dir", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert "existing folder" in result.stderr


def test_usage_errors(fake: list[Any]) -> None:
    for arguments in (["--dataset", "cifar"], ["--budget", "5"], ["--seeds", "0"], ["--methods", "graph,umap"]):
        assert invoke(*arguments).exit_code == 2
    assert fake == []


def test_a_place_that_cannot_be_written_to(fake: list[Any], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("--output", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path}/file: File exists\n"
    assert fake == []
