"""The loss of a ranking: its gradient is that of finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

from prodige.recommendation.paper.softmax import reach, softmax_loss


def test_gradient_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    distance: NDArray[Any] = rng.exponential(2, size=(3, 6))
    target = csr_array(rng.random((3, 6)) * (rng.random((3, 6)) < 0.5))
    share = target.toarray() / target.sum()
    expected = (share * (distance + logsumexp(-distance, axis=1)[:, None])).sum()
    loss, gradient = softmax_loss(distance, target)
    assert loss == pytest.approx(expected, rel=1e-5)
    for place in np.ndindex(3, 6):
        moved = distance.copy()
        moved[place] += 1e-3
        back = distance.copy()
        back[place] -= 1e-3
        numeric = (softmax_loss(moved, target)[0] - softmax_loss(back, target)[0]) / 2e-3
        assert gradient[place] == pytest.approx(numeric, abs=1e-4)


def test_a_finite_distance_stands_for_no_path() -> None:
    distance = np.array([[0, 2, np.inf], [5, np.inf, 1]], dtype=np.float32)
    finite, cut_off, far = reach(distance)
    assert far == 6
    assert np.array_equal(cut_off, np.isinf(distance))
    assert np.array_equal(finite, np.where(cut_off, np.float32(6), distance))
