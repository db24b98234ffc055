"""IMDB: 50,000 film reviews, half of them to learn from, each in favour of the film or against it.

Maas et al. (ACL 2011) publish an archive with a file for each review, whose name holds a number and a rating from 1 to
10. Here a part is one file with a line of JSON for each review: ``id``, ``label`` (1 in favour), ``rating``, ``text``.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.datasets.download import Original, fetch
from prodige.datasets.storage import VARIABLE
from prodige.graph.atomic import replacing

ARCHIVE = Original(
    "aclImdb_v1.tar.gz",
    ("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",),
    "7c2ac02c03563afcf9b574c7e56c153a",
)

PARTS = ("train", "test")

ADVICE = (
    f"put {ARCHIVE.file}, or imdb_train.jsonl.gz and imdb_test.jsonl.gz, into a folder and name it with data_dir=... "
    f"or {VARIABLE}"
)

_LABELS = ("neg", "pos")
_MEMBER = re.compile(r"aclImdb/(train|test)/(neg|pos)/(\d+)_(\d+)\.txt")

Review = tuple[int, int, int, str]  # label, id, rating, text


def file_of(part: str) -> str:
    """Return the name of the file of a part.

    Examples
    --------
    >>> from prodige.datasets.imdb import file_of
    >>> file_of("train")
    'imdb_train.jsonl.gz'
    """
    return f"imdb_{part}.jsonl.gz"


def make(path: Path, folder: Path | None) -> None:
    """Write the files of both parts beside each other from the original archive, which is not kept."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".imdb-") as temporary:
        archive = fetch(ARCHIVE, Path(temporary), folder, ADVICE)
        try:
            reviews = read_archive(archive)
        except (tarfile.TarError, EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
            raise ValueError(f"{ARCHIVE.file} is not the archive of the reviews: {error}; {ADVICE}") from error
    for part in PARTS:
        if not reviews[part]:
            raise ValueError(f"{ARCHIVE.file} is not the archive of the reviews: it has none to {part}; {ADVICE}")
    for part in PARTS:
        write_reviews(path.parent / file_of(part), reviews[part])


def read_archive(path: Path) -> dict[str, list[Review]]:
    """Return the reviews of both parts by label and number; those without a label are left out."""
    reviews: dict[str, list[Review]] = {part: [] for part in PARTS}
    with tarfile.open(path, "r:gz") as archive:  # members are read one by one, and none is written anywhere
        for member in archive:
            name = _MEMBER.fullmatch(member.name)
            file = archive.extractfile(member) if name and member.isfile() else None
            if name and file:
                part, label, number, rating = name.groups()
                reviews[part].append((_LABELS.index(label), int(number), int(rating), file.read().decode("utf-8")))
    return {part: sorted(found) for part, found in reviews.items()}


def write_reviews(path: Path, reviews: list[Review]) -> None:
    """Write reviews to a file that is either complete or not there."""
    with (
        replacing(str(path)) as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed,
    ):
        for label, number, rating, text in reviews:
            line = json.dumps({"id": number, "label": label, "rating": rating, "text": text}, ensure_ascii=False)
            packed.write(line.encode("utf-8") + b"\n")


def read_reviews(path: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Return the texts and labels of a file, after making sure that each line has both."""
    texts: list[str] = []
    labels: list[int] = []
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                text, label = fields_of(json.loads(line), number)
                texts.append(text)
                labels.append(label)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as lines of JSON ({error}); get or make it anew") from error
    if not texts:
        raise ValueError(f"{path} has no reviews; get or make it anew")
    return texts, np.array(labels, dtype=np.int64)


def fields_of(review: Any, number: int) -> tuple[str, int]:
    """Return the text and the label of a line."""
    text, label = (review.get("text"), review.get("label")) if isinstance(review, dict) else (None, None)
    if not isinstance(text, str) or isinstance(label, bool) or label not in (0, 1):
        raise ValueError(f"line {number} must have a text and a label of 0 or 1, got {str(review)[:60]!r}")
    return text, int(label)
