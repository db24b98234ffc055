"""DistanceCompressor: an estimator as scikit-learn knows them, whatever the data, and never beyond its budget."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from prodige import DistanceCompressor, Graph, ProductGraph
from prodige.compression import selection
from prodige.metric.landmarks import Landmarks
from prodige.progress import Record
from prodige.reproduce.families import tree

Rows = NDArray[np.float64]

BLOBS, LABELS = make_blobs(160, 12, centers=4, random_state=0)
PLANE = np.random.default_rng(0).normal(size=(80, 2))
FIELDS = {"step", "progress", "loss", "n_edges", "numbers_per_item", "seconds"}


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that look at what comes out, not at how good it is."""
    monkeypatch.setattr(selection, "N_STEPS", 8)
    monkeypatch.setattr(selection, "N_LOCAL_STEPS", 8)


def make(**parameters: Any) -> DistanceCompressor:
    return DistanceCompressor(**{"random_state": 0, "n_jobs": 1} | parameters)


def bits(graph: Graph | ProductGraph) -> list[bytes]:
    if isinstance(graph, Graph):
        return [part.tobytes() for part in graph.edges]
    return [part.tobytes() for part in (graph.codes, graph.lengths, *(factor.distances() for factor in graph.factors))]


def absolute(x: Rows, y: Rows) -> float:
    return float(np.abs(x - y).sum())


def check_budget(graph: Graph, numbers: float, n_items: int) -> None:
    assert graph.n_items == n_items
    assert graph.is_connected
    assert graph.numbers_per_item <= numbers + 1e-9


# -- as scikit-learn knows them


@parametrize_with_checks([DistanceCompressor(), DistanceCompressor(metric="precomputed")])  # type: ignore[untyped-decorator]
def test_sklearn_conventions(estimator: Any, check: Callable[[Any], None], short_runs: None) -> None:
    check(estimator)


@pytest.mark.usefixtures("short_runs")
def test_clone_and_pickle() -> None:
    compressor = make(numbers_per_item=5, metric="manhattan", n_hubs=6).fit(BLOBS)
    copy = clone(compressor)
    assert copy.get_params() == compressor.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(BLOBS)
    again = pickle.loads(pickle.dumps(compressor))
    assert again.graph_ == compressor.graph_
    assert again.history_ == compressor.history_
    np.testing.assert_array_equal(again.transform(BLOBS[:5]), compressor.transform(BLOBS[:5]))
    assert again.insert(BLOBS[:5]) == compressor.insert(BLOBS[:5])


@pytest.mark.usefixtures("short_runs")
def test_pipeline() -> None:
    classifier = make_pipeline(StandardScaler(), make(), KNeighborsClassifier(5)).fit(BLOBS[:120], LABELS[:120])
    assert classifier.score(BLOBS[120:], LABELS[120:]) > 0.9


@pytest.mark.usefixtures("short_runs")
def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    names = [f"column {c}" for c in range(12)]
    frame = pandas.DataFrame(BLOBS, columns=names)
    compressor = make().set_output(transform="pandas").fit(frame)
    assert compressor.feature_names_in_.tolist() == names
    out = compressor.transform(frame.iloc[3:9])
    assert isinstance(out, pandas.DataFrame)
    assert out.index.tolist() == list(range(3, 9))
    assert out.columns.tolist() == compressor.get_feature_names_out().tolist()
    assert out.columns[0] == "distancecompressor0"
    plain = make().fit(BLOBS)
    assert plain.graph_ == compressor.graph_
    np.testing.assert_array_equal(out.to_numpy(), plain.transform(BLOBS[3:9]))


@pytest.mark.parametrize("call", ["transform", "insert", "kneighbors", "score"])
def test_what_is_not_fitted_says_so(call: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(DistanceCompressor(), call)(BLOBS)
    with pytest.raises(NotFittedError):
        next(DistanceCompressor().pairwise_distances())


# -- bad input


def spoiled(value: float) -> Rows:
    rows: Rows = BLOBS.copy()
    rows[17, 3] = value
    return rows


def matrix_with(row: int, column: int, value: float) -> Rows:
    matrix: Rows = cdist(BLOBS, BLOBS)
    matrix[row, column] = value
    return matrix


def always(value: float) -> Callable[[Any, Any], float]:
    def metric(x: Any, y: Any) -> float:
        return value

    return metric


def directed(x: Rows, y: Rows) -> float:
    return float(np.maximum(x - y, 0).sum())


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({}, spoiled(np.nan), "NaN"),
        ({}, spoiled(np.inf), "infinity"),
        ({}, scipy.sparse.csr_array(spoiled(np.nan)), "NaN"),
        ({}, BLOBS[:2], "at least 3 items, got 2"),
        ({}, BLOBS[:1], "at least 3 items, got 1"),
        ({}, BLOBS[:0], "0 sample"),
        ({}, BLOBS[0], "2D array"),
        ({}, [["a", "b"]] * 5, "could not convert"),
        ({"metric": "precomputed"}, BLOBS, r"square matrix of distances, got shape \(160, 12\)"),
        ({"metric": "precomputed"}, matrix_with(3, 5, 77.5), r"symmetric, got 77.5 at \[3, 5\]"),
        ({"metric": "precomputed"}, -cdist(BLOBS, BLOBS), "0 or more, got -"),
        ({"metric": "precomputed"}, matrix_with(4, 4, 1.5), r"to itself must be 0, got 1.5 at \[4, 4\]"),
        ({"metric": "precomputed"}, matrix_with(4, 5, np.nan), "NaN"),
        ({"metric": always(np.nan)}, BLOBS, "metric 'metric' gives nan; distances must be finite"),
        ({"metric": always(-2.0)}, BLOBS, "metric 'metric' gives -2.0; distances must be .* 0 or more"),
        ({"metric": directed}, BLOBS, r"'directed' must be symmetric, got .* from item \d+ to item \d+ and .* back"),
        ({"metric": always(1.0)}, BLOBS, "'metric' must be 0 from an item to itself, got 1.0 at item 0"),
        ({"metric": "seuclidean"}, np.c_[BLOBS, np.ones(160)], "column 12 is constant"),
        ({"metric": "mahalanobis"}, np.c_[BLOBS, BLOBS[:, :1]], "160 rows with 13 columns it has no inverse"),
        ({"metric": "mahalanobis"}, BLOBS[:9], "9 rows with 12 columns it has no inverse"),
        ({"metric": "seuclidean"}, scipy.sparse.csr_array(BLOBS), "needs 2 dense rows or more"),
        ({}, 1e-300 * BLOBS, "too small for single precision: .* multiply X by a constant"),
        ({}, 1e-40 * BLOBS, "too small for single precision: .* multiply X by a constant"),
        ({}, scipy.sparse.csr_array(1e-300 * BLOBS), "too small for single precision"),
        ({"metric": "manhattan"}, 1e-300 * BLOBS, "too small for single precision"),
        ({"metric": absolute}, 1e-300 * BLOBS, "too small for single precision"),
        ({"metric": "precomputed"}, 1e-300 * cdist(BLOBS, BLOBS), "too small for single precision"),
        ({}, 1e300 * BLOBS, "too large for single precision"),
        ({"metric": "euclidian"}, BLOBS, "metric"),
        ({"numbers_per_item": 2.9}, BLOBS, "160 items needs 159 edges, which is 2.987 numbers an item; give at least"),
        ({"numbers_per_item": 0}, BLOBS, "numbers_per_item = 0 is too small"),
        ({"numbers_per_item": np.nan}, BLOBS, "numbers_per_item must be a finite number, got nan"),
        ({"numbers_per_item": "4"}, BLOBS, "numbers_per_item must be a finite number, got '4'"),
        ({"n_hubs": 0}, BLOBS, "n_hubs must be between 1 and 160, got 0"),
        ({"n_hubs": 161}, BLOBS, "n_hubs must be between 1 and 160, got 161"),
        ({"method": "l1"}, BLOBS, "method must be 'budget' or 'l0', got 'l1'"),
        ({"max_time": 0}, BLOBS, "max_time must be a number of seconds above 0, got 0"),
        ({"max_time": -3}, BLOBS, "max_time must be a number of seconds above 0, got -3"),
        ({"max_time": np.nan}, BLOBS, "max_time must be a number of seconds above 0, got nan"),
        ({"n_jobs": 0}, BLOBS, "n_jobs must not be 0"),
        ({"random_state": "seed"}, BLOBS, "'seed' cannot be used to seed"),
    ],
)
def test_bad_input(parameters: dict[str, Any], X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**parameters).fit(X)


@pytest.mark.parametrize("n_hubs", [2.5, "many", None, True])
def test_n_hubs_is_an_integer(n_hubs: Any) -> None:
    with pytest.raises(TypeError, match="n_hubs must be an integer"):
        make(n_hubs=n_hubs).fit(BLOBS)


@pytest.mark.parametrize("n_items", [3, 4, 7, 30, 160])
def test_the_least_budget_is_stated_and_works(n_items: int) -> None:
    X = BLOBS[:n_items]
    with pytest.raises(ValueError, match="give at least") as caught:
        make(numbers_per_item=2).fit(X)
    least = float(str(caught.value).rsplit(" ", 1)[1])
    graph = make(numbers_per_item=least, structure="graph").fit(X).graph_
    check_budget(graph, least, n_items)
    assert graph.n_edges == n_items - 1
    check_budget(make(numbers_per_item=least).fit(X).graph_, least, n_items)
    with pytest.raises(ValueError, match="is too small"):
        make(numbers_per_item=(3 * n_items - 2) / n_items - 1e-3).fit(X)


@pytest.mark.usefixtures("short_runs")
def test_bad_input_after_the_fit() -> None:
    compressor = make().fit(BLOBS)
    for call in (compressor.transform, compressor.insert, compressor.kneighbors, compressor.score):
        with pytest.raises(ValueError, match="NaN"):
            call(spoiled(np.nan))
        with pytest.raises(ValueError, match="11 features, but DistanceCompressor is expecting 12"):
            call(BLOBS[:, 1:])
    for k in (0, 160):
        with pytest.raises(ValueError, match="between 1 and 159"):
            compressor.kneighbors(n_neighbors=k)


# -- every kind of data


@pytest.mark.parametrize(
    ("X", "metric", "dense"),
    [
        (BLOBS.astype(np.float32), "euclidean", BLOBS),
        (BLOBS.tolist(), "euclidean", BLOBS),
        (np.asfortranarray(BLOBS), "euclidean", BLOBS),
        (scipy.sparse.csr_array(BLOBS), "euclidean", BLOBS),
        (scipy.sparse.csc_matrix(BLOBS), "manhattan", BLOBS),
        (BLOBS, "cosine", BLOBS),
        (BLOBS, "manhattan", BLOBS),
        (BLOBS[:40], absolute, BLOBS[:40]),
        (cdist(BLOBS, BLOBS), "precomputed", cdist(BLOBS, BLOBS)),
        (BLOBS, "seuclidean", BLOBS),
        (BLOBS, "mahalanobis", BLOBS),
        (PLANE, "euclidean", PLANE),
        (scipy.sparse.csr_array(PLANE), "euclidean", PLANE),
    ],
)
def test_kinds_of_data(X: Any, metric: Any, dense: Rows) -> None:
    compressor = make(metric=metric).fit(X)
    n = len(dense)
    check_budget(compressor.graph_, 4, n)
    target = pairwise_distances(dense, metric=metric)
    off = ~np.eye(n, dtype=bool)
    error = ((compressor.graph_.distances() - target)[off] ** 2).mean()
    assert compressor.score(X) == pytest.approx(-error, rel=1e-3)
    assert error < (0.5 if metric == "mahalanobis" else 0.1) * target[off].var()
    assert compressor.transform(X[:3]).shape == (3, min(n, 256))


@pytest.mark.usefixtures("short_runs")
def test_sparse_rows_give_what_dense_rows_give() -> None:
    rows = np.where(BLOBS > 0, BLOBS, 0)
    dense, sparse = make().fit(rows), make().fit(scipy.sparse.csr_array(rows))
    assert sparse.structure_ == dense.structure_
    assert sparse.score(scipy.sparse.csr_array(rows)) == pytest.approx(dense.score(rows), rel=0.1)
    # The same graph asks sparse and dense rows alike.
    new = rows[:20] + 0.25
    np.testing.assert_allclose(dense.transform(scipy.sparse.csr_array(new)), dense.transform(new), rtol=1e-5)
    np.testing.assert_allclose(
        dense.insert(scipy.sparse.csr_array(new)).distances(), dense.insert(new).distances(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("n_items", range(3, 13))
@pytest.mark.parametrize("numbers", [3, 4, 8])
def test_few_items(n_items: int, numbers: float) -> None:
    X = np.random.default_rng(n_items).normal(size=(n_items, 3))
    compressor = make(numbers_per_item=numbers).fit(X)
    check_budget(compressor.graph_, numbers, n_items)
    if n_items <= numbers:  # all pairs fit in
        assert compressor.structure_ == "complete"
        np.testing.assert_allclose(compressor.graph_.distances(), cdist(X, X), atol=1e-5)
        assert compressor.score(X) == pytest.approx(0, abs=1e-9)
    else:
        assert compressor.structure_ in ("product", "hubs", "neighbors", "star")
    assert compressor.transform(X).shape == (n_items, n_items)
    assert compressor.insert(X[:2]).n_items == n_items + 2
    assert compressor.kneighbors(n_neighbors=1)[1].shape == (n_items, 1)


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", absolute])
def test_copies_are_in_one_place(metric: Any) -> None:
    X = np.concatenate([PLANE[:30], PLANE[:10], PLANE[:5], PLANE[:1]])
    compressor = make(metric=metric).fit(X)
    graph = compressor.graph_
    check_budget(graph, 4, 46)
    distances = graph.distances()
    first = np.concatenate([np.arange(30), np.arange(10), np.arange(5), [0]])
    assert (distances[np.arange(46), first] == 0).all()
    np.testing.assert_array_equal(distances, distances[:30, :30][first][:, first])
    assert make(metric=metric).fit(PLANE[:30]).graph_.n_items == 30
    error = ((distances - pairwise_distances(X, metric=metric)) ** 2).sum() / (46 * 45)
    assert compressor.score(X) == pytest.approx(-error, rel=1e-3)


@pytest.mark.usefixtures("short_runs")
def test_copies_at_the_least_budget() -> None:
    X = np.repeat(PLANE[:10], 3, axis=0)
    graph = make(numbers_per_item=(3 * 30 - 2) / 30).fit(X).graph_
    check_budget(graph, (3 * 30 - 2) / 30, 30)
    assert (graph.distances()[np.arange(30), np.arange(30) // 3 * 3] == 0).all()


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("n_items", [3, 5, 40])
def test_constant_data(n_items: int) -> None:
    for X, metric in ((np.full((n_items, 2), 7.0), "euclidean"), (np.zeros((n_items, n_items)), "precomputed")):
        compressor = make(metric=metric).fit(X)
        check_budget(compressor.graph_, 4, n_items)
        np.testing.assert_allclose(compressor.graph_.distances(), 0, atol=1e-3)
        assert compressor.score(X) == pytest.approx(0, abs=1e-6)
        np.testing.assert_allclose(compressor.transform(X), 0, atol=1e-3)


SCALED: list[tuple[str, Callable[[Rows], Any]]] = [
    ("euclidean", lambda rows: rows),
    ("euclidean", lambda rows: rows.astype(np.float32)),
    ("manhattan", lambda rows: rows),
    ("precomputed", lambda rows: cdist(rows, rows)),
]


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("scale", [2.0**66, 2.0**-83])
@pytest.mark.parametrize("rows", [BLOBS[:60], PLANE[:60]], ids=["hubs", "neighbors"])
@pytest.mark.parametrize(("metric", "prepared"), SCALED)
def test_any_scale(scale: float, rows: Rows, metric: str, prepared: Callable[[Rows], Any]) -> None:
    """Single precision has no room for the squares of such distances; a power of two changes no other digit."""
    usual, odd = prepared(rows), prepared(scale * rows)
    told: list[float] = []
    heard: list[float] = []
    how: dict[str, Any] = {"metric": metric, "structure": "graph"}  # products are not tried at such scales
    expected = make(**how, callbacks=[lambda status: told.append(status.loss)]).fit(usual)
    found = make(**how, callbacks=[lambda status: heard.append(status.loss)]).fit(odd)
    check_budget(found.graph_, 4, 60)
    assert found.score(odd) / scale**2 == pytest.approx(expected.score(usual), rel=1e-5)
    assert {record.loss for record in found.history_} <= set(heard)
    assert heard[0] / scale**2 == pytest.approx(told[0], rel=1e-5)
    np.testing.assert_allclose(found.transform(odd[:5]) / scale, expected.transform(usual[:5]), rtol=1e-5, atol=1e-6)
    new, old = (fitted.insert(data[:5]).edges.weight for fitted, data in ((found, odd), (expected, usual)))
    np.testing.assert_allclose(new / scale, old, rtol=1e-5, atol=1e-6)


def test_any_scale_by_l0() -> None:
    X = BLOBS[:60]
    scale = 2.0**66
    expected, found = (make(method="l0", callbacks=[lambda s: s.step == 60]).fit(size * X) for size in (1.0, scale))
    check_budget(found.graph_, 4, 60)
    assert found.score(scale * X) / scale**2 == pytest.approx(expected.score(X), rel=1e-5)
    assert found.lambda_ / scale**2 == pytest.approx(expected.lambda_, rel=1e-5)
    assert found.lambda_ == (found.history_[-1].lambda_ or 0) > 0


# -- the fit


def test_structure_follows_the_data(short_runs: None) -> None:
    i = np.arange(1, 60)
    tree = scipy.sparse.csr_array((np.ones(59), (i, i // 3)), shape=(60, 60))
    roads = shortest_path(tree, directed=False)
    exact = make(metric="precomputed").fit(roads)
    assert exact.structure_ == "neighbors"
    np.testing.assert_allclose(exact.graph_.distances(), roads, atol=1e-4)
    assert exact.graph_.n_edges == 59
    assert make().fit(BLOBS).structure_ == "product"
    assert make(structure="graph").fit(BLOBS).structure_ == "hubs"
    assert make(structure="graph", numbers_per_item=3).fit(BLOBS).structure_ == "star"
    least = make(metric="precomputed", numbers_per_item=3).fit(roads)  # a tree is as small as a star
    assert least.structure_ == "neighbors"
    np.testing.assert_allclose(least.graph_.distances(), roads, atol=1e-4)
    assert make(metric="precomputed", n_hubs=3).fit(roads).structure_ == "hubs"  # asked for


def test_weights_of_a_graph_of_neighbours_get_their_bits() -> None:
    """Where paths lead past neighbours few edges with fine weights are better than many with coarse ones."""
    paths = tree(600, seed=1).X
    compressor = DistanceCompressor(bits_per_item=32, metric="precomputed", random_state=0).fit(paths)
    assert compressor.structure_ == "neighbors"
    assert compressor.graph_.bits_per_item <= 32
    i, j = np.triu_indices(len(paths), 1)
    assert -compressor.score(paths) < 0.05 * paths[i, j].var()


def test_fit_is_better_than_a_star_and_knows_its_error() -> None:
    compressor, star = (make(structure="graph", numbers_per_item=numbers).fit(BLOBS) for numbers in (4, 3))
    assert compressor.score(BLOBS) > 0.2 * star.score(BLOBS)
    assert -compressor.history_[-1].loss == pytest.approx(compressor.score(BLOBS), rel=0.2)
    assert make(numbers_per_item=8).fit(BLOBS).score(BLOBS) > compressor.score(BLOBS)


def test_history(short_runs: None) -> None:
    seen: list[Record] = []
    compressor = make(structure="graph", callbacks=[seen.append]).fit(BLOBS)
    assert len(compressor.history_) == len(seen) == 8
    for step, record in enumerate(compressor.history_):
        assert set(record.known()) == FIELDS
        assert record.step == seen[step].step == step
        assert record.loss == seen[step].loss > 0
        assert record.progress == step / 8
    assert compressor.history_[-1].n_edges == compressor.graph_.n_edges
    assert compressor.stopped_ == "finished"


def test_seeds(short_runs: None) -> None:
    for X in (BLOBS, PLANE):
        first = make(random_state=3).fit(X)
        for again in (make(random_state=3).fit(X), make(random_state=np.random.RandomState(3), n_jobs=None).fit(X)):
            assert bits(again.graph_) == bits(first.graph_)
            np.testing.assert_array_equal(again.anchors_, first.anchors_)
            np.testing.assert_array_equal(again.transform(X[:7]), first.transform(X[:7]))
        assert bits(make(random_state=4).fit(X).graph_) != bits(first.graph_)


MANY = np.random.default_rng(0).normal(size=(1100, 12))  # four parts, and two blocks of those that have 1,024 rows
SOME = MANY[:300]
THREADED: list[tuple[Any, dict[str, Any], int]] = [
    (MANY, {}, 3),
    (SOME.astype(np.float32), {}, 2),
    (SOME[:, :2], {}, 3),
    (SOME, {"bits_per_item": 64, "objective": "neighbors"}, 2),
    (np.where(np.arange(300)[:, None] % 100 == 3, 0, SOME), {"metric": "cosine"}, 3),
    (SOME, {"metric": "mahalanobis"}, 2),
    (SOME, {"metric": "manhattan", "metric_only": False}, 3),
    (scipy.sparse.csr_array(np.maximum(SOME, 0)), {}, 2),
    (cdist(SOME, SOME), {"metric": "precomputed"}, 3),
    (MANY[:520], {"numbers_per_item": 3}, 2),
    (MANY[:40], {"numbers_per_item": 40}, 3),
    (MANY, {"n_hubs": 50}, 2),
]


@pytest.mark.repeatable
@pytest.mark.parametrize(("X", "parameters", "n_jobs"), THREADED)
def test_any_number_of_threads_gives_the_same_bits(
    X: Any, parameters: dict[str, Any], n_jobs: int, short_runs: None
) -> None:
    first, other = (make(n_jobs=jobs, **parameters).fit(X) for jobs in (1, n_jobs))
    assert bits(other.graph_) == bits(first.graph_)
    assert [record.loss for record in other.history_] == [record.loss for record in first.history_]
    assert other.transform(X[:50]).tobytes() == first.transform(X[:50]).tobytes()
    assert bits(other.insert(X[:50])) == bits(first.insert(X[:50]))
    assert other.score(X) == first.score(X)


# -- threads and processes


def run(code: str) -> str:
    """Run a program of its own, with threads of the libraries underneath as they are by default."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted by Linux")
def test_one_job_starts_no_threads() -> None:
    code = """
        import os
        import numpy as np
        from prodige import DistanceCompressor
        from prodige.compression import selection

        selection.N_STEPS = selection.N_LOCAL_STEPS = 4
        before = set(os.listdir("/proc/self/task"))
        for n_columns, metric in ((2, "euclidean"), (30, "euclidean"), (30, "cosine"), (30, "manhattan")):
            X = np.random.default_rng(0).normal(size=(300, n_columns))
            compressor = DistanceCompressor(metric=metric, random_state=0, n_jobs=1).fit(X)
            compressor.score(X), compressor.transform(X), compressor.insert(X[:9]), compressor.kneighbors(X[:9])
        print(len(set(os.listdir("/proc/self/task")) - before))
    """
    assert run(code) == "0\n"


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork")
def test_forked_processes_go_on() -> None:
    code = """
        import multiprocessing
        import numpy as np
        from prodige import DistanceCompressor
        from prodige.compression import selection

        selection.N_STEPS = selection.N_LOCAL_STEPS = 4
        X = np.random.default_rng(0).normal(size=(300, 30))

        def child(answers):
            again = DistanceCompressor(random_state=0, n_jobs=n_jobs).fit(X)
            answers.put((compressor.score(X), again.score(X), compressor.transform(X[:5]), again.transform(X[:5])))

        context = multiprocessing.get_context("fork")
        for n_jobs in (1, 2):
            compressor = DistanceCompressor(random_state=0, n_jobs=n_jobs).fit(X)
            answers = context.Queue()
            process = context.Process(target=child, args=(answers,))
            process.start()
            try:
                old, new, *rows = answers.get(timeout=60)
            finally:
                process.kill()
            assert old == new == compressor.score(X)
            assert rows[0].tobytes() == rows[1].tobytes() == compressor.transform(X[:5]).tobytes()
    """
    run(code)


def test_threads_of_torch_are_given_back_by_fits_side_by_side(short_runs: None) -> None:
    def fit(seed: int) -> Any:
        return make(random_state=seed, n_jobs=None).fit(MANY[:200]).graph_

    def threads() -> tuple[int, list[int]]:
        return torch.get_num_threads(), [library["num_threads"] for library in threadpool_info()]

    expected = [fit(seed) for seed in range(4)]
    count = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        before = threads()
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(fit, range(4))) == expected
        assert threads() == before
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(threads).result()[0] == 3
    finally:
        torch.set_num_threads(count)


# -- a fit and its state


def state(compressor: DistanceCompressor) -> dict[str, Any]:
    return {name: value for name, value in vars(compressor).items() if name not in compressor.get_params()}


@pytest.mark.parametrize(
    "where",
    [
        "run.natural_unit",
        "run.find_copies",
        "selection.fit_hubs",
        "selection.Landmarks.draw",
        "run.rescale_graph",
        "units.Graph.from_edges",
        "compressor.DistanceCompressor._become",
    ],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_refit_that_fails_leaves_everything(
    where: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch, short_runs: None
) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(BLOBS, columns=list("abcdefghijkl"))
    compressor = make().fit(frame)
    before, answers = state(compressor), compressor.transform(frame[:5])

    def fail(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(f"prodige.compression.{where}", fail)
        with pytest.raises(error):
            compressor.set_params(n_hubs=9).fit(1e20 * BLOBS[:60, :7])
    assert state(compressor) == before
    np.testing.assert_array_equal(compressor.transform(frame[:5]), answers)


@pytest.mark.parametrize(
    ("parameters", "X"), [({"metric": "nope"}, BLOBS), ({}, spoiled(np.nan)), ({"numbers_per_item": 1}, BLOBS[:, 1:])]
)
def test_bad_input_to_a_refit_leaves_everything(parameters: dict[str, Any], X: Rows, short_runs: None) -> None:
    compressor = make().fit(BLOBS)
    before = state(compressor)
    with pytest.raises(ValueError, match=r"\w"):
        compressor.set_params(**parameters).fit(X)
    assert state(compressor) == before


def test_a_refit_leaves_nothing_of_the_fit_before(short_runs: None) -> None:
    pandas = pytest.importorskip("pandas")
    compressor = make(method="l0", callbacks=[lambda status: True]).fit(pandas.DataFrame({"a": [1, 2, 4], "b": 0.0}))
    assert hasattr(compressor, "lambda_")
    compressor.set_params(method="budget").fit(BLOBS)
    assert state(compressor).keys() == state(make().fit(BLOBS)).keys()


def test_order_of_callbacks_and_early_end(short_runs: None) -> None:
    calls: list[str] = []

    def first(record: Record) -> bool:
        calls.append("first")
        return record.step == 3

    compressor = make(callbacks=[first, lambda status: calls.append("second")]).fit(BLOBS)
    assert calls == ["first", "second"] * 4
    assert compressor.stopped_ == "callback"
    assert len(compressor.history_) == 4
    check_budget(compressor.graph_, 4, 160)


@pytest.mark.parametrize("X", [BLOBS, PLANE], ids=["hubs", "neighbors"])
@pytest.mark.parametrize("step", [0, 5])
def test_interrupted_fits_have_a_graph(X: Rows, step: int, short_runs: None) -> None:
    def interrupt(record: Record) -> None:
        if record.step == step:
            raise KeyboardInterrupt

    compressor = make(callbacks=[interrupt])
    with pytest.warns(ConvergenceWarning, match="interrupted: graph_ is the best so far"):
        compressor.fit(X)
    assert compressor.stopped_ == "interrupt"
    assert len(compressor.history_) == step + 1
    check_budget(compressor.graph_, 4, len(X))
    assert compressor.transform(X).shape == (len(X), compressor.anchors_.size)


def test_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves on by a second whenever it is looked at."""
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    for module in ("prodige.progress", "prodige.compression.compressor", "prodige.compression.selection"):
        monkeypatch.setattr(f"{module}.time", clock)
    for X in (BLOBS, PLANE):
        for max_time in (1e-6, 80.0):
            compressor = make(max_time=max_time).fit(X)
            check_budget(compressor.graph_, 4, len(X))
            assert compressor.stopped_ == "finished"
            # A round of choosing hubs looks at the clock several times.
            assert all(record.seconds <= max_time + 20 for record in compressor.history_)
            assert (len(compressor.history_) > 4) == (max_time > 1)


@pytest.mark.parametrize("callbacks", [None, (), []])
def test_no_callbacks(callbacks: Any, short_runs: None) -> None:
    for X in (BLOBS, 1e20 * BLOBS):
        assert make(callbacks=callbacks).fit(X).stopped_ == "finished"


def test_a_budget_that_is_not_used_up(short_runs: None) -> None:
    with pytest.warns(
        UserWarning, match=r"numbers_per_item = 64 is not used up: .* graph_ has (\d+\.\d+); give"
    ) as told:
        compressor = make(numbers_per_item=64, n_hubs=20).fit(BLOBS)
    assert f"{compressor.graph_.numbers_per_item:.4g}" in str(told[0].message)
    assert compressor.graph_.numbers_per_item < 32


def test_hubs_beyond_memory_are_refused_before_anything_is_measured() -> None:
    asked: list[int] = []

    def metric(x: Rows, y: Rows) -> float:
        asked.append(1)
        return 1.0

    with pytest.raises(ValueError, match=r"n_hubs = 5000 would take about 2.3 GiB .*; give at most 4634, or 'auto'"):
        make(n_hubs=5000, numbers_per_item=9, metric=metric).fit(np.zeros((5000, 1)))
    assert asked == []


def test_many_hubs_take_little_memory_and_keep_the_time() -> None:
    """1,000 hubs, joined by half a million edges, would take 1.3 GiB and a minute of processor time."""
    code = """
        import resource, time
        import numpy as np
        from prodige import DistanceCompressor
        from prodige.compression import compressor, selection

        X = np.random.default_rng(0).normal(size=(5_000, 8)).astype(np.float32)
        begin = time.process_time()
        clock = lambda: time.process_time() - begin
        import prodige.progress, types
        prodige.progress.time = compressor.time = selection.time = types.SimpleNamespace(perf_counter=time.process_time)
        compressor = DistanceCompressor(n_hubs=1_000, max_time=1, random_state=0, n_jobs=1).fit(X)
        print(clock(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
        assert 3.9 < compressor.graph_.numbers_per_item <= 4
    """
    seconds, memory = map(float, run(code).split())
    assert seconds < 3.5
    assert memory < 1.2  # GiB


def test_slow_metrics_keep_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that a metric moves on by a hundredth of a second: all pairs would take four minutes."""
    now = [0.0]

    def slow(x: Rows, y: Rows) -> float:
        now[0] += 0.01
        return absolute(x, y)

    clock = SimpleNamespace(perf_counter=lambda: now[0])
    for module in ("prodige.progress", "prodige.compression.compressor", "prodige.compression.selection"):
        monkeypatch.setattr(f"{module}.time", clock)
    least = 0.01 * (24 * 24 + 160 * (1 + 1 + 16))
    for max_time in (1.0, 40.0, 100.0):
        now[0] = 0.0
        compressor = make(metric=slow, max_time=max_time, callbacks=[lambda _: True]).fit(BLOBS)
        check_budget(compressor.graph_, 4, 160)
        assert now[0] <= max(1.2 * max_time, least + 1)


@pytest.mark.parametrize("method", ["budget", "l0"])
def test_who_ended_the_fit(method: str) -> None:
    compressor = make(method=method, callbacks=[lambda record: record.step == 2]).fit(BLOBS)
    assert compressor.stopped_ == "callback"


@pytest.mark.parametrize("X", [BLOBS, PLANE], ids=["hubs", "neighbors"])
def test_no_time_at_all(X: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a graph starts from is small enough: nothing is fitted, and neighbours are not even looked for."""
    for name in (
        "prodige.compression.fitting.FittedGraph.newton",
        "prodige.compression.selection.looks_local",
        "prodige.metric.space.nearest_neighbors",
    ):
        monkeypatch.setattr(name, None)
    for method in ("budget", "l0"):
        compressor = make(method=method, max_time=1e-6).fit(X)
        check_budget(compressor.graph_, 4, len(X))
        assert compressor.history_ == []
        assert np.isfinite(compressor.score(X))


def test_time_limits_the_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = Landmarks.draw

    def draw(space: Any, n_landmarks: int, *others: Any) -> Any:
        asked.append(n_landmarks)
        return original(space, n_landmarks, *others)

    now = [0.0]

    def measured(x: Rows, y: Rows) -> float:
        now[0] += 1e-4
        return absolute(x, y)

    monkeypatch.setattr(Landmarks, "draw", draw)
    for module in ("compressor", "selection"):
        monkeypatch.setattr(f"prodige.compression.{module}.time", SimpleNamespace(perf_counter=lambda: now[0]))
    first = []
    for max_time in (None, 0.1, 10.0, 1e6):
        asked.clear()
        make(metric=measured, max_time=max_time, callbacks=[lambda _: True]).fit(BLOBS)
        first.append(asked[0])  # those after it are of trials
    assert first[0] == first[3] == 4096
    assert first[1] == 16
    assert 64 < first[2] < 0.15 * 10 / (160 * 1e-4)


# -- what is learned


@pytest.mark.usefixtures("short_runs")
def test_blocks_of_distances_cover_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = make().fit(BLOBS)
    expected = fitted.graph_.distances()
    for size in (1, 1000, 1 << 24):
        monkeypatch.setattr("prodige.compression.compressor._BLOCK", size)
        found = np.full_like(expected, np.nan)
        for rows, distances in fitted.pairwise_distances():
            assert np.isnan(found[rows]).all()
            assert distances.shape == (rows.stop - rows.start, 160)
            assert distances.size <= max(size, 160)
            found[rows] = distances
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.usefixtures("short_runs")
def test_neighbors_of_the_items() -> None:
    compressor = make().fit(BLOBS)
    distances, neighbors = compressor.kneighbors(n_neighbors=7)
    expected = compressor.graph_.distances()
    np.fill_diagonal(expected, np.inf)
    assert (neighbors != np.arange(160)[:, None]).all()
    np.testing.assert_allclose(distances, np.sort(expected, axis=1)[:, :7], rtol=1e-6)
    np.testing.assert_allclose(distances, np.take_along_axis(expected, neighbors, axis=1), rtol=1e-6)
    np.testing.assert_array_equal(compressor.kneighbors(n_neighbors=7, return_distance=False), neighbors)


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("numbers", [3, 4, 8])
def test_neighbors_of_new_rows(numbers: float) -> None:
    """As if the row had been inserted alone."""
    structure = "graph" if numbers == 3 else "auto"
    compressor = make(numbers_per_item=numbers, structure=structure).fit(BLOBS[:150])
    distances, neighbors = compressor.kneighbors(BLOBS[150:], n_neighbors=5)
    assert distances.shape == neighbors.shape == (10, 5)
    np.testing.assert_array_equal(compressor.kneighbors(BLOBS[150:], 5, return_distance=False), neighbors)
    all_distances, everybody = compressor.kneighbors(BLOBS[150:], n_neighbors=150)
    assert (np.sort(everybody, axis=1) == np.arange(150)).all()
    assert (np.diff(all_distances, axis=1) >= 0).all()
    np.testing.assert_array_equal(all_distances[:, :5], distances)
    to_anchors = np.empty((10, 150), np.float32)
    np.put_along_axis(to_anchors, everybody, all_distances, axis=1)
    np.testing.assert_allclose(compressor.transform(BLOBS[150:]), to_anchors[:, compressor.anchors_], rtol=1e-5)
    if numbers == 3:  # one edge each: the graph with all of them says the same
        inserted = compressor.insert(BLOBS[150:]).distances(np.arange(150, 160), np.arange(150))
        np.testing.assert_allclose(to_anchors, inserted, rtol=1e-5)


@pytest.mark.usefixtures("short_runs")
def test_nearest_neighbors_are_mostly_right() -> None:
    compressor = make().fit(BLOBS[:120])
    found = compressor.kneighbors(BLOBS[120:], n_neighbors=5, return_distance=False)
    assert (LABELS[:120][found] == LABELS[120:, None]).mean() > 0.95


# -- rows that were not fitted to


def square_error(found: NDArray[Any], target: NDArray[Any]) -> float:
    return float(((found - target) ** 2).mean())


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "mahalanobis", absolute])
def test_score_of_new_rows(metric: Any) -> None:
    old, new = BLOBS[:80], BLOBS[80:]  # as many
    compressor = make(metric=metric).fit(old)
    kept = {"VI": np.linalg.inv(np.cov(old.T))} if metric == "mahalanobis" else {}
    target = pairwise_distances(new, old[compressor.anchors_], metric=metric, **kept)
    assert compressor.score(new) == pytest.approx(-square_error(compressor.transform(new), target), rel=1e-3)
    assert compressor.score(new[:1]) < 0
    # The items of the fit are known again, but not in another order.
    everything = pairwise_distances(old, metric=metric)
    inside = -((compressor.graph_.distances() - everything) ** 2).sum() / (80 * 79)
    for same in (old, old.astype(np.float32), old.tolist()):
        assert compressor.score(same) == pytest.approx(inside, rel=1e-3)
    assert compressor.score(old[::-1]) == pytest.approx(
        -square_error(compressor.transform(old[::-1]), everything[::-1][:, compressor.anchors_]), rel=1e-3
    )


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("precomputed", [False, True])
def test_searches_of_scikit_learn(precomputed: bool) -> None:
    pick = np.random.default_rng(0).permutation(160)
    X = cdist(BLOBS[pick], BLOBS[pick]) if precomputed else BLOBS[pick]
    compressor = make(metric="precomputed" if precomputed else "euclidean")
    scores = cross_val_score(compressor, X, cv=4)
    assert (scores < 0).all()
    search = GridSearchCV(compressor, {"numbers_per_item": [3, 5, 9]}, cv=2).fit(X)
    assert (np.diff(search.cv_results_["mean_test_score"]) > 0).all()
    assert search.best_params_ == {"numbers_per_item": 9}


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("scale", [1e300, 1e100, 1e30])
def test_rows_too_far_away_are_refused(scale: float) -> None:
    compressor = make().fit(BLOBS)
    rows = np.concatenate([BLOBS[:2], scale * BLOBS[:3]])
    for call in (compressor.transform, compressor.insert, compressor.kneighbors, compressor.score):
        with pytest.raises(ValueError, match=r"X\[2\] is too far from the items .* \(3 such rows\)"):
            call(rows)
    by_matrix = make(metric="precomputed").fit(cdist(BLOBS, BLOBS))
    with pytest.raises(ValueError, match=r"X\[0\] is too far"):
        by_matrix.transform(np.full((1, 160), scale))
    far = compressor.transform(1e12 * BLOBS[:3])
    np.testing.assert_allclose(far, cdist(1e12 * BLOBS[:3], BLOBS[compressor.anchors_]), rtol=1e-3)


# -- new items


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", absolute])
@pytest.mark.parametrize("numbers", [3, 4, 8])
def test_rows_are_transformed_each_by_itself(metric: Any, numbers: float, short_runs: None) -> None:
    X = BLOBS[:60] if callable(metric) else BLOBS
    compressor = make(metric=metric, numbers_per_item=numbers).fit(X)
    rows = np.random.default_rng(0).normal(size=(23, 12)) * 5
    together = compressor.transform(rows)
    assert together.dtype == np.float32
    assert np.isfinite(together).all()
    for row in range(23):
        assert compressor.transform(rows[row : row + 1])[0].tobytes() == together[row].tobytes()
    assert compressor.transform(rows[::-1])[::-1].tobytes() == together.tobytes()


@pytest.mark.usefixtures("short_runs")
def test_transform_preserves_distances_to_the_anchors() -> None:
    compressor = make(numbers_per_item=8).fit(BLOBS[:120])
    assert compressor.anchors_.tolist() == list(range(120))
    target = cdist(BLOBS[120:], BLOBS[:120])
    found = compressor.transform(BLOBS[120:])
    assert np.abs(found - target).mean() < 0.15 * target.mean()
    assert compressor.get_feature_names_out().size == 120


@pytest.mark.usefixtures("short_runs")
def test_anchors_of_many_items() -> None:
    X = np.random.default_rng(0).normal(size=(400, 5))
    compressor = make().fit(X)
    assert compressor.anchors_.size == len(set(compressor.anchors_.tolist())) == 256
    assert compressor.transform(X[:3]).shape == (3, 256)
    assert compressor.get_feature_names_out().size == 256


@pytest.mark.usefixtures("short_runs")
def test_transform_of_precomputed_rows() -> None:
    """Rows of distances to the items give what the rows themselves give."""
    by_rows = make().fit(BLOBS[:120])
    by_matrix = make(metric="precomputed").fit(cdist(BLOBS[:120], BLOBS[:120]))
    by_matrix.graph_, by_matrix.anchors_ = by_rows.graph_, by_rows.anchors_
    to_items = cdist(BLOBS[120:], BLOBS[:120])
    np.testing.assert_allclose(by_matrix.transform(to_items), by_rows.transform(BLOBS[120:]), rtol=1e-4)


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("numbers", [3, 4, 5, 8])
@pytest.mark.parametrize("X", [BLOBS, PLANE], ids=["hubs", "neighbors"])
def test_insert(numbers: float, X: Rows) -> None:
    n_new = 20
    compressor = make(numbers_per_item=numbers, structure="graph").fit(X[:-n_new])
    before = compressor.graph_
    graph = compressor.insert(X[-n_new:])
    n = len(X) - n_new
    assert compressor.graph_ is before
    assert (graph.n_items, graph.n_vertices) == (n + n_new, before.n_vertices + n_new)
    assert graph.is_connected
    # Each within the budget per item, and joined to old vertices only.
    added = graph.n_vertices + 2 * graph.n_edges - before.n_vertices - 2 * before.n_edges
    assert added <= numbers * n_new
    is_new = (np.arange(graph.n_vertices) >= n) & (np.arange(graph.n_vertices) < n + n_new)
    assert not (is_new[graph.edges.i] & is_new[graph.edges.j]).any()
    # Old distances stay where no new item is a shortcut, and only ever fall.
    old, now = before.distances(), graph.distances(np.arange(n), np.arange(n))
    assert (now <= old + 1e-4).all()
    through = graph.distances(np.arange(n, n + n_new), np.arange(n))
    shortcut = (through[:, :, None] + through[:, None, :]).min(axis=0)
    untouched = shortcut >= old + 1e-4
    assert untouched.any()
    np.testing.assert_allclose(now[untouched], old[untouched], atol=1e-4)
    if numbers == 3:
        assert graph.n_edges == before.n_edges + n_new
        np.testing.assert_allclose(now, old, atol=1e-5)
    # New distances are not far off.
    target = cdist(X[-n_new:], X[:-n_new])
    star = np.abs(target - target.mean()).mean()
    assert np.abs(through - target).mean() < star


@pytest.mark.usefixtures("short_runs")
def test_inserting_an_item_again_puts_it_near() -> None:
    compressor = make(numbers_per_item=8).fit(BLOBS)
    twice = compressor.insert(BLOBS[:10]).distances(np.arange(160, 170), np.arange(160))
    once = compressor.graph_.distances(np.arange(10))
    off = np.arange(160)[None] != np.arange(10)[:, None]
    assert np.abs(twice - once)[off].mean() < 0.1 * once.mean()


# -- memory


def test_memory_stays_within_bounds() -> None:
    """10,000 items: all pairs in double precision and a copy of them would be too much."""
    code = """
        import resource
        import numpy as np
        from prodige import DistanceCompressor

        X = np.random.default_rng(0).normal(size=(10_000, 64)).astype(np.float32)
        compressor = DistanceCompressor(max_time=0.5, random_state=0).fit(X)
        assert compressor.graph_.numbers_per_item <= 4
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 1.5  # GiB
