"""What a fit is to keep: distances of all pairs, neighbours, or something between.

Of ten thousand items each has ten near ones, so a fit to all pairs is a fit to far ones. For neighbours the nearest
items of each count as well, with a weight of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige.compression.budget import AnyGraph
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.ranks import ALONE, Ranks

Objective = Literal["distances", "neighbors"] | float

# Nearest items of each that count.
N_NEAR = 64

# Items that graphs are compared by, and the least number of items apart from the landmarks that are worth asking.
_N_SOURCES = 256
_LEAST_APART = 64

# Nearest items of which it is asked how many a graph keeps.
_N_NEAREST = 10


def near_weight(objective: Objective) -> float:
    """Return how much the mean squared error of near pairs counts beside that of all pairs.

    Examples
    --------
    >>> from prodige.compression.objective import near_weight
    >>> near_weight("distances"), near_weight(0.5), near_weight("neighbors")
    (0.0, 0.25, 1.0)
    """
    if isinstance(objective, str):
        if objective not in ("distances", "neighbors"):
            raise ValueError(f"objective must be 'distances', 'neighbors' or a number from 0 to 1, got {objective!r}")
        return float(objective == "neighbors")
    is_number = isinstance(objective, (int, float, np.number)) and not isinstance(objective, bool)
    if not is_number or not 0 <= objective <= 1:
        raise ValueError(f"objective must be 'distances', 'neighbors' or a number from 0 to 1, got {objective!r}")
    return float(objective) ** 2


@dataclass(frozen=True)
class NearPairs:
    """Every item's nearest others, and how much their errors count where that of a landmark counts 1.

    Attributes
    ----------
    items : ndarray of int32, shape [N, K]
    distances : ndarray of float32, shape [N, K]
    weight : float
        Of each pair.
    """

    items: NDArray[np.int32]
    distances: NDArray[np.float32]
    weight: float

    @classmethod
    def find(cls, space: Space, weight: float, n_landmarks: int, ranks: Ranks = ALONE) -> NearPairs:
        """Find the near pairs of a space; none where they do not count.

        Parameters
        ----------
        space : Space
        weight : float
            How much all of them count together, where all landmarks together count 1.
        n_landmarks : int
        ranks : Ranks, optional
            Processes that share the search; each gets all pairs.
        """
        n = space.n_items
        k = min(N_NEAR, n - 1) if weight > 0 else 0
        if k == 0:
            return cls(np.empty((n, 0), np.int32), np.empty((n, 0), np.float32), 0.0)
        distances, items = space.neighbors(k, space.n_jobs, ranks)
        return cls(
            np.ascontiguousarray(items, np.int32), np.ascontiguousarray(distances), float(weight * n_landmarks / k)
        )

    @property
    def n_near(self) -> int:
        """Near items of each."""
        return int(self.items.shape[1])


class Measured(NamedTuple):
    """What pairs that no fit has seen say of a graph."""

    objective: float  # mean squared error, that of near pairs added by their weight
    error: float  # of all pairs alike
    recall: float  # of the nearest; 0 where they do not count

    def beats(self, other: Measured) -> bool:
        """Whether all distances and the nearest items are both kept better."""
        return self.error < other.error and self.recall > other.recall


class Validation:
    """Pairs that no fit has seen, by which graphs of different kinds are compared.

    They are pairs of items that are no landmarks; where nearly all items are, there are no such pairs, and all pairs of
    some items stand for all pairs.

    Parameters
    ----------
    space : Space
    landmarks : Landmarks
    near : NearPairs
    weight : float
        How much near pairs count.
    random : RandomState
    """

    def __init__(
        self, space: Space, landmarks: Landmarks, near: NearPairs, weight: float, random: np.random.RandomState
    ) -> None:
        apart = np.setdiff1d(np.arange(space.n_items), landmarks.sources)
        self.targets = apart if apart.size >= _LEAST_APART else np.arange(space.n_items)
        self.sources = np.sort(random.permutation(self.targets)[:_N_SOURCES])
        self.space = space
        self.near = near
        self.weight = weight

    @cached_property
    def distances(self) -> NDArray[np.float32]:
        """The distances of the pairs; measured where there is something to compare."""
        return self.space.distances(self.sources, self.targets)

    def measure(self, graph: AnyGraph, n_jobs: int | None) -> Measured:
        """Compare a graph with the pairs, and with the nearest items of the sources where these count."""
        residual = graph.distances(self.sources, self.targets, n_jobs=n_jobs) - self.distances
        n_pairs = residual.size - np.isin(self.sources, self.targets).sum()
        error = float((residual.astype(np.float64) ** 2).sum()) / max(n_pairs, 1)
        if not self.near.n_near:
            return Measured(float(error), float(error), 0.0)
        nearest = self.near.items[self.sources]
        i = np.repeat(self.sources, self.near.n_near)
        found = graph.pair_distances(i, nearest.ravel(), n_jobs=n_jobs)
        near = found - self.near.distances[self.sources].ravel()
        k = min(_N_NEAREST, self.near.n_near)
        _, kept = graph.kneighbors(self.sources, k, n_jobs=n_jobs)
        recall = np.mean([np.isin(some, others).mean() for some, others in zip(nearest[:, :k], kept, strict=True)])
        weighed = error + self.weight * float((near.astype(np.float64) ** 2).mean())
        return Measured(float(weighed), float(error), float(recall))
