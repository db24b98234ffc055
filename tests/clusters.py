"""Points in clusters: data that the tests of compression the paper's way learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def clusters(n_items: int = 200, n_features: int = 10, n_clusters: int = 5, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_clusters, n_features)) * 3
    points: NDArray[np.float64] = centres[np.arange(n_items) % n_clusters] + rng.normal(size=(n_items, n_features))
    return points
