"""Data of different kinds are what they are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from scipy.spatial.distance import pdist, squareform

from prodige import datasets
from prodige.cli.reproduce import FamilyName
from prodige.datasets import Dataset
from prodige.reproduce import families


def top_share(points: NDArray[np.floating], width: int) -> float:
    """Return the share of the variance in the first principal directions."""
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) ** 2
    return float(values[:width].sum() / values.sum())


def test_names() -> None:
    assert tuple(name.value for name in FamilyName) == families.NAMES
    assert families.NAMES[:3] == datasets.NAMES
    with pytest.raises(ValueError, match=r"name must be one of mnist10k.*, got 'cifar'"):
        families.load("cifar")


@pytest.mark.parametrize("name", ["clusters", "manifold", "tree"])
def test_a_seed_gives_the_same_items(name: str) -> None:
    make = getattr(families, name)
    assert make(50).X.tobytes() == make(50).X.tobytes() != make(50, seed=1).X.tobytes()
    assert families.load(name).X.shape[0] == families.N_ITEMS


def test_clusters_are_apart() -> None:
    distances = squareform(pdist(families.clusters(600).X))
    np.fill_diagonal(distances, np.inf)
    nearest, all_pairs = distances.min(axis=1), distances[np.isfinite(distances)]
    assert np.median(nearest) < 0.7 * all_pairs.mean()


def test_a_manifold_is_flat_from_near_and_bent_from_far() -> None:
    points = families.manifold(2000).X.astype(np.float64)
    near = [points[np.argsort(((points - points[item]) ** 2).sum(axis=1))[:20]] for item in range(0, 2000, 100)]
    assert np.mean([top_share(part, 3) for part in near]) > 0.7
    assert top_share(points, 3) < 0.5


def test_a_tree_has_paths() -> None:
    family = families.tree(150)
    assert family.metric == "precomputed"
    matrix = family.X.astype(np.float64)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert (np.diagonal(matrix) == 0).all()
    # The shortest edges that join all items are the tree, but for the noise.
    paths = shortest_path(minimum_spanning_tree(matrix), directed=False)
    apart = ~np.eye(150, dtype=bool)
    assert np.corrcoef(paths[apart], matrix[apart])[0, 1] > 0.97
    assert not np.allclose(paths, matrix, rtol=0.01)  # there is noise


def test_rows_of_the_paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def load(name: str, data_dir: Path | None = None) -> Dataset:
        asked.append((name, data_dir))
        return Dataset(name, np.eye(4, dtype=np.float32), np.arange(4), Path("x"))

    monkeypatch.setattr(datasets, "load", load)
    family = families.load("glove10k", tmp_path)
    assert asked == [("glove10k", tmp_path)]
    assert family.space(1).distances([0], [1])[0, 0] == pytest.approx(2**0.5)
    families.load("glove10k")
    assert asked[-1] == ("glove10k", None)


def test_digits_have_length_1() -> None:
    np.testing.assert_allclose(np.linalg.norm(families.digits().X, axis=1), 1, rtol=1e-5)
