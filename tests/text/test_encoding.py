"""The packed graph: it comes back whole, takes few bytes, and nothing in it is trusted."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import random_graph
from prodige.text.encoding import decode, encode
from prodige.text.vertices import Vertices
from prodige.text.wordgraph import WordGraph


def assert_equal(one: WordGraph, other: WordGraph) -> None:
    assert one.vertices.words == other.vertices.words
    assert one.vertices.beginnings == other.vertices.beginnings
    for name in ("is_vertex", "pairs", "triples", "skips"):
        np.testing.assert_array_equal(getattr(one.vertices, name), getattr(other.vertices, name))
    for name in ("vertex", "score", "level", "levels", "bias"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def read(graph: WordGraph, data: bytes) -> WordGraph:
    """Return what bytes hold, told what a file says of the graph beside them."""
    return decode(data, graph.levels, graph.bias, len(graph.vertices.skips) > 0)


@pytest.mark.parametrize("n_scores", [1, 3, 40])
@pytest.mark.parametrize("n_vertices", [1, 10, 150])
def test_there_and_back(n_scores: int, n_vertices: int) -> None:
    graph = random_graph(n_scores, n_vertices, seed=n_vertices)
    data = encode(graph)
    assert_equal(read(graph, data), graph)
    assert encode(graph) == data


def test_no_vertices() -> None:
    none = np.zeros(0, np.int64)
    no_pairs = np.zeros((0, 2), np.int32)
    empty = Vertices([], np.zeros(0, bool), [], no_pairs, np.zeros((0, 3), np.int32), no_pairs)
    graph = WordGraph(empty, none, none, none, np.ones(1, np.float32), np.zeros(1, np.float32))
    assert_equal(read(graph, encode(graph)), graph)


def test_words_of_any_script() -> None:
    words = sorted(["été", "日本", "😀", "e\u0301", "a", "z" * 255], key=str.encode)
    no_pairs = np.zeros((0, 2), np.int32)
    vertices = Vertices(words, np.ones(6, bool), ["größe"], no_pairs, np.zeros((0, 3), np.int32), no_pairs)
    zeros = np.zeros(7, int)
    graph = WordGraph(vertices, np.arange(7), zeros, zeros, np.ones(1, np.float32), np.zeros(1, np.float32))
    assert_equal(read(graph, encode(graph)), graph)


@settings(max_examples=60)
@given(st.binary(max_size=200), st.sampled_from([1, 3]), st.booleans())
def test_noise(data: bytes, n_scores: int, has_skips: bool) -> None:
    """Whatever the bytes are: an error, or a graph that can be used."""
    with suppress(ValueError):
        graph = decode(data, np.arange(4, dtype=np.float32), np.zeros(n_scores, np.float32), has_skips)
        with suppress(ValueError):  # words may be there twice, which this finds
            assert len(graph.lookup) == len(graph.vertices)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_bit_that_is_wrong(place: int, bit: int) -> None:
    graph = random_graph(3, 40)
    data = bytearray(encode(graph))
    data[place % len(data)] ^= 1 << bit
    with suppress(ValueError):
        other = read(graph, bytes(data))
        assert other.level.max(initial=0) < graph.levels.size
        assert other.score.max(initial=0) < graph.bias.size


def test_a_stream_that_is_cut() -> None:
    graph = random_graph(1, 150)
    data = encode(graph)
    with pytest.raises(ValueError, match=r"more|end|order|exist"):
        read(graph, data[: len(data) // 3])
