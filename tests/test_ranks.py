"""Ranks: what several processes put together is what one makes alone, and none is left behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processes import finish, run_ranks, start_ranks
from prodige.ranks import RankError, Ranks, item_parts, whole_branches


def world() -> Ranks:
    import torch.distributed as dist

    return Ranks(dist.group.WORLD)


# -- parts


@given(st.integers(1, 300_000))
def test_parts_cover_the_items_in_order(n_items: int) -> None:
    parts = item_parts(n_items)
    assert [item for part in parts for item in (part.start, part.stop)][1:-1] == [
        end for part in parts[:-1] for end in (part.stop, part.stop)
    ]
    assert parts[0].start == 0
    assert parts[-1].stop == n_items
    assert len(parts) & (len(parts) - 1) == 0
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(0, 6), st.data())
def test_branches_are_the_largest_that_fit(depth: int, data: st.DataObject) -> None:
    n = 2**depth
    begin = data.draw(st.integers(0, n))
    end = data.draw(st.integers(begin, n))
    branches = whole_branches(begin, end, 0, n)
    assert [leaf for low, high in branches for leaf in range(low, high)] == list(range(begin, end))
    for low, high in branches:
        size = high - low
        assert size & (size - 1) == 0
        assert low % size == 0
        parent = low // (2 * size) * (2 * size)
        assert size == n or not (begin <= parent and parent + 2 * size <= end)


# -- several processes


def share_everything(rank: int, values: Any) -> Any:
    ranks = world()
    with ranks.together():
        total = ranks.add(lambda part: values[part], len(values))
        squares = ranks.in_parts(lambda part: part**2, [*range(7)])
        return total.tobytes(), squares, ranks.first(lambda: f"from {rank}"), ranks.any(rank == 1), ranks.gather(rank)


@pytest.mark.parametrize("n_ranks", [2, 3])
def test_what_is_shared_is_as_of_one(n_ranks: int, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(16, 50)) * 10.0 ** np.arange(-8, 8)[:, None]
    alone = Ranks()
    results = run_ranks(n_ranks, share_everything, values, folder=tmp_path)
    total = alone.add(lambda part: values[part], 16).tobytes()
    squares = [part**2 for part in range(7)]
    assert results == [(total, squares, "from 0", True, [*range(n_ranks)])] * n_ranks
    assert values.sum(axis=0).tobytes() != total  # the order of adding does matter here


def fail_on(rank: int, failing: int) -> None:
    ranks = world()
    with ranks.together():
        ranks.gather(1)
        if rank == failing:
            raise ValueError("row 3 is not a number")
        for _ in range(100):
            ranks.gather(2)


@pytest.mark.parametrize("failing", [0, 2])
def test_an_error_on_one_ends_all_with_its_cause(failing: int, tmp_path: Path) -> None:
    results = run_ranks(3, fail_on, failing, folder=tmp_path)
    assert isinstance(results.pop(failing), ValueError)
    for error in results:
        assert isinstance(error, RankError)
        assert str(error) == f"rank {failing} failed: ValueError: row 3 is not a number"


def interrupt_one(rank: int) -> int:
    ranks, n_heard = world(), 0
    with ranks.together():
        for step in range(10):
            if (rank, step) == (1, 4):
                os.kill(os.getpid(), signal.SIGINT)
            try:
                ranks.gather(step)
            except KeyboardInterrupt:
                assert step == 4
                n_heard += 1
    return n_heard


def test_an_interrupt_is_heard_by_all_at_the_same_place(tmp_path: Path) -> None:
    assert run_ranks(3, interrupt_one, folder=tmp_path) == [1, 1, 1]


def be_slow(rank: int) -> list[int]:
    ranks = world()
    with ranks.together():
        if rank == 1:
            time.sleep(1.0)
        return ranks.gather(rank)


def test_a_slow_rank_only_delays(tmp_path: Path) -> None:
    assert run_ranks(2, be_slow, folder=tmp_path) == [[0, 1]] * 2


def go_on_for_ever(rank: int, begun: str) -> None:
    ranks = world()
    with ranks.together():
        while True:
            ranks.gather(rank)
            Path(begun).touch()


def test_a_killed_rank_is_told_of(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    workers = start_ranks(3, go_on_for_ever, str(begun), folder=tmp_path)
    while not begun.exists():
        time.sleep(0.01)
    workers[1].process.kill()
    results = finish(workers)
    assert results.pop(1) is None
    for error in results:
        assert isinstance(error, RankError)
        assert "lost the connection" in str(error)
        assert "checkpoint" in str(error)


def test_what_is_no_group_is_refused() -> None:
    with pytest.raises(TypeError, match=r"process_group must be .*got 3; give"):
        Ranks(3)
