"""Texts by features, against dense matrices."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from corpora import sparse


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(lambda shape: arrays(bool, shape)),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_against_matrices(dense: np.ndarray, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, (n_texts, n_columns) = sparse(dense), dense.shape
    table, gradient = rng.normal(size=(n_columns, width)), rng.normal(size=(n_texts, width))
    np.testing.assert_allclose(features.sums(table, 1), dense @ table, atol=1e-12)
    np.testing.assert_allclose(features.column_sums(gradient, 1), dense.T @ gradient, atol=1e-12)
    np.testing.assert_array_equal(features.lengths, dense.sum(axis=1))
    np.testing.assert_array_equal(features.frequencies, dense.sum(axis=0))
    texts = rng.integers(0, n_texts, 4)
    np.testing.assert_allclose(features.take(texts).sums(table, 1), dense[texts] @ table, atol=1e-12)
    columns = rng.permutation(n_columns)[: rng.integers(1, n_columns + 1)]
    kept = features.keep(columns)
    np.testing.assert_allclose(kept.sums(table[columns], 1), dense[:, columns] @ table[columns], atol=1e-12)
    assert (kept.n_texts, kept.n_columns) == (n_texts, columns.size)
