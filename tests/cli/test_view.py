"""``prodige view``: files in, a page out, one line where something is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from prodige import Graph
from prodige.cli import app

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Graph.from_edges([0, 1, 2], [3, 3, 3], [1, 1, 2], n_items=3).save(tmp_path / "three.prodige")
    return tmp_path


def failure(code: int, *arguments: object) -> str:
    result = runner.invoke(app, ["view", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())


def test_page_is_written(folder: Path) -> None:
    result = runner.invoke(app, ["view", str(folder / "three.prodige")])
    assert result.exit_code == 0, result.output
    page = (folder / "three.html").read_text("utf-8")
    assert "<title>three</title>" in page
    assert result.stdout.replace("\n", "").endswith("bytes; open it in a browser")


def test_all_options(folder: Path) -> None:
    (folder / "labels.txt").write_bytes("\ufeffAda\r\nGräce\n\u2028Lin\n".encode())
    np.save(folder / "groups.npy", np.array([1, 2, 1]))
    np.save(folder / "images.npy", np.zeros((3, 2, 2), np.uint8))
    np.save(folder / "positions.npy", np.arange(6.0).reshape(3, 2))
    options = {name: str(folder / file) for name, file in (
        ("--labels", "labels.txt"), ("--groups", "groups.npy"), ("--images", "images.npy"),
        ("--positions", "positions.npy"), ("-o", "out.html"))}  # fmt: skip
    arguments = [part for option in options.items() for part in option]
    result = runner.invoke(app, ["view", str(folder / "three.prodige"), *arguments, "--title", "Who <3"])
    assert result.exit_code == 0, result.output
    page = (folder / "out.html").read_text("utf-8")
    assert '"labels":["Ada","Gr\\u00e4ce","\\u2028Lin"]' in page
    assert '"names":["1","2"]' in page
    assert "<title>Who &lt;3</title>" in page
    assert "data:image/png" in page


def test_existing_pages_are_kept(folder: Path) -> None:
    (folder / "three.html").write_text("mine")
    assert "exists; use --force" in failure(1, folder / "three.prodige")
    assert (folder / "three.html").read_text() == "mine"
    assert runner.invoke(app, ["view", str(folder / "three.prodige"), "--force"]).exit_code == 0
    assert "would replace the data" in failure(2, folder / "three.prodige", "-o", folder / "three.prodige", "-f")


def test_wrong_files_are_refused(folder: Path) -> None:
    graph = folder / "three.prodige"
    (folder / "two.txt").write_text("a\nb\n")
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")
    np.save(folder / "float.npy", np.zeros((3, 2, 2)))
    np.save(folder / "nan.npy", np.full((3, 2), np.nan))
    (folder / "bad.npy").write_bytes(b"not numpy")
    assert "labels must have 3 (items) or 4 (with hubs) entries, got 2" in failure(
        1, graph, "--labels", folder / "two.txt"
    )
    assert "byte 3 is not UTF-8" in failure(1, graph, "--groups", folder / "latin.txt")
    assert "images must be uint8, got float64" in failure(1, graph, "--images", folder / "float.npy")
    assert "positions[0] = [nan, nan]" in failure(1, graph, "--positions", folder / "nan.npy")
    assert "bad.npy" in failure(1, graph, "--images", folder / "bad.npy")
    assert "must end in .npy" in failure(1, graph, "--positions", folder / "two.txt")
    assert "missing.txt: No such file" in failure(1, graph, "--labels", folder / "missing.txt")
    assert "No such file" in failure(1, folder / "missing.prodige")
    assert not (folder / "three.html").exists()
