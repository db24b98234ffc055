"""Reading interactions from a table of pairs of users and items: what ``prodige recommend`` takes as data.

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

from prodige.cli.tables import DELIMITERS, Line, check_ending, is_number, open_lines, read_frame
from prodige.graph.header import shortened

# Names that columns go by in the files of others, letters and digits in lower case. A line with a name of users or of
# items is no pair, so none of these may be what a user or an item is called.
_NAMES = {
    "user": {"user", "users", "userid", "customerid"},
    "item": {"item", "items", "itemid", "movieid", "productid", "bookid", "songid", "trackid", "artistid"},
    "weight": {"count", "weight"},
}

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
    """Which columns to read, by their names or numbers from 1; where left out, their names say which they are."""

    user: str | None = None
    item: str | None = None
    weight: str | None = None

    @property
    def have_names(self) -> bool:
        """Whether one is asked for by its name."""
        return any(one is not None and not one.isdecimal() for one in (self.user, self.item, self.weight))


BY_NAME = Columns()


def read_pairs(path: Path, columns: Columns = BY_NAME, header: bool | None = None) -> Pairs:
    r"""Read pairs of users and items from a ``.csv``, ``.tsv`` or ``.parquet`` file.

    Parameters
    ----------
    path : Path
    columns : Columns
        Which are the users, the items and the weights. Those left out are known by their names ("user", "UserId",
        "item_id", "movieId", "count" and the like), or by being the only one left. Where no column has a name, the
        first has the users and the second the items.
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
        names = [name.strip() for name in first[0][1]] if header else [""] * len(first[0][1])
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
    if {plain(cell) for cell in first} & (_NAMES["user"] | _NAMES["item"]):
        return True, []
    if any(is_number(below) and not is_number(cell) for cell, below in zip(first, second, strict=False)):
        return True, []
    if any(is_number(cell) for cell in first):
        return False, []
    return False, ["line 1 is taken for a pair; use --header if it has names of columns"]


def find_columns(names: list[str], columns: Columns, notes: list[str]) -> tuple[int, int, int | None]:
    """Return the places of users, items and weights; tell of columns that are left out."""
    if len(names) < 2:
        raise ValueError("it has one column where users and items should be; cells must be separated by commas or tabs")
    found = {
        kind: find_column(names, f"--{kind}-column", target) if target is not None else known_column(names, kind)
        for kind, target in (("user", columns.user), ("item", columns.item), ("weight", columns.weight))
    }
    for kind in ("user", "item"):
        if found[kind] is None:
            found[kind] = remaining_column(names, kind, found)
    user, item, weight = found["user"], found["item"], found["weight"]
    assert user is not None
    assert item is not None
    if len({user, item, weight}) < 3:
        places = ", ".join(str(place + 1) for place in (user, item, weight) if place is not None)
        raise ValueError(f"users, items and weights must be different columns, got {places}; name all of them")
    left = [place for place in range(len(names)) if place not in (user, item, weight)]
    if left:
        notes.append(
            f"not read: column {listed(names, left)}"
            + ("" if weight is not None else "; --weight-column names one that counts")
        )
    return user, item, weight


def known_column(names: list[str], kind: str) -> int | None:
    """Return the place of the column whose name says that it has the users, the items or the weights.

    Examples
    --------
    >>> from prodige.cli.pairs import known_column
    >>> known_column(["timestamp", "User ID", "movieId"], "item")
    2
    """
    places = [place for place, name in enumerate(names) if plain(name) in _NAMES[kind]]
    if len(places) > 1:
        raise ValueError(
            f"it has {len(places)} columns that could be the {kind}s: {listed(names, places)}; "
            f"say which with --{kind}-column"
        )
    return places[0] if places else None


def remaining_column(names: list[str], kind: str, found: dict[str, int | None]) -> int:
    """Return the place of users or items that no name and no option tells, if only one is possible."""
    if not any(names):
        return 0 if kind == "user" else 1
    left = [place for place in range(len(names)) if place not in found.values()]
    if len(left) != 1:
        raise ValueError(
            f"its names of columns do not say which has the {kind}s: {listed(names, range(len(names)))}; "
            f"say so with --user-column and --item-column, or --no-header if line 1 is a pair"
        )
    return left[0]


def plain(name: str) -> str:
    """Return letters and digits of a name, in lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def listed(names: list[str], places: Iterable[int]) -> str:
    """Return columns for a message: their numbers from 1 and their names."""
    return ", ".join(f"{place + 1} ({names[place]!r})" if names[place] else f"{place + 1}" for place in places)


def find_column(names: list[str], option: str, target: str) -> int:
    """Return the place of a column by its name, or by its number from 1.

    Examples
    --------
    >>> from prodige.cli.pairs import find_column
    >>> find_column(["reader", "book"], "--item-column", "book"), find_column(["", ""], "--item-column", "2")
    (1, 1)
    """
    if names.count(target) > 1:
        same = [place for place, name in enumerate(names) if name == target]
        raise ValueError(f"it has {len(same)} columns {target!r}: {listed(names, same)}; give {option} a number")
    if target in names:
        return names.index(target)
    if target.isdecimal() and 1 <= int(target) <= len(names):
        return int(target) - 1
    known = ", ".join(repr(name) for name in names if name) or "none with a name"
    raise ValueError(f"there is no column {target!r} for {option}; there are {len(names)}: {known}")


def parse(lines: Iterable[Line], n_columns: int, places: tuple[int, int, int | None]) -> Iterator[Pair]:
    """Yield what each line says."""
    user, item, weight = places
    for line, cells in lines:
        if len(cells) != n_columns:
            raise ValueError(f"line {line} has {len(cells)} cells, the first has {n_columns}")
        yield line, cells[user].strip(), cells[item].strip(), 1.0 if weight is None else number(cells[weight], line)


def number(cell: str, line: int) -> float:
    """Return a weight."""
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
    user, item, weight = find_columns(names, columns, notes)

    def cells(place: int) -> list[Any]:
        column = table.iloc[:, place]
        return [None if empty else value for value, empty in zip(column.tolist(), column.isna(), strict=True)]

    weights = (
        [1.0] * len(table) if weight is None else [number(str(cell), row) for row, cell in enumerate(cells(weight), 1)]
    )
    labels = ([("" if cell is None else str(cell).strip()) for cell in cells(place)] for place in (user, item))
    return collect(zip(range(1, len(table) + 1), *labels, weights, strict=True), notes)


__all__ = ["Columns", "Pairs", "read_pairs"]
