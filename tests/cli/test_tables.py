"""Reading tables: lines are numbered as an editor numbers them, and an extra that is missing is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from prodige.cli.tables import open_lines, read_frame


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_bytes(b'\xef\xbb\xbfa\tb\n\n"1\n2"\t3\n4,5\t6\n')
    with open_lines(path, "\t") as (first, others):
        assert first == [(1, ["a", "b"]), (4, ["1\n2", "3"])]  # a cell over two lines
        assert list(others) == [(5, ["4,5", "6"])]
    path.write_bytes(b"\n\n")
    with pytest.raises(ValueError, match="it is empty"), open_lines(path):
        pass


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_parquet_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'prodige\[tables\]'"):
        read_frame(tmp_path / "x.parquet")
