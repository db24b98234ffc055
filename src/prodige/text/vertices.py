"""Vertices: the words, beginnings, pairs and triples that a graph has, in the order in which they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.text.ngrams import BEGINNING, Candidates

# Words are grouped by how many sequences have them: 0, 1, 2 to 3, 4 to 7, and so on up to the last group.
N_GROUPS = 8


@dataclass(frozen=True, eq=False)
class Vertices:
    """What a graph knows of texts: vertices are the words that are one, beginnings, pairs and triples, in this order.

    Attributes
    ----------
    words : list of str
        In groups by the number of sequences that have them, alphabetical in each.
    is_vertex : ndarray of bool, shape [n_words]
        Whether a word is a vertex; others are parts of sequences only.
    beginnings : list of str
        Alphabetical.
    pairs, triples : ndarray of int32, shape [P, 2] and [T, 3]
        Numbers of words, ascending.
    """

    words: list[str]
    is_vertex: NDArray[np.bool_]
    beginnings: list[str]
    pairs: NDArray[np.int32]
    triples: NDArray[np.int32]

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
        pairs, triples = candidates.pairs[parts[2] - ends[1]], candidates.triples[parts[3] - ends[2]]
        uses = np.bincount(np.concatenate([pairs.ravel(), triples.ravel()]), minlength=len(candidates.words))
        known = np.unique(np.concatenate([parts[0], np.flatnonzero(uses)]))
        spelled = np.array([candidates.words[word].encode() for word in known], dtype=object)
        order = np.lexsort((np.argsort(np.argsort(spelled, kind="stable"), kind="stable"), group(uses[known])))
        known = known[order]
        number = np.full(len(candidates.words), -1, dtype=np.int32)
        number[known] = np.arange(known.size, dtype=np.int32)
        is_vertex = np.isin(known, parts[0])
        begun = sorted(parts[1], key=lambda column: candidates.beginnings[column - ends[0]].encode())
        pairs, triples = number[pairs], number[triples]
        by_pair, by_triple = np.lexsort(pairs.T[::-1]), np.lexsort(triples.T[::-1])
        vertices = cls(
            [candidates.words[word] for word in known],
            is_vertex,
            [candidates.beginnings[column - ends[0]] for column in begun],
            np.ascontiguousarray(pairs[by_pair]),
            np.ascontiguousarray(triples[by_triple]),
        )
        return vertices, np.concatenate(
            [known[is_vertex], np.array(begun, dtype=np.int64), parts[2][by_pair], parts[3][by_triple]]
        )

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """How many vertices are words, beginnings, pairs and triples."""
        return int(self.is_vertex.sum()), len(self.beginnings), len(self.pairs), len(self.triples)

    @property
    def groups(self) -> NDArray[np.int64]:
        """The group of each word by the number of sequences that have it."""
        used = np.concatenate([self.pairs.ravel(), self.triples.ravel()])
        return group(np.bincount(used, minlength=len(self.words)))

    @cached_property
    def names(self) -> list[str]:
        """Vertices as text; a beginning ends with a dash."""
        return [
            *(word for word, is_one in zip(self.words, self.is_vertex, strict=True) if is_one),
            *(letters + "-" for letters in self.beginnings),
            *(" ".join(self.words[word] for word in row) for rows in (self.pairs, self.triples) for row in rows),
        ]

    def lookup(self) -> _core.VertexLookup:
        """Return what finds vertices in texts; ValueError if there is one twice."""
        return _core.VertexLookup(self.words, self.is_vertex, self.beginnings, BEGINNING, self.pairs, self.triples)


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
