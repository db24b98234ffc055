"""Pruned tables: within their size, and with the largest weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from prodige.baselines.pruning import pruned, table_bits


def table(seed: int, n: int = 30) -> csr_array:
    random = np.random.default_rng(seed)
    return csr_array(np.where(random.random((n, n)) < 0.5, random.normal(size=(n, n)), 0).astype(np.float32))


@given(st.integers(0, 50), st.floats(0, 12_000), st.sampled_from([1, 2, 4, 8]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_within_the_budget_and_no_larger_weight_is_left_out(seed: int, budget: float, bits: int, by_row: bool) -> None:
    whole = table(seed)
    kept = pruned(whole, budget, bits, by_row)
    assert table_bits(kept, bits) <= budget
    chosen = np.zeros(whole.shape, bool)
    chosen[kept.nonzero()] = True
    sizes = np.abs(whole.toarray())
    parts = zip(sizes, chosen, strict=True) if by_row else [(sizes, chosen)]
    for size, mark in parts:
        rest = size[~mark & (size > 0)]
        assert not mark.any() or not rest.size or size[mark].min() >= rest.max()


def test_rows_are_equally_long() -> None:
    lengths = np.diff(pruned(table(0), 1500, 4, by_row=True).indptr)
    assert lengths.max() - lengths.min() <= 1


def test_few_levels() -> None:
    kept = pruned(table(0), 6000, 2)
    assert len(np.unique(kept.data)) <= 4


@pytest.mark.parametrize("by_row", [False, True])
def test_room_for_all(by_row: bool) -> None:
    whole = table(1)
    kept = pruned(whole, 1e9, 8, by_row)
    assert kept.nnz == whole.nnz
    np.testing.assert_allclose(kept.toarray(), whole.toarray(), atol=0.02)
