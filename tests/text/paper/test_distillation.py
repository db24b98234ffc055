"""Distillation: what filters see of tokens, and a student that starts where its teacher ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from prodige.text.paper.distillation import products, take_over, task_vectors
from prodige.text.paper.network import Corpus, TextNetwork


def teacher(n_tokens: int = 60, length: int = 8, seed: int = 0) -> TextNetwork:
    torch.manual_seed(seed)
    return TextNetwork(nn.Embedding(n_tokens, length, padding_idx=0), 3, n_filters=5, kernel_size=3, n_jobs=1)


def weights(n_tokens: int = 60) -> np.ndarray:
    counts = 1.0 / np.arange(1, n_tokens + 1)
    counts[0] = 0
    return counts


def texts() -> Corpus:
    rng = np.random.default_rng(0)
    return Corpus(rng.integers(1, 60, 200).astype(np.int32), np.arange(0, 201, 10))


def test_products_are_those_of_the_filters() -> None:
    network = teacher()
    found = products(network).reshape(60, 3, 5)
    vectors: Any = network.embedding.weight
    vectors, filters = vectors.detach().numpy(), network.convolution.weight.detach().numpy()
    np.testing.assert_allclose(found, np.einsum("vd,fdk->vkf", vectors, filters), atol=1e-6)


def test_task_vectors_keep_the_distances_of_products() -> None:
    """All directions together are a rotation; their number is that of the filters' columns at most."""
    network, count = teacher(), weights()
    vectors = task_vectors(network, count)
    assert vectors.shape == (60, 15)
    assert np.mean(vectors**2) == pytest.approx(1, rel=1e-5)
    values = products(network)
    target = np.linalg.norm(values[:, None] - values[None], axis=2)
    found = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    ratio = (found / np.where(target > 0, target, 1))[~np.eye(60, dtype=bool)]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)
    spread = np.average((vectors - np.average(vectors, axis=0, weights=count)) ** 2, axis=0, weights=count)
    assert (np.diff(spread) <= 1e-6).all()  # the main ones first


def test_a_student_over_the_same_vectors_takes_over_all() -> None:
    network = teacher()
    student = teacher(seed=1)
    with torch.no_grad():
        student.embedding.weight.copy_(network.embedding.weight)  # type: ignore[arg-type, operator]
    assert take_over(student, network, weights()) == pytest.approx(1, abs=1e-4)
    torch.testing.assert_close(student.predict(texts()), network.predict(texts()), rtol=0.02, atol=0.02)


def test_a_moved_origin_and_another_scale_do_not_matter() -> None:
    """As for distances to anchors, where zero is at no particular place."""
    network, student = teacher(), teacher(length=9, seed=1)
    with torch.no_grad():
        moved = 5 * network.embedding.weight + 3  # type: ignore[operator]
        student.embedding.weight.copy_(nn.functional.pad(moved, (0, 1)))  # type: ignore[arg-type, operator]
    assert take_over(student, network, weights()) == pytest.approx(1, abs=1e-4)
    inside = texts().tokens[1:-1]  # at the ends of a text zeros stand for what is not there
    assert inside.size
    found, target = products(student), products(network)
    constant = student.convolution.bias.detach() - network.convolution.bias.detach()
    shift = (target - found)[1:].reshape(59, 3, 5).sum(axis=1)
    np.testing.assert_allclose(shift, np.broadcast_to(constant.numpy(), shift.shape), atol=0.02)


def test_what_is_met_falls_with_what_the_embedding_can_tell() -> None:
    network = teacher()
    interacted = []
    for length in (8, 4, 1):
        student = teacher(length=length, seed=1)
        with torch.no_grad():
            student.embedding.weight.copy_(network.embedding.weight[:, :length])  # type: ignore[index, operator]
        interacted.append(take_over(student, network, weights()))
    assert 1 >= interacted[0] > interacted[1] > interacted[2] > 0


def test_a_teacher_that_sees_nothing() -> None:
    network = teacher()
    with torch.no_grad():
        network.convolution.weight.zero_()
    assert take_over(teacher(seed=1), network, weights()) == 1
    assert not task_vectors(network, weights()).any()
