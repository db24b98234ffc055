"""Fits to a sample: the same bits whatever rows come from, within the budget, and nearly as good as a whole fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

from prodige import DistanceCompressor, ProductGraph, estimate_memory
from prodige.compression import memory, sampling
from prodige.compression.run import Run
from prodige.compression.streaming import assign_blocks
from prodige.metric.evaluation import evaluate
from prodige.metric.sources import as_source
from prodige.metric.space import Space
from prodige.progress import Record

N = 2000
LIMIT = "175MB"
SETTINGS: dict[str, Any] = {"bits_per_item": 24, "memory_limit": LIMIT, "random_state": 0}


def rows_in_clusters(n: int = N) -> NDArray[np.float32]:
    random = np.random.default_rng(0)
    centres = random.normal(size=(30, 8)) * 2
    rows: NDArray[np.float32] = (centres[random.integers(0, 30, n)] + random.normal(size=(n, 8))).astype(np.float32)
    rows[-5:] = rows[:5]  # some copies
    return rows


@pytest.fixture(scope="module", autouse=True)
def small_samples() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_LEAST_SAMPLE", 700)
        patch.setattr(memory, "_SAMPLE_LANDMARKS", (256, 256, 256))
        yield


@pytest.fixture(scope="module")
def rows() -> NDArray[np.float32]:
    return rows_in_clusters()


@pytest.fixture(scope="module")
def fitted(rows: NDArray[np.float32]) -> DistanceCompressor:
    return DistanceCompressor(**SETTINGS, n_jobs=1).fit(rows)


def test_it_is_as_good_as_a_whole_fit(fitted: DistanceCompressor, rows: NDArray[np.float32]) -> None:
    assert not Run(fitted, 0.0).estimate(*rows.shape).is_whole
    graph = fitted.graph_
    assert isinstance(graph, ProductGraph)
    assert graph.n_items == N
    assert graph.bits_per_item <= 24
    whole = DistanceCompressor(bits_per_item=24, structure="product", random_state=0).fit(rows)
    errors = [evaluate(some, Space(rows), n_sources=500, random_state=0).mse for some in (graph, whole.graph_)]
    assert errors[0] < 1.25 * errors[1]


def test_copies_are_at_distance_0(fitted: DistanceCompressor) -> None:
    assert np.array_equal(fitted.graph_.pair_distances(np.arange(5), np.arange(N - 5, N)), np.zeros(5))


@pytest.mark.repeatable
def test_neither_blocks_nor_threads_matter(
    fitted: DistanceCompressor, rows: NDArray[np.float32], tmp_path: Path
) -> None:
    np.save(tmp_path / "rows.npy", rows)
    for X, n_jobs in (
        ([rows[:7], rows[7:1300], rows[1300:]], 3),
        (tmp_path / "rows.npy", 1),
    ):
        assert DistanceCompressor(**SETTINGS, n_jobs=n_jobs).fit(X).graph_ == fitted.graph_


def test_items_get_what_insert_gives_them(fitted: DistanceCompressor, rows: NDArray[np.float32]) -> None:
    inserted = fitted.insert([rows[:3], rows[3:]])
    again = inserted.codes[N:]
    assert np.array_equal(again, fitted.insert(rows).codes[N:])
    assert (again == fitted.graph_.codes).all(axis=1).mean() > 0.6  # items of the sample keep what the fit gave them
    placing = fitted._out_of_sample()
    parts = list(assign_blocks(as_source(rows), placing, 100, 1300))  # type: ignore[arg-type]
    assert parts[0][0] == 100
    assert np.array_equal(np.concatenate([codes for _, codes, _ in parts]), again[100:1300])


def test_a_file_can_be_added_to(fitted: DistanceCompressor, rows: NDArray[np.float32], tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.prodige")
    loaded = DistanceCompressor.load(tmp_path / "model.prodige", n_jobs=1)
    new = rows[:50] + np.float32(0.1)
    assert loaded.partial_fit(new).graph_ == fitted.insert(new)
    loaded.save(tmp_path / "model.prodige")
    twice = DistanceCompressor.load(tmp_path / "model.prodige").partial_fit(new).graph_
    assert twice.n_items == N + 100
    assert np.array_equal(twice.codes[-50:], twice.codes[-100:-50])


def test_drift_is_seen_in_the_score(fitted: DistanceCompressor, rows: NDArray[np.float32]) -> None:
    alike, drifted = rows[:200] + np.float32(0.01), rows[:200] * np.float32(2) + np.float32(3)
    assert fitted.score(drifted) < 2 * fitted.score(alike) < 0
    assert fitted.score(rows) == pytest.approx(fitted.score(alike), rel=0.5)


def test_progress_is_told_to_the_last_item(rows: NDArray[np.float32]) -> None:
    heard: list[Record] = []

    def hear(record: Record) -> bool:
        heard.append(record)
        return len(heard) > 1

    model = DistanceCompressor(**SETTINGS, callbacks=[hear])
    model.fit(rows)
    assert model.stopped_ == "callback"
    assert [record.stage for record in heard[:2]] == [None, None]
    assert heard[-1].stage == "all items"
    assert heard[-1].progress == 1
    assert model.history_ == heard


def city_blocks(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(np.abs(a - b).sum())


@pytest.mark.parametrize("metric", ["manhattan", city_blocks])
def test_any_metric_will_do(metric: Any, rows: NDArray[np.float32]) -> None:
    X = rows[:400] if callable(metric) else rows
    with pytest.MonkeyPatch.context() as patch:
        if callable(metric):  # each distance takes microseconds
            patch.setattr(memory, "_LEAST_SAMPLE", 200)
            patch.setattr(memory, "_SAMPLE_LANDMARKS", (64, 64, 64))
            patch.setattr(sampling, "ANCHORS", 64)
        limit = estimate_memory(*X.shape, bits_per_item=48).bytes - 1
        model = DistanceCompressor(**SETTINGS | {"bits_per_item": 48, "memory_limit": limit}, metric=metric)
        assert not Run(model, 0.0).estimate(*X.shape).is_whole
        model.fit([X[:100], X[100:]])
    report = evaluate(model.graph_, Space(X, metric), n_sources=200, random_state=0)
    assert report.explained > 0.6


def test_sparse_rows_are_as_dense_ones(rows: NDArray[np.float32], fitted: DistanceCompressor) -> None:
    sparse = DistanceCompressor(**SETTINGS, n_jobs=1).fit(scipy.sparse.csr_array(rows))
    errors = [evaluate(some.graph_, Space(rows), n_sources=300, random_state=0).mse for some in (sparse, fitted)]
    assert errors[0] == pytest.approx(errors[1], rel=0.15)


def test_not_a_number_is_named(rows: NDArray[np.float32]) -> None:
    bad = rows.copy()
    bad[1721, 2] = np.nan
    with pytest.raises(ValueError, match="nan in block 2, row 1721 "):
        DistanceCompressor(**SETTINGS).fit([bad[:700], bad[700:1400], bad[1400:]])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"structure": "graph"}, "structure"),
        ({"n_hubs": 16}, "n_hubs"),
        ({"memory_limit": "1MB"}, "take .* at least"),
        ({"memory_limit": "many"}, "memory_limit must be"),
        ({"metric": "precomputed"}, "metric"),
        ({"bits_per_item": None, "numbers_per_item": 5, "method": "l0"}, "method"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], words: str, rows: NDArray[np.float32]) -> None:
    with pytest.raises(ValueError, match=words):
        DistanceCompressor(**SETTINGS | settings).fit([rows])
    if settings.get("metric") != "precomputed":
        with pytest.raises(ValueError, match=words):
            DistanceCompressor(**SETTINGS | settings).fit(rows)


def test_new_rows_of_another_width_are_refused(fitted: DistanceCompressor) -> None:
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.insert([np.zeros((2, 3))])


@pytest.mark.repeatable
@pytest.mark.parametrize("budget", [{"numbers_per_item": 5}, {"bits_per_item": 40}], ids=["factors", "lines"])
def test_neighbours_are_kept_by_the_pass(rows: NDArray[np.float32], budget: dict[str, float]) -> None:
    settings: dict[str, Any] = {
        **budget,
        "objective": "neighbors",
        "memory_limit": "177MB",
        "random_state": 0,
    }
    fitted = DistanceCompressor(**settings | {"objective": "distances"}, n_jobs=1).fit(rows)
    near = DistanceCompressor(**settings, n_jobs=1).fit(rows)
    assert DistanceCompressor(**settings, n_jobs=2).fit([rows[:11], rows[11:]]).graph_ == near.graph_
    placed = near.insert(rows).remove(np.arange(N))  # by distances to anchors alone
    expected, nearest = Space(rows).neighbors(10)
    i = np.repeat(np.arange(N), 10)
    errors = [
        np.square(graph.pair_distances(i, nearest.ravel()) - expected.ravel()).mean()
        for graph in (fitted.graph_, placed, near.graph_)
    ]
    assert errors[2] < 0.9 * errors[0]
    assert errors[2] < 0.9 * errors[1]


def test_given_distances_cannot_be_added_to() -> None:
    distances = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    compressor = DistanceCompressor(metric="precomputed", random_state=0).fit(distances)
    assert not hasattr(compressor, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as error:
        compressor.partial_fit(distances[:2])
    assert "use insert" in str(error.value.__cause__)
