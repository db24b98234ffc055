"""Compressors in files: what is loaded gives the same bits, and what could be none is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances

import prodige
from prodige import DistanceCompressor, Graph, GraphRecommender
from prodige.compression import saving
from prodige.graph import container
from prodige.graph.container import FileFormatError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
NEW = RNG.normal(size=(7, 5))
SPARSE = scipy.sparse.random(60, 30, 0.3, "csr", random_state=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.prodige"


def fitted(X: Any = X, **parameters: Any) -> DistanceCompressor:
    return DistanceCompressor(random_state=0, n_jobs=1, **parameters).fit(X)


def assert_same(loaded: Any, model: DistanceCompressor, X: Any, new: Any) -> None:
    """Every answer has the same bits."""
    assert isinstance(loaded, DistanceCompressor)
    assert loaded.graph_ == model.graph_
    for name in (*saving.PARAMETERS, "structure_", "stopped_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    np.testing.assert_array_equal(loaded.anchors_, model.anchors_)
    np.testing.assert_array_equal(loaded.transform(new), model.transform(new))
    assert loaded.insert(new) == model.insert(new)
    assert (loaded.score(X), loaded.score(new)) == (model.score(X), model.score(new))
    for one, other in zip(loaded.kneighbors(new), model.kneighbors(new), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(loaded.kneighbors(n_neighbors=2)[1], model.kneighbors(n_neighbors=2)[1])
    np.testing.assert_array_equal(loaded.get_feature_names_out(), model.get_feature_names_out())


@pytest.mark.parametrize(
    ("X", "new", "parameters"),
    [
        (X, NEW, {}),
        (X, NEW, {"structure": "graph"}),
        (np.repeat(X, 3, axis=0), NEW, {"bits_per_item": 128, "objective": "neighbors"}),
        (X, NEW, {"bits_per_item": 200, "metric": "manhattan", "objective": 0.5, "metric_only": False}),
        (X.astype(np.float32), NEW.astype(np.float32), {"numbers_per_item": np.float64(5), "n_hubs": np.int64(4)}),
        (X * 1e20, NEW * 1e20, {"max_time": 0.5}),
        (X, NEW, {"metric": "cosine", "numbers_per_item": 3}),
        (X, NEW, {"metric": "seuclidean"}),
        (X, NEW, {"metric": "mahalanobis"}),
        (pairwise_distances(X), pairwise_distances(NEW, X), {"metric": "precomputed"}),
        (SPARSE, SPARSE[:5], {}),
        (scipy.sparse.csr_array(SPARSE), scipy.sparse.csr_array(SPARSE[:5]), {"metric": "cosine"}),
        (X[:6], NEW, {"numbers_per_item": 20}),
    ],
    ids=str,
)
def test_saved_and_loaded(path: Path, X: Any, new: Any, parameters: dict[str, Any]) -> None:
    model = fitted(X, **parameters)
    model.save(path)
    loaded = DistanceCompressor.load(path, n_jobs=1)
    assert_same(loaded, model, X, new)
    assert (loaded.n_jobs, loaded.history_) == (1, [])
    assert_same(prodige.load(path), model, X, new)
    first = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == first
    loaded.fit(X)  # it is an estimator like any other


def test_the_way_of_the_paper(path: Path) -> None:
    model = fitted(X[:20], method="l0", callbacks=[lambda status: True])
    model.save(path)
    loaded = DistanceCompressor.load(path)
    assert (loaded.structure_, loaded.lambda_) == ("l0", model.lambda_)


def test_names_of_features(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    names = ["length", "Höhe", "", "d", "e"]
    model = fitted(pandas.DataFrame(X, columns=names))
    model.save(path)
    loaded = DistanceCompressor.load(path)
    assert loaded.feature_names_in_.tolist() == names
    new = pandas.DataFrame(NEW, columns=names)
    np.testing.assert_array_equal(loaded.transform(new), model.transform(new))
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(new.rename(columns={"d": "other"}))


def test_what_cannot_be_saved(path: Path) -> None:
    with pytest.raises(NotFittedError):
        DistanceCompressor().save(path)
    model = fitted(X[:10], metric=lambda a, b: float(np.abs(a - b).sum()))
    with pytest.raises(ValueError, match=r"metric is a function, '<lambda>', .* compressor\.graph_\.save, or use"):
        model.save(path)
    assert not path.exists()


def test_other_kinds(path: Path) -> None:
    model = fitted(structure="graph")
    model.graph_.save(path)
    with pytest.raises(FileFormatError, match=r"holds a graph, not a compressor; open it with prodige\.load or Gr"):
        DistanceCompressor.load(path)
    model.save(path)
    for wrong in (Graph, GraphRecommender):
        with pytest.raises(FileFormatError, match=r"it holds a compressor, not a .* or DistanceCompressor\.load"):
            wrong.load(path)
    with pytest.raises(ValueError, match="n_jobs") as caught:
        DistanceCompressor.load(path, n_jobs=0)
    assert not isinstance(caught.value, FileFormatError)


def lie(path: Path, content: dict[str, Any], arrays: dict[str, Any]) -> None:
    found = container.read(path)
    parameters = {**found.content["parameters"], **content.pop("parameters", {})}
    kept = {name: array for name, array in {**found.arrays, **arrays}.items() if array is not None}
    container.write(path, "compressor", {**found.content, "parameters": parameters, **content}, kept)
    with pytest.raises(FileFormatError, match="its parts do not fit together"):
        DistanceCompressor.load(path)


@pytest.mark.parametrize(
    "content",
    [
        {"more": 1},
        {"graph": None},
        {"graph": {}},
        *[{"structure": value} for value in ("ring", None)],
        *[{"stopped": value} for value in ("never", None)],
        *[{"unit": value} for value in (0, -1.0, "1", None)],
        *[{"n_features": value} for value in (0, 4, 6, 2**40, 5.0, None)],
        *[{"rows": value} for value in ("csr_array", "coo", None)],
        *[{"lambda": value} for value in ("1", -1.0)],
        *[{"parameters": {"numbers_per_item": value}} for value in (0, "4", True, 1e300)],
        *[{"parameters": {"bits_per_item": value}} for value in (0, "4", True, 1e300)],
        {"parameters": {"numbers_per_item": 4, "bits_per_item": 64}},
        *[{"parameters": {"structure": value}} for value in ("star", None)],
        *[{"parameters": {"objective": value}} for value in ("all", 2, None, True)],
        *[{"parameters": {"metric_only": value}} for value in (1, None)],
        *[{"parameters": {"metric": value}} for value in ("none", "precomputed", "mahalanobis", 3, None)],
        *[{"parameters": {"n_hubs": value}} for value in (0, 2.5, None, "many")],
        *[{"parameters": {"method": value}} for value in ("other", None)],
        *[{"parameters": {"max_time": value}} for value in (0, "long")],
        {"parameters": {"verbose": 3}},
    ],
    ids=str,
)
def test_contents_that_lie_are_refused(path: Path, content: dict[str, Any]) -> None:
    fitted().save(path)
    lie(path, content, {})


@pytest.mark.parametrize(
    "arrays",
    [
        {"anchors": None},
        {"anchors": np.arange(60, dtype=np.int32)},
        {"anchors": np.arange(59)},
        {"anchors": np.arange(1, 61)},
        {"anchors": np.arange(-1, 59)},
        {"anchors": np.arange(60)[::-1]},
        {"anchors": np.arange(0)},
        {"anchors": np.arange(60).reshape(60, 1)},
        {"rows": None},
        {"rows": np.full((60, 5), np.nan)},
        {"rows": np.zeros((60, 4))},
        {"rows": np.zeros((60, 5), np.int64)},
        {"rows": np.zeros(300)},
        {"feature_names": container.pack_texts(["a"] * 4)},
        {"codes": None},
        {"codes": np.zeros(3, np.uint8)},
    ],
    ids=str,
)
def test_arrays_that_lie_are_refused(path: Path, arrays: dict[str, Any]) -> None:
    fitted().save(path)
    lie(path, {}, arrays)


@pytest.mark.parametrize(
    "arrays",
    [
        {"indices": np.full(SPARSE.nnz, 30, np.int32)},
        {"indices": np.full(SPARSE.nnz, -1, np.int32)},
        {"indices": SPARSE.indices.astype(np.int64)},
        {"indices": SPARSE.indices[:-1]},
        {"indptr": SPARSE.indptr[::-1]},
        {"indptr": SPARSE.indptr[:-1]},
        {"indptr": SPARSE.indptr * 2},
        {"data": SPARSE.data.astype(np.int64)},
        {"data": np.full(SPARSE.nnz, np.inf)},
        {"data": None},
    ],
    ids=str,
)
def test_sparse_rows_that_lie_are_refused(path: Path, arrays: dict[str, Any]) -> None:
    fitted(SPARSE).save(path)
    lie(path, {}, arrays)


def test_what_metrics_took_from_the_data(path: Path) -> None:
    for metric, name, good in (("seuclidean", "V", np.ones(5)), ("mahalanobis", "VI", np.eye(5))):
        fitted(metric=metric).save(path)
        before = path.read_bytes()
        for wrong in (None, good[:4], -good, good * np.nan, good.astype(np.float32)):
            lie(path, {}, {name: wrong})
            path.write_bytes(before)
