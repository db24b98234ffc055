"""Commands on saved graphs: what they print, how they fail."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import prodige
from prodige import DistanceCompressor, Graph, GraphRecommender, GraphTextClassifier, ProductGraph
from prodige.cli import app
from prodige.cli.errors import clean_errors
from prodige.cli.graphs import graph_of
from prodige.graph import container

runner = CliRunner()


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Items 0 to 3 around hub 5; item 4 apart; items 0 and 1 closer."""
    graph = Graph.from_edges([0, 1, 2, 3, 0], [5, 5, 5, 5, 1], [1, 1, 2, 3, 0.1], n_items=5)
    path = tmp_path / "some.prodige"
    graph.save(path, {"made by": "Ada", "steps": 400})
    return str(path)


def answer(*arguments: str) -> Any:
    """Run a command with --json; return what it prints, which must be one JSON object and nothing else."""
    result = runner.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout, parse_constant=pytest.fail)


def failure(code: int, *arguments: str) -> str:
    """Run a command that leaves with this code; return what it says on stderr, without decoration."""
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.replace("│", " ").split())


# -- what they answer ------------------------------------------------------------------------------------------------


def test_info(file: str) -> None:
    size = os.path.getsize(file)
    expected = {
        "file": file,
        "kind": "graph",
        "format_version": 3,
        "n_items": 5,
        "n_hubs": 1,
        "n_edges": 5,
        "numbers_per_item": 16 / 5,
        "bytes": size,
        "bits_per_item": size * 8 / 5,
        "weight_bits": 32,
        "degree": {"min": 0, "mean": 10 / 6, "max": 4},
        "connected": False,
        "metadata": {"made by": "Ada", "steps": 400},
    }
    assert answer("info", file) == expected
    result = runner.invoke(app, ["info", file])
    assert result.exit_code == 0
    for shown in ("items", "3.2", f"{size} bytes", "0 to 4, 1.667 on average", "no: some items", "Ada", "400"):
        assert shown in " ".join(result.stdout.split())


def test_a_product(tmp_path: Path) -> None:
    path = tmp_path / "product.prodige"
    product = ProductGraph.from_factors([[[0.0], [3.0]], [[0.0], [4.0]]], [[0, 0], [1, 0], [1, 1]], [0.0] * 3)
    product.save(path, {"made by": "Ada"})
    size = path.stat().st_size
    assert answer("info", str(path)) == {
        "file": str(path),
        "kind": "product",
        "format_version": 3,
        "n_items": 3,
        "n_hubs": 4,
        "n_factors": 2,
        "power": 2.0,
        "gauge": 2.0,
        "pendant": False,
        "is_metric": True,
        "numbers_per_item": 13 / 3,
        "bytes": size,
        "bits_per_item": size * 8 / 3,
        "metadata": {"made by": "Ada"},
    }
    text = " ".join(runner.invoke(app, ["info", str(path)]).stdout.split())
    assert "2, power 2, gauge 2" in text
    assert "metric │ yes" in text
    assert answer("distance", str(path), "0", "2") == {"i": 0, "j": 2, "distance": 5.0}
    neighbors = answer("neighbors", str(path), "0", "-k", "9")["neighbors"]
    assert neighbors == [{"item": 1, "distance": 3.0}, {"item": 2, "distance": 5.0}]
    assert "3 is not a vertex: the graph has vertices 0 to 2" in failure(2, "distance", str(path), "0", "3")
    assert runner.invoke(app, ["view", str(path)]).exit_code == 0
    assert "product (joined to their 5 nearest)" in path.with_suffix(".html").read_text()
    ProductGraph.from_factors([[[0.0]]], [[0]], [0.0], power=2, gauge=1).save(path)
    assert "no: the triangle inequality may not hold" in " ".join(
        runner.invoke(app, ["info", str(path)]).stdout.split()
    )


def test_info_of_a_graph_without_edges(tmp_path: Path) -> None:
    Graph.from_edges([], [], [], n_vertices=1).save(tmp_path / "one")
    figures = answer("info", str(tmp_path / "one"))
    assert figures["connected"] is True
    assert figures["degree"] == {"min": 0, "mean": 0, "max": 0}


def test_info_is_of_one_file(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if another takes its place meanwhile, here as soon as its header has been read."""
    before = answer("info", file)
    Graph.from_edges([0], [1], [1]).save(f"{file} new", {"made by": "Bob"})
    read_header = container.read_header

    def replace(reader: Any) -> Any:
        description = read_header(reader)
        if os.path.exists(f"{file} new"):
            os.replace(f"{file} new", file)
        return description

    monkeypatch.setattr(container, "read_header", replace)
    assert answer("info", file) == before
    assert answer("info", file)["metadata"] == {"made by": "Bob"}


def test_metadata_does_not_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "bad.prodige"
    metadata = {"\x1b[2J": "[bold]a\r\nb\u202e\ud800", "é": ["\x07", "ö"]}
    Graph.from_edges([0], [1], [1]).save(path, metadata)
    output = runner.invoke(app, ["info", str(path)]).stdout
    assert all(letter.isprintable() or letter == "\n" for letter in output)
    for shown in (r"\x1b[2J", r"[bold]a\r\nb\u202e\ud800", "é", "ö"):
        assert shown in output
    assert answer("info", str(path))["metadata"] == metadata


def test_distance(file: str) -> None:
    assert answer("distance", file, "0", "3") == {"i": 0, "j": 3, "distance": 4.0}
    assert answer("distance", file, "0", "5") == {"i": 0, "j": 5, "distance": 1.0}
    assert answer("distance", file, "0", "4") == {"i": 0, "j": 4, "distance": None}
    assert answer("distance", file, "0", "1")["distance"] == pytest.approx(0.1)
    for j, shown in (("1", "0.1\n"), ("3", "4\n"), ("4", "inf\n"), ("0", "0\n")):
        assert runner.invoke(app, ["distance", file, "0", j]).stdout == shown


def test_neighbors(file: str) -> None:
    found = [{"item": 0, "distance": 4.0}, {"item": 1, "distance": 4.0}, {"item": 2, "distance": 5.0}]
    assert answer("neighbors", file, "3") == {"vertex": 3, "k": 10, "neighbors": found}
    assert answer("neighbors", file, "3", "-k", "2") == {"vertex": 3, "k": 2, "neighbors": found[:2]}
    assert answer("neighbors", file, "4")["neighbors"] == []  # nothing can be reached
    assert [entry["item"] for entry in answer("neighbors", file, "5")["neighbors"]] == [0, 1, 2, 3]
    rows = runner.invoke(app, ["neighbors", file, "3", "-k", "2"]).stdout
    assert [line.split("│")[1:3] for line in rows.splitlines() if line.startswith("│")] == [
        ["    0 ", "        4 "],
        ["    1 ", "        4 "],
    ]


def test_neighbors_of_the_only_item(tmp_path: Path) -> None:
    Graph.from_edges([0], [1], [1], n_items=1).save(tmp_path / "one")
    assert answer("neighbors", str(tmp_path / "one"), "0")["neighbors"] == []
    assert answer("neighbors", str(tmp_path / "one"), "1")["neighbors"] == [{"item": 0, "distance": 1.0}]


# -- how they fail ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vertex", ["6", "-1", "99999999999999999999"])
def test_bad_ids_are_usage_errors(file: str, vertex: str) -> None:
    complaint = f"{vertex} is not a vertex: the graph has vertices 0 to 5"
    assert f"'I': {complaint}" in failure(2, "distance", file, vertex, "0")
    assert f"'J': {complaint}" in failure(2, "distance", file, "0", vertex, "--json")
    assert f"'I': {complaint}" in failure(2, "neighbors", file, vertex)


def test_other_usage_errors(file: str) -> None:
    for arguments in (
        ("distance", file, "a", "0"),
        ("distance", file, "0"),
        ("distance", file, "0", "1.5"),
        ("distance", file, "0", "1", "--jsn"),
        ("neighbors", file, "0", "-k", "0"),
        ("neighbors", file, "0", "-k", "-2"),
        ("info", file, "--nonsense"),
        ("info",),
    ):
        assert failure(2, *arguments)


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("command", [("info",), ("distance", "0", "1"), ("neighbors", "0")])
def test_bad_files(file: str, tmp_path: Path, command: tuple[str, ...], options: tuple[str, ...]) -> None:
    def complaint(path: str) -> str:
        return failure(1, command[0], path, *command[1:], *options)

    assert complaint(f"{tmp_path}/nowhere") == f"Error: {tmp_path}/nowhere: No such file or directory"
    assert complaint(str(tmp_path)) == f"Error: {tmp_path}: Is a directory"
    data = Path(file).read_bytes()
    Path(file).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "checksum does not match" in complaint(file)
    Path(file).write_bytes(b"")
    assert complaint(file).startswith(f"Error: '{file}' cannot be read")


@pytest.mark.parametrize("command", [("info",), ("distance", "0", "1"), ("neighbors", "0"), ("view",)])
def test_files_of_other_kinds(tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "reviews.prodige"
    path.write_bytes(b"\x89PRODIGM" + bytes(50))
    said = failure(1, command[0], str(path), *command[1:])
    assert "it is a text model of an earlier format, which is no longer read; fit the model and save it again" in said
    container.write(path, "compressor", {}, {})
    assert "its parts do not fit together" in failure(1, command[0], str(path), *command[1:])
    np.savez(path.with_suffix(""), np.arange(3))
    said = failure(1, command[0], f"{tmp_path}/reviews.npz", *command[1:])
    assert "it does not start like one" in said
    os.mkfifo(tmp_path / "pipe")
    assert "it is a pipe or a device" in failure(1, command[0], f"{tmp_path}/pipe", *command[1:])


def test_a_message_is_one_line(tmp_path: Path) -> None:
    result = runner.invoke(app, ["info", str(tmp_path / "a\nb\x1b[2J")])
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path}/a\\nb\\x1b[2J: No such file or directory\n"


# -- the errors of all commands --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "x.prodige"),
            1,
            "Error: x.prodige: No space left on device\n",
        ),
        (OSError(errno.EIO, "Input/output error"), 1, "Error: Input/output error\n"),
        (OSError("odd"), 1, "Error: odd\n"),
        (ValueError("k must be 1 or more, got 0\n"), 1, "Error: k must be 1 or more, got 0\\n\n"),
        (ValueError(), 1, "Error: ValueError\n"),
        (MemoryError(), 1, "Error: not enough memory\n"),
        (ImportError("this needs x; pip install it"), 1, "Error: this needs x; pip install it\n"),
        (ModuleNotFoundError("No module named 'x'", name="x"), 1, "Error: No module named 'x'\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_expected_errors(capsys: pytest.CaptureFixture[str], error: BaseException, code: int, message: str) -> None:
    with pytest.raises(typer.Exit) as caught, clean_errors():
        raise error
    assert caught.value.exit_code == code
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a mistake"),
        ModuleNotFoundError("No module named 'prodige.x'", name="prodige.x"),
        typer.Exit(3),
        typer.BadParameter("bad"),
    ],
)
def test_other_errors_pass(capsys: pytest.CaptureFixture[str], error: Exception) -> None:
    with pytest.raises(type(error)) as caught, clean_errors():
        raise error
    assert caught.value is error
    assert capsys.readouterr() == ("", "")


def test_interrupt(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> Graph:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the interrupt did not arrive")

    monkeypatch.setattr("prodige.loading.load", interrupted)
    assert failure(130, "distance", file, "0", "1") == ""


@pytest.mark.parametrize("arguments", [("info",), ("neighbors", "0"), ("distance", "0", "1", "--json")])
def test_nobody_reads_the_output(file: str, arguments: tuple[str, ...]) -> None:
    """As in ``prodige info x.prodige | true``: no traceback, no complaint when the process ends."""
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-c", "from prodige.cli import app; app()", arguments[0], file, *arguments[1:]]
    result = subprocess.run(program, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (result.returncode, result.stderr) == (1, "")


# -- models ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One file of each kind of model."""
    folder = tmp_path_factory.mktemp("models")
    tastes = np.kron(np.eye(2), np.ones((20, 10)))
    labels = [f"book {x}" for x in range(20)]
    texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 10
    files = {kind: str(folder / f"{kind}.prodige") for kind in ("compressor", "recommender", "text")}
    DistanceCompressor(random_state=0, n_jobs=1).fit(np.arange(40.0).reshape(20, 2)).save(files["compressor"])
    GraphRecommender(random_state=0, n_jobs=1).fit(tastes, item_labels=labels).save(files["recommender"])
    GraphTextClassifier(n_jobs=1).fit(texts, [1, 1, 0, 0] * 10).save(files["text"])
    return files


def test_info_of_models(models: dict[str, str]) -> None:
    figures = {kind: answer("info", file) for kind, file in models.items()}
    assert [figures[kind]["kind"] for kind in models] == list(models)
    assert {kind: figures[kind]["format_version"] for kind in models} == {"compressor": 3, "recommender": 4, "text": 3}
    compressor, recommender, text = (figures[kind] for kind in ("compressor", "recommender", "text"))
    assert (compressor["metric"], compressor["n_features"], compressor["n_items"]) == ("euclidean", 2, 20)
    assert (recommender["n_users"], recommender["n_recommended"], recommender["labels"]) == (40, 20, True)
    assert (recommender["edges"], recommender["stores_users"]) == ("product", True)
    assert recommender["n_interactions_kept"] > 0
    assert (text["n_classes"], text["architecture"], text["weight_bits"]) == (2, "ngrams", None)
    for kind, file in models.items():
        assert kind in runner.invoke(app, ["info", file]).stdout


def test_a_compressor_that_holds_a_product(tmp_path: Path) -> None:
    """Its metric, which is that of the data, and whether the product is one are two things."""
    X = np.random.default_rng(0).normal(size=(60, 5))
    compressor = DistanceCompressor(metric="cityblock", structure="product", random_state=0, n_jobs=1).fit(X)
    file = str(tmp_path / "compressor.prodige")
    compressor.save(file)
    figures = answer("info", file)
    assert (figures["kind"], figures["structure"], figures["metric"]) == ("compressor", "product", "cityblock")
    assert (figures["n_factors"], figures["is_metric"]) == (compressor.graph_.n_factors, True)
    shown = runner.invoke(app, ["info", file]).stdout
    assert re.search("metric +│ +cityblock", shown)
    assert re.search("is a metric +│ +yes", shown)
    assert answer("distance", file, "2", "3")["distance"] == pytest.approx(compressor.graph_.distance(2, 3), rel=1e-6)
    near = answer("neighbors", file, "0", "-k", "4")["neighbors"]
    assert [entry["item"] for entry in near] == compressor.graph_.kneighbors([0], k=4)[1][0].tolist()
    assert "60 is not a vertex" in " ".join(failure(2, "neighbors", file, "60").replace("│", " ").split())
    assert runner.invoke(app, ["view", file]).exit_code == 0
    assert "joined to their 5 nearest" in (tmp_path / "compressor.html").read_text("utf-8")


def test_neighbors_of_models_have_their_names(models: dict[str, str]) -> None:
    assert "label" not in answer("neighbors", models["compressor"], "0")["neighbors"][0]
    near = answer("neighbors", models["recommender"], "40", "-k", "39")["neighbors"]
    assert {"user 0", "book 1"} <= {entry["label"] for entry in near}
    assert {entry["kind"] for entry in near} == {"user", "item"}
    assert all((entry["kind"] == "item") == (entry["item"] >= 40) for entry in near)
    assert all(entry["label"] == f"book {entry['item'] - 40}" for entry in near if entry["item"] >= 40)
    model = GraphTextClassifier.load(models["text"])
    dull = model.vertices_.index("dull")
    near = answer("neighbors", models["text"], str(dull), "-k", "3")["neighbors"]
    assert [entry["label"] for entry in near] == [model.vertices_[entry["item"]] for entry in near]
    assert near[0]["label"] in runner.invoke(app, ["neighbors", models["text"], str(dull)]).stdout


def test_distances_and_pages_of_models(models: dict[str, str], tmp_path: Path) -> None:
    for kind, file in models.items():
        graph = graph_of(prodige.load(file))
        assert answer("distance", file, "2", "3")["distance"] == pytest.approx(graph.distance(2, 3), rel=1e-6)
        page = tmp_path / f"{kind}.html"
        assert runner.invoke(app, ["view", file, "-o", str(page)]).exit_code == 0
        assert page.stat().st_size > 1000
    assert "book 7" in (tmp_path / "recommender.html").read_text("utf-8")
    assert "funny" in (tmp_path / "text.html").read_text("utf-8")
