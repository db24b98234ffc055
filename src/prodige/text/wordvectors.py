"""Vectors of words: which words are alike, and the text format that all word vectors come in.

A line of a file is a token and its numbers, with spaces between them. Tokens of published files have spaces of their
own now and then, so a line is read from its right end.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from prodige._validation import check_integer
from prodige.graph.atomic import replacing
from prodige.text.vocabulary import PADDING, SPECIAL, UNKNOWN, Vocabulary

Vectors = NDArray[np.float32]

# Share of the words, the rarest ones, whose mean stands for the unknown.
_RARE = 0.1

# Lines that are turned into numbers at once: some megabytes.
_BLOCK = 4096

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words with a vector each.

    Attributes
    ----------
    vocabulary : Vocabulary
        The words.
    vectors : ndarray of float32, shape [V, D]
        Row i belongs to the token with id i. Padding has zeros; what the row of the unknown is depends on where the
        vectors come from, as a rule the mean of rare words.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.vocabulary import Vocabulary
    >>> from prodige.text.wordvectors import WordVectors
    >>> vectors = np.array([[0, 0], [0, 0], [1, 0], [1, 1], [0, 2]], dtype=np.float32)
    >>> words = WordVectors(Vocabulary(["cat", "kitten", "car"]), vectors)
    >>> words
    WordVectors(5 tokens, 2 dimensions)
    >>> [token for token, _ in words.most_similar("cat")]
    ['kitten', 'car']
    """

    vocabulary: Vocabulary
    vectors: Vectors

    def __post_init__(self) -> None:
        if not isinstance(self.vocabulary, Vocabulary):
            raise TypeError(f"vocabulary must be a Vocabulary, got {type(self.vocabulary).__name__}")
        vectors = np.asarray(self.vectors, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(self.vocabulary):
            raise ValueError(
                f"vectors must have a row for each of the {len(self.vocabulary)} tokens, padding and unknown among "
                f"them, got shape {vectors.shape}"
            )
        object.__setattr__(self, "vectors", vectors)

    def __repr__(self) -> str:
        return f"WordVectors({len(self.vocabulary)} tokens, {self.vectors.shape[1]} dimensions)"

    def most_similar(self, token: str, N: int = 10) -> list[tuple[str, float]]:
        """Return the tokens whose vectors have the largest cosine with that of a token.

        Parameters
        ----------
        token : str
            One of the vocabulary, in lower case.
        N : int
            How many others to return; all of them where there are not as many.

        Returns
        -------
        list of (str, float)
            Tokens with their cosines, best first; of equal ones, the more frequent first.

        Raises
        ------
        ValueError
            If the token is not in the vocabulary.
        """
        n = check_integer("N", N, 1, 2**31)
        own = self.vocabulary.index(token)
        if token not in self.vocabulary:
            raise ValueError(f"token {token!r} is not among the {len(self.vocabulary) - len(SPECIAL)} words; {_TRY}")
        # Very long and very short vectors have directions as well: squares are taken of numbers around 1.
        scales = np.abs(self.vectors).max(axis=1, initial=np.finfo(np.float32).tiny)
        directions = self.vectors / scales[:, None]
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        directions /= np.where(lengths > 0, lengths, 1)
        cosines = directions @ directions[own]
        cosines[[PADDING, UNKNOWN, own]] = -np.inf
        order = np.argsort(-cosines, kind="stable")[: min(n, len(self.vocabulary) - len(SPECIAL) - 1)]
        return [(self.vocabulary.tokens[place], float(cosines[place])) for place in order]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the standard text format: a line for each word by id, then one for ``<unk>``; none for padding.

        The file is either complete or not there. Numbers are as short as they can be without losing a bit.

        Parameters
        ----------
        path : path
            Compressed where the name ends in ``.gz``.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import numpy as np
        >>> from prodige.text.vocabulary import Vocabulary
        >>> from prodige.text.wordvectors import WordVectors, load_vectors
        >>> words = WordVectors(Vocabulary(["cat"]), np.array([[0, 0], [0.5, 0.5], [0.1, -2]]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "words.txt"
        ...     words.save(path)
        ...     print(path.read_text())
        cat 0.1 -2.0
        <unk> 0.5 0.5
        <BLANKLINE>
        """
        for number, token in enumerate(self.vocabulary.tokens):
            if "\n" in token or token.strip() != token or ends_with_number(token):
                raise ValueError(
                    f"token {number}, {token!r}, cannot be told from its numbers in a line of text; it must not have a "
                    "line break, a space at its ends, or a space and a number: use another pattern for the vocabulary"
                )
        name = os.fspath(path)
        order = [*range(len(SPECIAL), len(self.vocabulary)), UNKNOWN]
        with replacing(name) as file, compressing(file, name.endswith(".gz")) as output:
            for begin in range(0, len(order), _BLOCK):
                rows = order[begin : begin + _BLOCK]
                numbers = self.vectors[rows].astype(str)  # the shortest text that gives the same float32
                lines = (
                    f"{self.vocabulary.tokens[row]} {' '.join(text)}\n"
                    for row, text in zip(rows, numbers.tolist(), strict=True)
                )
                output.write("".join(lines).encode())


_TRY = "tokens are in lower case, and 'token in vocabulary' tells which there are"


def load_vectors(path: str | os.PathLike[str], max_words: int | None = None) -> WordVectors:
    r"""Read word vectors in the standard text format, as GloVe, word2vec and fastText publish them.

    Parameters
    ----------
    path : path
        Each line is a token and its numbers, in UTF-8; a first line with the numbers of lines and of dimensions may be
        there or not. Compressed with gzip or not. Published files are sorted by frequency, and so are the ids then.
    max_words : int, optional
        Read so many words at most.

    Returns
    -------
    WordVectors
        A line for ``<unk>`` gives the row of the unknown; without one it is the mean of the last tenth of the words,
        which are the rarest. Of words that occur twice the first counts. Counts are 0: files do not have them.

    Raises
    ------
    ValueError
        If a line has another number of numbers than the first, or something else than finite numbers; the message says
        which.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from prodige.text.wordvectors import load_vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "words.txt"
    ...     _ = path.write_text("the 0.5 1\n. . . -1 0.25\n")
    ...     words = load_vectors(path)
    >>> words.vocabulary.tokens[2:], words.vectors[3]
    (('the', '. . .'), array([-1.  ,  0.25], dtype=float32))
    """
    name = os.fspath(path)
    if max_words is not None:
        check_integer("max_words", max_words, 1, 2**31)
    with open(name, "rb") as file, decompressing(file) as lines:
        try:
            tokens, vectors = parse(lines, max_words)
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{name} cannot be read as word vectors: {error}") from error
    return assemble(tokens, vectors)


def assemble(tokens: list[str], vectors: Vectors) -> WordVectors:
    """Return word vectors with rows for padding and unknown."""
    first = {token: row for row, token in reversed(list(enumerate(tokens)))}
    unknown = first.pop(SPECIAL[UNKNOWN], None)
    first.pop(SPECIAL[PADDING], None)
    rows = sorted(first.values())
    table = np.zeros((len(SPECIAL) + len(rows), vectors.shape[1]), dtype=np.float32)
    table[len(SPECIAL) :] = vectors[rows]
    fill_special(table)
    if unknown is not None:
        table[UNKNOWN] = vectors[unknown]
    return WordVectors(Vocabulary([tokens[row] for row in rows]), table)


def fill_special(vectors: Vectors) -> None:
    """Give padding a vector of zeros, and the unknown the mean of the rarest tenth of the words.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.wordvectors import fill_special
    >>> vectors = np.array([[9.0], [9.0], [5.0], [1.0]], dtype=np.float32)
    >>> fill_special(vectors)
    >>> vectors.ravel()
    array([0., 1., 5., 1.], dtype=float32)
    """
    n_words = len(vectors) - len(SPECIAL)
    vectors[PADDING] = 0
    vectors[UNKNOWN] = 0
    if n_words:
        vectors[UNKNOWN] = vectors[-max(1, round(_RARE * n_words)) :].mean(axis=0, dtype=np.float64)


# -- the text format -------------------------------------------------------------------------------------------------


def parse(lines: Iterator[bytes], max_words: int | None) -> tuple[list[str], Vectors]:
    """Read tokens and numbers; errors name the line, counted from 1."""
    head = list(islice(lines, 2))
    if not head:
        raise ValueError("it is empty")
    n_promised = 0
    if is_header(head):
        n_promised, size = map(int, head.pop(0).split())
        number = 2
    else:
        size = count_numbers(head[0])
        number = 1
    if size == 0:
        raise ValueError(f"line {number} has no numbers: {head[0][:40]!r}")
    tokens: list[str] = []
    blocks: list[Vectors] = []
    rows = chain(head, lines)
    while block := list(islice(rows, _BLOCK if max_words is None else min(_BLOCK, max_words - len(tokens)))):
        found, numbers = parse_block(block, size, number + len(tokens))
        tokens += found
        blocks.append(numbers)
    if max_words is None and n_promised > len(tokens):
        raise ValueError(f"it broke off: its first line promises {n_promised} words, there are {len(tokens)}")
    return tokens, np.concatenate(blocks)


def is_header(head: list[bytes]) -> bool:
    """Whether the first line says how many words and dimensions follow, as the second one confirms."""
    fields = head[0].split()
    if len(head) < 2 or len(fields) != 2 or not all(field.isdigit() for field in fields):
        return False
    return 1 <= int(fields[1]) <= count_numbers(head[1])


def count_numbers(line: bytes) -> int:
    """Return how many numbers there are at the right end of a line, after a token.

    Examples
    --------
    >>> from prodige.text.wordvectors import count_numbers
    >>> count_numbers(b"1990 0.5 2"), count_numbers(b"at name@domain.com 0.5 2")
    (2, 2)
    """
    fields = line.split()
    n = 0
    while n < len(fields) - 1 and is_number(fields[-1 - n]):
        n += 1
    return n


def is_number(field: bytes) -> bool:
    """Whether a field can be read as a number, be it finite or not."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def ends_with_number(token: str) -> bool:
    """Whether a token has a space and a number after it; one that is nothing but a number does not count."""
    head, _, tail = token.rpartition(" ")
    return bool(head) and is_number(tail.encode(errors="replace"))


def parse_block(lines: list[bytes], size: int, first: int) -> tuple[list[str], Vectors]:
    """Read some lines of a token and ``size`` numbers each; the first has the number ``first``."""
    rows = [line.rstrip().rsplit(b" ", size) for line in lines]
    try:
        with np.errstate(over="ignore"):
            numbers = np.array([row[1:] for row in rows]).astype(np.float32)
        tokens = [row[0].decode() for row in rows]
    except ValueError:
        numbers = np.empty((0, 0), dtype=np.float32)
    if numbers.shape != (len(lines), size) or not np.isfinite(numbers).all():
        number, row = next((number, row) for number, row in enumerate(rows) if explain(row, size))
        raise ValueError(f"line {first + number} {explain(row, size)}")
    for number, token in enumerate(tokens):
        if ends_with_number(token):  # so the line has one too many
            raise ValueError(f"line {first + number} has {count_numbers(lines[number])} numbers, {size} were expected")
    return tokens, numbers


def explain(row: list[bytes], size: int) -> str:
    """Say what is wrong with the fields of a line; nothing if it is well."""
    if len(row) != size + 1:
        return f"has {len(row) - 1} numbers, {size} were expected"
    for field in row[1:]:
        with np.errstate(over="ignore"):
            if not is_number(field) or not np.isfinite(np.float32(field)):
                return f"has {field[:40].decode(errors='replace')!r} in the place of a finite number"
    try:
        row[0].decode()
    except UnicodeDecodeError as error:
        return f"is not UTF-8: {error}"
    return ""


@contextmanager
def compressing(file: BinaryIO, target: bool) -> Iterator[BinaryIO]:
    """Give the file, or a way to write to it with compression."""
    if not target:
        yield file
        return
    # Without time and name, the same vectors give the same file.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        yield packed  # type: ignore[misc]


@contextmanager
def decompressing(file: BinaryIO) -> Iterator[Iterator[bytes]]:
    """Give the lines of a file, compressed or not."""
    is_packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    if not is_packed:
        yield iter(file)
        return
    with gzip.GzipFile(fileobj=file) as packed:
        yield iter(packed)


__all__ = ["WordVectors", "load_vectors"]
