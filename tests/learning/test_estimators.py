"""Estimators of the gradient of edge probabilities, against enumeration of all graphs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from learning.test_embedding import make
from prodige import GraphEmbedding
from prodige.learning.estimators import Baseline
from prodige.learning.training import fit
from prodige.progress import Record
from strategies import Edges, make_edges

UNREACHABLE = 3.0
Loss = Callable[[torch.Tensor], torch.Tensor]

LOSSES: dict[str, Loss] = {
    "squared": lambda d: (d - 0.4).square().mean(-1),
    "absolute": lambda d: (d - 0.7).abs().sum(-1),
    "softmax": lambda d: -torch.log_softmax(-d, dim=-1)[..., 1],
    "farthest": lambda d: d.max(-1).values,
}


def small_graph(seed: int) -> Edges:
    """Draw at most ten edges, among four items and a hub."""
    rng = np.random.default_rng(seed)
    while True:
        edges = make_edges(rng, 4, 1, 0.9, "real").with_dtype(np.float64)
        if 6 <= edges.i.size <= 10:
            return edges


def embedding_of(edges: Edges, estimator: str, seed: int = 0) -> GraphEmbedding:
    rng = np.random.default_rng(7)
    return make(
        edges,
        probability=rng.uniform(0.15, 0.95, edges.i.size),
        estimator=estimator,
        unreachable=UNREACHABLE,
        generator=torch.Generator().manual_seed(seed),
        n_jobs=1,
    )


def exact_gradient(embedding: GraphEmbedding, loss: Loss, source: int) -> NDArray[np.float64]:
    """Gradient of the expected loss by theta_b, summed over all graphs there are."""
    p = embedding.probability.detach()
    total = torch.zeros_like(p)
    probe = GraphEmbedding(
        embedding.i,
        embedding.j,
        embedding.weight,
        n_vertices=embedding.n_vertices,
        n_items=embedding.n_items,
        unreachable=UNREACHABLE,
        dtype=torch.float64,
        n_jobs=1,
    ).eval()
    for bits in itertools.product([0.0, 1.0], repeat=embedding.n_edges):
        present = torch.tensor(bits, dtype=torch.float64)
        with torch.no_grad():
            probe.theta_b.copy_(present * 2 - 1)
            value = loss(probe([source])[0])
        chance = torch.where(present == 1, p, 1 - p).prod()
        total += chance * value * (present - p)
    return total.numpy()


def estimates(embedding: GraphEmbedding, loss: Loss, source: int, n_blocks: int, block: int) -> NDArray[np.float64]:
    """Gradients of theta_b from independent blocks of samples, shape [blocks, E]."""
    rows = []
    for _ in range(n_blocks):
        embedding.zero_grad()
        sample = embedding.sample([source], n_samples=block)
        sample.surrogate(loss(sample.distances)).backward()  # type: ignore[no-untyped-call]
        assert embedding.theta_b.grad is not None
        rows.append(embedding.theta_b.grad.numpy().copy())
    return np.stack(rows)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_score_is_unbiased(seed: int, name: str) -> None:
    """200,000 samples: every edge within 4 standard errors of the exact gradient."""
    embedding = embedding_of(small_graph(seed), "score")
    exact = exact_gradient(embedding, LOSSES[name], source=0)
    rows = estimates(embedding, LOSSES[name], 0, n_blocks=200, block=1000)
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - exact) <= 4 * error + 1e-12).all()
    assert (np.abs(exact) > 4 * error).sum() >= 4  # the test can tell the gradient from zero


@pytest.mark.parametrize("name", LOSSES)
def test_toggle_is_close_and_steady(name: str) -> None:
    """Points the right way with about half the noise of the score estimator at its best.

    On graphs this small even a perfect estimator, which knew both losses of every flip, would keep about a third of
    the noise; benchmarks/estimators.py has the figures, also for larger graphs.
    """
    score = estimates(embedding_of(small_graph(2), "score"), LOSSES[name], 0, n_blocks=200, block=20)
    embedding = embedding_of(small_graph(2), "toggle")
    toggle = estimates(embedding, LOSSES[name], 0, n_blocks=200, block=20)
    exact = exact_gradient(embedding, LOSSES[name], source=0)
    assert toggle.var(axis=0).sum() <= 0.65**2 * score.var(axis=0).sum()
    mean = toggle.mean(axis=0)
    assert mean @ exact / np.linalg.norm(mean) / np.linalg.norm(exact) > 0.8


def test_toggle_is_exact_for_quadratic_losses_of_single_edges() -> None:
    """A lone edge beside a certain detour: no second replacement to miss, so only sampling noise is left."""
    detour = GraphEmbedding(
        [0, 0, 1],
        [2, 1, 2],
        weight=[0.5, 1.0, 1.0],
        probability=[0.8, 1.0, 1.0],
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(0),
    )
    for loss in (LOSSES["squared"], lambda d: (d[..., 2] - 1.3).square()):
        exact = exact_gradient(detour, loss, 0)[0]
        rows = estimates(detour, loss, 0, n_blocks=50, block=400)[:, 0]
        assert abs(rows.mean() - exact) <= 4 * rows.std(ddof=1) / np.sqrt(50)
        assert abs(exact) > 0.01


def test_path_rewards_the_edges_in_use() -> None:
    embedding = GraphEmbedding(
        [0, 0, 1], [1, 2, 2], [1.0, 9.0, 1.0], probability=0.999, estimator="path", dtype=torch.float64
    )
    embedding([0]).sum().backward()
    gradient = embedding.theta_b.grad
    assert gradient is not None
    # Two paths, 0-1 and 0-1-2: edge 0 is used twice, edge 2 once, edge 1 never.
    torch.testing.assert_close(gradient, -torch.tensor([2.0, 0.0, 1.0], dtype=torch.float64) / 3 * 0.001)


def test_log_prob_matches_its_definition() -> None:
    embedding = embedding_of(small_graph(0), "score")
    sample = embedding.sample([0, 2], n_samples=3)
    p = embedding.probability.detach()
    expected = torch.zeros(6, dtype=torch.float64)
    for row, edge, present in zip(sample.asked.rows, sample.asked.edges, sample.present, strict=True):
        expected[row] += torch.log(p[edge] if present else 1 - p[edge])
    torch.testing.assert_close(sample.log_prob.detach().flatten(), expected)


def test_running_mean_baseline_lowers_the_variance() -> None:
    loss = LOSSES["squared"]
    spread = {}
    baselines: list[Baseline] = ["none", "running-mean"]
    for baseline in baselines:
        embedding = embedding_of(small_graph(0), "score")
        rows = []
        for _ in range(400):
            embedding.zero_grad()
            losses = loss(embedding([0, 1, 2, 3])) + 5  # an offset that only a baseline can take away
            embedding.surrogate(losses, baseline).backward()  # type: ignore[no-untyped-call]
            assert embedding.theta_b.grad is not None
            rows.append(embedding.theta_b.grad.numpy().copy())
        spread[baseline] = np.std(rows[50:], axis=0).sum()
    assert spread["running-mean"] < spread["none"] / 3


def pair_loss(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Loss of each source, from a row of either call; no sum over the calls could stand for it."""
    return (one[:, 2] * other[:, 1] + one[:, 1] - 1).square()


CALLS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "same sources": lambda model, sources: pair_loss(model(sources), model(sources)),
    "partners": lambda model, sources: pair_loss(model(sources), model(2 - sources)),
    "in parts": lambda model, sources: pair_loss(
        torch.cat([model(sources[:3]), model(sources[3:])]), torch.zeros(len(sources), 3, dtype=torch.float64)
    ),
    "two samples": lambda model, sources: pair_loss(*model.sample(sources, n_samples=2).distances),
    "in between": lambda model, sources: (pair_loss(model(sources), model(sources)), model([1]))[0],
}


def exact_gradient_of_two(embedding: GraphEmbedding, partner: dict[int, int]) -> torch.Tensor:
    """Gradient of the expected loss of sources 0 and 2, over all pairs of graphs there are."""
    probe = make_triangle("toggle").eval()
    graphs = list(itertools.product([0.0, 1.0], repeat=3))
    distances = []
    for bits in graphs:
        with torch.no_grad():
            probe.theta_b.copy_(torch.tensor(bits) * 2 - 1)
            distances.append(probe([0, 1, 2]))
    theta = embedding.theta_b.detach().clone().requires_grad_()
    present = torch.tensor(graphs, dtype=torch.float64)
    chance = torch.where(present == 1, torch.sigmoid(theta), 1 - torch.sigmoid(theta)).prod(dim=1)
    expected = torch.zeros((), dtype=torch.float64)
    for source in (0, 2):
        for one, two in itertools.product(range(8), repeat=2):
            second = distances[two][partner[source]] if partner else torch.zeros(3, dtype=torch.float64)
            loss = pair_loss(distances[one][source][None], second[None])[0]
            expected = expected + chance[one] * chance[two] * loss / 2
    expected.backward()  # type: ignore[no-untyped-call]
    assert theta.grad is not None
    return theta.grad


def make_triangle(estimator: str) -> GraphEmbedding:
    return GraphEmbedding(
        [0, 0, 1],
        [1, 2, 2],
        [0.5, 1.4, 0.7],
        probability=[0.6, 0.7, 0.4],
        unreachable=UNREACHABLE,
        estimator=estimator,
        dtype=torch.float64,
        n_jobs=1,
    )


@pytest.mark.parametrize("calls", CALLS)
def test_score_counts_every_call_of_a_step(calls: str) -> None:
    """As the training loop has it: the mean over many steps is the gradient of the expected loss."""
    embedding = make_triangle("score")
    partner = {0: 2, 2: 0} if calls == "partners" else {} if calls == "in parts" else {0: 0, 2: 2}
    exact = exact_gradient_of_two(embedding, partner)
    seen: list[torch.Tensor] = []

    def note(record: Record) -> None:
        assert embedding.theta_b.grad is not None
        seen.append(embedding.theta_b.grad.clone())

    still = torch.optim.SGD(embedding.parameters(), lr=0.0)
    fit(
        embedding,
        CALLS[calls],
        n_steps=500,
        batch_size=32,
        optimizer=still,
        sources=[0, 2] * 16,
        callbacks=[note],
        random_state=0,
    )
    rows = torch.stack(seen[1:])  # the first has no baseline but itself
    error = rows.std(dim=0) / len(rows) ** 0.5
    assert ((rows.mean(dim=0) - exact).abs() <= 4 * error).all()
    assert (exact.abs() > 6 * error).any()  # the test can tell the gradient from zero


def test_score_refuses_calls_that_it_cannot_tell_apart() -> None:
    embedding = make_triangle("score")
    losses = pair_loss(embedding([0, 2]), embedding([0, 2]))
    with pytest.raises(RuntimeError, match=r"2 calls in training mode .*gathering"):
        embedding.surrogate(losses)
    with embedding.gathering([0, 2]):
        losses = embedding.eval()([0, 2]).sum(1)
    embedding.train()
    with pytest.raises(RuntimeError, match="without a call of the embedding in training mode"):
        embedding.surrogate(losses)
    # Once told apart, or one at a time, all is well.
    with embedding.gathering([0, 2]):
        losses = pair_loss(embedding([0, 2]), embedding([0, 2]))
    embedding.surrogate(losses).backward()  # type: ignore[no-untyped-call]
    for _ in range(2):
        embedding.surrogate(embedding([0, 2]).sum(1)).backward()  # type: ignore[no-untyped-call]
