"""Factors of two sides: distances against a search over their own edges, and every kind of bad input."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from files import CLAIMS, HUGE, assemble, entry, refused
from prodige import Graph, ProductGraph
from prodige.graph import BipartiteFactor, Grid, container
from prodige.graph.bipartite import count_first, shift_of


@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4)),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    ties=st.booleans(),
)
def test_distances_are_those_of_the_graph(shape: tuple[int, int, int], seed: int, scale: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    n_first, n_second, k = shape
    first, second = (
        (rng.integers(-2, 3, (n, k)) if ties else rng.normal(size=(n, k))) * scale for n in (n_first, n_second)
    )
    factor = BipartiteFactor(first, second)
    distances = factor.distances()
    assert distances.dtype == np.float32
    assert (distances == distances.T).all()
    assert (np.diagonal(distances) == 0).all()
    products = factor.first.astype(float) @ factor.second.astype(float).T
    edges = factor.edges()
    np.testing.assert_allclose(edges, factor.shift - products, rtol=1e-6, atol=1e-6 * scale**2)
    assert edges.min() >= 0
    assert edges.max() <= 3 * edges.min() * (1 + 1e-6)
    assert distances.max() <= factor.reach * (1 + 1e-6)
    rows, columns = np.indices(edges.shape).reshape(2, -1)
    weights = csr_array((edges.ravel().astype(float), (rows, n_first + columns)), shape=(factor.n_hubs, factor.n_hubs))
    truth = dijkstra(weights, directed=False)
    np.testing.assert_allclose(distances, truth, rtol=1e-5, atol=1e-6 * scale**2)
    np.testing.assert_allclose(factor.graph.distances(), distances, rtol=1e-5, atol=1e-6 * scale**2)
    for g in range(factor.n_hubs):
        for h in range(factor.n_hubs):
            path = factor.path(g, h)
            assert (path[0], path[-1], len(path) <= 3) == (g, h, True)
            steps = [distances[a, b] for a, b in itertools.pairwise(path)]
            assert all((a < n_first) != (b < n_first) for a, b in itertools.pairwise(path))
            np.testing.assert_allclose(sum(steps), distances[g, h], rtol=1e-6)


def test_objects() -> None:
    words = [[1.0, 2.0], [0.0, 1.0]], [[0.5, 0.25], [1.0, 0.0], [0.0, 0.0]]
    grids = Grid.round(words[0], 3), Grid.round(words[1], 8)
    plain, rounded = BipartiteFactor(*words), BipartiteFactor(*grids)
    for factor in (plain, rounded):
        again = pickle.loads(pickle.dumps(factor))
        assert (again, hash(again)) == (factor, hash(factor))
        assert copy.copy(factor) is copy.deepcopy(factor) is factor
    assert plain not in (rounded, BipartiteFactor(words[0], [[0.5, 0.25]]), "factor")
    assert (plain.n_hubs, plain.n_first, plain.n_second, plain.n_dimensions, plain.n_numbers) == (5, 2, 3, 2, 10)
    assert rounded.grids == grids
    assert plain.grids == (None, None)
    assert repr(rounded) == "BipartiteFactor(n_first=2, n_second=3, n_dimensions=2, first_bits=3, second_bits=8)"
    with pytest.raises(ValueError, match="read-only"):
        plain.first[0] = 1


@pytest.mark.parametrize(
    ("first", "second", "error", "message"),
    [
        ([0.0], [[1.0]], ValueError, r"first must have the shape \[hubs, coordinates\], got \(1,\)"),
        ([[0.0]], np.zeros((0, 1)), ValueError, r"second must have the shape .*, got \(0, 1\)"),
        ([[0.0]], [[0.0, 1.0]], ValueError, "first has words of 1 coordinates and second of 2"),
        ([[0.0]], [[np.nan]], ValueError, r"second\[0, 0\] = nan"),
        ([["a"]], [[0.0]], TypeError, "first must hold real numbers"),
        (np.zeros((4000, 1)), np.zeros((97, 1)), ValueError, "have 4097 hubs; at most 4096"),
        ([[1e30]], [[1e30]], ValueError, "make distances of .*, which float32 cannot hold"),
        (Grid.round([0.0], 2), [[0.0]], ValueError, r"first must have the shape"),
    ],
)
def test_bad_words(first: Any, second: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BipartiteFactor(first, second)


def test_shift() -> None:
    for least, greatest in ((-3.0, 5.0), (-3.0, -2.0), (1.0, 1.0), (0.0, 0.0)):
        shift = shift_of(least, greatest)
        assert shift - greatest >= 0
        assert shift - least <= 3 * (shift - greatest)


# -- products of two sides, and their files ---------------------------------------------------------------------------


def sided() -> ProductGraph:
    """Two users and three items."""
    factor = BipartiteFactor(Grid([[0], [1], [3]], 2, -1.0, 0.5), [[1.0], [-1.0]])
    codes = [[2], [0], [3], [4], [3]]
    return ProductGraph.from_factors([factor], codes, Grid([0, 0, 0, 3, 1], 2, 0.0, 0.25), power=1, gauge=1)


def sided_parts() -> tuple[dict[str, Any], bytes]:
    """Return the header and the body of that product, made by hand."""
    content = {
        "n_items": 5,
        "n_vertices": 5,
        "power": 1.0,
        "gauge": {"name": "power", "exponent": 1.0},
        "length_bits": 2,
        "factors": [[3, 2, 1, 2, 32]],
        "n_first": 2,
    }
    arrays = [entry("codes", "uint8", [2], 2), entry("positions", "uint8", [17], 17), entry("lengths", "uint8", [9], 9)]
    body = bytes([0b0010, 0b010]) + struct.pack("<2f", -1, 0.5) + bytes([0b110100]) + struct.pack("<2f", 1, -1)
    body += struct.pack("<2f", 0, 0.25) + bytes([0b011100])
    return {"kind": "product", "content": content, "arrays": arrays, "metadata": {}}, body


def test_bytes_are_as_documented(tmp_path: Path) -> None:
    path = tmp_path / "sided.prodige"
    sided().save(path)
    data = path.read_bytes()
    assert struct.unpack("<II", data[8:16])[0] == 4
    length = struct.unpack("<I", data[12:16])[0]
    header, body = sided_parts()
    assert json.loads(data[16 : 16 + length]) == header
    assert data[16 + length : -32] == body
    assert ProductGraph.load(path) == sided()
    assert container.describe(path).version == 4


def test_what_counts() -> None:
    product = sided()
    assert product.n_first == 2
    assert product.numbers_per_item == (5 + 3 + 5) / 5  # codes, lengths of items, words
    apart = ProductGraph.from_factors(product.factors, product.codes[::-1], [0.0] * 5, power=1, gauge=1)
    assert apart.n_first == 0
    assert apart.numbers_per_item == (5 + 5 + 5) / 5
    idle = BipartiteFactor([[1.0]], [[1.0], [2.0]])
    assert count_first([idle], np.array([[0], [1]], np.int32), np.zeros(2, np.float32)) == 0


# With 1 in place of 2 it is another product of the same size.
@pytest.mark.parametrize("n_first", [*(claim for claim in CLAIMS if claim not in (1, 2)), 0, 3, 4, 5, None])
def test_sides_that_lie_are_refused(tmp_path: Path, n_first: Any) -> None:
    header, body = sided_parts()
    content = header["content"] | {"n_first": n_first}
    refused(tmp_path / "x", assemble(header | {"content": content}, body), "do not fit together", ProductGraph.load)


@pytest.mark.parametrize(
    ("position", "value", "match"),
    [(0, 0b0011, "codes of the first side go up to 3, past its 3 hubs"), (0, 0b110010, "bits behind")],
)
def test_bits_that_lie_are_refused(tmp_path: Path, position: int, value: int, match: str) -> None:
    header, body = sided_parts()
    lie = body[:position] + bytes([value]) + body[position + 1 :]
    refused(tmp_path / "x", assemble(header, lie), match, ProductGraph.load)


def test_lengths_of_the_first_side_are_none(tmp_path: Path) -> None:
    header, body = sided_parts()
    lie = body[:19] + struct.pack("<f", 0.5) + body[23:]
    refused(tmp_path / "x", assemble(header, lie), "those of the first side are 0", ProductGraph.load)


@pytest.mark.parametrize(
    "row", [[3, 2, 1, 2], [3, 2, 1, 2, 2, 2], [3, 2, 0, 2, 32], [HUGE, 2, 1, 2, 32], [0, 2, 1, 2, 32]]
)
def test_factors_that_lie_are_refused(tmp_path: Path, row: list[int]) -> None:
    header, body = sided_parts()
    content = header["content"] | {"factors": [row]}
    refused(tmp_path / "x", assemble(header | {"content": content}, body), "do not fit together", ProductGraph.load)


def test_vertices_of_the_first_side_take_room(tmp_path: Path) -> None:
    """Where one hub is all there is, a code takes no bits: such vertices would come for nothing."""
    n = 2**31 - 2
    content = {
        "n_items": n,
        "n_vertices": n,
        "power": 1.0,
        "gauge": {"name": "power", "exponent": 1.0},
        "length_bits": 1,
        "factors": [[1, 2, 1, 1, 1]],
        "n_first": n - 1,
    }
    sizes = {"codes": 1, "positions": 18, "lengths": 9}
    rows = [entry(name, "uint8", [size], size) for name, size in sizes.items()]
    header = {"kind": "product", "content": content, "arrays": rows, "metadata": {}}
    refused(tmp_path / "x", assemble(header, bytes(28)), "which says nothing", ProductGraph.load)
    content |= {
        "n_items": 2**20,
        "n_vertices": 2**20,
        "n_first": 2**20 - 1,
        "factors": [[2, 2, 1, 1, 1]] + [[1, 2, 1, 1, 1]] * 9,
    }
    sizes = {"codes": 2**17 + 10, "positions": 180, "lengths": 9}
    rows = [entry(name, "uint8", [size], size) for name, size in sizes.items()]
    header = {"kind": "product", "content": content, "arrays": rows, "metadata": {}}
    refused(tmp_path / "x", assemble(header, bytes(sum(sizes.values()))), "which says nothing", ProductGraph.load)


def test_a_file_without_sides_is_of_the_version_before(tmp_path: Path) -> None:
    Graph.from_edges([0], [1], [1.0]).save(tmp_path / "graph")
    assert container.describe(tmp_path / "graph").version == 3
