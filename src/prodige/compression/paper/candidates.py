"""Random items that all others are joined to, and what compression as in the paper starts from.

Every item gets candidate edges to its nearest ones and to some random ones, and the random ones are the same for all.
Some of them become hubs. They take the place of virtual ones, which the paper does not have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prodige.compression.paper.bernoulli import BernoulliEdges
from prodige.metric.candidates import Candidates
from prodige.metric.space import Space
from prodige.metric.star import star_radii_of_means

# No weight starts below this part of the mean distance: the slope of softplus would be lost.
_SHORTEST = 0.02

# Distances that the start is worked out from, and columns of them, at most: 128 MiB as float32.
_START_DISTANCES = 1 << 25
_START_COLUMNS = 1024

Floats = NDArray[np.float32]


def most_random(n_items: int, n_edges: int) -> int:
    """Return how many random items there may be: all edges between them, the last to go, must fit into the budget."""
    return min(n_items, int((1 + math.isqrt(1 + 8 * n_edges)) / 2))


def choose_n_random(n_items: int, n_edges: int, variance: float) -> int:
    """Return the number of random items: enough to choose from, and few enough to be hubs.

    An item that is a hub is half as far from the others as it should be. Of all pairs, 2h/N are between h hubs and an
    item, so they cost h/2N of the mean distance squared. That is kept to 15 % of the variance, what a constant costs.

    Parameters
    ----------
    n_items, n_edges : int
    variance : float
        Of the distances, in squares of their mean.
    """
    if n_edges >= n_items * (n_items - 1) // 2:
        return n_items
    target = min(n_items**0.5 / 4, 0.3 * n_items * variance)
    return int(np.clip(round(max(target, n_edges / n_items)), 1, most_random(n_items, n_edges)))


def relative_variance(space: Space, random: np.random.RandomState, n_sources: int = 64) -> float:
    """Return the variance of the distances in squares of their mean, from those of some items to all."""
    sources = random.permutation(space.n_items)[:n_sources]
    block = space.distances(sources).astype(np.float64)
    n_pairs = block.size - sources.size  # without the item itself, whose 0 changes no sum
    mean = block.sum() / n_pairs
    return float((block**2).sum() / n_pairs / mean**2 - 1) if mean > 0 else 0.0


@dataclass(frozen=True)
class StarStart:
    """Weights to begin with, in mean distances: from every item to every random item, shape [N, H].

    With items grouped around the random ones, and the radii r of the best star, an item is farther from a group than
    the radii say by c, the mean of D_ij - r_i - r_j over the group. So r_i + c is the weight of its edge to there.

    Attributes
    ----------
    weight : ndarray of float32, shape [N, H]
    scale : float
        Mean distance; 1 where all distances are 0.
    unreachable : float
        Stands for the distance where there is no path: somewhat more than the mean. A constant guess costs about that,
        so an item that is cut off looks as bad as it is, and no worse.
    """

    weight: Floats
    scale: float
    unreachable: float

    @classmethod
    def of(
        cls, space: Space, random_items: NDArray[np.int64], random: np.random.RandomState, n_rounds: int = 6
    ) -> StarStart:
        """Group the items and work out the weights, from the distances to a sample of items."""
        n, n_groups = space.n_items, random_items.size
        n_columns = int(np.clip(_START_DISTANCES // n, 1, _START_COLUMNS))
        columns = np.union1d(random.permutation(n)[:n_columns], random_items)
        target = space.distances(columns).T
        scale = float(target.mean(dtype=np.float64)) or 1.0
        target = target / np.float32(scale)
        n_others = (columns.size - np.isin(np.arange(n), columns)).astype(np.float32)
        radius = star_radii_of_means(target.sum(axis=1) / n_others)
        excess = target - radius[:, None] - radius[columns]

        # As in k-means: an item fits a group that sees all groups as it does, apart from how far out it is itself.
        view = excess[:, np.searchsorted(columns, random_items)]
        share = np.full(n_groups, 1 / n_groups, dtype=np.float32)
        centre = view[random_items]
        for _ in range(n_rounds):
            group = nearest_group(view, centre, share)
            group[random_items] = np.arange(n_groups)  # no group is ever empty
            is_member = (group[columns][:, None] == np.arange(n_groups)).astype(np.float32)
            share = is_member.mean(axis=0)
            view = excess @ (is_member / is_member.sum(axis=0))
            centre = np.stack([np.bincount(group, column, n_groups) for column in view.T], axis=1).astype(np.float32)
            centre /= np.bincount(group, minlength=n_groups)[:, None]

        # Within a group there is no edge to shorten: the radii give way, and the edges to other groups make up for it.
        within = np.minimum(np.diagonal(centre), 0)
        weight = radius[:, None] + view - within / 2
        weight[np.arange(n), group] = radius + within[group] / 2
        weight[random_items] = (centre + centre.T - within[:, None] - within) / 2
        return cls(np.maximum(weight, _SHORTEST), scale, 1 + 0.5 * float(target.std()))


def nearest_group(view: Floats, centre: Floats, share: Floats) -> NDArray[np.int64]:
    """Return the centre that each row is closest to, apart from a constant; columns count by their share."""
    view, centre = ((rows - rows @ share[:, None]) * np.sqrt(share) for rows in (view, centre))
    return np.asarray(((centre**2).sum(axis=1) - 2 * view @ centre.T).argmin(axis=1))


def join(
    space: Space, random_items: NDArray[np.int64], start: StarStart, n_neighbors: int, n_jobs: int | None
) -> BernoulliEdges:
    """Return candidate edges from every item to the random ones and to its nearest items."""
    n = space.n_items
    tail, head = np.repeat(np.arange(n), random_items.size), np.tile(random_items, n)
    weight = start.weight.ravel()
    if n_neighbors > 0:
        near = Candidates.of_neighbors(*space.neighbors(n_neighbors, n_jobs))
        tail, head = np.concatenate([tail, near.i]), np.concatenate([head, near.j])
        weight = np.concatenate([weight, np.maximum(near.weight / start.scale, _SHORTEST)])
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    _, first = np.unique(low * n + high, return_index=True)  # of two, that to a random item
    first = first[low[first] != high[first]]
    return BernoulliEdges.start(low[first].astype(np.int32), high[first].astype(np.int32), weight[first])
