"""One number for all distances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from prodige.baselines import Constant

POINTS = np.random.default_rng(1).normal(size=(50, 4))


def test_mean_distance_and_variance() -> None:
    model = Constant().fit(POINTS)
    assert model.distance_ == pytest.approx(pdist(POINTS).mean(), rel=1e-6)
    assert model.score(POINTS) == pytest.approx(-pdist(POINTS).var(), rel=1e-5)
    assert model.numbers_per_item == 0
    assert model.shared_numbers == 1
