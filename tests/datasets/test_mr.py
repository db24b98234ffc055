"""MR: from the published archive to texts and labels."""

from __future__ import annotations

import dataclasses
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from prodige.datasets import load_texts, mr

SENTENCES = {
    "rt-polaritydata/rt-polarity.neg": [f"dull {number} caf\xe9" for number in range(10)],
    "rt-polaritydata/rt-polarity.pos": [f"warm {number}" for number in range(10)],
}


def pack(path: Path, files: dict[str, list[str]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, lines in files.items():
            data = "\n".join([*lines, ""]).encode("cp1252")
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(mr, "ARCHIVE", dataclasses.replace(mr.ARCHIVE, urls=()))


def test_from_the_archive(tmp_path: Path) -> None:
    pack(tmp_path / mr.ARCHIVE.file, SENTENCES)
    data = load_texts("mr", tmp_path)
    assert (len(data.train), len(data.test), data.has_published_split) == (18, 2, False)
    assert sorted([*data.train, *data.test]) == sorted(line for lines in SENTENCES.values() for line in lines)
    assert all(("warm" in text) == label for text, label in zip(data.train, data.train_labels, strict=True))
    again = load_texts("mr")  # from the cache
    assert again.train == data.train
    np.testing.assert_array_equal(again.test_labels, data.test_labels)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"rt-polaritydata.tar.gz or mr.npz into a folder"):
        load_texts("mr", tmp_path)
    pack(tmp_path / mr.ARCHIVE.file, dict(list(SENTENCES.items())[:1]))
    with pytest.raises(ValueError, match="is not the archive of the sentences"):
        load_texts("mr", tmp_path)
    np.savez(tmp_path / "mr.npz", train=np.array(["a"]), y_train=[2], test=np.array(["b"]), y_test=[1])
    with pytest.raises(ValueError, match="must have a label of 0 or 1 for each of 1 texts"):
        load_texts("mr", tmp_path)
