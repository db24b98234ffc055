"""Refitting: all of the new or all of the old."""

from __future__ import annotations

import numpy as np
import pytest

from prodige.baselines import Star
from prodige.refitting import refitting


def test_what_is_learned_comes_at_once() -> None:
    star = Star().fit([[0.0], [1.0], [3.0]])
    with refitting(star) as fresh:
        assert fresh is not star
        assert fresh.get_params() == star.get_params()
        assert {name for name in vars(fresh) if name.endswith("_")} == set()
        fresh.radius_ = np.zeros(2, np.float32)
        assert star.radius_.size == 3
    assert star.radius_.size == 2
    assert not hasattr(star, "n_items_")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_leaves_everything(error: type[BaseException]) -> None:
    star = Star().fit([[0.0], [1.0], [3.0]])
    before = dict(vars(star))

    def fit() -> None:
        with refitting(star) as fresh:
            fresh.radius_ = np.zeros(2, np.float32)
            raise error

    with pytest.raises(error):
        fit()
    assert vars(star) == before
