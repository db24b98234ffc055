"""Checkpoints: what goes on from one ends as if nothing had happened, and what is no such file is refused."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prodige import DistanceCompressor, Graph, load
from prodige.compression.checkpoints import Checkpoint, Fit, State, pack_random, unpack_random
from prodige.compression.sampling import Places
from prodige.graph import container

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(8, 6))[RNG.integers(0, 8, 700)] * 3 + RNG.normal(size=(700, 6))).astype(np.float32)
# So many items that a limit of memory makes their fit one to a sample, with a pass over all.
MANY = np.concatenate([X, X[:20], RNG.normal(size=(1900, 6)).astype(np.float32)])
SETTINGS: dict[str, Any] = {"bits_per_item": 40, "structure": "product", "random_state": 0}
SAMPLED: dict[str, Any] = {**SETTINGS, "memory_limit": "195MB"}


class Stop(Exception):
    """The end of a process, as far as a fit can tell."""


def stop_after(n_records: int) -> Any:
    """Return a callback that ends the fit as a signal would, in the middle of a step."""
    records: list[Any] = []

    def count(record: Any) -> None:
        records.append(record)
        if len(records) == n_records:
            raise Stop

    return count


def interrupted(path: Path, data: Any, n_records: int, **settings: Any) -> None:
    with pytest.raises(Stop):
        DistanceCompressor(
            **settings, checkpoint=path, checkpoint_interval=0, callbacks=[stop_after(n_records)]
        ).fit(data)


# -- going on


@pytest.mark.parametrize("n_records", [1, 2, 5, 8])
def test_a_fit_goes_on_to_the_same_bits(n_records: int, tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    whole = DistanceCompressor(**SETTINGS).fit(X)
    interrupted(path, X, n_records, **SETTINGS)
    assert path.exists() == (n_records > 1)  # it ends before what it has learned is written
    steps: list[Any] = []
    again = DistanceCompressor(**SETTINGS, checkpoint=path, resume=True, callbacks=[steps.append]).fit(X)
    assert again.graph_ == whole.graph_
    assert (again.anchors_ == whole.anchors_).all()
    assert [record.loss for record in again.history_] == [record.loss for record in whole.history_]
    assert len(steps) == 8 - (n_records - 1)


@pytest.mark.parametrize("n_records", [3, 9, 10])
def test_a_pass_over_all_items_goes_on_to_the_same_bits(n_records: int, tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    whole = DistanceCompressor(**SAMPLED).fit(MANY)
    assert not whole._sizing(MANY, Checkpoint.none().ranks).is_whole
    interrupted(path, blocks_of(MANY), n_records, **SAMPLED)
    again = DistanceCompressor(**SAMPLED, checkpoint=path, resume=True).fit(blocks_of(MANY[:, :]))
    assert again.graph_ == whole.graph_
    assert (again.anchors_ == whole.anchors_).all()


def blocks_of(rows: Any) -> Any:
    return lambda: np.array_split(rows, 5)
