"""EASE: no other weights with an empty diagonal do better."""

from __future__ import annotations

import numpy as np
import pytest

from prodige.baselines import EASE, ease

TABLE = (np.random.default_rng(0).random((60, 12)) < 0.3).astype(float)


def test_each_column_is_a_ridge_regression_on_the_others() -> None:
    ridge = 2.0
    model = EASE(ridge).fit(TABLE)
    for item in range(12):
        others = np.arange(12) != item
        rest = TABLE[:, others]
        target = np.linalg.solve(rest.T @ rest + ridge * np.eye(11), rest.T @ TABLE[:, item])
        np.testing.assert_allclose(model.weights_[others, item], target, atol=1e-5)
    assert not model.weights_.diagonal().any()
    np.testing.assert_allclose(model.scores(np.arange(60)), TABLE @ model.weights_, atol=1e-5)
    assert model.numbers_per_item == (144 + 60 + 2 * np.count_nonzero(TABLE)) / 72


def test_too_many_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ease, "_MOST_ITEMS", 11)
    with pytest.raises(ValueError, match=r"has 12 items, EASE takes up to 11: .* use ItemKNN"):
        EASE().fit(TABLE)


def test_too_little_regularization() -> None:
    with pytest.raises(ValueError, match="regularization = 1e-30 is too small to invert"):
        EASE(1e-30).fit(np.ones((3, 5)))
