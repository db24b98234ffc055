"""Places of items that suit near pairs as well.

Classical scaling and distances to anchors say where an item is among all others, and little of where it is among its
nearest: of ten thousand items ten are near. Where neighbours count, items are therefore moved down the squared error of
their distances to the anchors and, with a weight, of those to their nearest items: all items at once, by the steps of
Adam (Kingma and Ba, 2015), which get shorter.

The slope of an item is made of its own pairs alone, with anchors in the place of all items, so items are shared out
over threads and processes, and the result does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige import _core
from prodige.compression.objective import NearPairs
from prodige.metric.scaling import Floats
from prodige.progress import IsOver, never
from prodige.ranks import ALONE, Ranks, item_parts

# Steps, and how long they are at first, in mean distances: of coordinates and of lengths.
_N_STEPS = 40
_STEP, _LENGTH_STEP = 0.02, 0.01

# Anchors that a step looks at: others in the next one.
_N_SEEN = 256

# Rounds of choosing lengths, each half of the way.
_N_LENGTH_ROUNDS = 6

# Places nearer than this, in mean distances, are taken to be so far apart: directions between them mean nothing.
NEAR = 1e-3


@dataclass(frozen=True)
class Neighborhood:
    """Near pairs, from either side.

    Attributes
    ----------
    distances, shares : csr_array, shape [N, N]
        Of an item and its near ones: how far they are, in mean distances, and how much that counts, where all its
        distances to anchors together count 1. Both have the same entries.
    weight : float
        How much near pairs count altogether.
    """

    distances: csr_array
    shares: csr_array
    weight: float

    @classmethod
    def of(cls, near: NearPairs, weight: float, scale: float) -> Neighborhood:
        """Return near pairs from either side, with distances in units of ``scale``.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige.compression.near_places import Neighborhood
        >>> from prodige.compression.objective import NearPairs
        >>> near = NearPairs(np.array([[1], [0], [1]], np.int32), np.array([[2], [2], [4]], np.float32), 1.0)
        >>> found = Neighborhood.of(near, 1.0, scale=2.0)
        >>> found.distances.toarray().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]]
        >>> found.shares.toarray().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]]
        """
        n, k = near.items.shape
        starts, items = np.arange(n + 1, dtype=np.int32) * np.int32(k), near.items.ravel()
        once = csr_array((np.ones(items.size, np.float32), items, starts), shape=(n, n))
        shares = csr_array(once + once.T)
        shares.data *= np.float32(weight / (2 * k))
        # One more than the distance, as sums and maxima leave zeros out.
        far = csr_array((near.distances.ravel() / np.float32(scale) + np.float32(1), items, starts), shape=(n, n))
        distances = csr_array(far.maximum(far.T))
        for table in (shares, distances):
            table.sort_indices()
        distances.data -= np.float32(1)
        return cls(distances, shares, weight)

    def between(self, places: NDArray[np.float32], rows: slice) -> NDArray[np.float32]:
        """Return how far some items are from their near ones, in the order of the entries."""
        here = slice(self.shares.indptr[rows.start], self.shares.indptr[rows.stop])
        own = np.repeat(places[rows], np.diff(self.shares.indptr[rows.start : rows.stop + 1]), axis=0)
        own -= places[self.shares.indices[here]]
        found: NDArray[np.float32] = np.maximum(np.sqrt(np.einsum("ij,ij->i", own, own)), np.float32(NEAR))
        return found

    def influences(self, places: Floats, items: NDArray[np.int64]) -> Floats:
        """Return how much the squared error of a coordinate matters to that of distances in near pairs of items."""
        row = np.repeat(np.arange(items.size), np.diff(self.shares.indptr)[items])
        columns = np.concatenate([self.shares.indices[slice(*self.shares.indptr[[i, i + 1]])] for i in items])
        squares = np.square(places[items[row]] - places[columns])
        found: Floats = (squares / np.maximum(squares.sum(axis=1, keepdims=True), NEAR**2)).mean(axis=0)
        return found

    def suit_lengths(self, lengths: Floats, left: Floats, anchors: NDArray[np.int64], places: Floats) -> Floats:
        """Return lengths that suit near pairs as well.

        Parameters
        ----------
        lengths : ndarray, shape [N]
            To begin with.
        left : ndarray, shape [N]
            What places leave over of the distances to the anchors, on average.
        anchors : ndarray of int64
        places : ndarray, shape [N, K]
        """
        rows = places.astype(np.float32)
        flat = np.concatenate([self.between(rows, part) for part in item_parts(len(rows))])
        near = csr_array((self.shares.data * (self.distances.data - flat), *self._pattern), shape=self.shares.shape)
        left, counts = left + near.sum(axis=1), 1 + self.shares.sum(axis=1)
        for _ in range(_N_LENGTH_ROUNDS):
            suited = (left - lengths[anchors].mean() - self.shares @ lengths) / counts
            lengths = np.maximum((lengths + suited) / 2, 0)
        return lengths

    @property
    def _pattern(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        return self.shares.indices, self.shares.indptr


@dataclass(frozen=True)
class Beside:
    """Near items of some others, where they hang, for items that are placed each by itself.

    Attributes
    ----------
    places : ndarray of float32, shape [n, k, K]
    lengths, distances, shares : ndarray of float32, shape [n, k]
        Of the near items; how far they should be, and how much that counts beside one anchor.
    """

    places: NDArray[np.float32]
    lengths: NDArray[np.float32]
    distances: NDArray[np.float32]
    shares: NDArray[np.float32]

    def measure(self, places: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the ways from the near items, shape [n, k, K], and how long they are."""
        ways = places[:, None, :] - self.places
        flat: NDArray[np.float32] = np.maximum(np.sqrt(np.einsum("nkd,nkd->nk", ways, ways)), np.float32(NEAR))
        return ways, flat

    def suit_length(self, flat: NDArray[np.float32], left: NDArray[np.float32], n_anchors: int) -> NDArray[np.float32]:
        """Return lengths that suit near items and what is left of distances to the anchors on average, 0 or more."""
        rest = self.distances - flat - self.lengths
        total = n_anchors * left + (self.shares * rest).sum(axis=1)
        found: NDArray[np.float32] = np.maximum(total / (n_anchors + self.shares.sum(axis=1)), np.float32(0))
        return found


# Returns the distances of a part of the items to some of the anchors, given by their numbers, in units of their mean.
Targets: TypeAlias = Callable[[slice, NDArray[np.int64]], NDArray[np.float32]]


def suit_near(
    places: NDArray[np.float32],
    lengths: NDArray[np.float32],
    anchors: NDArray[np.int64],
    targets: Targets,
    near: Neighborhood,
    n_jobs: int = 1,
    ranks: Ranks = ALONE,
    is_over: IsOver = never,
) -> NDArray[np.float32]:
    """Return places that suit near pairs as well.

    Parameters
    ----------
    places : ndarray, shape [N, K]
    lengths : ndarray, shape [N]
    anchors : ndarray of int64, shape [A]
    targets : callable
        Asked for parts of the items that are this process's own.
    near : Neighborhood
    n_jobs : int
        Threads; the result does not depend on it.
    ranks : Ranks, optional
    is_over : callable, optional
        Says whether to stop early.
    """
    at, hung = torch.from_numpy(places.copy()), torch.from_numpy(lengths.copy())
    steps = torch.optim.Adam([{"params": [at], "lr": _STEP}, {"params": [hung], "lr": _LENGTH_STEP}])
    shorter = torch.optim.lr_scheduler.CosineAnnealingLR(steps, _N_STEPS)
    parts, n_turns = item_parts(len(places)), -(-anchors.size // _N_SEEN)
    for number in range(_N_STEPS):
        if ranks.any(is_over()):
            break
        some = np.arange(number % n_turns, anchors.size, n_turns)
        slopes = Slopes(at.numpy(), hung.numpy(), anchors[some], near)
        found = ranks.in_parts(lambda part: slopes.of(part, targets(part, some)), parts, n_jobs)  # noqa: B023
        slope = torch.from_numpy(np.concatenate(found))
        at.grad, hung.grad = slope[:, :-1].contiguous(), slope[:, -1].contiguous()
        steps.step()
        shorter.step()
        hung.clamp_(min=0)
    return at.numpy()


@dataclass(frozen=True)
class Slopes:
    """Which way, and how steeply, the error of each item rises.

    Attributes
    ----------
    places : ndarray of float32, shape [N, K]
    lengths : ndarray of float32, shape [N]
    anchors : ndarray of int64, shape [A]
    near : Neighborhood
    """

    places: NDArray[np.float32]
    lengths: NDArray[np.float32]
    anchors: NDArray[np.int64]
    near: Neighborhood

    def of(self, part: slice, target: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the slopes of half the error of a part of the items, by place and length, shape [n, K + 1]."""
        own, others = self.places[part], self.places[self.anchors]
        flat: NDArray[np.float32] = np.maximum(_core.measure_rows(own, others, 1), np.float32(NEAR))
        wrong: NDArray[np.float32] = flat + self.lengths[part][:, None] + self.lengths[self.anchors] - target
        wrong[self.anchors == np.arange(part.start, part.stop)[:, None]] = 0  # an item from itself
        wrong *= np.float32(1 / self.anchors.size)
        pulls: NDArray[np.float32] = wrong / flat
        found = np.empty((len(own), own.shape[1] + 1), np.float32)
        found[:, :-1] = own * pulls.sum(axis=1)[:, None] - _core.multiply_rows(pulls, np.ascontiguousarray(others.T), 1)
        found[:, -1] = wrong.sum(axis=1)
        indptr, indices = self.near.shares.indptr[part.start : part.stop + 1], self.near.shares.indices
        here = slice(indptr[0], indptr[-1])
        flat = self.near.between(self.places, part)
        lengths = np.repeat(self.lengths[part], np.diff(indptr)) + self.lengths[indices[here]]
        wrong = (flat + lengths - self.near.distances.data[here]) * self.near.shares.data[here]
        shape = (len(own), len(self.places))
        pulled = csr_array((wrong / flat, indices[here], indptr - indptr[0]), shape=shape)
        found[:, :-1] += own * pulled.sum(axis=1)[:, None] - pulled @ self.places
        found[:, -1] += csr_array((wrong, indices[here], indptr - indptr[0]), shape=shape).sum(axis=1)
        return found
