"""Vertices: the words, beginnings, pairs, triples and skips that a graph has, in the order in which they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.text.ngrams import BEGINNING, Candidates, spell

# Words are grouped by how many sequences have them: 0, 1, 2 to 3, 4 to 7, and so on up to the last group.
N_GROUPS = 8


@dataclass(frozen=True, eq=False)
class Vertices:
    """What a graph knows of texts: vertices are words that are one, beginnings, pairs, triples, skips, in this order.

    Attributes
    ----------
    words : list of str
        In groups by the number of sequences that have them, alphabetical in each.
    is_vertex : ndarray of bool, shape [n_words]
        Whether a word is a vertex; others are parts of sequences only.
    beginnings : list of str
        Alphabetical.
    pairs, triples, skips : ndarray of int32, shape [P, 2], [T, 3] and [S, 2]
        Numbers of words, ascending.
    """

    words: list[str]
    is_vertex: NDArray[np.bool_]
    beginnings: list[str]
    pairs: NDArray[np.int32]
    triples: NDArray[np.int32]
    skips: NDArray[np.int32]

    @classmethod
    def choose(cls, candidates: Candidates, columns: NDArray[np.int64]) -> tuple[Vertices, NDArray[np.int64]]:
        """Return some candidates as vertices, and the columns again in the order of the vertices.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige.text.ngrams import Candidates
        >>> from prodige.text.vertices import Vertices
        >>> candidates = Candidates.find(["not a good film", "not a good idea", "a film"], min_texts=2)
        >>> vertices, order = Vertices.choose(candidates, np.array([3, 5, 2]))
        >>> vertices.names, order
        (['film', 'good', 'a good'], array([3, 2, 5]))
        """
        ends = np.cumsum(candidates.sizes)
        parts = [columns[(columns >= begin) & (columns < end)] for begin, end in zip([0, *ends], ends, strict=False)]
        every = (candidates.pairs, candidates.triples, candidates.skips)
        sequences = [rows[part - end] for rows, part, end in zip(every, parts[2:], ends[1:], strict=False)]
        uses = np.bincount(np.concatenate([rows.ravel() for rows in sequences]), minlength=len(candidates.words))
        known = np.unique(np.concatenate([parts[0], np.flatnonzero(uses)]))
        spelled = np.array([candidates.words[word].encode() for word in known], dtype=object)
        order = np.lexsort((np.argsort(np.argsort(spelled, kind="stable"), kind="stable"), group(uses[known])))
        known = known[order]
        number = np.full(len(candidates.words), -1, dtype=np.int32)
        number[known] = np.arange(known.size, dtype=np.int32)
        is_vertex = np.isin(known, parts[0])
        begun = sorted(parts[1], key=lambda column: candidates.beginnings[column - ends[0]].encode())
        sequences = [number[rows] for rows in sequences]
        orders = [np.lexsort(rows.T[::-1]) for rows in sequences]
        vertices = cls(
            [candidates.words[word] for word in known],
            is_vertex,
            [candidates.beginnings[column - ends[0]] for column in begun],
            *(np.ascontiguousarray(rows[order]) for rows, order in zip(sequences, orders, strict=True)),
        )
        ordered = [part[order] for part, order in zip(parts[2:], orders, strict=True)]
        return vertices, np.concatenate([known[is_vertex], np.array(begun, dtype=np.int64), *ordered])

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """How many vertices there are of each of :data:`prodige.text.ngrams.KINDS`."""
        return int(self.is_vertex.sum()), len(self.beginnings), len(self.pairs), len(self.triples), len(self.skips)

    @property
    def groups(self) -> NDArray[np.int64]:
        """The group of each word by the number of sequences that have it."""
        used = np.concatenate([self.pairs.ravel(), self.triples.ravel(), self.skips.ravel()])
        return group(np.bincount(used, minlength=len(self.words)))

    @cached_property
    def names(self) -> list[str]:
        """Vertices as text, as :func:`prodige.text.ngrams.spell` does."""
        single = [word for word, is_one in zip(self.words, self.is_vertex, strict=True) if is_one]
        return [*single, *spell(self.words, self.beginnings, self.pairs, self.triples, self.skips)]

    def lookup(self) -> _core.VertexLookup:
        """Return what finds vertices in texts; ValueError if there is one twice."""
        skips = np.insert(self.skips, 1, -1, axis=1)  # triples whose second word can be any
        longer = np.concatenate([self.triples, skips])
        return _core.VertexLookup(self.words, self.is_vertex, self.beginnings, BEGINNING, self.pairs, longer)


def group(uses: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the groups of words by how many sequences have them.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.vertices import group
    >>> group(np.array([0, 1, 2, 3, 4, 1000]))
    array([0, 1, 2, 2, 3, 7])
    """
    exponents: NDArray[np.int64] = np.frexp(uses.astype(np.float64))[1].astype(np.int64)
    return np.minimum(exponents, N_GROUPS - 1)
