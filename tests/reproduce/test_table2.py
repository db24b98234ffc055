"""The recommendation table on a tiny data set under the name of a large one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from typer.testing import CliRunner

from prodige import Graph, datasets
from prodige.baselines import Popularity
from prodige.cli import app
from prodige.cli.reproduce import Budget
from prodige.datasets import Interactions
from prodige.recommendation.interactions import Recommender, check_interactions
from prodige.recommendation.ranking import evaluate_ranking, sample_negatives, split_leave_one_out
from prodige.reproduce import table2
from prodige.reproduce.tables import Plan

runner = CliRunner()

CIRCLES = np.kron(np.eye(3), np.ones((20, 12))) * 0.5 + 0.03
TABLE = np.random.default_rng(0).random(CIRCLES.shape) < CIRCLES
TABLE[:, ::12] = True
TRAIN, HELD_OUT = split_leave_one_out(TABLE, random_state=0)
NEGATIVES = sample_negatives(TRAIN, HELD_OUT, 12, random_state=0)
COUNTED = TRAIN.copy()
COUNTED.data[::3] = 5
DATA = Interactions("pinterest", COUNTED, HELD_OUT, NEGATIVES, Path("pinterest.npz"))


STAR = Graph.from_edges(np.arange(95), np.full(95, 95), 0.5)


class Stub(Recommender):
    """Stands for the graph: notes what is asked of it, and scores by nothing."""

    asked: list[Any] = []  # noqa: RUF012 - shared on purpose

    def __init__(
        self, edges: str = "product", numbers_per_item: float = 4, random_state: Any = None, n_jobs: int | None = None
    ) -> None:
        self.edges = edges
        self.numbers_per_item = numbers_per_item
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, user_items: Any, y: Any = None) -> Stub:
        self._remember(check_interactions(user_items))
        self.asked.append((self.edges, self.numbers_per_item, self.random_state, self.n_jobs))
        self.graph_ = STAR
        self.numbers_per_item_ = self.numbers_per_item - 0.25
        return self

    def _scores(self, users: Any) -> Any:
        return np.zeros((users.size, self.n_items_))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a fraction of a second."""
    monkeypatch.setattr(Stub, "asked", [])
    monkeypatch.setitem(sys.modules, "prodige.recommendation.recommender", SimpleNamespace(GraphRecommender=Stub))
    parts = table2.make

    def short(*arguments: Any, **settings: Any) -> Any:
        model = parts(*arguments, **settings)
        lengths = {"n_epochs": 2, "n_iterations": 3}
        return model.set_params(**{name: value for name, value in lengths.items() if name in model.get_params()})

    monkeypatch.setattr(table2, "make", short)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path | None]]:
    """Put the tiny data in the place of the loader; return what was asked of it."""
    calls = []

    def load(name: str, data_dir: Path | None = None) -> Interactions:
        calls.append((name, data_dir))
        return DATA

    monkeypatch.setattr(datasets, "load_interactions", load)
    return calls


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, ["reproduce", "table2", "--jobs", "1", *arguments])


# -- the experiment --------------------------------------------------------------------------------------------------


def test_figures(tmp_path: Path) -> None:
    said: list[str] = []
    result = table2.run(DATA, 4, Plan(table2.METHODS, n_seeds=2, n_jobs=1, report=said.append))
    rows = {row["method"]: row for row in result["rows"]}
    assert tuple(rows) == table2.METHODS
    assert {name for name, row in rows.items() if len(row["figures"]) == 2} == table2.SEEDED
    assert {name for name, row in rows.items() if row["tried"]} == table2.GRIDS.keys()
    assert all(len(row["figures"]) == len(row["seconds"]) > 0 for row in rows.values())
    assert said[0] == "pinterest, 4 numbers: popularity, seed 0"
    assert "pinterest, 4 numbers: ALS, settings" in said
    target = evaluate_ranking(Popularity().fit(TABLE), TRAIN, HELD_OUT, NEGATIVES)
    assert rows["popularity"]["figures"][0].keys() == target.to_dict().keys()
    assert rows["als"]["paper"] == {"HR@5": 0.37005, "HR@10": 0.51815}
    assert rows["normal"]["paper"] == {"HR@5": 0.50213, "HR@10": 0.66192}
    assert rows["product"]["paper"] == rows["bpr"]["paper"] == rows["ease"]["paper"] == {}
    assert [rows[name]["numbers_per_item"] for name in ("svd", "als", "metric", "product")] == [4, 4, 4, 3.75]
    assert rows["bpr"]["numbers_per_item"] < 4 < rows["item-knn"]["numbers_per_item"]
    assert rows["svd"]["bits_per_item"] == 128
    STAR.save(tmp_path / "star")
    assert rows["product"]["bits_per_item"] == 8 * (tmp_path / "star").stat().st_size / 96
    assert (result["n_users"], result["n_items"], result["n_negatives"]) == (60, 36, 12)
    assert json.loads(json.dumps(result)) == result


def test_the_graph_is_asked_for_as_in_the_paper() -> None:
    table2.run(DATA, 8, Plan(["random", "bipartite", "normal", "product"], n_seeds=2, n_jobs=1))
    assert Stub.asked == [(edges, 8, seed, 1) for edges in table2.GRAPHS for seed in range(2)]


def test_figures_are_of_the_test_items_and_of_pairs_without_counts() -> None:
    (row,) = table2.run(DATA, 4, Plan(["item-knn"], n_jobs=1))["rows"]
    model = table2.make("item-knn", 4, 0, 1, **row["settings"]).fit(TRAIN.astype(bool))
    assert row["figures"] == [evaluate_ranking(model, TRAIN, HELD_OUT, NEGATIVES).to_dict()]


def test_settings_are_chosen_without_the_test_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is held out for the test, the same settings are chosen."""
    (row,) = table2.run(DATA, 4, Plan(["ease"], n_jobs=1))["rows"]
    other = Interactions("pinterest", COUNTED, HELD_OUT[::-1] * 0 + 35, NEGATIVES * 0 + 34, Path("pinterest.npz"))
    monkeypatch.setattr(table2, "fit", lambda *arguments: None)
    (again,) = table2.run(other, 4, Plan(["ease"], n_jobs=1))["rows"]
    assert again["tried"] == row["tried"]
    assert row["settings"] == max(row["tried"], key=lambda one: one["score"])["settings"]
    assert [one["settings"]["regularization"] for one in row["tried"]] == [1000, 5000, 20000]


def test_the_task_to_choose_by_is_made_of_the_training_data() -> None:
    task = table2.Task.of(DATA)
    assert task.train.dtype == bool
    inner = task.validation
    whole = task.train.toarray()
    assert not (inner.train.toarray() & ~whole).any()
    chosen = inner.held_out >= 0
    assert whole[chosen, inner.held_out[chosen]].all()
    assert not np.take_along_axis(whole[chosen], inner.negatives[chosen], axis=1).any()
    assert inner.train.nnz == task.train.nnz - chosen.sum()


def test_every_combination_is_tried() -> None:
    (row,) = table2.run(DATA, 4, Plan(["bpr"], n_jobs=1))["rows"]
    tried = {tuple(one["settings"].values()) for one in row["tried"]}
    assert tried == {(rate, ridge) for rate in (0.01, 0.02) for ridge in (0.003, 0.01)}


def test_without_implicit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "implicit"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "implicit", None)
    result = table2.run(DATA, 4, Plan(["als", "popularity"], n_seeds=2, n_jobs=1))
    row = result["rows"][-1]
    assert (row["method"], row["figures"]) == ("als", [])
    assert "prodige[recommend]" in row["note"]
    assert table2.cells(result)[-1][6:8] == ["0.37005", "0.51815"]
    assert "- ALS: left out:" in table2.markdown(result)


def test_a_part_of_ours_that_is_missing_is_no_reason_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prodige.recommendation.recommender", None)
    with pytest.raises(ModuleNotFoundError):
        table2.run(DATA, 4, Plan(["product"]))


@pytest.mark.parametrize(
    ("values", "words"),
    [((0.6, 0.6, 0.5), "is found here"), ((0.5, 0.6, 0.4), "is not found"), ((0.6, 0.5, 0.5), "is not found")],
)
def test_the_order_of_the_paper(values: tuple[float, ...], words: str) -> None:
    rows = [
        {"method": name, "figures": [{"sampled": {"HR@10": value}}]}
        for name, value in zip(("normal", "bipartite", "random"), values, strict=True)
    ]
    assert words in table2.check_order({"rows": rows})
    assert f"HR@10 {values[0]:.3f}, {values[1]:.3f}, {values[2]:.3f}" in table2.check_order({"rows": rows})
    assert table2.check_order({"rows": rows[:2]}) == ""


def test_unknown_methods() -> None:
    with pytest.raises(ValueError, match="got 'umap'"):
        table2.run(DATA, 4, Plan(["svd", "umap"]))


# -- the command -----------------------------------------------------------------------------------------------------


def test_budgets_and_names_are_those_of_the_paper() -> None:
    assert tuple(int(size.value) for size in Budget) == table2.BUDGETS
    for budget in table2.PAPER.values():
        assert tuple(budget) == table2.LENGTHS
        for figures in budget.values():
            assert set(figures) == set(table2.PAPER_NAMES.values())
    result = runner.invoke(app, ["reproduce", "table2", "--help"], env={"COLUMNS": "200"})
    assert all(method in result.output for method in table2.METHODS)


def test_json(fake: list[Any], tmp_path: Path) -> None:
    result = invoke("--budget", "8", "--data-dir", str(tmp_path), "--json", "--methods", "product, svd")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    (table,) = json.loads(result.stdout, parse_constant=pytest.fail)["results"]
    assert (table["dataset"], table["budget"]) == ("pinterest", 8)
    assert [row["method"] for row in table["rows"]] == ["svd", "product"]
    assert table["origin"]["command"] == "prodige reproduce table2 --budget 8 --seeds 1 --methods svd,product"
    assert fake == [("pinterest", tmp_path)]


def test_tables_and_files(fake: list[Any], tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "results"
    result = invoke("--seeds", "2", "--output", str(folder), "--methods", "svd,normal,bipartite,random")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    names = [f"table2-pinterest-{size}{suffix}" for size in (4, 8) for suffix in (".json", ".md")]
    assert sorted(os.listdir(folder)) == names
    for size in (4, 8):
        table = json.loads((folder / f"table2-pinterest-{size}.json").read_text())
        page = (folder / f"table2-pinterest-{size}.md").read_text()
        assert page == table2.markdown(table)
        assert table["origin"]["command"] in page
        assert str(tmp_path) not in page
        assert "the best of 3" in page
        assert "normal ≥ bipartite > random, is not found here" in page
        assert table2.title(table) in result.stdout
        for row in table2.cells(table):
            assert all(cell in result.stdout for cell in row[1:])  # none is cut off


def test_missing_data_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pinterest.npz").write_bytes(b"nonsense")
    result = invoke("--data-dir", str(tmp_path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "pinterest.npz" in result.stderr
    assert result.stderr.count("\n") == 1


def test_usage_errors(fake: list[Any]) -> None:
    for arguments in (["--budget", "5"], ["--seeds", "0"], ["--methods", "product,umap"]):
        assert invoke(*arguments).exit_code == 2
    assert fake == []


def test_counts_are_not_what_is_learned_from() -> None:
    assert csr_array(COUNTED).max() == 5
    (counted,) = table2.run(DATA, 4, Plan(["svd"], n_jobs=1))["rows"]
    plain = Interactions("pinterest", TRAIN, HELD_OUT, NEGATIVES, Path("pinterest.npz"))
    (uncounted,) = table2.run(plain, 4, Plan(["svd"], n_jobs=1))["rows"]
    assert counted["figures"] == uncounted["figures"]
