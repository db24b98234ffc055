"""GloVe from its archive, made small."""

from __future__ import annotations

import dataclasses
import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from prodige.datasets import glove

X = np.random.default_rng(0).normal(size=(6, 4)).round(5).astype(np.float32)
WORDS = np.array(["the", ",", "café", "a.b", "1,000", "of"])


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a small archive where the original would be, of which five rows are wanted."""
    path = tmp_path / "public" / "glove.6B.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        lines = [
            " ".join([word, *map(str, row.tolist())]) for word, row in zip(WORDS, X.astype("f8").round(5), strict=True)
        ]
        archive.writestr("glove.6B.300d.txt", "\n".join(lines) + "\n")
    monkeypatch.setattr(glove, "ARCHIVE", dataclasses.replace(glove.ARCHIVE, urls=(path.as_uri(),)))
    monkeypatch.setattr(glove, "N_WORDS", 5)
    monkeypatch.setattr(glove, "SHA256", hashlib.sha256(X[:5].tobytes()).hexdigest())
    return path


def test_made_from_the_archive(public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    glove.make(cache / "glove10k.npz", None)
    with np.load(cache / "glove10k.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["X"], X[:5])
        np.testing.assert_array_equal(file["words"], WORDS[:5])
        assert file["X"].dtype == np.float32
    assert [entry.name for entry in cache.iterdir()] == ["glove10k.npz"]
    monkeypatch.setattr(glove, "ARCHIVE", dataclasses.replace(glove.ARCHIVE, urls=()))
    glove.make(cache / "again.npz", public.parent)
    assert (cache / "again.npz").exists()
    assert public.exists()


def test_other_words_are_refused(public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glove, "N_WORDS", 4)
    with pytest.raises(ValueError, match=r"the first 4 rows of glove.6B.300d.txt are not those of the paper"):
        glove.make(tmp_path / "glove10k.npz", None)
    public.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"not the archive of GloVe 6B: .*put glove.6B.zip or glove10k.npz into"):
        glove.make(tmp_path / "glove10k.npz", None)
    with zipfile.ZipFile(public, "w") as archive:
        archive.writestr("other.txt", "")
    with pytest.raises(ValueError, match="not the archive of GloVe 6B"):
        glove.make(tmp_path / "glove10k.npz", None)
    public.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"cannot download glove.6B.zip .*put glove.6B.zip or glove10k.npz into"
    ):
        glove.make(tmp_path / "glove10k.npz", None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["public"]
