"""The table at equal bits on a tiny data set under the name of a large one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from prodige.baselines import ResidualCoordinates, Star
from prodige.cli import app
from prodige.metric.space import Space
from prodige.reproduce import bits, families, figures
from prodige.reproduce.families import Family
from prodige.reproduce.judging import Judge
from prodige.reproduce.peers import Bench, Candidate
from prodige.reproduce.tables import Plan

runner = CliRunner()


def make(name: str = "manifold") -> Family:
    return Family(name, families.manifold(150).X)


class Stars:
    """A method whose best split is neither the first nor the last, and whose best recall is another."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def candidates(self, bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        self.asked.append((bits, seed))
        if bits < 10:
            return
        for factor in (2.0, 1.0, 0.7):
            star = Star().fit(bench.family.X)
            star.radius_ = star.radius_ * np.float32(factor)
            yield Candidate(f"times {factor:g}", bits - 1, star)


@pytest.fixture
def stars(monkeypatch: pytest.MonkeyPatch) -> Stars:
    method = Stars()
    monkeypatch.setitem(bits.METHODS, "graph", ("one graph", method))
    monkeypatch.setattr(bits, "commit", lambda: "abc")
    return method


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path | None]]:
    """Put the tiny data in the place of the loader; return what was asked of it."""
    calls = []

    def load(name: str, data_dir: Path | None = None) -> Family:
        calls.append((name, data_dir))
        if name == "celeba10k":
            raise FileNotFoundError("celeba10k.npz is not in the cache; encode it")
        return make(name)

    monkeypatch.setattr(families, "load", load)
    return calls


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, ["reproduce", "bits", "--jobs", "1", *arguments])


# -- the experiment --------------------------------------------------------------------------------------------------


def test_figures() -> None:
    said: list[str] = []
    result = bits.run(make(), [16, 32], Plan(["residual"], n_seeds=2, n_jobs=1, report=said.append))
    assert [(row["method"], row["budget"]) for row in result["rows"]] == [("residual", 16), ("residual", 32)]
    for row in result["rows"]:
        (found,) = row["figures"]  # it does not depend on a seed
        model = ResidualCoordinates(bits_per_item=row["budget"], random_state=0).fit(make().X)
        assert found["mse"] == pytest.approx(-model.score(make().X))
        assert found["bits_per_item"] == model.bits_per_item_ <= row["budget"]
        assert 0 < found["share"] < 1
        assert 0 < found["recall"] < 1
        assert len(found["deciles"]) == 10
        assert [one["split"] for one in found["tried"]] == [found["split"]]
        assert row["seconds"][0] > 0
    assert said[0] == "manifold, 16 bits: residual coordinates, seed 0"
    assert said[1] == "manifold, 16 bits: residual coordinates, seed 0, 1 split so far"
    assert json.loads(json.dumps(result)) == result


def test_the_best_split_is_shown_and_all_are_kept(stars: Stars) -> None:
    result = bits.run(make(), [8, 24], Plan(["graph"], n_seeds=2, n_jobs=1))
    nothing, row = result["rows"]
    assert stars.asked == [(8, 0), (8, 1), (24, 0), (24, 1)]
    assert (nothing["figures"], nothing["note"]) == ([], "nothing fits into 8 bits")
    assert len(row["figures"]) == 2
    found = row["figures"][0]
    assert (found["split"], found["bits_per_item"]) == ("times 1", 23)
    assert found["mse"] == pytest.approx(-Star().fit(make().X).score(make().X))
    assert [one["split"] for one in found["tried"]] == ["times 2", "times 1", "times 0.7"]
    assert min(one["mse"] for one in found["tried"]) == pytest.approx(found["mse"])
    assert "one graph: nothing fits into 8 bits" in bits.notes(result)
    assert bits.cells(result) == [["one graph", "", f"{found['share']:.4f}"]]


def test_rows_are_kept_as_they_come(stars: Stars) -> None:
    kept: list[dict[str, Any]] = []
    result = bits.run(make(), [16, 24], Plan(["graph"], n_jobs=1), keep=kept.append)
    assert [len(one["rows"]) for one in kept] == [1, 2]
    assert kept[-1]["rows"] == result["rows"]


def test_a_run_goes_on_where_another_ended(stars: Stars, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(["graph"], n_jobs=1)
    first = bits.run(make(), [8, 16], plan)
    stars.asked.clear()
    second = bits.run(make(), [8, 16, 24], plan, first)
    assert stars.asked == [(24, 0)]  # also what does not fit need not be tried again
    assert second["rows"][:2] == first["rows"]
    # More seeds, another commit or other items: anew.
    for change in ("seeds", "commit", "items"):
        stars.asked.clear()
        if change == "commit":
            monkeypatch.setattr(bits, "commit", lambda: "other")
        known = second | {"n_items": 99} if change == "items" else second
        bits.run(make(), [16], Plan(["graph"], 2 if change == "seeds" else 1), known)
        assert stars.asked[0] == (16, 0), change


def test_rows_that_nobody_asks_for_stay(stars: Stars, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bits.run(make(), [16], Plan(["residual"], n_jobs=1))
    monkeypatch.setattr(bits, "commit", lambda: "later")
    second = bits.run(make(), [16, 24], Plan(["graph"], n_jobs=1), first)
    assert [row["method"] for row in second["rows"]] == ["graph", "graph", "residual"]  # in the order of the table
    assert second["rows"][2] == first["rows"][0]
    assert [row["commit"] for row in second["rows"]] == ["later", "later", "abc"]
    command = "prodige reproduce bits --dataset manifold --budget 16 --budget 24 --seeds 1 --methods graph,residual"
    assert second["origin"]["command"] == command
    assert "Made at commit abc: residual coordinates" in bits.notes(second)


def test_no_commit_no_shortcut(stars: Stars, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits, "commit", lambda: None)
    first = bits.run(make(), [16], Plan(["graph"], n_jobs=1))
    bits.run(make(), [16], Plan(["graph"], n_jobs=1), first)
    assert len(stars.asked) == 2


def test_points_of_the_front(stars: Stars) -> None:
    result = bits.run(make(), [64], Plan(["graph", "residual"], n_jobs=1))
    graph = result["rows"][0]
    points = bits.points_of(graph)
    assert len(points) == 3
    assert points[1][0] == pytest.approx(graph["figures"][0]["share"], rel=1e-3)
    ((name, error, recall),) = bits.front_of(result, 64)
    assert name == "residual coordinates"  # a star is better at nothing
    assert float(error) == pytest.approx(result["rows"][1]["figures"][0]["share"], abs=1e-3)
    assert float(recall) > max(point[1] for point in points)
    assert bits.front_of(result, 32) == []


def test_whose_a_point_is_is_said_once() -> None:
    tried = [{"mse": 0.2, "recall": 0.5}, {"mse": 0.2, "recall": 0.5}]
    figures = [{"mse": 0.2, "share": 0.1, "tried": tried}]
    rows = [{"method": method, "budget": 64, "figures": figures} for method in ("product", "graph")]
    assert bits.front_of({"rows": rows}, 64) == [["DistanceCompressor and one graph", "0.1000", "0.500"]]


def test_the_most_recall() -> None:
    tried = [{"mse": 0.2, "recall": 0.5}, {"mse": 0.4, "recall": 0.7}]
    row = {"figures": [{"mse": 0.2, "share": 0.1, "tried": tried}]}
    assert bits.most_recall(row) == "0.700 (0.200)"


def test_page_and_picture(stars: Stars) -> None:
    plan = Plan(["graph", "residual", "pq-codes"], n_jobs=1)
    result = bits.run(make(), [16, 64], plan)
    page = bits.markdown(result)
    assert result["origin"]["command"] in page
    assert "![Error by bits, and recall by error](bits-manifold.png)" in page
    row = result["rows"][-1]
    assert row["method"] == "pq-codes"
    for shown in ("share", "recall", "spearman"):
        value = row["figures"][0][shown]
        assert f"{value:.3f}" in page or f"{value:.4f}" in page, shown
    assert "## 64 bits: points that no other is better than" in page
    assert "## 16 bits" not in page
    assert row["figures"][0]["split"] in page
    drawn = bits.figure(result)
    left, right = drawn.axes
    texts = right.get_legend().get_texts()  # type: ignore[union-attr]
    assert [text.get_text() for text in texts] == ["one graph", "residual coordinates"]  # books of the third are free
    assert right.get_title() == "64 bits an item"
    assert left.get_ylabel() == "error / variance"
    assert figures.render(drawn, "png").startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="no row with figures"):
        bits.figure(result | {"rows": [row]})


def test_methods() -> None:
    assert set(bits.METHODS) == set(bits.OURS) | set(bits.PEERS)
    assert len(bits.PEERS) == 5 + 16
    assert bits.LABELS["opq-energy-codes"] == "OPQ + energy, books free"
    with pytest.raises(ValueError, match="got 'umap'"):
        bits.run(make(), [16], Plan(["umap"]))


def test_every_budget_has_a_judge_of_its_own_data() -> None:
    result = bits.run(families.tree(120), [16], Plan(["residual"], n_jobs=1))
    (row,) = result["rows"]
    assert result["metric"] == "precomputed"
    matrix = families.tree(120).X
    model = ResidualCoordinates(metric="precomputed", bits_per_item=16, random_state=0).fit(matrix)
    figures_ = Judge(Space(matrix, "precomputed")).examine(model)
    assert row["figures"][0]["mse"] == pytest.approx(figures_.mse)


# -- the command -----------------------------------------------------------------------------------------------------


def test_json(fake: list[Any], tmp_path: Path) -> None:
    options = ("--dataset", "glove10k", "--budget", "24", "--budget", "16", "--data-dir", str(tmp_path), "--json")
    result = invoke(*options, "--methods", "residual")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    (table,) = json.loads(result.stdout, parse_constant=pytest.fail)["results"]
    assert (table["dataset"], table["n_items"]) == ("glove10k", 150)
    assert [row["budget"] for row in table["rows"]] == [16, 24]
    assert fake == [("glove10k", tmp_path)]


def test_files_and_going_on(fake: list[Any], stars: Stars, tmp_path: Path) -> None:
    options = ("--dataset", "tree", "--dataset", "digits", "--output", str(tmp_path / "out"), "--methods", "graph")
    result = invoke(*options, "-n", "16")
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(tmp_path / "out")) == [
        f"bits-{name}.{kind}" for name in ("digits", "tree") for kind in ("json", "md", "png")
    ]
    assert "digits: error" in result.stdout
    table = json.loads((tmp_path / "out" / "bits-tree.json").read_text())
    assert (tmp_path / "out" / "bits-tree.md").read_text() == bits.markdown(table)
    assert len(stars.asked) == 2
    assert invoke(*options, "-n", "16", "-n", "24").exit_code == 0
    assert stars.asked[2:] == [(24, 0), (24, 0)]
    assert invoke(*options, "-n", "16", "--again").exit_code == 0
    assert stars.asked[4:] == [(16, 0), (16, 0)]
    table = json.loads((tmp_path / "out" / "bits-tree.json").read_text())
    assert [row["budget"] for row in table["rows"]] == [16, 24]  # the other stays


def test_ctrl_c_leaves_what_there_is(
    fake: list[Any], stars: Stars, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = stars.candidates

    def stop(bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        if bits == 24:
            raise KeyboardInterrupt
        yield from original(bench, bits, seed)

    monkeypatch.setattr(stars, "candidates", stop)
    options = ("--dataset", "tree", "--output", str(tmp_path), "--methods", "graph", "-n", "16", "-n", "24")
    assert invoke(*options).exit_code == 130
    (row,) = json.loads((tmp_path / "bits-tree.json").read_text())["rows"]
    assert row["budget"] == 16
    monkeypatch.setattr(stars, "candidates", original)
    stars.asked.clear()
    assert invoke(*options).exit_code == 0
    assert stars.asked == [(24, 0)]


def test_all_that_is_there(fake: list[Any], stars: Stars) -> None:
    result = invoke("--methods", "graph", "-n", "16")
    assert result.exit_code == 0, result.output
    assert result.stderr == "Note: celeba10k left out: celeba10k.npz is not in the cache; encode it\n"
    assert [name for name, _ in fake] == list(families.NAMES)


def test_groups_of_methods(fake: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(family: Family, budgets: Any, plan: Plan, *others: Any) -> dict[str, Any]:
        asked.append((list(plan.methods), list(budgets)))
        return {"dataset": family.name, "rows": [], "origin": {"commit": None}}

    monkeypatch.setattr(bits, "run", run)
    for group, methods in (("ours", bits.OURS), ("peers", bits.PEERS), ("all", bits.METHODS)):
        assert invoke("--dataset", "tree", "--methods", group, "--json").exit_code == 0
        assert asked[-1] == (list(methods), list(bits.BUDGETS))


def test_another_file_in_the_place_of_a_table(fake: list[Any], stars: Stars, tmp_path: Path) -> None:
    for text in ("{", "[1]", '{"rows": [{"method": "umap", "budget": 3}], "n_items": 2}'):
        (tmp_path / "bits-tree.json").write_text(text)
        result = invoke("--dataset", "tree", "--methods", "graph", "-n", "16", "-o", str(tmp_path))
        assert result.exit_code == 1
        assert "bits-tree.json is no table of this version" in result.stderr
        assert (tmp_path / "bits-tree.json").read_text() == text
    assert stars.asked == []


def test_usage_errors(fake: list[Any]) -> None:
    for arguments in (["--dataset", "cifar"], ["--budget", "3"], ["--seeds", "0"], ["--methods", "graph,umap"]):
        assert invoke(*arguments).exit_code == 2
    assert fake == []
