"""Budgets in numbers and in bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prodige import DistanceCompressor, Graph
from prodige.compression.budget import Budget

X = np.random.default_rng(0).normal(size=(60, 5))


def test_allows() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], 1.0)
    assert Budget(numbers=graph.numbers_per_item).allows(graph)
    assert not Budget(numbers=graph.numbers_per_item - 0.01).allows(graph)
    assert Budget(bits=graph.bits_per_item).allows(graph)
    assert not Budget(bits=graph.bits_per_item - 0.01).allows(graph)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"numbers_per_item": 4, "bits_per_item": 64}, "numbers_per_item = 4 and bits_per_item = 64: give one"),
        ({"bits_per_item": 0}, "bits_per_item = 0 is too small"),
        ({"bits_per_item": -3.5}, "bits_per_item = -3.5 is too small"),
        ({"bits_per_item": "64"}, "bits_per_item must be a finite number, got '64'"),
        ({"bits_per_item": np.nan}, "bits_per_item must be a finite number, got nan"),
        ({"bits_per_item": True}, "bits_per_item must be a finite number, got True"),
        ({"numbers_per_item": np.inf}, "numbers_per_item must be a finite number, got inf"),
        ({"bits_per_item": 20}, "bits_per_item = 20 is too small: no connected graph of 60 different items"),
        ({"bits_per_item": 64, "method": "l0"}, "method 'l0' counts numbers"),
        ({"structure": "star"}, "structure must be 'auto', 'graph' or 'product', got 'star'"),
        ({"structure": "product", "n_hubs": 5}, "structure = 'product' contradicts n_hubs = 5"),
        ({"structure": "product", "method": "l0"}, "structure = 'product' contradicts method = 'l0'"),
        ({"objective": "both"}, "objective must be 'distances', 'neighbors' or a number from 0 to 1, got 'both'"),
        ({"objective": 1.5}, "objective must be .* got 1.5"),
        ({"objective": True}, "objective must be .* got True"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DistanceCompressor(**parameters).fit(X)


def test_metric_only_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="metric_only must be True or False, got 'yes'"):
        DistanceCompressor(metric_only="yes").fit(X)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_items", [3, 4, 7])
def test_a_handful_of_items(n_items: int) -> None:
    """A file of a few items is nearly all header: either it fits, or the error says what to do."""
    with pytest.raises(ValueError, match="count numbers_per_item"):
        DistanceCompressor(bits_per_item=64).fit(X[:n_items])
    exact = DistanceCompressor(bits_per_item=10_000).fit(X[:n_items])
    assert exact.structure_ == "complete"
    assert exact.score(X[:n_items]) == pytest.approx(0, abs=1e-9)


def test_all_alike() -> None:
    compressor = DistanceCompressor(bits_per_item=200, random_state=0).fit(np.full((300, 4), 2.0))
    assert not compressor.graph_.distances().any()
    assert compressor.graph_.bits_per_item <= 200


def test_copies_that_take_all_the_room() -> None:
    with pytest.raises(ValueError, match="bits_per_item = 20 is too small: no connected graph of 60 different items"):
        DistanceCompressor(bits_per_item=20).fit(np.repeat(X, 20, axis=0))
