"""PoincareMDS: points of hyperbolic space whose distances are as close to the true ones as can be.

In the Poincaré ball, arcosh(1 + 2 |x − y|² / ((1 − |x|²) (1 − |y|²))) is the distance of two points. How curved the
space is relative to the data is one number, the scale that distances are multiplied by, and it decides everything.
Where it is large, points stay near the centre and the space is flat. Where it is small, they move outwards and the way
between most of them leads through the centre, as in a star or a tree.

A scale of 1, near which the paper's figures lie, is nearly flat for rows of length 1. Learned with the points, it makes
the error several times smaller.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state, gen_batches

from prodige._validation import check_integer
from prodige.baselines.base import Items, Vectors
from prodige.baselines.classical import ClassicalStart, best_scale, landmark_star, start
from prodige.baselines.descent import check_rate, descend, squared_distances
from prodige.metric.space import Metric, Space
from prodige.threads import count_threads, in_parts

# Mean distances in hyperbolic units to try at the start: from nearly flat to nearly a tree.
_SIZES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)

# Sources that a thread measures from at a time.
_PART = 64

# Landmarks that the starts are compared by.
_JUDGES = 100


class PoincareMDS(Vectors):
    """Multidimensional scaling in hyperbolic space, for any metric and without a matrix of all distances.

    Points start in the directions of classical scaling, at the distance from the centre that the best star or classical
    scaling gives them, whichever fits better, and are moved by the Riemannian Adam of geoopt (extra ``hyperbolic``).
    Learning is in float64, as points crowd at the rim of the ball; what is kept is float32.

    Parameters
    ----------
    n_components : int
        Coordinates of an item.
    metric : str or callable
        Any scikit-learn metric name, ``"precomputed"``, or a function of two rows.
    scale : float, optional
        Distance in the data of one hyperbolic unit; the curvature is −1 / scale². Learned when left out. The paper's
        figures lie near those of ``scale=1``.
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
        Points of the unit ball.
    scale_ : float
        What hyperbolic distances are multiplied by.
    history_ : list of prodige.progress.Record
        One for each step; the loss is that of the batch.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import MDS, PoincareMDS
    >>> points = np.random.default_rng(0).normal(size=(60, 30))
    >>> curved, flat = (kind(2, n_steps=100, random_state=0).fit(points) for kind in (PoincareMDS, MDS))
    >>> curved.score(points) > flat.score(points)
    True
    """

    def __init__(
        self,
        n_components: int = 4,
        metric: Metric = "euclidean",
        *,
        scale: float | None = None,
        n_steps: int = 1000,
        batch_size: int = 64,
        learning_rate: float = 0.015,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.scale = scale
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def shared_numbers(self) -> int:
        """The scale."""
        return 1

    def _fit(self, space: Space) -> None:
        began = time.perf_counter()
        geoopt = import_geoopt()
        k = check_integer("n_components", self.n_components, 1, 2**15)
        rate = check_rate(self.learning_rate)
        if self.scale is not None and not 0 < self.scale < np.inf:
            raise ValueError(f"scale must be a finite number above 0, or None to learn it, got {self.scale}")
        random = check_random_state(self.random_state)
        begin = start(space, k, random)
        unit = begin.mean_distance
        first, scale = hyperbolic_start(begin, None if self.scale is None else self.scale / unit)

        ball = geoopt.PoincareBall()
        points = geoopt.ManifoldParameter(ball.projx(first), manifold=ball)
        log_scale = torch.nn.Parameter(torch.tensor(np.log(scale), dtype=torch.float64))
        groups = [{"params": [points], "lr": rate / scale}]  # a step in hyperbolic units
        if self.scale is None:
            groups.append({"params": [log_scale], "lr": rate})
        self.history_ = descend(
            space,
            lambda sources: hyperbolic(points, sources) * log_scale.exp(),
            geoopt.optim.RiemannianAdam(groups),
            unit=unit,
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            random=random,
            began=began,
            verbose=self.verbose,
        )
        self.embedding_ = points.detach().numpy().astype(np.float32)
        self.scale_ = float(log_scale.detach().exp()) * unit

    def _distances(self, rows: Items, columns: Items) -> NDArray[Any]:
        points, targets = torch.from_numpy(self.embedding_).double(), torch.from_numpy(columns)

        def measure(part: slice) -> NDArray[np.float64]:
            return hyperbolic(points, torch.from_numpy(rows[part]), targets).numpy() * self.scale_

        blocks = in_parts(measure, gen_batches(rows.size, _PART) if rows.size else [], count_threads(self.n_jobs))
        return np.concatenate([np.empty((0, columns.size)), *blocks])


def hyperbolic(points: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor | None = None) -> torch.Tensor:
    """Return the distances in the Poincaré ball; their gradient stays finite where points meet.

    Examples
    --------
    >>> import torch
    >>> from prodige.baselines.poincare import hyperbolic
    >>> hyperbolic(torch.tensor([[0.0], [0.5], [-0.5]]), torch.tensor([1])).round(decimals=3)
    tensor([[1.0990, 0.0000, 2.1970]])
    """
    inside = 1 - points.square().sum(dim=1)
    others = slice(None) if targets is None else targets
    excess = squared_distances(points, sources, targets) * 2 / (inside[sources][:, None] * inside[others][None])
    excess = excess + 1e-14
    # arcosh(1 + u) without losing a small u
    return torch.log1p(excess + (excess * (excess + 2)).sqrt())


def hyperbolic_start(begin: ClassicalStart, scale: float | None) -> tuple[torch.Tensor, float]:
    """Return the best of several starts: points of the ball, float64, and the scale that goes with them."""
    length = np.linalg.norm(begin.embedding, axis=1)
    direction = begin.embedding / np.maximum(length, np.finfo(np.float64).tiny)[:, None]
    judges = begin.landmarks[:_JUDGES]
    target = begin.distances[:_JUDGES]
    best: tuple[float, torch.Tensor, float] | None = None
    for radius in (length, landmark_radii(begin)):
        for size in _SIZES if scale is None else (1 / scale,):
            points = torch.tensor(direction * np.tanh(np.minimum(radius * size, 12) / 2)[:, None])
            predicted = hyperbolic(points, torch.from_numpy(judges)).float().numpy()
            factor = best_scale(predicted, target) if scale is None else scale
            error = float(np.square(predicted * np.float32(factor) - target).mean())
            if best is None or error < best[0]:
                best = error, points, factor
    assert best is not None
    return best[1:]


def landmark_radii(begin: ClassicalStart) -> NDArray[np.float64]:
    """Return the radii of the best star as far as the landmarks tell, 0.05 mean distances or more."""
    return np.maximum(landmark_star(begin.distances, begin.landmarks), 0.05)


def import_geoopt() -> Any:
    """Return geoopt, or say how to get it."""
    try:
        with warnings.catch_warnings():
            # geoopt 0.5 compiles functions when it is imported, in a way torch has deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            import geoopt
    except ImportError as error:
        raise ImportError("PoincareMDS needs geoopt; pip install 'prodige[hyperbolic]'") from error
    return geoopt
