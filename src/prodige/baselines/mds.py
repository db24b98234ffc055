"""MDS: vectors whose Euclidean distances are as close to the true ones as can be.

Metric multidimensional scaling with the raw stress of the paper's table, by gradient descent.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from prodige._validation import check_integer
from prodige.baselines.base import Items, Vectors
from prodige.baselines.classical import start
from prodige.baselines.descent import check_rate, descend, squared_distances
from prodige.metric.space import Metric, Space


class MDS(Vectors):
    """Metric multidimensional scaling, for any metric and without a matrix of all distances.

    Vectors start from classical scaling and are moved by Adam.

    Parameters
    ----------
    n_components : int
        Coordinates of an item.
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
    embedding_ : ndarray of float32, shape [N, n_components]
    history_ : list of prodige.progress.Record
        One for each step; the loss is that of the batch.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import PCA, MDS
    >>> points = np.random.default_rng(0).normal(size=(60, 10))
    >>> mds = MDS(n_components=3, n_steps=200, random_state=0).fit(points)
    >>> mds.score(points) > PCA(n_components=3).fit(points).score(points)
    True
    """

    def __init__(
        self,
        n_components: int = 4,
        metric: Metric = "euclidean",
        *,
        n_steps: int = 1000,
        batch_size: int = 64,
        learning_rate: float = 0.02,
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
        k = check_integer("n_components", self.n_components, 1, 2**15)
        random = check_random_state(self.random_state)
        begin = start(space, k, random)
        points = torch.nn.Parameter(torch.from_numpy(begin.embedding).float())
        self.history_ = descend(
            space,
            lambda sources: euclidean(points, sources),
            torch.optim.Adam([points], lr=check_rate(self.learning_rate)),
            unit=begin.mean_distance,
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            random=random,
            began=began,
            verbose=self.verbose,
        )
        self.embedding_ = points.detach().numpy() * np.float32(begin.mean_distance)

    def _distances(self, rows: Items, columns: Items) -> NDArray[np.float32]:
        return Space(self.embedding_, n_jobs=self.n_jobs).distances(rows, columns)


def euclidean(points: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    """Return Euclidean distances to all points; their gradient stays finite where points meet."""
    return (squared_distances(points, sources) + 1e-12).sqrt()
