"""Popularity counts users."""

from __future__ import annotations

import numpy as np

from prodige.baselines import Popularity


def test_users_are_counted_whatever_they_did() -> None:
    table = np.random.default_rng(0).integers(0, 4, (50, 7))
    model = Popularity().fit(table)
    np.testing.assert_array_equal(model.popularity_, (table > 0).sum(axis=0))
    np.testing.assert_array_equal(model.scores([3, 4]), np.tile((table > 0).sum(axis=0), (2, 1)))
    assert model.numbers_per_item == 7 / 57
