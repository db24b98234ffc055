"""Words, beginnings of words, pairs and triples of words: what may become a vertex.

A pair counts where its two words follow each other, a triple where two pairs overlap. Those that fewer texts have than
some least number are left out, and whatever contains them with them.
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

KINDS = ("words", "beginnings", "pairs", "triples")


class Orders(NamedTuple):
    """Which sequences of words become features: up to how many words, and whether beginnings of words do."""

    longest: int = 3
    beginnings: bool = True

    @property
    def kinds(self) -> tuple[bool, ...]:
        """Whether there are features of each of :data:`KINDS`."""
        return True, self.beginnings, self.longest >= 2, self.longest >= 3


@dataclass(frozen=True, eq=False)
class Candidates:
    """All features of some texts; their columns are words, beginnings, pairs and triples, in this order.

    Attributes
    ----------
    words, beginnings : list of str
    pairs : ndarray of int32, shape [P, 2]
        Numbers of words.
    triples : ndarray of int32, shape [T, 3]
    features : Features

    Examples
    --------
    >>> from prodige.text.ngrams import Candidates
    >>> candidates = Candidates.find(["not a good film", "not a good idea", "a film"], min_texts=2)
    >>> candidates.names(range(candidates.features.n_columns))
    ['not', 'a', 'good', 'film', 'not a', 'a good', 'not a good']
    """

    words: list[str]
    beginnings: list[str]
    pairs: NDArray[np.int32]
    triples: NDArray[np.int32]
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
        lists, sizes = [ids, begun, of_pairs, of_triples], [len(known), len(common), len(pairs), len(triples)]
        rows = _core.distinct(lists, np.array(sizes, dtype=np.int32), offsets)
        return cls(known, [beginnings[number] for number in common], pairs, triples, Features(*rows, sum(sizes)))

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """How many there are of each of :data:`KINDS`."""
        return len(self.words), len(self.beginnings), len(self.pairs), len(self.triples)

    def columns(self, orders: Orders) -> NDArray[np.int64]:
        """Return the columns of some kinds of features."""
        return np.flatnonzero(np.repeat(orders.kinds, self.sizes))

    def names(self, columns: NDArray[np.int64] | range) -> list[str]:
        """Return features as text; a beginning ends with a dash."""
        every = [
            *self.words,
            *(letters + "-" for letters in self.beginnings),
            *(" ".join(self.words[word] for word in row) for rows in (self.pairs, self.triples) for row in rows),
        ]
        return [every[column] for column in columns]


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
