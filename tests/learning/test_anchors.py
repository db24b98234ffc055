"""AnchorEmbedding: distances to anchors, their gradients, and behaving as an embedding layer does."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse.csgraph
import torch
from hypothesis import given, settings
from torch import nn

from prodige import AnchorEmbedding, Graph, GraphEmbedding, _core
from prodige.learning.anchors import FrozenAnchorEmbedding
from strategies import Edges, graphs, hub_graph, point_graph

pytestmark = pytest.mark.filterwarnings("ignore:the edges leave the items in:UserWarning")

FAR = 77.0


def make_graph(edges: Edges, **options: Any) -> GraphEmbedding:
    options.setdefault("dtype", torch.float64)
    options.setdefault("probability", 1.0)
    options.setdefault("n_jobs", 1)
    return GraphEmbedding(edges.i, edges.j, edges.weight, n_vertices=edges.n_vertices, n_items=edges.n_items, **options)


def truth(edges: Edges, n_anchors: int) -> Any:
    """Distances of all items to the last vertices."""
    distances = scipy.sparse.csgraph.dijkstra(edges.matrix(), directed=False)
    distances = distances[: edges.n_items, edges.n_vertices - n_anchors :]
    return np.where(np.isinf(distances), FAR, distances)


def hubs(**options: Any) -> AnchorEmbedding:
    settings = {
        name: options.pop(name)
        for name in ("padding_idx", "normalize", "n_anchors", "scale_grad_by_freq")
        if name in options
    }
    return AnchorEmbedding(make_graph(hub_graph(40, 5, 4), **options), **settings)


# -- values ----------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(edges=graphs(weights=("real", "ties")))
def test_distances_are_those_of_dijkstra(edges: Edges) -> None:
    """With hubs and without; anchors may be items."""
    for n_anchors in {1, max(1, edges.n_vertices - edges.n_items), edges.n_vertices}:
        layer = AnchorEmbedding(make_graph(edges, unreachable=FAR), n_anchors, normalize=False)
        expected = truth(edges, n_anchors)
        everything = torch.arange(edges.n_items)
        for mode in (True, False):
            np.testing.assert_allclose(layer.train(mode)(everything).detach(), expected, atol=1e-6)
            with torch.no_grad():
                np.testing.assert_allclose(layer(everything), expected, atol=1e-6)


def test_anchors_may_be_items_beside_hubs() -> None:
    edges = hub_graph(40, 5, 4)
    layer = AnchorEmbedding(make_graph(edges, unreachable=FAR), 8, normalize=False)
    assert layer.anchors.tolist() == list(range(37, 45))
    ids = torch.arange(40)
    np.testing.assert_allclose(layer(ids).detach(), truth(edges, 8), atol=1e-6)
    layer(ids).sum().backward()
    assert layer.graph.theta_w.grad is not None


@pytest.mark.parametrize("edges", [point_graph(30, 3, 2), hub_graph(40, 5, 4)], ids=["points", "hubs"])
@pytest.mark.parametrize("n_ids", [2, 60])
def test_gradients_are_those_of_the_graph(edges: Edges, n_ids: int) -> None:
    """Searched from the anchors or from the items, whichever are fewer: the graph's own forward tells the same."""
    graph = make_graph(edges, unreachable="learn").eval()
    layer = AnchorEmbedding(graph, 5, normalize=False)
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, edges.n_items, n_ids))
    weights = torch.from_numpy(np.random.default_rng(1).normal(size=(n_ids, 5)))
    found = []
    for distances in (layer(ids), graph(ids, layer.anchors)):
        graph.zero_grad()
        (distances * weights).sum().backward()
        assert graph.theta_w.grad is not None
        found.append((distances.detach().numpy(), graph.theta_w.grad.numpy().copy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-12)
    assert np.any(found[0][1])


@pytest.mark.parametrize("edges", [point_graph(12, 3, 2), hub_graph(14, 3, 2)], ids=["points", "hubs"])
def test_gradcheck(edges: Edges) -> None:
    layer = AnchorEmbedding(make_graph(edges, unreachable="learn").eval(), 3, padding_idx=1)
    ids = torch.tensor([[3, 0, 3], [1, 11, 5]])

    def call(theta_w: torch.Tensor) -> torch.Tensor:
        answer: torch.Tensor = torch.func.functional_call(layer, {"graph.theta_w": theta_w}, (ids,))
        return answer

    start = layer.graph.theta_w.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(call, (start,), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_only_edges_that_are_kept_have_gradients(sparse: bool) -> None:
    edges = hub_graph(40, 5, 4)
    probability = np.where(np.arange(edges.i.size) % 5 == 0, 0.2, 1.0)
    graph = make_graph(edges, probability=probability, sparse=sparse).eval()
    layer = AnchorEmbedding(graph, normalize=False)
    layer(torch.arange(40)).sum().backward()
    gradient = graph.theta_w.grad
    assert gradient is not None
    dense = (gradient.to_dense() if gradient.is_sparse else gradient).numpy()
    assert not dense[probability < 0.5].any()
    assert dense[probability == 1].any()
    few = Edges(45, 40, *(array[probability == 1] for array in (edges.i, edges.j, edges.weight)))
    unreachable = float(graph.unreachable)
    expected = truth(few, 5)
    np.testing.assert_allclose(
        layer(torch.arange(40)).detach(), np.where(expected == FAR, unreachable, expected), atol=1e-6
    )


def test_items_without_a_path() -> None:
    graph = GraphEmbedding([0], [2], [1.0], 1.0, n_vertices=3, n_items=2, unreachable="learn")
    layer = AnchorEmbedding(graph, normalize=False)
    answer = layer(torch.tensor([0, 1, 1]))
    assert answer.flatten().tolist() == pytest.approx([1.0, *[float(graph.unreachable.detach())] * 2])
    answer.sum().backward()
    assert graph.theta_u.grad is not None
    assert float(graph.theta_u.grad) == pytest.approx(2 * float(torch.sigmoid(graph.theta_u.detach())))


def test_random_edges_in_training() -> None:
    """A path of one edge with probability 1/2: half of the draws find no way."""
    graph = GraphEmbedding([0], [1], [1.0], 0.5, n_items=1, unreachable=9.0, generator=torch.Generator().manual_seed(0))
    layer = AnchorEmbedding(graph, normalize=False)
    with torch.no_grad():
        drawn = [layer(torch.tensor([0])).item() for _ in range(900)]
    assert set(drawn) == {1.0, 9.0}
    assert np.mean(np.array(drawn) == 1.0) == pytest.approx(0.5, abs=4 * 0.5 / 30)  # four standard errors
    assert layer.eval()(torch.tensor([0])).item() == 1.0


def test_normalized_rows_have_mean_0_and_spread_1() -> None:
    layer = hubs(padding_idx=3)
    rows = layer(torch.tensor([x for x in range(40) if x != 3])).detach()
    np.testing.assert_allclose(rows.mean(dim=0), 0, atol=1e-6)
    assert float(rows.square().mean().sqrt()) == pytest.approx(1, abs=1e-5)
    alone = AnchorEmbedding(GraphEmbedding([0], [1], [2.0], 1.0, n_items=1))
    assert alone(torch.tensor([0])).tolist() == [[0.0]]  # one item: there is no spread to divide by


# -- as an embedding layer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (2, 3), (2, 1, 4)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_any_shape(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    layer, table = hubs(), nn.Embedding(40, 5)
    with torch.no_grad():
        table.weight.copy_(layer(torch.arange(40)))
    ids = torch.randint(0, 40, shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(layer(ids).float(), table(ids.long()))
    assert (layer.num_embeddings, layer.embedding_dim) == (table.num_embeddings, table.embedding_dim)


@pytest.mark.parametrize("padding_idx", [3, -37])
def test_padding_is_zero_and_learns_nothing(padding_idx: int) -> None:
    layer = hubs(padding_idx=padding_idx)
    assert layer.padding_idx == 3
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            answer = layer(torch.tensor([3, 4]))
        assert answer[0].tolist() == [0.0] * 5
        assert answer[1].any()
    layer(torch.tensor([3, 3])).sum().backward()
    assert layer.graph.theta_w.grad is not None
    assert not layer.graph.theta_w.grad.any()
    assert "padding_idx=3" in repr(layer)


def test_gradients_by_frequency() -> None:
    """As nn.Embedding does: an item that is there three times counts as often as one that is there once."""
    layer, table = hubs(normalize=False, scale_grad_by_freq=True), nn.Embedding(40, 5, scale_grad_by_freq=True)
    ids, factors = torch.tensor([5, 9, 5, 5]), torch.randn(4, 5, dtype=torch.float64)
    (factors * layer(ids)).sum().backward()
    (factors * table(ids)).sum().backward()
    found, by_rows = layer.graph.theta_w.grad, table.weight.grad
    assert found is not None
    assert by_rows is not None
    plain = hubs(normalize=False)
    (by_rows[[5, 9]] * plain(torch.tensor([5, 9]))).sum().backward()
    torch.testing.assert_close(found, plain.graph.theta_w.grad, rtol=1e-5, atol=1e-6)


def test_repeated_items_add_up() -> None:
    layer = hubs()
    gradients = []
    for ids in ([5], [5, 5, 5]):
        layer.zero_grad()
        layer(torch.tensor(ids)).sum().backward()
        assert layer.graph.theta_w.grad is not None
        gradients.append(layer.graph.theta_w.grad.clone())
    torch.testing.assert_close(3 * gradients[0], gradients[1])


@pytest.mark.parametrize("frozen", [False, True])
def test_bad_ids(frozen: bool) -> None:
    layer = hubs().freeze() if frozen else hubs()
    for bad in (40, -1):
        with pytest.raises(IndexError, match=f"index out of range in self.* 0 to 39, the first is {bad}"):
            layer(torch.tensor([0, bad]))
    with pytest.raises(TypeError, match=r"must hold integers, got torch.float32"):
        layer(torch.tensor([0.0]))
    with pytest.raises(TypeError, match="must hold integers"):
        layer(torch.tensor([True]))
    with pytest.raises(TypeError, match="must be a tensor"):
        layer([0, 1])


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="no hubs to be anchors; give n_anchors"):
        AnchorEmbedding(GraphEmbedding([0], [1]))
    graph = make_graph(hub_graph(40, 5, 4))
    for n_anchors in (0, 46):
        with pytest.raises(ValueError, match="n_anchors must be between 1 and 45"):
            AnchorEmbedding(graph, n_anchors)
    for padding_idx in (40, -41):
        with pytest.raises(ValueError, match="padding_idx must be between -40 and 39"):
            AnchorEmbedding(graph, padding_idx=padding_idx)
    with pytest.raises(TypeError, match="graph must be a GraphEmbedding, got int; AnchorEmbedding"):
        AnchorEmbedding(1000, 100)  # type: ignore[arg-type]
    for name, value, remedy in (
        ("max_norm", 1.0, "normalise what comes out"),
        ("norm_type", 2.0, "normalise what comes out"),
        ("sparse", True, r"GraphEmbedding\(..., sparse=True\)"),
        ("dtype", torch.float64, r"GraphEmbedding\(..., dtype=...\)"),
        ("device", "cpu", r"\.to\(device\)"),
    ):
        with pytest.raises(TypeError, match=f"{name} = .* is not for an AnchorEmbedding.*{remedy}"):
            AnchorEmbedding(graph, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="AnchorEmbedding has no argument 'colour'"):
        AnchorEmbedding(graph, colour="red")


# -- what is searched, and when --------------------------------------------------------------------------------------


def test_unchanged_weights_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[Any] = []

    class Counting:
        """Trees that tell when they are grown and asked."""

        def __init__(self, *arguments: Any) -> None:
            grown.append("trees")
            self.trees = _core_trees(*arguments)

        def distances(self, items: Any, n_jobs: int) -> Any:
            grown.append(items.size)
            return self.trees.distances(items, n_jobs)

        def backward(self, *arguments: Any) -> Any:
            return self.trees.backward(*arguments)

    _core_trees = _core.AnchorTrees64
    layer = hubs(normalize=False)
    monkeypatch.setattr(_core, "AnchorTrees64", Counting)
    ids = torch.tensor([1, 2, 2])
    with torch.no_grad():
        first = layer(ids)
        for _ in range(3):
            assert torch.equal(layer(ids), first)
    assert grown == ["trees", 40]
    for _ in range(2):
        layer(ids)  # with gradients: only what the batch holds, from the same trees
    assert grown == ["trees", 40, 2, 2]
    layer.graph.theta_w.data += 0.1
    with torch.no_grad():
        assert not torch.equal(layer(ids), first)
    assert grown[4:] == ["trees", 40]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_loaded_state_is_seen_at_once(frozen: bool) -> None:
    """Also where it changes the centre and the scale alone."""
    layer = hubs().freeze() if frozen else hubs()
    ids = torch.arange(4)
    with torch.no_grad():
        before = layer(ids)
        state = {name: value.clone() for name, value in layer.state_dict().items()}
        state["scale"] *= 2
        layer.load_state_dict(state)
        torch.testing.assert_close(layer(ids), before / 2)


def test_a_layer_made_double_answers_in_double() -> None:
    layer = AnchorEmbedding(make_graph(hub_graph(40, 5, 4), dtype=torch.float32))
    for one in (layer, layer.freeze()):
        with torch.no_grad():
            before = one(torch.arange(5))
            after = one.double()(torch.arange(5))
        assert (before.dtype, after.dtype) == (torch.float32, torch.float64)
        torch.testing.assert_close(after.float(), before, rtol=1e-5, atol=1e-5)


# -- freezing, copying, saving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding_idx", [None, 0])
def test_frozen_answers_as_evaluation_does(padding_idx: int | None) -> None:
    edges = hub_graph(40, 5, 4)
    probability = np.where(np.arange(edges.i.size) % 7 == 0, 0.2, 0.9)
    layer = AnchorEmbedding(make_graph(edges, probability=probability), padding_idx=padding_idx).eval()
    frozen = layer.freeze()
    ids = torch.tensor([[0, 39], [7, 7]])
    np.testing.assert_allclose(frozen(ids), layer(ids).detach(), rtol=1e-4, atol=1e-5)
    assert not list(frozen.parameters())
    assert frozen.graph.n_edges == int((probability > 0.5).sum())
    assert repr(frozen).startswith("FrozenAnchorEmbedding(40, 5")


def test_frozen_with_unreachable_items() -> None:
    graph = GraphEmbedding([0], [2], [1.0], 1.0, n_vertices=3, n_items=2, unreachable=5.0)
    layer = AnchorEmbedding(graph, normalize=False)
    assert layer.freeze()(torch.tensor([0, 1])).tolist() == [[1.0], [5.0]]


@pytest.mark.parametrize("frozen", [False, True])
def test_copies_answer_the_same(frozen: bool) -> None:
    layer = hubs(padding_idx=2).freeze() if frozen else hubs(padding_idx=2)
    ids = torch.arange(40)
    with torch.no_grad():
        expected = layer(ids)
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert torch.equal(other(ids), expected)
            other.scale *= 2
            assert torch.equal(layer(ids), expected)


def test_a_state_can_be_saved_and_loaded() -> None:
    layer, other = hubs(), hubs()
    with torch.no_grad():
        other.graph.theta_w.add_(0.3)
        other.center.add_(1)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(torch.arange(40)), layer(torch.arange(40)))


def test_made_of_a_saved_graph(tmp_path: Path) -> None:
    edges = hub_graph(40, 5, 4)
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    graph.save(tmp_path / "graph.prodige")
    for source in (graph, tmp_path / "graph.prodige", str(tmp_path / "graph.prodige")):
        layer = AnchorEmbedding.from_graph(source, normalize=False)
        np.testing.assert_allclose(layer(torch.arange(40)).detach(), truth(edges, 5), rtol=1e-3)
        layer(torch.arange(40)).sum().backward()
        assert layer.graph.theta_w.grad is not None


def test_learns_inside_a_network() -> None:
    """Items are to be told apart by their number: the loss falls, and so the graph gets its gradients."""
    torch.manual_seed(0)
    layer = AnchorEmbedding(make_graph(hub_graph(40, 5, 4), dtype=torch.float32))
    network = nn.Sequential(layer, nn.Linear(5, 2))
    ids, classes = torch.arange(40), torch.arange(40) % 2
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(ids), classes)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


# -- from vectors ----------------------------------------------------------------------------------------------------


def cloud(n: int = 300) -> Any:
    rng = np.random.RandomState(0)
    return (rng.normal(size=(n, 5)) + 4 * rng.normal(size=(6, 5))[rng.randint(6, size=n)]).astype(np.float32)


def error_of(layer: AnchorEmbedding, target: Any) -> float:
    plain = layer(torch.arange(layer.num_embeddings)).detach().numpy() * float(layer.scale) + layer.center.numpy()
    return float(np.mean((plain - target) ** 2))


def test_vectors_become_distances() -> None:
    from prodige.learning.anchors_from_vectors import attach_to_hubs

    X = cloud()
    _, target = attach_to_hubs(X, n_anchors=6, numbers_per_item=8, random_state=0, n_jobs=1)
    layers = [
        AnchorEmbedding.from_vectors(X, 6, 8, padding_idx=0, n_steps=n_steps, random_state=0, n_jobs=1)
        for n_steps in (0, 60)
    ]
    errors = [error_of(layer, target) for layer in layers]
    assert errors[1] < 0.8 * errors[0]
    assert errors[1] < 0.1 * target.var(axis=0).mean()
    for layer in layers:
        assert 6.5 < layer.graph.numbers_per_item <= 8
        assert layer.freeze().graph.numbers_per_item == layer.graph.numbers_per_item
        assert layer(torch.tensor([0])).tolist() == [[0.0] * 6]
    with pytest.raises(ValueError, match="n_steps must be between 0"):
        AnchorEmbedding.from_vectors(X, 6, 8, n_steps=-1)


@pytest.mark.parametrize("factor", [1.0, 1e-4, 1e4])
def test_rows_are_near_the_coordinates_that_are_given(factor: float) -> None:
    X = cloud() * np.float32(factor)
    layers = [
        AnchorEmbedding.from_coordinates(X, 8, padding_idx=0, n_steps=n_steps, random_state=0, n_jobs=1)
        for n_steps in (0, 60)
    ]
    ids = torch.arange(1, len(X))
    errors = [float(np.mean((layer(ids).detach().numpy() - X[1:]) ** 2)) for layer in layers]
    assert errors[1] < 0.8 * errors[0]
    assert errors[1] < 0.02 * X.var(axis=0).mean()
    for layer in layers:
        assert 7 < layer.graph.numbers_per_item <= 8
        assert layer(torch.tensor([0])).tolist() == [[0.0] * 5]
    torch.testing.assert_close(layers[1].freeze()(ids), layers[1](ids).detach(), rtol=1e-4, atol=1e-4 * factor)
    with pytest.raises(ValueError, match="n_steps must be between 0"):
        AnchorEmbedding.from_coordinates(X, 8, n_steps=-1)


@pytest.mark.repeatable
@pytest.mark.parametrize("kind", ["from_vectors", "from_coordinates"])
def test_same_seed_same_layer_on_any_number_of_threads(kind: str) -> None:
    X = np.random.RandomState(0).normal(size=(3000, 12)).astype(np.float32)
    make = getattr(AnchorEmbedding, kind)
    layers = [make(X, numbers_per_item=9, n_steps=5, random_state=7, n_jobs=n_jobs) for n_jobs in (1, 1, 2, 3)]
    first, *others = (layer.state_dict() for layer in layers)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)
    different = make(X, numbers_per_item=9, n_steps=5, random_state=8, n_jobs=1).state_dict()
    assert not torch.equal(first["graph.theta_w"], different["graph.theta_w"])


def test_no_warnings_for_a_frozen_layer_of_one_item() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = Graph.from_edges([0], [1], [2.0], n_items=1)
        assert FrozenAnchorEmbedding(graph, 1)(torch.tensor(0)).tolist() == [2.0]
