"""Rows of small numbers: all come back, what is frequent is short, and what is no such stream is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from prodige import _core
from prodige.graph.rows import can_hold, choose_kinds, pack_rows, unpack_rows

Rows = NDArray[np.uint16]


def entropy(column: NDArray[Any]) -> float:
    share = np.unique(column, return_counts=True)[1] / column.size
    return float(-(share * np.log2(share)).sum())


def clustered(n: int = 4000, width: int = 12) -> tuple[Rows, NDArray[np.int32]]:
    """Rows of eight kinds, whose numbers are narrow about means of their kind."""
    rng = np.random.default_rng(0)
    means = rng.integers(2, 14, (8, width))
    rows = means[rng.integers(0, 8, n)] + rng.integers(-1, 2, (n, width))
    return rows.astype(np.uint16), np.full(width, 16, np.int32)


@given(
    rows=hnp.arrays(np.uint16, st.tuples(st.integers(1, 60), st.integers(1, 5)), elements=st.integers(0, 300)),
    n_kinds=st.integers(1, 5),
    seed=st.integers(0, 9),
)
def test_rows_come_back(rows: Rows, n_kinds: int, seed: int) -> None:
    sizes = (rows.max(axis=0) + 1).astype(np.int32)
    kinds = np.random.default_rng(seed).integers(0, n_kinds, len(rows)).astype(np.uint16)
    data = _core.write_rows(rows, sizes, kinds, n_kinds)
    np.testing.assert_array_equal(_core.read_rows(data, len(rows), sizes, n_kinds), rows)


def test_frequent_numbers_are_short() -> None:
    rng = np.random.default_rng(1)
    rows = np.stack([rng.binomial(20, p, 20_000) for p in (0.5, 0.1, 0.02)], axis=1).astype(np.uint16)
    data = _core.write_rows(rows, np.full(3, 21, np.int32), np.zeros(20_000, np.uint16), 1)
    least = sum(entropy(column) for column in rows.T)
    assert least <= 8 * len(data) / 20_000 < 1.01 * least


def test_kinds_find_what_goes_together() -> None:
    rows, sizes = clustered()
    alone = _core.write_rows(rows, sizes, np.zeros(len(rows), np.uint16), 1)
    packed = pack_rows(rows, sizes)
    assert packed is not None
    assert packed[0] >= 8
    # Three bits for the kind and log2(3) for each number, instead of more than three bits for each.
    assert 8 * len(packed[1]) / len(rows) < 1.1 * (3 + 12 * np.log2(3))
    assert len(packed[1]) < 0.7 * len(alone)


def test_no_kinds_where_there_are_none() -> None:
    rows = np.random.default_rng(2).integers(0, 16, (3000, 6)).astype(np.uint16)
    assert choose_kinds(rows, np.full(6, 16, np.int32)) == 1


def test_many_rows_are_of_kinds_that_some_of_them_have() -> None:
    rows, sizes = clustered(40_000)
    kinds = _core.find_kinds(rows, sizes, 8, 2000)
    np.testing.assert_array_equal(kinds, _core.find_kinds(rows, sizes, 8, 2000))
    assert 8 * len(_core.write_rows(rows, sizes, kinds, 8)) / len(rows) < 1.1 * (3 + 12 * np.log2(3))


def test_data_that_end_too_early_are_refused() -> None:
    rows, sizes = clustered(500)
    n_kinds, data = pack_rows(rows, sizes) or (0, b"")
    np.testing.assert_array_equal(unpack_rows(data, 500, sizes, n_kinds), rows)
    with pytest.raises(ValueError, match="end before the last row"):
        unpack_rows(data[: len(data) // 2], 500, sizes, n_kinds)
    with pytest.raises(ValueError, match="2 bytes cannot hold 500 rows of 12 numbers"):
        unpack_rows(data[:2], 500, sizes, n_kinds)


@given(data=st.binary(min_size=1, max_size=300), n_kinds=st.integers(1, 8))
def test_any_bytes_are_numbers_or_an_error(data: bytes, n_kinds: int) -> None:
    sizes = np.array([1, 2, 40], np.int32)
    try:
        rows = _core.read_rows(data, 30, sizes, n_kinds)
    except ValueError:
        return
    assert (rows < sizes).all()


def test_rows_of_nothing_are_not_packed() -> None:
    """They would be so short that any memory could be filled by a small file."""
    zeros = np.zeros((100_000, 10), np.uint16)
    assert pack_rows(zeros, np.full(10, 2, np.int32)) is None
    assert can_hold(100, 640, 10)
    assert not can_hold(100, 64_000, 10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.full((4, 2), 3, np.uint16)}, "3 is no number of column 0"),
        ({"sizes": np.array([3], np.int32)}, "sizes"),
        ({"sizes": np.array([3, 0], np.int32)}, "1 to 65536 numbers"),
        ({"kinds": np.zeros(3, np.uint16)}, "kinds"),
        ({"kinds": np.full(4, 2, np.uint16)}, "there is no kind 2"),
        ({"n_kinds": 0}, "1 to 1024 kinds"),
        ({"n_kinds": 1025}, "1 to 1024 kinds"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "rows": np.zeros((4, 2), np.uint16),
        "sizes": np.array([3, 3], np.int32),
        "kinds": np.zeros(4, np.uint16),
        "n_kinds": 2,
    }
    with pytest.raises((ValueError, IndexError), match=message):
        _core.write_rows(**given | change)


def test_more_kinds_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="more kinds than rows"):
        _core.find_kinds(np.zeros((4, 2), np.uint16), np.array([3, 3], np.int32), 5, 100)
