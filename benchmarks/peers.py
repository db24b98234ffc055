"""What other representations make of the same bits: product quantisation, PyMDE, MDS, PCA and UMAP beside the graph.

The graph is fitted first; each peer then gets as many bits for an item as the graph's file has, everything it needs to
answer included, and the best of several ways to spend them. Coordinates are rounded to 8 bits, which costs peers next
to nothing and lets them have four times as many. UMAP keeps no lengths: its distances are multiplied by what is best.

    python -m pip install --constraint constraints.txt faiss-cpu pymde umap-learn
    python benchmarks/peers.py [--dataset mnist10k] [--budget 4] [--methods graph,pq,pymde,mds,pca,umap] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.decomposition import PCA

from prodige import DistanceCompressor, baselines, datasets
from prodige.graph import file
from prodige.metric.evaluation import Report, evaluate
from prodige.metric.space import Space
from prodige.provenance import provenance

Vectors = NDArray[np.float32]
Candidate = tuple[str, float, Vectors]  # how the bits were spent, bits for an item, and where items are then
WEIGHT_BITS = 8  # of the graph's edges, as of the peers' coordinates
CONVERSION = 32 * 2  # bits to turn one 8-bit coordinate back: where its range starts, and its step


class Points:
    """Items as points."""

    def __init__(self, points: Vectors) -> None:
        self.points = points

    def distances(self, sources: NDArray[np.int64], targets: None = None, /) -> Vectors:
        """Return distances to all items, by way of products."""
        squares = np.square(self.points).sum(axis=1)
        square = squares[sources, None] + squares - 2 * self.points[sources] @ self.points.T
        return np.asarray(np.sqrt(np.maximum(square, 0)))


def round_to_bytes(points: NDArray[Any]) -> Vectors:
    """Return coordinates as 8 bits keep them."""
    low, high = points.min(axis=0), points.max(axis=0)
    step = np.where(high > low, (high - low) / 255, 1)
    return np.asarray(low + np.rint((points - low) / step) * step, dtype=np.float32)


def dimensions(bits: float, n: int) -> int:
    """Return how many 8-bit coordinates there is room for."""
    return max(1, int(bits / (8 + CONVERSION / n)))


def product_quantised(X: Vectors, bits: float) -> Iterator[Candidate]:
    """Codes of faiss; codebooks and rotations count, so fewer dimensions or smaller books can be better."""
    import faiss

    n, width = X.shape
    for reduce in ("PCA8", "PCA16", "PCA32", "OPQ{m}_32"):
        for per_code in (4, 8) if n >= 39 * 2**8 else (4,):  # as many items for a centre as faiss asks for
            for m in (32, 16, 8, 4, 2):
                kept = int(reduce.split("_")[-1].removeprefix("PCA"))
                if m * per_code > bits or kept % m or kept > width:
                    continue
                index = faiss.index_factory(width, f"{reduce.format(m=m)},PQ{m}x{per_code}")
                index.train(X)
                index.add(X)
                size = 8 * faiss.serialize_index(index).size / n
                if size <= bits:
                    yield f"{reduce.format(m=m)}, {m} codes of {per_code} bits", size, index.reconstruct_n(0, n)
                    break


def pymde_vectors(X: Vectors, bits: float) -> Iterator[Candidate]:
    """Vectors of PyMDE that preserve distances, from a sample of pairs as it recommends."""
    import pymde
    import torch

    d = dimensions(bits, len(X))
    pymde.seed(0)
    problem = pymde.preserve_distances(
        torch.from_numpy(X), embedding_dim=d, loss=pymde.losses.Quadratic, max_distances=2e6
    )
    points = problem.embed().numpy()
    yield f"{d} coordinates of 8 bits", d * (8 + CONVERSION / len(X)), round_to_bytes(points)


def mds_vectors(X: Vectors, bits: float) -> Iterator[Candidate]:
    """Our own MDS, which is fitted to all pairs."""
    d = dimensions(bits, len(X))
    points = baselines.MDS(d, random_state=0).fit(X).embedding_
    yield f"{d} coordinates of 8 bits", d * (8 + CONVERSION / len(X)), round_to_bytes(points)


def main_directions(X: Vectors, bits: float) -> Iterator[Candidate]:
    """Principal components, stretched by what is best: they fall short of all distances."""
    d = min(dimensions(bits, len(X)), X.shape[1])
    yield f"{d} coordinates of 8 bits", d * (8 + CONVERSION / len(X)), stretched(PCA(d).fit_transform(X), X)


def umap_vectors(X: Vectors, bits: float) -> Iterator[Candidate]:
    """UMAP in few and in as many dimensions as there is room for."""
    import umap

    for d in sorted({2, dimensions(bits, len(X))}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a seed means one thread
            points = umap.UMAP(n_components=d, random_state=0).fit_transform(X)
        yield f"{d} coordinates of 8 bits", d * (8 + CONVERSION / len(X)), stretched(points, X)


def stretched(points: NDArray[Any], X: Vectors) -> Vectors:
    """Return points in 8 bits, multiplied so that distances from a thousand items fit best."""
    sources = np.random.default_rng(0).choice(len(X), min(1000, len(X)), replace=False)
    rounded = round_to_bytes(points)
    given, target = Points(rounded).distances(sources), Space(X).distances(sources)
    return np.asarray(rounded * np.float32(np.vdot(given, target) / np.vdot(given, given)))


PEERS: dict[str, Callable[[Vectors, float], Iterator[Candidate]]] = {
    "pq": product_quantised,
    "pymde": pymde_vectors,
    "mds": mds_vectors,
    "pca": main_directions,
    "umap": umap_vectors,
}
LABELS = {
    "graph": "graph",
    "pq": "product quantisation (faiss)",
    "pymde": "PyMDE",
    "mds": "MDS",
    "pca": "PCA",
    "umap": "UMAP",
}


def row(method: str, how: str, bits: float, report: Report, seconds: float) -> dict[str, Any]:
    """Return what is printed of one method."""
    return {"method": method, "how": how, "bits_per_item": bits, "seconds": seconds, **report.to_dict()}


def measure(X: Vectors, budget: float, methods: list[str]) -> list[dict[str, Any]]:
    """Fit the graph, then its peers in as many bits."""
    space = Space(X)
    began = time.perf_counter()
    graph = DistanceCompressor(budget, structure="graph", random_state=0).fit(X).graph_.rounded(WEIGHT_BITS)
    seconds = time.perf_counter() - began
    bits = 8 * file.size(graph, WEIGHT_BITS) / len(X)
    how = f"{graph.numbers_per_item:.3g} numbers, weights of {WEIGHT_BITS} bits"
    rows = [row("graph", how, bits, evaluate(graph, space, random_state=0), seconds)]
    for method in methods:
        began = time.perf_counter()
        candidates = list(PEERS[method](X, bits))
        seconds = (time.perf_counter() - began) / max(1, len(candidates))
        judged = [(evaluate(Points(points), space, random_state=0), how, size) for how, size, points in candidates]
        if judged:
            report, how, size = min(judged, key=lambda entry: entry[0].mse)
            rows.append(row(method, how, size, report, seconds))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="digits", help="digits, or a data set of the paper")
    parser.add_argument("--budget", type=float, default=4.0, help="numbers per item of the graph")
    parser.add_argument("--methods", default=",".join(PEERS), help="peers to fit")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    X = load(options.dataset)
    rows = measure(X, options.budget, options.methods.split(","))
    if options.json:
        command = f"python benchmarks/peers.py --dataset {options.dataset} --budget {options.budget:g}"
        print(json.dumps({"rows": rows, **provenance(command)}))
        return
    table = Table(title=f"{options.dataset}: {len(X):,} items of {X.shape[1]} coordinates", show_header=True)
    for name in ("", "bits an item", "spent on", "error / variance", "Spearman", "recall@10", "seconds"):
        table.add_column(name, justify="left" if name in ("", "spent on") else "right")
    for entry in rows:
        figures = (f"{1 - entry['explained']:.3f}", f"{entry['spearman']:.3f}", f"{entry['recall']:.3f}")
        table.add_row(
            LABELS[entry["method"]], f"{entry['bits_per_item']:.0f}", entry["how"], *figures, f"{entry['seconds']:.1f}"
        )
    Console(width=140).print(table)


def load(name: str) -> Vectors:
    """Return the items of a data set, with rows of length 1 as in the paper."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X = load_digits().data.astype(np.float32)
    else:
        X = datasets.load(name).X
    return np.ascontiguousarray(X / np.linalg.norm(X, axis=1, keepdims=True), dtype=np.float32)


if __name__ == "__main__":
    main()
