"""Encoding photographs, with a stand-in for the network."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from prodige.datasets import faces


@pytest.fixture(autouse=True)
def recognition(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image is the text of its file: boxes of faces, one per line. A face is encoded by its corners."""
    module = ModuleType("face_recognition")

    def boxes(image: str) -> list[tuple[int, ...]]:
        return [tuple(map(int, line.split())) for line in image.splitlines()]

    def encodings(image: str, locations: list[tuple[int, ...]]) -> list[Any]:
        return [np.resize(np.array(box, dtype=np.float64), 128) for box in locations]

    module.load_image_file = lambda path: Path(path).read_text()  # type: ignore[attr-defined]
    module.face_locations = boxes  # type: ignore[attr-defined]
    module.face_encodings = encodings  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "face_recognition", module)


def photographs(folder: Path, **contents: str) -> Path:
    folder.mkdir()
    for name, content in contents.items():
        (folder / f"{name.lstrip('n')}.jpg").write_text(content)
    return folder


def test_largest_face_in_the_order_of_names(tmp_path: Path) -> None:
    # top, right, bottom, left
    folder = photographs(tmp_path / "photos", n000009="0 4 4 0\n0 9 9 0", n000002="1 3 3 1", n000005="")
    (folder / "notes.txt").write_text("not a photograph")
    assert faces.encode_faces(folder, tmp_path / "faces.npz", n_jobs=1) == (2, 1)
    with np.load(tmp_path / "faces.npz", allow_pickle=False) as file:
        assert file["X"].dtype == np.float32
        assert file["X"].shape == (2, 128)
        np.testing.assert_array_equal(file["X"][:, :4], [[1, 3, 3, 1], [0, 9, 9, 0]])
        np.testing.assert_array_equal(file["image_id"], [2, 9])
        assert file["image_id"].dtype == np.uint32


def test_limit_counts_faces(tmp_path: Path) -> None:
    folder = photographs(tmp_path / "photos", a="", b="0 1 1 0", c="0 2 2 0", d="0 3 3 0")
    assert faces.encode_faces(folder, tmp_path / "faces.npz", limit=2, n_jobs=1) == (2, 1)
    with np.load(tmp_path / "faces.npz", allow_pickle=False) as file:
        assert file["image_id"].tolist() == ["b", "c"]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match=r"existing folder of photographs, got '.*missing'"):
        faces.encode_faces(tmp_path / "missing", tmp_path / "faces.npz")
    empty = photographs(tmp_path / "empty")
    with pytest.raises(ValueError, match=r"must hold photographs \(.jpeg, .jpg, .png\), found none"):
        faces.encode_faces(empty, tmp_path / "faces.npz")
    nobody = photographs(tmp_path / "nobody", a="", b="")
    with pytest.raises(ValueError, match="no face was found in any of the 2 photographs"):
        faces.encode_faces(nobody, tmp_path / "faces.npz", n_jobs=1)
    with pytest.raises(ValueError, match="limit must be between 1"):
        faces.encode_faces(nobody, tmp_path / "faces.npz", limit=0)
    assert not (tmp_path / "faces.npz").exists()


def test_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "face_recognition", None)
    folder = photographs(tmp_path / "photos", a="0 1 1 0")
    with pytest.raises(ImportError, match=r"pip install 'prodige\[faces\]'"):
        faces.encode_faces(folder, tmp_path / "faces.npz", n_jobs=1)
