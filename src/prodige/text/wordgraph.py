"""WordGraph: words and sequences of words on hubs, hubs on the classes; what a fitted classifier is made of.

Anchors are the classes. Hubs lie at a few graded distances from them, the levels, and every vertex hangs on a hub. How
much nearer a vertex is to one class than to another is what it says of a text, and a text is the mean of its vertices,
times the root of their number. So a model is a graph, levels and a bias.

With two classes a hub is ``a`` nearer to the second class than to the first, and a vertex has one hub. With more, every
class has hubs of its own, one of them neutral, and a vertex hangs on one hub of each class: on the neutral one unless
an edge says otherwise. A vertex is farther from its hub than hubs of a class are from each other, so no path over
another vertex is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.graph.graph import Graph
from prodige.text.tokens import alphabet
from prodige.text.vertices import Vertices
from prodige.threads import threads_for

# Steps of a native loop that a letter of a text takes, about.
_STEPS_PER_LETTER = 4


@dataclass(frozen=True, eq=False)
class WordGraph:
    """Vertices on levels.

    Attributes
    ----------
    vertices : Vertices
    vertex, score, level : ndarray of int64, shape [E]
        The edges that are stored, by vertex and score: which score an edge counts for, always 0 with two classes, and
        which level its hub has.
    levels : ndarray of float32, shape [L]
        Ascending: how much nearer to its class a hub is.
    bias : ndarray of float32, shape [n_scores]
    """

    vertices: Vertices
    vertex: NDArray[np.int64]
    score: NDArray[np.int64]
    level: NDArray[np.int64]
    levels: NDArray[np.float32]
    bias: NDArray[np.float32]

    @property
    def n_classes(self) -> int:
        """Number of anchors."""
        return max(2, self.bias.size)

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """What each vertex is worth, shape [V, n_scores]."""
        table = np.zeros((len(self.vertices), self.bias.size))
        table[self.vertex, self.score] = self.levels[self.level]
        return table

    @cached_property
    def lookup(self) -> _core.VertexLookup:
        """What finds vertices in texts."""
        return self.vertices.lookup()

    def scores(self, documents: list[str], n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the scores of texts as :func:`prodige.text.tokens.prepare` returns them, shape [N, n_scores]."""
        threads = threads_for(n_jobs, _STEPS_PER_LETTER * sum(map(len, documents)))
        sums, counts = self.lookup.sum(documents, alphabet(), self.table, threads)
        return np.asarray(sums / np.sqrt(np.maximum(counts, 1))[:, None] + self.bias)

    def find(self, document: str) -> NDArray[np.int32]:
        """Return the different vertices of a text, as they come."""
        return self.lookup.find([document], alphabet())

    # -- the graph itself --------------------------------------------------------------------------------------------

    @property
    def reach(self) -> float:
        """How far a hub without an opinion is from a class."""
        return float(np.abs(self.levels).max(initial=0)) or 1.0

    @property
    def stem(self) -> float:
        """How far a vertex is from its hub."""
        return 2 * self.reach

    @cached_property
    def hubs(self) -> NDArray[np.int64]:
        """The hub of each vertex for each score, shape [V, n_scores]; hubs of a score follow each other."""
        n_levels = self.levels.size
        if self.bias.size == 1:
            return self.level[:, None]
        hubs = np.full((len(self.vertices), self.bias.size), n_levels)  # the neutral hub of a class is its last
        hubs[self.vertex, self.score] = self.level
        return np.asarray(hubs + (n_levels + 1) * np.arange(self.bias.size))

    def distance(self, hub: NDArray[np.int64], anchor: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far hubs are from the anchors they are joined to."""
        if self.bias.size == 1:
            return np.asarray(self.reach + np.where(anchor == 0, 0.5, -0.5) * self.levels[hub].astype(np.float64))
        return np.asarray(self.reach - np.append(self.levels, 0.0)[hub % (self.levels.size + 1)].astype(np.float64))

    def graph(self) -> Graph:
        """Return the graph: vertices, then hubs, then classes.

        Distances to classes are those over a vertex's hub: one search finds what :attr:`table` says.
        """
        n_vertices, n_scores = self.hubs.shape
        if n_scores == 1:
            n_hubs = self.levels.size
            hub, anchor = (part.ravel() for part in np.meshgrid(np.arange(n_hubs), np.arange(2), indexing="ij"))
        else:
            n_hubs = n_scores * (self.levels.size + 1)
            hub = np.arange(n_hubs)
            anchor = hub // (self.levels.size + 1)
        return Graph.from_edges(
            np.concatenate([np.repeat(np.arange(n_vertices), n_scores), n_vertices + hub]),
            np.concatenate([n_vertices + self.hubs.ravel(), n_vertices + n_hubs + anchor]),
            np.concatenate([np.full(self.hubs.size, self.stem), self.distance(hub, anchor)]),
            n_vertices=n_vertices + n_hubs + self.n_classes,
            n_items=n_vertices,
        )
