"""Who is like whom, by hand; test_recommender.py asks fitted models."""

from __future__ import annotations

import numpy as np
import pytest

from prodige import Graph
from prodige.recommendation import similar
from prodige.recommendation.similar import Alike

# Two users, then items on a line at 0, 1, 1 and 4; the last one is out of reach.
LINE = Graph.from_edges([0, 1, 2, 3, 4], [2, 2, 3, 4, 5], [1.0, 1.0, 1.0, 0.0, 3.0], n_vertices=7)
ITEMS = Alike(LINE, "item", first=2, n=5)


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_itself_comes_first_and_the_unreachable_never(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similar, "_BLOCK", block)
    ids, scores = ITEMS.find([1, 2, 4], 6)
    assert ids.tolist() == [[1, 2, 0, 3, -1, -1], [2, 1, 0, 3, -1, -1], [4, -1, -1, -1, -1, -1]]
    assert scores[0].tolist() == [0, 0, -1, -3, -np.inf, -np.inf]


def test_some_may_be_left_out_or_chosen() -> None:
    assert ITEMS.find(1, 2, left_out=[1, 2])[0].tolist() == [0, 3]
    assert ITEMS.find(1, 2, chosen=[3, 0, 3])[0].tolist() == [0, 3]
    assert ITEMS.find(1, 2, left_out=[0], chosen=[0, 3])[0].tolist() == [3, -1]
    assert ITEMS.find([], 2)[0].shape == (0, 2)


def test_messages_name_the_kind() -> None:
    users = Alike(LINE, "user", first=0, n=2)
    assert users.find(0, 2)[0].tolist() == [0, 1]
    with pytest.raises(IndexError, match=r"userid\[0\] = 2 is not a user"):
        users.find(2, 1)
    with pytest.raises(IndexError, match=r"filter_users\[0\] = 2 is not a user"):
        users.find(0, 1, left_out=[2])
    with pytest.raises(IndexError, match=r"users\[0\] = 2 is not a user"):
        users.find(0, 1, chosen=[2])
