"""GraphEmbedding: parameters, distances, gradients of the weights, thinning, and behaving as a module."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from torch.func import functional_call

from prodige import Graph, GraphEmbedding
from prodige.learning.softplus import inverse_softplus
from prodige.learning.sparsity import Importance
from prodige.metric import candidates
from strategies import Edges, graphs, hub_graph, point_graph

pytestmark = pytest.mark.filterwarnings("ignore:the edges leave the items in:UserWarning")


def make(edges: Edges, **options: Any) -> GraphEmbedding:
    options.setdefault("dtype", torch.float64)
    options.setdefault("probability", 1.0)
    return GraphEmbedding(edges.i, edges.j, edges.weight, n_vertices=edges.n_vertices, n_items=edges.n_items, **options)


def test_from_candidates() -> None:
    edges = candidates.hubs(np.arange(12.0)[:, None], n_hubs=2, random_state=0)
    embedding = GraphEmbedding.from_candidates(edges, 1.0, n_jobs=1)
    assert (embedding.n_items, embedding.n_vertices) == (12, 14)
    np.testing.assert_allclose(embedding.weight.detach(), edges.weight, rtol=1e-5)
    assert (embedding.probability == 1).all()
    assert (GraphEmbedding.from_candidates(edges, weight=3.0).weight.detach() - 3).abs().max() < 1e-5
    with pytest.raises(TypeError, match=r"candidates must be edges as .* got ndarray"):
        GraphEmbedding.from_candidates(np.ones((3, 2)))  # type: ignore[arg-type]


def triangle(**options: Any) -> GraphEmbedding:
    return GraphEmbedding([0, 0, 1], [1, 2, 2], [1.0, 4.0, 2.0], **options)


def test_initial_values_are_exact() -> None:
    weight = np.array([0.0, 1e-30, 1e-6, 0.3, 1.0, 25.0, 1e6])
    probability = np.array([0.0, 1e-6, 0.25, 0.5, 0.9, 1 - 1e-6, 1.0])
    i, j = np.arange(7), np.arange(1, 8)
    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float64, 1e-13)):
        embedding = GraphEmbedding(i, j, weight, probability, dtype=dtype)
        np.testing.assert_allclose(embedding.weight.detach(), weight, rtol=tolerance)
        np.testing.assert_allclose(embedding.probability.detach(), probability, rtol=10 * tolerance)
        assert torch.isfinite(embedding.weight).all()
        embedding.eval()([0]).sum().backward()
        assert embedding.theta_w.grad is not None
        assert torch.isfinite(embedding.theta_w.grad).all()
    assert inverse_softplus(np.array(0.0)) == -np.inf


@given(edges=graphs())
def test_certain_edges_give_the_distances_of_the_graph(edges: Edges) -> None:
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    embedding = make(edges, unreachable=77.0)
    expected = np.where(np.isinf(graph.distances()), 77.0, graph.distances())
    everything = np.arange(edges.n_items)
    for mode in (True, False):
        np.testing.assert_allclose(embedding.train(mode)(everything).detach(), expected, atol=1e-5)


def test_evaluation_keeps_the_likely_edges() -> None:
    embedding = triangle(probability=[0.9, 0.9, 0.4], unreachable=50.0).eval()
    assert embedding([0]).tolist() == [[0.0, 1.0, 4.0]]
    assert embedding([1], [2]).item() == 5.0
    with torch.no_grad():
        embedding.theta_b[1] = -1
    with pytest.warns(UserWarning, match="2 parts"):
        graph = embedding.freeze()
    assert graph.n_edges == 1
    assert embedding([0]).tolist() == [[0.0, 1.0, 50.0]]
    assert embedding.numbers_per_item == graph.numbers_per_item


def test_training_draws_another_graph_for_each_source() -> None:
    embedding = triangle(probability=0.5, unreachable=50.0, generator=torch.Generator().manual_seed(0))
    values = embedding(np.zeros(2000, dtype=int), [2]).flatten()
    # 4 with the direct edge or 3 over vertex 1; the rest is unreachable.
    shares = {value: (values == value).double().mean().item() for value in values.unique().tolist()}
    assert shares == pytest.approx({3.0: 0.25, 4.0: 0.375, 50.0: 0.375}, abs=0.05)


def test_changed_weights_are_noticed() -> None:
    """Also a change through .data, which leaves no trace in the version of the parameter."""
    embedding = triangle(probability=1.0).eval()
    assert embedding([0], [2]).item() == pytest.approx(3)
    embedding.theta_w.data[:] = torch.from_numpy(inverse_softplus(np.array([1.0, 0.5, 2.0])))
    assert embedding([0], [2]).item() == pytest.approx(0.5)


@pytest.mark.parametrize("edges", [point_graph(12, 3, 2), hub_graph(14, 3, 2)], ids=["points", "hubs"])
def test_gradcheck(edges: Edges) -> None:
    embedding = make(edges, unreachable="learn").eval()
    sources, targets = torch.tensor([0, 5, 5]), torch.tensor([1, 5, 9, 9, edges.n_vertices - 1])

    def distances(theta_w: torch.Tensor, theta_u: torch.Tensor) -> Any:
        return functional_call(embedding, {"theta_w": theta_w, "theta_u": theta_u}, (sources, targets))

    theta_w = embedding.theta_w.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(distances, (theta_w, embedding.theta_u.detach().clone().requires_grad_()))


def test_unreachable_can_be_learned() -> None:
    embedding = GraphEmbedding([0], [1], n_vertices=3, unreachable="learn", probability=1.0)
    optimizer = torch.optim.Adam(embedding.parameters(), lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        loss = (embedding([0], [2]) - 4).square().sum()
        loss.backward()
        optimizer.step()
    assert embedding.unreachable.item() == pytest.approx(4, abs=0.01)
    assert embedding([0], [1]).item() == pytest.approx(1)


@pytest.mark.parametrize("estimator", ["toggle", "path", "score"])
def test_sparse_gradients_equal_dense_ones(estimator: str) -> None:
    gradients = []
    for sparse in (False, True):
        generator = torch.Generator().manual_seed(3)
        embedding = make(
            point_graph(40, 4, 4), probability=0.7, estimator=estimator, sparse=sparse, generator=generator
        )
        sample = embedding.sample([0, 3], n_samples=3)
        sample.surrogate(sample.distances.square().sum(-1)).backward()  # type: ignore[no-untyped-call]
        for parameter in (embedding.theta_w, embedding.theta_b):
            assert parameter.grad is not None
            assert parameter.grad.is_sparse == sparse
            gradients.append(parameter.grad.to_dense())
    for dense, sparse_one in zip(gradients[:2], gradients[2:], strict=True):
        assert dense.abs().sum() > 0
        torch.testing.assert_close(dense, sparse_one)


def test_prune_carries_the_optimiser_along() -> None:
    torch.manual_seed(0)
    edges = point_graph(30, 4, 4)
    embedding = make(edges, probability=np.where(np.arange(edges.i.size) % 3 == 0, 0.2, 0.9))
    optimizer = torch.optim.Adam(embedding.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        embedding(np.arange(30)).square().mean().backward()
        optimizer.step()
    kept = (embedding.probability >= 0.5).numpy(force=True)
    before = {name: optimizer.state[embedding.theta_w][name].clone() for name in ("exp_avg", "exp_avg_sq")}
    weight = embedding.weight.detach()[kept]
    assert embedding.prune(optimizer=optimizer) == (~kept).sum()
    assert embedding.n_edges == kept.sum() == embedding.theta_b.numel() == embedding.j.numel()
    torch.testing.assert_close(embedding.weight.detach(), weight)
    for name, value in before.items():
        torch.testing.assert_close(optimizer.state[embedding.theta_w][name], value[kept])
    embedding(np.arange(30)).square().mean().backward()
    optimizer.step()
    assert embedding.freeze().n_edges == embedding.n_edges


def test_behaves_as_a_module() -> None:
    edges = point_graph(30, 4, 4)
    embedding = make(edges, probability=0.8, dtype=torch.float32, generator=torch.Generator().manual_seed(5))
    embedding([0])
    expected = embedding.eval()([0, 1])

    for other in (copy.deepcopy(embedding), pickle.loads(pickle.dumps(copy_without_generator(embedding)))):
        torch.testing.assert_close(other([0, 1]), expected)
        with torch.no_grad():
            other.theta_w += 1
        torch.testing.assert_close(embedding([0, 1]), expected)

    embedding.train().keep(np.arange(embedding.n_edges) % 2 == 0)
    expected = embedding.eval()([0, 1])
    file = io.BytesIO()
    torch.save(embedding.state_dict(), file)
    file.seek(0)
    fresh = make(edges, dtype=torch.float32).eval()
    fresh.load_state_dict(torch.load(file))
    assert fresh.n_edges == embedding.n_edges
    torch.testing.assert_close(fresh([0, 1]), expected)

    double = embedding.to(torch.float64)
    assert double([0]).dtype == torch.float64
    assert "n_edges=" in repr(embedding)
    with pytest.raises(TypeError, match="float32 or float64"):
        embedding.half()([0])


def copy_without_generator(embedding: GraphEmbedding) -> GraphEmbedding:
    other = copy.deepcopy(embedding)
    other.generator = None  # torch cannot pickle generators
    return other


def test_global_seed_makes_samples_repeat() -> None:
    embedding = make(point_graph(30, 4, 4), probability=0.5)
    results = []
    for _ in range(2):
        torch.manual_seed(4)
        results.append(embedding([0, 1]))
    torch.testing.assert_close(*results, rtol=0, atol=0)
    assert not torch.equal(embedding([0, 1]), results[0])


@pytest.mark.parametrize("estimator", ["toggle", "path", "score"])
@pytest.mark.parametrize("unreachable", [None, "learn"])
def test_is_freed_once_nobody_holds_it(estimator: str, unreachable: str | None) -> None:
    """By counting references alone: the garbage collector cannot look into autograd."""
    embedding = make(point_graph(30, 4, 4), probability=0.8, estimator=estimator, unreachable=unreachable)
    embedding.importance = Importance()
    died = weakref.ref(embedding)
    gc.collect()
    gc.disable()
    try:
        embedding([0, 1])  # without a backward pass
        losses = embedding([0, 1]).square().mean(1)
        if estimator == "score":
            with embedding.gathering([0, 1]):
                losses = embedding([0, 1]).square().mean(1)
        embedding.surrogate(losses).backward()  # type: ignore[no-untyped-call]
        sample = embedding.sample([0, 1], n_samples=2)
        del sample
        kept = embedding([3])
        del embedding
        assert died() is None
    finally:
        gc.enable()
    kept.sum().backward()  # distances outlive their embedding


def test_works_inside_another_module_with_any_loss() -> None:
    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.graph = make(hub_graph(40, 4, 0), dtype=torch.float32, probability=0.9)
            self.dense = torch.nn.Linear(4, 2)

        def forward(self, items: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.dense(self.graph(items, [40, 41, 42, 43]))
            return logits

    torch.manual_seed(0)
    model = Classifier()
    model(torch.arange(40)).logsumexp(1).mean().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_parts_are_counted() -> None:
    with pytest.warns(UserWarning, match="leave the items in 3 parts"):
        GraphEmbedding([0], [1], n_vertices=4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"probability": 1.5}, ValueError, r"probability\[0\] = 1.5 .* in \[0, 1\]"),
        ({"probability": [0.5, -0.1, 0.5]}, ValueError, r"probability\[1\] = -0.1"),
        ({"probability": float("nan")}, ValueError, r"probability\[0\] = nan"),
        ({"probability": [0.5]}, ValueError, r"one entry per edge \(3\), got shape \(1,\)"),
        ({"weight": -1.0}, ValueError, r"weight\[0\] = -1.0"),
        ({"weight": [1, float("inf"), 1]}, ValueError, r"weight\[1\] = inf"),
        ({"weight": "heavy"}, TypeError, "weight must hold real numbers"),
        ({"unreachable": -1.0}, ValueError, "unreachable must be a finite number above 0"),
        ({"unreachable": "far"}, ValueError, "unreachable"),
        ({"estimator": "guess"}, ValueError, "estimator must be one of 'score', 'toggle', 'path', got 'guess'"),
        ({"n_items": 9, "n_vertices": 3}, ValueError, "n_items must be between 1 and 3, got 9"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"dtype": torch.float16}, TypeError, "float32 or float64"),
        ({"dtype": torch.int32}, TypeError, "float32 or float64"),
        ({"i": [0, 0]}, ValueError, "same length, got 2 and 3"),
        ({"i": [0, 2, 0]}, ValueError, "edge 1 joins vertex 2 to itself"),
        ({"i": [0, 2, 2], "j": [1, 0, 0]}, ValueError, "edges 1 and 2 both join 2 and 0"),
        ({"i": [0, 0, -1]}, ValueError, r"i\[2\] = -1"),
    ],
)
def test_bad_parameters(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        GraphEmbedding(**({"i": [0, 0, 1], "j": [1, 2, 2]} | options))


@pytest.mark.parametrize(
    ("sources", "targets", "error", "message"),
    [
        ([3], None, IndexError, r"sources\[0\] = 3 is not a vertex"),
        ([0], [-1], IndexError, r"targets\[0\] = -1"),
        (torch.tensor([0.0]), None, TypeError, "sources must hold integers"),
        (torch.tensor([0], device="meta"), None, ValueError, "sources are on device meta"),
        ([[0]], None, ValueError, "one-dimensional"),
    ],
)
def test_bad_calls(sources: Any, targets: Any, error: type[Exception], message: str) -> None:
    for mode in (True, False):
        with pytest.raises(error, match=message):
            triangle().train(mode)(sources, targets)


def test_other_misuse() -> None:
    with pytest.raises(RuntimeError, match="training mode"):
        triangle().surrogate(torch.zeros(1))
    with pytest.raises(ValueError, match="n_samples"):
        triangle().sample([0], n_samples=0)
    with pytest.raises(ValueError, match="on the CPU"):
        triangle().to("meta")([0])
    for mask in ([True], [0, 1, 2]):
        with pytest.raises(ValueError, match=r"mask must hold one bool per edge \(3\)"):
            triangle().keep(np.array(mask))
    score = triangle(estimator="score")
    score([0, 1])
    with pytest.raises(ValueError, match=r"one entry per source, shape \(2,\), got \(3,\)"):
        score.surrogate(torch.zeros(3))
    sample = score.sample([0, 1])
    with pytest.raises(ValueError, match=r"shape \(1, 2\), got \(2,\)"):
        sample.surrogate(torch.zeros(2))
    with pytest.raises(ValueError, match="leave-one-out baseline needs n_samples of 2"):
        sample.surrogate(torch.zeros(1, 2))
    with pytest.raises(ValueError, match="baseline must be"):
        sample.surrogate(torch.zeros(1, 2), baseline="mean")  # type: ignore[arg-type]
