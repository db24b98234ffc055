"""Checkpoints: what goes on from one ends as if nothing had happened, and what is no such file is refused."""

from __future__ import annotations

import errno
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prodige import DistanceCompressor, Graph, load
from prodige.compression.checkpoints import Checkpoint, Fit, State, pack_random, unpack_random
from prodige.compression.sampling import Places
from prodige.graph import container
from prodige.graph.container import FileFormatError

RNG = np.random.default_rng(0)
X = (3 * RNG.normal(size=(8, 4))[RNG.integers(0, 8, 600)] + RNG.normal(size=(600, 4))).astype(np.float32)
SETTINGS: dict[str, Any] = {"numbers_per_item": 5, "structure": "product", "random_state": 0}
# So many items, some of them copies, that a limit of memory makes their fit one to a sample, with a pass over all.
MANY = np.concatenate([X, X[:20], RNG.normal(size=(1700, 4)).astype(np.float32)])
SAMPLED: dict[str, Any] = {**SETTINGS, "memory_limit": "190MB"}


def in_blocks() -> Any:
    return np.array_split(MANY, 5)


class Recorded:
    """An undisturbed fit, and the checkpoint that was there after each of its steps."""

    def __init__(self, folder: Path, data: Any, settings: dict[str, Any]) -> None:
        self.folder, path = folder, folder / "fit.checkpoint"
        self.n_steps = 0

        def keep(record: Any) -> None:
            if path.exists():  # what is written after a step is there before the next
                shutil.copy(path, folder / f"{self.n_steps}.checkpoint")
            self.n_steps += 1

        self.fit = DistanceCompressor(**settings, checkpoint=path, checkpoint_interval=0, callbacks=[keep]).fit(data)

    def after(self, n_steps: int) -> Path:
        """Return a copy that a fit may write to."""
        return Path(shutil.copy(self.folder / f"{n_steps}.checkpoint", self.folder / "again.checkpoint"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("whole"), X, SETTINGS)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("sampled"), in_blocks, SAMPLED)


# -- going on


def test_checkpoints_do_not_change_the_result(whole: Recorded) -> None:
    assert DistanceCompressor(**SETTINGS).fit(X).graph_ == whole.fit.graph_


@pytest.mark.parametrize("n_steps", [1, 4, 7])
def test_a_fit_goes_on_to_the_same_bits(n_steps: int, whole: Recorded) -> None:
    steps: list[Any] = []
    settings = {**SETTINGS, "n_jobs": 2, "callbacks": [steps.append]}
    again = DistanceCompressor(**settings, checkpoint=whole.after(n_steps), resume=True).fit(X)
    assert again.graph_ == whole.fit.graph_
    assert (again.anchors_ == whole.fit.anchors_).all()
    assert [record.loss for record in again.history_] == [record.loss for record in whole.fit.history_]
    assert len(steps) == 8 - n_steps


@pytest.mark.parametrize("n_steps", [6, 9, 11])
def test_a_pass_over_all_items_goes_on_to_the_same_bits(n_steps: int, sampled: Recorded) -> None:
    assert sampled.n_steps == 8 + 5
    steps: list[Any] = []
    settings = {**SAMPLED, "callbacks": [steps.append]}
    again = DistanceCompressor(**settings, checkpoint=sampled.after(n_steps), resume=True).fit(MANY)
    assert again.graph_ == sampled.fit.graph_
    assert (again.anchors_ == sampled.fit.anchors_).all()
    # What is known is not done again, in blocks of whatever size.
    assert sum(record.stage is None for record in steps) == max(8 - n_steps, 0)
    assert [record.progress for record in steps][-1] == 1


def test_any_seed_goes_on(tmp_path: Path) -> None:
    """Also one that nobody knows: what random numbers a fit began with is part of its checkpoint."""
    path, settings = tmp_path / "fit.checkpoint", {**SETTINGS, "random_state": None}
    first = DistanceCompressor(**settings, checkpoint=path, checkpoint_interval=0).fit(X[:300])
    again = DistanceCompressor(**settings, checkpoint=path, resume=True).fit(X[:300])
    assert again.graph_ == first.graph_
    other = DistanceCompressor(**settings).fit(X[:300])
    assert other.graph_ != first.graph_


def test_without_a_file_a_fit_begins(tmp_path: Path, whole: Recorded) -> None:
    fit = DistanceCompressor(**SETTINGS, checkpoint=tmp_path / "none.checkpoint", resume=True).fit(X)
    assert fit.graph_ == whole.fit.graph_


def test_one_is_written_every_so_many_seconds(tmp_path: Path) -> None:
    now, path = [0.0], tmp_path / "fit.checkpoint"
    checkpoint = Checkpoint(path, 10.0, Fit({}, {}), clock=lambda: now[0])
    checkpoint.begin(np.random.RandomState(0))
    written = []
    for second in range(25):
        now[0] = float(second)
        checkpoint.offer("sweeps", lambda: State({"second": now[0]}, {}))
        if path.exists():
            written.append(container.read(path).content["stages"]["sweeps"]["second"])
            path.unlink()
    assert written == [10, 20]


def test_the_end_of_a_stage_is_kept_for_the_next(tmp_path: Path) -> None:
    now, path = [0.0], tmp_path / "fit.checkpoint"
    checkpoint = Checkpoint(path, 10.0, Fit({}, {}), clock=lambda: now[0])
    checkpoint.begin(np.random.RandomState(0))
    checkpoint.offer("sweeps", lambda: State({}, {"codes": np.arange(3)}), last=True)
    assert not path.exists()
    now[0] = 11.0
    checkpoint.offer("pass", lambda: State({"n": 2}, {"known": np.arange(2)}))
    again = Checkpoint(path, 10.0, Fit({}, {}))
    again.begin(np.random.RandomState(1), resume=True)
    states = again.state("sweeps"), again.state("pass")
    assert states[0] is not None
    assert states[1] is not None
    np.testing.assert_array_equal(states[0].arrays["codes"], np.arange(3))
    assert states[1].content == {"n": 2}
    assert again.state("other") is None


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 3))
def test_what_is_known_comes_back(known: list[bool], n_factors: int) -> None:
    places = Places(len(known), n_factors)
    for item in np.flatnonzero(known):
        places.put((int(item), np.full((1, n_factors), item, np.uint16), np.full(1, item, np.float32)))
    again = Places(len(known), n_factors)
    again.restore(places.snapshot())
    for name in ("codes", "lengths", "is_known"):
        np.testing.assert_array_equal(getattr(again, name), getattr(places, name))
    missing = [item for begin, end in again.missing() for item in range(begin, end)]
    assert missing == np.flatnonzero(~np.array(known)).tolist()


@given(st.integers(0, 2**32 - 1), st.integers(0, 2000))
def test_random_numbers_go_on(seed: int, n_drawn: int) -> None:
    random = np.random.RandomState(seed)
    random.randint(100, size=n_drawn)
    np.testing.assert_array_equal(unpack_random(pack_random(random)).permutation(50), random.permutation(50))


# -- faults


@pytest.mark.parametrize(
    ("settings", "data", "reason"),
    [
        ({"numbers_per_item": 6}, X, "numbers_per_item is 5 there and 6 here; give the same settings"),
        ({"random_state": 1}, X, "random_state is 0 there and 1 here"),
        ({}, X[:-1], "n_items is 600 there and 599 here; give the same data"),
        ({}, X[::-1], "digest is '.*' there and '.*' here; give the same data"),
    ],
)
def test_one_of_another_fit_is_refused(settings: Any, data: Any, reason: str, whole: Recorded) -> None:
    path = whole.after(4)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"again.checkpoint' is of another fit: .*{reason}"):
        DistanceCompressor(**{**SETTINGS, **settings}, checkpoint=path, resume=True).fit(data)
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", [0.1, 0.5, 0.99])
def test_a_damaged_one_is_refused(place: float, whole: Recorded) -> None:
    path = whole.after(4)
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"again.checkpoint"):
        DistanceCompressor(**SETTINGS, checkpoint=path, resume=True).fit(X)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError, match=r"again.checkpoint"):
        DistanceCompressor(**SETTINGS, checkpoint=path, resume=True).fit(X)


@pytest.mark.parametrize("wrong", ["codes", "lengths", "positions", "random"])
def test_a_sound_file_with_other_arrays_is_refused(wrong: str, whole: Recorded) -> None:
    path = whole.after(4)
    contents = container.read(path)
    arrays = {**contents.arrays, f"sweeps.{wrong}": np.zeros(3, np.float32)}
    container.write(path, "checkpoint", contents.content, arrays)
    with pytest.raises(ValueError, match=r"must be .* got float32 \(3,\)"):
        DistanceCompressor(**SETTINGS, checkpoint=path, resume=True).fit(X)


def test_other_files_are_refused(tmp_path: Path, whole: Recorded) -> None:
    path = tmp_path / "graph.prodige"
    Graph.from_edges([0], [1], [2.0]).save(path)
    with pytest.raises(FileFormatError, match="it holds a graph, not a checkpoint of a fit"):
        DistanceCompressor(**SETTINGS, checkpoint=path, resume=True).fit(X)
    path.write_text("no such thing")
    with pytest.raises(FileFormatError, match="does not start like one"):
        DistanceCompressor(**SETTINGS, checkpoint=path, resume=True).fit(X)
    for opened in (load, Graph.load):
        with pytest.raises(FileFormatError, match=r"a checkpoint of a fit.*resume=True or --resume"):
            opened(whole.after(4))


def test_one_of_a_later_version_is_refused(whole: Recorded) -> None:
    path = whole.after(4)
    contents = container.read(path)
    container.write(path, "checkpoint", {**contents.content, "version": 2}, contents.arrays)
    with pytest.raises(FileFormatError, match=r"version 2.*upgrade"):
        DistanceCompressor(**SETTINGS, checkpoint=path, resume=True).fit(X)


def test_a_full_disk_leaves_the_one_before(tmp_path: Path, whole: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    path = whole.after(4)
    before = path.read_bytes()
    import os

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("prodige.graph.atomic.os.fsync", full)
    with pytest.warns(UserWarning, match=r"cannot be written \(No space left on device\); the one before stays"):
        fit = DistanceCompressor(**SETTINGS, checkpoint=path, checkpoint_interval=0, resume=True).fit(X)
    assert fit.graph_ == whole.fit.graph_
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.glob(".*")) == []


@pytest.mark.parametrize(
    ("settings", "error", "reason"),
    [
        ({"resume": True}, ValueError, "resume = True needs a checkpoint"),
        ({"resume": 1}, TypeError, "resume must be True or False, got 1"),
        ({"checkpoint": "."}, ValueError, "is a directory; name a file"),
        ({"checkpoint": "/no/such/place"}, ValueError, "in no directory that is there"),
        (
            {"checkpoint": "c", "checkpoint_interval": -1},
            ValueError,
            "must be .* 0 or more, got -1",
        ),
        ({"checkpoint": "c", "max_time": 1.0}, ValueError, "max_time = 1.0"),
        ({"checkpoint": "c", "method": "l0", "structure": "graph"}, ValueError, "method = 'l0'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: Any, error: Any, reason: str) -> None:
    settings = {"structure": "product", **settings}
    with warnings.catch_warnings(), pytest.raises(error, match=reason):
        DistanceCompressor(**settings).fit(X)


@pytest.mark.parametrize("n_left", [3, 1])
def test_a_pass_over_lines_goes_on_to_the_same_bits(n_left: int, tmp_path: Path) -> None:
    settings = {**SAMPLED, "numbers_per_item": None, "bits_per_item": 48, "memory_limit": "195MB"}
    recorded = Recorded(tmp_path, in_blocks, settings)
    steps: list[Any] = []
    path = recorded.after(recorded.n_steps - n_left)
    again = DistanceCompressor(**settings, checkpoint=path, resume=True, callbacks=[steps.append]).fit(MANY)
    assert again.graph_ == recorded.fit.graph_
    assert again.graph_.bits_per_item <= 48
    assert steps[-1].progress == 1
