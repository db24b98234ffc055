"""Where files live, and how they are read and written."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from prodige.datasets.storage import Field, cache_folder, read_arrays, user_folder, write_arrays


def test_arrays_survive(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    X, words = np.arange(6, dtype=np.float32).reshape(2, 3), np.array(["ä", "b"])
    write_arrays(path, X=np.zeros(1))
    write_arrays(path, X=X, words=words)
    arrays = read_arrays(path, X=Field("f", (2, 3)), words=Field("U", (2,)))
    np.testing.assert_array_equal(arrays["X"], X)
    np.testing.assert_array_equal(arrays["words"], words)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.npz"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **arrays: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        write_arrays(tmp_path / "file.npz", X=np.zeros(3))
    assert list(tmp_path.iterdir()) == []


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    field = {"X": Field("f", (3,))}
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"file.npz cannot be read as a .npz file of plain arrays"):
        read_arrays(path, **field)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="cannot be read"):
        read_arrays(path, **field)
    np.savez(path, X=np.array([object()] * 3), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read"):
        read_arrays(path, **field)
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="it is a single array"):
        read_arrays(path, **field)
    np.savez(path, X=np.array(["a", "b", "c"]))
    with pytest.raises(ValueError, match=r"X of .* a dtype of kind f, got shape \(3,\) and <U1"):
        read_arrays(path, **field)
    np.savez(path)
    with pytest.raises(ValueError, match="must have the fields X; it has none"):
        read_arrays(path, **field)
    whole = tmp_path / "whole.npz"
    np.savez(whole, X=np.zeros(3))
    path.write_bytes(whole.read_bytes()[:-30])
    with pytest.raises(ValueError, match="cannot be read"):
        read_arrays(path, **field)


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRODIGE_DATA", raising=False)
    assert user_folder(None) is None
    monkeypatch.setenv("PRODIGE_DATA", str(tmp_path))
    assert user_folder(None) == tmp_path
    with pytest.raises(NotADirectoryError, match=r"data_dir must name an existing folder, got '.*missing'"):
        user_folder(tmp_path / "missing")
    monkeypatch.setenv("PRODIGE_DATA", str(tmp_path / "missing"))
    with pytest.raises(NotADirectoryError, match="PRODIGE_DATA must name"):
        user_folder(None)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "prodige"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    for platform, expected in {"linux": ".cache", "darwin": "Library/Caches", "win32": "Local"}.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder() == tmp_path / expected / "prodige"
