"""Words, beginnings of words, pairs, triples and skips: what may become a vertex.

A pair counts where its two words follow each other, a triple where two pairs overlap, a skip (a skip-bigram) where one
word, whatever it is, stands between its two. Those that fewer texts have than some least number are left out, and
whatever contains them with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.text.features import Features
from prodige.text.tokens import tokenize

# Letters of a word's beginning: what inflected forms of a word share. Only longer words have one.
BEGINNING = 5
# Longer words cannot be saved, and are no words.
_LONGEST_WORD = 255

KINDS = ("words", "beginnings", "pairs", "triples", "skips")
# What stands for the word between the two of a skip.
ANY = "*"


class Orders(NamedTuple):
    """Which sequences of words become features: up to how many words, and whether beginnings of words and skips do."""

    longest: int = 3
    beginnings: bool = True
    skips: bool = True

    @property
    def kinds(self) -> tuple[bool, ...]:
        """Whether there are features of each of :data:`KINDS`."""
        return True, self.beginnings, self.longest >= 2, self.longest >= 3, self.skips


@dataclass(frozen=True, eq=False)
class Candidates:
    """All features of some texts; their columns are those of all :data:`KINDS`, in this order.

    Attributes
    ----------
    words, beginnings : list of str
    pairs : ndarray of int32, shape [P, 2]
        Numbers of words.
    triples : ndarray of int32, shape [T, 3]
    skips : ndarray of int32, shape [S, 2]
    features : Features

    Examples
    --------
    >>> from prodige.text.ngrams import Candidates
    >>> candidates = Candidates.find(["not a good film", "not a good idea", "a film"], min_texts=2)
    >>> candidates.names(range(candidates.features.n_columns))
    ['not', 'a', 'good', 'film', 'not a', 'a good', 'not a good', 'not * good']
    """

    words: list[str]
    beginnings: list[str]
    pairs: NDArray[np.int32]
    triples: NDArray[np.int32]
    skips: NDArray[np.int32]
    features: Features = field(repr=False)

    @classmethod
    def find(cls, documents: list[str], min_texts: int = 1) -> Candidates:
        """Return the features that at least so many texts have; texts are as :func:`tokens.prepare` returns them."""
        words, ids, offsets = tokenize(documents)
        beginnings, of_word = begin(words)
        common, begun = frequent(of_word[ids], offsets, len(beginnings), min_texts)
        allowed = np.array([fits(word) for word in words], dtype=bool)
        kept, ids = frequent(ids, offsets, len(words), min_texts, allowed)
        known = [words[word] for word in kept]
        of_pairs, first, second = _core.join_neighbors(ids, offsets, len(known), min_texts)
        pairs = np.stack([first, second], axis=1)
        of_triples, first, second = _core.join_neighbors(of_pairs, offsets, len(pairs), min_texts)
        triples = np.concatenate([pairs[first], pairs[second][:, 1:]], axis=1)
        of_skips, first, second = _core.join_neighbors(ids, offsets, len(known), min_texts, distance=2)
        skips = np.stack([first, second], axis=1)
        lists = [ids, begun, of_pairs, of_triples, of_skips]
        sizes = [len(known), len(common), len(pairs), len(triples), len(skips)]
        rows = _core.distinct(lists, np.array(sizes, dtype=np.int32), offsets)
        begun_with = [beginnings[number] for number in common]
        return cls(known, begun_with, pairs, triples, skips, Features(*rows, sum(sizes)))

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """How many there are of each of :data:`KINDS`."""
        return len(self.words), len(self.beginnings), len(self.pairs), len(self.triples), len(self.skips)

    def columns(self, orders: Orders) -> NDArray[np.int64]:
        """Return the columns of some kinds of features."""
        return np.flatnonzero(np.repeat(orders.kinds, self.sizes))

    def names(self, columns: NDArray[np.int64] | range) -> list[str]:
        """Return features as text, as :func:`spell` does."""
        every = [*self.words, *spell(self.words, self.beginnings, self.pairs, self.triples, self.skips)]
        return [every[column] for column in columns]


def spell(
    words: list[str],
    beginnings: list[str],
    pairs: NDArray[np.int32],
    triples: NDArray[np.int32],
    skips: NDArray[np.int32],
) -> list[str]:
    """Return what is no word as text: a beginning ends with a dash, and the middle of a skip is a star."""
    return [
        *(letters + "-" for letters in beginnings),
        *(" ".join(words[word] for word in row) for rows in (pairs, triples) for row in rows),
        *(f"{words[first]} {ANY} {words[second]}" for first, second in skips),
    ]


def fits(word: str) -> bool:
    """Whether a word is short enough to be saved."""
    return len(word) * 4 <= _LONGEST_WORD or len(word.encode()) <= _LONGEST_WORD


def begin(words: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    """Return the different beginnings of words, and which one each word has, -1 for none.

    Examples
    --------
    >>> from prodige.text.ngrams import begin
    >>> begin(["enjoyed", "enjoyable", "enjoy"])
    (['enjoy'], array([ 0,  0, -1], dtype=int32))
    """
    numbers: dict[str, int] = {}
    of_word = [numbers.setdefault(word[:BEGINNING], len(numbers)) if len(word) > BEGINNING else -1 for word in words]
    return list(numbers), np.array(of_word, dtype=np.int32)


def frequent(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    n: int,
    min_texts: int,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the numbers that enough texts have, and the texts with these renumbered, -1 in the place of others."""
    rows = Features(*_core.distinct([ids], np.array([n], dtype=np.int32), offsets), n)
    is_kept = rows.frequencies >= min_texts
    kept = np.flatnonzero(is_kept if allowed is None else is_kept & allowed)
    numbers = np.full(n + 1, -1, dtype=np.int32)  # the last is what -1 becomes
    numbers[kept] = np.arange(kept.size, dtype=np.int32)
    return kept, numbers[ids]
