"""Graphs in a given number of bits, measured on what comes back from a file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from prodige import Graph
from prodige.compression import selection
from prodige.graph import file
from prodige.reproduce import families, ours
from prodige.reproduce.judging import Judge
from prodige.reproduce.ours import Bits, OneGraph
from prodige.reproduce.peers import Bench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(selection, "N_STEPS", 24)
    monkeypatch.setattr(ours, "NUMBERS", (3.2, 4, 6))
    family = families.manifold(300)
    return Bench(family, Judge(family.space(1)), 64, n_jobs=1)


class Compressor:
    """Stands for what takes a budget in bits."""

    asked: list[dict[str, Any]]
    stopped_ = "finished"
    structure_ = "product"

    def __init__(self, **options: Any) -> None:
        self.asked.append(options)

    def fit(self, X: Any) -> Compressor:
        n = len(X)
        self.graph_ = Graph.from_edges(np.arange(n), np.full(n, n), 0.1 + np.arange(n) / 300, n + 1, n)
        return self


@pytest.fixture
def compressor(monkeypatch: pytest.MonkeyPatch) -> type[Compressor]:
    Compressor.asked = []
    monkeypatch.setattr(ours, "DistanceCompressor", Compressor)
    return Compressor


def test_one_graph(bench: Bench) -> None:
    found = list(OneGraph().candidates(bench, 40, 0))
    assert 1 <= len(found) <= len(ours.WEIGHT_BITS)
    for one in found:
        graph: Any = one.model
        weight_bits = int(one.split.split()[-2])
        assert one.bits_per_item == 8 * file.size(graph, weight_bits) / 300 <= 40
        assert np.unique(graph.edges.weight).size <= 2**weight_bits
    # It is fitted once for each size.
    n_fits = len(bench.kept)
    more = list(OneGraph().candidates(bench, 60, 0))
    assert max(one.bits_per_item for one in more) > max(one.bits_per_item for one in found)
    assert n_fits <= len(bench.kept) <= 3
    assert list(OneGraph().candidates(bench, 4, 0)) == []


def test_what_is_asked_of_the_compressor(bench: Bench, compressor: type[Compressor]) -> None:
    assert len(list(Bits(metric_only=False).candidates(bench, 24, 5))) == 1
    options: dict[str, Any] = {"metric": "euclidean", "random_state": 5, "n_jobs": 1}
    options |= {"bits_per_item": 24, "objective": 0.0, "metric_only": False}
    assert compressor.asked == [options]
    found = list(Bits(metric_only=False).candidates(bench, 64, 0))
    assert [one["objective"] for one in compressor.asked[1:]] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [one.split for one in found][1] == "product, objective 0.25"


def test_a_metric_is_fitted_anew_only_where_freedom_was_used(bench: Bench, compressor: type[Compressor]) -> None:
    list(Bits(metric_only=False).candidates(bench, 24, 0))
    assert len(list(Bits(metric_only=True).candidates(bench, 24, 0))) == 1
    assert [one["metric_only"] for one in compressor.asked] == [False]  # a graph is a metric
    bench.kept[Bits, 24, 0.0, 0].graph_ = SimpleNamespace(is_metric=False)
    (one,) = Bits(metric_only=True).candidates(bench, 24, 0)
    assert [one["metric_only"] for one in compressor.asked] == [False, True]
    assert isinstance(one.model, Graph)


def test_freedom_that_is_not_used_changes_nothing() -> None:
    family = families.manifold(200)
    free, bound = (
        ours.fitted(Bench(family, Judge(family.space(1)), 64, n_jobs=1), 0, bits_per_item=96, metric_only=metric_only)
        for metric_only in (False, True)
    )
    assert free.graph_ == bound.graph_


def test_the_file_is_measured(bench: Bench, compressor: type[Compressor], tmp_path: Path) -> None:
    (one,) = Bits(metric_only=True).candidates(bench, 24, 0)
    graph = Compressor().fit(bench.family.X).graph_
    graph.save(tmp_path / "x.prodige")
    assert one.bits_per_item == 8 * (tmp_path / "x.prodige").stat().st_size / 300
    np.testing.assert_array_equal(one.model.distances(np.arange(3)), graph.distances(np.arange(3)))


def test_an_interrupted_fit_is_no_row(
    bench: Bench, compressor: type[Compressor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressor, "stopped_", "interrupt")
    with pytest.raises(KeyboardInterrupt):
        list(Bits(metric_only=True).candidates(bench, 24, 0))
