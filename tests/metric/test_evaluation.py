"""The figures of a report, against plain NumPy and scipy on the whole matrix."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import spearmanr

from prodige import Graph
from prodige.baselines import PCA, Constant, Star
from prodige.metric import evaluation, space
from prodige.metric.evaluation import evaluate, evaluate_blocks, mean_squared_error, neighbor_recall
from prodige.metric.sources import as_source
from prodige.metric.space import Space

POINTS = np.random.default_rng(0).normal(size=(60, 5))
SPACE = Space(POINTS)
TRUE = SPACE.distances(np.arange(60))
OTHERS = ~np.eye(60, dtype=bool)


class Table:
    """A model that answers from a matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix: NDArray[np.float32] = np.asarray(matrix, dtype=np.float32)

    def distances(self, sources: Any, targets: Any = None) -> NDArray[np.float32]:
        return np.asarray(self.matrix[sources])


def noisy(seed: int = 1, noise: float = 0.3) -> NDArray[np.float32]:
    return np.abs(TRUE + np.random.default_rng(seed).normal(0, noise, TRUE.shape).astype(np.float32))


def test_figures_match_the_whole_matrix() -> None:
    given_ = noisy()
    report = evaluate(Table(given_), SPACE, k=5)
    d, D = given_[OTHERS].astype(np.float64), TRUE[OTHERS].astype(np.float64)
    assert report.mse == pytest.approx(np.mean((d - D) ** 2), rel=1e-6)
    assert report.relative_error == pytest.approx(np.mean(np.abs(d - D)) / D.mean(), rel=1e-6)
    assert report.variance == pytest.approx(D.var(), rel=1e-6)
    assert report.explained == pytest.approx(1 - np.mean((d - D) ** 2) / D.var(), rel=1e-6)
    assert report.spearman == pytest.approx(spearmanr(d, D).statistic, rel=1e-6)
    nearest = [np.argsort(matrix + np.diag(np.full(60, np.inf)), axis=1)[:, :5] for matrix in (TRUE, given_)]
    assert report.recall == pytest.approx(np.mean([len(set(a) & set(b)) / 5 for a, b in zip(*nearest, strict=True)]))
    assert (report.k, report.n_items, report.n_sources, report.n_pairs) == (5, 60, 60, 60 * 59)
    assert mean_squared_error(Table(given_), SPACE) == pytest.approx(report.mse, rel=1e-12)
    # Over all pairs, an item and itself among them, as the paper has it.
    assert report.paper_mse == pytest.approx(np.mean((np.where(OTHERS, given_, 0) - TRUE) ** 2), rel=1e-5)


def test_a_perfect_model() -> None:
    report = evaluate(Table(TRUE), SPACE)
    assert report.mse == report.relative_error == 0
    assert report.spearman == pytest.approx(1)
    assert report.recall == report.explained == 1


def test_graphs_and_baselines_are_models() -> None:
    i, j = np.triu_indices(60, 1)
    assert evaluate(Graph.from_edges(i, j, TRUE[i, j]), SPACE).mse == pytest.approx(0, abs=1e-10)
    hub = Graph.from_edges(np.arange(60), np.full(60, 60), Star().fit(POINTS).radius_, n_items=60)
    assert evaluate(hub, SPACE).mse == pytest.approx(-Star().fit(POINTS).score(POINTS), rel=1e-5)
    assert evaluate(PCA(5).fit(POINTS), SPACE).mse == pytest.approx(0, abs=1e-8)


def test_a_constant_explains_nothing_and_finds_neighbours_by_chance() -> None:
    report = evaluate(Constant().fit(POINTS), SPACE, k=7)
    assert report.mse == pytest.approx(report.variance, rel=1e-5)
    assert report.explained == pytest.approx(0, abs=1e-5)
    assert report.recall == pytest.approx(7 / 59)
    assert math.isnan(report.spearman)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate(Table(noisy()), SPACE, random_state=0).to_dict()
    monkeypatch.setattr(space, "_BLOCK", 60 * 7)
    assert evaluate(Table(noisy()), SPACE, random_state=0).to_dict() == pytest.approx(whole, rel=1e-9)


def test_a_sample_of_sources() -> None:
    model = Table(noisy())
    report = evaluate(model, SPACE, n_sources=20, random_state=0)
    assert (report.n_sources, report.n_pairs) == (20, 20 * 59)
    assert report == evaluate(model, SPACE, n_sources=20, random_state=0)
    assert report != evaluate(model, SPACE, n_sources=20, random_state=1)
    assert report.mse == pytest.approx(evaluate(model, SPACE).mse, rel=0.2)


def test_samples_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "ALL_SOURCES", 50)
    monkeypatch.setattr(evaluation, "SAMPLED_SOURCES", 30)
    monkeypatch.setattr(evaluation, "SPEARMAN_PAIRS", 900)
    monkeypatch.setattr(evaluation, "RECALL_SOURCES", 25)
    sizes: list[int] = []

    def spearman(true: NDArray[Any], given_: NDArray[Any]) -> float:
        sizes.append(true.size)
        assert (true > 0).all()  # never an item and itself
        return 0.5

    def recall(true: NDArray[Any], given_: NDArray[Any], k: int) -> NDArray[np.float64]:
        sizes.append(len(true))
        assert true.shape == given_.shape == (25, 59)
        assert (true > 0).all()
        return np.ones(len(true))

    monkeypatch.setattr(evaluation, "rank_correlation", spearman)
    monkeypatch.setattr(evaluation, "neighbor_recall", recall)
    assert evaluate(Table(noisy()), SPACE, random_state=0).n_sources == 30
    assert sizes == [25, 900]
    assert evaluate(Table(noisy()), SPACE, n_sources=60, random_state=0).n_sources == 60


def test_sampled_correlation_is_close() -> None:
    whole = evaluate(Table(noisy()), SPACE).spearman
    original = evaluation.SPEARMAN_PAIRS
    try:
        evaluation.SPEARMAN_PAIRS = 1200
        assert evaluate(Table(noisy()), SPACE, random_state=0).spearman == pytest.approx(whole, abs=0.03)
    finally:
        evaluation.SPEARMAN_PAIRS = original


def test_no_path() -> None:
    broken = noisy()
    broken[:30, 30:] = broken[30:, :30] = np.inf
    report = evaluate(Table(broken), SPACE)
    assert report.mse == report.relative_error == np.inf
    assert report.explained == -np.inf
    assert 0 < report.spearman < 1
    assert 0 < report.recall < 1
    # Two items in different parts.
    assert evaluate(Graph.from_edges([], [], [], n_vertices=2), Space([[0.0], [1.0]])).mse == np.inf


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 12), st.data())
def test_recall_is_the_mean_over_random_choices_among_ties(n: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    k = data.draw(st.integers(1, n))
    true = rng.integers(0, 5, n).astype(np.float32)
    model = rng.integers(0, 3, n).astype(np.float32)
    near = true <= np.sort(true)[k - 1]
    draws = [near[np.lexsort((rng.random(n), model))[:k]].mean() for _ in range(2000)]
    found = neighbor_recall(true[None], model[None], k)[0]
    assert found == pytest.approx(np.mean(draws), abs=0.06)
    assert 0 <= found <= 1


def test_all_distances_equal() -> None:
    report = evaluate(Table(np.ones((4, 4))), Space(np.ones((4, 2))))
    assert report.mse == 1
    assert report.variance == 0
    assert math.isnan(report.relative_error)
    assert math.isnan(report.explained)
    assert math.isnan(report.spearman)
    assert report.recall == 1  # all are equally near
    assert report.k == 3


def test_report_is_plain_data() -> None:
    report = evaluate(Table(noisy()), SPACE)
    figures = report.to_dict()
    assert figures.keys() == {field.name for field in dataclasses.fields(report)} | {"explained", "paper_mse"}
    assert json.loads(json.dumps(figures)) == figures
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.mse = 0.0  # type: ignore[misc]


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"shape \(60, 59\) where \(60, 60\) were asked for.*same 60 items"):
        evaluate(Table(TRUE[:, :59]), SPACE)
    bad = TRUE.copy()
    bad[3, 4] = np.nan
    with pytest.raises(ValueError, match="nan as the distance from item 3 to item 4"):
        evaluate(Table(bad), SPACE)
    with pytest.raises(ValueError, match="n_sources must be between 1 and 60, got 61"):
        evaluate(Table(TRUE), SPACE, n_sources=61)
    with pytest.raises(ValueError, match="k must be between 1"):
        evaluate(Table(TRUE), SPACE, k=0)
    for call in (evaluate, mean_squared_error):
        with pytest.raises(ValueError, match="2 items or more, got 1"):
            call(Table([[0.0]]), Space([[1.0]]))


@settings(max_examples=20, deadline=None)
@given(cut=st.integers(0, 60), k=st.integers(1, 70), ties=st.booleans(), seed=st.integers(0, 100))
def test_blocks_give_what_the_whole_gives(cut: int, k: int, ties: bool, seed: int) -> None:
    given_ = noisy(seed).round(1) if ties else noisy(seed)

    class Blocks(Table):
        def distances(self, sources: Any, targets: Any = None) -> NDArray[np.float32]:
            return np.asarray(self.matrix[np.ix_(sources, np.arange(60) if targets is None else targets)])

    source = as_source([POINTS[:cut], POINTS[cut:]])
    found = evaluate_blocks(Blocks(given_), source, SPACE, np.arange(60), k, 0)
    whole = evaluate(Blocks(given_), SPACE, k=k)
    for name, value in whole.to_dict().items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-4), name
    some = np.array([3, 17, 40])
    part = evaluate_blocks(Blocks(given_), source, Space(POINTS[some]), some, k, 0)
    assert part.n_pairs == 3 * 59
    residual = np.where(OTHERS, given_ - TRUE, 0)[some]
    assert part.mse == pytest.approx((residual**2).sum() / part.n_pairs, rel=1e-4)
