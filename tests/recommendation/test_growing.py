"""Arrivals by themselves; test_recommender.py places users and items in fitted models."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from prodige.recommendation.growing import Arrivals, replace_columns, replace_rows

ROWS = csr_array(np.array([[0.0, 2.0], [3.0, 0.0]]))


def test_those_skipped_come_last_and_have_nothing() -> None:
    more = Arrivals.of(np.array([6, 1]), ROWS, n_before=4)
    assert (more.n, more.placed.tolist()) == (7, [6, 1, 4, 5])
    np.testing.assert_array_equal(more.rows.toarray(), [[0, 2], [3, 0], [0, 0], [0, 0]])
    assert ROWS.shape == (2, 2)
    assert Arrivals.of(np.array([2, 1]), ROWS, n_before=4).n == 4


def test_rows_and_columns_are_replaced_alike() -> None:
    before = csr_array(np.arange(1.0, 7.0).reshape(3, 2))
    more = Arrivals.of(np.array([4, 1]), ROWS, n_before=3)
    expected = [[1, 2], [3, 0], [5, 6], [0, 0], [0, 2]]
    found, turned = replace_rows(before, more), replace_columns(csr_array(before.T), more)
    assert found is not None
    assert turned is not None
    np.testing.assert_array_equal(found.toarray(), expected)
    np.testing.assert_array_equal(turned.toarray().T, expected)
    assert replace_rows(None, more) is replace_columns(None, more) is None
