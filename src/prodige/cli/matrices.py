"""Reading a matrix of numbers from a file: what commands take as data.

The ending of the name says how it was written. Nothing in a file is run (no pickles), and what is not a finite number
is found here, where its row and column still have names.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige.cli.tables import Line, check_ending, is_number, open_lines, read_frame
from prodige.graph.header import shortened
from prodige.graph.reading import FileFormatError, open_regular

PICKLED = (
    "it holds pickled Python objects, which are not read because they can run code; save plain numbers, "
    "as by numpy.save(path, array.astype(float))"
)


class Matrix(NamedTuple):
    """Rows of numbers, and what was left out on the way.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_array, shape [N, D]
        Finite numbers.
    notes : list of str
        For the user to read: which columns are not among the numbers.
    """

    X: Any
    notes: list[str]


def read_matrix(path: Path, key: str | None = None) -> Matrix:
    r"""Read the numbers of a ``.npy``, ``.npz``, ``.csv`` or ``.parquet`` file.

    Parameters
    ----------
    path : Path
        An ``.npz`` file holds arrays, or a sparse matrix as written by ``scipy.sparse.save_npz``. Of tables, columns
        that are not numeric are left out.
    key : str, optional
        Which array of an ``.npz`` file; the only one with two axes when left out.

    Raises
    ------
    ValueError
        If it is not a matrix of finite numbers; the message names the file and says what to do.
    ImportError
        If a ``.parquet`` file is to be read without the extra ``tables``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from prodige.cli.matrices import read_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "towns.csv")
    ...     _ = path.write_text("name,x,y\nAachen,6.1,50.8\nBonn,7.1,50.7\n")
    ...     matrix = read_matrix(path)
    >>> matrix.X
    array([[ 6.1, 50.8],
           [ 7.1, 50.7]])
    >>> matrix.notes
    ["column 1 ('name') is not numeric: left out"]
    """
    readers: dict[str, Callable[[Path], Matrix]] = {
        ".npy": read_npy,
        ".npz": lambda path: read_npz(path, key),
        ".csv": read_csv,
        ".parquet": read_parquet,
    }
    ending = check_ending(path, readers, f"give one of {', '.join(readers)}")
    try:
        matrix = readers[ending](path)
        check_numbers(matrix.X)
    except FileFormatError:
        raise  # has the name in it already
    except (ValueError, EOFError, zipfile.BadZipFile, csv.Error) as error:
        raise ValueError(f"{path}: {error}") from error
    return matrix


def read_npy(path: Path) -> Matrix:
    """Read a single array."""
    with open_regular(path) as file:  # opened here: NumPy leaves a damaged file open
        return Matrix(load_plain(file), [])


def read_npz(path: Path, key: str | None) -> Matrix:
    """Read one of several arrays, or a sparse matrix."""
    with open_regular(path) as file:
        archive = load_plain(file)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it is a single array; rename it to end in .npy")
        names = list(archive.files)
        if key is None and {"format", "shape", "data"} <= set(names):
            file.seek(0)
            return Matrix(load_sparse(file), [])
        if key is not None:
            if key not in names:
                raise ValueError(f"it has no array {key!r}; there are {', '.join(map(repr, names)) or 'none'}")
            return Matrix(load_member(archive, key), [])
        found = {name: array for name in names if (array := matrix_or_none(archive, name)) is not None}
    if len(found) != 1:
        shapes = ", ".join(f"{name!r} {array.shape}" for name, array in found.items()) or "none"
        raise ValueError(f"it must hold one numeric array with two axes, or --key must say which; there are: {shapes}")
    return Matrix(next(iter(found.values())), [])


def load_plain(file: Any) -> Any:
    """Load NumPy's formats without pickles, with a reason where that fails."""
    magic = file.read(6)
    file.seek(0)
    if not magic:
        raise ValueError("it is empty")
    if not magic.startswith((b"\x93NUMPY", b"PK")):  # NumPy takes everything else for a pickle
        raise ValueError("it is not a file written by numpy.save or numpy.savez, or " + PICKLED)
    try:
        return np.load(file, allow_pickle=False)
    except ValueError as error:
        raise ValueError(PICKLED if "allow_pickle" in str(error) else f"it cannot be read ({error})") from error


def load_member(archive: Any, name: str) -> NDArray[Any]:
    """Load one array of an archive."""
    try:
        return np.asarray(archive[name])
    except ValueError as error:
        raise ValueError(f"array {name!r}: {PICKLED if 'allow_pickle' in str(error) else error}") from error


def matrix_or_none(archive: Any, name: str) -> NDArray[Any] | None:
    """Load an array if it could be the data: labels and pickles beside it do not matter."""
    try:
        array = load_member(archive, name)
    except ValueError:
        return None
    return array if array.ndim == 2 and array.dtype.kind in "fiub" else None


def load_sparse(file: Any) -> Any:
    """Load a sparse matrix and check its indices, which the constructors of scipy take as they are."""
    import scipy.sparse

    try:
        matrix = scipy.sparse.load_npz(file)
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
        return scipy.sparse.csr_array(matrix)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, NotImplementedError) as error:
        raise ValueError(f"it is not a sound sparse matrix of scipy.sparse.save_npz ({error})") from error


def read_csv(path: Path) -> Matrix:
    """Read comma-separated values, with or without a line of names; text columns are left out."""
    with open_lines(path) as (first, others):
        layout = Layout.guess(first[0][1], first[-1][1])
        X = np.array([*layout.parse(chain(first[layout.has_names :], others))], dtype=np.float64)
    return Matrix(X.reshape(-1, len(layout.numeric)), layout.notes)


@dataclass(frozen=True)
class Layout:
    """What the columns of a table are, as far as its first two lines tell."""

    n_columns: int
    has_names: bool
    numeric: list[int]
    notes: list[str]

    @classmethod
    def guess(cls, first: list[str], second: list[str]) -> Layout:
        """Tell names from data, and text from numbers.

        Examples
        --------
        >>> from prodige.cli.matrices import Layout
        >>> Layout.guess(["name", "x"], ["Bonn", "7.1"]).numeric
        [1]
        >>> Layout.guess(["1", "2"], ["3", "4"]).has_names
        False
        """
        n = len(first)
        # A table of pandas begins with its index, which has no name, and may have numbers for names.
        has_index = first[0] == "" and first[1:] == [str(number) for number in range(n - 1)]
        has_names = has_index or any(is_text(a) and not is_text(b) for a, b in zip(first, second, strict=False))
        has_index |= has_names and first[0] == ""
        data = second if has_names else first
        text = [column for column, cell in enumerate(data) if is_text(cell)]
        notes = []
        for column in text:
            name = f" ({first[column]!r})" if has_names and column < n else ""
            notes.append(f"column {column + 1}{name} is not numeric: left out")
        if has_index and 0 not in text:
            notes.append("column 1 has no name: left out as the index of the table")
            text.append(0)
        if n > 1 and not has_names and first == [str(number) for number in range(n)]:
            notes.append(f"line 1 is 0, ..., {n - 1}: taken as data; delete it if these are names of columns")
        numeric = [column for column in range(n) if column not in text]
        if not numeric:
            raise ValueError("it has no numeric column; fields must be separated by commas, with a point in decimals")
        return cls(n, has_names, numeric, notes)

    def parse(self, lines: Iterable[Line]) -> Iterator[NDArray[np.float64]]:
        """Yield the numbers of each line."""
        for line, cells in lines:
            if len(cells) != self.n_columns:
                raise ValueError(f"line {line} has {len(cells)} fields, the first has {self.n_columns}")
            try:
                yield np.array([float(cells[column]) for column in self.numeric])
            except ValueError:
                column = next(column for column in self.numeric if not is_number(cells[column]))
                what = shortened(cells[column]) if cells[column].strip() else "empty"
                raise ValueError(
                    f"line {line}, column {column + 1} is {what} where a number should be; "
                    "distances need all of them: fill it in or leave out the line or the column"
                ) from None


def is_text(cell: str) -> bool:
    """Whether a cell says something that is not a number; an empty one says nothing."""
    return bool(cell.strip()) and not is_number(cell)


def read_parquet(path: Path) -> Matrix:
    """Read a table by pandas; columns that are not numeric are left out."""
    table = read_frame(path)
    is_numeric = [dtype.kind in "fiub" for dtype in table.dtypes]
    notes = [
        f"column {column + 1} ({str(name)!r}) is not numeric: left out"
        for column, (name, numeric) in enumerate(zip(table.columns, is_numeric, strict=True))
        if not numeric
    ]
    if not any(is_numeric):
        kinds = ", ".join(f"{str(name)!r} {dtype}" for name, dtype in zip(table.columns, table.dtypes, strict=True))
        raise ValueError(f"it has no numeric column; there are: {kinds or 'none'}")
    numbers = table.loc[:, is_numeric]
    is_single = all(str(dtype) == "float32" for dtype in numbers.dtypes)
    return Matrix(numbers.to_numpy(dtype=np.float32 if is_single else np.float64, na_value=np.nan), notes)


def check_numbers(X: Any) -> None:
    """Refuse what is not a matrix of finite numbers, and say where."""
    if X.ndim != 2:
        raise ValueError(f"the array must have two axes, rows and columns, got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"the array must hold real numbers, got dtype {X.dtype}")
    if 0 in X.shape:
        raise ValueError(f"the array has no numbers: its shape is {X.shape}")
    if X.dtype.kind != "f":
        return
    values = X if isinstance(X, np.ndarray) else X.data
    # The sum is finite where all numbers are, nearly always: a mask of the whole array is made only in doubt.
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(bad.argmax())
        row, column = (
            np.unravel_index(first, X.shape) if values is X else (places[first] for places in X.tocoo().coords)
        )
        raise ValueError(
            f"the number in row {row}, column {column} (counted from 0) is {values[bad][0]}, one of {int(bad.sum())} "
            "that are not finite; fill them in or leave out their rows"
        )


__all__ = ["Matrix", "read_matrix"]
