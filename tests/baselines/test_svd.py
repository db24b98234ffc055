"""SVD against the dense one of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from prodige.baselines import SVD

TABLE = np.random.default_rng(0).integers(0, 3, (40, 25)).astype(float)
U, S, V = np.linalg.svd(TABLE, full_matrices=False)


@pytest.mark.parametrize("k", [1, 4, 24])
@pytest.mark.parametrize("weight", [1.0, 0.5, 0.0])
def test_scores_are_the_best_approximation(k: int, weight: float) -> None:
    model = SVD(k, weight, random_state=0).fit(TABLE)
    target = (U[:, :k] * S[:k] ** weight) @ V[:k]
    np.testing.assert_allclose(model.scores(np.arange(40)), target, atol=1e-4)
    assert model.numbers_per_item == k


def test_units_change_no_order() -> None:
    for weight in (1.0, 0.3):
        small, large = (
            np.argsort(SVD(3, weight, random_state=0).fit(TABLE * scale).scores(np.arange(40))) for scale in (1, 1000)
        )
        np.testing.assert_array_equal(small, large)


def test_factors_that_are_not_there_do_not_count() -> None:
    """A table of rank 1 has one singular value; the others are rounding, even to the power of 0."""
    table = np.outer(np.arange(1, 9), [1, 2, 1, 1, 3])
    scores = SVD(3, weight=0.0, random_state=0).fit(table).scores(np.arange(8))
    lengths = np.linalg.norm(np.arange(1, 9)) * np.linalg.norm([1, 2, 1, 1, 3])
    np.testing.assert_allclose(scores, table / lengths, atol=1e-5)


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="n_factors must be between 1 and 24, got 25"):
        SVD(25).fit(TABLE)
    with pytest.raises(ValueError, match="weight must be a finite number, got nan"):
        SVD(weight=np.nan).fit(TABLE)
    with pytest.raises(ValueError, match=r"2 users and 2 items or more, got a table of shape \(1, 3\)"):
        SVD(1).fit([[1, 2, 3]])
