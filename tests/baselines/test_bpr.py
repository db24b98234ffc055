"""BPR: vectors and biases that put what was met above what was not."""

from __future__ import annotations

import numpy as np
import pytest

from prodige.baselines import BPR

pytest.importorskip("implicit")

TABLE = np.random.default_rng(0).random((40, 15)) < np.linspace(0.1, 0.7, 15)


def test_pairs_are_put_in_order() -> None:
    scores = BPR(6, learning_rate=0.1, n_iterations=300, random_state=0).fit(TABLE).scores(np.arange(40))
    in_order = [
        np.mean(row[interacted][:, None] > row[~interacted][None])
        for row, interacted in zip(scores, TABLE, strict=True)
    ]
    assert np.mean(in_order) > 0.9


def test_scores_and_size() -> None:
    model = BPR(3, random_state=0).fit(TABLE)
    target = model.user_factors_ @ model.item_factors_.T + model.item_bias_
    np.testing.assert_allclose(model.scores(np.arange(40)), target, rtol=1e-5)
    assert model.user_factors_.shape == (40, 2)
    assert model.item_factors_.shape == (15, 2)
    assert model.numbers_per_item == pytest.approx((40 * 2 + 15 * 3) / 55)
    # Popular items have a higher bias.
    assert np.corrcoef(model.item_bias_, TABLE.sum(axis=0))[0, 1] > 0.5


def test_seeds() -> None:
    first, again, other = (BPR(3, n_iterations=5, random_state=seed).fit(TABLE).item_bias_ for seed in (0, 0, 1))
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_one_number_is_not_enough() -> None:
    with pytest.raises(ValueError, match="n_factors must be between 2"):
        BPR(1).fit(TABLE)
