"""Any loss you like: a graph learned from comparisons alone.

Nobody says how far apart the items are. All that is known are answers to "is A nearer to B or to C?", and one in twenty
answers is wrong. The loss is made for that question, and the graph learns from it as any torch module would: candidate
edges in, distances out, gradients back. In truth the items lie on a ring, which comes out as a ring of edges.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch.nn import functional

from prodige import GraphEmbedding

N_ITEMS = 40
N_ANSWERS = 12_000
N_STEPS = 300


def main(folder: Path = Path("demo")) -> None:
    """Ask, learn, thin out, draw."""
    # The truth, which only the answers depend on: places on a ring, in no particular order.
    random = np.random.default_rng(0)
    angle = random.permutation(N_ITEMS) * 2 * np.pi / N_ITEMS
    gap = np.abs(angle[:, None] - angle)
    truth = np.minimum(gap, 2 * np.pi - gap)
    a, b, c = np.array([random.choice(N_ITEMS, 3, replace=False) for _ in range(N_ANSWERS)]).T
    is_b = (truth[a, b] < truth[a, c]) ^ (random.random(N_ANSWERS) < 0.05)
    near, far = np.where(is_b, b, c), np.where(is_b, c, b)

    # All pairs may become edges. Each is there with a probability that is learned too.
    i, j = np.triu_indices(N_ITEMS, 1)
    generator = torch.Generator().manual_seed(0)
    graph = GraphEmbedding(i, j, weight=1 + 0.1 * random.random(i.size), probability=0.9, generator=generator, n_jobs=1)
    optimizer = torch.optim.Adam(graph.parameters(), lr=0.05)

    # The likelihood of the answers, and a penalty for every edge that is kept.
    for _ in range(N_STEPS):
        optimizer.zero_grad()
        distances = graph(np.arange(N_ITEMS))
        answers = functional.softplus(4 * (distances[a, near] - distances[a, far])).mean()
        (answers + 0.5 * graph.probability.mean()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    # Asked again, of all pairs of pairs: how many comparisons does the graph get right?
    small = graph.freeze()
    found = small.distances()
    a, b, c = np.array([random.choice(N_ITEMS, 3, replace=False) for _ in range(N_ANSWERS)]).T
    tie = np.isclose(truth[a, b], truth[a, c])
    right = ((found[a, b] < found[a, c]) == (truth[a, b] < truth[a, c]))[~tie].mean()
    print(f"{small.n_edges} of {i.size} edges kept; {right:.1%} of new comparisons right")

    # Drawn where the items truly are, which the graph was never told.
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    ends = np.stack([small.edges.i, small.edges.j], axis=1)
    axes.add_collection(LineCollection(list(places[ends]), colors="#0072B2", linewidths=1.2))
    axes.scatter(places[:, 0], places[:, 1], s=30, color="black", zorder=2)
    axes.set_title(f"{right:.0%} of comparisons right with {small.n_edges} edges")
    axes.set_aspect("equal")
    axes.set_axis_off()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-comparisons.png", dpi=110)


if __name__ == "__main__":
    main()
