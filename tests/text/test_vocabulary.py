"""Texts as token ids, against counting and looking up one token at a time."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige.text.vocabulary import PADDING, UNKNOWN, Vocabulary, check_texts, clean

words = st.text(alphabet="abcde", min_size=1, max_size=2)
documents = st.lists(st.lists(words, max_size=12).map(" ".join), min_size=1, max_size=6)


@given(texts=documents, max_size=st.integers(1, 6), min_count=st.integers(1, 3))
@settings(deadline=None)
def test_against_counting_by_hand(texts: list[str], max_size: int, min_count: int) -> None:
    counts = Counter(word for text in texts for word in text.split())
    expected = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
    expected = expected[:max_size]
    if not expected:
        with pytest.raises(ValueError, match="texts have no token to learn"):
            Vocabulary.build(texts, max_size, min_count)
        return
    vocabulary = Vocabulary.build(texts, max_size, min_count)
    assert vocabulary.tokens == ("<pad>", "<unk>", *expected)
    assert len(vocabulary) == len(expected) + 2
    assert vocabulary.counts.dtype == np.int64
    assert vocabulary.counts[2:].tolist() == [counts[word] for word in expected]
    assert vocabulary.counts[PADDING] == 0
    assert vocabulary.counts.sum() == counts.total()
    assert Vocabulary.build(texts[::-1], max_size, min_count) == vocabulary

    ids, offsets = vocabulary.encode(texts)
    assert ids.dtype == np.int32
    assert offsets.dtype == np.int64
    assert offsets.shape == (len(texts) + 1,)
    for text, begin, end in zip(texts, offsets, offsets[1:], strict=False):
        assert ids[begin:end].tolist() == [vocabulary.index(word) for word in text.split()]
    np.testing.assert_array_equal(np.bincount(ids, minlength=len(vocabulary)), vocabulary.counts)
    for number, token in enumerate(expected, start=2):
        assert vocabulary.index(token) == number
        assert token in vocabulary


@given(texts=documents, unknown=st.integers(0, 9))
@settings(deadline=None)
def test_json_and_back(texts: list[str], unknown: int) -> None:
    tokens = sorted({word for text in texts for word in text.split()})
    vocabulary = Vocabulary(np.array(tokens, dtype=str), range(len(tokens)), unknown)  # type: ignore[arg-type]
    again = Vocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict())))
    assert again == vocabulary
    assert hash(again) == hash(vocabulary)
    assert again != Vocabulary([*tokens, "more"], range(len(tokens) + 1), unknown)
    assert again != Vocabulary(tokens, range(len(tokens)), unknown + 1)
    assert again != Vocabulary(tokens, range(len(tokens)), unknown, pattern=r"\w+")
    assert again != tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I don't KNOW; you don’t.", ["i", "don't", "know", "you", "don't"]),
        ("the actors' 'quoted' words'", ["the", "actors", "quoted", "words"]),
        ("rock'n'roll o''clock", ["rock'n'roll", "o", "clock"]),
        ("Good.<br /><br />Bad?!", ["good", "bad", "?", "!"]),
        ("<A HREF='x'>link</A> <!-- note -->", ["link"]),
        ("a < b > c <3 <", ["a", "b", "c", "3"]),
        ("Tom &amp; Jerry &#39;s &lt;b&gt;", ["tom", "jerry", "s"]),
        ("_emphasis_ snake_case 7/10 1990s", ["emphasis", "snake", "case", "7", "10", "1990s"]),
        ("Ärger über Straße", ["ärger", "über", "straße"]),
        ("cafe\u0301 İzmir", ["cafe\u0301", "i\u0307zmir"]),
        ("Привет, МИР", ["привет", "мир"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("שָׁלוֹם عَرَبِيّ", ["שָׁלוֹם", "عَرَبِيّ"]),
        ("great😀😀!", ["great", "😀", "😀", "!"]),
        ("\ud800 lone\x00null", ["lone", "null"]),
        (" \n\t", []),
        ("", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert Vocabulary(["a"]).tokenize(text) == tokens
    ids, offsets = Vocabulary(["a"]).encode([text, text])
    assert offsets.tolist() == [0, len(tokens), 2 * len(tokens)]
    assert ids.tolist() == 2 * [2 if token == "a" else UNKNOWN for token in tokens]


def test_a_tag_that_never_ends_is_text() -> None:
    assert clean("<b " + "x" * 1000) == "<b " + "x" * 1000
    long = "word's " * 200_000 + "<b" * 100_000  # neither the pattern nor the tags may take quadratic time
    assert len(Vocabulary(["b"]).tokenize(long)) == 300_000


def test_special_tokens_in_texts() -> None:
    """They are unknown words like any other, and never padding."""
    anything = r"\S+"
    # As tags they go before the pattern sees them; written so that they do not, they are words.
    vocabulary = Vocabulary.build(["&amp;lt;pad&amp;gt; x x"], pattern=anything)
    assert vocabulary.tokens == ("<pad>", "<unk>", "x", "&lt;pad&gt;")
    assert vocabulary.index("<pad>") == UNKNOWN
    assert vocabulary.index("<unk>") == UNKNOWN
    assert "<pad>" not in vocabulary
    assert "<unk>" not in vocabulary
    assert 3 not in vocabulary


def test_other_patterns() -> None:
    assert Vocabulary.build(["a-b c"], pattern=r"\S+").tokens[2:] == ("a-b", "c")
    for pattern, message in [
        ("(a)", "no groups"),
        ("a*", "must not match nothing"),
        ("[", "must be a regular"),
        (3, "must be a regular"),
    ]:
        with pytest.raises(ValueError, match=message):
            Vocabulary.build(["a"], pattern=pattern)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pattern must be text"):
        Vocabulary(["a"], pattern=re.compile("a"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "texts", [("a b", "c"), np.array(["a b", "c"]), np.array(["a b", "c"], dtype=object), pd.Series(["a b", "c"])]
)
def test_every_kind_of_list(texts: Any) -> None:
    assert Vocabulary.build(texts).tokens[2:] == ("a", "b", "c")
    assert Vocabulary.build(iter(texts)).tokens[2:] == ("a", "b", "c")
    assert all(type(token) is str for token in Vocabulary.build(texts).tokens)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", TypeError, r"reviews must be a list of texts, got a single one, 'one text'; pass \[text\]"),
        (b"bytes", TypeError, "got a single one"),
        ("x" * 1000, TypeError, r"'x{39}\.\.\.; pass"),
        (3, TypeError, "must be a list of texts, got 3"),
        (None, TypeError, "must be a list of texts, got None"),
        ([], ValueError, "reviews must have at least one text, got none"),
        (["a", None], TypeError, r"reviews\[1\] = None is of type NoneType, not text; replace what is missing"),
        (["a", float("nan")], TypeError, r"reviews\[1\] = nan is of type float"),
        (["a", 3], TypeError, r"reviews\[1\] = 3 is of type int"),
        (["a", b"b"], TypeError, r"reviews\[1\] = b'b' is of type bytes, not text; decode it first"),
        ([["a"], ["b"]], TypeError, r"reviews\[0\] = \['a'\] is of type list"),
        (pd.DataFrame({"text": ["a"]}), ValueError, r"one-dimensional, got shape \(1, 1\); pass one column"),
        (np.array("a"), ValueError, r"one-dimensional, got shape \(\)"),
    ],
)
def test_texts_that_are_none(texts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_texts(texts, "reviews")
    with pytest.raises(error, match="texts"):
        Vocabulary.build(texts)
    with pytest.raises(error, match="texts"):
        Vocabulary(["a"]).encode(texts)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"tokens": "abc"}, TypeError, "tokens must be a list of text, got 'abc'"),
        ({"tokens": ["a", 1]}, TypeError, r"tokens\[1\] = 1 is of type int"),
        ({"tokens": ["a", "b", "a"]}, ValueError, r"tokens\[2\] = 'a' is also tokens\[0\]; tokens must be different"),
        ({"tokens": ["a", "<unk>"]}, ValueError, r"tokens\[1\] = '<unk>' stands for padding or unknown"),
        ({"tokens": ["a"], "counts": [1, 2]}, ValueError, r"counts must have 1 whole numbers.*\(2,\)"),
        ({"tokens": ["a"], "counts": [1.5]}, ValueError, "counts must have 1 whole numbers.*float64"),
        ({"tokens": ["a"], "counts": [-1]}, ValueError, r"counts\[0\] = -1 is below 0"),
        ({"tokens": [], "counts": [1]}, ValueError, "counts must have 0 whole numbers"),
        ({"tokens": ["a"], "unknown_count": -1}, ValueError, "unknown_count must be between"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Vocabulary(**arguments)


def test_bad_calls() -> None:
    with pytest.raises(ValueError, match="max_size must be between 1"):
        Vocabulary.build(["a"], max_size=0)
    with pytest.raises(ValueError, match="min_count must be between 1"):
        Vocabulary.build(["a"], min_count=0)
    with pytest.raises(ValueError, match="0 were found in 2 texts"):
        Vocabulary.build(["...", ""])
    with pytest.raises(TypeError, match="token must be text, got 3"):
        Vocabulary(["a"]).index(3)  # type: ignore[arg-type]
    for data in (None, {}, {"tokens": ["a"]}):
        with pytest.raises(ValueError, match="data must have the fields counts, pattern, tokens, unknown_count"):
            Vocabulary.from_dict(data)
    with pytest.raises(ValueError, match="read-only"):
        Vocabulary(["a"]).counts[0] = 1
