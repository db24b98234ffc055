"""Pinterest from its original files, made small, and from a file of our own."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prodige.datasets import INTERACTIONS, load, load_interactions, pinterest

TRAIN = "0\t2\t1\t0\n0\t0\t1\t0\n1\t3\t1\t0\n0\t2\t1\t0\n2\t1\t1\t0\n"
TEST = "(0,1)\t3\t4\n(1,0)\t4\t2\n(2,5)\t0\t3\n"
COUNTS = [[1, 0, 2, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0]]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No folder of the user's, an empty cache, and no way to download."""
    monkeypatch.delenv("PRODIGE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("TRAIN", "TEST"):
        monkeypatch.setattr(pinterest, name, dataclasses.replace(getattr(pinterest, name), urls=()))
    return tmp_path / "cache" / "prodige"


def publish(monkeypatch: pytest.MonkeyPatch, folder: Path, train: str = TRAIN, test: str = TEST) -> Path:
    """Put small files where the originals would be."""
    folder.mkdir(exist_ok=True)
    for name, text in (("TRAIN", train), ("TEST", test)):
        original = getattr(pinterest, name)
        (folder / original.file).write_text(text)
        monkeypatch.setattr(pinterest, name, dataclasses.replace(original, urls=((folder / original.file).as_uri(),)))
    return folder


def write(folder: Path, **changes: Any) -> Path:
    """Write a file with the fields of the loader."""
    arrays: dict[str, Any] = {
        "train_user": np.array([0, 0, 1, 2], dtype=np.uint16),
        "train_item": np.array([0, 2, 3, 1], dtype=np.uint16),
        "train_count": np.array([1, 2, 1, 1], dtype=np.uint8),
        "test_item": np.array([1, 0, 5], dtype=np.uint16),
        "test_neg_resampled": np.array([[3, 4], [4, 2], [0, 3]], dtype=np.uint16),
        "n_users": np.array(3),
        "n_items": np.array(6),
    }
    np.savez(folder / "pinterest.npz", **(arrays | changes))
    return folder


def check(folder: Path | None = None) -> None:
    data = load_interactions("pinterest", folder)
    np.testing.assert_array_equal(data.train.toarray(), COUNTS)
    assert data.train.dtype == np.float32
    np.testing.assert_array_equal(data.held_out, [1, 0, 5])
    np.testing.assert_array_equal(data.negatives, [[3, 4], [4, 2], [0, 3]])
    assert data.held_out.dtype == data.negatives.dtype == np.int64
    assert repr(data) == "Interactions('pinterest', 3 users, 6 items, 4 pairs)"


def test_downloaded_once_and_kept(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = publish(monkeypatch, tmp_path / "public")
    check()
    assert [entry.name for entry in cache.iterdir()] == ["pinterest.npz"]
    for entry in public.iterdir():
        entry.unlink()
    check()


def test_the_users_own_copies(tmp_path: Path) -> None:
    for name, text in (("pinterest-20.train.rating", TRAIN), ("pinterest-20.test.negative", TEST)):
        (tmp_path / name).write_text(text)
    check(tmp_path)


def test_a_file_of_the_users(tmp_path: Path, cache: Path) -> None:
    check(write(tmp_path))
    assert not cache.exists()


def test_offline(cache: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"pinterest-20.train.rating .*, or pinterest.npz, into a folder"):
        load_interactions()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (TRAIN, TEST.replace("(1,0)", "(7,0)"), "a line for every user"),
        (TRAIN, "".join(TEST.splitlines(keepends=True)[:2]), "a line for every user"),
        (TRAIN, TEST.replace("\t4\t2", "\t4"), "line 2 has 3 numbers, the first has 4"),
        (TRAIN.replace("1\t3", "1\tthree"), TEST, "'three"),
        (TRAIN.replace("1\t3", "1\t-3"), TEST, "ids must be 0 or more, got -3"),
        ("", TEST, "got no line"),
        (TRAIN, "<html>\n", "3 numbers or more"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, train: str, test: str, message: str
) -> None:
    publish(monkeypatch, tmp_path / "public", train, test)
    with pytest.raises(ValueError, match=f"not the published files: .*{message}.*; put pinterest-20.train.rating and"):
        load_interactions()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_user": np.array([0, 0, 1, 3])}, "train_user of .* ids from 0 to 2, got 0 to 3"),
        ({"train_item": np.array([0, 2, -1, 1])}, "train_item of .* ids from 0 to 5, got -1 to 2"),
        ({"test_item": np.array([1, 0, 6])}, "test_item of .* ids from 0 to 5"),
        ({"test_neg_resampled": np.full((3, 2), 6)}, "test_neg_resampled of .* ids from 0 to 5"),
        ({"test_item": np.array([1, 0])}, r"must be as long .* test_item \(2,\)"),
        ({"train_count": np.array([1, 1])}, r"must be as long .* train_count \(2,\)"),
        ({"train_count": np.ones(4)}, r"train_count of .* must have .* a dtype of kind i or u"),
        ({"n_items": np.array([6])}, r"n_items of .* must have shape \(\)"),
    ],
)
def test_bad_files(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_interactions("pinterest", write(tmp_path, **changes))


def test_names() -> None:
    assert INTERACTIONS == ("pinterest", "lastfm")
    with pytest.raises(ValueError, match="name must be one of 'pinterest', 'lastfm', got 'movielens'"):
        load_interactions("movielens")
    with pytest.raises(ValueError, match="got 'pinterest'; use load_interactions"):
        load("pinterest")


def test_published_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for original in (pinterest.TRAIN, pinterest.TEST):
        assert all(url.endswith(f"/Data/{original.file}") for url in original.urls)
        assert original.urls
