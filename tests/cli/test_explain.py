"""``prodige explain``: the words a model decided by."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from prodige import GraphTextClassifier
from prodige.cli import app

runner = CliRunner()

TEXTS = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 5


@pytest.fixture(autouse=True, scope="module")
def _model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("model")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        GraphTextClassifier(n_jobs=1).fit(TEXTS, [1, 1, 0, 0] * 5).save("m.prodige")
        yield


def invoke(*arguments: str) -> Any:
    return runner.invoke(app, ["explain", *arguments])


def test_reasons() -> None:
    result = invoke("m.prodige", "so warm a film", "-k", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("1: probability 0.9")
    assert "warm - hub" in result.stdout
    assert "film - hub" not in result.stdout
    shown = json.loads(invoke("m.prodige", "so warm a film", "--label", "0", "--json").stdout)
    model = GraphTextClassifier.load("m.prodige")
    assert shown["label"] == "0"
    assert shown["probability"] == pytest.approx(model.predict_proba(["so warm a film"])[0, 0], abs=1e-6)
    assert [reason["vertex"] for reason in shown["reasons"]] == [r.vertex for r in model.explain("so warm a film")]
    assert shown["reasons"][0]["contribution"] < 0


def test_nothing_known() -> None:
    assert "No word of the text is known" in invoke("m.prodige", "xyz").stdout


def test_what_is_refused() -> None:
    result = invoke("m.prodige", "warm", "--label", "2")
    assert result.exit_code == 2
    assert "'2' is none of the 2 labels" in result.stderr
    assert invoke("no.prodige", "warm").exit_code == 1
