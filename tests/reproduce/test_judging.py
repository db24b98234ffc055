"""Figures of a model against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from prodige.baselines import MDS, Star
from prodige.metric.evaluation import evaluate, mean_squared_error
from prodige.metric.space import Space
from prodige.reproduce import judging
from prodige.reproduce.judging import Judge

POINTS = np.random.default_rng(4).normal(size=(120, 6))
SPACE = Space(POINTS)
TRUE = SPACE.distances(np.arange(120)).astype(np.float64)
APART = ~np.eye(120, dtype=bool)


class Noisy:
    """The true distances with noise."""

    def __init__(self, scale: float = 0.3) -> None:
        noise = np.random.default_rng(0).normal(scale=scale, size=TRUE.shape)
        self.block = np.maximum(TRUE + noise + noise.T, 0).astype(np.float32)

    def distances(self, sources: NDArray[np.int64], targets: None = None, /) -> NDArray[np.float32]:
        return self.block[sources]


def test_all_pairs() -> None:
    model = MDS(2, n_steps=30, random_state=0).fit(POINTS)
    figures, report = Judge(SPACE).examine(model), evaluate(model, SPACE)
    assert figures.mse == pytest.approx(mean_squared_error(model, SPACE))
    assert figures.share == pytest.approx(report.mse / report.variance)
    assert figures.recall == pytest.approx(report.recall)
    assert figures.spearman == pytest.approx(report.spearman)


def test_errors_by_distance() -> None:
    model = Noisy()
    deciles = Judge(SPACE).examine(model).deciles
    order = np.argsort(TRUE[APART], kind="stable")
    squares = ((model.block - TRUE)[APART] ** 2)[order]
    expected = [part.mean() for part in np.array_split(squares, 10)]
    np.testing.assert_allclose(deciles, expected, rtol=0.02)
    assert np.mean(deciles) == pytest.approx(squares.mean(), rel=0.01)


def test_a_glance_takes_some_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "N_SOURCES", 25)
    judge = Judge(SPACE, seed=3)
    assert judge.sources.size == np.unique(judge.sources).size == 25
    np.testing.assert_allclose(judge.true, TRUE[judge.sources], rtol=1e-5)
    model = Noisy()
    glance = judge.glance(model)
    rows = APART[judge.sources]
    assert glance.mse == pytest.approx(np.mean((model.block - TRUE)[judge.sources][rows] ** 2), rel=1e-5)
    nearest, found = (np.argsort(block + 1e9 * ~APART)[judge.sources, :10] for block in (TRUE, model.block))
    hits = [np.intersect1d(true, got).size / 10 for true, got in zip(nearest, found, strict=True)]
    assert glance.recall == pytest.approx(np.mean(hits), abs=1e-6)
    assert glance != Judge(SPACE, seed=4).glance(model)


def test_what_a_model_says_of_an_item_and_itself_does_not_count() -> None:
    model = Noisy()
    before = Judge(SPACE).glance(model), Judge(SPACE).examine(model)
    np.fill_diagonal(model.block, 7)
    assert (Judge(SPACE).glance(model), Judge(SPACE).examine(model)) == before


def test_few_items() -> None:
    points = np.array([[0.0], [1.0], [3.0]])
    figures = Judge(Space(points)).examine(Star().fit(points))
    assert figures.mse == pytest.approx(0, abs=1e-12)
    assert figures.recall == 1
    assert len(figures.deciles) == 10
    with pytest.raises(ValueError, match="2 items or more"):
        Judge(Space(points[:1]))
