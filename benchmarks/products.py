"""Products of graphs: how well they keep distances and neighbours, how long a fit takes, how fast answers are.

Every figure is of what comes back from the file, over all pairs; bits are those of the whole file.

    python benchmarks/products.py [--datasets mnist10k,glove10k,celeba10k] [--json]
    python benchmarks/products.py --speed
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import prodige
from prodige import DistanceCompressor, datasets
from prodige.metric.evaluation import evaluate
from prodige.metric.space import Space
from prodige.provenance import provenance

FITS: list[dict[str, Any]] = [
    {"bits_per_item": 64},
    {"bits_per_item": 64, "objective": "neighbors"},
    {"bits_per_item": 24},
    {"bits_per_item": 32},
    {"bits_per_item": 128},
    {"bits_per_item": 64, "metric_only": False},
    {"bits_per_item": 128, "metric_only": False},
    {"numbers_per_item": 8},
    {"numbers_per_item": 4},
    {"bits_per_item": 64, "objective": 0.5},
]


def fit(X: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the graph of a fit as it comes back from its file, and what is known of it."""
    began = time.perf_counter()
    compressor = DistanceCompressor(random_state=0, **parameters).fit(X)
    seconds = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "graph.prodige"
        compressor.graph_.save(path)
        graph: Any = prodige.load(path)
        bits = 8 * path.stat().st_size / graph.n_items
    facts = {"structure": compressor.structure_, "bits": bits, "numbers": graph.numbers_per_item, "seconds": seconds}
    return graph, facts | {"is_metric": getattr(graph, "is_metric", True)}


def measure(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one fit."""
    X = datasets.load(name).X
    graph, facts = fit(X, parameters)
    report = evaluate(graph, Space(X), k=10, n_sources=len(X))
    figures = {"mse": report.mse, "share": report.mse / report.variance, "recall": report.recall}
    return {"dataset": name, "parameters": parameters} | facts | figures


def rate(question: Callable[[], Any], n: int) -> float:
    """Return how many of n things a second are answered, in the best of five rounds on one thread."""
    question()
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        question()
        seconds.append(time.perf_counter() - began)
    return n / min(seconds)


def speed(name: str) -> dict[str, float]:
    """Return answers a second of a product of 64 bits an item, and of a graph of hubs of 4 numbers beside it."""
    X = datasets.load(name).X
    product, facts = fit(X, {"bits_per_item": 64, "structure": "product"})
    hubs, _ = fit(X, {"numbers_per_item": 4, "structure": "graph"})
    n, some = len(X), np.arange(2048)
    i, j = np.random.default_rng(0).integers(0, n, (2, 1_000_000))
    return {
        "fit, seconds": facts["seconds"],
        "pairs": rate(lambda: product.pair_distances(i, j, n_jobs=1), i.size),
        "pairs in rows": rate(lambda: product.distances(some, n_jobs=1), some.size * n),
        "rows": rate(lambda: product.distances(some, n_jobs=1), some.size),
        "rows, graph of hubs": rate(lambda: hubs.distances(some, n_jobs=1), some.size),
        "10 nearest": rate(lambda: product.kneighbors(some, k=10, n_jobs=1), some.size),
        "10 nearest, graph of hubs": rate(lambda: hubs.kneighbors(some, k=10, n_jobs=1), some.size),
    }


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="mnist10k,glove10k,celeba10k")
    parser.add_argument("--speed", action="store_true", help="answers a second, of the first data set")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    command = shlex.join(["python", "benchmarks/products.py", *sys.argv[1:]])
    names = arguments.datasets.split(",")
    if arguments.speed:
        print(json.dumps(speed(names[0]) | {"provenance": provenance(command)}, indent=1))
        return
    rows = []
    table = Table("data", "asked for", "kind", "bits", "numbers", "error", "of variance", "recall@10", "seconds")
    for name in names:
        for parameters in FITS:
            row = measure(name, parameters)
            rows.append(row)
            asked = ", ".join(f"{key}={value}" for key, value in parameters.items())
            figures = f"{row['bits']:.1f} {row['numbers']:.2f} {row['mse']:.6f} {row['share']:.4f} {row['recall']:.4f}"
            table.add_row(name, asked, row["structure"], *figures.split(), f"{row['seconds']:.0f}")
            Console(stderr=True).print(name, asked, row["structure"], figures, f"{row['seconds']:.0f} s")
    if arguments.json:
        print(json.dumps({"rows": rows, "provenance": provenance(command)}, indent=1))
    else:
        Console().print(table)


if __name__ == "__main__":
    main()
