"""Reading texts and their labels: what ``prodige classify`` learns from, and what it predicts.

A table has a column of texts and one of labels; a file of lines has one text in each. Labels are kept as they are
written, as text.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from prodige.cli.pairs import find_column
from prodige.cli.tables import DELIMITERS, check_ending
from prodige.graph.header import shortened

KNOWN = (*DELIMITERS, ".jsonl")

# Longer cells than csv takes by itself, as a review may be: 128 MB.
_LONGEST = 2**27


class Labelled(NamedTuple):
    """Texts with a label each.

    Attributes
    ----------
    texts, labels : list of str
    """

    texts: list[str]
    labels: list[str]


def read_labelled(path: Path, text: str = "text", label: str = "label", header: bool | None = None) -> Labelled:
    r"""Read texts and labels from a ``.csv``, ``.tsv`` or ``.jsonl`` file.

    Parameters
    ----------
    path : Path
    text, label : str
        Names of the columns or fields; in tables also numbers from 1.
    header : bool, optional
        Whether the first line of a table has names of columns; when left out, if one is asked for by its name.

    Raises
    ------
    ValueError
        If it is not such a table; the message names the file and the line, and says what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from prodige.cli.labelled import read_labelled
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "reviews.csv")
    ...     _ = path.write_text("label,text\ngood,a fine film\nbad,\"long, and dull\"\n")
    ...     read_labelled(path)
    Labelled(texts=['a fine film', 'long, and dull'], labels=['good', 'bad'])
    """
    ending = check_ending(path, KNOWN, f"give texts with labels ({', '.join(KNOWN)}), or a saved .prodige file")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            if ending == ".jsonl":
                pairs = from_lines(file, text, label)
            else:
                pairs = from_cells(file, DELIMITERS[ending], text, label, header)
            texts, labels = [], []
            for line, one, other in pairs:
                if not other:
                    raise ValueError(f"line {line} has no label; fill it in or leave out the line")
                texts.append(one)
                labels.append(other)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}: {error}") from error
    if not texts:
        raise ValueError(f"{path}: it has no texts")
    return Labelled(texts, labels)


def from_cells(
    file: IO[str], delimiter: str, text: str, label: str, header: bool | None
) -> Iterator[tuple[int, str, str]]:
    """Yield the number, the text and the label of each line of a table."""
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(file, delimiter=delimiter)
    names = next(reader, None)
    if names is None:
        raise ValueError("it is empty")
    if header is None:  # who names columns by their numbers has no names for them
        header = not (text.isdecimal() and label.isdecimal())
    places = find_column(names, "--text-column", text), find_column(names, "--label-column", label)
    if places[0] == places[1]:
        raise ValueError(f"texts and labels must be different columns, got {text!r} and {label!r}")
    if not header:
        yield 1, names[places[0]], names[places[1]].strip()
    for cells in reader:
        if not cells:
            continue
        if len(cells) != len(names):
            raise ValueError(f"line {reader.line_num} has {len(cells)} cells, the first has {len(names)}")
        yield reader.line_num, cells[places[0]], cells[places[1]].strip()


def from_lines(file: IO[str], text: str, label: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number, the text and the label of each line of JSON."""
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} is no JSON ({error})") from error
        if not isinstance(entry, dict):
            raise ValueError(f"line {number} should be an object with {text!r} and {label!r}, got {shortened(line)}")
        for name, option in ((text, "--text-column"), (label, "--label-column")):
            if name not in entry:
                known = ", ".join(repr(one) for one in entry) or "none"
                raise ValueError(f"line {number} has no {name!r} for {option}; it has {known}")
        if not isinstance(entry[text], str):
            raise ValueError(f"line {number} has {shortened(entry[text])} where a text should be")
        yield number, entry[text], as_label(entry[label])


def as_label(value: Any) -> str:
    """Return a label as it is written in JSON, nothing for one that is missing.

    Examples
    --------
    >>> from prodige.cli.labelled import as_label
    >>> as_label("good"), as_label(1), as_label(True), as_label(None)
    ('good', '1', 'true', '')
    """
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value)


def read_lines(path: Path | None) -> list[str]:
    """Return the lines of a file, or of standard input where it is None or "-": one text each, empty ones included."""
    if path is None or str(path) == "-":
        stream: Iterable[bytes] = sys.stdin.buffer
        return decoded(stream, "standard input")
    with open(path, "rb") as file:
        return decoded(file, str(path))


def decoded(lines: Iterable[bytes], name: str) -> list[str]:
    """Return lines of bytes as text."""
    texts = []
    for number, line in enumerate(lines, start=1):
        try:
            texts.append(line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}: line {number} is not in UTF-8 ({error.reason}); convert the file") from error
    if not texts:
        raise ValueError(f"{name}: it has no lines")
    return texts


__all__ = ["Labelled", "read_labelled", "read_lines"]
