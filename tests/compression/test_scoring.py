from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from prodige import Graph
from prodige.compression import scoring
from prodige.compression.scoring import are_same, score_pairs, score_rows
from prodige.metric.space import Space

ROWS = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("unit", [1.0, 0.25])
def test_pairs_are_scored_in_the_unit_of_the_data(unit: float) -> None:
    graph = Graph.from_edges(range(30), [30] * 30, 1.5, n_items=30)
    error = (graph.distances() - Space(ROWS).distances(range(30))) ** 2
    assert score_pairs(graph, Space(ROWS, unit=unit)) == pytest.approx(-error.sum() / (30 * 29), rel=1e-5)


def test_of_many_items_some_are_scored_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.from_edges(range(30), [30] * 30, 1.5, n_items=30)
    monkeypatch.setattr(scoring, "_MOST_SCORED", 90)
    error = (graph.distances([0, 14, 29]) - Space(ROWS).distances([0, 14, 29])) ** 2
    assert score_pairs(graph, Space(ROWS)) == pytest.approx(-error.sum() / (3 * 29), rel=1e-5)


def test_rows_are_scored_in_the_unit_of_the_data() -> None:
    found, target = np.array([[8.0, 4.0]], np.float32), np.array([[1.0, 3.0]], np.float32)
    assert score_rows(found, target, 4.0) == -(4.0**2 + 8.0**2) / 2


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_the_same_but_for_rounding(kind: Any) -> None:
    assert are_same(kind(ROWS.astype(np.float32)), kind(ROWS))
    assert not are_same(kind(ROWS[::-1]), kind(ROWS))
    assert not are_same(kind(1.0001 * ROWS), kind(ROWS))
