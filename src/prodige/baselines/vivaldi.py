"""Vivaldi: coordinates with a height, as networks predict travel times.

Every item is a point of few dimensions with a height, which each way to it or from it adds: D_ij = |x_i − x_j| + h_i +
h_j. In a network that is the access link; in other data it is what many dimensions add to every distance. Vivaldi
(Dabek and others, 2004) moves points by one measurement at a time; here the same model is fitted by descent.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from prodige._validation import check_integer
from prodige.baselines.base import Items, Vectors, flat_space
from prodige.baselines.classical import ClassicalStart, landmark_star, start
from prodige.baselines.descent import check_rate, descend
from prodige.baselines.mds import euclidean
from prodige.metric.space import Metric, Space

# Sizes of the plane to try at the start, as shares of what classical scaling gives.
_SIZES = (0.25, 0.5, 0.75, 1.0)


class Vivaldi(Vectors):
    """Euclidean coordinates with a height, for any metric and without a matrix of all distances.

    Parameters
    ----------
    n_components : int
        Numbers of an item: all but one of them are coordinates.
    metric : str or callable
        Any scikit-learn metric name, ``"precomputed"``, or a function of two rows.
    n_steps, batch_size : int
        Steps of the optimiser, and sources in each.
    learning_rate : float
        At the start, in units of the mean distance.
    random_state : int, RandomState or None
        A seed gives the same result on the same machine, with any number of threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    verbose : int
        Above 0 shows a progress bar.

    Attributes
    ----------
    embedding_ : ndarray of float32, shape [N, n_components - 1]
    height_ : ndarray of float32, shape [N]
        May be negative, where that is closer to the distances; sums below 0 are answered by 0.
    history_ : list of prodige.progress.Record
        One for each step; the loss is that of the batch.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import MDS, Vivaldi
    >>> points = np.random.default_rng(0).normal(size=(60, 10))
    >>> high, flat = (kind(3, n_steps=100, random_state=0).fit(points) for kind in (Vivaldi, MDS))
    >>> high.score(points) > flat.score(points)
    True
    """

    def __init__(
        self,
        n_components: int = 4,
        metric: Metric = "euclidean",
        *,
        n_steps: int = 1000,
        batch_size: int = 64,
        learning_rate: float = 0.005,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, space: Space) -> None:
        began = time.perf_counter()
        width = check_integer("n_components", self.n_components, 1, 2**15) - 1
        random = check_random_state(self.random_state)
        begin = start(space, max(width, 1), random)
        points, heights = (torch.nn.Parameter(torch.from_numpy(part).float()) for part in best_size(begin, width))
        self.history_ = descend(
            space,
            lambda sources: lifted(points, heights, sources),
            torch.optim.Adam([points, heights], lr=check_rate(self.learning_rate)),
            unit=begin.mean_distance,
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            random=random,
            began=began,
            verbose=self.verbose,
        )
        unit = np.float32(begin.mean_distance)
        self.embedding_, self.height_ = (part.detach().numpy() * unit for part in (points, heights))

    def _distances(self, rows: Items, columns: Items) -> NDArray[np.float32]:
        return raised(self.embedding_, self.height_, rows, columns, self.n_jobs)


def best_size(begin: ClassicalStart, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points of the best of several starts, and the heights that go with them."""
    found = []
    for size in _SIZES:
        points = begin.embedding[:, :width] * size
        flat = flat_space(points).distances(begin.landmarks)
        left = begin.distances - flat
        heights = landmark_star(left, begin.landmarks)
        error = np.square(left - heights[begin.landmarks][:, None] - heights[None]).mean()
        found.append((float(error), points, heights))
    return min(found, key=lambda entry: entry[0])[1:]


def lifted(points: torch.Tensor, heights: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    """Return distances to all items; 0 from an item to itself, whatever its height.

    Examples
    --------
    >>> import torch
    >>> from prodige.baselines.vivaldi import lifted
    >>> lifted(torch.tensor([[0.0], [2.0]]), torch.tensor([0.5, 1.0]), torch.tensor([0]))
    tensor([[0.0000, 3.5000]])
    """
    block = euclidean(points, sources) + heights[sources][:, None] + heights[None]
    block[torch.arange(sources.numel()), sources] = 0
    return block


def raised(
    points: NDArray[np.float32], heights: NDArray[np.float32], rows: Items, columns: Items, n_jobs: int | None
) -> NDArray[np.float32]:
    """Return |x − y| + h + k of the points and heights of rows and columns; 0 where that is below 0."""
    block = flat_space(points, n_jobs).distances(rows, columns)
    block += heights[rows][:, None]
    block += heights[columns][None]
    return np.maximum(block, 0, out=block)
