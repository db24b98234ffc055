"""Landmarks: the distances a graph is fitted to.

All pairs are too many to keep. The distances of every item to a few thousand of them, drawn at random, say nearly as
much: an item has a handful of weights to learn, and thousands of distances to learn them from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.metric.space import Space

# A table of 1 GiB at most, whatever the number of items.
_MOST_DISTANCES = 1 << 28


@dataclass(frozen=True)
class Landmarks:
    """Some items, and the distances of all items to them.

    Attributes
    ----------
    sources : ndarray of int32, shape [M]
        The items that are landmarks. Their number is a multiple of what the core handles side by side; where there
        are few items each comes equally often.
    target : ndarray of float32, shape [N, M]
        Distances from every item to every landmark.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.landmarks import Landmarks
    >>> from prodige.metric.space import Space
    >>> space = Space(np.random.default_rng(0).normal(size=(300, 5)))
    >>> Landmarks.draw(space, 100, np.random.RandomState(0)).target.shape
    (300, 96)
    """

    sources: NDArray[np.int32]
    target: NDArray[np.float32]

    @classmethod
    def draw(cls, space: Space, n_landmarks: int, random: np.random.RandomState) -> Landmarks:
        """Draw landmarks and measure all distances to them."""
        n, lanes = space.n_items, _core.LANES
        n_landmarks = min(n_landmarks, max(_MOST_DISTANCES // n, lanes))
        if n <= min(n_landmarks, 8 * lanes):
            drawn = np.tile(random.permutation(n), lanes // math.gcd(n, lanes))
        else:
            drawn = random.permutation(n)[: min(n, n_landmarks) // lanes * lanes]
        sources = drawn.astype(np.int32)
        target = np.empty((n, sources.size), dtype=np.float32)
        for begin in range(0, n, 1024):
            items = np.arange(begin, min(begin + 1024, n))
            target[items] = space.distances(items, sources)
        return cls(sources, target)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.target)

    @property
    def n_blocks(self) -> int:
        """Blocks of landmarks the core handles side by side."""
        return self.sources.size // _core.LANES

    @property
    def scale(self) -> float:
        """Mean distance; 1 where all distances are 0."""
        return float(self.target.mean(dtype=np.float64)) or 1.0
