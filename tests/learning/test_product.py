"""ProductEmbedding: its distances are those of the product it freezes to, and any loss trains it."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances
from torch.func import functional_call

from learning.test_embedding import make
from prodige import Graph, GraphEmbedding, ProductEmbedding, ProductGraph
from prodige.compression.budget import Budget as Bits
from prodige.compression.objective import NearPairs
from prodige.compression.products import fit_product
from prodige.learning.sparsity import Budget
from prodige.learning.training import fit
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from strategies import hub_graph, make_edges, point_graph

EXPONENTS = st.sampled_from([1.0, 1.25, 1.5, 2.0])


def product_of(rng: np.random.Generator, n_items: int = 12, n_factors: int = 3, **options: Any) -> ProductEmbedding:
    """Connected factors of different sizes, one of them with hubs of its own."""
    factors = [make(point_graph(4 + m, 2, 3, seed=m)) for m in range(n_factors - 1)] + [make(hub_graph(6, 3, 2))]
    codes = np.stack([rng.integers(factor.n_items, size=n_items) for factor in factors], axis=1)
    return ProductEmbedding(factors, codes, rng.uniform(0.1, 1, n_items), **options)


@given(seed=st.integers(0, 2**32 - 1), power=EXPONENTS, gauge=EXPONENTS, shared=st.booleans())
@pytest.mark.filterwarnings("ignore:the edges leave the items in:UserWarning")
def test_distances_are_those_of_the_frozen_product(seed: int, power: float, gauge: float, shared: bool) -> None:
    rng = np.random.default_rng(seed)
    sizes = [(int(rng.integers(1, 6)), int(rng.integers(3))) for _ in range(rng.integers(1, 4))]
    edges = [make_edges(rng, *size, 0.6, "ties") for size in sizes]
    factors = [make(some, probability=rng.choice([0.4, 1.0], some.i.size, p=[0.1, 0.9])) for some in edges]
    codes = np.stack([rng.integers(some.n_items, size=9) for some in edges], axis=1)
    places = np.r_[rng.permutation(9), rng.integers(9, size=5)] if shared else None
    lengths = rng.integers(0, 3, 9)
    embedding = ProductEmbedding(factors, codes, lengths, power, gauge, places).eval()
    product = embedding.freeze()
    assert (embedding.n_items, embedding.n_factors) == (product.n_items, product.n_factors)
    assert embedding.numbers_per_item == product.numbers_per_item
    sources, targets = rng.integers(product.n_items, size=(2, 7))
    expected = product.distances(sources, targets)
    reached = np.isfinite(expected)
    predicted = embedding(sources, targets)
    np.testing.assert_allclose(predicted.detach()[reached], expected[reached], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(predicted, embedding(sources)[:, targets])


def test_distances_by_hand() -> None:
    """Two chains; the formula written down once more, for each power and gauge."""
    chain = Graph.from_edges([0, 1], [1, 2], [1.0, 2.0])
    for power, gauge in ((1.0, 1.0), (1.0, 1.5), (1.5, 2.0), (2.0, 2.0)):
        factors = [GraphEmbedding([0, 1], [1, 2], [1.0, 2.0], 1.0, dtype=torch.float64) for _ in range(2)]
        embedding = ProductEmbedding(factors, [[0, 0], [2, 1]], [0.25, 0.5], power, gauge)
        expected = (0.75 + chain.distance(0, 2) ** power + chain.distance(0, 1) ** power) ** (1 / gauge)
        assert embedding([0]).tolist() == [[0.0, pytest.approx(expected)]]
        assert embedding([1, 0], [0]).flatten().tolist() == [pytest.approx(expected), 0.0]


@pytest.mark.parametrize(("power", "gauge"), [(1.0, 1.0), (1.0, 1.7), (1.5, 1.5), (2.0, 2.0), (2.0, 1.0)])
def test_gradcheck(power: float, gauge: float) -> None:
    """Of all weights and lengths at once, for pairs of which some are of an item with itself."""
    embedding = product_of(np.random.default_rng(0), power=power, gauge=gauge).eval()
    names = [name for name, _ in embedding.named_parameters() if not name.endswith("theta_b")]
    assert len(names) == 4

    def distances(*values: torch.Tensor) -> Any:
        return functional_call(embedding, dict(zip(names, values, strict=True)), ([0, 5, 5], [1, 5, 9, 9]))

    values = [embedding.get_parameter(name).detach().clone().requires_grad_() for name in names]
    assert torch.autograd.gradcheck(distances, values)


def test_gradients_are_finite_where_distances_are_zero() -> None:
    factor = GraphEmbedding([0], [1], probability=1.0)
    embedding = ProductEmbedding([factor], [[0], [0], [1]], lengths=0.0)
    distances = embedding([0, 1, 2])
    assert distances[0, 1] == 0
    distances.sum().backward()
    assert factor.theta_w.grad is not None
    assert embedding.theta_e.grad is not None
    # Four of the nine are the edge itself: the rest are zeros that say nothing.
    assert factor.theta_w.grad.item() == pytest.approx(4 * torch.sigmoid(factor.theta_w).item())
    assert embedding.theta_e.grad.tolist() == [0, 0, 0]


def test_items_that_share_a_vertex() -> None:
    points = np.arange(4.0)[:, None]
    product = ProductGraph.from_factors([points], [[0], [1], [3]], [0.5, 0.25, 0.125], places=[2, 0, 2, 1, 1])
    embedding = ProductEmbedding.from_product(product)
    assert embedding.n_items == 5
    assert embedding.numbers_per_item == embedding.freeze().numbers_per_item
    np.testing.assert_allclose(embedding(range(5)).detach(), product.distances(), rtol=1e-5)
    assert (embedding([0], [2]) == 0).all()
    np.testing.assert_array_equal(embedding.freeze().places, product.places)
    np.testing.assert_array_equal(product.places, [0, 1, 0, 2, 2])  # in the order of their first items


def test_a_factor_is_searched_once_for_each_different_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []
    forward = GraphEmbedding.forward

    def spy(self: GraphEmbedding, sources: Any, targets: Any = None) -> torch.Tensor:
        asked.append(sources.tolist())
        return forward(self, sources, targets)

    monkeypatch.setattr(GraphEmbedding, "forward", spy)
    factor = GraphEmbedding([0, 1], [1, 2], probability=1.0)
    ProductEmbedding([factor], [[2], [1], [2], [0]])([0, 1, 2, 2])
    assert asked == [[1, 2]]


def test_random_edges_are_sampled_in_training() -> None:
    generator = torch.Generator().manual_seed(0)
    factor = GraphEmbedding([0], [1], 1.0, 0.5, unreachable=50.0, generator=generator)
    embedding = ProductEmbedding([factor], [[0], [1]], lengths=0.0, power=1, gauge=1)
    values = torch.stack([embedding([0], [1]) for _ in range(400)]).flatten()
    assert set(values.tolist()) == {1.0, 50.0}
    assert (values == 1).double().mean().item() == pytest.approx(0.5, abs=0.1)
    (embedding([0, 1]) - 1).square().sum().backward()
    assert factor.theta_b.grad is not None
    assert factor.theta_b.grad.item() < 0  # the edge should be there more often
    assert embedding.eval()([0], [1]).item() == 1


def test_any_loss_goes_down() -> None:
    """Here one that wants an order, not distances: each item nearer to the next than to the one after."""
    embedding = product_of(np.random.default_rng(1))
    optimizer = torch.optim.Adam(embedding.parameters(), lr=0.02)
    items = torch.arange(12)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        distances = embedding(items)
        loss = (distances[items, items.roll(-1)] - distances[items, items.roll(-2)] + 0.1).relu().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def fitted(rng: np.random.Generator) -> tuple[ProductGraph, torch.Tensor]:
    """A product that was compressed to, and the distances it stands for."""
    X = rng.normal(size=(300, 5))
    space = Space(X, metric="cityblock")
    landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    near = NearPairs.find(space, 0.0, landmarks.sources.size)
    product = fit_product(landmarks, near, Bits(bits=64), (1.0, 1.0), random=np.random.RandomState(0))
    assert product is not None
    return product, torch.from_numpy(pairwise_distances(X, metric="cityblock")).float()


def test_learning_further_lowers_the_error_of_a_fitted_product() -> None:
    product, target = fitted(np.random.default_rng(0))
    embedding = ProductEmbedding.from_product(product)
    np.testing.assert_allclose(embedding(range(300)).detach(), product.distances(), rtol=1e-4, atol=1e-5)

    def squared(model: ProductEmbedding, sources: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = (model(sources) - target[sources]).square().mean(1)
        return loss

    result = fit(embedding, squared, n_steps=200, batch_size=60, learning_rate=0.02, random_state=0)
    assert (result.history_[0].n_edges, result.history_[0].numbers_per_item) == (
        embedding.n_edges,
        embedding.numbers_per_item,
    )

    def error(graph: ProductGraph) -> float:
        return float(((graph.distances() - target.numpy()) ** 2).mean())

    refined = embedding.freeze()
    assert error(refined) < 0.95 * error(product)
    assert (refined.codes == product.codes).all()
    assert refined.is_metric


def test_the_training_loop_gives_back_what_it_was_lent() -> None:
    embedding = product_of(np.random.default_rng(2)).eval()
    with torch.no_grad():
        embedding.graphs[0].theta_b.fill_(1.0)
    lent = torch.Generator()
    embedding.graphs[0].generator = lent
    before = [graph.probability.mean().item() for graph in embedding.graphs]
    fit(torch.nn.Sequential(embedding), lambda model, sources: model(sources).mean(1), 20, 4, lambda_=1e4)
    assert [graph.generator for graph in embedding.graphs] == [lent, None, None]
    assert not any(module.training for module in embedding.modules())
    assert embedding.graphs[0].probability.mean().item() < before[0]  # by the penalty
    assert [graph.probability.mean().item() for graph in embedding.graphs[1:]] == before[1:] == [1, 1]


def test_the_training_loop_draws_items_not_hubs() -> None:
    seen: set[int] = set()
    embedding = ProductEmbedding([GraphEmbedding([0], [1], probability=1.0)], [[0], [1], [1], [0], [1]])

    def loss(model: ProductEmbedding, sources: torch.Tensor) -> torch.Tensor:
        seen.update(sources.tolist())
        result: torch.Tensor = model(sources).mean(1)
        return result

    fit(embedding, loss, n_steps=5, batch_size=2, random_state=0)
    assert seen == set(range(5))
    with pytest.raises(IndexError, match=r"sources\[0\] = 5 is not a vertex"):
        fit(embedding, loss, sources=[5])
    with pytest.raises(ValueError, match="is for one graph, ProductEmbedding has a product; leave it out"):
        fit(embedding, loss, budget=Budget(4))
    with pytest.raises(ValueError, match="Sequential has 2"):
        fit(torch.nn.Sequential(embedding, GraphEmbedding([0], [1])), loss)


def test_same_bits_for_any_number_of_threads() -> None:
    product, target = fitted(np.random.default_rng(3))
    results = []
    for n_jobs in (1, 2):
        embedding = ProductEmbedding.from_product(product, 0.9, n_jobs=n_jobs)
        fit(embedding, lambda model, s: (model(s) - target[s]).square().mean(1), 10, 100, random_state=0)
        results.append(embedding.state_dict())
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])


def test_state_round_trips() -> None:
    embedding = product_of(np.random.default_rng(4))
    expected = embedding.eval()(range(12))
    file = io.BytesIO()
    torch.save(embedding.state_dict(), file)
    file.seek(0)
    other = product_of(np.random.default_rng(5)).eval()
    assert not torch.equal(other(range(12)), expected)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(range(12)), expected)
    for again in (copy.deepcopy(embedding), pickle.loads(pickle.dumps(embedding))):
        assert torch.equal(again(range(12)), expected)
        assert again.freeze() == embedding.freeze()


def test_no_sources_and_one_hub() -> None:
    point = ProductGraph.from_factors([[[0.0]], [[0.0], [1.0]]], [[0, 0], [0, 1]], [0.0, 0.0])
    embedding = ProductEmbedding.from_product(point, dtype=torch.float64)
    assert embedding([0], [1]).item() == pytest.approx(1)
    assert embedding([]).shape == (0, 2)
    assert embedding([1], []).shape == (1, 0)
    assert embedding([0]).dtype == torch.float64
    assert "n_items=2, n_factors=2, power=2, gauge=2" in repr(embedding)
    fit(embedding, lambda model, sources: model(sources).mean(1), 2, lambda_=1.0)  # a factor without edges adds none


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"factors": []}, ValueError, "factors must be 1 to 256 graphs, got 0"),
        ({"factors": GraphEmbedding([0], [1])}, TypeError, "factors must be a list of GraphEmbedding, got Graph"),
        ({"factors": 3}, TypeError, "factors must be a list of GraphEmbedding, got int"),
        ({"factors": [[[0.0], [1.0]]]}, TypeError, r"factors\[0\] must be a GraphEmbedding, got list; .*from_product"),
        (
            {"factors": [GraphEmbedding([0], [1], estimator="score")]},
            ValueError,
            r"factors\[0\] has the estimator 'score'.* take 'toggle' or 'path'",
        ),
        (
            {"factors": [GraphEmbedding(np.arange(4096), np.arange(1, 4097))]},
            ValueError,
            r"factors\[0\] has 4097 items; a factor has at most 4096 hubs",
        ),
        ({"codes": [[0], [2]]}, ValueError, r"codes\[1, 0\] = 2 is not a hub: factor 0 has hubs 0 to 1"),
        ({"codes": [[-1], [0]]}, ValueError, r"codes\[0, 0\] = -1 is not a hub"),
        ({"codes": [0, 1]}, ValueError, r"codes must have the shape \[V, 1\]"),
        ({"codes": [[0, 1]]}, ValueError, r"codes must have the shape \[V, 1\]"),
        ({"codes": [[0.0], [1.0]]}, TypeError, "codes must hold integers"),
        ({"lengths": [1.0]}, ValueError, r"lengths must be a number or have one entry per vertex \(2\), got shape"),
        ({"lengths": [1.0, -1.0]}, ValueError, r"lengths\[1\] = -1.0 .* must be finite and 0 or more"),
        ({"lengths": float("nan")}, ValueError, r"lengths\[0\] = nan"),
        ({"power": 0.5}, ValueError, "power must be between 1 and 2, got 0.5"),
        ({"gauge": 2.5}, ValueError, "gauge must be between 1 and 2, got 2.5"),
        ({"gauge": "2"}, TypeError, "gauge must be a number"),
        ({"places": [0, 2]}, ValueError, r"places\[1\] = 2 is not a vertex"),
        ({"places": [0, 0]}, ValueError, "places has no item at vertex 1"),
    ],
)
def test_bad_arguments(options: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {"factors": [GraphEmbedding([0], [1])], "codes": [[0], [1]]}
    with pytest.raises(error, match=message):
        ProductEmbedding(**(arguments | options))


def test_bad_calls() -> None:
    embedding = product_of(np.random.default_rng(6))
    with pytest.raises(IndexError, match=r"sources\[1\] = 12 is not a vertex: the graph has vertices 0 to 11"):
        embedding([0, 12])
    with pytest.raises(IndexError, match=r"targets\[0\] = -1"):
        embedding([0], [-1])
    with pytest.raises(TypeError, match="sources must hold integers"):
        embedding([0.5])
    with pytest.raises(ValueError, match="targets must be one-dimensional"):
        embedding([0], [[0]])
    with pytest.raises(ValueError, match="sources are on device meta, the embedding is on cpu"):
        embedding(torch.empty(2, dtype=torch.int64, device="meta"))
    with pytest.raises(TypeError, match=r"product must be a ProductGraph, got Graph; .*ProductEmbedding\(factors"):
        ProductEmbedding.from_product(Graph.from_edges([0], [1], 1.0))  # type: ignore[arg-type]
