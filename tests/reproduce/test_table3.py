"""The table of texts on a handful of reviews."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from prodige import datasets
from prodige.cli import app
from prodige.datasets import LabelledTexts
from prodige.reproduce import table3
from prodige.reproduce.tables import Plan
from prodige.text.paper import network

runner = CliRunner()

REVIEWS = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"]
CLASSES = np.array([1, 1, 0, 0])
DATA = LabelledTexts("imdb", REVIEWS * 10, np.tile(CLASSES, 10), REVIEWS, CLASSES, Path("imdb"))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a fraction of a second."""
    monkeypatch.setattr(network, "_LEAST_STEPS", 4)
    parts = table3.make

    def short(*arguments: Any) -> Any:
        model = parts(*arguments)
        names = model.get_params()
        return model.set_params(**{name: 2 for name in ("n_epochs", "n_filters") if name in names})

    monkeypatch.setattr(table3, "make", short)


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, ["reproduce", "table3", "--jobs", "1", *arguments])


def test_figures() -> None:
    said: list[str] = []
    result = table3.run(DATA, Plan(table3.METHODS, n_seeds=2, n_jobs=1, report=said.append))
    rows = {row["method"]: row for row in result["rows"]}
    assert tuple(rows) == table3.METHODS
    assert {name for name, row in rows.items() if len(row["accuracy"]) == 1} == set(table3.METHODS) - table3.SEEDED
    assert all(0 <= value <= 1 for row in rows.values() for value in row["accuracy"])
    assert rows["tfidf"]["accuracy"] == [1.0]
    assert rows["ratios"]["accuracy"] == rows["hashed"]["accuracy"] == [1.0]
    assert rows["hashed"]["float32_bytes"] == 4 * (2**18 + 1)
    assert rows["tfidf"]["file_bytes"] is None
    assert 0 < rows["ngrams-20kB"]["file_bytes"] <= 20_000
    assert (rows["graph"]["paper_accuracy"], rows["graph"]["paper_megabytes"]) == (0.8443, 2.16)
    assert rows["vectors-100"]["paper_accuracy"] is None
    n_tokens = 2 + len({word for text in REVIEWS for word in text.split()})
    assert rows["glove-18"]["float32_bytes"] == 4 * n_tokens * min(18, n_tokens)
    assert rows["distilled-8-8bit"]["float32_bytes"] == 4 * n_tokens * 8
    assert rows["graph"]["float32_bytes"] <= 4 * (
        5 * n_tokens + 25 + 1
    )  # anchors have a centre, and all of them a scale
    assert rows["distilled-18-8bit"]["file_bytes"] < rows["vectors-18"]["file_bytes"]
    assert said[0] == "imdb: linear, tf-idf of words and pairs, seed 0"
    assert said[-1] == "imdb: graph of words, pairs, triples, 150 kB, seed 0"
    assert json.loads(json.dumps(result)) == result


def test_as_a_table() -> None:
    result = table3.run(DATA, Plan(["graph", "tfidf"], n_seeds=1, n_jobs=1))
    rows = table3.cells(result)
    assert [row[0] for row in rows] == [
        "linear, tf-idf of words and pairs",
        "graph, 32 anchors",
    ]  # always in this order
    assert all(len(row) == len(table3.HEADERS) for row in rows)
    assert rows[1][2] == "0.8443"
    assert rows[1][4] == "2.16"
    page = table3.markdown(result)
    assert page.startswith("# imdb: 40 texts to learn from, 4 to test\n")
    assert "One seed" in page
    assert "| graph, 32 anchors |" in page
    assert "prodige reproduce table3 --dataset imdb --seeds 1 --methods tfidf,graph" in page


def test_splits_of_seeds() -> None:
    """Where there is no published split, all methods see one of their own for each seed, and the same as the others."""
    data = dataclasses.replace(DATA, name="mr", has_published_split=False)
    one, other = data.split_again(0), data.split_again(1)
    assert sorted([*one.train, *one.test]) == sorted([*data.train, *data.test])
    assert (len(one.train), len(one.test)) == (40, 4)
    assert one.train != other.train
    truth = dict(zip(REVIEWS, CLASSES, strict=True))
    assert [truth[text] for text in other.test] == other.test_labels.tolist()
    result = table3.run(data, Plan(["tfidf", "graph"], n_seeds=2, n_jobs=1))
    assert [len(row["accuracy"]) for row in result["rows"]] == [2, 2]
    assert result["rows"][1]["paper_accuracy"] is None


def test_a_run_goes_on_where_another_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows of the same commit, data and seeds are kept; every row is handed over as soon as it is there."""
    fitted: list[str] = []
    fit = table3.fit

    def counting(data: Any, n_jobs: Any, row: Any, seed: int) -> None:
        fitted.append(f"{row.method} {seed}")
        fit(data, n_jobs, row, seed)

    monkeypatch.setattr(table3, "fit", counting)
    monkeypatch.setattr(table3, "commit", lambda: "one")
    kept: list[Any] = []
    first = table3.run(DATA, Plan(["tfidf"], n_seeds=2, n_jobs=1), keep=kept.append)
    assert [[row["method"] for row in result["rows"]] for result in kept] == [["tfidf"]]
    both = Plan(["hashed", "tfidf"], n_seeds=2, n_jobs=1)
    second = table3.run(DATA, both, first)
    assert fitted == ["tfidf 0", "hashed 0"]
    assert [row["method"] for row in second["rows"]] == ["tfidf", "hashed"]
    assert "--dataset imdb --seeds 2 --methods tfidf,hashed" in second["origin"]["command"]
    assert table3.run(DATA, both, second)["rows"] == second["rows"]
    assert len(fitted) == 2
    table3.run(DATA, both, second, again=True)
    assert len(fitted) == 4
    table3.run(DATA, both, second | {"n_train": 99})
    assert len(fitted) == 6
    monkeypatch.setattr(table3, "commit", lambda: "other")
    third = table3.run(DATA, Plan(["hashed"], n_seeds=2, n_jobs=1), second)
    assert fitted[6:] == ["hashed 0"]
    third["origin"]["commit"] = "other"
    assert any(note.startswith("Made at commit one: linear, tf-idf") for note in table3.notes(third))
    path = tmp_path / "table3-imdb.json"
    assert table3.read(path) is None
    path.write_text(json.dumps(third))
    assert table3.read(path) == third
    old = {**third, "rows": [{name: row[name] for name in row if name != "commit"} for row in third["rows"]]}
    path.write_text(json.dumps(old))
    read = table3.read(path)
    assert read is not None
    assert {row["commit"] for row in read["rows"]} == {"other"}  # as all of an older file is
    for text in ("no json", "[]", json.dumps({**third, "rows": [{"method": "umap"}]})):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"table3-imdb.json is no table of this version; move it away"):
            table3.read(path)


def test_unknown_methods() -> None:
    with pytest.raises(ValueError, match="got 'umap'"):
        table3.run(DATA, Plan(["graph", "umap"]))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("vectors-100", {"n_components": 100, "bits": 32, "distill": None, "vectors": "ppmi"}),
        ("glove-18", {"n_components": 18, "bits": 32, "distill": None, "vectors": "glove"}),
        ("distilled-8-8bit", {"n_components": 8, "bits": 8, "distill": 100, "vectors": "ppmi"}),
        ("graph", {"random_state": 3, "n_jobs": 1, "n_anchors": 32}),
        ("ngrams-20kB", {"max_bytes": 20_000, "architecture": "ngrams", "n_jobs": 1}),
    ],
)
def test_what_is_fitted(method: str, expected: dict[str, Any]) -> None:
    parameters = table3.make(method, 3, 1).get_params()
    assert {name: parameters[name] for name in expected} == expected


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def load(*arguments: Any) -> LabelledTexts:
        asked.append(arguments)
        return DATA

    monkeypatch.setattr(datasets, "load_texts", load)
    folder = tmp_path / "results"
    arguments = ["--methods", "tfidf", "--seeds", "1", "--data-dir", "here", "-o", str(folder)]
    answer = invoke(*arguments, "--json")
    assert answer.exit_code == 0, answer.output
    (result,) = json.loads(answer.stdout)["results"]
    assert [row["method"] for row in result["rows"]] == ["tfidf"]
    invoke(*arguments, "--dataset", "mr")
    assert asked == [("imdb", Path("here")), ("mr", Path("here"))]
    assert sorted(path.name for path in folder.iterdir()) == ["table3-imdb.json", "table3-imdb.md"]
    shown = invoke(*arguments)
    assert shown.exit_code == 0
    assert "tf-idf" in shown.stdout
    assert invoke("--methods", "umap").exit_code == 2
