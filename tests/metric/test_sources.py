"""Sources: whatever rows come from and however they are cut, the same rows come out; what is wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from prodige.metric import sources
from prodige.metric.sources import MappedSource, Source, as_source, is_in_blocks


class Cut:
    """What files of HDF5 and zarr look like: a shape, and slices that are read when asked for."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, part: slice) -> NDArray[Any]:
        assert isinstance(part, slice)
        return np.array(self._array[part])


def cut(rows: NDArray[Any], ends: list[int]) -> list[NDArray[Any]]:
    return np.split(rows, sorted(ends))


def everything(source: Source, begin: int = 0, end: int | None = None) -> NDArray[Any]:
    found, place = [], begin
    for first, rows in source.blocks(begin, end):
        assert first == place
        place += rows.shape[0]
        found.append(rows.toarray() if scipy.sparse.issparse(rows) else rows)
    return np.concatenate(found)


MAKERS: dict[str, Callable[[NDArray[Any], list[int]], Any]] = {
    "array": lambda rows, ends: rows,
    "list": lambda rows, ends: cut(rows, ends),
    "function": lambda rows, ends: lambda: iter(cut(rows, ends)),
    "sparse": lambda rows, ends: scipy.sparse.coo_array(rows),
    "sparse blocks": lambda rows, ends: [scipy.sparse.csc_array(block) for block in cut(rows, ends)],
    "file": lambda rows, ends: Cut(rows),
    "mapped": lambda rows, ends: MappedSource(as_source(cut(rows / 2, ends)), lambda some: some * 2),
}


@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_rows_come_out_as_they_are(kind: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    rows = np.arange(4.0 * n).reshape(n, 4)
    source = as_source(MAKERS[kind](rows, data.draw(st.lists(st.integers(0, n), max_size=4))))
    assert (source.n_items, source.n_features) == (n, 4)
    begin = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(begin + 1, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_BLOCK", data.draw(st.sampled_from([1, 12, 1 << 20])))
        assert np.array_equal(everything(source), rows)
        assert np.array_equal(everything(source, begin, end), rows[begin:end])
        items = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
        taken = source.take(items)
        assert np.array_equal(taken.toarray() if scipy.sparse.issparse(taken) else taken, rows[items])


def test_files(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    rows = np.random.default_rng(0).normal(size=(50, 3))
    np.save(tmp_path / "rows.npy", rows)
    table = pyarrow.table({"name": ["x"] * 50} | {str(c): column for c, column in enumerate(rows.T)})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=17)
    for name in ("rows.npy", "rows.parquet"):
        source = as_source(tmp_path / name)
        assert source.n_items == 50
        assert np.array_equal(everything(source), rows)
        assert np.array_equal(everything(source, 16, 36), rows[16:36])
    assert isinstance(as_source(str(tmp_path / "rows.npy")), Source)
    with pytest.raises(ValueError, match=r"must end in \.npy or \.parquet"):
        as_source(tmp_path / "rows.txt")


def test_empty_parquet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"name": ["x"]}), tmp_path / "text.parquet")
    with pytest.raises(ValueError, match="has no numeric column"):
        as_source(tmp_path / "text.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"x": np.empty(0)}), tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="has no rows"):
        as_source(tmp_path / "none.parquet")


@pytest.mark.parametrize("as_block", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_named(as_block: Callable[[Any], Any], bad: float) -> None:
    rows = np.ones((10, 3))
    rows[7, 1] = bad
    source = as_source([as_block(rows[:4]), as_block(rows[4:9]), as_block(rows[9:])])
    with pytest.raises(ValueError, match=r"contains (nan|inf) in block 1, row 7 "):
        everything(source)
    assert everything(source, 0, 7).shape == (7, 3)


def test_sources_that_change_are_refused() -> None:
    given: list[NDArray[Any]] = [np.zeros((3, 2)), np.ones((3, 2))]
    source = as_source(lambda: iter(given))
    given.pop()
    with pytest.raises(ValueError, match="ended after 3 rows where there were 6"):
        everything(source)


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (iter([np.zeros((2, 2))]), TypeError, "read only once"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], ValueError, "block 1 has 3 columns"),
        (lambda: iter([]), ValueError, "blocks without any"),
        (np.zeros(3), ValueError, "rows and columns"),
        (np.array([["a"]]), ValueError, "real numbers"),
    ],
)
def test_what_is_no_source_is_refused(X: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        everything(as_source(X))


def test_what_is_held_is_not_in_blocks() -> None:
    rows = np.zeros((2, 2))
    assert not any(is_in_blocks(X) for X in (rows, rows.tolist(), scipy.sparse.csr_array(rows), []))
    assert all(is_in_blocks(X) for X in (as_source(rows), [rows], lambda: [rows], "rows.npy", iter([rows]), Cut(rows)))
