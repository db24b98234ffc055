"""Reading who met what from a table of pairs: what ``prodige recommend`` takes as data.

Users and items may be called anything; what they are called is kept, as labels, in the order in which they first occur.
A pair that occurs more than once counts as often.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from prodige.cli.tables import Line, check_ending, is_number, open_lines, read_frame
from prodige.fileformat import shortened

DELIMITERS = {".csv": ",", ".tsv": "\t"}

# Names that columns go by in the files of others, in lower case: a line with one of them is no pair.
_NAMES = {"user", "users", "user_id", "userid", "item", "items", "item_id", "itemid", "movieid", "movie_id"}

# A line of the file and what it says.
Pair = tuple[int, str, str, float]


class Pairs(NamedTuple):
    """Interactions with the names of users and items.

    Attributes
    ----------
    user_items : scipy.sparse.csr_array of float32, shape [U, I]
    users, items : list of str
        Labels of rows and columns.
    notes : list of str
        For the user to read: what was taken for what.
    """

    user_items: csr_array
    users: list[str]
    items: list[str]
    notes: list[str]


@dataclass(frozen=True)
class Columns:
    """Which columns to read: names, or numbers from 1; when left out, the first two, and "count" if there is one."""

    user: str | None = None
    item: str | None = None
    count: str | None = None

    @property
    def have_names(self) -> bool:
        """Whether one is asked for by its name."""
        return any(one is not None and not one.isdecimal() for one in (self.user, self.item, self.count))


FIRST = Columns()


def read_pairs(path: Path, columns: Columns = FIRST, header: bool | None = None) -> Pairs:
    r"""Read pairs of users and items from a ``.csv``, ``.tsv`` or ``.parquet`` file.

    Parameters
    ----------
    path : Path
    columns : Columns
        Which are the users, the items and the counts.
    header : bool, optional
        Whether the first line of a text file has names of columns; guessed when left out.

    Raises
    ------
    ValueError
        If it is not a table of pairs; the message names the file and the line, and says what to do.
    ImportError
        If a ``.parquet`` file is to be read without the extra ``tables``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from prodige.cli.pairs import read_pairs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "read.csv")
    ...     _ = path.write_text("user,item\nada,Emma\nbob,Dune\nada,Dune\n")
    ...     pairs = read_pairs(path)
    >>> pairs.users, pairs.items
    (['ada', 'bob'], ['Emma', 'Dune'])
    >>> pairs.user_items.toarray()
    array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    known = (*DELIMITERS, ".parquet")
    ending = check_ending(path, known, f"give a table of pairs ({', '.join(known)}), or a saved .prodige file")
    try:
        if ending == ".parquet":
            return read_parquet(path, columns)
        return read_text(path, DELIMITERS[ending], columns, header)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}: {error}") from error


def read_text(path: Path, delimiter: str, columns: Columns, header: bool | None) -> Pairs:
    """Read lines of cells."""
    with open_lines(path, delimiter) as (first, others):
        notes: list[str] = []
        if header is None:
            header, notes = (True, []) if columns.have_names else guess_header(first[0][1], first[-1][1])
        names = first[0][1] if header else [""] * len(first[0][1])
        places = find_columns(names, columns, notes)
        return collect(parse(chain(first[header:], others), len(names), places), notes)


def guess_header(first: list[str], second: list[str]) -> tuple[bool, list[str]]:
    """Return whether the first line has names, and what to tell the user.

    Examples
    --------
    >>> from prodige.cli.pairs import guess_header
    >>> guess_header(["reader", "book"], ["7", "12"])
    (True, [])
    >>> guess_header(["ada", "Emma"], ["bob", "Dune"])
    (False, ['line 1 is taken for a pair; use --header if it has names of columns'])
    """
    if {cell.strip().lower() for cell in first} & _NAMES:
        return True, []
    if any(is_number(below) and not is_number(cell) for cell, below in zip(first, second, strict=False)):
        return True, []
    if any(is_number(cell) for cell in first):
        return False, []
    return False, ["line 1 is taken for a pair; use --header if it has names of columns"]


def find_columns(names: list[str], columns: Columns, notes: list[str]) -> tuple[int, int, int | None]:
    """Return the places of users, items and counts; tell of columns that are left out."""
    if len(names) < 2:
        raise ValueError("it has one column where users and items should be; cells must be separated by commas or tabs")
    user = 0 if columns.user is None else find_column(names, "--user-column", columns.user)
    item = 1 if columns.item is None else find_column(names, "--item-column", columns.item)
    count: int | None = None
    if columns.count is not None:
        count = find_column(names, "--count-column", columns.count)
    elif "count" in names:
        count = names.index("count")
    if len({user, item, count}) < 3:
        places = ", ".join(str(place + 1) for place in (user, item, count) if place is not None)
        raise ValueError(f"users, items and counts must be different columns, got {places}; name all of them")
    left = [place for place in range(len(names)) if place not in (user, item, count)]
    if left:
        what = ", ".join(f"{place + 1} ({names[place]!r})" if names[place] else f"{place + 1}" for place in left)
        notes.append(
            f"not read: column {what}" + ("" if count is not None else "; --count-column names one that counts")
        )
    return user, item, count


def find_column(names: list[str], option: str, wanted: str) -> int:
    """Return the place of a column by its name, or by its number from 1.

    Examples
    --------
    >>> from prodige.cli.pairs import find_column
    >>> find_column(["reader", "book"], "--item-column", "book"), find_column(["", ""], "--item-column", "2")
    (1, 1)
    """
    if wanted in names:
        return names.index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    known = ", ".join(repr(name) for name in names if name) or "none with a name"
    raise ValueError(f"there is no column {wanted!r} for {option}; there are {len(names)}: {known}")


def parse(lines: Iterable[Line], n_columns: int, places: tuple[int, int, int | None]) -> Iterator[Pair]:
    """Yield what each line says."""
    user, item, count = places
    for line, cells in lines:
        if len(cells) != n_columns:
            raise ValueError(f"line {line} has {len(cells)} cells, the first has {n_columns}")
        yield line, cells[user].strip(), cells[item].strip(), 1.0 if count is None else number(cells[count], line)


def number(cell: str, line: int) -> float:
    """Return a count."""
    value = float(cell) if is_number(cell) else math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"line {line} counts {shortened(cell)}: counts must be finite numbers, 0 or more")
    return value


def collect(pairs: Iterable[Pair], notes: list[str]) -> Pairs:
    """Return a table of pairs; users and items are numbered as they occur."""
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    rows, columns, values = [], [], []
    for line, user, item, value in pairs:
        if not user or not item:
            raise ValueError(f"line {line} has no {'item' if user else 'user'}; fill it in or leave out the line")
        rows.append(users.setdefault(user, len(users)))
        columns.append(items.setdefault(item, len(items)))
        values.append(value)
    if not any(values):
        raise ValueError("it has no pair of a user and an item")
    table = csr_array((np.array(values, dtype=np.float32), (rows, columns)), shape=(len(users), len(items)))
    return Pairs(table, list(users), list(items), notes)


def read_parquet(path: Path, columns: Columns) -> Pairs:
    """Read a table by pandas."""
    table = read_frame(path)
    notes: list[str] = []
    names = [str(name) for name in table.columns]
    user, item, count = find_columns(names, columns, notes)

    def cells(place: int) -> list[Any]:
        column = table.iloc[:, place]
        return [None if empty else value for value, empty in zip(column.tolist(), column.isna(), strict=True)]

    counts = (
        [1.0] * len(table) if count is None else [number(str(cell), row) for row, cell in enumerate(cells(count), 1)]
    )
    labels = ([("" if cell is None else str(cell).strip()) for cell in cells(place)] for place in (user, item))
    return collect(zip(range(1, len(table) + 1), *labels, counts, strict=True), notes)


__all__ = ["Columns", "Pairs", "read_pairs"]
