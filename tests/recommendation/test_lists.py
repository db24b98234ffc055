"""Lists against loops that do one user at a time; splits by what they promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from prodige.recommendation.lists import Mean, evaluate_lists, split_by_time, split_random


class Table:
    def __init__(self, matrix: Any) -> None:
        self.matrix: NDArray[np.float32] = np.asarray(matrix, dtype=np.float32)

    def scores(self, users: Any, items: Any = None) -> NDArray[np.float32]:
        return np.asarray(self.matrix[users])


def by_hand(scores: Any, train: Any, held: Any, k: int) -> tuple[list[float], list[float]]:
    recall, ndcg = [], []
    for user in range(len(scores)):
        wanted = [x for x in range(scores.shape[1]) if held[user, x]]
        if wanted:
            order = sorted((x for x in range(scores.shape[1]) if not train[user, x]), key=lambda x: -scores[user, x])
            found = [x in wanted for x in order[:k]]
            recall.append(sum(found) / min(k, len(wanted)))
            best = sum(1 / math.log2(2 + r) for r in range(min(k, len(wanted))))
            ndcg.append(sum(1 / math.log2(2 + r) for r, hit in enumerate(found) if hit) / best)
    return recall, ndcg


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 40))
def test_against_loops(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.random((9, 25)) < 0.4
    table[0, :2] = True
    train, held = split_random(table, 0.4, random_state=seed % 1000)
    scores = rng.permutation(9 * 25).reshape(9, 25)
    if not held.nnz:
        return
    report = evaluate_lists(Table(scores), train, held, recall_at=[k], ndcg_at=[k])
    recall, ndcg = by_hand(scores, train.toarray(), held.toarray(), k)
    assert report.recall[k].value == pytest.approx(np.mean(recall))
    assert report.ndcg[k].value == pytest.approx(np.mean(ndcg))
    assert report.n_users == len(recall)
    if len(recall) > 1:
        assert report.ndcg[k].error == pytest.approx(np.std(ndcg, ddof=1) / math.sqrt(len(ndcg)))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_splits(share: float) -> None:
    rng = np.random.default_rng(0)
    table = (rng.random((40, 30)) < 0.3).astype(np.float32)
    times = rng.permutation(int(table.sum()))
    for train, held in (split_random(table, share, random_state=1), split_by_time(table, times, share)):
        np.testing.assert_array_equal((train + held).toarray(), table)
        assert not train.multiply(held).nnz
        assert (np.diff(train.indptr)[table.any(axis=1)] >= 1).all()
    when = np.zeros(table.shape)
    when[table > 0] = times
    late, early = when[held.toarray() > 0].min(), train.toarray() > 0
    # What is later and stays is the first of its user.
    for user, item in zip(*np.nonzero(early & (when > late)), strict=True):
        assert when[user, item] == when[user][table[user] > 0].min()


def test_intervals_hold() -> None:
    rng = np.random.default_rng(0)
    inside = [Mean.of(rng.random(200)).interval for _ in range(400)]
    assert 0.91 < np.mean([low < 0.5 < high for low, high in inside]) < 0.985


def test_bad_input() -> None:
    table = np.eye(3)
    with pytest.raises(ValueError, match="held_out and train share an item of user 0"):
        evaluate_lists(Table(table), table, table)
    with pytest.raises(ValueError, match="shape of train"):
        evaluate_lists(Table(table), table, np.eye(4))
    with pytest.raises(ValueError, match="share must be a number between 0 and 1, got 1"):
        split_random(table, 1)
    with pytest.raises(ValueError, match="times must be 3 finite numbers"):
        split_by_time(table, [1.0, 2.0])
    with pytest.raises(ValueError, match="recall_at must name at least one length"):
        evaluate_lists(Table(table), table, np.roll(table, 1, axis=1), recall_at=[])
