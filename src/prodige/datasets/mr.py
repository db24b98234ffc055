"""MR: 10,662 sentences of film reviews, each in favour of the film or against it.

Pang and Lee (ACL 2005) publish two files, one sentence a line, without a split. Here all sentences are in one file in
two parts, nine in ten to learn from, drawn once at random: ``train``, ``y_train``, ``test``, ``y_test``, with 1 for
those in favour. Figures are usually means over several such splits.
"""

from __future__ import annotations

import tarfile
import tempfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prodige.datasets.download import Original, fetch
from prodige.datasets.storage import VARIABLE, Field, read_arrays, write_arrays

FILE = "mr.npz"
ARCHIVE = Original(
    "rt-polaritydata.tar.gz",
    ("https://www.cs.cornell.edu/people/pabo/movie-review-data/rt-polaritydata.tar.gz",),
)
ADVICE = f"put {ARCHIVE.file} or {FILE} into a folder and name it with data_dir=... or {VARIABLE}"

_MEMBERS = ("rt-polaritydata/rt-polarity.neg", "rt-polaritydata/rt-polarity.pos")
_TEST_SHARE = 10


def make(path: Path, folder: Path | None) -> None:
    """Write the file from the original archive, which is not kept."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".mr-") as temporary:
        archive = fetch(ARCHIVE, Path(temporary), folder, ADVICE)
        try:
            parts = read_archive(archive)
        except (tarfile.TarError, EOFError, OSError, KeyError, zlib.error) as error:
            raise ValueError(f"{ARCHIVE.file} is not the archive of the sentences: {error}; {ADVICE}") from error
    texts = np.array([*parts[0], *parts[1]])
    labels = np.repeat([0, 1], [len(part) for part in parts])
    order = np.random.default_rng(0).permutation(texts.size)
    test, train = np.split(order, [texts.size // _TEST_SHARE])
    write_arrays(path, train=texts[train], y_train=labels[train], test=texts[test], y_test=labels[test])


def read_archive(path: Path) -> list[list[str]]:
    """Return the sentences against and in favour."""
    parts = []
    with tarfile.open(path, "r:gz") as archive:  # members are read, and none is written anywhere
        for name in _MEMBERS:
            file = archive.extractfile(name)
            if file is None:
                raise KeyError(f"{name} is no file")
            lines = file.read().decode("cp1252", "replace").split("\n")
            parts.append([line.strip() for line in lines if line.strip()])
    if not all(parts):
        raise KeyError("a part has no sentences")
    return parts


def read_sentences(path: Path) -> tuple[list[str], NDArray[np.int64], list[str], NDArray[np.int64]]:
    """Return texts and labels of both parts, after making sure that they belong together."""
    arrays = read_arrays(
        path,
        train=Field("U", (-1,)),
        y_train=Field("iu", (-1,)),
        test=Field("U", (-1,)),
        y_test=Field("iu", (-1,)),
    )
    found: list[tuple[list[str], NDArray[np.int64]]] = []
    for part in ("train", "test"):
        texts, labels = arrays[part], arrays[f"y_{part}"].astype(np.int64)
        if texts.size != labels.size or not texts.size or not np.isin(labels, (0, 1)).all():
            raise ValueError(f"{part} of {path} must have a label of 0 or 1 for each of {texts.size} texts")
        found.append((texts.tolist(), labels))
    return *found[0], *found[1]
