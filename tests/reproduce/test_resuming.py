from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prodige.reproduce.resuming import Key, due, go_on, is_done, known_rows, read
from prodige.reproduce.tables import Plan, Row


def row(method: str, commit: str | None = "here", n_seeds: int = 1, note: str = "") -> dict[str, Any]:
    return {"method": method, "seconds": [1.0] * n_seeds, "note": note, "commit": commit}


def test_a_row_is_done_by_this_commit_with_enough_seeds_or_a_reason() -> None:
    assert is_done(row("star"), "here", 1)
    assert is_done(row("star", n_seeds=0, note="left out"), "here", 3)
    assert not is_done(row("star"), "here", 3)
    assert not is_done(row("star", commit="there"), "here", 1)
    assert not is_done(row("star", commit=None), None, 1)
    assert not is_done(None, "here", 1)


def test_methods_without_chance_need_one_fit() -> None:
    rows = {("star",): row("star"), ("mds",): row("mds")}
    keys = [("star",), ("mds",), ("pca",)]
    plan = Plan(["star", "mds", "pca"], n_seeds=3)
    assert due(rows, keys, plan, {"mds"}, "here") == [("mds",), ("pca",)]
    assert due(rows, keys, plan, {"mds"}, "here", again=True) == keys


def test_rows_of_data_of_another_size_are_forgotten() -> None:
    known = {"n_train": 5, "n_test": 3, "rows": [row("star")]}
    assert known_rows(known, {"n_train": 5, "n_test": 3}, "method") == {("star",): known["rows"][0]}  # type: ignore[index]
    assert known_rows(known, {"n_train": 5, "n_test": 4}, "method") == {}
    assert known_rows(known, {"n_items": 5}, "method") == {}
    assert known_rows(None, {"n_train": 5}, "method") == {}


def test_every_row_is_kept_as_soon_as_it_is_there() -> None:
    rows: dict[Key, dict[str, Any]] = {("star",): row("star")}
    kept: list[list[str]] = []

    def make(key: Key) -> Row:
        if key == ("ease",):
            raise KeyboardInterrupt
        return Row(*key)

    def gather() -> dict[str, Any]:
        return {"rows": [one["method"] for one in rows.values()]}

    with pytest.raises(KeyboardInterrupt):
        go_on(rows, [("mds",), ("pca",), ("ease",)], make, gather, lambda result: kept.append(result["rows"]))
    assert kept == [["star", "mds"], ["star", "mds", "pca"]]
    assert go_on(rows, [], make, gather, lambda result: kept.append([])) == {"rows": ["star", "mds", "pca"]}
    assert len(kept) == 2


@pytest.mark.parametrize("text", ["", "[]", '{"rows": []}', '{"rows": [{"method": "other"}], "n_items": 3}'])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    assert read(path, ["star"]) is None
    path.write_text(text)
    with pytest.raises(ValueError, match="is no table of this version"):
        read(path, ["star"])


def test_rows_without_a_commit_have_that_of_the_whole_and_no_note(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"rows": [{"method": "star"}], "origin": {"commit": "there"}, "n_items": 3}))
    found = read(path, ["star"])
    assert found is not None
    assert found["rows"] == [{"method": "star", "commit": "there", "note": ""}]
