"""Packing: numbers of a few bits come back, and weights are as near as their bits allow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige import Graph
from prodige.graph import file
from prodige.graph.packing import Packing, Steps, pack_bits, unpack_bits, width
from strategies import Edges, graphs


@settings(max_examples=60)
@given(bits=st.integers(0, 31), data=st.data())
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
    # Of an item: two edges with 6 bits for the hub, 32 or 8 for the weight and 1 for being there, and 1 for the item.
    assert sizes[0] <= 5060 * 79 / 8 + 600
    assert sizes[1] <= 5060 * 31 / 8 + 600
    error = np.abs(Graph.load(tmp_path / "packed").distances([0]) - graph.distances([0])).max()
    assert error < 6 / 255


def test_graphs_without_edges_and_with_equal_weights() -> None:
    lonely = Graph.from_edges([], [], [], n_vertices=3)
    assert lonely.rounded(4) == lonely
    even = Graph.from_edges([0, 1], [1, 2], [2.5, 2.5])
    assert even.rounded(1) == even
    assert Packing.of(even.edges, 3, 3, 1).steps == Steps(1, 2.5, 2.5)


@given(edges=graphs(), bits=st.none() | st.integers(1, 16))
def test_edges_come_back(edges: Edges, bits: int | None) -> None:
    """Together or apart, with weights rounded or not."""
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    together = Packing.of(graph.edges, graph.n_vertices, graph.n_items, bits)
    is_local = graph.edges.j < graph.n_items
    j_bits, j_least = width(graph.edges.j[~is_local])
    apart = replace(together, n_local=int(is_local.sum()), j_bits=j_bits, j_least=max(j_least, graph.n_items))
    for packing in (together, apart):
        arrays = packing.pack(graph.edges)
        assert [len(data) for data in arrays] == list(packing.lengths().values())
        i, j, weight = packing.unpack([np.frombuffer(data, np.uint8) for data in arrays])
        np.testing.assert_array_equal(i, graph.edges.i)
        np.testing.assert_array_equal(j, graph.edges.j)
        np.testing.assert_array_equal(weight, graph.edges.weight if bits is None else graph.rounded(bits).edges.weight)
        assert Packing.from_fields(packing.fields(), graph.n_vertices, graph.n_items, graph.n_edges) == packing


@pytest.mark.parametrize("n_local", [0, 1, 40, 400, 4000])
def test_a_few_edges_between_items_do_not_make_others_long(n_local: int) -> None:
    """Nor do many: an edge takes the bits of its larger end, and not many more than its smaller one tells."""
    rng = np.random.RandomState(0)
    n_items, n_hubs = 5000, 60
    items = np.repeat(np.arange(n_items), 2)
    hubs = n_items + np.argsort(rng.uniform(size=(n_items, n_hubs)), axis=1)[:, :2].ravel()
    pairs = np.unique(np.sort(rng.randint(n_items, size=(2, n_local)), axis=0), axis=1)
    pairs = pairs[:, pairs[0] < pairs[1]]
    ends = np.r_[items, pairs[0]], np.r_[hubs, pairs[1]]
    graph = Graph.from_edges(*ends, rng.uniform(size=ends[0].size), n_vertices=n_items + n_hubs, n_items=n_items)
    n = pairs.shape[1]
    needed = 10_000 * (1 + 6 + 8) + n_items + n_hubs + n * ((np.log2(n_items / n) if n else 0) + 2 + 13 + 8)
    assert 8 * file.size(graph, bits=8) <= needed + 8 * 700


def test_weights_that_are_on_few_steps_take_few_bits(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    graph = Graph.from_edges(range(3000), range(1, 3001), rng.uniform(1, 2, size=3000))
    assert Packing.of(graph.edges, 3001, 3001, None).steps is None
    for bits in (1, 3, 8, 16):
        rounded = graph.rounded(bits)
        assert Packing.of(rounded.edges, 3001, 3001, None).steps == Steps.of(graph.edges.weight, bits)
        assert file.size(rounded) == file.size(graph, bits)
        rounded.save(tmp_path / "rounded")
        graph.save(tmp_path / "graph", bits=bits)
        assert (tmp_path / "rounded").read_bytes() == (tmp_path / "graph").read_bytes()
        assert rounded.bits_per_item == 8 * file.size(graph, bits) / 3001


@pytest.mark.parametrize("bits", [0, 17, -1, 2**40])
def test_bits_that_make_no_sense(tmp_path: Path, bits: int) -> None:
    graph = Graph.from_edges([0], [1], [1.0])
    with pytest.raises(ValueError, match="bits must be between 1 and 16"):
        graph.save(tmp_path / "a.prodige", bits=bits)
    with pytest.raises(ValueError, match="bits must be between 1 and 16"):
        graph.rounded(bits)
    assert not (tmp_path / "a.prodige").exists()
