"""Near items of new ones: those of a sample, whose places are known.

Where neighbours are to be kept, an item is fitted to its nearest items as well as to all. In the pass over many items
the nearest ones of the sample stand for these: they are not as near as the nearest of all, but near enough to say where
an item is among its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from prodige.compression.objective import N_NEAR
from prodige.metric.space import Space
from prodige.threads import in_parts, limit, one_thread

# Rows that a thread looks at: fixed, as what is found may differ in the last bits where blocks do.
_PART = 1024


@dataclass(frozen=True)
class NearSample:
    """The items of a sample, to be asked for the nearest of new ones.

    Attributes
    ----------
    space : Space
        The sample, whose items are those of the product.
    weight : float
        How much near items count all together, where all anchors together count 1.
    """

    space: Space
    weight: float

    @property
    def n_near(self) -> int:
        """How many are asked for."""
        return min(N_NEAR, self.space.n_items)

    @cached_property
    def index(self) -> Any:
        """What answers."""
        return NearestNeighbors(metric=self.space.measure, algorithm="brute", n_jobs=1).fit(self.space.points)

    @one_thread()
    def find(self, rows: Any, n_threads: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the nearest items of the sample and their distances, shape [M, K]."""

        def of_part(part: slice) -> tuple[NDArray[Any], NDArray[Any]]:
            with limit("openmp"):  # a setting of this thread alone
                distances, items = self.index.kneighbors(rows[part], self.n_near)
            return items, distances

        parts = [slice(begin, min(begin + _PART, rows.shape[0])) for begin in range(0, rows.shape[0], _PART)]
        found = in_parts(of_part, parts, n_threads)
        items, distances = (np.concatenate(some) for some in zip(*found, strict=True))
        return items.astype(np.int32), distances.astype(np.float32)
