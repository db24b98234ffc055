"""Users with tastes: interactions that the tests of ranking graphs learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from prodige.recommendation.paper.candidates import CandidateEdges

VARIANTS: list[CandidateEdges] = ["normal", "bipartite", "random"]


def tastes(n_users: int = 200, n_items: int = 80, n_groups: int = 5, seed: int = 0) -> csr_array:
    """Users who meet a third of the items of their own group, and a few others."""
    rng = np.random.default_rng(seed)
    same = np.arange(n_users)[:, None] % n_groups == np.arange(n_items) % n_groups
    return csr_array((rng.random((n_users, n_items)) < np.where(same, 0.4, 0.02)).astype(np.float32))


def components(i: Any, j: Any, n: int) -> NDArray[Any]:
    labels: NDArray[Any] = connected_components(csr_array((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)[1]
    return labels
