"""How well distances are kept, in more than one figure: a glance that chooses among many, and a thorough look.

Both compare a model with the true distances of the data. A glance takes the pairs of a thousand sources, the same for
all models; a thorough look takes all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige.metric.evaluation import (
    Model,
    check_size,
    compare,
    draw_others,
    draw_sources,
    neighbor_recall,
    rank_correlation,
    sums,
    without_self,
)
from prodige.metric.space import Space

N_SOURCES = 1000
K = 10
N_PARTS = 10


class Glance(NamedTuple):
    """What the pairs of some sources tell: the mean squared error and the recall of the ten nearest."""

    mse: float
    recall: float


@dataclass(frozen=True)
class Figures:
    """What all pairs tell.

    Attributes
    ----------
    mse : float
        Mean squared error of all pairs of different items.
    share : float
        The error as a share of the variance of the distances: 1 is what one constant has.
    spearman : float
        Rank correlation, of up to 100,000 pairs.
    recall : float
        Of the ten nearest, mean over all items.
    deciles : list of float
        Mean squared error of the nearest tenth of pairs, of the next, and so on, over the pairs of a glance.
    """

    mse: float
    share: float
    spearman: float
    recall: float
    deciles: list[float]


class Judge:
    """The true distances of a data set, and what they say of models.

    Parameters
    ----------
    space : Space
        The items.
    seed : int
        Draws the sources of glances, and pairs for the rank correlation.

    Attributes
    ----------
    sources : ndarray of int64, shape [S]
    true : ndarray of float32, shape [S, N]
        From the sources to all items.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import Star
    >>> from prodige.metric.space import Space
    >>> from prodige.reproduce.judging import Judge
    >>> points = np.random.default_rng(0).normal(size=(60, 8))
    >>> judge, star = Judge(Space(points)), Star().fit(points)
    >>> judge.glance(star).mse == judge.examine(star).mse  # of so few items all are sources
    True
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        n = check_size(space)
        self.space = space
        self._random = seed
        self.k = min(K, n - 1)
        self.sources = draw_sources(n, min(N_SOURCES, n), np.random.RandomState(seed))
        self.true = space.distances(self.sources)
        self._true_others = without_self(self.true, self.sources)
        edges = np.quantile(self._true_others, np.linspace(0, 1, N_PARTS + 1)[1:-1])
        self._part = np.searchsorted(edges, self._true_others.ravel())

    def glance(self, model: Model) -> Glance:
        """Compare the pairs of the sources."""
        squares, found = self._sampled(model)
        recall = neighbor_recall(self._true_others, found, self.k)
        return Glance(float(squares.mean()), float(recall.mean()))

    def examine(self, model: Model) -> Figures:
        """Compare all pairs."""
        n, random = self.space.n_items, np.random.RandomState(self._random)
        every = np.arange(n)
        others = draw_others(every, n, random)
        totals = np.zeros(4)
        pairs: list[NDArray[np.float32]] = []
        recalls: list[NDArray[np.float64]] = []
        for rows, true, predicted in compare(model, self.space, every):
            totals += sums(true, predicted)
            drawn = [np.take_along_axis(block, others[rows], axis=1).ravel() for block in (true, predicted)]
            pairs.append(np.stack(drawn))
            near, found = (without_self(block, rows) for block in (true, predicted))
            recalls.append(neighbor_recall(near, found, self.k))
        squared, _, mean, square = totals / (n * (n - 1))
        variance = float(square - mean**2)
        return Figures(
            mse=float(squared),
            share=float(squared) / variance if variance > 0 else float("nan"),
            spearman=rank_correlation(*np.concatenate(pairs, axis=1)),
            recall=float(np.concatenate(recalls).mean()),
            deciles=self._by_distance(model),
        )

    def _by_distance(self, model: Model) -> list[float]:
        squares, _ = self._sampled(model)
        totals = np.bincount(self._part, squares.ravel(), N_PARTS)
        return [float(value) for value in totals / np.maximum(np.bincount(self._part, minlength=N_PARTS), 1)]

    def _sampled(self, model: Model) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Return squared errors and modelled distances from the sources to all others, shape [S, N - 1]."""
        found = without_self(np.asarray(model.distances(self.sources), dtype=np.float32), self.sources)
        return np.square(found - self._true_others, dtype=np.float64), found
