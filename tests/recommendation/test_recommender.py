from __future__ import annotations

import inspect
import os
import pickle
import pkgutil
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import prodige
from files import write_old
from prodige import Graph, GraphRecommender, ProductGraph
from prodige.graph import container, file
from prodige.graph.container import FileFormatError
from prodige.progress import Record
from prodige.recommendation.placing import Placing
from prodige.recommendation.ranking import evaluate_ranking, sample_negatives, split_leave_one_out
from prodige.recommendation.recommender import EDGES
from prodige.recommendation.vectors import Vectors
from strategies import crowds, many


@pytest.fixture(scope="module")
def train() -> csr_array:
    return crowds(200, 40)


@pytest.fixture(scope="module")
def model(train: csr_array) -> GraphRecommender:
    return GraphRecommender(random_state=0, n_jobs=1).fit(train)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> GraphRecommender:
    """A model of 60 users and 20 items as files of earlier versions hold it: with hubs for either kind."""
    random = np.random.default_rng(0)
    ends = [(v, 80 + 2 * (v >= 60) + v % 2) for v in range(80)] + [(80, 82), (80, 83), (81, 82), (81, 83)]
    weights = np.where(np.arange(84) < 80, random.uniform(0.5, 1, 84), [0.1] * 81 + [5, 5, 0.1])
    i, j = np.array(ends).T
    graph = Graph.from_edges(i, j, weights, n_vertices=84, n_items=80)
    path = tmp_path_factory.mktemp("old") / "old.prodige"
    metadata = {"model": "GraphRecommender", "n_users": 60, "numbers_per_item": 4.0, "edges": "hubs"}
    write_old(path, graph, metadata)
    return GraphRecommender.load(path)


# -- fitting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", EDGES)
def test_better_than_chance_within_the_budget(edges: Any) -> None:
    interacted = crowds(300, 60)
    train, held_out = split_leave_one_out(interacted, random_state=0)
    model = GraphRecommender(numbers_per_item=6, edges=edges, random_state=0, n_jobs=1).fit(train)
    report = evaluate_ranking(model, train, held_out, sample_negatives(interacted, held_out, 20, random_state=0))
    # Half of the items are of the own crowd: a perfect guess of the crowd gives 10 of 21.
    assert report.sampled is not None
    assert report.sampled.hit_ratio[10] > (0.75 if edges == "product" else 0.6)
    assert 3 < model.numbers_per_item_ <= 6
    assert model.graph_.n_items == 360
    assert model.stopped_ == "finished"
    assert model.history_[-1].loss < model.history_[0].loss


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
    seen: list[Record] = []

    def third(record: Record) -> bool:
        seen.append(record)
        return len(seen) == 3

    model = GraphRecommender(random_state=0, callbacks=[third]).fit(train)
    assert len(seen) == len(model.history_) == 3
    assert model.stopped_ == "callback"
    assert model.recommend(0, train[[0]])[0].shape == (10,)


@pytest.mark.parametrize("edges", EDGES)
def test_a_time_limit_that_is_too_short_for_anything(edges: Any, train: csr_array) -> None:
    model = GraphRecommender(numbers_per_item=6, edges=edges, random_state=0, max_time=0.01).fit(train)
    assert model.stopped_ == "finished"
    assert model.numbers_per_item_ <= 6
    assert model.recommend(0, train[[0]])[0].shape == (10,)
    assert np.isfinite(model.distances(np.arange(200))).all()


def test_a_time_limit_holds_for_all_that_a_fit_does() -> None:
    """In seconds of the processor: the clock of a busy machine says nothing."""
    interacted = many(20_000, 5000)
    for max_time in (0.5, 3):
        began = time.process_time()
        model = GraphRecommender(random_state=0, n_jobs=1, max_time=max_time).fit(interacted)
        assert time.process_time() - began < max_time + 2
        users = np.arange(0, 20_000, 100)
        ids, _ = model.recommend(users, interacted[users])
        assert (ids % 10 == users[:, None] % 10).mean() > 0.2  # twice as good as chance


@pytest.mark.parametrize("edges", EDGES)
def test_any_number_of_threads_gives_the_same_graph(edges: Any) -> None:
    interacted = many(2000, 500)
    graphs = [
        GraphRecommender(
            numbers_per_item=5, edges=edges, random_state=0, n_jobs=n_jobs, callbacks=[lambda record: record.step == 1]
        )
        .fit(interacted)
        .graph_
        for n_jobs in (1, 2, 3)
    ]
    assert graphs[0] == graphs[1] == graphs[2]


PROGRAM = """
import hashlib
from prodige import GraphRecommender
from prodige.baselines import EASE, SVD
from strategies import many
met, digest = many(2000, 500), hashlib.sha256()
for edges in ("product", "normal"):
    stop = [lambda record: record.step == 1]
    model = GraphRecommender(numbers_per_item=5, edges=edges, random_state=0, n_jobs=1, callbacks=stop).fit(met)
    digest.update(model.graph_.distances([0, 1]).tobytes())
for model in (EASE(), SVD(random_state=0)):
    digest.update(model.fit(met).scores([0, 1]).tobytes())
print(digest.hexdigest())
"""


def test_the_threads_of_openmp_do_not_matter() -> None:
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": n_threads, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        for n_threads in ("1", "3")
    ]
    one, three = (program.communicate(timeout=120)[0] for program in programs)
    assert one == three != ""


def test_no_callbacks(train: csr_array) -> None:
    assert GraphRecommender(random_state=0, callbacks=None, max_time=0.01).fit(train).stopped_ == "finished"


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------

# What a fit does from when there is something to keep.
LATE = {
    "product": [
        "distillation:ProductFit._surprise",
        "distillation:balance",
        "codes:Coding.alternate",
        "codes:Coding.finish",
        "distillation:make_product",
    ],
    "normal": [
        "paper.fit:RankingFit._choose",
        "paper.fit:RankingFit._calibrate",
        "paper.fit:RankingFit._learn",
        "paper.fit:RankingFit.finish",
    ],
}


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(("edges", "stage"), [(edges, stage) for edges, stages in LATE.items() for stage in stages])
def test_ctrl_c_keeps_the_best_so_far(edges: Any, stage: str, is_done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pressed once, when a stage has just begun or is just done, after the first step of the fit."""
    interacted = crowds(200, 40).toarray()
    interacted[17] = 0
    module, _, function = stage.partition(":")
    *holders, name = function.split(".")
    holder: Any = pkgutil.resolve_name(f"prodige.recommendation.{module}:{'.'.join(holders)}".removesuffix(":"))
    real, n_calls = getattr(holder, name), 0
    # The first trial is part of the first step; it alternates twice.
    last = {"Coding.alternate": 3, "balance": 2, "Coding.finish": 2}.get(function, 1) if edges == "product" else 1

    def pressed(*arguments: Any, **options: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == last and not is_done:
            raise KeyboardInterrupt
        result = real(*arguments, **options)
        if n_calls == last:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(holder, name, pressed)
    model = GraphRecommender(numbers_per_item=6, edges=edges, random_state=0, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match="interrupted: graph_ is the best so far"):
        model.fit(interacted)
    assert model.stopped_ == "interrupt"
    assert model.numbers_per_item_ <= 6
    ids = model.recommend(np.arange(200), interacted, N=5)[0]
    assert (ids % 2 == np.arange(200)[:, None] % 2).mean() > 0.55  # half of the items are of the own crowd


@pytest.mark.parametrize("edges", EDGES)
def test_ctrl_c_in_a_callback(edges: Any, train: csr_array) -> None:
    for last in (0, 7):

        def press(record: Record, last: int = last) -> None:
            if record.step == last:
                raise KeyboardInterrupt

        model = GraphRecommender(numbers_per_item=6, edges=edges, random_state=0, n_jobs=1, callbacks=[press])
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model.fit(train)
        assert model.stopped_ == "interrupt"
        assert len(model.history_) == last + 1
        assert model.numbers_per_item_ <= 6


def test_ctrl_c_at_any_moment() -> None:
    """Real signals: a fit either keeps a graph and says so, or there was none yet and the old model stays."""
    interacted = many(3000, 500)
    old = GraphRecommender(random_state=0, n_jobs=1).fit(crowds(50, 20))
    kept = []
    for delay in np.linspace(0.05, 1.5, 10):
        model = pickle.loads(pickle.dumps(old))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
            try:
                timer.start()
                model.fit(interacted)
            except KeyboardInterrupt:
                assert (model.n_users_, model.graph_) == (50, old.graph_)
                continue
            finally:
                timer.cancel()
                timer.join()
        assert (model.n_users_, model.stopped_ in ("interrupt", "finished")) == (3000, True)
        assert np.isfinite(model.distances([0, 2999])).all()
        kept.append(model.stopped_)
    assert "interrupt" in kept


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"edges": "hub"}, "edges must be one of 'product', 'normal', 'bipartite', 'random', got 'hub'"),
        ({"numbers_per_item": float("nan")}, "numbers_per_item must be a finite number above 0, got nan"),
        ({"numbers_per_item": True}, "numbers_per_item must be a finite number above 0, got True"),
        ({"bits_per_item": -1}, "bits_per_item must be a finite number above 0, got -1"),
        ({"bits_per_item": 64, "numbers_per_item": 4}, "are two budgets; give one of them"),
        ({"bits_per_item": 10}, "bits_per_item = 10 is too little: the least for 200 users and 40 items is"),
        ({"bits_per_item": 10, "store_users": False}, "is too little: the least for 40 items is"),
        ({"numbers_per_item": 1}, "numbers_per_item = 1 is too little: the least for 200 users and 40 items is 1.2"),
        ({"numbers_per_item": 2, "edges": "normal"}, "enough to connect users and items, got 2"),
        ({"bits_per_item": 64, "edges": "normal"}, "graphs of the paper are as large as numbers_per_item says"),
        ({"store_users": False, "edges": "normal"}, "users are vertices of graphs of the paper"),
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


def test_users_with_several_edges(tmp_path: Path) -> None:
    # Two users, three items; user 0 has two edges, user 1 one.
    graph = Graph.from_edges([0, 0, 1], [2, 3, 3], [1, 2, 4], n_vertices=5)
    metadata = {"model": "GraphRecommender", "n_users": 2, "numbers_per_item": 4, "edges": "bipartite"}
    write_old(tmp_path / "x.prodige", graph, metadata)
    model = GraphRecommender.load(tmp_path / "x.prodige")
    expected = [[1, 2, np.inf], [7, 4, np.inf]]
    assert model.distances([0, 1]).tolist() == expected
    assert model.recommend(1, N=3, filter_already_liked_items=False)[0].tolist() == [1, 0, -1]


def test_distances_that_are_not_kept_are_the_same(old: GraphRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = old.distances(np.arange(60))
    fresh = pickle.loads(pickle.dumps(old))
    monkeypatch.setattr("prodige.recommendation.paths._MOST_KEPT", 0)
    assert (fresh.distances(np.arange(60)) == expected).all()


def test_recommends_what_is_near_and_new(train: csr_array, model: GraphRecommender) -> None:
    ids, scores = model.recommend(np.arange(200), train, N=5)
    interacted = train.toarray()
    assert not interacted[np.arange(200)[:, None], ids].any()
    all_scores = np.where(interacted > 0, -np.inf, model.scores(np.arange(200)))
    assert scores == pytest.approx(-np.sort(-all_scores, axis=1)[:, :5])
    assert (ids % 2 == np.arange(200)[:, None] % 2).mean() > 0.95


def test_more_than_is_left(train: csr_array, model: GraphRecommender) -> None:
    ids, scores = model.recommend(0, train[[0]], N=60)
    n_left = 40 - int(train[[0]].nnz)
    assert (ids[:n_left] >= 0).all()
    assert (ids[n_left:] == -1).all()
    assert (scores[n_left:] == -np.inf).all()


def test_unknown_ids_and_shapes(train: csr_array, model: GraphRecommender) -> None:
    with pytest.raises(IndexError, match=r"userid\[0\] = 200 is not a user"):
        model.recommend(200, train[[0]])
    with pytest.raises(ValueError, match=r"got shape \(1, 39\)"):
        model.recommend(0, train[[0], :39])
    with pytest.raises(IndexError, match=r"itemid\[0\] = 40 is not an item"):
        model.similar_items(40)


# -- threads and interrupts ------------------------------------------------------------------------------------------


def fresh(model: GraphRecommender, tmp_path: Path) -> Callable[[], GraphRecommender]:
    """Return what gives models that have not been asked anything yet."""
    model.save(tmp_path / "fresh.prodige")
    return lambda: GraphRecommender.load(tmp_path / "fresh.prodige")


def test_threads_may_ask_side_by_side(train: csr_array, model: GraphRecommender, tmp_path: Path) -> None:
    make, users = fresh(model, tmp_path), np.arange(200)
    expected = make().recommend(users, train, N=5)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(30):
            asked, together = make(), threading.Barrier(8)

            def ask(thread: int, asked: GraphRecommender = asked, together: threading.Barrier = together) -> Any:
                mine = np.random.default_rng(thread).permutation(users)
                together.wait(30)
                ids, scores = asked.recommend(mine, train[mine], N=5)
                return ids[np.argsort(mine)], scores[np.argsort(mine)]

            for answer in [*pool.map(ask, range(8)), asked.recommend(users, train, N=5)]:
                assert (answer[0] == expected[0]).all()
                assert (answer[1] == expected[1]).all()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_question_changes_nothing(
    error: type[BaseException],
    train: csr_array,
    model: GraphRecommender,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make, users = fresh(model, tmp_path), np.arange(200)
    expected = make().recommend(users, train, N=5)
    n_calls = 0

    def interrupting(real: Callable[..., Any]) -> Callable[..., Any]:
        def interrupted(*arguments: Any, **options: Any) -> Any:
            nonlocal n_calls
            n_calls += 1
            if n_calls == 1:
                raise error
            return real(*arguments, **options)

        return interrupted

    monkeypatch.setattr(Vectors, "scores", interrupting(Vectors.scores))
    monkeypatch.setattr(Placing, "solve", interrupting(Placing.solve))
    monkeypatch.setattr(ProductGraph, "distances", interrupting(ProductGraph.distances))
    questions: list[Callable[[GraphRecommender], Any]] = [
        lambda asked: asked.recommend(users, train, N=5),
        lambda asked: asked.recommend(users, train, N=5, recalculate_user=True),
        lambda asked: asked.distances([3]),
        lambda asked: asked.partial_fit_users([200], train[[0]]),
        lambda asked: asked.partial_fit_items([40], train.T[[0]]),
        lambda asked: asked.similar_items([0]),
    ]
    for question in questions:
        asked, n_calls = make(), 0
        with pytest.raises(error):
            question(asked)
        assert n_calls == 1
        assert asked.n_users_ == 200
        for found, target in zip(asked.recommend(users, train, N=5), expected, strict=True):
            assert (found == target).all()


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
    assert set(model.similar_users(7, N=4, users=[9, 7, 11, 9], filter_users=[11])[0]) == {7, 9, -1}
    assert set(model.similar_items(3, N=4, items=[3, 5, 7], filter_items=[5])[0]) == {3, 7, -1}
    with pytest.raises(IndexError, match=r"items\[1\] = 40 is not an item"):
        model.similar_items(3, items=[0, 40])


@pytest.mark.parametrize("name", ["recommend", "similar_items", "similar_users"])
def test_keywords_are_those_of_implicit(name: str) -> None:
    """But for those that make no sense here; what comes after one of them is given by name only."""
    implicit = pytest.importorskip("implicit.recommender_base")
    theirs = inspect.signature(getattr(implicit.RecommenderBase, name)).parameters
    ours = inspect.signature(getattr(GraphRecommender, name)).parameters
    missing = {"recalculate_item", "item_users"}
    assert list(ours) == [key for key in theirs if key not in missing]
    by_place = [key for key, parameter in ours.items() if parameter.kind is not parameter.KEYWORD_ONLY]
    assert by_place == list(theirs)[: len(by_place)]


# -- users without interactions, and new ones ------------------------------------------------------------------------


def test_users_and_items_without_interactions() -> None:
    interacted = crowds(200, 40).toarray()
    interacted[::2, 0] = 1
    interacted[17] = 0
    interacted[:, 39] = 0
    model = GraphRecommender(random_state=0).fit(interacted)
    assert np.isfinite(model.distances(np.arange(200))).all()
    assert (model.recommend(np.arange(200), N=5)[0] != 39).all()
    popularity = interacted.sum(axis=0)
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
    interacted = crowds(60, 20)
    model = GraphRecommender(numbers_per_item=8, edges="bipartite", random_state=0, n_jobs=1).fit(interacted)
    model.partial_fit_users([60], interacted[[4]])
    ids, _ = model.recommend(60, interacted[[4]], N=5)
    assert (ids % 2 == 0).mean() > 0.5  # of the crowd of user 4
    with pytest.raises(ValueError, match=r"userids\[0\] = 3 is known"):
        model.partial_fit_users([3], interacted[[4]])


@pytest.mark.parametrize(
    ("users", "rows", "message"),
    [([200, 200], 2, "got 200 more than once"), ([200], 2, r"got shape \(2, 40\)")],
)
def test_bad_new_users(train: csr_array, model: GraphRecommender, users: list[int], rows: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.partial_fit_users(users, train[:rows])
    assert model.n_users_ == 200


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("users", [[201, 205], [0, 7]])
def test_a_failed_placement_changes_nothing(
    error: type[BaseException], users: list[int], train: csr_array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever graph cannot be made: all that can be asked is as it was."""
    names = [f"user {u}" for u in range(200)]
    model = GraphRecommender(random_state=0, n_jobs=1).fit(train, user_labels=names)
    before = model.recommend(np.arange(200), train)
    graph, from_factors, n_made = model.graph_, ProductGraph.from_factors, 0
    for failing in range(1, 4):
        n_made = 0

        def fails(*arguments: Any, failing: int = failing, **options: Any) -> ProductGraph:
            nonlocal n_made
            n_made += 1
            if n_made == failing:
                raise error
            return from_factors(*arguments, **options)

        monkeypatch.setattr(ProductGraph, "from_factors", fails)
        try:
            model.partial_fit_users(users, train[:2])
        except error:
            assert (model.n_users_, model.n_items_, model.graph_, model.user_labels_) == (200, 40, graph, names)
            for found, target in zip(model.recommend(np.arange(200), train), before, strict=True):
                assert (found == target).all()
        else:
            break
    monkeypatch.undo()
    assert failing > 1  # it failed, and then it worked
    assert model.n_users_ == max(200, *[user + 1 for user in users])


@pytest.mark.parametrize("stage", ["distillation.hold_out", "distillation.balance", "distillation.make_product"])
def test_a_failed_fit_leaves_the_old_model(stage: str, train: csr_array, monkeypatch: pytest.MonkeyPatch) -> None:
    model = GraphRecommender(random_state=0, n_jobs=1).fit(train, item_labels=[f"item {x}" for x in range(40)])
    before, state = model.distances([0, 1]), dict(vars(model))

    def fails(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(f"prodige.recommendation.{stage}", fails)
    with pytest.raises(MemoryError):
        model.fit(crowds(300, 50))
    monkeypatch.undo()
    assert (model.distances([0, 1]) == before).all()
    assert all(vars(model)[name] is value for name, value in state.items())


def test_ids_far_away_are_refused_before_memory_is_taken(train: csr_array, model: GraphRecommender) -> None:
    began = peak_memory()
    with pytest.raises(
        ValueError, match=r"userids\[0\] = 1000000000 skips 999999800 ids, .* about 119.2 GiB; .* from 200"
    ):
        model.partial_fit_users([10**9], train[[0]])
    assert peak_memory() - began < 2**26
    assert model.n_users_ == 200


def test_more_than_there_are_is_refused_where_it_is_large(train: csr_array, model: GraphRecommender) -> None:
    began = peak_memory()
    questions: list[Callable[[], Any]] = [
        lambda: model.recommend(0, train[[0]], N=2**31 - 1),
        lambda: model.similar_items(0, N=2**31 - 1),
        lambda: model.similar_users(0, N=2**31 - 1),
    ]
    for ask in questions:
        with pytest.raises(
            ValueError, match=r"N = 2147483647 makes an answer of 16.0 GiB, and there are (40 item|200 us)"
        ):
            ask()
    assert peak_memory() - began < 2**26
    assert model.recommend(0, train[[0]], N=10_000)[0].shape == (10_000,)


def peak_memory() -> int:
    """Most bytes that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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


def test_names_never_meet_the_graph_of_another(train: csr_array, tmp_path: Path) -> None:
    """Two models take turns in one file while it is read."""
    path, other = tmp_path / "model.prodige", crowds(60, 20)
    models = [
        GraphRecommender(random_state=0, n_jobs=1).fit(
            interacted, item_labels=[f"{name} {x}" for x in range(interacted.shape[1])]
        )
        for interacted, name in ((train, "book"), (other, "song"))
    ]
    known = {model.graph_: model.item_labels_ for model in models}
    models[0].save(path)
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            for model in models:
                model.save(path)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        seen = set()
        end = time.monotonic() + 1
        while time.monotonic() < end:
            loaded = GraphRecommender.load(path)
            assert known[loaded.graph_] == loaded.item_labels_
            seen.add(loaded.n_items_)
    finally:
        stop.set()
        writer.join()
    assert seen == {40, 20}


def test_a_file_is_opened_once(model: GraphRecommender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.prodige"
    model.save(path)
    opened, real = [], open

    def counted(name: Any, *arguments: Any, **options: Any) -> Any:
        opened.append(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr("builtins.open", counted)
    GraphRecommender.load(path)
    assert [name for name in opened if str(name) == str(path)] == [str(path)]


def test_labels_without_room_are_refused_before_the_fit(train: csr_array, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(record: Record) -> None:
        pytest.fail("the fit began")

    monkeypatch.setattr(container, "MAX_TEXTS", 2**20)
    labels = [f"{u:03} " + "ü" * 2700 for u in range(200)]
    with pytest.raises(ValueError, match=r"user_labels take 1080800 bytes in a file, at most 1048576 are possible"):
        GraphRecommender(callbacks=[never]).fit(train, user_labels=labels)


def test_labels_of_any_length_are_saved(train: csr_array, tmp_path: Path) -> None:
    """A header has room for 16 MiB; labels are not in it."""
    labels = ["x" * 100_000] * 199 + ["\ud800 and ü"]
    model = GraphRecommender(callbacks=[lambda status: True]).fit(train, user_labels=labels)
    model.save(tmp_path / "large.prodige")
    assert GraphRecommender.load(tmp_path / "large.prodige").user_labels_ == labels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, "it holds a graph, not a recommender; open it with prodige.load or Graph.load"),
        ({"n_users": 80}, "n_users = 80"),
        ({"n_users": "many"}, "n_users = 'many'"),
        ({"edges": "rubber"}, "edges = 'rubber'"),
        ({"numbers_per_item": None}, "numbers_per_item = None"),
        ({"user_labels": ["one"]}, "user_labels must have 60 entries"),
        ({"item_labels": 7}, "item_labels"),
    ],
)
def test_files_that_are_not_models(old: GraphRecommender, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    metadata = {"model": "GraphRecommender", "n_users": 60, "numbers_per_item": 4.0, "edges": "hubs"}
    assert isinstance(old.graph_, Graph)
    write_old(tmp_path / "x.prodige", old.graph_, metadata | change)
    with pytest.raises(FileFormatError, match=message):
        GraphRecommender.load(tmp_path / "x.prodige")
    if "labels" in message or "model" in change:
        return
    graph, arrays = file.encode(old.graph_)
    content = {"graph": graph, "n_users": 60, "numbers_per_item": 4.0, "edges": "hubs"}
    container.write(tmp_path / "x.prodige", "recommender", content, arrays)
    assert GraphRecommender.load(tmp_path / "x.prodige").graph_ == old.graph_
    container.write(tmp_path / "x.prodige", "recommender", content | change, arrays)
    with pytest.raises(FileFormatError, match=message):
        GraphRecommender.load(tmp_path / "x.prodige")


def test_parts_that_do_not_fit_together(old: GraphRecommender, tmp_path: Path) -> None:
    graph, arrays = file.encode(old.graph_)
    content = {"graph": graph, "n_users": 60, "numbers_per_item": 4.0, "edges": "hubs"}
    labels = container.pack_texts(["a"] * 20)
    for wrong, others in (
        ({}, {}),
        ({"graph": graph}, {}),
        (content | {"graph": None}, {}),
        (content | {"graph": graph | {"n_items": 10**9}}, {}),
        (content | {"n_users": True}, {}),
        (content, {"user_labels": labels}),
        (content, {"item_labels": labels[:-1]}),
        (content, {"weight": -arrays["weight"]}),
    ):
        container.write(tmp_path / "x.prodige", "recommender", wrong, arrays | others)
        with pytest.raises(FileFormatError, match="its parts do not fit together"):
            GraphRecommender.load(tmp_path / "x.prodige")


def test_the_files_of_version_1_are_read_for_ever(old: GraphRecommender, tmp_path: Path) -> None:
    path = tmp_path / "old.prodige"
    labels = {"user_labels": None, "item_labels": [f"Stück {x}" for x in range(20)]}
    metadata = {"model": "GraphRecommender", "n_users": 60, "numbers_per_item": 4.0, "edges": "hubs", **labels}
    assert isinstance(old.graph_, Graph)
    write_old(path, old.graph_, metadata)
    for loaded in (GraphRecommender.load(path, n_jobs=1), prodige.load(path, n_jobs=1)):
        assert isinstance(loaded, GraphRecommender)
        assert loaded.graph_ == old.graph_
        assert (loaded.n_users_, loaded.n_jobs) == (60, 1)
        assert (loaded.user_labels_, loaded.item_labels_) == (None, labels["item_labels"])
    with pytest.raises(FileFormatError, match=r"holds a recommender, not a graph; open it with prodige\.load or Gr"):
        Graph.load(path)
