"""Networks as arrays of few bits: what is decoded answers as what was encoded, up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from prodige import AnchorEmbedding, Graph, GraphEmbedding
from prodige.learning.anchors import FrozenAnchorEmbedding
from prodige.text.paper.codec import alphabetical, decode, encode, quantize
from prodige.text.paper.network import TextNetwork
from prodige.text.vocabulary import Vocabulary

WORDS = [f"w{number}" for number in np.random.RandomState(0).permutation(300)]
VOCABULARY = Vocabulary(WORDS)


def make_network() -> TextNetwork:
    X = np.random.RandomState(0).normal(size=(302, 4)).astype(np.float32)
    torch.manual_seed(0)
    embedding = AnchorEmbedding.from_vectors(X, 7, 9, padding_idx=0, n_steps=0, random_state=0, n_jobs=1)
    return TextNetwork(embedding, 3, n_filters=5, kernel_size=3, n_jobs=1)


@pytest.fixture(scope="module")
def network() -> TextNetwork:
    return make_network()


def test_round_trip(network: TextNetwork) -> None:
    decoded, vocabulary = decode(*encode(network, VOCABULARY), n_jobs=1)
    assert sorted(vocabulary.tokens) == sorted(VOCABULARY.tokens)
    assert vocabulary.tokens[2:] == tuple(sorted(WORDS))
    old, new = (torch.tensor([known.index(word) for word in WORDS]) for known in (VOCABULARY, vocabulary))
    with torch.no_grad():
        before, after = network.embedding(old), decoded.embedding(new)
        assert (after - before).abs().max() < 0.1  # of a spread of 1
        assert decoded.embedding(torch.tensor([0])).tolist() == [[0.0] * 7]
    encoded = (VOCABULARY.encode(["w1 w2 w3", "", "w9"]), vocabulary.encode(["w1 w2 w3", "", "w9"]))
    from prodige.text.paper.network import Corpus

    first, second = (one.predict(Corpus(*ids)) for one, ids in zip((network, decoded), encoded, strict=True))
    torch.testing.assert_close(second, first, rtol=0.05, atol=0.05)
    assert not any(parameter.requires_grad for parameter in decoded.parameters())


def test_encoding_again_changes_nothing(network: TextNetwork) -> None:
    """What is quantize is at whole steps already."""
    description, arrays = encode(network, VOCABULARY)
    again, others = encode(*decode(description, arrays, n_jobs=1))
    for name in ("tokens", "n_edges", "length", "between", "filters", "center"):
        np.testing.assert_array_equal(others[name], arrays[name])
    token = np.repeat(np.arange(302), arrays["n_edges"])
    edges = [sorted(zip(token, one["hub_low"], one["length"], strict=True)) for one in (arrays, others)]
    assert edges[0] == edges[1]  # those of one length may have changed places
    assert set(again) == set(description)


@pytest.mark.parametrize("n_steps", [127, 255])
def test_rounding_is_off_by_half_a_step(n_steps: int) -> None:
    values = 5 + np.random.RandomState(0).exponential(size=1000).astype(np.float32)
    codes, least, step = quantize(values, n_steps)
    assert (codes.min(), codes.max()) == (0, n_steps)
    assert np.abs(least + codes * step - values).max() <= step / 2 * (1 + 1e-4)


def test_rounding_of_what_is_all_the_same() -> None:
    assert quantize(np.full(3, 2.5, np.float32), 127)[1:] == (2.5, 0.0)
    assert quantize(np.zeros((0, 2), np.float32), 127)[1:] == (0.0, 0.0)


def test_alphabetical_keeps_padding_and_unknown_first() -> None:
    assert alphabetical(Vocabulary(["b", "!", "a"])).tolist() == [0, 1, 3, 4, 2]


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": np.frombuffer(b"\xff\xfe", np.uint8)},
        {"tokens": np.frombuffer(b"a\nb", np.uint8)},
        {"n_edges": np.ones(302, np.uint8)},
        {"n_edges": np.full(302, 2**40, np.int64)},
        {"n_edges": np.ones(301, np.uint8)},
        {"hub_high": np.ones(1, np.uint8)},
        {"between": np.zeros((1, 7), np.uint8)},
        {"between": np.zeros(7, np.uint8)},
        {"between": np.zeros((0, 0), np.uint8)},
        {"center": np.zeros(6, np.float32)},
        {"center": np.full(7, np.nan, np.float32)},
        {"filters": np.zeros((5, 6, 3), np.int8)},
        {"filters": np.zeros((5, 7, 0), np.int8)},
        {"filter_step": np.full(5, np.inf, np.float32)},
        {"filter_step": np.zeros(4, np.float32)},
        {"dense": np.zeros((3, 4), np.float32)},
        {"dense": np.zeros((3, 5))},
        {"dense_bias": np.zeros(2, np.float32)},
        {"dense_bias": np.array([0, 0, np.nan], np.float32)},
        {"dense_bias": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_arrays_that_do_not_fit_are_refused(network: TextNetwork, change: dict[str, Any]) -> None:
    description, arrays = encode(network, VOCABULARY)
    merged = {name: values for name, values in {**arrays, **change}.items() if values is not None}
    with pytest.raises((ValueError, KeyError, TypeError)):
        decode(description, merged, n_jobs=1)


@pytest.mark.parametrize(
    "change",
    [
        {"scale": float("inf")},
        {"scale": 0},
        {"scale": "wide"},
        {"length_step": -1.0},
        {"length_least": -1.0},
        {"between_least": float("nan")},
        {"between_step": None},
        {"unreachable": [1]},
    ],
)
def test_descriptions_that_make_no_sense_are_refused(network: TextNetwork, change: dict[str, Any]) -> None:
    description, arrays = encode(network, VOCABULARY)
    with pytest.raises((ValueError, KeyError, TypeError)):
        decode({**description, **change}, arrays, n_jobs=1)


def test_networks_that_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="must have the usual pattern to be saved"):
        encode(make_network(), Vocabulary(WORDS, pattern="(?:a|aa)+b"))
    with pytest.raises(TypeError, match="must be over a graph, got Embedding"):
        encode(TextNetwork(nn.Embedding(302, 4), 2), VOCABULARY)
    # An edge between two tokens, and one that is missing between a hub and an anchor, have no place in the file.
    words = Vocabulary(["a", "b"])
    for i, j in (([0, 1, 2, 3, 4, 0], [4, 4, 4, 4, 5, 1]), ([0, 1, 2, 3, 5], [4, 4, 5, 5, 6])):
        graph = Graph.from_edges(i, j, np.ones(len(i)), n_items=4)
        layer = FrozenAnchorEmbedding(graph, 1)
        with pytest.raises(ValueError, match="tokens on hubs, and every hub on every anchor"):
            encode(TextNetwork(layer, 2, n_jobs=1), words)
    several = AnchorEmbedding(GraphEmbedding([0, 1, 2], [2, 2, 3], n_items=2))
    with pytest.raises(ValueError, match="must have 4 tokens"):
        encode(TextNetwork(several, 2, n_jobs=1), words)
