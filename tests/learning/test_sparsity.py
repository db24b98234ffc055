"""L0 penalty, importance and budgets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learning.test_embedding import make
from prodige import GraphEmbedding
from prodige.learning.sparsity import Budget, Importance, drop_edges, l0_penalty, spanning_edges
from strategies import hub_graph, point_graph


def test_l0_penalty_is_the_mean_probability() -> None:
    for sparse in (False, True):
        embedding = GraphEmbedding([0, 0, 1], [1, 2, 2], probability=[0.2, 0.5, 0.8], sparse=sparse)
        value = l0_penalty(embedding, 3.0)
        assert value.item() == pytest.approx(1.5)
        value.backward()  # type: ignore[no-untyped-call]
        gradient = embedding.theta_b.grad
        assert gradient is not None
        assert gradient.is_sparse == sparse
        np.testing.assert_allclose(gradient.to_dense(), [0.16, 0.25, 0.16], rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_l0_penalty_of_a_batch_has_the_same_mean(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    embedding = make(point_graph(40, 4, 4), probability=0.5, sparse=sparse)
    with torch.no_grad():
        embedding.theta_b.add_(torch.from_numpy(rng.normal(size=embedding.n_edges)))
    generator = torch.Generator().manual_seed(0)
    values = [l0_penalty(embedding, 1.0, 10, generator).item() for _ in range(2000)]
    assert np.mean(values) == pytest.approx(l0_penalty(embedding, 1.0).item(), abs=4 * np.std(values) / np.sqrt(2000))
    l0_penalty(embedding, 1.0, 10, generator).backward()  # type: ignore[no-untyped-call]
    assert embedding.theta_b.grad is not None
    assert embedding.theta_b.grad.is_sparse == sparse


def test_importance_is_the_rise_of_the_loss() -> None:
    """Two items, two hubs: without edge 1-2 the way from 0 to 1 is 2.5 instead of 2."""
    embedding = GraphEmbedding(
        [0, 1, 1, 0], [2, 2, 3, 3], [1.0, 1.0, 1.5, 1.0], probability=1.0, n_items=2, dtype=torch.float64
    )
    for curvature, rise in ((2.0, 0.7**2 - 0.2**2), (None, 0.5 * 2 * 0.2)):
        embedding.importance = Importance(curvature)
        (embedding([0], [1]) - 1.8).square().sum().backward()
        values = embedding.importance.values
        assert values[1] == pytest.approx(rise)
        assert values[2] == values[3] == 0
        # Without edge 0-2 all below it is taken to move by 2.5, as vertex 2 would: its way back in is 0-3-1-2.
        assert values[0] == pytest.approx(2.7**2 - 0.2**2 if curvature else 2.5 * 2 * 0.2)


def test_importance_forgets_and_follows_pruning() -> None:
    embedding = make(point_graph(40, 4, 4))
    embedding.importance = Importance(memory=40)
    with pytest.raises(RuntimeError, match="backward pass"):
        _ = embedding.importance.values
    embedding(np.arange(40)).sum().backward()
    first = embedding.importance.values.copy()
    assert (first >= 0).all()
    for _ in range(20):
        (2 * embedding(np.arange(40))).sum().backward()
    np.testing.assert_allclose(embedding.importance.values, 2 * first, rtol=1e-5)
    mask = first > np.median(first)
    embedding.keep(mask)
    np.testing.assert_allclose(embedding.importance.values, 2 * first[mask], rtol=1e-5)


@pytest.mark.parametrize("numbers", [4.0, 4.5])
def test_budget_is_met_exactly_without_disconnecting(numbers: float) -> None:
    edges = hub_graph(200, 8, 10)
    embedding = make(edges, dtype=torch.float32)
    rng = np.random.default_rng(0)
    budget = Budget(numbers)
    sizes = []
    with torch.no_grad():
        embedding.theta_b.copy_(torch.from_numpy(rng.normal(5, 1, embedding.n_edges)))
    for step in range(100):
        budget.step(embedding, step / 100)
        sizes.append(embedding.n_edges)
    allowed = budget.n_edges(200, 208)
    assert sizes[19] == edges.i.size
    assert sizes[-1] == min(allowed, edges.i.size)
    assert sizes == sorted(sizes, reverse=True)
    graph = embedding.freeze()
    assert graph.is_connected
    assert graph.numbers_per_item <= numbers
    assert (208 + 2 * (graph.n_edges + 1)) / 200 > numbers


def test_least_important_edges_go_first() -> None:
    embedding = make(point_graph(40, 4, 4))
    embedding.importance = Importance()
    embedding(np.arange(40)).sum().backward()
    values = embedding.importance.values
    protected = spanning_edges(embedding, values)
    expected = np.sort(values[~protected])[10:]
    assert drop_edges(embedding, 10) == 10
    np.testing.assert_allclose(np.sort(embedding.importance.values)[-20:], np.sort(values)[-20:])
    assert (np.sort(np.concatenate([values[protected], expected])) == np.sort(embedding.importance.values)).all()


def test_spanning_edges_leave_out_idle_hubs() -> None:
    embedding = GraphEmbedding([0, 1, 0], [1, 2, 3], n_items=2)  # vertices 2 and 3 are hubs that join nothing
    assert spanning_edges(embedding, np.zeros(3)).tolist() == [True, False, False]


def test_bad_budgets() -> None:
    embedding = make(hub_graph(50, 3, 0))
    with pytest.raises(ValueError, match=r"numbers_per_item = 2.0 allows 23 edges.*give at least 3"):
        Budget(2.0).check(embedding)
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="numbers_per_item must be"):
            Budget(wrong)
    with pytest.raises(ValueError, match="start and end"):
        Budget(4, start=0.8, end=0.5)
    with pytest.raises(ValueError, match="lambda_"):
        l0_penalty(embedding, -1.0)
    with pytest.raises(ValueError, match="n_edges must be between 1"):
        l0_penalty(embedding, 1.0, n_edges=0)
    with pytest.raises(ValueError, match="memory"):
        Importance(memory=0)
    with pytest.raises(ValueError, match="curvature must be a finite number of 0 or more, got nan"):
        Importance(curvature=float("nan"))
    with pytest.raises(TypeError, match="numbers_per_item must be a number, got None"):
        Budget(None)  # type: ignore[arg-type]
