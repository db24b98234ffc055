"""What a training step costs beside the search it is made of.

The candidate graph of benchmarks/search.py, 32 sources, all items as targets, squared error, two threads. "The search"
is the sampled search alone; a step is everything: new weights into the engine, search, loss, backward pass, estimator
of the edge probabilities, optimiser.

    python benchmarks/training.py [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from search import candidate_graph

from prodige import GraphEmbedding
from prodige.learning.training import make_optimizer

N_SOURCES = 32


def make_step(estimator: str, sparse: bool) -> tuple[GraphEmbedding, Callable[[], None]]:
    """Return an embedding of the candidate graph and a function that trains it by one step."""
    graph = candidate_graph(np.random.default_rng(0))
    embedding = GraphEmbedding(*graph.edges, probability=0.9, estimator=estimator, sparse=sparse)
    optimizer = make_optimizer("sparse-adam" if sparse else "adam", embedding, 0.001)
    sources = torch.randperm(graph.n_items, generator=torch.Generator().manual_seed(0))[:N_SOURCES]
    target = torch.rand(N_SOURCES, graph.n_items)

    def step() -> None:
        optimizer.zero_grad()
        losses = (embedding(sources) - target).square().mean(1)
        embedding.surrogate(losses).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return embedding, step


def best_of(rounds: int, *calls: Callable[[], Any]) -> list[float]:
    """Return the best time of each call, taken in turns."""
    best = [np.inf] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[place] = min(best[place], time.perf_counter() - start)
    return best


def measure(estimator: str, sparse: bool, rounds: int) -> dict[str, Any]:
    """Time the search and the step."""
    embedding, step = make_step(estimator, sparse)
    step()
    sources = np.arange(N_SOURCES, dtype=np.int32) * 17
    probability = embedding.probability.detach().numpy()
    engine = embedding._prepare(None).engine
    search, whole = best_of(rounds, lambda: engine.search_sampled(sources, probability, 1, None), step)
    return {
        "estimator": estimator,
        "sparse": sparse,
        "search_ms": 1e3 * search,
        "step_ms": 1e3 * whole,
        "step_over_search": whole / search,
    }


def main() -> None:
    """Measure every estimator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = [
        measure(estimator, sparse, options.rounds)
        for estimator in ("score", "path", "toggle")
        for sparse in (False, True)
    ]
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for result in results:
        kind = "sparse" if result["sparse"] else "dense"
        print(
            f"{result['estimator']:7s} {kind:6s}  search {result['search_ms']:6.1f} ms   "
            f"step {result['step_ms']:6.1f} ms   ratio {result['step_over_search']:.2f}"
        )


if __name__ == "__main__":
    main()
