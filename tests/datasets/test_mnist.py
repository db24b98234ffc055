"""MNIST from its original files, made small."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from prodige.datasets import mnist

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
LABELS = np.arange(5, dtype=np.uint8)


def idx(array: np.ndarray, kind: int = 8) -> bytes:
    return gzip.compress(struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape) + array.tobytes())


def publish(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put small files where the originals would be."""
    folder.mkdir()
    for name, array in (("IMAGES", IMAGES), ("LABELS", LABELS)):
        original = getattr(mnist, name)
        content = idx(array)
        (folder / original.file).write_bytes(content)
        small = dataclasses.replace(
            original, urls=((folder / original.file).as_uri(),), md5=hashlib.md5(content).hexdigest()
        )
        monkeypatch.setattr(mnist, name, small)


def test_made_from_the_originals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, tmp_path / "public")
    cache = tmp_path / "cache"
    cache.mkdir()
    mnist.make(cache / "mnist10k.npz", None)
    with np.load(cache / "mnist10k.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["X"], IMAGES.reshape(5, 12))
        np.testing.assert_array_equal(file["y"], LABELS)
    assert [entry.name for entry in cache.iterdir()] == ["mnist10k.npz"]
    # The user's own copies do as well.
    (cache / "mnist10k.npz").unlink()
    for name in ("IMAGES", "LABELS"):
        monkeypatch.setattr(mnist, name, dataclasses.replace(getattr(mnist, name), urls=()))
    mnist.make(cache / "mnist10k.npz", tmp_path / "public")
    assert (cache / "mnist10k.npz").exists()


def test_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, tmp_path / "public")
    for entry in (tmp_path / "public").iterdir():
        entry.unlink()
    with pytest.raises(FileNotFoundError, match=r"t10k-images-idx3-ubyte.gz .*, or mnist10k.npz, into a folder"):
        mnist.make(tmp_path / "mnist10k.npz", None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["public"]


def test_read_idx(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(idx(IMAGES))
    np.testing.assert_array_equal(mnist.read_idx(path), IMAGES)
    path.write_bytes(idx(IMAGES, kind=13))
    with pytest.raises(ValueError, match="not an IDX file of bytes: it starts with 00000d03"):
        mnist.read_idx(path)


def test_published_files() -> None:
    for original in (mnist.IMAGES, mnist.LABELS):
        assert len(original.md5 or "") == 32
        assert all(url.endswith(f"/mnist/{original.file}") for url in original.urls)
