"""Candidates of ranking graphs: neighbours are those of scikit-learn, and likeness makes edges short."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from prodige.recommendation.interactions import check_interactions
from prodige.recommendation.paper import candidates
from prodige.recommendation.paper.candidates import cosine_neighbors, join
from tastes import VARIANTS, tastes


@pytest.mark.parametrize("block", [1, 1 << 22])
def test_cosine_neighbors_are_those_of_scikit_learn(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_BLOCK", block)
    rows = tastes(60, 40)
    cosine = cosine_similarity(rows)
    np.fill_diagonal(cosine, 0)
    tail, head = cosine_neighbors(rows, 4)
    assert (tail != head).all()
    assert np.unique(tail * 60 + head).size == tail.size
    best = np.sort(cosine, axis=1)[:, -4:]
    assert np.array_equal(np.bincount(tail, minlength=60), (best > 0).sum(axis=1))
    for row in range(60):
        np.testing.assert_allclose(np.sort(cosine[row, head[tail == row]]), best[row][best[row] > 0], rtol=1e-5)


def test_candidates_of_the_variants() -> None:
    interacted = check_interactions(tastes(60, 40))
    pairs = interacted.tocoo()
    of_pairs = set(zip(pairs.row.tolist(), (60 + pairs.col).tolist(), strict=True))
    normal, bipartite, random = (join(interacted, edges, np.random.RandomState(0)) for edges in VARIANTS)
    assert set(zip(bipartite.i.tolist(), bipartite.j.tolist(), strict=True)) == of_pairs
    found = set(zip(normal.i.tolist(), normal.j.tolist(), strict=True))
    assert of_pairs < found
    assert all((i < 60) == (j < 60) for i, j in found - of_pairs)
    degree = np.bincount(np.concatenate([random.i, random.j]), minlength=100)
    assert 50 * 100 / 2 < random.n_edges <= 50 * 100
    assert degree.min() >= 30
    for joined in (normal, bipartite, random):
        assert joined.n_items == joined.n_vertices == 100
        assert (joined.weight > 0).all()


def test_weights_start_short_where_tastes_are_alike() -> None:
    joined = join(check_interactions(tastes()), "random", np.random.RandomState(0))
    group = np.concatenate([np.arange(200) % 5, np.arange(80) % 5])
    alike = group[joined.i] == group[joined.j]
    assert joined.weight[alike].mean() < 0.8 * joined.weight[~alike].mean()
