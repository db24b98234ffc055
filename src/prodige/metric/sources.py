"""Sources: rows of data that need not be in memory, read a block at a time.

Whoever reads a :class:`Source` gets consecutive blocks of rows, or some rows by their numbers, and never all of them at
once. What the rows come from is the source's own business: an array, which may be a memory map; a sparse matrix; a data
set of an HDF5 or zarr file, which is cut like an array; a parquet file; a list of blocks, or a function that begins to
hand them out anew whenever it is called. How rows are cut into blocks is not a property of the data, so nothing that is
learned may depend on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from prodige.graph.reading import open_regular

# Numbers of a block, where the source itself does not say how large one is: 16 MiB as float32.
_BLOCK = 1 << 22

Block = tuple[int, Any]  # number of the first row, and the rows: an array or a sparse matrix


class Source(ABC):
    """Rows that are read a block at a time.

    Attributes
    ----------
    n_items, n_features : int
        Rows and columns.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.sources import as_source
    >>> source = as_source([np.zeros((3, 2)), np.ones((2, 2))])  # two blocks
    >>> source.n_items, source.n_features
    (5, 2)
    >>> [(begin, rows.shape) for begin, rows in source.blocks()]
    [(0, (3, 2)), (3, (2, 2))]
    >>> source.take(np.array([0, 4]))
    array([[0., 0.],
           [1., 1.]])
    """

    n_items: int
    n_features: int

    @abstractmethod
    def read(self) -> Iterator[Any]:
        """Yield all rows in order, as arrays or sparse matrices of any number of rows."""

    def blocks(self, begin: int = 0, end: int | None = None) -> Iterator[Block]:
        """Yield ``(number of the first row, rows)`` of some or all rows, in order.

        Rows are float32 or float64, dense or ``csr``, and finite.

        Raises
        ------
        ValueError
            If a number is not finite, naming block and row, or if there are not as many rows as there were.
        """
        end = self.n_items if end is None else end
        start = 0
        for number, raw in enumerate(self.read()):
            stop = start + raw.shape[0]
            if stop > begin and start < end:
                first, last = max(begin, start), min(end, stop)
                rows = as_rows(raw[first - start : last - start])
                check_block(rows, self.n_features, first, number)
                for part in pieces(rows):
                    yield first + part.start, rows[part]
            start = stop
            if start >= end:
                return
        if start < end:
            raise ValueError(
                f"the source ended after {start} rows where there were {self.n_items}; it must give the same rows "
                "every time it is read"
            )

    def take(self, items: NDArray[np.int64]) -> Any:
        """Return some rows, given by their numbers in ascending order; reads the source once."""
        found = []
        for begin, rows in self.blocks():
            first, last = np.searchsorted(items, [begin, begin + rows.shape[0]])
            if last > first:
                found.append(rows[items[first:last] - begin])
        return stack(found)


class ArraySource(Source):
    """An array, memory map or sparse matrix, or whatever else has a shape and can be cut along its first axis."""

    def __init__(self, array: Any) -> None:
        if len(array.shape) != 2 or 0 in array.shape:
            raise ValueError(f"X must have rows and columns, got shape {tuple(array.shape)}")
        self.array = array
        self.n_items, self.n_features = (int(size) for size in array.shape)

    def read(self) -> Iterator[Any]:
        """Yield slices of the array."""
        yield from (rows for _, rows in self._slices(0, self.n_items))

    def blocks(self, begin: int = 0, end: int | None = None) -> Iterator[Block]:
        """Yield ``(number of the first row, rows)``; only those that are asked for are read."""
        end = self.n_items if end is None else end
        for first, raw in self._slices(begin, end):
            rows = as_rows(raw)
            check_block(rows, self.n_features, first, first // self._n_rows)
            yield first, rows

    def take(self, items: NDArray[np.int64]) -> Any:
        """Return some rows, given by their numbers in ascending order."""
        if not (isinstance(self.array, np.ndarray) or scipy.sparse.issparse(self.array)):
            return super().take(items)  # files take single rows one by one, which is slower than reading all
        rows = as_rows(self.array[items])
        check_block(rows, self.n_features, 0, 0, items)
        return rows

    @property
    def _n_rows(self) -> int:
        return max(1, _BLOCK // self.n_features)

    def _slices(self, begin: int, end: int) -> Iterator[Block]:
        for first in range(begin, end, self._n_rows):
            yield first, self.array[first : min(first + self._n_rows, end)]


class BlockSource(Source):
    """Blocks of rows: a sequence of them, or a function that returns a fresh iterator over the same blocks.

    Parameters
    ----------
    blocks : sequence of array-like, or callable
        A function without arguments; it is called once for every time the data are read.
    """

    def __init__(self, blocks: Sequence[Any] | Callable[[], Iterable[Any]]) -> None:
        self._blocks = blocks
        self.n_items, self.n_features = 0, 0
        for number, raw in enumerate(self.read()):
            if raw.ndim != 2:
                raise ValueError(f"block {number} must have rows and columns, got shape {raw.shape}")
            self.n_features = self.n_features or raw.shape[1]
            if raw.shape[1] != self.n_features:
                raise ValueError(
                    f"block {number} has {raw.shape[1]} columns where the blocks before have {self.n_features}"
                )
            self.n_items += raw.shape[0]
        if not self.n_items or not self.n_features:
            raise ValueError("X must have rows and columns, got blocks without any")

    def read(self) -> Iterator[Any]:
        """Yield the blocks as they are."""
        given = self._blocks() if callable(self._blocks) else self._blocks
        for block in given:
            yield block if scipy.sparse.issparse(block) else np.asarray(block)


class MappedSource(Source):
    """Rows of another source, each block changed by a function of its rows that keeps their number.

    Parameters
    ----------
    source : Source
    function : callable
        It handles every row by itself.
    """

    def __init__(self, source: Source, function: Callable[[Any], Any]) -> None:
        self.source = source
        self.function = function
        self.n_items, self.n_features = source.n_items, source.n_features

    def read(self) -> Iterator[Any]:
        """Yield the blocks of the other source, changed."""
        yield from (self.function(rows) for _, rows in self.source.blocks())


class PartSource(Source):
    """Rows of another source that are next to each other.

    Parameters
    ----------
    source : Source
    begin, end : int
        The first row, and the one after the last.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.sources import PartSource, as_source
    >>> part = PartSource(as_source(np.arange(8.0).reshape(4, 2)), 1, 3)
    >>> part.n_items, part.take(np.array([1]))
    (2, array([[4., 5.]]))
    """

    def __init__(self, source: Source, begin: int, end: int) -> None:
        self.source = source
        self.begin = begin
        self.n_items, self.n_features = end - begin, source.n_features

    def read(self) -> Iterator[Any]:
        """Yield the rows of the part."""
        yield from (rows for _, rows in self.blocks())

    def blocks(self, begin: int = 0, end: int | None = None) -> Iterator[Block]:
        """Yield ``(number of the first row, rows)``, counted from the first row of the part."""
        stop = self.begin + (self.n_items if end is None else end)
        for number, rows in self.source.blocks(self.begin + begin, stop):
            yield number - self.begin, rows

    def take(self, items: NDArray[np.int64]) -> Any:
        """Return some rows, given by their numbers in ascending order."""
        return self.source.take(items + self.begin)


class ParquetSource(Source):
    """Numeric columns of a parquet file, a row group at a time or less; needs the extra ``tables``.

    Parameters
    ----------
    path : str or path-like
    columns : sequence of str, optional
        All numeric ones when left out.
    """

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None) -> None:
        parquet = import_parquet()
        self.path = Path(path)
        with parquet.ParquetFile(self.path) as file:
            schema = file.schema_arrow
            self.columns = list(numeric_columns(schema) if columns is None else columns)
            self.n_items, self.n_features = int(file.metadata.num_rows), len(self.columns)
        if not self.columns:
            raise ValueError(f"{path} has no numeric column; there are: {', '.join(map(repr, schema.names)) or 'none'}")
        if not self.n_items:
            raise ValueError(f"{path} has no rows")

    def read(self) -> Iterator[Any]:
        """Yield batches of the file."""
        n_rows = max(1, _BLOCK // self.n_features)
        with import_parquet().ParquetFile(self.path) as file:
            for batch in file.iter_batches(n_rows, columns=self.columns):
                columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
                is_single = all(column.dtype == np.float32 for column in columns)
                yield np.stack(columns, axis=1).astype(np.float32 if is_single else np.float64)


def as_source(X: Any) -> Source:
    """Return rows as a source, whatever they come from.

    Parameters
    ----------
    X : Source, array-like, sparse matrix, path, sequence of blocks or callable
        An array or anything that can be cut like one (``shape`` and slices: memory maps, data sets of h5py, arrays of
        zarr); a path to a ``.npy`` or ``.parquet`` file; a sequence of arrays or sparse matrices, one for each block;
        or a function that returns a fresh iterator over such blocks whenever it is called.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.sources import as_source
    >>> as_source(lambda: (np.full((2, 3), number) for number in range(4))).n_items
    8
    """
    if isinstance(X, Source):
        return X
    if isinstance(X, (str, Path)):
        return open_source(Path(X))
    if hasattr(X, "shape") and hasattr(X, "__getitem__") and not hasattr(X, "iloc"):
        return ArraySource(X.tocsr() if scipy.sparse.issparse(X) else X)
    if callable(X) or (isinstance(X, Sequence) and len(X) > 0 and is_block(X[0])):
        return BlockSource(X)
    if isinstance(X, Iterator):
        raise TypeError(
            f"X can be read only once, being of type {type(X).__name__}, and a fit reads it more often; give a "
            "function that returns a fresh iterator, or a list of blocks"
        )
    return ArraySource(np.asarray(X))


def is_in_blocks(X: Any) -> bool:
    """Whether data are read by blocks rather than held as an array, a sparse matrix, a data frame or a list of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.sources import is_in_blocks
    >>> is_in_blocks(np.zeros((2, 2))), is_in_blocks([[0.0, 0.0]]), is_in_blocks("rows.npy")
    (False, False, True)
    """
    if isinstance(X, (Source, str, Path, Iterator)) or callable(X):
        return True
    if isinstance(X, Sequence):
        return len(X) > 0 and is_block(X[0])
    is_held = isinstance(X, np.ndarray) or scipy.sparse.issparse(X) or hasattr(X, "iloc") or hasattr(X, "__array__")
    return not is_held and hasattr(X, "shape") and hasattr(X, "__getitem__")


def is_block(rows: Any) -> bool:
    """Whether this is an array or a sparse matrix with two axes."""
    return hasattr(rows, "shape") and len(rows.shape) == 2


def open_source(path: Path) -> Source:
    """Return the rows of a file: ``.npy`` as a memory map, ``.parquet`` by batches."""
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".parquet"):
        raise ValueError(f"{path} must end in .npy or .parquet to be read by blocks; other data can be given as blocks")
    open_regular(path).close()  # whoever opens a pipe waits for somebody to write to it
    if suffix == ".npy":
        return ArraySource(np.load(path, mmap_mode="r", allow_pickle=False))
    return ParquetSource(path)


def as_rows(block: Any) -> Any:
    """Return rows in single or double precision, dense or sparse by rows.

    Examples
    --------
    >>> from prodige.metric.sources import as_rows
    >>> as_rows([[1, 2]])
    array([[1., 2.]])
    """
    rows = block.tocsr() if scipy.sparse.issparse(block) else np.asarray(block)
    if rows.dtype in (np.float32, np.float64):
        return rows
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, got dtype {rows.dtype}")
    return rows.astype(np.float64)


def check_block(rows: Any, n_features: int, begin: int, number: int, items: NDArray[np.int64] | None = None) -> None:
    """Refuse a block of another width, or one with numbers that are not finite, and say where these are."""
    if rows.shape[1] != n_features:
        raise ValueError(f"block {number} has {rows.shape[1]} columns where the blocks before have {n_features}")
    values = rows.data if scipy.sparse.issparse(rows) else rows
    with np.errstate(all="ignore"):  # the sum is finite where all are, nearly always
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    if scipy.sparse.issparse(rows):
        row = int(np.searchsorted(rows.indptr, np.flatnonzero(~np.isfinite(values))[0], side="right")) - 1
        value = values[~np.isfinite(values)][0]
    else:
        row, column = np.argwhere(~np.isfinite(values))[0]
        value = values[row, column]
    item = begin + int(row) if items is None else int(items[row])
    where = f"block {number}, row {item}" if items is None else f"row {item}"
    raise ValueError(
        f"X contains {value} in {where} (counted from 0): Input contains NaN or infinity; fill such numbers in or "
        "leave out their rows"
    )


def pieces(rows: Any) -> list[slice]:
    """Return the parts of a block that are no larger than need be, so that memory does not depend on who cut it."""
    size = max(1, _BLOCK // rows.shape[1])
    return [slice(begin, min(begin + size, rows.shape[0])) for begin in range(0, rows.shape[0], size)]


def stack(blocks: list[Any]) -> Any:
    """Return blocks one below the other."""
    return scipy.sparse.vstack(blocks, format="csr") if scipy.sparse.issparse(blocks[0]) else np.concatenate(blocks)


def numeric_columns(schema: Any) -> list[str]:
    """Return the names of columns that hold numbers."""
    import pyarrow.types as kinds

    tests = (kinds.is_floating, kinds.is_integer, kinds.is_boolean)
    return [field.name for field in schema if any(test(field.type) for test in tests)]


def import_parquet() -> Any:
    """Return pyarrow's reader, or say how to get it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("parquet files need pyarrow; pip install 'prodige[tables]'", name="pyarrow") from error
    return pyarrow.parquet
