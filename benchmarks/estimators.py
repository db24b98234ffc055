"""Bias and noise of the estimators of edge-probability gradients.

Small graphs: the exact gradient of the expected loss by enumerating all graphs, the mean of each estimator over many
samples, and its noise (root of the summed variances over the edges). "ideal" is the noise of an estimator that would
know, for every drawn graph and every edge, both losses with the edge present and absent: no estimator that looks at
one drawn graph and its single flips can do better. Noise is relative to the score estimator with a leave-one-out
baseline, at equal samples.

A larger graph: noise alone, since nobody can enumerate it.

    python benchmarks/estimators.py [--samples 20000] [--json]
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from prodige import GraphEmbedding
from prodige.learning.estimators import Baseline
from prodige.metric import candidates

Loss = Callable[[torch.Tensor], torch.Tensor]
LOSSES: dict[str, Loss] = {
    "squared": lambda d: (d - 0.4).square().mean(-1),
    "absolute": lambda d: (d - 0.7).abs().sum(-1),
    "softmax": lambda d: -torch.log_softmax(-d, dim=-1)[..., 1],
    "farthest": lambda d: d.max(-1).values,
}
UNREACHABLE = 3.0


def small_graph(seed: int) -> dict[str, Any]:
    """Draw nine edges among five vertices."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(5, 1)
    chosen = np.sort(rng.choice(i.size, 9, replace=False))
    return {"i": i[chosen], "j": j[chosen], "weight": rng.uniform(0.01, 1, 9), "n_vertices": 5}


def embed(graph: dict[str, Any], estimator: str, probability: float) -> GraphEmbedding:
    """Return a learnable version of the graph."""
    return GraphEmbedding(
        **graph,
        probability=probability,
        estimator=estimator,
        unreachable=UNREACHABLE,
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(0),
        n_jobs=1,
    )


def enumerate_losses(graph: dict[str, Any], loss: Loss) -> NDArray[np.float64]:
    """Return the loss of every graph there is, indexed by the presence of each edge."""
    embedding = embed(graph, "toggle", 0.9).eval()
    m = embedding.n_edges
    losses = np.empty((2,) * m)
    for bits in itertools.product((0, 1), repeat=m):
        with torch.no_grad():
            embedding.theta_b.copy_(torch.tensor(bits) * 2.0 - 1)
            losses[bits] = float(loss(embedding([0])[0]))
    return losses


def exact(losses: NDArray[np.float64], p: float) -> tuple[NDArray[np.float64], float]:
    """Return the gradient of the expected loss by theta_b, and the noise of the ideal estimator."""
    m = losses.ndim
    gradient, noise = np.empty(m), 0.0
    for e in range(m):
        effect = p * (1 - p) * np.diff(losses, axis=e).squeeze(e)  # present minus absent, for every rest
        chance = np.ones(())
        for _ in range(m - 1):
            chance = np.multiply.outer(chance, np.array([1 - p, p]))
        gradient[e] = (chance * effect).sum()
        noise += float((chance * effect**2).sum() - gradient[e] ** 2)
    return gradient, np.sqrt(noise)


def sample_gradients(
    embedding: GraphEmbedding, loss: Loss, baseline: Baseline, n_samples: int, block: int = 10
) -> tuple[NDArray[np.float64], float]:
    """Return the mean estimate and the noise of one sample."""
    rows = []
    for _ in range(n_samples // block):
        embedding.zero_grad()
        sample = embedding.sample([0], n_samples=block)
        sample.surrogate(loss(sample.distances), baseline).backward()  # type: ignore[no-untyped-call]
        assert embedding.theta_b.grad is not None
        rows.append(embedding.theta_b.grad.numpy().copy())
    estimates = np.stack(rows)
    return estimates.mean(axis=0), float(np.sqrt(estimates.var(axis=0, ddof=1).sum() * block))


def measure_small(p: float, name: str, n_samples: int, seed: int = 0) -> dict[str, Any]:
    """Compare all estimators with the truth on one graph and loss."""
    graph = small_graph(seed)
    truth, ideal = exact(enumerate_losses(graph, LOSSES[name]), p)
    plans: dict[str, tuple[str, Baseline]] = {
        "score": ("score", "leave-one-out"),
        "score, no baseline": ("score", "none"),
        "toggle": ("toggle", "none"),
    }
    figures: dict[str, Any] = {"probability": p, "loss": name, "edges": 9, "noise": {}, "error": {}}
    for plan, (estimator, baseline) in plans.items():
        mean, noise = sample_gradients(embed(graph, estimator, p), LOSSES[name], baseline, n_samples)
        figures["noise"][plan] = noise
        figures["error"][plan] = float(np.linalg.norm(mean - truth) / np.linalg.norm(truth))
    figures["noise"]["ideal"] = ideal
    return figures


def measure_large(p: float, n_samples: int, n: int = 300) -> dict[str, Any]:
    """Compare the noise on a graph of nearest and random neighbours, squared error."""
    points = np.random.default_rng(0).normal(size=(n, 8)) / 4
    edges = candidates.knn(points, 8) | candidates.random(points, 8, random_state=0)
    graph = {"i": edges.i, "j": edges.j, "weight": edges.weight, "n_vertices": n}
    target = torch.from_numpy(np.linalg.norm(points - points[0], axis=1))
    loss: Loss = lambda d: (d - target).square().mean(-1)  # noqa: E731
    noise = {}
    plans: dict[str, tuple[str, Baseline]] = {
        "score": ("score", "leave-one-out"),
        "score, no baseline": ("score", "none"),
        "toggle": ("toggle", "none"),
    }
    for plan, (estimator, baseline) in plans.items():
        noise[plan] = sample_gradients(embed(graph, estimator, p), loss, baseline, n_samples)[1]
    return {"probability": p, "loss": f"squared, {n} vertices", "edges": edges.n_edges, "noise": noise, "error": {}}


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="the edges leave the items")
    results = [measure_small(p, name, options.samples) for p in (0.5, 0.9) for name in LOSSES]
    results += [measure_large(p, max(options.samples // 20, 200)) for p in (0.5, 0.9)]
    if options.json:
        print(json.dumps(results, indent=2))
        return
    table = Table(title="Noise relative to score with leave-one-out; bias of toggle relative to the gradient")
    for column in ("loss", "p", "edges", "score, no baseline", "toggle", "ideal", "bias of toggle"):
        table.add_column(column, justify="left" if column == "loss" else "right")
    for result in results:
        noise = result["noise"]
        relative = {plan: f"{value / noise['score']:.2f}" for plan, value in noise.items()}
        table.add_row(
            result["loss"],
            f"{result['probability']}",
            f"{result['edges']}",
            relative["score, no baseline"],
            relative["toggle"],
            relative.get("ideal", ""),
            f"{result['error']['toggle']:.0%}" if result["error"] else "",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
