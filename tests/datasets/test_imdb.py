"""IMDB from its original archive, made small, and from files of our own."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prodige.datasets import TEXTS, imdb, load, load_texts

MEMBERS = {
    "aclImdb/train/pos/10_9.txt": "A joy, café and all.",
    "aclImdb/train/pos/2_7.txt": "Fine\u2028film <br /> over two lines\u0085of text",
    "aclImdb/train/neg/0_3.txt": "Dull.",
    "aclImdb/train/unsup/0_0.txt": "Nobody knows.",
    "aclImdb/train/labeledBow.feat": "9 0:9",
    "aclImdb/test/pos/0_10.txt": "Superb!",
    "aclImdb/test/neg/0_1.txt": "",
    "aclImdb/README": "Large Movie Review Dataset",
}
TRAIN = ["Dull.", "Fine\u2028film <br /> over two lines\u0085of text", "A joy, café and all."]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No folder of the user's, an empty cache, and no way to download."""
    monkeypatch.delenv("PRODIGE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(imdb, "ARCHIVE", dataclasses.replace(imdb.ARCHIVE, urls=()))
    return tmp_path / "cache" / "prodige"


def pack(folder: Path, members: dict[str, str] = MEMBERS) -> Path:
    """Write an archive like the original."""
    folder.mkdir(exist_ok=True)
    path = folder / imdb.ARCHIVE.file
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            data = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def publish(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Make an archive the original."""
    digest = hashlib.md5(path.read_bytes()).hexdigest()
    monkeypatch.setattr(imdb, "ARCHIVE", dataclasses.replace(imdb.ARCHIVE, urls=(path.as_uri(),), md5=digest))


def check(folder: Path | None = None) -> None:
    data = load_texts("imdb", folder)
    assert data.train == TRAIN
    assert data.test == ["", "Superb!"]
    np.testing.assert_array_equal(data.train_labels, [0, 1, 1])
    np.testing.assert_array_equal(data.test_labels, [0, 1])
    assert data.train_labels.dtype == data.test_labels.dtype == np.int64
    assert repr(data) == "LabelledTexts('imdb', 3 texts to train, 2 to test, 2 classes)"


def test_downloaded_once_and_kept(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = pack(tmp_path / "public")
    publish(monkeypatch, archive)
    check()
    assert sorted(entry.name for entry in cache.iterdir()) == ["imdb_test.jsonl.gz", "imdb_train.jsonl.gz"]
    with gzip.open(cache / "imdb_train.jsonl.gz", "rt", encoding="utf-8") as lines:
        assert json.loads(next(lines)) == {"id": 0, "label": 0, "rating": 3, "text": "Dull."}
    archive.unlink()
    check()


def test_the_users_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, pack(tmp_path))
    monkeypatch.setattr(imdb, "ARCHIVE", dataclasses.replace(imdb.ARCHIVE, urls=()))
    check(tmp_path)


def test_files_of_the_users(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part, reviews in imdb.read_archive(pack(tmp_path / "archive")).items():
        imdb.write_reviews(tmp_path / f"imdb_{part}.jsonl.gz", reviews)
    check(tmp_path)
    monkeypatch.setenv("PRODIGE_DATA", str(tmp_path))
    check()
    assert load_texts().path == tmp_path
    assert not cache.exists()


def test_offline(cache: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"aclImdb_v1.tar.gz.*imdb_train.jsonl.gz and imdb_test.* a folder"):
        load_texts()
    assert list(cache.iterdir()) == []


def test_other_archives_are_refused(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_test = {name: text for name, text in MEMBERS.items() if "test" not in name}
    publish(monkeypatch, pack(tmp_path / "public", without_test))
    with pytest.raises(ValueError, match="not the archive of the reviews: it has none to test; put aclImdb"):
        load_texts()
    broken = tmp_path / "public" / "broken"
    broken.write_bytes(pack(tmp_path / "public").read_bytes()[:200])
    publish(monkeypatch, broken)
    with pytest.raises(ValueError, match=r"not the archive of the reviews: .*; put aclImdb"):
        load_texts()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "cannot be read as lines of JSON"),
        ("[1]", r"line 2 must have a text and a label of 0 or 1, got '\[1\]'"),
        ('{"label": 1}', "line 2 must have a text"),
        ('{"label": 1, "text": 3}', "line 2 must have a text"),
        ('{"label": 2, "text": "x"}', "line 2 must have a text and a label of 0 or 1"),
        ('{"label": true, "text": "x"}', "line 2 must have a text and a label of 0 or 1"),
    ],
)
def test_bad_files(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, "test", '{"label": 1, "text": "x"}\n')
    path = write(tmp_path, "train", '{"label": 1, "text": "x"}\n' + line + "\n")
    with pytest.raises(ValueError, match=f"{path.name} .*{message}"):
        load_texts("imdb", tmp_path)


def test_files_without_reviews(tmp_path: Path) -> None:
    path = write(tmp_path, "train", "")
    with pytest.raises(ValueError, match="has no reviews"):
        imdb.read_reviews(path)
    path.write_bytes(b"plain")
    with pytest.raises(ValueError, match="cannot be read as lines of JSON"):
        imdb.read_reviews(path)


def write(folder: Path, part: str, lines: Any) -> Path:
    path = folder / f"imdb_{part}.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write(lines)
    return path


def test_names() -> None:
    assert TEXTS == ("imdb", "mr")
    with pytest.raises(ValueError, match="name must be one of 'imdb', 'mr', got 'yelp'"):
        load_texts("yelp")
    with pytest.raises(ValueError, match="got 'imdb'; use load_texts"):
        load("imdb")


def test_published_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert imdb.ARCHIVE.urls
    assert all(url.endswith(f"/{imdb.ARCHIVE.file}") for url in imdb.ARCHIVE.urls)
    assert imdb.ARCHIVE.md5
