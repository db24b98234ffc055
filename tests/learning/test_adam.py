"""Weights moved by Adam: as torch moves them."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige.learning.adam import Weights


@settings(deadline=None)
@given(st.lists(st.floats(0.0625, 50, width=32), min_size=1))
def test_softplus_and_back(values: list[float]) -> None:
    weight = np.array(values, dtype=np.float32)
    np.testing.assert_allclose(Weights.of(weight).value, weight, rtol=1e-5)


def test_steps_are_those_of_torch() -> None:
    rng = np.random.default_rng(0)
    start, target = rng.uniform(0.1, 3, size=(2, 20)).astype(np.float32)
    weights = Weights.of(start)
    theta = torch.nn.Parameter(torch.from_numpy(weights.theta.copy()))
    optimizer = torch.optim.Adam([theta], lr=0.05, betas=(0.9, 0.99), eps=1e-12)
    for step in range(1, 31):
        weights = weights.descend(2 * (weights.value - target), 0.05, step, least=1e-12)
        optimizer.zero_grad()
        ((torch.nn.functional.softplus(theta) - torch.from_numpy(target)) ** 2).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        np.testing.assert_allclose(weights.theta, theta.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert np.abs(weights.value - target).sum() < np.abs(start - target).sum() / 2


def test_kept_weights_keep_their_state() -> None:
    weights = Weights.of(np.ones(4, dtype=np.float32)).descend(np.arange(4, dtype=np.float32), 0.1, 1)
    mask = np.array([True, False, True, True])
    kept = weights.keep(mask)
    assert kept.size == 3
    slope = np.full(4, 2, dtype=np.float32)
    for after, expected in zip(
        (kept.descend(slope[mask], 0.1, 2)).__dict__.values(),
        weights.descend(slope, 0.1, 2).__dict__.values(),
        strict=True,
    ):
        assert np.array_equal(after, expected[mask])
