"""AnchorEmbedding against Dijkstra, finite differences and nn.Embedding."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import dijkstra
from torch import nn

from prodige import AnchorEmbedding, Graph, GraphEmbedding, _core
from prodige.anchorfit import hang_on_hubs, share_edges
from prodige.anchors import FrozenAnchorEmbedding


def hub_graph(
    n_items: int = 40, n_hubs: int = 8, n_anchors: int = 5, seed: int = 0, dtype: torch.dtype = torch.float32
) -> Any:
    """Items on three hubs each, hubs on all anchors."""
    random = np.random.default_rng(seed)
    hubs = np.array([random.choice(n_hubs, 3, replace=False) for _ in range(n_items)])
    hub, anchor = (index.ravel() for index in np.indices((n_hubs, n_anchors)))
    i = np.concatenate([np.repeat(np.arange(n_items), 3), n_items + hub])
    j = np.concatenate([n_items + hubs.ravel(), n_items + n_hubs + anchor])
    weight = random.uniform(0.5, 2.0, i.size)
    return GraphEmbedding(i, j, weight, 1.0, n_items + n_hubs + n_anchors, n_items, dtype=dtype)


def path_graph(n_items: int = 12, dtype: torch.dtype = torch.float32) -> Any:
    """Items in a row between two anchors: no hub covers its edges."""
    i, j = np.arange(n_items + 1), np.arange(1, n_items + 2)
    order = np.array([n_items, *range(n_items), n_items + 1])
    return GraphEmbedding(order[i], order[j], np.linspace(1, 2, n_items + 1), 1.0, n_items=n_items, dtype=dtype)


def by_dijkstra(graph: Any, n_anchors: Any) -> Any:
    frozen = graph.freeze()
    first = frozen.n_vertices - n_anchors
    return dijkstra(frozen.to_scipy(), directed=False)[: frozen.n_items, first:]


@pytest.mark.parametrize(("make", "n_anchors"), [(hub_graph, 5), (path_graph, 2)])
def test_rows_are_distances(make: Any, n_anchors: Any) -> None:
    graph = make()
    layer = AnchorEmbedding(graph, n_anchors, normalize=False)
    ids = torch.tensor([[3, 3, 0], [7, 1, 11]])
    rows = layer(ids)
    assert rows.shape == (2, 3, n_anchors)
    torch.testing.assert_close(rows, torch.from_numpy(by_dijkstra(graph, n_anchors)).float()[ids])
    with torch.no_grad():
        torch.testing.assert_close(layer(ids), rows)
    torch.testing.assert_close(layer.eval()(ids), rows)


@pytest.mark.parametrize(("make", "n_anchors"), [(hub_graph, 5), (path_graph, 2)])
def test_gradients_are_those_of_finite_differences(make: Any, n_anchors: Any) -> None:
    graph = make(dtype=torch.float64)
    layer = AnchorEmbedding(graph, n_anchors, normalize=False)
    ids = torch.tensor([0, 5, 5, 2])
    upstream = torch.randn(4, n_anchors, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (gradient,) = torch.autograd.grad((layer(ids) * upstream).sum(), [graph.theta_w])
    step = 1e-6
    for edge in range(0, graph.n_edges, 3):
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                graph.theta_w[edge] += sign * step
                values.append((layer(ids) * upstream).sum())
                graph.theta_w[edge] -= sign * step
        assert float(values[0] - values[1]) / (2 * step) == pytest.approx(float(gradient[edge]), abs=1e-5)


def test_gradients_do_not_depend_on_threads() -> None:
    found = []
    for n_jobs in (1, 2):
        graph = hub_graph(n_items=3000, n_hubs=40, n_anchors=33)
        graph.n_jobs = n_jobs
        layer = AnchorEmbedding(graph, 33)
        layer(torch.arange(3000)).square().sum().backward()
        found.append(graph.theta_w.grad)
    assert torch.equal(*found)


def test_rows_are_centred_and_scaled() -> None:
    layer = AnchorEmbedding(hub_graph(), 5)
    rows = layer(torch.arange(40)).detach()
    torch.testing.assert_close(rows.mean(dim=0), torch.zeros(5), atol=1e-5, rtol=0)
    assert float(rows.square().mean()) == pytest.approx(1.0, abs=1e-4)


def test_padding_is_zero_and_learns_nothing() -> None:
    graph = hub_graph()
    layer = AnchorEmbedding(graph, 5, padding_idx=-40)
    assert layer.padding_idx == 0
    rows = layer(torch.tensor([0, 1]))
    assert not rows[0].any()
    assert rows[1].any()
    (gradient,) = torch.autograd.grad(layer(torch.tensor([0])).sum(), [graph.theta_w])
    assert not gradient.any()
    with torch.no_grad():
        assert not layer(torch.tensor([0])).any()


@pytest.mark.parametrize("ids", [[40], [-1], [3, 400]])
def test_ids_out_of_range_are_an_index_error(ids: Any) -> None:
    layer, theirs = AnchorEmbedding(hub_graph(), 5), nn.Embedding(40, 5)
    for embedding in (theirs, layer, layer.freeze()):
        with pytest.raises(IndexError, match="index out of range in self"):
            embedding(torch.tensor(ids))


def test_what_is_no_id_is_refused() -> None:
    layer = AnchorEmbedding(hub_graph(), 5)
    with pytest.raises(TypeError, match=r"input\.long"):
        layer(torch.tensor([1.0]))
    with pytest.raises(TypeError, match="as_tensor"):
        layer([1, 2])
    assert layer(torch.empty(0, 3, dtype=torch.int64)).shape == (0, 3, 5)


def test_unreachable_items_get_a_distance() -> None:
    with pytest.warns(UserWarning, match="parts"):
        graph = GraphEmbedding([0], [2], 1.0, 1.0, n_vertices=3, n_items=2, unreachable=7.0)
    with pytest.warns(UserWarning, match="parts"):
        frozen = AnchorEmbedding(graph, 1, normalize=False).freeze()
    assert frozen(torch.tensor([0, 1])).tolist() == [[1.0], [7.0]]
    assert AnchorEmbedding(graph, 1, normalize=False)(torch.tensor([0, 1])).tolist() == [[1.0], [7.0]]


def test_random_edges_are_drawn_while_training() -> None:
    graph = hub_graph()
    with torch.no_grad():
        graph.theta_b.fill_(0.0)
    layer = AnchorEmbedding(graph, 5, normalize=False)
    torch.manual_seed(0)
    ids = torch.arange(40)
    first, second = layer(ids), layer(ids)
    assert not torch.equal(first, second)
    first.sum().backward()
    assert graph.theta_b.grad.any()
    few = layer(torch.tensor([4, 4]))  # fewer items than anchors: searched from the items
    assert few.shape == (2, 5)
    assert torch.equal(few[0], few[1])
    layer.eval()
    assert torch.equal(layer(ids), layer(ids))


def test_unchanged_weights_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = hub_graph()
    layer = AnchorEmbedding(graph, 5)
    made = []

    class Counting(_core.AnchorTrees32):
        def __init__(self, *arguments: Any) -> None:
            made.append(1)
            super().__init__(*arguments)

    monkeypatch.setattr("prodige.anchors._core.AnchorTrees32", Counting)
    layer._trees = layer._table = None
    layer.eval()
    for _ in range(3):
        layer(torch.tensor([1, 2]))
    with torch.no_grad():
        table = layer(torch.tensor([5]))
        layer(torch.tensor([6]))
    assert len(made) == 1
    with torch.no_grad():
        graph.theta_w += 1.0
        assert not torch.equal(layer(torch.tensor([5])), table)
    assert len(made) == 2


def test_frozen_layers_answer_alike_and_have_nothing_to_learn() -> None:
    layer = AnchorEmbedding(hub_graph(), 5, padding_idx=0)
    frozen = layer.freeze()
    assert isinstance(frozen, FrozenAnchorEmbedding)
    assert not list(frozen.parameters())
    ids = torch.arange(40)
    torch.testing.assert_close(frozen(ids), layer.eval()(ids), atol=1e-5, rtol=1e-5)
    again = pickle.loads(pickle.dumps(frozen))
    assert torch.equal(again(ids), frozen(ids))
    assert "40, 5, padding_idx=0" in repr(frozen)
    assert "padding_idx=0" in repr(layer)


def test_copies_learn_on_their_own() -> None:
    layer = AnchorEmbedding(hub_graph(), 5)
    before = layer(torch.tensor([1])).detach()
    other = copy.deepcopy(layer)
    with torch.no_grad():
        other.graph.theta_w.add_(1.0)
    assert torch.equal(layer(torch.tensor([1])), before)
    assert not torch.equal(other(torch.tensor([1])), before)
    third = AnchorEmbedding(hub_graph(seed=3), 5)
    third.load_state_dict(layer.state_dict())
    assert torch.equal(third.center, layer.center)


def test_from_a_saved_graph(tmp_path: Path) -> None:
    graph = hub_graph().freeze()
    graph.save(tmp_path / "graph.prodige")
    ids = torch.arange(40)
    loaded = AnchorEmbedding.from_graph(tmp_path / "graph.prodige", 5)
    torch.testing.assert_close(loaded(ids), AnchorEmbedding.from_graph(graph, 5)(ids))
    loaded(ids).square().sum().backward()
    gradient = loaded.graph.theta_w.grad
    assert gradient is not None
    assert gradient.any()


def test_graphs_without_hubs_need_a_number_of_anchors() -> None:
    graph = GraphEmbedding([0, 1], [1, 2], 1.0, 1.0)
    with pytest.raises(ValueError, match="n_anchors"):
        AnchorEmbedding(graph)
    assert AnchorEmbedding(graph, 1, normalize=False)(torch.tensor([0])).item() == 2.0
    with pytest.raises(ValueError, match="n_anchors"):
        AnchorEmbedding(graph, 4)
    with pytest.raises(ValueError, match="padding_idx"):
        AnchorEmbedding(graph, 1, padding_idx=3)


def clouds(n: int = 300, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 6)) + 3 * random.integers(0, 2, (n, 1))


def test_vectors_become_distances_within_the_budget() -> None:
    X = clouds()
    errors = []
    for n_steps in (0, 100):
        layer = AnchorEmbedding.from_vectors(X, 8, 10.0, n_steps=n_steps, random_state=0)
        assert layer.graph.numbers_per_item <= 10.0
        _, wanted = hang_on_hubs(X, 8, 10.0, random_state=0)
        rows = layer._distances(np.arange(300, dtype=np.int32)).detach().numpy()
        errors.append(float(np.mean((rows - wanted) ** 2)))
    assert errors[1] < 0.5 * errors[0]
    again = AnchorEmbedding.from_vectors(X, 8, 10.0, n_steps=100, random_state=0)
    assert torch.equal(again.graph.theta_w, layer.graph.theta_w)


def test_heavy_items_get_more_edges() -> None:
    counts = share_edges(np.array([1.0] * 50 + [100.0] * 50), 300, 8)
    assert counts.sum() <= 300
    assert counts[50:].min() > counts[:50].max()
    assert share_edges(np.zeros(4), 100, 3).tolist() == [1, 1, 1, 1]
    weights = np.concatenate([np.zeros(100), np.ones(200)])
    graph, _ = hang_on_hubs(clouds(), 8, 9.0, sample_weight=weights, random_state=0)
    degrees = np.bincount(graph.i.numpy(), minlength=300)[:300]
    assert degrees[:100].max() == 1
    assert degrees[100:].mean() > 1.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_anchors": 400}, "n_anchors"),
        ({"numbers_per_item": 3.0}, "too little"),
        ({"numbers_per_item": float("nan")}, "finite"),
        ({"sample_weight": [1.0]}, "one entry per item"),
        ({"sample_weight": np.zeros(300)}, "0 for every item"),
        ({"sample_weight": np.full(300, -1.0)}, "finite and 0 or more"),
        ({"n_hubs": 0}, "n_hubs"),
        ({"n_steps": -1}, "n_steps"),
    ],
)
def test_bad_arguments(arguments: Any, message: Any) -> None:
    with pytest.raises(ValueError, match=message):
        AnchorEmbedding.from_vectors(clouds(), **{"n_anchors": 8, **arguments})


def test_items_in_one_place_and_few_items() -> None:
    layer = AnchorEmbedding.from_vectors(np.ones((20, 2)), 4, 30.0, n_hubs=1, random_state=0)
    assert torch.isfinite(layer(torch.arange(20))).all()
    Graph.from_edges(layer.graph.i.numpy(), layer.graph.j.numpy(), layer.graph.weight.detach().numpy())
