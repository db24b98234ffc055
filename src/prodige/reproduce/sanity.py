"""The paper's sanity check: a graph is to be found again from nothing but its distances.

Random connected graphs of 10 to 25 vertices are learned from all their pairwise distances. Learning starts from the
complete graph. Weights are fitted, edges whose removal costs nothing are dropped, and the rest is fitted again, until
every edge is needed.

Two starts are offered. ``"distances"`` is how this library starts with any data: a candidate edge is as long as its
ends are apart, and what remains to be learned is which edges are needed. ``"equal"`` gives no hint: every edge starts
with the same weight, the smallest distance there is. That is the better side to come from: while no edge is longer than
the distance of its ends, no path is too long either, and gradients cannot cancel before all residuals are zero. Still,
an edge pushed up by longer paths may overtake a detour; it is then on no shortest path, gets no gradient, and is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from prodige.graph.graph import Graph
from prodige.learning.embedding import GraphEmbedding
from prodige.learning.sparsity import Importance
from prodige.learning.training import fit
from prodige.metric import candidates
from prodige.progress import Bar
from prodige.threads import count_threads

Start = Literal["distances", "equal"]
PAPER = {"graphs": 100, "recovered": 91, "within_1e-3": 100}

# An edge is dropped if without it no distance would grow by more than this: a hundredth of what counts as an error.
TOLERANCE = 1e-5


@dataclass
class Outcome:
    """What became of one graph."""

    n_vertices: int
    n_needed: int
    n_edges: int
    n_missing: int
    largest_error: float


def random_graph(random: np.random.RandomState) -> tuple[Graph, NDArray[np.float64]]:
    """Draw a connected Erdős-Rényi graph (p = 0.25, weights U(0, 1)); return it with all its distances in float64."""
    while True:
        n = random.randint(10, 26)
        i, j = np.triu_indices(n, 1)
        chosen = random.uniform(size=i.size) < 0.25
        graph = Graph.from_edges(i[chosen], j[chosen], random.uniform(size=chosen.sum()), n_vertices=n)
        if graph.is_connected:
            matrix = csr_array(graph.to_scipy(), dtype=np.float64)
            return graph, dijkstra(matrix, directed=False)


def needed_edges(graph: Graph, distances: NDArray[np.float64]) -> set[tuple[int, int]]:
    """Return the edges that are the only shortest path between their ends: no graph can do without them."""
    needed = set()
    for i, j, weight in zip(*(column.tolist() for column in graph.edges), strict=True):
        detours = np.delete(distances[i] + distances[j], [i, j])
        if weight < detours.min(initial=np.inf):
            needed.add((i, j))
    return needed


def learn(distances: NDArray[np.float64], start: Start = "distances", seed: int = 0) -> GraphEmbedding:
    """Learn a graph from its distances, beginning with the complete graph."""
    edges = candidates.complete(distances, metric="precomputed")
    embedding = GraphEmbedding.from_candidates(
        edges,
        weight=edges.weight if start == "distances" else distances[distances > 0].min(),
        probability=1.0,  # certain: with all distances known there is nothing that sampling could explore
        unreachable=10 * distances.max(),
        dtype=torch.float64,
        n_jobs=1,
    )
    target = torch.from_numpy(distances)
    n = len(distances)

    def loss(model: GraphEmbedding, sources: torch.Tensor) -> torch.Tensor:
        residual: torch.Tensor = model(sources) - target[sources]
        return residual.square().mean()

    while True:
        # No momentum: an edge that shoots past its distance would leave the safe side.
        rate, n_steps = (0.0001, 200) if start == "distances" else (0.02, 800)
        optimizer = torch.optim.Adam(embedding.parameters(), lr=rate, betas=(0.0, 0.99))
        fit(embedding, loss, n_steps=n_steps, batch_size=n, optimizer=optimizer, random_state=seed)
        useful = removal_costs(embedding, loss) > TOLERANCE**2 / n**2
        if useful.all():
            return embedding
        embedding.keep(useful)


def removal_costs(
    embedding: GraphEmbedding, loss: Callable[[GraphEmbedding, torch.Tensor], torch.Tensor]
) -> NDArray[np.float64]:
    """Return what the loss over all sources would rise by without each edge."""
    n = embedding.n_items
    embedding.importance = Importance(curvature=2 / n**2)
    loss(embedding, torch.arange(n)).backward()  # type: ignore[no-untyped-call]
    costs = embedding.importance.values * n  # the mean over sources of a loss that is a mean already
    embedding.importance = None
    return costs


def run_one(seed: int, start: Start) -> Outcome:
    """Draw, learn and judge one graph."""
    torch.set_num_threads(1)
    graph, distances = random_graph(np.random.RandomState(seed))
    needed = needed_edges(graph, distances)
    learned = learn(distances, start, seed).freeze()
    found = set(zip(learned.edges.i.tolist(), learned.edges.j.tolist(), strict=True))
    error = float(np.abs(learned.distances(n_jobs=1) - distances).max())
    return Outcome(graph.n_vertices, len(needed), learned.n_edges, len(needed - found), error)


def run(
    n_graphs: int = 100, start: Start = "distances", seed: int = 0, n_jobs: int | None = None, verbose: int = 0
) -> dict[str, Any]:
    """Run the whole check.

    Returns
    -------
    dict
        ``graphs``, ``recovered`` (every edge that carries a unique shortest path was found), ``within_1e-3`` (no
        distance is off by more), ``seconds``, ``largest_error``, ``edges`` and ``edges_needed`` (means), ``paper``.

    Examples
    --------
    >>> from prodige.reproduce import sanity
    >>> figures = sanity.run(n_graphs=1, n_jobs=1)
    >>> figures["recovered"], figures["within_1e-3"]
    (1, 1)
    """
    begin = time.perf_counter()
    seeds = np.random.SeedSequence(seed).generate_state(n_graphs).tolist()
    jobs = joblib.Parallel(n_jobs=min(count_threads(n_jobs), n_graphs), return_as="generator")(
        joblib.delayed(run_one)(one, start) for one in seeds
    )
    outcomes: list[Outcome] = list(Bar(jobs, total=n_graphs, disable=verbose <= 0, unit="graph"))
    return {
        "graphs": n_graphs,
        "recovered": sum(outcome.n_missing == 0 for outcome in outcomes),
        "within_1e-3": sum(outcome.largest_error < 1e-3 for outcome in outcomes),
        "seconds": round(time.perf_counter() - begin, 1),
        "largest_error": max(outcome.largest_error for outcome in outcomes),
        "edges": float(np.mean([outcome.n_edges for outcome in outcomes])),
        "edges_needed": float(np.mean([outcome.n_needed for outcome in outcomes])),
        "start": start,
        "seed": seed,
        "paper": PAPER,
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
