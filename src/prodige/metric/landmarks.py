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
from prodige.ranks import ALONE, Ranks, item_parts

# A table of 1 GiB at most, whatever the number of items.
_MOST_DISTANCES = 1 << 28

# Items that are measured at a time.
_BLOCK = 1024


@dataclass(frozen=True)
class Landmarks:
    """Some items, and the distances of all items to them.

    Attributes
    ----------
    sources : ndarray of int32, shape [M]
        The items that are landmarks. Their number is a multiple of what the core handles side by side; where there
        are few items each comes equally often.
    target : ndarray of float32, shape [N, M]
        Distances from every item to every landmark; where processes share the items, from those of this one.
    first : int
        The item of the first row.
    n_items : int
        Items of all rows, those of other processes among them.
    scale : float
        Mean distance; 1 where all distances are 0.

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
    first: int
    n_items: int
    scale: float

    @classmethod
    def draw(
        cls,
        space: Space,
        n_landmarks: int,
        random: np.random.RandomState,
        ranks: Ranks = ALONE,
        whole: bool = True,
    ) -> Landmarks:
        """Draw landmarks and measure all distances to them.

        Parameters
        ----------
        space : Space
            The same on all ranks.
        n_landmarks : int
            About how many; fewer where a table of them would be too large.
        random : RandomState
        ranks : Ranks, optional
            Processes that share the items.
        whole : bool
            Whether each of them is to have the distances of all items nevertheless.
        """
        n, lanes = space.n_items, _core.LANES
        n_landmarks = min(n_landmarks, max(_MOST_DISTANCES // n, lanes))
        if n <= min(n_landmarks, 8 * lanes):
            drawn = np.tile(random.permutation(n), lanes // math.gcd(n, lanes))
        else:
            drawn = random.permutation(n)[: min(n, n_landmarks) // lanes * lanes]
        sources = drawn.astype(np.int32)
        # Part by part, as last bits may depend on how many distances are asked for at a time.
        parts = item_parts(n)
        mine = parts if whole else [parts[number] for number in ranks.share(len(parts))]
        first, end = (mine[0].start, mine[-1].stop) if mine else (0, 0)
        target = np.empty((end - first, sources.size), dtype=np.float32)
        for part in mine:
            for begin in range(part.start, part.stop, _BLOCK):
                items = np.arange(begin, min(begin + _BLOCK, part.stop))
                target[items - first] = space.distances(items, sources)

        def total(part: int) -> NDArray[np.float64]:
            rows = target[parts[part].start - first : parts[part].stop - first]
            return np.array([rows.sum(dtype=np.float64)])

        scale = float(ranks.add(total, len(parts))[0]) / (n * sources.size) or 1.0
        return cls(sources, target, first, n, scale)

    def rows(self, items: slice) -> NDArray[np.float32]:
        """Return the distances of items that are next to each other."""
        return self.target[items.start - self.first : items.stop - self.first]

    @property
    def n_blocks(self) -> int:
        """Blocks of landmarks the core handles side by side."""
        return self.sources.size // _core.LANES
