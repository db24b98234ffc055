"""Distances between rows projected on principal components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition
from scipy.spatial.distance import pdist, squareform

from prodige.baselines import PCA

POINTS = np.random.default_rng(3).normal(size=(70, 9)) * np.arange(1, 10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matches_scikit_learn(dtype: Any) -> None:
    for k in (1, 4, 9):
        projected = sklearn.decomposition.PCA(k, svd_solver="full").fit_transform(POINTS)
        model = PCA(k).fit(POINTS.astype(dtype))
        np.testing.assert_allclose(model.distances(np.arange(70)), squareform(pdist(projected)), atol=1e-3)
        assert model.score(POINTS) == pytest.approx(
            -np.mean((pdist(projected) - pdist(POINTS)) ** 2), rel=1e-5, abs=1e-6
        )
    assert model.score(POINTS) == pytest.approx(0, abs=1e-6)  # all components: nothing is lost


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="n_components must be between 1 and 9, got 10"):
        PCA(10).fit(POINTS)
    with pytest.raises(ValueError, match=r"dense rows and metric='euclidean', got ndarray and 'cosine'; use MDS"):
        PCA(2, "cosine").fit(POINTS)
    with pytest.raises(ValueError, match="got csr_matrix and 'euclidean'; use MDS"):
        PCA(2).fit(scipy.sparse.csr_matrix(POINTS))
