"""Texts with labels from tables and lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige.cli.labelled import decoded, read_labelled, read_lines

PAIRS = (["a fine film", 'long, "very" dull\nand more', ""], ["good", "bad", "bad"])


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("r.csv", 'text,label\na fine film,good\n"long, ""very"" dull\nand more",bad\n,bad\n', {}),
        (
            "r.csv",
            '\ufeffid,label,text\r\n1,good,a fine film\r\n\r\n2,bad,"long, ""very"" dull\nand more"\r\n3,bad,\r\n',
            {},
        ),
        (
            "r.TSV",
            'y\tx\ngood\ta fine film\nbad\t"long, ""very"" dull\nand more"\nbad\t\n',
            {"text": "x", "label": "y"},
        ),
        ("r.tsv", 'good\ta fine film\nbad\t"long, ""very"" dull\nand more"\nbad\t\n', {"text": "2", "label": "1"}),
        (
            "r.csv",
            'a,b\na fine film,good\n"long, ""very"" dull\nand more", bad \n,bad\n',
            {"text": "1", "label": "2", "header": True},
        ),
    ],
)
def test_tables(tmp_path: Path, name: str, content: str, options: dict[str, Any]) -> None:
    assert tuple(read_labelled(write(tmp_path, name, content), **options)) == PAIRS


def test_lines_of_json(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text, "label": label, "id": 3}) for text, label in zip(*PAIRS, strict=True)]
    assert tuple(read_labelled(write(tmp_path, "r.jsonl", "\n\n".join(lines)))) == PAIRS
    numbers = '{"body": "x", "stars": 5}\n{"body": "y", "stars": true}\n'
    path = write(tmp_path, "n.jsonl", numbers)
    assert read_labelled(path, "body", "stars").labels == ["5", "true"]


@settings(max_examples=40, deadline=None)
@given(pairs=st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.integers(0, 3)), min_size=1, max_size=5))
def test_any_text_survives_json(pairs: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    content = "\n".join(json.dumps({"text": text, "label": label}) for text, label in pairs)
    found = read_labelled(write(tmp_path_factory.mktemp("lines"), "r.jsonl", content))
    assert found.texts == [text for text, _ in pairs]


def test_a_cell_longer_than_csv_takes(tmp_path: Path) -> None:
    text = "word " * 50_000
    assert read_labelled(write(tmp_path, "r.csv", f"text,label\n{text},good\n")).texts == [text]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("r.txt", "", {}, r"files ending in .txt are not read; give texts with labels \(.csv, .tsv, .jsonl\)"),
        ("r", "", {}, "files without an ending"),
        ("r.csv", "", {}, "it is empty"),
        ("r.csv", "text,label\n", {}, "it has no texts"),
        (
            "r.csv",
            "review,label\nfine,good\n",
            {},
            "no column 'text' for --text-column; there are 2: 'review', 'label'",
        ),
        ("r.csv", "text,y\nfine,good\n", {}, "no column 'label' for --label-column"),
        ("r.csv", "text,label\nfine,good\n", {"label": "text"}, "must be different columns"),
        ("r.csv", "text,label\nfine,good,more\n", {}, "line 2 has 3 cells, the first has 2"),
        ("r.csv", "text,label\nfine,good\nfine,\n", {}, "line 3 has no label"),
        ("r.jsonl", "", {}, "it has no texts"),
        ("r.jsonl", "{", {}, "line 1 is no JSON"),
        ("r.jsonl", "[" * 100_000, {}, "line 1 is no JSON"),
        ("r.jsonl", "[1]", {}, "line 1 should be an object with 'text' and 'label'"),
        ("r.jsonl", '{"text": "fine"}', {}, "line 1 has no 'label' for --label-column; it has 'text'"),
        ("r.jsonl", '{"text": 3, "label": 1}', {}, "line 1 has 3 where a text should be"),
        ("r.jsonl", '{"text": "fine", "label": null}', {}, "line 1 has no label"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str, options: dict[str, Any], message: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(ValueError, match=f"{name}: .*{message}" if "files" not in message else message):
        read_labelled(path, **options)


def test_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes("text,label\nschön,gut\n".encode("latin-1"))
    with pytest.raises(ValueError, match="utf-8"):
        read_labelled(path)
    with pytest.raises(ValueError, match=r"r.csv: line 2 is not in UTF-8 .*; convert the file"):
        read_lines(path)


def test_lines(tmp_path: Path) -> None:
    assert read_lines(write(tmp_path, "t.txt", "\ufefffine film\r\n\ndull")) == ["fine film", "", "dull"]
    with pytest.raises(ValueError, match="standard input: it has no lines"):
        decoded([], "standard input")
