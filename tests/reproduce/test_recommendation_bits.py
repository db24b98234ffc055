"""Recommendation at equal bits on a tiny data set under the name of a large one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from prodige import datasets
from prodige.cli import app
from prodige.datasets import Interactions
from prodige.recommendation.ranking import sample_negatives, split_leave_one_out
from prodige.reproduce import recommendation_bits as experiment
from prodige.reproduce import recommenders
from prodige.reproduce.recommenders import Answer, Bench, Coded, Popular, Pruned, Rounded
from prodige.reproduce.tables import Plan
from tastes import tastes

runner = CliRunner()
TRAIN, HELD_OUT = split_leave_one_out(tastes(200, 80), random_state=0)
DATA = Interactions("lastfm", TRAIN, HELD_OUT, sample_negatives(TRAIN, HELD_OUT, 20, random_state=0), Path("l.npz"))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids of one point."""
    for kind, grid in recommenders.GRIDS.items():
        monkeypatch.setitem(recommenders.GRIDS, kind, {name: values[1:2] for name, values in grid.items()})
    monkeypatch.setattr(experiment, "commit", lambda: "abc")


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench.of(experiment.stage_of(DATA, 1))


@pytest.mark.parametrize(
    "method", [Rounded("ials"), Rounded("svd"), Coded("ials"), Pruned("ease"), Pruned("item-knn"), Popular()]
)
def test_splits_keep_to_the_budget(bench: Bench, method: Any) -> None:
    splits = list(method.splits(bench, 48))
    assert splits
    for split in splits:
        answer: Answer = method.answer(bench, bench.whole, split, 0)
        assert 0 < answer.bits_per_item <= 48
        assert answer.model.scores(np.array([3, 0])).shape == (2, 80)
    if not isinstance(method, Popular):
        figures = [bench.whole.judge(method.answer(bench, bench.whole, split, 0).model)["HR@10"] for split in splits]
        assert max(figures) > 0.6


def test_more_bits_are_nearer_to_the_vectors(bench: Bench) -> None:
    users, items = bench.whole.directions("ials", 16, 0, bench.chosen("ials"))
    errors = []
    for bits in (2, 4, 8):
        answer = Rounded("ials").answer(bench, bench.whole, {"bits": bits, "coordinates": 16, "rank": 16}, 0)
        errors.append(np.abs(answer.model.scores(np.arange(200)) - users @ items.T).mean())
    assert errors[0] > 2 * errors[1] > 8 * errors[2]


def test_errors_are_those_of_users(bench: Bench) -> None:
    figures = bench.whole.judge(Popular().answer(bench, bench.whole, {}, 0).model)
    n = np.count_nonzero(HELD_OUT >= 0)
    n_hits = round(figures["HR@10"] * int(n))
    hits = np.r_[np.ones(n_hits), np.zeros(n - n_hits)]
    assert figures["HR@10 error"] == pytest.approx(hits.std(ddof=1) / np.sqrt(n))


def test_choices_never_see_the_test_items() -> None:
    other = Interactions("lastfm", TRAIN, HELD_OUT * 0 - 1, DATA.negatives, Path("l.npz"))
    first, second = (Bench.of(experiment.stage_of(data, 1)) for data in (DATA, other))
    assert experiment.glance(first, Rounded("svd"), 32) == experiment.glance(second, Rounded("svd"), 32)


def test_the_best_split_is_shown_and_rows_are_kept() -> None:
    kept: list[Any] = []
    plan = Plan(["svd", "popularity"], n_jobs=1)
    result = experiment.run(DATA, [32, 64], plan, keep=kept.append)
    assert [len(one["rows"]) for one in kept] == [1, 2, 3, 4]
    figures = result["rows"][0]["figures"][0]
    best = max(figures["tried"], key=lambda one: one["quality"])
    assert figures["split"] == best["split"]
    assert json.loads(json.dumps(result)) == result
    again = experiment.run(DATA, [32, 64], plan, known=result, keep=lambda _: pytest.fail("made again"))
    assert again["rows"] == result["rows"]
    page = experiment.markdown(result)
    assert f"{figures['HR@5']:.4f} ± {figures['HR@5 error']:.4f}" in page
    assert "svd: weight 0.5" in page


def test_nothing_fits() -> None:
    result = experiment.run(DATA, [1], Plan(["svd"], n_jobs=1))
    assert result["rows"][0]["note"] == "nothing fits into 1 bits"
    assert "SVD rounded: nothing fits into 1 bits" in experiment.notes(result)
    with pytest.raises(ValueError, match="nothing to draw"):
        experiment.figure(result)


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def load(name: str, data_dir: Path | None = None) -> Interactions:
        if name == "pinterest":
            raise FileNotFoundError("pinterest.npz is not there")
        return DATA

    monkeypatch.setattr(datasets, "load_interactions", load)
    arguments = ["reproduce", "recommendation-bits", "--jobs", "1", "--budget", "128", "-o", str(tmp_path)]
    result = runner.invoke(app, [*arguments, "--methods", "product,items,svd,popularity"])
    assert result.exit_code == 0, result.output
    assert "pinterest left out" in result.stderr
    names = [f"recommendation-bits-lastfm{suffix}" for suffix in (".json", ".md", ".png")]
    assert sorted(os.listdir(tmp_path)) == names
    table = json.loads((tmp_path / names[0]).read_text())
    rows = {row["method"]: row for row in table["rows"]}
    assert list(rows) == ["product", "svd", "popularity", "items"]
    assert all(row["figures"][0]["bits_per_item"] <= 128 for row in rows.values())
    assert rows["product"]["figures"][0]["HR@10"] > rows["popularity"]["figures"][0]["HR@10"]
    assert runner.invoke(app, [*arguments, "--methods", "umap"]).exit_code == 2
