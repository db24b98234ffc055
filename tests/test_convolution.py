"""PooledConvolution against torch's own convolution."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from prodige import _core
from prodige.convolution import PooledConvolution


def expected(convolution: Any, vectors: Any, tokens: Any, offsets: Any) -> Any:
    """What Conv1d with zeros around each text and a maximum over positions gives."""
    width = convolution.weight.shape[2]
    rows = []
    for start, end in itertools.pairwise(offsets):
        text = vectors[torch.from_numpy(tokens[start:end].astype(np.int64))]
        if end == start:
            text = vectors.new_zeros(1, vectors.shape[1])
        padded = functional.pad(text.T[None], (width // 2, width - 1 - width // 2))
        rows.append(functional.conv1d(padded, convolution.weight, convolution.bias)[0].max(dim=1).values)
    return torch.stack(rows) + 0 * vectors.sum()  # also where all texts are empty


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    width=st.integers(1, 6),
    n_filters=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
def test_values_and_gradients_are_those_of_torch(lengths: Any, width: Any, n_filters: Any, seed: Any) -> None:
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = random.integers(0, 4, offsets[-1]).astype(np.int32)
    torch.manual_seed(seed)
    convolution = PooledConvolution(3, n_filters, width)
    vectors = torch.randn(4, 3, requires_grad=True)
    upstream = torch.randn(len(lengths), n_filters)
    found = []
    for answer in (convolution(vectors, tokens, offsets), expected(convolution, vectors, tokens, offsets)):
        gradients = torch.autograd.grad((answer * upstream).sum(), [vectors, convolution.weight, convolution.bias])
        found.append((answer, *gradients))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


def test_the_same_bits_for_any_number_of_threads() -> None:
    random = np.random.default_rng(0)
    offsets = np.arange(0, 2001, 20)
    tokens = random.integers(0, 50, 2000).astype(np.int32)
    products = random.normal(size=(50, 5 * 8)).astype(np.float32)
    one, two = (_core.pool(tokens, offsets, products, 5, n_jobs) for n_jobs in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(
    ("tokens", "offsets", "width", "error"),
    [
        ([0, 9], [0, 2], 2, IndexError),
        ([0, -1], [0, 2], 2, IndexError),
        ([0, 1], [0, 1], 2, ValueError),
        ([0, 1], [0, 2, 1, 2], 2, ValueError),
        ([0, 1], [0, 2], 3, ValueError),
        ([0, 1], [0, 2], 0, ValueError),
    ],
)
def test_what_would_crash_is_refused(tokens: Any, offsets: Any, width: Any, error: Any) -> None:
    products = np.zeros((2, 4), np.float32)
    with pytest.raises(error):
        _core.pool(np.array(tokens, np.int32), np.array(offsets, np.int64), products, width, 1)


def test_repr_names_the_sizes() -> None:
    assert "3, 2, kernel_size=5" in repr(PooledConvolution(3, 2, 5))
