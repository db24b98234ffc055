from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from prodige.progress import Monitor
from prodige.recommendation.targets import BACKGROUND, DISCOUNTS, SHARPNESS, Preferences
from strategies import crowds


def spread_by_hand(interacted: np.ndarray, user: int, discount: float) -> np.ndarray:
    """Likenesses of all items to those of a user, from the full matrix of items."""
    counts = np.maximum(interacted.sum(axis=0), 1)
    scaled = interacted / np.sqrt(np.maximum(interacted.sum(axis=1, keepdims=True), 1)) / counts**discount
    similarity = scaled.T @ scaled
    np.fill_diagonal(similarity, 0)
    return np.asarray(interacted[user] @ similarity)


@given(seed=st.integers(0, 1000), user=st.integers(0, 59))
@settings(max_examples=20, deadline=None)
def test_of_one_user_as_by_hand(seed: int, user: int) -> None:
    interacted = crowds(seed=seed)
    preferences = Preferences(interacted, np.random.RandomState(0))
    row = preferences.of_groups(csr_array(np.eye(60, dtype=np.float32)[[user]]))[0]
    scores = spread_by_hand(interacted.toarray(), user, preferences.discount) ** preferences.sharpness
    total = scores.sum()
    expected = (
        (1 - BACKGROUND) * scores / total + BACKGROUND * preferences.popularity if total else preferences.popularity
    )
    assert row == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert row.sum() == pytest.approx(1, rel=1e-5)


def test_losses_are_those_of_data_without_the_interaction() -> None:
    interacted = crowds()
    preferences = Preferences(interacted, np.random.RandomState(0))
    user, discount = 7, 0.5
    own = interacted[[user]].indices
    # By hand: the likeness without this user, as its part is all that the interaction contributes.
    counts = np.maximum(interacted.toarray().sum(axis=0), 1)
    others = np.delete(interacted.toarray(), user, axis=0)
    scaled = others / np.sqrt(np.maximum(others.sum(axis=1, keepdims=True), 1)) / counts**discount
    without = scaled.T @ scaled
    np.fill_diagonal(without, 0)
    rivals = np.setdiff1d(np.arange(24), own)
    ranks, losses = [], []
    for item in own:
        profile = own[own != item]
        score = without[profile, item].sum()
        whole = spread_by_hand(interacted.toarray(), user, discount)[rivals]
        ranks.append(np.log1p((whole >= score).sum()))
        probability = score**2 / ((whole**2).sum() + score**2)
        losses.append(-np.log((1 - BACKGROUND) * probability + BACKGROUND * preferences.popularity[item]))
    rank, by_sharpness = preferences._judge(np.array([user]), discount)
    assert rank == pytest.approx(np.mean(ranks), rel=1e-4)
    assert by_sharpness[SHARPNESS.index(2.0)] == pytest.approx(np.mean(losses), rel=1e-3)


def test_groups_want_what_their_members_met() -> None:
    interacted = crowds()
    preferences = Preferences(interacted, np.random.RandomState(0))
    groups = np.stack([np.arange(60) % 2 == 0, np.arange(60) % 2 == 1]).astype(np.float32)
    target = preferences.of_groups(csr_array(groups))
    assert target[0, ::2].sum() > 0.7
    assert target[1, 1::2].sum() > 0.7
    assert preferences.discount in DISCOUNTS


def test_groups_without_interactions_follow_popularity() -> None:
    preferences = Preferences(crowds(), np.random.RandomState(0))
    assert preferences.of_groups(csr_array((1, 60), dtype=np.float32))[0] == pytest.approx(
        preferences.popularity, rel=1e-5
    )


def test_one_item_each_is_enough() -> None:
    preferences = Preferences(csr_array(np.eye(4, dtype=np.float32)), np.random.RandomState(0))
    target = preferences.of_groups(csr_array(np.eye(4, dtype=np.float32)))
    assert np.isfinite(target).all()


def test_without_time_groups_want_what_they_met() -> None:
    interacted, monitor = crowds(), Monitor(1)
    monitor.stopped = "interrupt"
    preferences = Preferences(interacted, np.random.RandomState(0), monitor)
    assert (preferences.discount, preferences.sharpness) == (0.5, 1.0)
    target = preferences.of_groups(csr_array(np.eye(60, dtype=np.float32)))
    share = interacted.toarray() / interacted.toarray().sum(axis=1, keepdims=True)
    assert target == pytest.approx((1 - BACKGROUND) * share + BACKGROUND * preferences.popularity, rel=1e-5)


def test_a_time_limit_that_is_never_reached_changes_little() -> None:
    groups = csr_array(np.eye(60, dtype=np.float32))
    free, limited = (
        Preferences(crowds(), np.random.RandomState(0), monitor) for monitor in (None, Monitor(1, max_time=1e6))
    )
    assert (limited.discount, limited.sharpness) == (free.discount, free.sharpness)
    assert limited.of_groups(groups) == pytest.approx(free.of_groups(groups), rel=1e-5)
