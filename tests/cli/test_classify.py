"""``prodige classify``: from a table to a model, and from lines to labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from prodige import GraphTextClassifier
from prodige.cli import app
from prodige.text import network
from prodige.text.network import Training

runner = CliRunner()

ROWS = [("a fine warm film", "good"), ("warm and funny", "good"), ("dull and long", "bad"), ("a long dull mess", "bad")]
TABLE = "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS * 5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a model that knows its texts."""
    path = tmp_path_factory.mktemp("model") / "model.prodige"
    texts, labels = zip(*ROWS * 5, strict=True)
    GraphTextClassifier(n_filters=8, n_epochs=4, random_state=0, n_jobs=1).fit(texts, labels).save(path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(network, "_LEAST_STEPS", 4)
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


@pytest.mark.repeatable
def test_a_table_becomes_a_model() -> None:
    result = invoke("reviews.csv", "-o", "m.prodige", "--epochs", "2", "--seed", "3", "--numbers-per-item", "9")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    size = Path("m.prodige").stat().st_size
    assert result.stderr.startswith("20 texts, 9 words, 2 labels; ")
    assert f"m.prodige: {size:,} bytes" in result.stderr
    model = GraphTextClassifier.load("m.prodige")
    assert 5 < model.numbers_per_item_ <= 9
    texts, labels = zip(*ROWS * 5, strict=True)
    same = GraphTextClassifier(9.0, n_epochs=2, random_state=3, n_jobs=1).fit(texts, labels)
    assert (model.predict_proba(texts) == same.predict_proba(texts)).all()


def test_json() -> None:
    result = invoke("reviews.csv", "lines.txt", "-o", "m.prodige", "--epochs", "2", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    figures = json.loads(result.stdout, parse_constant=pytest.fail)
    assert figures.pop("seconds") >= 0
    assert 0 <= figures.pop("validation_accuracy") <= 1
    assert 3 < figures.pop("numbers_per_item") <= 5
    assert {one["label"] for one in figures.pop("predictions")} <= {"good", "bad"}
    assert figures == {
        "input": "reviews.csv",
        "output": "m.prodige",
        "bytes": Path("m.prodige").stat().st_size,
        "n_texts": 20,
        "n_words": 9,
        "classes": ["bad", "good"],
        "interrupted": False,
        "notes": [],
    }


def test_columns_by_name_and_lines_of_json() -> None:
    lines = [json.dumps({"body": text, "stars": len(label)}) for text, label in ROWS]
    Path("r.jsonl").write_text("\n".join(lines))
    options = ["--text-column", "body", "--label-column", "stars", "--epochs", "1", "--json"]
    result = invoke("r.jsonl", "lines.txt", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["classes"] == ["3", "4"]


def test_files_are_not_replaced_by_chance() -> None:
    before = Path("saved.prodige").read_bytes()
    assert "saved.prodige exists; use --force" in failure(1, "reviews.csv", "-o", "saved.prodige")
    assert "would replace the data" in failure(2, "reviews.csv", "-o", "reviews.csv")
    assert Path("saved.prodige").read_bytes() == before
    assert invoke("reviews.csv", "-o", "saved.prodige", "-f", "-q", "--epochs", "1").output == ""
    assert Path("saved.prodige").read_bytes() != before


@pytest.mark.parametrize(("stage", "n_steps"), [("vectors", 0), ("vectors", 1), ("graph", 0)])
def test_an_interrupt(stage: str, n_steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    step, left = Training.step, iter(range(n_steps))

    def interrupted(self: Training, *arguments: Any) -> float:
        if self.stage == stage and next(left, None) is None:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(Training, "step", interrupted)
    said = failure(130, "reviews.csv", "-o", "m.prodige", "--epochs", "1")
    if (stage, n_steps) == ("vectors", 0):
        assert said == "Interrupted before there was a model: nothing was written"
        assert not Path("m.prodige").exists()
    else:
        assert said.endswith("Interrupted: the best model so far is in m.prodige")
        assert GraphTextClassifier.load("m.prodige").classes_.tolist() == ["bad", "good"]


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
        (2, ["saved.prodige", "lines.txt", "-n", "5"], "'--numbers-per-item': a saved model is asked, not fitted"),
        (2, ["saved.prodige", "lines.txt", "--no-header"], "a saved model is asked, not fitted"),
        (1, ["nothing.csv", "-o", "m.prodige"], "Error: nothing.csv: No such file or directory"),
        (1, ["nothing.prodige", "lines.txt"], "nothing.prodige: No such file or directory"),
        (1, ["saved.prodige", "nothing.txt"], "nothing.txt: No such file or directory"),
        (1, ["lines.txt", "-o", "m.prodige"], "files ending in .txt are not read"),
        (1, ["reviews.csv", "-o", "m.prodige", "--label-column", "text"], "must be different columns"),
        (1, ["reviews.csv", "-o", "m.prodige", "--numbers-per-item", "2"], "numbers_per_item = 2.0 is too little"),
        (1, ["reviews.csv", "-o", "no folder/m.prodige"], "no folder"),
        (2, ["reviews.csv", "-o", "m.prodige", "--epochs", "0"], "--epochs"),
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
