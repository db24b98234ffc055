"""Loading: from the user's folder, the cache or the source, with rows of length 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prodige.datasets import NAMES, load, loading
from prodige.datasets.loading import Recipe


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No folder of the user's, an empty cache, and no way to download."""
    monkeypatch.delenv("PRODIGE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, recipe in loading.RECIPES.items():
        monkeypatch.setitem(loading.RECIPES, name, Recipe(recipe.file, recipe.labels, recipe.n_columns, recipe.advice))


def write(folder: Path, name: str, labels: str, n_columns: int, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {"X": rng.integers(0, 256, (10_000, n_columns), dtype=np.uint8), labels: np.arange(10_000)}
    arrays |= changes
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{name}.npz", **arrays)
    return arrays


@pytest.mark.parametrize(
    ("name", "labels", "n_columns"),
    [("mnist10k", "y", 784), ("glove10k", "words", 300), ("celeba10k", "image_id", 128)],
)
def test_rows_have_length_one(tmp_path: Path, name: str, labels: str, n_columns: int) -> None:
    assert name in NAMES
    arrays = write(tmp_path, name, labels, n_columns)
    data = load(name, tmp_path)
    assert data.name == name
    assert data.path == tmp_path / f"{name}.npz"
    assert data.X.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1, rtol=1e-5)
    rows = arrays["X"].astype(np.float64)
    np.testing.assert_allclose(data.X, rows / np.linalg.norm(rows, axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(data.labels, arrays[labels])
    assert repr(data) == f"Dataset('{name}', 10000 rows of {n_columns} numbers)"


def test_where_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("celeba10k", "image_id", 128)
    with pytest.raises(FileNotFoundError, match=r"celeba10k.npz is not in .*cache.prodige; .*encode-faces"):
        load("celeba10k")
    write(tmp_path / "cache" / "prodige", *arguments)
    assert load("celeba10k").path.parent == tmp_path / "cache" / "prodige"
    monkeypatch.setenv("PRODIGE_DATA", str(tmp_path))
    assert load("celeba10k").path.parent == tmp_path / "cache" / "prodige"
    write(tmp_path, *arguments)
    assert load("celeba10k").path.parent == tmp_path
    write(tmp_path / "mine", *arguments)
    assert load("celeba10k", str(tmp_path / "mine")).path.parent == tmp_path / "mine"


def test_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Path, Path | None]] = []

    def make(path: Path, folder: Path | None) -> None:
        calls.append((path, folder))
        write(path.parent, "mnist10k", "y", 784)

    monkeypatch.setitem(loading.RECIPES, "mnist10k", Recipe("mnist10k.npz", "y", 784, "", make))
    for _ in range(2):
        assert load("mnist10k", tmp_path).path == tmp_path / "cache" / "prodige" / "mnist10k.npz"
    assert calls == [(tmp_path / "cache" / "prodige" / "mnist10k.npz", tmp_path)]


def test_bad_names_and_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"one of 'mnist10k', 'glove10k', 'celeba10k', got 'cifar'"):
        load("cifar")
    write(tmp_path, "mnist10k", "y", 783)
    with pytest.raises(
        ValueError, match=r"X of .*mnist10k.npz must have shape \(10000, 784\).* got shape \(10000, 783\)"
    ):
        load("mnist10k", tmp_path)
    write(tmp_path, "mnist10k", "y", 784, y=np.arange(9))
    with pytest.raises(ValueError, match=r"y of .* must have shape \(10000,\).* got shape \(9,\)"):
        load("mnist10k", tmp_path)
    write(tmp_path, "mnist10k", "words", 784)
    with pytest.raises(ValueError, match="must have the fields X, y; it has X, words"):
        load("mnist10k", tmp_path)
