"""``prodige compress``: what it writes and prints, how it fails, and that nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import pairwise_distances
from typer.testing import CliRunner

from prodige import DistanceCompressor, Graph, ProductGraph, __version__, loading
from prodige.cli import app
from prodige.cli.progress import FitProgress
from prodige.compression import exponents, selection
from prodige.compression.objective import Measured, Validation
from prodige.graph import atomic, container
from prodige.graph.queryable import Queryable
from prodige.metric.evaluation import evaluate
from prodige.metric.space import Space
from prodige.progress import Record

runner = CliRunner()

X = np.random.default_rng(0).normal(size=(60, 8))

# Comes first, as later options win.
SHORT = ("--jobs", "1")

# What asks for edges.
GRAPH = ("--structure", "graph")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small data set in an empty folder; enough steps for a graph, as how good it is does not matter here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(selection, "N_STEPS", 24)
    np.save("x.npy", X)
    return "x.npy"


def answer(*arguments: str, code: int = 0) -> dict[str, Any]:
    """Run with --json; return what is printed, which must be one JSON object and nothing else."""
    result = runner.invoke(app, ["compress", *SHORT, *arguments, "--json"])
    assert result.exit_code == code, result.output
    assert result.stdout.count("\n") == 1
    assert code == 130 or result.stderr == ""
    figures: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    return figures


def failure(code: int, *arguments: str) -> str:
    """Run a command that leaves with this code; return what it says on stderr, without decoration."""
    result = runner.invoke(app, ["compress", *SHORT, *arguments])
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert code != 1 or result.stderr.count("\n") == 1
    return " ".join(result.stderr.replace("│", " ").split())


# -- what comes out --------------------------------------------------------------------------------------------------


def test_json_and_file(data: str) -> None:
    figures = answer(data, *GRAPH, "-o", "out.prodige", "--numbers-per-item", "5", "--seed", "3")
    graph = Graph.load("out.prodige")
    report = evaluate(graph, Space(X), random_state=3)
    size = os.path.getsize("out.prodige")
    assert figures.pop("seconds") > 0
    assert figures == {
        "input": data,
        "output": "out.prodige",
        "n_items": 60,
        "n_hubs": graph.n_vertices - 60,
        "n_edges": graph.n_edges,
        "numbers_per_item": graph.numbers_per_item,
        "bytes": size,
        "bits_per_item": 8 * size / 60,
        "mse": pytest.approx(report.mse),
        "relative_error": pytest.approx(report.relative_error),
        "variance": pytest.approx(report.variance),
        "spearman": pytest.approx(report.spearman),
        "recall": pytest.approx(report.recall),
        "structure": "hubs",
        "interrupted": False,
        "notes": [],
    }
    assert 4.9 < graph.numbers_per_item <= 5
    assert report.mse < report.variance
    assert container.describe("out.prodige").metadata == {
        "prodige": __version__,
        "data": "x.npy",
        "normalized": False,
        "metric": "euclidean",
        "numbers_per_item": 5.0,
        "n_hubs": "auto",
        "objective": "distances",
        "metric_only": True,
        "method": "budget",
        "max_time": None,
        "seed": 3,
        "structure": "hubs",
        "stopped": "finished",
        **{name: pytest.approx(figures[name], rel=1e-5) for name in ("mse", "relative_error", "variance")},
        **{name: pytest.approx(figures[name], rel=1e-5) for name in ("spearman", "recall")},
    }


def test_weights_of_few_bits(data: str) -> None:
    exact = answer(data, *GRAPH, "-o", "exact.prodige")
    figures = answer(data, *GRAPH, "-o", "packed.prodige", "--bits", "6")
    graph = Graph.load("packed.prodige")
    assert graph == Graph.load("exact.prodige").rounded(6)
    assert container.describe("packed.prodige").content["weight_bits"] == 6
    assert figures["bytes"] == os.path.getsize("packed.prodige") < exact["bytes"]
    assert figures["mse"] == pytest.approx(evaluate(graph, Space(X), random_state=0).mse)  # of what is in the file
    for bits in ("0", "17", "x"):
        assert "--bits" in failure(2, data, "--bits", bits)


def test_a_product(data: str) -> None:
    figures = answer(data, "--structure", "product", "--seed", "3")
    product = ProductGraph.load("x.prodige")
    report = evaluate(product, Space(X), random_state=3)
    size = os.path.getsize("x.prodige")
    assert figures.pop("seconds") > 0
    assert figures == {
        "input": data,
        "output": "x.prodige",
        "n_items": 60,
        "n_hubs": product.n_hubs,
        "n_factors": product.n_factors,
        "power": 2.0,
        "gauge": 2.0,
        "pendant": False,
        "is_metric": True,
        "numbers_per_item": product.numbers_per_item,
        "bytes": size,
        "bits_per_item": 8 * size / 60,
        **{name: pytest.approx(getattr(report, name)) for name in ("mse", "relative_error", "variance")},
        **{name: pytest.approx(getattr(report, name)) for name in ("spearman", "recall")},
        "structure": "product",
        "interrupted": False,
        "notes": [],
    }
    assert product.numbers_per_item <= 4  # as of the library, when no size is given
    metadata = container.describe("x.prodige").metadata
    assert (metadata["numbers_per_item"], metadata["structure"]) == (4.0, "product")
    assert metadata["mse"] == pytest.approx(figures["mse"], rel=1e-5)


def test_a_budget_in_bits(data: str) -> None:
    """The file as it lies on the disk is within the budget; there is room for metadata in the larger one."""
    tight, wide = answer(data, "--bits-per-item", "100"), answer(data, "--bits-per-item", "300", "-o", "wide")
    for name, figures in (("x.prodige", tight), ("wide", wide)):
        assert figures["bytes"] == os.path.getsize(name)
        assert figures["mse"] < figures["variance"]
    assert tight["bits_per_item"] <= 100 < wide["bits_per_item"] <= 300
    assert container.describe("x.prodige").metadata == {}
    assert container.describe("wide").metadata["bits_per_item"] == 300.0
    assert "numbers_per_item" not in container.describe("wide").metadata
    assert "bits_per_item = 20.0 is too small" in failure(1, data, "--bits-per-item", "20", "-o", "least")
    assert not Path("least").exists()


def test_figures_are_those_of_the_file(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of what was meant to be written."""
    asked: list[Path] = []
    load = loading.load

    def other(path: Path) -> Any:
        asked.append(path)
        product = load(path)
        assert isinstance(product, ProductGraph)
        return product.from_factors(product.factors, product.codes, np.zeros(60), product.power, product.gauge)

    monkeypatch.setattr(loading, "load", other)
    figures = answer(data, "--structure", "product")
    assert asked == [Path("x.prodige")]
    changed = ProductGraph.load("x.prodige")
    assert not changed.lengths.any()
    assert figures["mse"] == pytest.approx(evaluate(changed, Space(X), random_state=0).mse)


def test_bits_of_weights_that_a_product_has_not(data: str) -> None:
    note = "--bits 8 is not used: a product of graphs is rounded in its fit; --structure graph has weights"
    figures = answer(data, "--bits", "8")
    assert (figures["structure"], figures["notes"]) == ("product", [note])
    result = runner.invoke(app, ["compress", data, *SHORT, "--bits", "8", "--force"])
    assert (result.exit_code, result.stderr) == (0, f"Note: {note}\n")


def test_settings_reach_the_fit(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def stop(self: DistanceCompressor, X: Any) -> None:
        asked.append(self.get_params())
        raise ValueError("enough")

    monkeypatch.setattr(DistanceCompressor, "fit", stop)
    failure(1, data)
    failure(1, data, "--bits-per-item", "64", "--structure", "product", "--objective", "0.5", "--allow-non-metric")
    failure(1, data, "--objective", "neighbors", *GRAPH)
    names = ("numbers_per_item", "bits_per_item", "structure", "objective", "metric_only")
    assert [[settings[name] for name in names] for settings in asked] == [
        [None, None, "auto", "distances", True],
        [None, 64.0, "product", 0.5, False],
        [None, None, "graph", "neighbors", True],
    ]


def test_table(data: str) -> None:
    result = runner.invoke(app, ["compress", data, *SHORT, *GRAPH])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for shown in (
        "mean squared error",
        "relative error",
        "Spearman correlation",
        "neighbour recall@10",
        "numbers per item",
        "x.prodige:",  # beside the data, as no other place was named
        "bits per item",
    ):
        assert shown in result.stdout
    assert f" {Graph.load('x.prodige').n_edges} edges " in result.stdout


@pytest.mark.parametrize(("options", "promise"), [((), "yes"), (("--allow-non-metric",), "no: the triangle")])
def test_table_of_a_product(data: str, options: tuple[str, ...], promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponents, "METRIC", ((1.0, 1.0),))
    monkeypatch.setattr(exponents, "OTHERS", ((2.0, 1.0),))
    monkeypatch.setattr(
        Validation, "measure", lambda self, graph, n_jobs: Measured(graph.gauge - graph.power, 0.0, 0.0)
    )
    monkeypatch.setattr(exponents, "_LEAST_ITEMS", 3)
    result = runner.invoke(app, ["compress", data, *SHORT, "--metric", "cityblock", "--structure", "product", *options])
    assert result.exit_code == 0, result.output
    product = ProductGraph.load("x.prodige")
    assert f"60 items, {product.n_factors} factors, {product.n_hubs} hubs" in result.stdout
    assert f"is a metric          │ {promise}" in result.stdout
    assert "edges" not in result.stdout


def test_quiet(data: str) -> None:
    result = runner.invoke(app, ["compress", data, *SHORT, "--quiet"])
    assert (result.exit_code, result.output) == (0, "")
    assert Path("x.prodige").exists()


def test_the_same_seed_makes_the_same_file(data: str) -> None:
    files = []
    for number, (seed, jobs) in enumerate([("5", "1"), ("5", "2"), ("6", "1")]):
        options = ["-o", str(number), "--seed", seed, "--jobs", jobs, "--quiet"]
        assert runner.invoke(app, ["compress", data, *options]).exit_code == 0
        files.append(Path(str(number)).read_bytes())
    assert files[0] == files[1]
    assert files[0] != files[2]


def test_a_path_that_starts_elsewhere(data: str, tmp_path: Path) -> None:
    """The default place is beside the data; the file does not tell where that was."""
    (tmp_path / "below").mkdir()
    np.save(tmp_path / "below" / "y.npy", X)
    assert answer("below/y.npy")["output"] == str(Path("below", "y.prodige"))
    assert container.describe("below/y.prodige").metadata["data"] == "y.npy"


# -- what goes in ----------------------------------------------------------------------------------------------------


def test_every_kind_of_file(data: str) -> None:
    np.savez("one.npz", X=X, y=np.arange(60))
    np.savez("two.npz", a=X[:3], b=X)
    scipy.sparse.save_npz("sparse.npz", scipy.sparse.csr_array(np.where(X > 0, X, 0)))
    np.savetxt("plain.csv", X, delimiter=",")
    rows = [f"item {number}," + ",".join(map(repr, row)) for number, row in enumerate(X.tolist())]
    Path("names.csv").write_text("\n".join(["name,a,b,c,d,e,f,g,h", *rows]))
    for name, *options in (["one.npz"], ["two.npz", "--key", "b"], ["sparse.npz"], ["plain.csv"], ["names.csv"]):
        figures = answer(name, *options, "-o", "out", "--force")
        assert figures["n_items"] == 60
        assert figures["mse"] < figures["variance"]
        assert figures["notes"] == (["column 1 ('name') is not numeric: left out"] if name == "names.csv" else [])


def test_parquet(data: str) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(X, columns=list("abcdefgh")).to_parquet("x.parquet")
    assert answer("x.parquet")["n_items"] == 60


def test_parquet_without_the_extra(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install 'prodige[tables]'" in failure(1, "x.parquet")


def test_notes_go_to_stderr(data: str) -> None:
    rows = [f"{number}\x1b[2J," + ",".join(map(repr, row)) for number, row in enumerate(X.tolist())]
    Path("x.csv").write_text("\n".join(["na\x1b[2Jme,a,b,c,d,e,f,g,h", *rows]))
    result = runner.invoke(app, ["compress", "x.csv", *SHORT])
    assert result.exit_code == 0, result.output
    assert result.stderr == "Note: column 1 ('na\\x1b[2Jme') is not numeric: left out\n"


def test_warnings_become_notes(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = DistanceCompressor.fit

    def warn(self: DistanceCompressor, X: Any) -> DistanceCompressor:
        for _ in range(2):
            warnings.warn("something is odd", UserWarning, stacklevel=1)
        return fit(self, X)

    monkeypatch.setattr(DistanceCompressor, "fit", warn)
    assert answer(data)["notes"] == ["something is odd"]
    result = runner.invoke(app, ["compress", data, "--force", *SHORT])
    assert result.stderr == "Note: something is odd\n"


def test_metrics(data: str) -> None:
    np.save("d.npy", pairwise_distances(X, metric="cityblock"))
    direct = answer(data, "--metric", "cityblock")
    given = answer("d.npy", "--metric", "precomputed")
    assert given["variance"] == pytest.approx(direct["variance"], rel=1e-5)
    assert given["mse"] < given["variance"]


def test_normalize(data: str) -> None:
    np.save("unit.npy", X / np.linalg.norm(X, axis=1, keepdims=True))
    scipy.sparse.save_npz("sparse.npz", scipy.sparse.csr_array(X))
    target = answer("unit.npy")["variance"]
    assert answer(data, "--normalize")["variance"] == pytest.approx(target, rel=1e-4)
    assert answer("sparse.npz", "--normalize")["variance"] == pytest.approx(target, rel=1e-4)
    assert container.describe("x.prodige").metadata["normalized"] is True


def test_hubs(data: str) -> None:
    assert answer(data, "--hubs", "3")["n_hubs"] <= 3
    assert container.describe("x.prodige").metadata["n_hubs"] == 3


def test_time_limit(data: str) -> None:
    figures = answer(data, "--max-time", "1.5")
    assert figures["seconds"] >= 1.5  # a fit of so few items ends sooner by itself
    assert container.describe("x.prodige").metadata["max_time"] == 1.5


def test_items_that_are_all_alike(data: str) -> None:
    """There is no rank correlation and no relative error then; JSON has no word for that but null."""
    np.save("same.npy", np.ones((20, 3)))
    figures = answer("same.npy")
    assert figures["mse"] == 0
    assert figures["spearman"] is figures["relative_error"] is None
    result = runner.invoke(app, ["compress", "same.npy", "--force", *SHORT])
    assert result.exit_code == 0, result.output


# -- how it fails ----------------------------------------------------------------------------------------------------


def test_bad_files(data: str) -> None:
    np.save("vector.npy", X[0])
    np.save("words.npy", X.astype(str))
    np.save("pickled.npy", X.astype(object))
    np.save("nan.npy", np.where(X > 2, np.nan, X))
    np.save("two.npy", X[:2])
    Path("text.npy").write_text("Not an array.")
    for name, message in (
        ("nowhere.npy", "Error: nowhere.npy: No such file or directory"),
        ("vector.npy", "vector.npy: the array must have two axes"),
        ("words.npy", "words.npy: the array must hold real numbers"),
        ("pickled.npy", "pickled.npy: it holds pickled Python objects"),
        ("nan.npy", "is nan, one of"),
        ("two.npy", "at least 3 items"),
        ("text.npy", "text.npy: it is not a file written by numpy.save"),
        ("x.xlsx", "x.xlsx: files ending in .xlsx are not read"),
    ):
        assert message in failure(1, name)
    for ending in ("npy", "npz", "parquet"):
        os.mkfifo(f"pipe.{ending}")  # that nobody writes to
        assert f"'pipe.{ending}' cannot be read as a file: it is a pipe" in failure(1, f"pipe.{ending}")
    os.mkdir("folder.npy")
    assert "'folder.npy' cannot be read as a file: it is a directory" in failure(1, "folder.npy")
    assert not list(Path().glob("*.prodige"))


def refuse_to_fit(self: DistanceCompressor, X: Any) -> None:
    pytest.fail("nothing must be fitted after a mistake like this")


def test_bad_settings(data: str) -> None:
    assert "numbers_per_item = 2.5 is too small" in failure(1, data, "-n", "2.5")
    assert "n_hubs" in failure(1, data, "--hubs", "1000")
    assert "square" in failure(1, data, "--metric", "precomputed")


def test_usage_errors(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DistanceCompressor, "fit", refuse_to_fit)
    for arguments in (
        (),
        (data, "--hubs", "0"),
        (data, "--hubs", "-3"),
        (data, "--hubs", "many"),
        (data, "--method", "magic"),
        (data, "--max-time", "0"),
        (data, "--seed", "-1"),
        (data, "--numbers-per-item", "few"),
        (data, "-n", "nan"),
        (data, "-n", "inf"),
        (data, "-n", "0"),
        (data, "-n", "-4"),
        (data, "--max-time", "nan"),
        (data, "--max-time", "inf"),
        (data, "--jobs", "0"),
        (data, "--jobs", str(10**9)),
        (data, "--metric", "nonsense"),
        (data, "--key", "X"),
        (data, "--normalize", "--metric", "precomputed"),
        (data, "--method", "l0", "--hubs", "4"),
        (data, "--method", "l0", "--bits-per-item", "64"),
        (data, "--method", "l0", "--structure", "product"),
        (data, "--hubs", "4", "--structure", "product"),
        (data, "--bits", "8", "--structure", "product"),
        (data, "--bits", "8", "--bits-per-item", "64"),
        (data, "--numbers-per-item", "4", "--bits-per-item", "64"),
        (data, "--bits-per-item", "0"),
        (data, "--bits-per-item", "nan"),
        (data, "--structure", "tree"),
        (data, "--objective", "both"),
        (data, "--objective", "1.5"),
        (data, "--objective", "nan"),
        (data, "--output", data),
        (data, "--nonsense"),
    ):
        assert failure(2, *arguments)
    assert np.array_equal(np.load(data), X)
    assert "'nonsense' is none of braycurtis," in failure(2, data, "--metric", "nonsense")
    assert "0 is no number of threads" in failure(2, data, "-j", "0")
    assert "give it or --numbers-per-item, not both" in failure(2, data, "-n", "4", "--bits-per-item", "64")
    assert "'both' is neither 'distances' nor 'neighbors' nor a" in failure(2, data, "--objective", "both")
    assert "nan is not a finite number" in failure(2, data, "-n", "nan")


def test_an_existing_file_stays(data: str) -> None:
    Path("x.prodige").write_text("precious")
    assert failure(1, data) == ("Error: x.prodige exists; use --force to replace it, or --output to name another file")
    assert failure(1, data, "--json")
    assert Path("x.prodige").read_text() == "precious"
    assert answer(data, "--force")["n_items"] == 60
    assert ProductGraph.load("x.prodige").n_items == 60


def test_the_place_is_tried_first(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DistanceCompressor, "fit", refuse_to_fit)
    os.mkdir("folder")
    assert failure(1, data, "-o", "nowhere/x") == "Error: nowhere/x: No such file or directory"
    assert failure(1, data, "-o", "folder") == "Error: folder: Is a directory"
    assert failure(1, data, "-o", "x.npy/y").endswith("x.npy/y: Not a directory")

    def forbidden(*arguments: Any, **options: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(atomic, "open", forbidden, raising=False)
    assert failure(1, data, "-o", "x") == "Error: x: Permission denied"
    assert sorted(os.listdir()) == ["folder", "x.npy"]


def test_trying_leaves_no_trace(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: DistanceCompressor, X: Any) -> None:
        raise ValueError("no luck")

    monkeypatch.setattr(DistanceCompressor, "fit", fail)
    assert failure(1, data) == "Error: no luck"
    assert os.listdir() == ["x.npy"]


def test_a_full_disk_leaves_the_old_file(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(data)
    before = Path("x.prodige").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert failure(1, data, "--force", "--seed", "1") == "Error: x.prodige: No space left on device"
    assert Path("x.prodige").read_bytes() == before
    assert sorted(os.listdir()) == ["x.npy", "x.prodige"]


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["graph", "product"])
def test_an_interrupt_keeps_the_best_graph(data: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(self: FitProgress, record: Record) -> None:
        if record.step == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(FitProgress, "__call__", press)
    message = "Interrupted: the best graph so far is in x.prodige"
    assert failure(130, data, "--structure", kind) == message
    graph: Any = loading.load("x.prodige")
    assert graph.numbers_per_item <= 4
    assert np.isfinite(graph.distances()).all()
    metadata = container.describe("x.prodige").metadata
    assert (metadata["stopped"], metadata["mse"]) == ("interrupt", None)
    figures = answer(data, "--force", code=130)
    assert figures["interrupted"] is True
    assert figures["mse"] is None


def test_an_interrupt_while_measuring_keeps_the_graph(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(self: FitProgress) -> None:
        monkeypatch.setattr(Queryable, "distances", lambda *arguments, **options: signal.raise_signal(signal.SIGINT))

    monkeypatch.setattr(FitProgress, "measuring", press)
    assert failure(130, data) == "Interrupted: the best graph so far is in x.prodige"
    assert container.describe("x.prodige").metadata["stopped"] == "finished"


def test_an_interrupt_before_there_is_a_graph(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DistanceCompressor, "fit", lambda self, X: signal.raise_signal(signal.SIGINT))
    assert failure(130, data) == "Interrupted before there was a graph: nothing was written"
    assert os.listdir() == ["x.npy"]
