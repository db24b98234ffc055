"""Splits and ranks, against loops that do one user at a time."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.baselines import Popularity
from prodige.recommendation import ranking
from prodige.recommendation.ranking import (
    Ranking,
    RankingReport,
    evaluate_ranking,
    sample_negatives,
    split_leave_one_out,
)


class Table:
    """A model that answers from a matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix: NDArray[np.float32] = np.asarray(matrix, dtype=np.float32)

    def scores(self, users: Any, items: Any = None) -> NDArray[np.float32]:
        return np.asarray(self.matrix[users])


def make(seed: int, n_users: int = 12, n_items: int = 30, n_values: int = 6) -> tuple[Any, Any, Any, Any]:
    """Scores with many ties, interactions, held-out items (of some users none) and negatives."""
    rng = np.random.default_rng(seed)
    table = (rng.random((n_users, n_items)) < 0.3).astype(int)
    table[:, 0] = 1
    train, held_out = split_leave_one_out(table, random_state=seed)
    negatives = sample_negatives(train, held_out, 4, random_state=seed)
    return rng.integers(0, n_values, table.shape), train, held_out, negatives


def ranks(scores: Any, train: Any, held_out: Any, negatives: Any) -> tuple[list[int], list[int]]:
    """Ranks among the sampled and among all items, one comparison at a time."""
    sampled, full = [], []
    interacted = train.toarray() > 0
    for user, held in enumerate(held_out):
        if held >= 0:
            ahead = [scores[user, item] >= scores[user, held] for item in negatives[user]]
            sampled.append(1 + sum(ahead))
            others = [item for item in range(interacted.shape[1]) if item != held and not interacted[user, item]]
            full.append(1 + sum(scores[user, item] >= scores[user, held] for item in others))
    return sampled, full


def figures(found: list[int], sizes: tuple[int, ...]) -> dict[str, float]:
    return (
        {f"HR@{k}": sum(rank <= k for rank in found) / len(found) for k in sizes}
        | {f"NDCG@{k}": sum(1 / math.log2(1 + rank) for rank in found if rank <= k) / len(found) for k in sizes}
        | {"MRR": sum(1 / rank for rank in found) / len(found)}
    )


# -- splits ----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_one_is_left_out(n_users: int, n_items: int, seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 3, (n_users, n_items))
    table[0, 0] = 1
    train, held_out = split_leave_one_out(table, random_state=seed)
    assert train.dtype == np.float32
    assert held_out.dtype == np.int64
    assert held_out.shape == (n_users,)
    assert_array_equal(held_out >= 0, (table > 0).sum(axis=1) >= 2)
    whole = train.toarray()
    assert np.count_nonzero(whole) == train.nnz
    for user, item in enumerate(held_out):
        if item >= 0:
            assert whole[user, item] == 0
            whole[user, item] = table[user, item]
    assert_array_equal(whole, table)


def test_every_item_is_as_likely_to_be_left_out() -> None:
    table = np.tile([0, 1, 1, 0, 1, 1], (8000, 1))
    _, held_out = split_leave_one_out(table, random_state=0)
    counts = np.bincount(held_out, minlength=6)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert np.abs(counts[[1, 2, 4, 5]] - 2000).max() < 5 * math.sqrt(8000 * 3 / 16)


def test_splits_are_seeded() -> None:
    held = [split_leave_one_out(np.ones((50, 20)), seed)[1] for seed in (3, 3, 4)]
    negatives = [sample_negatives(np.eye(50), np.zeros(50, int), 5, seed) for seed in (3, 3, 4)]
    for first, again, other in (held, negatives):
        assert_array_equal(first, again)
        assert (first != other).any()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_negatives_are_new_to_the_user(seed: int) -> None:
    _, train, held_out, _ = make(seed)
    interacted = train.toarray() > 0
    room = int((~interacted).sum(axis=1).min()) - 1
    negatives = sample_negatives(train, held_out, room, random_state=seed)
    assert negatives.shape == (12, room)
    for user, row in enumerate(negatives):
        if held_out[user] < 0:
            assert (row == -1).all()
            continue
        assert np.unique(row).size == room
        assert not interacted[user, row].any()
        assert held_out[user] not in row
    with pytest.raises(ValueError, match=rf"n_negatives = {room + 20} is too many: there are \d+ items"):
        sample_negatives(train, held_out, room + 20)
    most = int((~interacted)[held_out >= 0].sum(axis=1).max())
    with pytest.raises(ValueError, match=rf"n_negatives = {most} is too many: there are \d+ items that user \d+"):
        sample_negatives(train, held_out, most)


def test_too_many_negatives_are_refused_before_memory_is_taken() -> None:
    with pytest.raises(ValueError, match="n_negatives = 2147483647 is too many: there are 3 items"):
        sample_negatives([[1, 1, 0], [0, 1, 0]], [2, -1], 2**31 - 1)


def test_every_negative_is_as_likely() -> None:
    train = np.tile([1, 0, 0, 0, 0, 0], (6000, 1))
    negatives = sample_negatives(train, np.full(6000, 5), 2, random_state=0)
    counts = np.bincount(negatives.ravel(), minlength=6)
    assert counts[[0, 5]].tolist() == [0, 0]
    assert np.abs(counts[1:5] - 3000).max() < 5 * math.sqrt(6000 / 4)


# -- evaluation ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 1000]))
def test_figures_are_those_of_a_loop(seed: int, n_values: int) -> None:
    scores, train, held_out, negatives = make(seed, n_values=n_values)
    report = evaluate_ranking(Table(scores), train, held_out, negatives, k=(1, 3, 10))
    sampled, full = ranks(scores, train, held_out, negatives)
    assert report.sampled is not None
    assert report.sampled.to_dict() == pytest.approx(figures(sampled, (1, 3, 10)))
    assert report.full.to_dict() == pytest.approx(figures(full, (1, 3, 10)))
    assert (report.n_users, report.n_items, report.n_negatives) == ((held_out >= 0).sum(), 30, 4)


def test_ties_count_against_the_model() -> None:
    _, train, held_out, negatives = make(0)
    report = evaluate_ranking(Table(np.zeros((12, 30))), train, held_out, negatives, k=4)
    assert report.sampled is not None
    assert report.sampled.hit_ratio == report.sampled.ndcg == report.full.hit_ratio == {4: 0}
    assert report.sampled.mrr == pytest.approx(1 / 5)
    lost = evaluate_ranking(Table(np.full((12, 30), -np.inf)), train, held_out, negatives, k=4)
    assert lost == report


def test_what_was_met_does_not_count() -> None:
    scores, train, held_out, _ = make(1)
    favoured = scores + 100 * train.toarray()
    assert evaluate_ranking(Table(favoured), train, held_out) == evaluate_ranking(Table(scores), train, held_out)


def test_some_users_only() -> None:
    scores, train, held_out, negatives = make(2)
    held_out[3] = -1
    users = [8, 3, 5]
    report = evaluate_ranking(Table(scores), train, held_out, negatives, users=users)
    only = np.full(12, -1)
    only[[8, 5]] = held_out[[8, 5]]
    assert report == evaluate_ranking(Table(scores), train, only, negatives)
    assert report.n_users == 2


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, train, held_out, negatives = make(3)
    whole = evaluate_ranking(Table(scores), train, held_out, negatives)
    monkeypatch.setattr(ranking, "_BLOCK", 100)
    assert evaluate_ranking(Table(scores), train, held_out, negatives) == whole


def test_recommenders_are_models() -> None:
    _, train, held_out, _ = make(4)
    popularity = np.tile((train.toarray() > 0).sum(axis=0), (12, 1))
    report = evaluate_ranking(Popularity().fit(train), train, held_out)
    assert report == evaluate_ranking(Table(popularity), train, held_out)
    assert report.sampled is None
    assert report.n_negatives == 0


def test_reports_are_plain_data() -> None:
    scores, train, held_out, negatives = make(5)
    report = evaluate_ranking(Table(scores), train, held_out, negatives)
    found = report.to_dict()
    assert found.keys() == {field.name for field in dataclasses.fields(RankingReport)}
    assert list(found["sampled"]) == list(found["full"]) == ["HR@5", "HR@10", "NDCG@5", "NDCG@10", "MRR"]
    assert json.loads(json.dumps(found)) == found
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.n_users = 3  # type: ignore[misc]
    assert Ranking.of(np.array([1]), [5]) == Ranking({5: 1.0}, {5: 1.0}, 1.0)


def test_bad_input() -> None:
    scores, train, held_out, negatives = make(6)
    model = Table(scores)
    with pytest.raises(ValueError, match=r"shape \(12, 29\) where \(12, 30\) were asked for"):
        evaluate_ranking(Table(scores[:, :29]), train, held_out)
    bad = scores.astype(float)
    bad[4, 7] = np.nan
    with pytest.raises(ValueError, match="nan as the score of user 4 for item 7"):
        evaluate_ranking(Table(bad), train, held_out)
    interacted = held_out.copy()
    interacted[2] = csr_array(train).indices[train.indptr[2]]
    with pytest.raises(ValueError, match=r"held_out\[2\] is among the items that user 2 has interacted with in train"):
        evaluate_ranking(model, train, interacted)
    with pytest.raises(ValueError, match=r"one item of each of the 12 users, got shape \(11,\)"):
        evaluate_ranking(model, train, held_out[:11])
    with pytest.raises(IndexError, match=r"held_out\[0\] = 30 is not an item: there are items 0 to 29"):
        evaluate_ranking(model, train, np.full(12, 30))
    with pytest.raises(TypeError, match="held_out must hold integers"):
        evaluate_ranking(model, train, np.zeros(12))
    with pytest.raises(ValueError, match="all are -1"):
        evaluate_ranking(model, train, np.full(12, -1))
    with pytest.raises(ValueError, match=r"a row of items for each of the 12 users, got shape \(4, 12\)"):
        evaluate_ranking(model, train, held_out, negatives.T)
    own = negatives.copy()
    own[3, 1] = held_out[3]
    with pytest.raises(ValueError, match=r"negatives\[3\] must be items other than the held-out one"):
        evaluate_ranking(model, train, held_out, own)
    own[3, 1] = 99
    with pytest.raises(IndexError, match=r"negatives\[3, 1\] = 99 is not an item"):
        evaluate_ranking(model, train, held_out, own)
    with pytest.raises(ValueError, match="k must be between 1"):
        evaluate_ranking(model, train, held_out, k=0)
    with pytest.raises(ValueError, match="k must name at least one"):
        evaluate_ranking(model, train, held_out, k=())
    with pytest.raises(IndexError, match=r"users\[0\] = 12 is not a user"):
        evaluate_ranking(model, train, held_out, users=[12])
    with pytest.raises(ValueError, match="n_negatives must be between 1"):
        sample_negatives(train, held_out, 0)
    with pytest.raises(ValueError, match=r"train .* has no interaction"):
        evaluate_ranking(model, np.zeros((12, 30)), held_out)
