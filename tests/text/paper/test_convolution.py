"""PooledConvolution against Conv1d and a maximum over time."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.nn import functional

from prodige import _core
from prodige.text.paper.convolution import PooledConvolution

IN, OUT = 6, 4


def ragged(rng: np.random.Generator, lengths: list[int], n_rows: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return rng.integers(0, n_rows, offsets[-1]).astype(np.int32), offsets


def by_torch(
    convolution: PooledConvolution, vectors: torch.Tensor, tokens: NDArray[np.int32], offsets: NDArray[np.int64]
) -> torch.Tensor:
    """One text at a time, with zeros around it."""
    width = convolution.weight.shape[2]
    rows = []
    for first, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        text = vectors[tokens[first:end].astype(np.int64)] if end > first else vectors.new_zeros(1, vectors.shape[1])
        padded = functional.pad(text.T.unsqueeze(0), (width // 2, width - 1 - width // 2))
        rows.append(functional.conv1d(padded, convolution.weight, convolution.bias).amax(dim=2).squeeze(0))
    return torch.stack(rows)


@settings(max_examples=50, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    width=st.sampled_from([1, 2, 3, 5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_values_and_gradients_are_those_of_torch(lengths: list[int], width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens, offsets = ragged(rng, lengths, n_rows=5)
    convolution = PooledConvolution(IN, OUT, width, n_jobs=1)
    values = torch.from_numpy(rng.normal(size=(5, IN)).astype(np.float32))
    weights = torch.from_numpy(rng.normal(size=(len(lengths), OUT)).astype(np.float32))
    results = []
    for path in (convolution, lambda *given: by_torch(convolution, *given)):
        convolution.zero_grad()
        vectors = values.clone().requires_grad_()
        answer = path(vectors, tokens, offsets)
        (answer * weights).sum().backward()
        gradients = [vectors.grad, convolution.weight.grad, convolution.bias.grad]
        # Texts without tokens leave vectors and filters without a gradient, or with zeros.
        results.append([answer.detach(), *(torch.zeros(()) if one is None else one.clone() for one in gradients)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours.numpy(), np.broadcast_to(theirs.numpy(), ours.shape), rtol=1e-4, atol=1e-5)


def test_threads_do_not_change_bits() -> None:
    rng = np.random.default_rng(0)
    tokens, offsets = ragged(rng, rng.integers(0, 40, 200).tolist(), n_rows=50)
    vectors = torch.from_numpy(rng.normal(size=(50, IN)).astype(np.float32))
    convolution = PooledConvolution(IN, OUT, 5, n_jobs=1)
    expected = convolution(vectors, tokens, offsets)
    convolution.n_jobs = 2
    assert torch.equal(convolution(vectors, tokens, offsets), expected)


def test_a_text_without_tokens_answers_with_the_bias() -> None:
    convolution = PooledConvolution(IN, OUT, 3, n_jobs=1)
    answer = convolution(torch.ones(1, IN), np.empty(0, np.int32), np.zeros(3, np.int64))
    assert torch.equal(answer, convolution.bias.expand(2, OUT))


def test_only_the_best_position_has_a_gradient() -> None:
    convolution = PooledConvolution(1, 1, 1, n_jobs=1)
    with torch.no_grad():
        convolution.weight.fill_(1.0)
        convolution.bias.zero_()
    vectors = torch.tensor([[1.0], [3.0], [2.0]], requires_grad=True)
    answer = convolution(vectors, np.array([0, 1, 2, 1], np.int32), np.array([0, 3, 4], np.int64))
    answer.sum().backward()
    assert answer.flatten().tolist() == [3.0, 3.0]
    assert vectors.grad is not None
    assert vectors.grad.flatten().tolist() == [0.0, 2.0, 0.0]


def test_starts_as_conv1d_and_can_be_copied() -> None:
    torch.manual_seed(3)
    template = torch.nn.Conv1d(IN, OUT, 5)
    torch.manual_seed(3)
    convolution = PooledConvolution(IN, OUT, 5)
    assert torch.equal(template.weight, convolution.weight)
    assert template.bias is not None
    assert torch.equal(template.bias, convolution.bias)
    state = torch.random.get_rng_state()
    drawn = PooledConvolution(IN, OUT, 5, generator=torch.Generator().manual_seed(3))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(drawn.weight, convolution.weight)
    template.load_state_dict(convolution.state_dict())
    for other in (copy.deepcopy(convolution), pickle.loads(pickle.dumps(convolution))):
        assert torch.equal(other.weight, convolution.weight)
    assert repr(convolution) == "PooledConvolution(6, 4, kernel_size=5)"


@pytest.mark.parametrize(
    ("tokens", "offsets", "width", "message"),
    [
        ([0], [0, 2], 1, "offsets must run from 0"),
        ([0], [1, 1], 1, "offsets must run from 0"),
        ([0], [], 1, "offsets must run from 0"),
        ([0, 0], [0, 2, 1, 2], 1, "offsets must not fall"),
        ([0], [0, 1], 3, "width = 3 does not divide 4"),
        ([0], [0, 1], 0, "width = 0"),
    ],
)
def test_the_core_refuses_what_does_not_fit(tokens: Any, offsets: Any, width: int, message: str) -> None:
    arrays = np.array(tokens, np.int32), np.array(offsets, np.int64)
    with pytest.raises(ValueError, match=message):
        _core.pool(*arrays, np.zeros((2, 4), np.float32), width, 1)


@pytest.mark.parametrize("token", [-1, 2])
def test_the_core_refuses_tokens_without_a_row(token: int) -> None:
    with pytest.raises(IndexError, match="has no row: there are 2"):
        _core.pool(np.array([token], np.int32), np.array([0, 1]), np.zeros((2, 4), np.float32), 1, 1)


def test_the_core_refuses_positions_of_another_search() -> None:
    tokens, offsets, gradient = np.array([0], np.int32), np.array([0, 1]), np.ones((1, 2), np.float32)
    for best in (1, -1):
        with pytest.raises(IndexError, match="best is not that of these texts"):
            _core.pool_backward(tokens, offsets, gradient, np.full((1, 2), best, np.int32), 1, 1)
    with pytest.raises(ValueError, match="best has shape"):
        _core.pool_backward(tokens, offsets, gradient, np.zeros((1, 3), np.int32), 1, 1)


@pytest.mark.repeatable
def test_any_number_of_threads() -> None:
    """On texts that are worth some; the answers have the same bits, and so have the gradients."""
    rng = np.random.default_rng(0)
    tokens, offsets = rng.integers(0, 50, 60_000).astype(np.int32), np.arange(0, 60_001, 100)
    results = []
    for n_jobs in (1, 2, 3):
        convolution = PooledConvolution(IN, OUT, 5, n_jobs, torch.Generator().manual_seed(0))
        vectors = torch.tensor(np.random.default_rng(1).normal(size=(50, IN)), dtype=torch.float32, requires_grad=True)
        answers = convolution(vectors, tokens, offsets)
        answers.square().sum().backward()
        assert vectors.grad is not None
        results.append((answers.detach(), vectors.grad))
    for answers, gradient in results[1:]:
        assert torch.equal(answers, results[0][0])
        assert torch.equal(gradient, results[0][1])


def test_threads_are_no_more_than_the_texts_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    pool = _core.pool

    def counting(*arguments: Any) -> Any:
        asked.append(arguments[-1])
        return pool(*arguments)

    monkeypatch.setattr(_core, "pool", counting)
    convolution = PooledConvolution(IN, OUT, 5, n_jobs=1000)
    convolution(torch.ones(3, IN), np.zeros(400, np.int32), np.arange(0, 401, 10))
    convolution(torch.ones(3, IN), np.zeros(60_000, np.int32), np.arange(0, 60_001, 100))
    assert asked[0] == 1
    assert 2 <= asked[1] <= 8
