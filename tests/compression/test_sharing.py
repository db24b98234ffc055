"""Fits that processes share: the same bits for any number of them, and faults of one are told by all."""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from processes import finish, run_ranks, start_ranks
from prodige import DistanceCompressor
from prodige.compression.budget import Budget
from prodige.compression.coordinates import find_coordinates
from prodige.compression.objective import NearPairs
from prodige.compression.plan import make_plan
from prodige.compression.products import ProductFit
from prodige.compression.sharing import check_disjoint, digest_of, single_rows
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.ranks import RankError, Ranks

RNG = np.random.default_rng(0)
# Parts of 256 items at least: three ranks have one or two each.
X = (3 * RNG.normal(size=(8, 3))[RNG.integers(0, 8, 1100)] + RNG.normal(size=(1100, 3))).astype(np.float32)
X[1000:1010] = X[:10]  # copies, on several ranks

SETTINGS: list[dict[str, Any]] = [
    {"bits_per_item": 16, "structure": "product"},
    {"bits_per_item": 14, "structure": "product", "objective": "neighbors"},
]


def shares(rows: Any, n_ranks: int) -> list[Any]:
    """Return the rows of each rank: uneven, so that they are not the parts that work is done in."""
    ends = [0, *(rows.shape[0] * (2 * rank + 1) // (2 * n_ranks) for rank in range(1, n_ranks)), rows.shape[0]]
    return [rows[begin:end] for begin, end in pairwise(ends)]


def fit(rank: int, rows: list[Any], settings: list[dict[str, Any]]) -> Any:
    """Fit one model after the other, together with the other ranks."""
    import torch.distributed as dist

    results = []
    for one in settings:
        compressor = DistanceCompressor(**{"random_state": 0, "n_jobs": 1 + rank, **one})
        compressor.fit(rows[rank], process_group=dist.group.WORLD)
        losses = [record.loss for record in compressor.history_]
        results.append((compressor.graph_, compressor.structure_, losses, compressor.anchors_.tolist()))
    return results


def fit_differently(rank: int, rows: list[Any], settings: list[dict[str, Any]]) -> Any:
    """Fit with parameters of the rank's own."""
    return fit(rank, rows, [settings[rank]])


def known_of(compressor: DistanceCompressor) -> Any:
    losses = [record.loss for record in compressor.history_]
    return compressor.graph_, compressor.structure_, losses, compressor.anchors_.tolist()


def check_fitted(results: list[Any], expected: list[Any]) -> None:
    for result in results:
        assert not isinstance(result, BaseException), result.__notes__
        for found, known in zip(result, expected, strict=True):
            assert found == known


# -- the same bits


@pytest.fixture(scope="module")
def alone() -> list[Any]:
    return [known_of(DistanceCompressor(random_state=0, n_jobs=1, **settings).fit(X)) for settings in SETTINGS]


@pytest.mark.parametrize(
    ("n_ranks", "setting"),
    [(1, 0), pytest.param(2, 1, marks=pytest.mark.repeatable), pytest.param(3, 0, marks=pytest.mark.repeatable)],
)
def test_any_number_of_ranks_gives_the_same_bits(n_ranks: int, setting: int, alone: list[Any], tmp_path: Path) -> None:
    results = run_ranks(n_ranks, fit, shares(X, n_ranks), [SETTINGS[setting]], folder=tmp_path)
    check_fitted(results, [alone[setting]])


def test_what_is_no_product_is_fitted_by_the_first_rank(tmp_path: Path) -> None:
    rows = RNG.normal(size=(150, 2))  # points of a plane
    settings: list[dict[str, Any]] = [{"structure": "graph"}, {"structure": "graph", "n_hubs": 8}, {}]
    expected = [known_of(DistanceCompressor(random_state=0, n_jobs=1, **one).fit(rows)) for one in settings]
    assert [structure for _, structure, *_ in expected][:2] == ["neighbors", "hubs"]
    check_fitted(run_ranks(2, fit, shares(rows, 2), settings, folder=tmp_path), expected)


def test_a_rank_without_a_part_of_its_own_still_helps(tmp_path: Path) -> None:
    """Of 400 items there is one part; and sparse rows are shared like dense ones."""
    rows = scipy.sparse.csr_array(np.where(np.abs(X[:400]) > 1, X[:400], 0))
    settings: list[dict[str, Any]] = [{"bits_per_item": 24, "structure": "product", "metric": "manhattan"}]
    expected = known_of(DistanceCompressor(random_state=0, n_jobs=1, **settings[0]).fit(rows))
    check_fitted(run_ranks(3, fit, shares(rows, 3), settings, folder=tmp_path), [expected])


def test_a_sample_and_its_pass_go_on_with_other_ranks(tmp_path: Path) -> None:
    """One process begins and is gone in the middle of the pass; two end it, from the checkpoint, as one would have."""
    rows = np.concatenate([X, RNG.normal(size=(1400, 3)).astype(np.float32)])
    path = tmp_path / "fit.checkpoint"
    settings: dict[str, Any] = {"numbers_per_item": 4, "structure": "product", "memory_limit": "190MB"}
    moments = []

    def keep(record: Any) -> None:
        if record.stage is not None or record.step == 3:
            moments.append(path.read_bytes())

    blocks = np.array_split(rows, 4)
    whole = DistanceCompressor(
        **settings, random_state=0, checkpoint=path, checkpoint_interval=0, callbacks=[keep]
    ).fit(blocks)
    assert len(moments) == 5
    for n_ranks, moment in ((2, moments[0]), (3, moments[2])):
        path.write_bytes(moment)
        again = {**settings, "checkpoint": str(path), "resume": True}
        results = run_ranks(n_ranks, fit, shares(rows, n_ranks), [again], folder=tmp_path)
        for result in results:
            assert not isinstance(result, BaseException), result.__notes__
            assert result[0][0] == whole.graph_
            assert result[0][3] == whole.anchors_.tolist()


def test_a_seed_that_nobody_gave_is_shared(tmp_path: Path) -> None:
    settings = [{"bits_per_item": 20, "structure": "product", "random_state": None}]
    first, second = run_ranks(2, fit, shares(X[:600], 2), settings, folder=tmp_path)
    assert first == second


def sweep_bytes(rank: int, rows: Any) -> tuple[int, list[int]]:
    """Return the bytes of one sweep, and the hubs of each factor."""
    import torch.distributed as dist

    ranks, random = Ranks(dist.group.WORLD), np.random.RandomState(0)
    landmarks = Landmarks.draw(Space(rows), 512, random, ranks, whole=False)
    assert len(landmarks.target) == len(rows) // ranks.size  # the distances of its own items
    near = NearPairs.find(Space(rows), 0.0, 512)
    coordinates = find_coordinates(landmarks, (2.0, 2.0), ranks)
    plan = make_plan(len(rows), Budget(bits=24), coordinates.variances)
    assert plan is not None
    fit = ProductFit(landmarks, near, plan, (2.0, 2.0), random, 1, ranks)
    fit.begin(plan, coordinates.places)
    before = ranks.n_sent
    fit.sweep()
    return ranks.n_sent - before, list(plan.n_hubs)


def test_a_sweep_sends_sums_of_tables_and_codes(tmp_path: Path) -> None:
    """What docs/ranks.md says: of two ranks each sends two sums for each pair of hubs, and its items' codes."""
    rows = np.ascontiguousarray(X[:1024])
    for n_bytes, n_hubs in run_ranks(2, sweep_bytes, rows, folder=tmp_path):
        tables = sum(16 * n**2 for n in n_hubs)
        codes = (2 * len(n_hubs) + 4) * len(rows) // 2
        assert tables + codes < n_bytes < 1.3 * (tables + codes) + 4096 * len(n_hubs)


# -- faults


PRODUCT = SETTINGS[0]
# There are no lines beside it, whose history would be told where they are the better fit.
SWEPT: dict[str, Any] = {"numbers_per_item": 6, "structure": "product"}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"bits_per_item": 28}, "ranks must agree on parameters: bits_per_item is 16 on rank 0 and 28 on rank 1"),
        ({"random_state": 1}, "random_state is 0 on rank 0 and 1 on rank 1; give the same on all"),
    ],
)
def test_other_settings_are_refused_by_all(other: Any, reason: str, tmp_path: Path) -> None:
    for error in run_ranks(2, fit_differently, shares(X, 2), [PRODUCT, {**PRODUCT, **other}], folder=tmp_path):
        assert isinstance(error, ValueError)
        assert reason in str(error)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([X, X], "of the 1100 rows of rank 0, 1080 are also on rank 1, among them its row 10; give each"),
        ([X[:600], X[:, :2]], "ranks must agree on X: n_features is 3 on rank 0 and 2 on rank 1"),
        ([X[:600], X[600:].astype(np.float64)], "dtype is 'float32' on rank 0 and 'float64' on rank 1"),
    ],
    ids=["the same rows", "other columns", "another type"],
)
def test_rows_that_do_not_go_together_are_refused_by_all(rows: list[Any], reason: str, tmp_path: Path) -> None:
    for error in run_ranks(2, fit, rows, [PRODUCT], folder=tmp_path):
        assert isinstance(error, ValueError)
        assert reason in str(error)


def test_a_fault_of_one_rank_is_told_by_all(tmp_path: Path) -> None:
    wrong = X[550:].copy()
    wrong[7, 2] = np.nan
    well, ill = run_ranks(2, fit, [X[:550], wrong], [PRODUCT], folder=tmp_path)
    assert isinstance(ill, ValueError)
    assert "nan in block 0, row 7" in str(ill)
    assert isinstance(well, RankError)
    assert "rank 1 failed: ValueError: X contains nan in block 0, row 7" in str(well)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"max_time": 1.0}, "max_time = 1.0"), ({"metric": "precomputed"}, "a column for each item of all ranks")],
)
def test_what_ranks_cannot_do_is_refused(settings: Any, reason: str, tmp_path: Path) -> None:
    for error in run_ranks(2, fit, shares(X, 2), [{**PRODUCT, **settings}], folder=tmp_path):
        assert isinstance(error, ValueError)
        assert reason in str(error)


def interrupt(rank: int, rows: list[Any], at: int) -> Any:
    """Press Ctrl-C at the second rank after so many steps; warnings tell of it."""
    import torch.distributed as dist

    def press(record: Any) -> None:
        if rank == 1 and record.step == at:
            os.kill(os.getpid(), signal.SIGINT)

    compressor = DistanceCompressor(**SWEPT, random_state=0, callbacks=[press])
    with pytest.warns(UserWarning, match="the fit was interrupted"):
        compressor.fit(rows[rank], process_group=dist.group.WORLD)
    return compressor.graph_, compressor.stopped_, len(compressor.history_)


def test_an_interrupt_of_one_rank_ends_all_with_the_best_so_far(tmp_path: Path) -> None:
    first, second = run_ranks(2, interrupt, shares(X, 2), 2, folder=tmp_path)
    assert not isinstance(first, BaseException), first.__notes__
    assert first == second
    assert first[1:] == ("interrupt", 3)


def stop(rank: int, rows: list[Any]) -> Any:
    import torch.distributed as dist

    def enough(record: Any) -> bool:
        return bool(rank == 1 and record.step == 2)

    compressor = DistanceCompressor(**SWEPT, random_state=0, callbacks=[enough])
    compressor.fit(rows[rank], process_group=dist.group.WORLD)
    return compressor.graph_, compressor.stopped_, len(compressor.history_)


def test_a_callback_of_one_rank_ends_all(tmp_path: Path) -> None:
    first, second = run_ranks(2, stop, shares(X, 2), folder=tmp_path)
    assert not isinstance(first, BaseException), first.__notes__
    assert first == second
    assert first[1:] == ("callback", 3)


def fit_with_checkpoint(rank: int, rows: list[Any], path: str, begun: str) -> Any:
    import torch.distributed as dist

    compressor = DistanceCompressor(
        **PRODUCT,
        random_state=0,
        checkpoint=path,
        checkpoint_interval=0,
        resume=True,
        callbacks=[lambda record: Path(begun).touch()],
    )
    compressor.fit(rows[rank], process_group=dist.group.WORLD)
    return compressor.graph_


@pytest.mark.parametrize(("killed", "n_ranks"), [([1], 3), ([0, 1], 2)])
def test_killed_ranks_go_on_to_the_same_bits(killed: list[int], n_ranks: int, alone: list[Any], tmp_path: Path) -> None:
    path, begun = str(tmp_path / "fit.checkpoint"), tmp_path / "begun"
    expected = alone[0][0]
    workers = start_ranks(2, fit_with_checkpoint, shares(X, 2), path, str(begun), folder=tmp_path)
    while not begun.exists() and all(worker.process.is_alive() for worker in workers):
        time.sleep(0.005)
    for rank in killed:
        workers[rank].process.kill()
    for rank, error in enumerate(finish(workers)):
        assert error is None if rank in killed else isinstance(error, RankError)
    results = run_ranks(n_ranks, fit_with_checkpoint, shares(X, n_ranks), path, str(begun), folder=tmp_path)
    assert results == [expected] * n_ranks


# -- what is compared


def keys(*values: int) -> NDArray[np.uint64]:
    return np.array([(value, 0) for value in values], np.uint64)


def test_a_few_rows_may_be_alike() -> None:
    check_disjoint([keys(1, 2, 3, 4), keys(1, 5, 6, 7)])
    check_disjoint([keys(1, 1, 1, 2), keys(1, 1, 1, 3)])  # copies say nothing
    with pytest.raises(ValueError, match=r"of the 3 rows of rank 1, 2 are also on rank 0, among them its row 1"):
        check_disjoint([keys(1, 2, 3, 4, 5, 6), keys(7, 1, 3)])


@given(st.lists(st.integers(0, 9), max_size=20))
def test_rows_that_come_once_are_found(values: list[int]) -> None:
    rows, found = single_rows(np.array(values, np.uint64))
    expected = sorted((value, row) for row, value in enumerate(values) if values.count(value) == 1)
    assert [*zip(found.tolist(), rows.tolist(), strict=True)] == expected


def test_a_digest_knows_the_order() -> None:
    assert digest_of(keys(1, 2)) != digest_of(keys(2, 1))
    assert digest_of(keys(1, 2)) == digest_of(np.concatenate([keys(1), keys(2)]))
