"""Reading tables: lines of cells, and Parquet; what the readers of matrices, of pairs and of labelled texts share.

Messages begin with "it": whoever reads a file puts its name before them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from prodige.graph.reading import open_regular

# What separates the cells of a table of text, by the ending of its name.
DELIMITERS = {".csv": ",", ".tsv": "\t"}

# The number of a line, and its cells.
Line = tuple[int, list[str]]


class Lines(NamedTuple):
    """A table of text while it is read: its first line or two, and those that follow."""

    first: list[Line]
    others: Iterator[Line]


def check_ending(path: Path, known: Iterable[str], remedy: str) -> str:
    """Return how a file ends, in lower case; refuse what is not read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from prodige.cli.tables import check_ending
    >>> check_ending(Path("X.NPY"), [".npy", ".csv"], "give one of .npy, .csv")
    '.npy'
    """
    suffix = path.suffix.lower()
    if suffix not in known:
        kind = f"ending in {suffix}" if suffix else "without an ending"
        raise ValueError(f"{path}: files {kind} are not read; {remedy}")
    return suffix


@contextmanager
def open_lines(path: Path, delimiter: str = ",") -> Iterator[Lines]:
    """Open a table of text; empty lines are passed over."""
    # A byte order mark, as spreadsheets write it, is no part of the first name.
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=delimiter)
        lines = ((reader.line_num, cells) for cells in reader if cells)
        first = list(islice(lines, 2))
        if not first:
            raise ValueError("it is empty")
        yield Lines(first, lines)


def read_frame(path: Path) -> Any:
    """Read a Parquet file as a data frame of pandas (extra ``tables``)."""
    try:
        import pandas as pd
        import pyarrow
    except ImportError as error:
        raise ImportError("reading .parquet files needs pandas and pyarrow; pip install 'prodige[tables]'") from error

    with open_regular(path) as file:  # the system says best what is wrong with a path
        try:
            return pd.read_parquet(file, engine="pyarrow")
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"it cannot be read as Parquet ({error})") from error


def is_number(cell: str) -> bool:
    """Whether a cell can be read as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
