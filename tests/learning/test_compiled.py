"""Graphs inside torch.compile: in one piece, with the bits of the same layer without it."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from prodige import AnchorEmbedding, GraphEmbedding
from prodige.learning import compiled
from prodige.learning.autograd import Parameters
from strategies import hub_graph, point_graph

EDGES = {"hubs": hub_graph(40, 5, 4), "points": point_graph(30, 3, 2)}
IDS = torch.tensor([[3, 7, 7], [0, 12, 3]])
# No code is generated for the rest of the network, which takes long; what is traced and differentiated is the same.
BACKEND = "aot_eager"


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def make_graph(kind: str = "hubs", probability: float = 1.0, **options: Any) -> GraphEmbedding:
    edges = EDGES[kind]
    generator = torch.Generator().manual_seed(5)
    return GraphEmbedding(
        edges.i,
        edges.j,
        edges.weight,
        probability,
        edges.n_vertices,
        edges.n_items,
        unreachable="learn",
        n_jobs=1,
        generator=generator,
        **options,
    )


def make_layer(kind: str = "hubs", probability: float = 1.0, **options: Any) -> AnchorEmbedding:
    return AnchorEmbedding(make_graph(kind, probability), 5, **options)


def compile_whole(module: Any) -> Any:
    return torch.compile(module, fullgraph=True, backend=BACKEND)


def outcome(module: nn.Module, call: Any, *inputs: Any) -> list[torch.Tensor]:
    """Return what comes out, and all gradients of a loss that treats every entry differently."""
    module.zero_grad()
    answer = call(*inputs)
    factors = torch.linspace(-1, 2, answer.numel(), dtype=answer.dtype).view(answer.shape)
    (factors * answer.square()).sum().backward()
    # Operators cannot say that there is no gradient; theirs is 0 then.
    found = [parameter.grad for parameter in module.parameters()]
    return [answer.detach(), *(torch.zeros(()) if gradient is None else gradient.clone() for gradient in found)]


def assert_same_bits(one: list[torch.Tensor], other: list[torch.Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a + torch.zeros_like(b), b + torch.zeros_like(a))  # one may be a single 0


@pytest.mark.parametrize("kind", list(EDGES))
@pytest.mark.parametrize("probability", [1.0, 0.8])
@pytest.mark.parametrize("training", [True, False])
def test_a_layer_is_one_piece_with_the_same_bits(kind: str, probability: float, training: bool) -> None:
    """Values, gradients and random draws; with edges that are drawn, from anchors or from items."""
    plain = make_layer(kind, probability, padding_idx=12).train(training)
    other = copy.deepcopy(plain)
    whole = compile_whole(other)
    for ids in (IDS, torch.arange(25)):
        assert_same_bits(outcome(plain, plain, ids), outcome(other, whole, ids))
        with torch.no_grad():
            assert torch.equal(plain(ids), whole(ids))


@pytest.mark.parametrize("kind", list(EDGES))
@pytest.mark.parametrize("probability", [1.0, 0.8])
@pytest.mark.parametrize("training", [True, False])
def test_a_graph_is_one_piece_with_the_same_bits(kind: str, probability: float, training: bool) -> None:
    plain = make_graph(kind, probability).train(training)
    other = copy.deepcopy(plain)
    whole = compile_whole(other)
    sources = torch.tensor([3, 0, 11])
    for inputs in ((sources,), (sources, torch.tensor([1, 3]))):
        assert_same_bits(outcome(plain, plain, *inputs), outcome(other, whole, *inputs))


def test_inside_a_network() -> None:
    """Training steps give what they give without being compiled."""
    plain = nn.Sequential(make_layer(padding_idx=0), nn.Flatten(), nn.Linear(15, 2))
    other = copy.deepcopy(plain)
    losses = []
    for module, call in ((plain, plain), (other, compile_whole(other))):
        optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(call(IDS), torch.tensor([0, 1]))
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
    np.testing.assert_allclose(losses[5:], losses[:5], rtol=1e-5)
    assert losses[4] < 0.8 * losses[0]


def test_what_torch_checks_of_operators() -> None:
    layer, graph = make_layer(padding_idx=3), make_graph().eval()
    for module, inputs, shape in (
        (layer, [IDS, layer.center, layer.scale], (*IDS.shape, 5)),
        (graph, [torch.tensor([1, 2])], (2, 40)),
        (graph, [torch.tensor([1, 2]), torch.tensor([4])], (2, 1)),
    ):
        own = module.graph if isinstance(module, AnchorEmbedding) else module
        parameters = (own.theta_w, own.theta_b, own.unreachable.detach().requires_grad_())
        torch.library.opcheck(
            torch.ops.prodige.call.default,
            (inputs, *parameters, module._number, shape, True),
            # Tickets differ from call to call, which is what the two others would find.
            test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
        )
        ticket = compiled._call(inputs, *parameters, module._number, shape, True)[1]
        detached = tuple(parameter.detach() for parameter in parameters)
        torch.library.opcheck(
            torch.ops.prodige.call_backward.default,
            (torch.ones(shape), ticket, inputs, *detached, module._number, [True, True, True]),
        )


def test_one_program_serves_all_layers_of_a_shape() -> None:
    """A layer a fold, say: nothing is compiled again."""
    counter = torch._dynamo.testing.CompileCounterWithBackend(BACKEND)
    for seed in range(12):
        layer = make_layer()
        with torch.no_grad():
            layer.graph.theta_w.add_(0.1 * seed)
            answer = torch.compile(layer, fullgraph=True, backend=counter)(IDS)
            assert torch.equal(answer, layer(IDS))
    assert counter.frame_count == 1


def test_a_search_that_is_gone_is_done_again() -> None:
    """At a second backward pass, and after many other calls: with the same draw, and also in the other mode."""
    layer = make_layer("points", 0.7)
    whole = compile_whole(layer)
    answer = whole(IDS)
    (expected,) = torch.autograd.grad(answer.sum(), layer.graph.theta_b, retain_graph=True)
    assert expected.any()
    assert not layer._waiting
    for _ in range(20):
        whole(IDS)
    assert len(layer._waiting) == compiled._MOST_WAITING
    layer.eval()
    (again,) = torch.autograd.grad(answer.sum(), layer.graph.theta_b)
    assert torch.equal(again, expected)


def test_other_parameters_than_its_own() -> None:
    layer = make_layer()
    others = {
        "graph.theta_w": (layer.graph.theta_w.detach() + 0.5).requires_grad_(),
        "scale": layer.scale * 3,
    }

    def call(ids: torch.Tensor) -> torch.Tensor:
        answer: torch.Tensor = torch.func.functional_call(layer, others, (ids,))
        return answer

    found = []
    for function in (call, compile_whole(call)):
        for learning in (False, True):
            with torch.set_grad_enabled(learning):
                answer = function(IDS)
            assert not torch.equal(answer, layer(IDS))
            found.append(answer.detach())
        found.extend(torch.autograd.grad(answer.square().sum(), others["graph.theta_w"]))
    assert_same_bits(found[:3], found[3:])


def test_score_estimator_outside_of_the_compiled_part() -> None:
    plain = make_graph("points", 0.7, estimator="score")
    other = copy.deepcopy(plain)
    found = []
    for graph, call in ((plain, plain), (other, compile_whole(other))):
        losses = call(torch.tensor([1, 2, 3])).square().mean(1)
        graph.surrogate(losses, "none").backward()  # type: ignore[no-untyped-call]
        assert graph.theta_b.grad is not None
        found.append(graph.theta_b.grad)
    assert torch.equal(found[0], found[1])


def test_bad_ids_are_told_when_they_come() -> None:
    whole = compile_whole(make_layer())
    whole(IDS)
    with pytest.raises(IndexError, match="the first is 40"):
        whole(torch.where(IDS == 12, 40, IDS))


@pytest.mark.parametrize("make", [lambda graph: graph, AnchorEmbedding])
def test_sparse_gradients_are_refused(make: Any) -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported, match="knows no sparse gradients"):
        compile_whole(make(make_graph(sparse=True)))(torch.tensor([1]))


@pytest.mark.parametrize("make", [make_graph, make_layer])
def test_copies_have_numbers_of_their_own(make: Any) -> None:
    module = make()
    module.generator = getattr(module, "graph", module).generator = None
    copies = [copy.copy(module), copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    numbers = [int(one._number) for one in (module, *copies)]
    assert len(set(numbers)) == 4
    assert [compiled._modules[number] for number in numbers] == [module, *copies]
    assert not any("number" in name for name in module.state_dict())


def test_modules_are_not_kept_alive() -> None:
    layer = make_layer()
    compiled.call(
        layer,
        [IDS, layer.center, layer.scale],
        Parameters(layer.graph.theta_w, layer.graph.theta_b, layer.graph.unreachable),
        (*IDS.shape, 5),
    )
    assert len(layer._waiting) == 1
    number, gone = int(layer._number), weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None
    assert number not in compiled._modules
