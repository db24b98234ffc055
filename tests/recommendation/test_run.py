"""One run by itself; test_recommender.py says what comes of fits."""

from __future__ import annotations

import time
from typing import Any

import pytest

from prodige import GraphRecommender
from prodige.recommendation.paths import Paths
from prodige.recommendation.run import new_monitor, run
from prodige.recommendation.vectors import Vectors
from strategies import crowds


@pytest.mark.parametrize(
    ("settings", "kind", "n_users"),
    [({}, Vectors, 40), ({"store_users": False}, Vectors, 0), ({"edges": "bipartite"}, Paths, 40)],
)
def test_what_answers(settings: dict[str, Any], kind: type[Any], n_users: int) -> None:
    model = GraphRecommender(**settings, callbacks=[lambda _: True], random_state=0)
    before = dict(vars(model))
    answers, monitor = run(model, crowds(40, 10), time.perf_counter())
    assert isinstance(answers, kind)
    assert (answers.n_users, answers.n_items) == (n_users, 10)
    assert monitor.stopped == "callback"
    assert vars(model) == before


def test_time_before_the_run_counts() -> None:
    monitor = new_monitor(GraphRecommender(max_time=10.0), 1000, time.perf_counter() - 11.0)
    assert len(list(monitor.run())) <= 1
