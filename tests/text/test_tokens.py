"""Words found natively are those of the vocabulary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prodige.text.tokens import prepare, tokenize
from prodige.text.vocabulary import Vocabulary

WORDS = Vocabulary(["-"])

# Everything that is treated in a way of its own: case, marks, apostrophes, tags, signs, scripts, entities.
PIECES = [
    *"aZé0_ '’!?<>/-&;ßΣςİ̇K\n",
    "<br />",
    "</B>",
    "<3",
    "&amp;",
    "&lt;b&gt;",
    "हिंदी",
    "日本",
    "😀",
    "❶",
    "e\u0301",
]


def found(text: str) -> list[str]:
    words, ids, offsets = tokenize(prepare([text, "and another"]))
    assert [words[word] for word in ids[offsets[1] :]] == ["and", "another"]
    return [words[word] for word in ids[: offsets[1]]]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_pieces(text: str) -> None:
    assert found(text) == [word.replace("ς", "σ") for word in WORDS.tokenize(text)]


@given(st.text(max_size=50))
def test_any_text(text: str) -> None:
    assert found(text) == [word.replace("ς", "σ") for word in WORDS.tokenize(text)]


def test_half_a_pair_of_surrogates() -> None:
    assert found("fine\ud800film \udfff") == ["fine", "film"]


def test_scripts_without_spaces() -> None:
    """What stands between two signs that are no letters is one word."""
    assert found("これは映画です。面白い") == ["これは映画です", "面白い"]


def test_what_is_no_text() -> None:
    with pytest.raises(TypeError, match=r"texts\[1\] = 3 is of type int"):
        prepare(["a", 3])
