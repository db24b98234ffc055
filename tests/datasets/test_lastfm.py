"""Last.fm from its original files, made small, and from a file of our own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from prodige.datasets import lastfm, load_interactions

TRAIN = "0\t2\t1\t0\n0\t0\t1\t0\n1\t3\t1\t0\n"
TEST = "(0,1)\t3\t4\n(1,0)\t4\t2\n"


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No folder of the user's, an empty cache, and no way to download."""
    monkeypatch.delenv("PRODIGE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("TRAIN", "TEST"):
        monkeypatch.setattr(lastfm, name, dataclasses.replace(getattr(lastfm, name), urls=()))


def test_original_files(tmp_path: Path) -> None:
    (tmp_path / lastfm.TRAIN.file).write_text(TRAIN)
    (tmp_path / lastfm.TEST.file).write_text(TEST)
    data = load_interactions("lastfm", tmp_path)
    np.testing.assert_array_equal(data.train.toarray(), [[1, 0, 1, 0, 0], [0, 0, 0, 1, 0]])
    np.testing.assert_array_equal(data.held_out, [1, 0])
    np.testing.assert_array_equal(data.negatives, [[3, 4], [4, 2]])
    assert data.name == "lastfm"


def test_a_held_out_item_is_no_negative(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "lastfm.npz", train=np.array([[0, 1]]), test=np.array([[0, 2]]), negatives=np.array([[2, 3, 4]])
    )
    np.testing.assert_array_equal(load_interactions("lastfm", tmp_path).negatives, [[4, 3, 4]])


def test_users_out_of_order(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "lastfm.npz",
        train=np.array([[0, 1]]),
        test=np.array([[1, 0], [0, 2]]),
        negatives=np.ones((2, 1), int),
    )
    with pytest.raises(ValueError, match="one pair of each user, in order"):
        load_interactions("lastfm", tmp_path)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"lastfm\.train\.rating"):
        load_interactions("lastfm", tmp_path)
