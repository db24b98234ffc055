"""Item neighbours against the dense table of cosines."""

from __future__ import annotations

import numpy as np
import pytest

from prodige.baselines import ItemKNN, item_knn

TABLE = np.random.default_rng(0).integers(0, 3, (40, 17)).astype(float)


def cosines(table: np.ndarray, shrinkage: float) -> np.ndarray:
    lengths = np.linalg.norm(table, axis=0)
    similar = table.T @ table / (lengths[:, None] * lengths[None] + shrinkage)
    np.fill_diagonal(similar, 0)
    return np.asarray(similar)


@pytest.mark.parametrize("shrinkage", [0.0, 10.0])
@pytest.mark.parametrize("k", [1, 5, 16, 1000])
@pytest.mark.parametrize("block", [1, 60, 1000])
def test_neighbours(k: int, shrinkage: float, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_knn, "_BLOCK", block)
    model = ItemKNN(k, shrinkage).fit(TABLE)
    target = cosines(TABLE, shrinkage)
    for row in target:
        row[row < np.sort(row)[-min(k, 16)]] = 0
    np.testing.assert_allclose(model.similarity_.toarray(), target, rtol=1e-5)
    np.testing.assert_allclose(model.scores(np.arange(40)), TABLE @ target.T, rtol=1e-5)
    assert model.numbers_per_item == (17 + 2 * np.count_nonzero(target) + 40 + 2 * np.count_nonzero(TABLE)) / 57


def test_items_without_anything_in_common_are_no_neighbours() -> None:
    model = ItemKNN(5).fit(np.eye(4))
    assert model.similarity_.nnz == 0
    assert not model.scores([0, 1]).any()
