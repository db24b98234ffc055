"""A graph in place of vectors: the digits of scikit-learn as a neighbourhood graph, searched.

No learning yet: edges join each image to its nearest others, plus every image to the mean of its class (ten hubs).
Shows how well so crude a graph answers already, what it costs, and how fast it is searched.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import scipy.sparse
from rich.console import Console
from rich.table import Table
from scipy.sparse.csgraph import dijkstra
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from prodige import Graph

OUTPUT = Path("demo") / "digits_graph.npz"


def build_graph(images: np.ndarray, labels: np.ndarray) -> Graph:
    """Join every image to its two nearest ones and, through hubs, to its class."""
    n, n_classes = len(images), labels.max() + 1
    nearest = kneighbors_graph(images, n_neighbors=2, mode="distance").tocoo()
    centres = np.stack([images[labels == c].mean(axis=0) for c in range(n_classes)])
    to_centre = np.linalg.norm(images - centres[labels], axis=1)
    a, b = np.triu_indices(n_classes, 1)
    return Graph.from_edges(
        np.concatenate([nearest.row, np.arange(n), n + a]),
        np.concatenate([nearest.col, n + labels, n + b]),
        np.concatenate([nearest.data, to_centre, np.linalg.norm(centres[a] - centres[b], axis=1)]),
        n_items=n,
    )


def main() -> None:
    """Build, measure, save."""
    console = Console()
    images, labels = load_digits(return_X_y=True)
    images = images / np.linalg.norm(images, axis=1, keepdims=True)
    graph = build_graph(images, labels)

    graph.distances([0], n_jobs=-1)  # the first call prepares the search
    start = time.perf_counter()
    found = graph.distances()
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    dijkstra(graph.to_scipy())
    peer_seconds = time.perf_counter() - start
    true = pairwise_distances(images)
    pairs = np.triu_indices(len(images), 1)
    neighbors = graph.kneighbors(k=5)[1]

    table = Table(title=f"{len(images)} digits as a graph", show_header=False)
    table.add_row("graph", repr(graph))
    table.add_row("numbers per item", f"{graph.numbers_per_item:.2f} (the images have {images.shape[1]})")
    correlation = np.corrcoef(found[pairs], true[pairs])[0, 1]
    table.add_row("correlation with true distances", f"{correlation:.3f}")
    table.add_row("neighbours of the same class", f"{(labels[neighbors] == labels[:, None]).mean():.1%}")
    table.add_row("a path", " → ".join(map(str, graph.path(0, 1))) + f"   length {graph.distance(0, 1):.3f}")
    table.add_row("all distances", f"{seconds * 1e3:.0f} ms ({peer_seconds / seconds:.0f} × faster than scipy)")
    console.print(table)

    OUTPUT.parent.mkdir(exist_ok=True)
    scipy.sparse.save_npz(OUTPUT, scipy.sparse.csr_matrix(graph.to_scipy()))
    console.print(f"Wrote the graph to [bold]{OUTPUT}[/bold]; read it back with")
    console.print(f'  Graph.from_scipy(scipy.sparse.load_npz("{OUTPUT}"), n_items={graph.n_items})')


if __name__ == "__main__":
    main()
