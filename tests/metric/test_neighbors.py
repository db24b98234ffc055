"""Nearest neighbours as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prodige.metric.neighbors import nearest_neighbors
from prodige.metric.space import Space

POINTS = np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine"])
def test_exact(metric: str) -> None:
    expected = cdist(POINTS, POINTS, metric)
    np.fill_diagonal(expected, np.inf)
    distances, ids = nearest_neighbors(POINTS, 4, metric, n_jobs=1)
    np.testing.assert_array_equal(ids, np.argsort(expected, axis=1)[:, :4])
    np.testing.assert_allclose(distances, np.sort(expected, axis=1)[:, :4], atol=1e-7)
    in_space = Space(POINTS, metric).neighbors(4)
    np.testing.assert_array_equal(in_space[1], ids)


def test_fewer_items_than_neighbors() -> None:
    assert nearest_neighbors(POINTS[:3], 9)[1].shape == (3, 2)
    assert nearest_neighbors(POINTS[:1], 9)[1].shape == (1, 0)


def test_refused() -> None:
    with pytest.raises(ValueError, match="n_neighbors"):
        nearest_neighbors(POINTS, 0)
    with pytest.raises(ValueError, match="method must be 'exact' or 'approximate', got 'quick'"):
        nearest_neighbors(POINTS, 2, method="quick")  # type: ignore[arg-type]
