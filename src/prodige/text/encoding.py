r"""A graph of words in few bytes, and back.

Words are front-coded in groups by how many sequences have them: what is used often then takes few bits to name. Pairs
are lists of second words, triples lists of second and third words, each named as one of the pairs there are where it
is one. All of it goes through an arithmetic coder whose models learn as they go (``_core.Coder``), so that nothing has
to be said about frequencies.

The stream, in this order; *learned* choices have models of their own for each context in brackets, *even* ones cost
the logarithm of the number of choices:

1. for each of eight groups, words that 0, 1, 2-3, 4-7, ... sequences have: their number (even), then the words in the
   order of their bytes. A word is the number of bytes it shares with the one before (learned [length of that word]) and
   the bytes after these up to a 0, each bit by a mixture of what was seen after the last 0 to 4 bytes;
2. beginnings of words, in the same manner;
3. for every word whether it is a vertex (learned [group]);
4. for every word of a sequence whether another pair begins with it (learned [group, how many did]), and its second
   word, ascending: the group (learned [group of the first, group of the last second word]), and its place in that
   group after the last one (even);
5. triples in the same manner; a second or third word is named by its place among those that make a pair with the word
   before it (even), if it is one of them (learned [group of the word before]), else as in 4, in any order;
6. skips as in 4, where the architecture is "skipgrams" instead of "ngrams";
7. for every vertex, words, beginnings, pairs, triples and skips in this order, its level (learned [kind of vertex]).
   With more than two classes, for every edge of it, ascending: the class (learned [kind]), the level (learned [kind,
   whether it is the first]), and whether there is another (learned [kind, how many there were]).

Reading trusts nothing: whatever the bytes are, what comes out are words in order, sequences of words that exist and
levels that exist, no more of them than bytes can hold; or a ValueError.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.text.vertices import N_GROUPS, Vertices
from prodige.text.wordgraph import WordGraph

# The most words and the most beginnings, and how many vertices or words a byte may hold: about half a byte each is the
# least that was seen.
MOST = 2**21 - 2
_MOST_PER_BYTE = 32
_LEAST_ROOM = 1024

# Where a choice is made: each has models of its own.
_IS_VERTEX, _PAIRS, _TRIPLES, _GROUP, _IS_PAIR, _LEVEL, _SCORE, _EDGES, _SKIPS = range(1, 10)

Row = tuple[int, ...]


def encode(graph: WordGraph) -> bytes:
    """Return vertices and their levels; :func:`decode` reads them."""
    coder = _core.Coder()
    vertices, groups = graph.vertices, graph.vertices.groups
    ends = [0, *np.cumsum(np.bincount(groups, minlength=N_GROUPS)).tolist()]
    for begin, end in pairwise(ends):
        coder.uniform(MOST, end - begin)
        coder.write_words(vertices.words[begin:end])
    coder.uniform(MOST, len(vertices.beginnings))
    coder.write_words(vertices.beginnings)
    for group, is_vertex in zip(groups.tolist(), vertices.is_vertex.tolist(), strict=True):
        coder.bit(context(_IS_VERTEX, group), is_vertex)
    names = Names(coder, ends)
    followers = names.write_followers(_PAIRS, vertices.pairs)
    endings: list[list[Row]] = [[] for _ in vertices.words]
    for first, second, third in vertices.triples.tolist():
        endings[first].append((second, third))
    for first, rests in enumerate(endings):
        names.write_run(_TRIPLES, first, len(rests))
        for second, third in rests:
            names.follower(first, followers[first], second)
            names.follower(second, followers[second], third)
    if len(vertices.skips):
        names.write_followers(_SKIPS, vertices.skips)
    write_edges(coder, graph)
    return coder.finish()


def decode(data: bytes, levels: NDArray[np.float32], bias: NDArray[np.float32], has_skips: bool = False) -> WordGraph:
    """Return the graph that :func:`encode` wrote; ValueError or UnicodeError if it could not have."""
    coder = _core.Coder(data)
    most = _LEAST_ROOM + _MOST_PER_BYTE * len(data)
    words: list[str] = []
    ends = [0]
    for _ in range(N_GROUPS):
        words += read_words(coder, most - len(words))
        ends.append(len(words))
    beginnings = read_words(coder, most)
    groups = np.repeat(np.arange(N_GROUPS), np.diff(ends))
    is_vertex = np.array([coder.bit(context(_IS_VERTEX, group)) for group in groups.tolist()], dtype=bool)
    names = Names(coder, ends)
    followers = names.read_followers(_PAIRS, most)
    triples: list[Row] = []
    for first in range(len(words)):
        for _ in range(names.read_run(_TRIPLES, first, most - len(triples))):
            second = names.follower(first, followers[first])
            triples.append((first, second, names.follower(second, followers[second])))
    skips = names.read_followers(_SKIPS, most) if has_skips else []
    vertices = Vertices(words, is_vertex, beginnings, join(followers), as_rows(triples, 3), join(skips))
    if not np.array_equal(vertices.groups, groups):
        raise ValueError("words are not in the groups they belong to")
    return read_edges(coder, vertices, levels, bias, most)


class Names:
    """Names of words in sequences: the group of a word, then its place among those that are possible there.

    Parameters
    ----------
    coder : Coder
        One that writes, or one that reads.
    ends : list of int
        Where each group of words ends, beginning with 0.
    """

    def __init__(self, coder: Any, ends: list[int]) -> None:
        self.coder = coder
        self.ends = ends
        self.group = np.repeat(np.arange(N_GROUPS), np.diff(ends)).tolist()

    def word(self, first: int, last: int, word: int = -1) -> int:
        """Write or read a word that follows ``first`` and comes after ``last`` in the order of all words."""
        ends = self.ends
        least = self.group[last] if last >= 0 else 0
        group = self.coder.number(
            context(_GROUP, self.group[first], least), N_GROUPS, self.group[word] if word >= 0 else 0
        )
        begin = max(ends[group], last + 1)
        if group < least or begin >= ends[group + 1]:
            raise ValueError("a sequence has a word that does not exist")
        return int(begin + self.coder.uniform(ends[group + 1] - begin, max(word - begin, 0)))

    def follower(self, first: int, known: list[int], word: int = -1) -> int:
        """Write or read the word after ``first``: one of those that make a pair with it, or any other."""
        is_pair = bool(known) and self.coder.bit(context(_IS_PAIR, self.group[first]), word in known)
        if not is_pair:
            return self.word(first, -1, word)
        return known[int(self.coder.uniform(len(known), known.index(word) if word >= 0 else 0))]

    def write_followers(self, kind: int, rows: NDArray[np.int32]) -> list[list[int]]:
        """Write pairs of words, and return the second words for each first one."""
        followers: list[list[int]] = [[] for _ in self.group]
        for first, second in rows.tolist():
            followers[first].append(second)
        for first, seconds in enumerate(followers):
            self.write_run(kind, first, len(seconds))
            last = -1
            for second in seconds:
                last = self.word(first, last, second)
        return followers

    def read_followers(self, kind: int, most: int) -> list[list[int]]:
        """Read the second words for each first one."""
        followers: list[list[int]] = []
        for first in range(len(self.group)):
            seconds: list[int] = []
            for _ in range(self.read_run(kind, first, most)):
                seconds.append(self.word(first, seconds[-1] if seconds else -1))
            most -= len(seconds)
            followers.append(seconds)
        return followers

    def write_run(self, kind: int, first: int, n: int) -> None:
        """Write how many sequences a word begins; nothing for one that is in none."""
        if self.group[first] == 0:
            return
        for place in range(n + 1):
            self.coder.bit(context(kind, self.group[first], min(place, 15)), place < n)

    def read_run(self, kind: int, first: int, most: int) -> int:
        """Read how many sequences a word begins."""
        n = 0
        while self.group[first] and self.coder.bit(context(kind, self.group[first], min(n, 15))):
            n += 1
            if n > most or self.coder.is_past_the_end:
                raise ValueError("there are more sequences than the bytes can hold")
        return n


def write_edges(coder: Any, graph: WordGraph) -> None:
    """Write the levels of all vertices; with more than two classes, those of the classes they speak of."""
    n_levels, n_scores, kinds = graph.levels.size, graph.bias.size, kinds_of(graph.vertices)
    vertices = graph.vertex.tolist()
    place = 0
    for row, (vertex, score, level) in enumerate(
        zip(vertices, graph.score.tolist(), graph.level.tolist(), strict=True)
    ):
        kind = kinds[vertex]
        if n_scores > 1:
            coder.number(context(_SCORE, kind), n_scores, score)
        coder.number(context(_LEVEL, kind, min(place, 1)), n_levels, level)
        if n_scores > 1:
            goes_on = row + 1 < len(vertices) and vertices[row + 1] == vertex
            coder.bit(context(_EDGES, kind, min(place, 7)), goes_on)
            place = place + 1 if goes_on else 0


def read_edges(
    coder: Any, vertices: Vertices, levels: NDArray[np.float32], bias: NDArray[np.float32], most: int
) -> WordGraph:
    """Read the levels of all vertices, at most so many beside one for each."""
    found: list[Row] = []
    for vertex, kind in enumerate(kinds_of(vertices)):
        if coder.is_past_the_end or len(found) > vertex + most:
            raise ValueError("the bytes end before the vertices do")
        last = -1
        for place in range(bias.size):
            score = coder.number(context(_SCORE, kind), bias.size) if bias.size > 1 else 0
            found.append((vertex, score, coder.number(context(_LEVEL, kind, min(place, 1)), levels.size)))
            if score <= last:
                raise ValueError("the classes of a vertex are not in order")
            last = score
            if bias.size == 1 or not coder.bit(context(_EDGES, kind, min(place, 7))):
                break
    vertex_of, score_of, level_of = as_rows(found, 3).astype(np.int64).T
    return WordGraph(vertices, vertex_of, score_of, level_of, levels, bias)


def kinds_of(vertices: Vertices) -> list[int]:
    """Return which of :data:`prodige.text.ngrams.KINDS` each vertex is of, as a number."""
    return [int(kind) for kind in np.repeat(np.arange(len(vertices.sizes)), vertices.sizes)]


def read_words(coder: Any, most: int) -> list[str]:
    """Read words, which rise from one to the next."""
    n = coder.uniform(MOST)
    if n > most:
        raise ValueError(f"{n} words are more than the bytes can hold")
    words: list[str] = coder.read_words(n)
    spelled = [word.encode() for word in words]
    if "" in words or any(one >= other for one, other in pairwise(spelled)):
        raise ValueError("words are not in order")
    return words


def join(followers: list[list[int]]) -> NDArray[np.int32]:
    """Return pairs of words as an array, given the second words for each first one."""
    return as_rows([(first, second) for first, seconds in enumerate(followers) for second in seconds], 2)


def as_rows(rows: list[Row], width: int) -> NDArray[np.int32]:
    """Return sequences as an array."""
    return np.array(rows, dtype=np.int32).reshape(-1, width)


def context(where: int, one: int = 0, other: int = 0) -> int:
    """Return the number of a choice's models.

    Examples
    --------
    >>> from prodige.text.encoding import context
    >>> context(5, 1, 2) != context(5, 2, 1)
    True
    """
    return where << 16 | one << 8 | other
