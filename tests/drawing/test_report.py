"""The run report: its figures are right, it is one safe file, and half of one is never seen."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterator
from copy import copy
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import scipy.sparse
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances

from prodige import DistanceCompressor
from prodige.baselines import MDS, PCA, ResidualCoordinates, Star
from prodige.compression import selection
from prodige.drawing import report
from prodige.drawing.report import number, write_report
from prodige.drawing.svg import INK
from prodige.metric.evaluation import evaluate
from prodige.metric.space import Space

X = np.random.default_rng(0).normal(size=(60, 8))

# Tags that stand alone.
ALONE = {"meta", "link"}


class Page(HTMLParser):
    """What is in a page; fails where a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            assert not name.startswith("on")  # no event handlers
            if name in ("href", "src", "xlink:href"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in ALONE:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module", autouse=True)
def _short() -> Iterator[None]:
    """Fits of a fraction of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "N_STEPS", 24)
        patch.setattr(report, "N_MDS_STEPS", 20)
        yield


def fitted(data: Any = X, **options: Any) -> DistanceCompressor:
    """Fit a graph of edges unless another structure is asked for."""
    settings: dict[str, Any] = {"structure": "graph", "random_state": 0, "n_jobs": 1}
    return DistanceCompressor(**settings | options).fit(data)


def written(path: Path, compressor: DistanceCompressor, data: Any = X, **options: Any) -> str:
    write_report(path / "run.html", compressor, data, **options)
    return (path / "run.html").read_text()


@pytest.fixture(scope="module")
def compressor() -> DistanceCompressor:
    return fitted()


@pytest.fixture(scope="module")
def product() -> DistanceCompressor:
    return fitted(structure="product")


@pytest.fixture(scope="module")
def page(compressor: DistanceCompressor, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report as most have it."""
    return written(tmp_path_factory.mktemp("page"), compressor, name="sixty points", notes=["something was odd"])


def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of the table of errors, by method."""
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    lines = [re.findall("<td>(.*?)</td>", line) for line in body.split("</tr>") if "<td>" in line]
    return {line[0]: line[1:] for line in lines}


def test_errors_are_those_of_the_methods(tmp_path: Path) -> None:
    compressor = fitted(numbers_per_item=5)
    found = rows(written(tmp_path, compressor))
    assert list(found) == ["graph", "MDS", "star", "PCA", "residual coordinates"]
    mds = MDS(5, random_state=0, n_steps=20, n_jobs=1).fit(X)
    models: dict[str, Any] = {
        "graph": compressor.graph_,
        "MDS": mds,
        "star": Star().fit(X),
        "PCA": PCA(5).fit(X),
        "residual coordinates": ResidualCoordinates(5).fit(X),
    }
    for name, model in models.items():
        target = evaluate(model, Space(X), random_state=0)
        assert found[name][2] == number(target.mse)
        assert found[name][3] == f"{target.relative_error:.1%}"
        assert found[name][5] == f"{target.recall:.1%}"
    compressor.graph_.save(tmp_path / "graph.prodige")
    assert found["graph"][:2] == [
        number(compressor.graph_.numbers_per_item),
        number(8 * (tmp_path / "graph.prodige").stat().st_size / 60),
    ]
    assert [found[name][:2] for name in ("MDS", "star", "PCA")] == [["5", "160"], ["1", "32"], ["5", "160"]]
    assert found["residual coordinates"][:2] == ["5", "160"]


def test_a_product(product: DistanceCompressor, tmp_path: Path) -> None:
    """Without edges there are neither degrees nor a curve of their number; the picture says what it shows instead."""
    page = written(tmp_path, product, name="sixty points")
    graph, found, words = product.graph_, rows(page), " ".join(" ".join(Page(page).words).split())
    assert list(found) == ["product of graphs", "MDS", "star", "PCA", "residual coordinates"]
    mine = found["product of graphs"]
    assert mine[:2] == [number(graph.numbers_per_item), number(graph.bits_per_item)]
    assert mine[2] == number(evaluate(graph, Space(X), random_state=0).mse)
    assert page.count('<tr class="ours">') == 1
    for part in (
        "sixty points as a product of graphs",
        f"60 items at {graph.n_hubs} hubs of {graph.n_factors} graphs",
        "by power 2 and gauge 2; it is a metric.",
        "Loss by step and by time.",
        "Items, each joined to its 5 nearest. A product has no edges between items of its own.",
        "structure product",
    ):
        assert part in words
    assert page.count("<svg") == 4  # curves, distances, bits, items


def test_a_product_that_is_no_metric(product: DistanceCompressor, tmp_path: Path) -> None:
    compressor, metric = copy(product), product.graph_
    compressor.graph_ = metric.from_factors(metric.factors, metric.codes, metric.lengths, power=2, gauge=1)
    assert "gauge 1; it is not promised to be a metric." in written(tmp_path, compressor)


def test_others_in_as_many_bits(tmp_path: Path) -> None:
    """Vectors in float32 get as many whole numbers as fit in; rounded ones all of the bits."""
    found = rows(written(tmp_path, fitted(structure="auto", bits_per_item=130)))
    assert [found[name][:2] for name in ("MDS", "PCA")] == [["4", "128"], ["4", "128"]]
    assert 100 < float(found["residual coordinates"][1]) <= 130
    many = np.random.default_rng(0).normal(size=(600, 3))
    least = rows(written(tmp_path, fitted(many, structure="product", bits_per_item=20), many))
    assert [least[name][:2] for name in ("MDS", "PCA")] == [["1", "32"], ["1", "32"]]
    assert float(least["residual coordinates"][1]) <= 20


def test_what_is_on_the_page(page: str) -> None:
    words = " ".join(" ".join(Page(page).words).split())
    for part in (
        "sixty points as a graph",
        "something was odd",
        "numbers_per_item None",
        "metric euclidean",
        "structure hubs",
        "steps 24",
        "torch",
        "DistanceCompressor(n_jobs=1, random_state=0, structure='graph').fit(X)",
    ):
        assert part in words
    assert page.count("<svg") == 5  # curves, degrees, distances, bits, graph


def test_one_file_without_scripts_or_network(page: str) -> None:
    parsed = Page(page)
    assert parsed.tags["script"] == parsed.tags["iframe"] == 0
    assert all(link.startswith(("#", "data:")) for link in parsed.links)
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert max(Counter(parsed.ids).values()) == 1  # pictures share a page
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)


def test_text_is_escaped(compressor: DistanceCompressor, tmp_path: Path) -> None:
    evil = "</title><script>alert('x')</script>$title & 🙂 שלום " + "y" * 10_000
    page = written(tmp_path, compressor, name=evil, command=evil, notes=[evil])
    parsed = Page(page)
    assert parsed.tags["script"] == 0
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 5  # title, heading, note, data, command
    assert evil in unescape(page)


def test_pictures_take_the_colour_of_the_page(page: str) -> None:
    assert INK not in page
    assert "currentColor" in page
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"(fill|stroke): ?(#000000|black|#ffffff|white)", page)


def test_the_same_again(page: str, compressor: DistanceCompressor, tmp_path: Path) -> None:
    """The same run makes the same pictures, says what goes on, and leaves the settings of matplotlib as they were."""
    figures, said = pyplot.get_fignums(), list[str]()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # what the first page has changed would not be seen again
        before = dict(matplotlib.rcParams)
        pages = page, written(tmp_path, compressor, tell=said.append)
        assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == figures
    first, second = (re.findall("<svg.*?</svg>", page, flags=re.DOTALL) for page in pages)
    assert len(first) == 5
    assert first == second
    others = ("MDS", "star", "PCA", "residual coordinates")
    assert said == ["measuring", *(f"comparing with {other}" for other in others), "drawing"]


def test_metrics_without_pca(tmp_path: Path) -> None:
    manhattan = fitted(metric="cityblock")
    methods = ["graph", "MDS", "star", "residual coordinates"]
    assert list(rows(written(tmp_path, manhattan))) == methods
    distances = pairwise_distances(X)
    given = fitted(distances, metric="precomputed")
    assert list(rows(written(tmp_path, given, distances))) == methods
    sparse = scipy.sparse.csr_array(np.where(X > 0, X, 0))
    assert list(rows(written(tmp_path, fitted(sparse), sparse))) == methods


def test_more_numbers_than_columns(tmp_path: Path) -> None:
    assert rows(written(tmp_path, fitted(numbers_per_item=12)))["PCA"][0] == "8"


def test_a_fit_without_steps(tmp_path: Path) -> None:
    compressor = fitted(X[:3])
    assert compressor.history_ == []
    page = written(tmp_path, compressor, X[:3])
    Page(page)
    assert "There were no steps" in page
    assert rows(page)["graph"][2] in ("0", number(evaluate(compressor.graph_, Space(X[:3])).mse))


def test_items_that_are_all_alike(tmp_path: Path) -> None:
    same = np.ones((20, 3))
    page = written(tmp_path, fitted(same), same)
    Page(page)
    assert rows(page)["graph"][2:5] == ["0", "none", "none"]


def test_the_l0_way(tmp_path: Path) -> None:
    words = " ".join(Page(written(tmp_path, fitted(method="l0", max_time=0.5))).words)
    assert "penalty that met the budget" in words


def test_wrong_input(compressor: DistanceCompressor, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="X must be what compressor was fitted to: 60 items, got 59"):
        write_report(tmp_path / "run.html", compressor, X[:59])
    with pytest.raises(NotFittedError):
        write_report(tmp_path / "run.html", DistanceCompressor(), X)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_the_old_page(
    compressor: DistanceCompressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.html").write_text("precious")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(tmp_path / "run.html", compressor, X)
    assert (tmp_path / "run.html").read_text() == "precious"
    assert os.listdir(tmp_path) == ["run.html"]
