"""Data of different kinds, each with its metric: those of the paper, digits, and three made by rule.

What holds for photographs need not hold for trees. Clusters, a surface that is bent through many dimensions, and the
paths of a tree are made anew by a seed, so nobody has to download them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import datasets
from prodige.metric.space import Space
from prodige.reproduce import figures

N_ITEMS = 2000


@dataclass(frozen=True)
class Family:
    """Items of one kind.

    Attributes
    ----------
    name : str
        As in :data:`NAMES`.
    X : ndarray of float32, shape [N, D], or [N, N] if the metric is ``"precomputed"``
    metric : str

    Examples
    --------
    >>> from prodige.reproduce import families
    >>> families.load("tree").space().distances([0], [0])
    array([[0.]], dtype=float32)
    """

    name: str
    X: NDArray[np.float32]
    metric: str = "euclidean"

    def space(self, n_jobs: int | None = None) -> Space:
        """Return the items with their metric."""
        return Space(self.X, self.metric, n_jobs=n_jobs)


def digits() -> Family:
    """Return the digits of scikit-learn, rows of length 1."""
    return Family("digits", figures.digits().X)


def clusters(n_items: int = N_ITEMS, seed: int = 0) -> Family:
    """Return points of 40 clusters in 50 dimensions, of different sizes, widths and shapes.

    Examples
    --------
    >>> from prodige.reproduce.families import clusters
    >>> clusters(100).X.shape
    (100, 50)
    """
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(40, 50))
    shapes = rng.gamma(1.0, size=(40, 50)) * rng.uniform(0.2, 0.8, size=(40, 1))
    which = rng.choice(40, n_items, p=rng.dirichlet(np.full(40, 2.0)))
    return Family("clusters", (centres[which] + shapes[which] * rng.normal(size=(n_items, 50))).astype(np.float32))


def manifold(n_items: int = N_ITEMS, seed: int = 0) -> Family:
    """Return points of a rolled-up sheet that is bent into 50 dimensions, with a little noise.

    Examples
    --------
    >>> from prodige.reproduce.families import manifold
    >>> manifold(100).X.shape
    (100, 50)
    """
    rng = np.random.default_rng(seed)
    angle, height = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n_items)), 2 * rng.uniform(size=n_items)
    roll = np.stack([angle * np.cos(angle) / 10, angle * np.sin(angle) / 10, height], axis=1)
    bends = np.cos(roll @ rng.normal(scale=2, size=(3, 50)) + rng.uniform(0, 2 * np.pi, 50))
    return Family("manifold", (bends + rng.normal(scale=0.05, size=bends.shape)).astype(np.float32))


def tree(n_items: int = N_ITEMS, seed: int = 0) -> Family:
    """Return the lengths of the paths of a random tree, each wrong by some per cent.

    Examples
    --------
    >>> from prodige.reproduce.families import tree
    >>> tree(100).metric
    'precomputed'
    """
    rng = np.random.default_rng(seed)
    paths = np.zeros((n_items, n_items))
    for item in range(1, n_items):
        parent = int(rng.integers(item))
        paths[item, :item] = paths[:item, item] = paths[parent, :item] + rng.uniform(0.5, 1.5)
    noise = np.exp(0.05 * np.triu(rng.normal(size=paths.shape), 1))
    noise = np.triu(noise, 1)
    return Family("tree", (paths * (noise + noise.T)).astype(np.float32), "precomputed")


MADE: dict[str, Callable[[], Family]] = {"digits": digits, "clusters": clusters, "manifold": manifold, "tree": tree}
NAMES = (*datasets.NAMES, *MADE)


def load(name: str, data_dir: Path | str | None = None) -> Family:
    """Return the items of a name.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`.
    data_dir : path, optional
        Where data of the paper are, as in :func:`prodige.datasets.load`.

    Examples
    --------
    >>> from prodige.reproduce import families
    >>> families.load("manifold").X.shape
    (2000, 50)
    """
    if name in MADE:
        return MADE[name]()
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}, got {name!r}")
    options: dict[str, Any] = {} if data_dir is None else {"data_dir": data_dir}
    return Family(name, datasets.load(name, **options).X)
