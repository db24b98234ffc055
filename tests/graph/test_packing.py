"""Packing: numbers of a few bits come back, and weights are as near as their bits allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige import Graph
from prodige.graph.packing import Packing, pack_bits, unpack_bits


@settings(max_examples=60)
@given(bits=st.integers(1, 31), data=st.data())
def test_bits_come_back(bits: int, data: Any) -> None:
    values = np.array(data.draw(st.lists(st.integers(0, 2**bits - 1), max_size=40)), dtype=np.int64)
    packed = pack_bits(values, bits)
    assert len(packed) == (values.size * bits + 7) // 8
    number = sum(int(value) << (bits * place) for place, value in enumerate(values))  # what it says, as one number
    assert int.from_bytes(packed, "little") == number
    np.testing.assert_array_equal(unpack_bits(np.frombuffer(packed, np.uint8), bits, values.size), values)


@pytest.mark.parametrize("bits", [1, 3, 8, 13])
def test_more_than_a_block(bits: int) -> None:
    values = np.random.RandomState(0).randint(2**bits, size=2**16 + 1001)
    packed = np.frombuffer(pack_bits(values, bits), np.uint8)
    np.testing.assert_array_equal(unpack_bits(packed, bits, values.size), values)


@settings(max_examples=60)
@given(
    bits=st.integers(1, 16),
    weights=st.lists(st.floats(0, 2.0**100, width=32), min_size=1, max_size=20),
)
def test_weights_are_off_by_half_a_step_and_rounding_again_changes_nothing(bits: int, weights: list[float]) -> None:
    n = len(weights)
    graph = Graph.from_edges(range(n), range(1, n + 1), weights)
    rounded = graph.rounded(bits)
    before, after = graph.edges.weight.astype(float), rounded.edges.weight.astype(float)
    step = (before.max() - before.min()) / (2**bits - 1)
    assert np.abs(before - after).max() <= step / 2 + 1e-6 * before.max()
    assert (after.min(), after.max()) == (before.min(), before.max())
    assert rounded.rounded(bits) == rounded
    assert (rounded.n_vertices, rounded.n_items) == (graph.n_vertices, graph.n_items)


def test_a_hub_graph_takes_a_fraction_of_its_size(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    items = np.repeat(np.arange(5000), 2)
    hubs = 5000 + np.argsort(rng.uniform(size=(5000, 60)), axis=1)[:, :2].ravel()
    graph = Graph.from_edges(items, hubs, rng.uniform(size=10_000), n_vertices=5060, n_items=5000)
    graph.save(tmp_path / "exact")
    graph.save(tmp_path / "packed", bits=8)
    sizes = [(tmp_path / name).stat().st_size for name in ("exact", "packed")]
    # Of an item: two edges with 6 bits for the hub, 8 for the weight and 1 for being there, and 1 for the item.
    assert sizes[1] <= 5060 * 31 / 8 + 600
    assert sizes[1] < 0.2 * sizes[0]
    error = np.abs(Graph.load(tmp_path / "packed").distances([0]) - graph.distances([0])).max()
    assert error < 6 / 255


def test_graphs_without_edges_and_with_equal_weights() -> None:
    lonely = Graph.from_edges([], [], [], n_vertices=3)
    assert lonely.rounded(4) == lonely
    even = Graph.from_edges([0, 1], [1, 2], [2.5, 2.5])
    assert even.rounded(1) == even
    packing = Packing.of(even.edges, 3, 1)
    assert packing.greatest == packing.least == 2.5


@pytest.mark.parametrize("bits", [0, 17, -1, 2**40])
def test_bits_that_make_no_sense(tmp_path: Path, bits: int) -> None:
    graph = Graph.from_edges([0], [1], [1.0])
    with pytest.raises(ValueError, match="bits must be between 1 and 16"):
        graph.save(tmp_path / "a.prodige", bits=bits)
    with pytest.raises(ValueError, match="bits must be between 1 and 16"):
        graph.rounded(bits)
    assert not (tmp_path / "a.prodige").exists()
