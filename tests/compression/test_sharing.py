"""Fits that processes share: the same bits for any number of them, and faults of one are told by all."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processes import run_ranks
from prodige import DistanceCompressor

RNG = np.random.default_rng(0)
# Parts of 256 items at least: three ranks have one or two each.
X = (RNG.normal(size=(8, 6))[RNG.integers(0, 8, 1100)] * 3 + RNG.normal(size=(1100, 6))).astype(np.float32)

SETTINGS: list[dict[str, Any]] = [
    {"bits_per_item": 40, "structure": "product"},
    {"bits_per_item": 32, "structure": "product", "objective": "neighbors", "metric_only": False},
    {"numbers_per_item": 6},
]


def shares(rows: Any, n_ranks: int) -> list[Any]:
    """Return the rows of each rank: uneven, so that they are not the parts that work is done in."""
    ends = [0, *(rows.shape[0] * (2 * rank + 1) // (2 * n_ranks) for rank in range(1, n_ranks)), rows.shape[0]]
    return [rows[begin:end] for begin, end in pairwise(ends)]


def fit(rank: int, rows: list[Any], settings: list[dict[str, Any]]) -> Any:
    import torch.distributed as dist

    results = []
    for one in settings:
        compressor = DistanceCompressor(random_state=0, n_jobs=1 + rank, **one)
        compressor.fit(rows[rank], process_group=dist.group.WORLD)
        losses = [record.loss for record in compressor.history_]
        results.append((compressor.graph_, compressor.structure_, losses, compressor.anchors_.tolist()))
    return results


@pytest.fixture(scope="module")
def alone() -> list[Any]:
    return [DistanceCompressor(random_state=0, n_jobs=1, **settings).fit(X) for settings in SETTINGS]


@pytest.mark.parametrize("n_ranks", [1, 2, 3])
def test_any_number_of_ranks_gives_the_same_bits(n_ranks: int, alone: list[Any], tmp_path: Path) -> None:
    results = run_ranks(n_ranks, fit, shares(X, n_ranks), SETTINGS, folder=tmp_path)
    for result in results:
        assert not isinstance(result, BaseException), result.__notes__
        for compressor, (graph, structure, losses, anchors) in zip(alone, result, strict=True):
            assert graph == compressor.graph_
            assert structure == compressor.structure_
            assert losses == [record.loss for record in compressor.history_]
            assert anchors == compressor.anchors_.tolist()
