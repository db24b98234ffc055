"""Tables of pairs: what is taken for what, and where they are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal

from prodige.cli.pairs import Columns, read_pairs

COUNTS = [[1, 2], [0, 1]]


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def complaint(path: Path, *arguments: Any) -> str:
    with pytest.raises(ValueError, match=path.name) as caught:
        read_pairs(path, *arguments)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


GUESSED = ["line 1 is taken for a pair; use --header if it has names of columns"]


@pytest.mark.parametrize(
    ("text", "columns", "header", "notes"),
    [
        ("user,item\na,x\na,y\nb,y\na,y\n", Columns(), None, []),
        ("\ufeffUserId,thing\r\na,x\r\na,y\r\n\r\nb,y\r\na,y", Columns(), None, []),
        ("a,x\na,y\nb,y\na,y\n", Columns(), None, GUESSED),
        ("a,x\na,y\nb,y\na,y\n", Columns(), False, []),
        ("who,what\na,x\na,y\nb,y\na,y\n", Columns("who", "what"), True, []),
        ('who,what\n"a", x\n"a",y \n b,y\na,"y"\n', Columns(user="who"), None, []),
        ("item,user\nx,a\ny,a\ny,b\ny,a\n", Columns(), None, []),
        ("Movie ID , USER-ID\nx,a\ny,a\ny,b\ny,a\n", Columns(), None, []),
        ("thing,user\nx,a\ny,a\ny,b\ny,a\n", Columns(), None, []),
        ("count,thing,user\n1,x,a\n2,y,a\n1,y,b\n", Columns(), None, []),
        ("what,who\nx,a\ny,a\ny,b\ny,a\n", Columns(item="what"), None, []),
        ("weight,item,user\n1,x,a\n2,y,a\n1,y,b\n", Columns(), None, []),
        (
            "timestamp,user,item\n0,a,x\n0,a,y\n1,b,y\n2,a,y\n",
            Columns(),
            None,
            ["not read: column 1 ('timestamp'); --weight-column names one that counts"],
        ),
        ("item,user\nx,a\ny,a\ny,b\ny,a\n", Columns("user", "item"), None, []),
        ("x,a\ny,a\ny,b\ny,a\n", Columns("2", "1"), False, []),
        ("user,item,count\na,x,1\na,y,2\nb,y,1\nb,x,0\n", Columns(), None, []),
        ("user,item,times\na,x,1\na,y,2.0\nb,y,1e0\n", Columns(weight="times"), None, []),
        ("user,item,count\na,x,1\na,y,1\na,y,1\nb,y,1\n", Columns(), None, []),
        (
            "user,item,rating,when\na,x,5,0\na,y,3,0\nb,y,1,1\na,y,2,2\n",
            Columns(),
            None,
            ["not read: column 3 ('rating'), 4 ('when'); --weight-column names one that counts"],
        ),
    ],
)
def test_text(tmp_path: Path, text: str, columns: Columns, header: bool | None, notes: list[str]) -> None:
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        pairs = read_pairs(written(tmp_path / f"p{suffix}", text.replace(",", delimiter)), columns, header)
        assert (pairs.users, pairs.items) == (["a", "b"], ["x", "y"])
        assert_array_equal(pairs.user_items.toarray(), COUNTS)
        assert pairs.notes == notes


def test_numbers_are_names(tmp_path: Path) -> None:
    pairs = read_pairs(written(tmp_path / "p.csv", "10,007\n10,7\n2,7\n"))
    assert (pairs.users, pairs.items, pairs.notes) == (["10", "2"], ["007", "7"], [])
    named = written(tmp_path / "p.csv", "reader,book\n10,7\n")
    assert read_pairs(named, Columns("reader", "book")).users == ["10"]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("", Columns(), "it is empty"),
        ("\n\n", Columns(), "it is empty"),
        ("user,item\n", Columns(), "no pair of a user and an item"),
        ("user,item,count\na,x,0\n", Columns(), "no pair of a user and an item"),
        ("a\nb\n", Columns(), "one column where users and items should be"),
        ("user;item\na;x\n", Columns(), "separated by commas or tabs"),
        ("user,item\na,x\nb\n", Columns(), "line 3 has 1 cells, the first has 2"),
        ("user,item\na,x\n\n,y\n", Columns(), "line 4 has no user; fill it in"),
        ("user,item\na,x\nb, \n", Columns(), "line 3 has no item"),
        ("user,item,count\na,x,-1\n", Columns(), "line 2 counts '-1'"),
        ("user,item,count\na,x,nan\n", Columns(), "line 2 counts 'nan'"),
        ("user,item,count\na,x,inf\n", Columns(), "line 2 counts 'inf'"),
        ("user,item,count\na,x,many\n", Columns(), "line 2 counts 'many'"),
        (
            "user,item\na,x\n",
            Columns(user="reader"),
            "no column 'reader' for --user-column; there are 2: 'user', 'item'",
        ),
        ("user,item\na,x\n", Columns(item="3"), "no column '3' for --item-column"),
        ("user,item\na,x\n", Columns(item="0"), "no column '0' for --item-column"),
        ("user,item\na,x\n", Columns(user="item"), "different columns, got 2, 2; name all of them"),
        (
            "reader,book\n10,7\n",
            Columns(),
            "its names of columns do not say which has the users: 1 ('reader'), 2 ('book'); say so with --user-column",
        ),
        ("user,title,author\na,x,y\n", Columns(), "do not say which has the items: 1 ('user'), 2 ('title'), 3 ('auth"),
        ("user,item,user_id\na,x,7\n", Columns(), "2 columns that could be the users: 1 ('user'), 3 ('user_id'); say"),
        ("item,user,item\nx,a,y\n", Columns("user", "item"), "2 columns 'item': 1 ('item'), 3 ('item'); give --item-c"),
        ("user,item,count,weight\na,x,1,1\n", Columns(), "2 columns that could be the weights: 3 ('count'), 4"),
        ("user,item\na,x\n", Columns(weight="item"), "different columns, got 1, 2, 2"),
    ],
)
def test_bad_text(tmp_path: Path, text: str, columns: Columns, message: str) -> None:
    assert message in complaint(written(tmp_path / "p.csv", text), columns)


def test_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b"user,item\nJos\xe9,x\n")
    assert "utf-8" in complaint(tmp_path / "p.csv")


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "p.parquet"
    table = pandas.DataFrame({"who": [7, 7, 8], "what": ["x", "y", "y"], "count": [1.0, 2.0, 1.0], "more": [0, 0, 0]})
    table.to_parquet(path)
    named = Columns("who", "what")
    pairs = read_pairs(path, named)
    assert (pairs.users, pairs.items) == (["7", "8"], ["x", "y"])
    assert_array_equal(pairs.user_items.toarray(), COUNTS)
    assert pairs.notes == ["not read: column 4 ('more')"]
    assert read_pairs(path, Columns("what", "who")).users == ["x", "y"]
    assert "no column 'when'" in complaint(path, Columns("when"))
    assert "do not say which has the users" in complaint(path)
    table.rename(columns={"who": "item", "what": "user"}).to_parquet(path)
    assert read_pairs(path).users == ["x", "y"]
    table["what"] = ["x", None, "y"]
    table.to_parquet(path)
    assert complaint(path, named).startswith("line 2 has no item")
    table["count"] = [1.0, 2.0, None]
    table.to_parquet(path)
    assert "line 3 counts" in complaint(path, named)
    path.write_bytes(b"nonsense")
    assert "cannot be read as Parquet" in complaint(path)
    with pytest.raises(FileNotFoundError):
        read_pairs(tmp_path / "nowhere.parquet")


def test_unknown_endings(tmp_path: Path) -> None:
    assert complaint(tmp_path / "p.xlsx").startswith(
        "files ending in .xlsx are not read; give a table of pairs (.csv, "
    )
    assert complaint(tmp_path / "p").startswith("files without an ending are not read")
