"""Reading matrices: what comes out of each kind of file, and what is said of files that are none."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from prodige.cli.matrices import read_matrix

X = np.random.default_rng(0).normal(size=(5, 3))


def complaint(path: Path, key: str | None = None) -> str:
    """Return what is said of a file, without its name, which must come first."""
    with pytest.raises(ValueError, match=r".") as caught:
        read_matrix(path, key)
    name, _, message = str(caught.value).partition(": ")
    assert name == str(path)
    return message


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


# -- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", ">f8", "float16", "uint8", "int64", "bool"])
def test_npy(tmp_path: Path, dtype: str) -> None:
    array = (10 * np.abs(X)).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    matrix = read_matrix(tmp_path / "x.npy")
    assert_array_equal(matrix.X, array)
    assert matrix.notes == []


def test_an_ending_in_capitals(tmp_path: Path) -> None:
    with open(tmp_path / "X.NPY", "wb") as file:
        np.save(file, X)
    assert_array_equal(read_matrix(tmp_path / "X.NPY").X, X)


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    labels = np.array(["a", None], dtype=object)
    np.savez(path, y=np.arange(5), words=np.array([["a", "b"]]), pickled=labels, X=X)
    assert_array_equal(read_matrix(path).X, X)  # the only matrix of numbers
    assert_array_equal(read_matrix(path, "X").X, X)
    assert "no array 'Z'; there are 'y', 'words', 'pickled', 'X'" in complaint(path, "Z")
    assert complaint(path, "y") == "the array must have two axes, rows and columns, got shape (5,)"
    assert "real numbers, got dtype <U1" in complaint(path, "words")
    assert "'pickled': it holds pickled Python objects" in complaint(path, "pickled")


def test_npz_with_none_or_several(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=X, b=X[:2])
    assert complaint(tmp_path / "two.npz").endswith("--key must say which; there are: 'a' (5, 3), 'b' (2, 3)")
    np.savez(tmp_path / "none.npz", a=X[0])
    assert complaint(tmp_path / "none.npz").endswith("there are: none")


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
def test_sparse(tmp_path: Path, format: str, kind: Any) -> None:  # noqa: A002 - as scipy calls it
    sparse = kind(np.where(X > 0, X, 0)).asformat(format)
    scipy.sparse.save_npz(tmp_path / "x.npz", sparse)
    found = read_matrix(tmp_path / "x.npz").X
    assert found.format == "csr"
    assert_array_equal(found.toarray(), sparse.toarray())


@pytest.mark.parametrize(
    "damage",
    [
        {"indices": np.array([0, 99])},  # outside: would read memory that is not ours
        {"indices": np.array([0, -1])},
        {"indptr": np.array([0, 2])},
        {"format": np.array("nonsense")},
        {"format": np.array(7)},
        {"shape": np.array([3])},
        {"data": np.array(["a", "b"])},
        {"data": np.array([None, {}])},
    ],
)
def test_damaged_sparse(tmp_path: Path, damage: dict[str, Any]) -> None:
    sound: dict[str, Any] = {
        "format": np.array("csr"),
        "shape": np.array([2, 3]),
        "data": np.array([1.0, 2.0]),
        "indices": np.array([0, 2]),
        "indptr": np.array([0, 1, 2]),
    }
    np.savez(tmp_path / "x.npz", **sound)
    assert read_matrix(tmp_path / "x.npz").X.shape == (2, 3)
    np.savez(tmp_path / "x.npz", **sound | damage)
    assert complaint(tmp_path / "x.npz")


class Bomb:
    """Leaves a mark if it is ever unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import sys; sys.exploded = True",)


def test_pickles_are_not_run(tmp_path: Path) -> None:
    array = np.array([Bomb()], dtype=object)
    np.save(tmp_path / "array.npy", array)
    np.savez(tmp_path / "array.npz", X=array)
    (tmp_path / "plain.npy").write_bytes(pickle.dumps(Bomb()))
    for name, key in (("array.npy", None), ("array.npz", "X"), ("plain.npy", None)):
        assert "pickled" in complaint(tmp_path / name, key)
    assert complaint(tmp_path / "array.npz")
    assert not hasattr(sys, "exploded")


def test_damaged_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X)
    for name in ("x.npy", "x.npz"):
        data = (tmp_path / name).read_bytes()
        for size in (0, 1, 7, 40, len(data) // 2, len(data) - 1):
            (tmp_path / name).write_bytes(data[:size])
            assert complaint(tmp_path / name)
    (tmp_path / "x.npz").write_bytes((tmp_path / "x.npy").read_bytes())
    assert complaint(tmp_path / "x.npz")
    flipped = bytearray(data)
    flipped[len(data) // 3] ^= 1  # an archive has a checksum
    (tmp_path / "x.npz").write_bytes(flipped)
    assert complaint(tmp_path / "x.npz")
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    assert "rename it to end in .npy" in complaint(tmp_path / "x.npz")


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (), (0, 3), (3, 0)])
def test_wrong_shapes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", np.zeros(shape))
    assert str(shape) in complaint(tmp_path / "x.npy")


@pytest.mark.parametrize("dtype", ["complex64", "U3", "S3", "datetime64[s]", [("a", "f4")]])
def test_wrong_types(tmp_path: Path, dtype: Any) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 2), dtype=dtype))
    assert "real numbers" in complaint(tmp_path / "x.npy")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_located(tmp_path: Path, value: float) -> None:
    bad = X.copy()
    bad[3, 1] = bad[4, 0] = value
    np.save(tmp_path / "x.npy", bad)
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_array(bad))
    for name in ("x.npy", "x.npz"):
        assert f"row 3, column 1 (counted from 0) is {value}, one of 2" in complaint(tmp_path / name)


def test_large_numbers_are_finite(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((3, 2), 1e308))
    assert read_matrix(tmp_path / "x.npy").X[0, 0] == 1e308


# -- tables ----------------------------------------------------------------------------------------------------------

LABELLED = np.array([[1, 2], [3.5, -4e-3]])


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("1,2\n3.5,-4e-3\n", []),
        ("1,2\r\n3.5,-4e-3", []),
        ("x,y\n1,2\n3.5,-4e-3\n", []),
        ("\ufeffx,y\n1,2\n\n3.5,-4e-3\n\n", []),
        ('"x","a ""b"", c"\n"1"," 2"\n3.5,-4e-3\n', []),
        ("a,1,2\nb,3.5,-4e-3\n", ["column 1 is not numeric: left out"]),
        ("name,x,y\na,1,2\nb,3.5,-4e-3\n", ["column 1 ('name') is not numeric: left out"]),
        (
            "n,m,x,y\na,b,1,2\n7,8,3.5,-4e-3\n",
            ["column 1 ('n') is not numeric: left out", "column 2 ('m') is not numeric: left out"],
        ),
        ("x,name,y\n1,a,2\n3.5,b,-4e-3\n", ["column 2 ('name') is not numeric: left out"]),
        ("0,a\n1,2\n3.5,-4e-3\n", []),  # one name is enough
        (",x,y\n0,1,2\n1,3.5,-4e-3\n", ["column 1 has no name: left out as the index of the table"]),
        (",0,1\n0,1,2\n1,3.5,-4e-3\n", ["column 1 has no name: left out as the index of the table"]),
        (",x,y\na,1,2\nb,3.5,-4e-3\n", ["column 1 ('') is not numeric: left out"]),
    ],
)
def test_csv(tmp_path: Path, text: str, notes: list[str]) -> None:
    matrix = read_matrix(written(tmp_path / "x.csv", text))
    assert_array_equal(matrix.X, LABELLED)
    assert matrix.notes == notes


def test_csv_that_begins_like_names(tmp_path: Path) -> None:
    matrix = read_matrix(written(tmp_path / "x.csv", "0,1,2\n3,4,5\n"))
    assert_array_equal(matrix.X, np.arange(6).reshape(2, 3))
    assert matrix.notes == ["line 1 is 0, ..., 2: taken as data; delete it if these are names of columns"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("\n\n", "it is empty"),
        ("a,b\nc,d\n", "no numeric column"),
        ("a,b\n", "no numeric column"),
        ("1;2\n3;4\n", "separated by commas"),
        ("1,2\n3\n", "line 2 has 1 fields, the first has 2"),
        ("x,y\n1,2\n3,4,5\n", "line 3 has 3 fields, the first has 2"),
        ("x,y\n1,2\n3,four\n", "line 3, column 2 is 'four' where a number should be"),
        ("x,y\n1,2\n\n3,\n", "line 4, column 2 is empty where a number should be"),
        ("x,y\n,2\n3,4\n", "line 2, column 1 is empty where a number should be"),
        ("1,2\n3,nan\n", "row 1, column 1 (counted from 0) is nan"),
        (",0\n", "no numbers: its shape is (0, 1)"),
        ("1,2\n3,\0\n", ""),
        ('1,2\n3,"' + "long " * 1000, "... where a number should be"),
        ("1,2\n3," + "9" * 200_000, ""),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, message: str) -> None:
    said = complaint(written(tmp_path / "x.csv", text))
    assert message in said
    assert len(said) < 300


def test_csv_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"name,x\nJos\xe9,1\n")
    assert "utf-8" in complaint(tmp_path / "x.csv")


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "x.parquet"
    table = pandas.DataFrame(
        {"name": ["a", "b"], "x": [1, 3.5], "when": pandas.to_datetime(["2020", "2021"]), "y": [2, 0]}
    )
    table.set_index(table["name"]).to_parquet(path)
    matrix = read_matrix(path)
    assert_array_equal(matrix.X, [[1, 2], [3.5, 0]])
    assert matrix.X.dtype == np.float64
    assert matrix.notes == [
        "column 1 ('name') is not numeric: left out",
        "column 3 ('when') is not numeric: left out",
    ]
    table[["x"]].astype("float32").to_parquet(path)
    assert read_matrix(path).X.dtype == np.float32
    pandas.DataFrame({"x": pandas.array([1, None], dtype="Int64")}).to_parquet(path)
    assert "row 1, column 0 (counted from 0) is nan" in complaint(path)
    table[["name"]].to_parquet(path)
    assert "no numeric column; there are: 'name' " in complaint(path)
    path.write_bytes(path.read_bytes()[:-9])
    assert "cannot be read as Parquet" in complaint(path)
    path.write_bytes(b"")
    assert "cannot be read as Parquet" in complaint(path)
    with pytest.raises(FileNotFoundError):
        read_matrix(tmp_path / "nowhere.parquet")


def test_unknown_endings(tmp_path: Path) -> None:
    known = ".npy, .npz, .csv, .parquet"
    assert complaint(tmp_path / "x.xlsx") == f"files ending in .xlsx are not read; give one of {known}"
    assert complaint(tmp_path / "x") == f"files without an ending are not read; give one of {known}"
