"""GLOVE10k: the 10,000 most frequent words of GloVe 6B in 300 dimensions."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prodige.datasets.download import Original, fetch
from prodige.datasets.storage import VARIABLE, write_arrays

# 862 MB for 11 MB of use: words are not published one by one.
ARCHIVE = Original(
    "glove.6B.zip",
    ("https://nlp.stanford.edu/data/glove.6B.zip", "https://downloads.cs.stanford.edu/nlp/data/glove.6B.zip"),
)
MEMBER = "glove.6B.300d.txt"
N_WORDS = 10_000

# The archive has no published checksum. This one is of the first 10,000 rows as little-endian float32.
SHA256 = "1564547291b41529ab46b9439a8109c6fae31442ee60b906886df26162e28266"

ADVICE = f"put {ARCHIVE.file} or glove10k.npz into a folder and name it with data_dir=... or {VARIABLE}"


def make(path: Path, folder: Path | None) -> None:
    """Write ``glove10k.npz`` from the original archive, which is not kept."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".glove-") as temporary:
        archive = fetch(ARCHIVE, Path(temporary), folder, ADVICE)
        try:
            with zipfile.ZipFile(archive) as members, members.open(MEMBER) as lines:
                words, X = parse(islice(lines, N_WORDS))
        except (zipfile.BadZipFile, KeyError) as error:
            raise ValueError(f"{ARCHIVE.file} is not the archive of GloVe 6B: {error}; {ADVICE}") from error
    found = hashlib.sha256(X.astype("<f4").tobytes()).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"the first {N_WORDS} rows of {MEMBER} are not those of the paper: their sha256 is {found} instead of "
            f"{SHA256}; {ADVICE}"
        )
    write_arrays(path, X=X, words=words)


def parse(lines: Iterable[bytes]) -> tuple[NDArray[np.str_], NDArray[np.float32]]:
    r"""Read lines of a word and its numbers.

    Examples
    --------
    >>> from prodige.datasets.glove import parse
    >>> parse([b"the 0.25 1\n", b"of 0.5 -1\n"])[1]
    array([[ 0.25,  1.  ],
           [ 0.5 , -1.  ]], dtype=float32)
    """
    words, rows = [], []
    for line in lines:
        word, *numbers = line.decode("utf-8").rstrip("\n").split(" ")
        words.append(word)
        rows.append(np.array(numbers, dtype=np.float32))
    return np.array(words), np.stack(rows)
