"""Candidates, against n-grams of lists."""

from __future__ import annotations

from collections import Counter

import pytest

from corpora import draw
from prodige.text.ngrams import ANY, BEGINNING, Candidates, Orders
from prodige.text.tokens import prepare


def counted(texts: list[str], min_texts: int) -> dict[str, int]:
    """How many texts have each feature; parts that are rare make what contains them rare."""
    found: Counter[str] = Counter()
    for text in texts:
        words = text.split()
        found.update(
            {" ".join(words[place : place + n]) for n in (1, 2, 3) for place in range(len(words) - n + 1)}
            | {word[:BEGINNING] + "-" for word in words if len(word) > BEGINNING}
            | {f"{first} {ANY} {second}" for first, second in zip(words, words[2:], strict=False)}
        )
    return {name: count for name, count in found.items() if count >= min_texts}


@pytest.mark.parametrize("min_texts", [1, 2, 5])
def test_against_lists(min_texts: int) -> None:
    texts, _ = draw(60)
    candidates = Candidates.find(prepare(texts), min_texts)
    features = candidates.features
    names = candidates.names(range(features.n_columns))
    assert dict(zip(names, features.frequencies.tolist(), strict=True)) == counted(texts, min_texts)
    own = {names[column] for column in features.columns[features.offsets[3] : features.offsets[4]]}
    assert own == set(counted([texts[3]], 1)) & set(names)


@pytest.mark.parametrize("orders", [Orders(1, False, False), Orders(2, True, False), Orders(3, False, True)])
def test_kinds(orders: Orders) -> None:
    candidates = Candidates.find(["a good enjoyable film", "a good enjoyable film"])
    names = candidates.names(candidates.columns(orders))
    assert max(len(name.split()) for name in names) == orders.longest
    assert ("enjoy-" in names) == orders.beginnings
    assert (f"a {ANY} enjoyable" in names) == orders.skips


def test_beginnings_of_rare_words() -> None:
    candidates = Candidates.find(["enjoying", "enjoyable", "enjoy"], 2)
    assert candidates.names(range(candidates.features.n_columns)) == ["enjoy-"]


def test_words_that_are_too_long() -> None:
    candidates = Candidates.find(["a " + "x" * 300 + " b", "é" * 130 + " a b"])
    assert candidates.words == ["a", "b"]
    assert candidates.names(candidates.columns(Orders(2, False, False))) == ["a", "b", "a b"]


def test_no_words() -> None:
    assert Candidates.find(["", "..."]).features.n_columns == 0
