"""From texts to a graph of words that fits into a number of bytes.

A regression over all candidates says what each edge, from a vertex towards a class, is worth: its weight times the root
of the number of texts that have the vertex. As many edges as there is room for are kept, refitted and rounded to
levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from prodige.text import encoding
from prodige.text.features import Features
from prodige.text.levels import find_levels, nearest_level
from prodige.text.ngrams import Candidates, Orders
from prodige.text.ratios import (
    GAIN,
    ROUGH_GAIN,
    IsOver,
    Linear,
    Penalty,
    find_shift,
    log_count_ratios,
    regress,
    signed_root,
)
from prodige.text.vertices import Vertices
from prodige.text.wordgraph import WordGraph

# Bits of an edge with its vertex: what the first guess of the number of edges is made with.
_BITS = 16
# Share of the room that is aimed at, and that is good enough; in a trial, up to so many times more or less is, and up
# to so many a last guess needs no other look.
_AIM, _ENOUGH, _NEAR, _FAR = 0.99, 0.97, 1.05, 1.3
_MOST_GUESSES = 8


@dataclass(frozen=True)
class Settings:
    """What validation decides.

    Attributes
    ----------
    orders : Orders
        Which sequences of words become vertices.
    penalty : Penalty
        Of the regression.
    n_levels : int
        Hubs that a class may have.
    """

    orders: Orders
    penalty: Penalty
    n_levels: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Texts, their classes, and how large a graph of them may be.

    Attributes
    ----------
    candidates : Candidates
    classes : ndarray of int64, shape [N]
    n_classes : int
    weights : ndarray of float64, shape [N]
        How much each text counts.
    room : int
        Bytes that vertices and levels may take.
    n_jobs : int, optional
    is_over : callable
        Whether the time is up.
    gain : float
        What a regression has to gain by another step, relative to its loss.
    """

    candidates: Candidates
    classes: NDArray[np.int64]
    n_classes: int
    weights: NDArray[np.float64]
    room: int
    n_jobs: int | None
    is_over: IsOver
    gain: float = GAIN
    _last: Last = field(default_factory=lambda: Last())

    def take(self, texts: NDArray[np.int64]) -> Problem:
        """Return the problem with some of the texts, for trials: regressions of it end sooner."""
        candidates = replace(self.candidates, features=self.candidates.features.take(texts))
        classes, weights = self.classes[texts], self.weights[texts]
        return replace(self, candidates=candidates, classes=classes, weights=weights, gain=ROUGH_GAIN, _last=Last())

    def fit(self, settings: Settings) -> WordGraph:
        """Return the graph of all texts that uses up the room; RoomError if even the smallest is too large."""
        everything = self._regress_all(settings)
        n_edges, too_many = self.guess(everything), everything.n_edges + 1
        best: WordGraph | None = None
        for _ in range(_MOST_GUESSES):
            graph = self._prune(everything, settings, n_edges)
            size = self._weigh(graph)
            if size > self.room:
                too_many = n_edges
                if n_edges <= self.n_classes and best is None:
                    raise RoomError(size - self.room)
            elif best is None or graph.vertex.size > best.vertex.size:
                best = graph
            if _ENOUGH * self.room <= size <= self.room or too_many - 1 <= (0 if best is None else best.vertex.size):
                break
            n_edges = max(self.n_classes, min(int(n_edges * _AIM * self.room / size), too_many - 1))
        return self._prune(everything, settings, self.n_classes) if best is None else best

    def attempt(self, settings: Settings, n_edges: int | None = None) -> WordGraph:
        """Return a graph that takes about as much room as there is, or has so many edges: what a trial needs."""
        everything = self._regress_all(settings)
        if n_edges is not None:
            return self._prune(everything, settings, n_edges)
        guess = self.guess(everything)
        # The penalty does not change how many bits an edge takes.
        is_known = self._last.weighed == (settings.orders, settings.n_levels)
        for _ in range(_MOST_GUESSES):
            graph = self._prune(everything, settings, guess)
            if is_known:
                break
            share = self._weigh(graph) / max(self.room, 1)
            if 1 / _NEAR <= share <= _NEAR or guess in (everything.n_edges, self.n_classes):
                break
            guess = max(self.n_classes, min(int(guess / share), everything.n_edges))
            is_known = 1 / _FAR <= share <= _FAR  # bits of an edge hardly change with so few more or less of them
        self._last.weighed = settings.orders, settings.n_levels
        return graph

    def guess(self, everything: Regression) -> int:
        """Return about how many edges there is room for."""
        return max(self.n_classes, min(int(self.room * 8 / self._last.bits), everything.n_edges))

    def _weigh(self, graph: WordGraph) -> int:
        """Return the bytes of a graph; the next guess is made by them."""
        size = len(encoding.encode(graph))
        self._last.bits = max(8 * size / max(graph.vertex.size, 1), 1.0)
        return size

    def _regress_all(self, settings: Settings) -> Regression:
        """Return the regression over all candidates; it starts from the last one of the same candidates."""
        last = self._last.regression
        if last is None or last.orders != settings.orders:
            columns = self.candidates.columns(settings.orders)
            features = self.candidates.features.keep(columns)
            scale = signed_root(log_count_ratios(features, self.classes, self.n_classes, self.weights, self.n_jobs))
            start = Linear(np.zeros(scale.shape), np.zeros(scale.shape[1]))
            last = Regression(settings.orders, columns, features, scale, start)
        linear = self._regress(last.features, last.scale, settings.penalty, last.linear)
        self._last.regression = replace(last, linear=linear)
        return self._last.regression

    def _regress(self, features: Features, scale: NDArray[np.float64], penalty: Penalty, start: Linear) -> Linear:
        return regress(
            features, self.classes, self.weights, scale, penalty, start, self.n_jobs, self.is_over, self.gain
        )

    def _prune(self, everything: Regression, settings: Settings, n_edges: int) -> WordGraph:
        """Return the graph of the strongest edges, refitted and rounded."""
        keep = strongest(everything.linear, everything.features, n_edges)
        rows = np.flatnonzero(keep.any(axis=1))
        keep = keep[rows]
        features, scale = everything.features.keep(rows), everything.scale[rows] * keep
        start = Linear(everything.linear.weights[rows] * keep, everything.linear.bias)
        linear = self._regress(features, scale, settings.penalty, start)
        vertices, order = Vertices.choose(self.candidates, everything.columns[rows])
        place = np.searchsorted(everything.columns[rows], order)
        graph = round_weights(vertices, linear.weights[place], linear.bias, features.frequencies[place], settings)
        # Rounding calls for another bias; on texts that were learned from, another slope would lie.
        table = np.empty_like(graph.table)
        table[place] = graph.table
        scores = Linear(table, linear.bias).scores(features, self.n_jobs)
        return adjust(graph, 1.0, find_shift(scores, self.classes, self.weights))


@dataclass(frozen=True, eq=False)
class Regression:
    """What a regression over all candidates of some kinds says; columns are ascending."""

    orders: Orders
    columns: NDArray[np.int64]
    features: Features
    scale: NDArray[np.float64]
    linear: Linear

    @property
    def n_edges(self) -> int:
        """Edges that are worth something."""
        return int(np.count_nonzero(self.linear.weights))


@dataclass
class Last:
    """What the fit before knows: a regression, bits that an edge takes, and of which settings."""

    regression: Regression | None = None
    bits: float = _BITS
    weighed: tuple[Orders, int] | None = None


class RoomError(ValueError):
    """The smallest graph does not fit; it needs so many bytes more."""

    def __init__(self, n_missing: int) -> None:
        super().__init__(f"{n_missing} bytes are missing")
        self.n_missing = n_missing


def round_weights(
    vertices: Vertices,
    weights: NDArray[np.float64],
    bias: NDArray[np.float64],
    frequencies: NDArray[np.int64],
    settings: Settings,
) -> WordGraph:
    """Return a graph whose levels are near the weights of vertices, the frequent ones above all."""
    # With two classes every vertex has its one edge, also one whose weight became 0.
    vertex, score = np.nonzero(weights if weights.shape[1] > 1 else np.ones_like(weights))
    values = weights[vertex, score]
    levels = find_levels(values, np.sqrt(frequencies)[vertex], settings.n_levels)
    return WordGraph(vertices, vertex, score, nearest_level(values, levels), levels, bias.astype(np.float32))


def adjust(graph: WordGraph, slope: float, shift: NDArray[np.float64]) -> WordGraph:
    """Return a graph whose scores are those of another times a slope, plus a shift."""
    return replace(
        graph,
        levels=(graph.levels * slope).astype(np.float32),
        bias=(graph.bias * slope + shift).astype(np.float32),
    )


def strongest(linear: Linear, features: Features, n_edges: int) -> NDArray[np.bool_]:
    """Return which edges are worth most: weight times the root of the number of texts, shape [n_columns, n_scores]."""
    worth = np.abs(linear.weights) * np.sqrt(features.frequencies)[:, None]
    if n_edges >= worth.size:
        return np.asarray(worth > 0)
    order = np.argsort(-worth, axis=None, kind="stable")[:n_edges]
    keep = np.zeros(worth.size, dtype=bool)
    keep[order] = True
    return np.asarray(keep.reshape(worth.shape) & (worth > 0))
