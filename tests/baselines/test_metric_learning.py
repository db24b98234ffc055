"""Metric learning: its loss, the gradient of it, and where points go."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from prodige.baselines import MetricLearning
from prodige.baselines.metric_learning import LogPartition, softmax_loss, start

INTERACTED = csr_array((np.random.default_rng(0).random((5, 8)) < 0.4) | np.eye(5, 8, dtype=bool))


def points(seed: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    users, items = (torch.randn(n, 3, generator=generator, dtype=dtype).requires_grad_() for n in (5, 8))
    return users, items


def test_the_loss_is_the_softmax_of_distances() -> None:
    users, items = points(0, torch.float32)
    distances = torch.cdist(users, items)
    logs = torch.log_softmax(-distances, dim=1)
    interacted = torch.from_numpy(INTERACTED.toarray())
    target = -torch.stack([logs[user][interacted[user]].mean() for user in range(5)]).mean()
    found = softmax_loss(users, items, INTERACTED)
    torch.testing.assert_close(found, target)
    gradients = torch.autograd.grad(found, (users, items)), torch.autograd.grad(target, (users, items))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_the_gradient() -> None:
    torch.autograd.gradcheck(LogPartition.apply, points(1))


def test_the_gradient_is_finite_where_points_meet() -> None:
    users = torch.zeros(5, 3, requires_grad=True)
    items = torch.zeros(8, 3, requires_grad=True)
    softmax_loss(users, items, INTERACTED).backward()  # type: ignore[no-untyped-call]
    for tensor in (users, items):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()


def test_a_sample_of_all_items_is_all_items() -> None:
    users, items = points(2, torch.float32)
    shuffled = torch.tensor([3, 1, 7, 0, 5, 2, 4, 6])
    torch.testing.assert_close(softmax_loss(users, items, INTERACTED, shuffled), softmax_loss(users, items, INTERACTED))


def test_samples_lead_to_nearly_the_same_place() -> None:
    table = np.kron(np.eye(3), np.ones((20, 10))) * (np.random.default_rng(0).random((60, 30)) < 0.5)
    table[:, 0] += table.sum(axis=1) == 0
    losses = []
    for n_samples in (None, 20, 1000):
        model = MetricLearning(2, 40, 20, n_samples=n_samples, random_state=0).fit(table)
        users, items = torch.from_numpy(model.user_points_), torch.from_numpy(model.item_points_)
        losses.append(float(softmax_loss(users, items, csr_array(table))))
        assert len(model.history_) == 40
        assert model.history_[-1].loss < model.history_[0].loss
    assert losses[1] == pytest.approx(losses[0], abs=0.2)
    assert losses[2] == losses[0]


def test_scores_are_negative_distances() -> None:
    model = MetricLearning(3, 2, random_state=0).fit(INTERACTED)
    target = np.linalg.norm(model.user_points_[:, None] - model.item_points_[None], axis=2)
    np.testing.assert_allclose(model.scores(np.arange(5)), -target, rtol=1e-3)
    assert model.numbers_per_item == 3


def test_users_start_among_their_items() -> None:
    users, items = start(INTERACTED, 2, np.random.RandomState(0))
    for user in range(5):
        np.testing.assert_allclose(users[user], items[INTERACTED.toarray()[user]].mean(axis=0), rtol=1e-5)
    # More coordinates than there are singular vectors.
    users, items = start(INTERACTED, 20, np.random.RandomState(0))
    assert items.shape == (8, 20)
    assert np.linalg.matrix_rank(items) == 8
