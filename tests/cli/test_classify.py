"""``prodige classify``: from a table to a model, and from lines to labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from prodige import GraphTextClassifier
from prodige.cli import app
from prodige.text.selection import Selection

runner = CliRunner()

ROWS = [("a fine warm film", "good"), ("warm and funny", "good"), ("dull and long", "bad"), ("a long dull mess", "bad")]
TABLE = "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS * 5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a model that knows its texts."""
    path = tmp_path_factory.mktemp("model") / "model.prodige"
    texts, labels = zip(*ROWS * 5, strict=True)
    GraphTextClassifier(n_jobs=1).fit(texts, labels).save(path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reviews.csv").write_text(TABLE)
    Path("saved.prodige").write_bytes(saved)
    Path("lines.txt").write_text("a warm film\n\na dull mess\n")


def invoke(*arguments: str, **options: Any) -> Any:
    return runner.invoke(app, ["classify", "--jobs", "1", *arguments], **options)


def failure(code: int, *arguments: str) -> str:
    """Run a command that leaves with this code; return what it says on stderr, without decoration."""
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.replace("│", " ").split())


# -- learning --------------------------------------------------------------------------------------------------------


def test_a_table_becomes_a_model() -> None:
    result = invoke("reviews.csv", "-o", "m.prodige", "--max-bytes", "600")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    size = Path("m.prodige").stat().st_size
    model = GraphTextClassifier.load("m.prodige")
    assert result.stderr.startswith(f"20 texts, {len(model.vertices_)} words and sequences, 2 labels; ")
    assert f"m.prodige: {size:,} bytes" in result.stderr
    assert size <= 600
    texts, labels = zip(*ROWS * 5, strict=True)
    same = GraphTextClassifier(600, n_jobs=1).fit(texts, labels)
    assert (model.predict_proba(texts) == same.predict_proba(texts)).all()


def test_json() -> None:
    result = invoke("reviews.csv", "lines.txt", "-o", "m.prodige", "--json", "--max-time", "20")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    figures = json.loads(result.stdout, parse_constant=pytest.fail)
    assert figures.pop("seconds") >= 0
    assert figures.pop("validation_accuracy") == 1
    assert figures.pop("numbers_per_item") > 3
    assert figures.pop("n_vertices") == len(GraphTextClassifier.load("m.prodige").vertices_)
    assert [one["label"] for one in figures.pop("predictions")][::2] == ["good", "bad"]
    assert figures == {
        "input": "reviews.csv",
        "output": "m.prodige",
        "bytes": Path("m.prodige").stat().st_size,
        "n_texts": 20,
        "classes": ["bad", "good"],
        "interrupted": False,
        "notes": [],
    }


def test_columns_by_name_and_lines_of_json() -> None:
    lines = [json.dumps({"body": text, "stars": len(label)}) for text, label in ROWS]
    Path("r.jsonl").write_text("\n".join(lines))
    options = ["--text-column", "body", "--label-column", "stars", "--json"]
    result = invoke("r.jsonl", "lines.txt", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["classes"] == ["3", "4"]


def test_files_are_not_replaced_by_chance() -> None:
    before = Path("saved.prodige").read_bytes()
    assert "saved.prodige exists; use --force" in failure(1, "reviews.csv", "-o", "saved.prodige")
    assert "would replace the data" in failure(2, "reviews.csv", "-o", "reviews.csv")
    assert Path("saved.prodige").read_bytes() == before
    assert invoke("reviews.csv", "-o", "saved.prodige", "-f", "-q", "--max-bytes", "565").output == ""
    assert Path("saved.prodige").read_bytes() != before


@pytest.mark.parametrize("n_trials", [0, 1])
def test_an_interrupt(n_trials: int, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt, left = Selection._attempt, iter(range(n_trials))

    def interrupted(self: Selection, *arguments: Any) -> bool:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return attempt(self, *arguments)

    monkeypatch.setattr(Selection, "_attempt", interrupted)
    said = failure(130, "reviews.csv", "-o", "m.prodige")
    if n_trials == 0:
        assert said == "Interrupted before there was a model: nothing was written"
        assert not Path("m.prodige").exists()
    else:
        assert said.endswith("Interrupted: the best model so far is in m.prodige")
        assert GraphTextClassifier.load("m.prodige").classes_.tolist() == ["bad", "good"]


def test_the_network_of_the_paper() -> None:
    result = invoke(
        "reviews.csv", "lines.txt", "--architecture", "paper", "--max-time", "0.1", "--json", "-o", "m.prodige"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_vertices"] == 2 + 9  # padding, unknown, words
    assert GraphTextClassifier.load("m.prodige").paper_.classes_.tolist() == ["bad", "good"]


# -- judging ---------------------------------------------------------------------------------------------------------


def test_evaluation() -> None:
    Path("new.csv").write_text("text,label\na warm film,good\na dull mess,bad\na fine film,bad\nwarm,other\n")
    shown = " ".join(invoke("saved.prodige", "--evaluate", "new.csv").stdout.replace("│", " ").split())
    assert "bad 1.0000 0.5000 0.6667 2" in shown
    assert "good 0.3333 1.0000 0.5000 1" in shown
    assert "other 0.0000 0.0000 0.0000 1" in shown
    assert "all: accuracy 0.5000 4" in shown
    figures = json.loads(invoke("reviews.csv", "--evaluate", "reviews.csv", "--json").stdout)["evaluation"]
    assert figures["accuracy"] == 1
    assert figures["labels"]["bad"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "n_texts": 10}


# -- labelling -------------------------------------------------------------------------------------------------------


def test_lines_of_a_file() -> None:
    result = invoke("saved.prodige", "lines.txt")
    assert result.exit_code == 0, result.output
    labels = result.stdout.split("\n")
    assert (labels[0], labels[2], len(labels)) == ("good", "bad", 4)  # one for each line, the empty one too
    assert result.stderr == ""


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_lines_of_standard_input(arguments: list[str]) -> None:
    result = invoke("saved.prodige", *arguments, input="a warm film\na dull mess\n")
    assert result.stdout == "good\nbad\n"


def test_probabilities() -> None:
    model = GraphTextClassifier.load("saved.prodige")
    expected = model.predict_proba(["a warm film", "", "a dull mess"])
    first = invoke("saved.prodige", "lines.txt", "--proba").stdout.split("\n")[0].split("\t")
    assert first == ["good", f"bad={expected[0, 0]:.4f}", f"good={expected[0, 1]:.4f}"]
    figures = json.loads(invoke("saved.prodige", "lines.txt", "--proba", "--json").stdout)
    assert [list(one["probability"]) for one in figures["predictions"]] == [["bad", "good"]] * 3
    assert figures["predictions"][2]["probability"]["bad"] == pytest.approx(float(expected[2, 0]), abs=1e-5)


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (2, ["reviews.csv"], "name a file to save the model in, or texts to label"),
        (2, ["saved.prodige", "lines.txt", "-o", "m.prodige"], "nothing to save"),
        (2, ["saved.prodige", "lines.txt", "--max-bytes", "5"], "'--max-bytes': a saved model is asked, not fitted"),
        (2, ["saved.prodige", "lines.txt", "--no-header"], "a saved model is asked, not fitted"),
        (1, ["nothing.csv", "-o", "m.prodige"], "Error: nothing.csv: No such file or directory"),
        (1, ["nothing.prodige", "lines.txt"], "nothing.prodige: No such file or directory"),
        (1, ["saved.prodige", "nothing.txt"], "nothing.txt: No such file or directory"),
        (1, ["lines.txt", "-o", "m.prodige"], "files ending in .txt are not read"),
        (1, ["reviews.csv", "-o", "m.prodige", "--label-column", "text"], "must be different columns"),
        (1, ["reviews.csv", "-o", "m.prodige", "--max-bytes", "9"], "max_bytes = 9 is too small"),
        (1, ["reviews.csv", "-o", "no folder/m.prodige"], "no folder"),
        (2, ["reviews.csv", "-o", "m.prodige", "--max-time", "0"], "--max-time"),
        (1, ["saved.prodige", "--evaluate", "nothing.csv"], "nothing.csv: No such file or directory"),
    ],
)
def test_bad_commands(code: int, arguments: list[str], message: str) -> None:
    assert message in failure(code, *arguments)


def test_bad_models() -> None:
    Path("bad.prodige").write_text("plain text")
    assert "'bad.prodige' cannot be read as a .prodige file: it does not start like one" in failure(
        1, "bad.prodige", "lines.txt"
    )
    Path("one.csv").write_text("text,label\nfine,good\nwarm,good\n")
    assert "y has one class only, " in failure(1, "one.csv", "-o", "m.prodige")
    assert "standard input: it has no lines" in failure(1, "saved.prodige")
