"""There and back."""

from __future__ import annotations

import numpy as np

from prodige.learning.softplus import inverse_softplus


def test_there_and_back() -> None:
    weight = np.geomspace(1e-12, 1e12, 49)
    np.testing.assert_allclose(np.logaddexp(0, inverse_softplus(weight)), weight, rtol=1e-9)
    assert inverse_softplus(np.zeros(2)).tolist() == [-np.inf, -np.inf]
    assert inverse_softplus(np.ones(2, dtype=np.float32)).dtype == np.float32
