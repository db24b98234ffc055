from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.base import clone

from prodige import Graph, GraphRecommender
from prodige.fileformat import FileFormatError
from prodige.pace import Status
from prodige.ranking import evaluate_ranking, leave_one_out, sample_negatives
from prodige.recommendation import EDGES
from strategies import crowds


@pytest.fixture(scope="module")
def train() -> csr_array:
    return crowds(200, 40)


@pytest.fixture(scope="module")
def model(train: csr_array) -> GraphRecommender:
    return GraphRecommender(random_state=0, n_jobs=1).fit(train)


# -- fitting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", EDGES)
def test_better_than_chance_within_the_budget(edges: Any) -> None:
    met = crowds(300, 60)
    train, held_out = leave_one_out(met, random_state=0)
    model = GraphRecommender(numbers_per_item=6, edges=edges, random_state=0, n_jobs=1).fit(train)
    report = evaluate_ranking(model, train, held_out, sample_negatives(met, held_out, 20, random_state=0))
    # Half of the items are of the own crowd: a perfect guess of the crowd gives 10 of 21.
    assert report.sampled is not None
    assert report.sampled.hit_ratio[10] > (0.75 if edges == "hubs" else 0.5)
    assert model.numbers_per_item_ <= 6
    assert model.graph_.n_items == 360
    assert model.stopped_ == "finished"
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]


def test_kinds_of_matrices_and_repeated_pairs(train: csr_array, model: GraphRecommender) -> None:
    pairs = train.tocoo()
    twice = coo_array((np.ones(2 * pairs.nnz), (np.tile(pairs.row, 2), np.tile(pairs.col, 2))), shape=pairs.shape)
    for same in (csr_matrix(train), train.toarray(), twice, train.astype(np.int64)):
        assert GraphRecommender(random_state=0).fit(same).graph_ == model.graph_


def test_parameters_can_be_cloned(train: csr_array, model: GraphRecommender) -> None:
    copy = clone(GraphRecommender(numbers_per_item=5, random_state=3))
    assert copy.get_params()["numbers_per_item"] == 5
    assert not hasattr(copy, "graph_")


def test_callbacks_stop_the_fit(train: csr_array) -> None:
    seen: list[Status] = []

    def third(status: Status) -> bool:
        seen.append(status)
        return len(seen) == 3

    model = GraphRecommender(random_state=0, callbacks=[third]).fit(train)
    assert len(seen) == len(model.history_) == 3
    assert model.stopped_ == "callback"
    assert model.recommend(0, train[[0]])[0].shape == (10,)


def test_time_limit(train: csr_array) -> None:
    model = GraphRecommender(random_state=0, max_time=0.01).fit(train)
    assert model.recommend(0, train[[0]])[0].shape == (10,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"edges": "hub"}, "edges must be one of 'hubs', 'normal', 'bipartite', 'random', got 'hub'"),
        ({"numbers_per_item": float("nan")}, "numbers_per_item must be a finite number, got nan"),
        ({"numbers_per_item": 3}, "numbers_per_item = 3 is too small"),
        ({"max_time": 0}, "max_time must be a number of seconds above 0, got 0"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
)
def test_bad_parameters(train: csr_array, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GraphRecommender(**settings).fit(train)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((3, 4)), "no interaction"),
        (np.zeros((0, 4)), "must have users and items"),
        (-np.eye(3), r"user_items\[0, 0\] = -1"),
        (np.full((2, 2), np.nan), r"user_items\[0, 0\] = nan"),
    ],
)
def test_bad_interactions(matrix: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GraphRecommender().fit(matrix)


def test_labels_must_fit(train: csr_array) -> None:
    with pytest.raises(ValueError, match="user_labels must have 200 entries, one for each, got 1"):
        GraphRecommender().fit(train, user_labels=["ann"])
    with pytest.raises(TypeError, match="item_labels must be text, got 0"):
        GraphRecommender().fit(train, item_labels=range(40))  # type: ignore[arg-type]


# -- distances -------------------------------------------------------------------------------------------------------


def test_distances_are_those_of_the_graph(model: GraphRecommender) -> None:
    users = [5, 3, 5, 199]
    assert model.distances(users) == pytest.approx(model.graph_.distances(users, np.arange(200, 240)), rel=1e-6)
    assert model.distances(users, [7]) == pytest.approx(model.graph_.distances(users, [207]), rel=1e-6)
    assert (model.scores(users) == -model.distances(users)).all()


def test_users_with_several_edges() -> None:
    # Two users, three items; user 0 has two edges, user 1 one.
    model = GraphRecommender(edges="bipartite")
    model.n_users_, model.n_items_, model.n_features_in_ = 2, 3, 3
    model._take(Graph.from_edges([0, 0, 1], [2, 3, 3], [1, 2, 4], n_vertices=5))
    expected = [[1, 2, np.inf], [7, 4, np.inf]]
    assert model.distances([0, 1]).tolist() == expected
    assert model.recommend(1, N=3, filter_already_liked_items=False)[0].tolist() == [1, 0, -1]


def test_memory_of_distances_is_bounded(model: GraphRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = model.distances(np.arange(200))
    assert model._kept is not None
    monkeypatch.setattr("prodige.recommendation._MOST_KEPT", 0)
    model._kept = None
    assert (model.distances(np.arange(200)) == expected).all()
    assert model._kept is None


def test_recommends_what_is_near_and_new(train: csr_array, model: GraphRecommender) -> None:
    ids, scores = model.recommend(np.arange(200), train, N=5)
    met = train.toarray()
    assert not met[np.arange(200)[:, None], ids].any()
    all_scores = np.where(met > 0, -np.inf, model.scores(np.arange(200)))
    assert scores == pytest.approx(-np.sort(-all_scores, axis=1)[:, :5])
    assert (ids % 2 == np.arange(200)[:, None] % 2).mean() > 0.95


def test_more_than_is_left(train: csr_array, model: GraphRecommender) -> None:
    ids, scores = model.recommend(0, train[[0]], N=60)
    n_left = 40 - int(train[[0]].nnz)
    assert (ids[:n_left] >= 0).all()
    assert (ids[n_left:] == -1).all()
    assert (scores[n_left:] == -np.inf).all()


def test_unknown_ids_and_shapes(train: csr_array, model: GraphRecommender) -> None:
    with pytest.raises(IndexError, match=r"users\[0\] = 200 is not a user"):
        model.recommend(200, train[[0]])
    with pytest.raises(ValueError, match=r"got shape \(1, 39\)"):
        model.recommend(0, train[[0], :39])
    with pytest.raises(IndexError, match=r"itemid\[0\] = 40 is not an item"):
        model.similar_items(40)


# -- alike -----------------------------------------------------------------------------------------------------------


def test_similar_items_and_users(model: GraphRecommender) -> None:
    ids, scores = model.similar_items([3, 8], N=6)
    assert ids[:, 0].tolist() == [3, 8]
    assert (scores[:, 0] == 0).all()
    expected = np.sort(model.graph_.distances([203, 208], np.arange(200, 240)), axis=1)[:, :6]
    assert -scores == pytest.approx(expected, rel=1e-6)
    assert (ids % 2 == np.array([[1], [0]])).mean() > 0.9

    ids, scores = model.similar_users(7, N=300)
    assert ids[0] == 7
    assert (ids[200:] == -1).all()
    assert np.unique(ids[:200]).size == 200
    assert 7 not in model.similar_users(7, N=3, filter_users=[7])[0]


# -- users without interactions, and new ones ------------------------------------------------------------------------


def test_users_and_items_without_interactions() -> None:
    met = crowds(200, 40).toarray()
    met[::2, 0] = 1
    met[17] = 0
    met[:, 39] = 0
    model = GraphRecommender(random_state=0).fit(met)
    assert np.isfinite(model.distances(np.arange(200))).all()
    assert (model.distances(np.arange(200)).argmax(axis=1) == 39).mean() > 0.9
    popularity = met.sum(axis=0)
    ids, _ = model.recommend(17, N=10, filter_already_liked_items=False)
    assert popularity[ids].mean() > popularity.mean()


def test_new_users_are_placed_without_refitting(train: csr_array) -> None:
    model = GraphRecommender(random_state=0, n_jobs=1).fit(train)
    before = model.distances(np.arange(200))
    newcomers = np.zeros((3, 40), np.float32)
    newcomers[0, [2, 4, 6]] = 1
    newcomers[1, [1, 3, 5]] = 1
    assert model.partial_fit_users([200, 203, 204], newcomers) is model
    assert model.n_users_ == 205
    assert model.graph_.n_items == 245
    assert model.distances(np.arange(200)) == pytest.approx(before, rel=1e-6)
    even, odd = model.recommend([200, 203], newcomers[:2], N=5)[0]
    assert (even % 2 == 0).all()
    assert (odd % 2 == 1).all()
    # Without interactions, skipped or not: the same fallback.
    idle = model.recommend([201, 202, 204], N=5, filter_already_liked_items=False)[0]
    assert (idle == idle[0]).all()


def test_known_users_change_their_minds(train: csr_array) -> None:
    model = GraphRecommender(random_state=0, n_jobs=1).fit(train)
    before = model.distances(np.arange(1, 200))
    other = train[[1]]
    model.partial_fit_users([0], other)
    assert model.distances(0)[0, 1::2].mean() < model.distances(0)[0, ::2].mean()
    assert model.distances(np.arange(1, 200)) == pytest.approx(before, rel=1e-6)
    assert model.graph_.n_items == 240


def test_new_users_of_a_graph_without_hubs() -> None:
    met = crowds(60, 20)
    model = GraphRecommender(numbers_per_item=8, edges="bipartite", random_state=0, n_jobs=1).fit(met)
    model.partial_fit_users([60], met[[4]])
    assert np.isfinite(model.distances(60)).any()
    with pytest.raises(ValueError, match=r"users\[0\] = 3 is known"):
        model.partial_fit_users([3], met[[4]])


@pytest.mark.parametrize(
    ("users", "rows", "message"),
    [([200, 200], 2, "got 200 more than once"), ([200], 2, r"got shape \(2, 40\)")],
)
def test_bad_new_users(train: csr_array, model: GraphRecommender, users: list[int], rows: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.partial_fit_users(users, train[:rows])
    assert model.n_users_ == 200


# -- files -----------------------------------------------------------------------------------------------------------


def test_saved_and_loaded(train: csr_array, tmp_path: Path) -> None:
    users, items = [f"user {u}" for u in range(200)], [f"Stück {x}" for x in range(40)]
    model = GraphRecommender(random_state=0, numbers_per_item=5).fit(train, user_labels=users, item_labels=items)
    model.save(tmp_path / "model.prodige")
    loaded = GraphRecommender.load(tmp_path / "model.prodige")
    assert loaded.graph_ == model.graph_
    assert (loaded.user_labels_, loaded.item_labels_) == (users, items)
    assert loaded.get_params()["numbers_per_item"] == 5
    assert (loaded.recommend(3, train[[3]])[0] == model.recommend(3, train[[3]])[0]).all()
    loaded.partial_fit_users([200], train[[0]])
    assert loaded.user_labels_ is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, "no GraphRecommender"),
        ({"n_users": 240}, "n_users = 240"),
        ({"n_users": "many"}, "n_users = 'many'"),
        ({"edges": "rubber"}, "edges = 'rubber'"),
        ({"numbers_per_item": None}, "numbers_per_item = None"),
        ({"user_labels": ["one"]}, "user_labels must have 200 entries"),
        ({"item_labels": 7}, "item_labels"),
    ],
)
def test_files_that_are_not_models(
    model: GraphRecommender, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    metadata = {"model": "GraphRecommender", "n_users": 200, "numbers_per_item": 4.0, "edges": "hubs"}
    model.graph_.save(tmp_path / "x.prodige", metadata | change)
    with pytest.raises(FileFormatError, match=message):
        GraphRecommender.load(tmp_path / "x.prodige")
