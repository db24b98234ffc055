"""Does anything stay behind when a model is thrown away? Each kind of fit, over and over, and what memory does.

A fit is run again and again on small data, asked something, and thrown away. After a third of the time, to warm up,
neither the memory of the process nor the number of live tensors, modules and graphs may grow any more, and no thread
and no open file may be left.

    python benchmarks/soak.py [--seconds 600] [--only compress-graph,text] [--jobs 1] [--most 20]

``--seconds`` is for all fits together. Ends with 1 if a fit leaves objects, threads or files behind, or more than
``--most`` kilobytes. ``--only compress-many --seconds 3600`` is an hour of fits to samples, queries and inserts.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from prodige import (
    DistanceCompressor,
    Graph,
    GraphEmbedding,
    GraphRecommender,
    GraphTextClassifier,
    estimate_memory,
)
from prodige.compression.paper.l0 import fit_l0
from prodige.learning.sparsity import Budget, Importance
from prodige.learning.training import fit
from prodige.metric.candidates import hubs
from prodige.metric.space import Space
from prodige.text.paper import AnchorTextClassifier


def points(n_items: int = 120) -> np.ndarray:
    """Items in four clusters."""
    random = np.random.default_rng(0)
    rows: np.ndarray = random.normal(size=(4, 6))[np.arange(n_items) % 4] * 3 + random.normal(size=(n_items, 6))
    return rows


def compress(structure: str, method: str, n_jobs: int | None) -> None:
    """Fit distances for some steps, and ask for some."""
    compressor = DistanceCompressor(
        4,
        structure=structure,  # type: ignore[arg-type]
        method=method,  # type: ignore[arg-type]
        random_state=0,
        n_jobs=n_jobs,
        callbacks=[lambda status: status.step == 30],
    )
    compressor.fit(points()).graph_.kneighbors([0, 1], k=3)


def compress_many(n_jobs: int | None) -> None:
    """Fit a sample of rows that come in blocks, ask, add and remove items, and write and read the file in between."""
    X = points(700)
    limit = estimate_memory(*X.shape, bits_per_item=48).bytes - 1  # too little for a whole fit
    compressor = DistanceCompressor(
        bits_per_item=48,
        memory_limit=limit,
        random_state=0,
        n_jobs=n_jobs,
        callbacks=[lambda status: status.step == 1],
    )
    compressor.fit([X[:100], X[100:]]).graph_.kneighbors([0, 1], k=3)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "many.prodige"
        compressor.save(path)
        loaded = DistanceCompressor.load(path, n_jobs=n_jobs)
        loaded.partial_fit(X[:50] + 0.1).save(path)
        loaded.remove(np.arange(100)).kneighbors([0], k=3)
        loaded.score(X[:50] + 0.1)


def compress_directly(n_jobs: int | None) -> None:
    """Fit distances the way of the paper, without the estimator around it."""
    fit_l0(Space(points()), 4, random_state=0, n_jobs=n_jobs, n_steps=20)


def recommend(edges: str, n_jobs: int | None) -> None:
    """Fit users and items, and recommend."""
    random = np.random.default_rng(0)
    own = np.arange(80)[:, None] % 4 == np.arange(40) % 4
    interacted = csr_array(random.random((80, 40)) < np.where(own, 0.5, 0.05))
    model = GraphRecommender(numbers_per_item=4, edges=edges, random_state=0, n_jobs=n_jobs).fit(interacted)  # type: ignore[arg-type]
    model.recommend(0, interacted[[0]], N=3)


def classify(n_jobs: int | None) -> None:
    """Fit texts, and predict."""
    texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 5
    paper = AnchorTextClassifier(n_epochs=1, n_filters=4, n_components=5)
    for architecture in ("ngrams", paper):
        model = GraphTextClassifier(architecture=architecture, random_state=0, n_jobs=n_jobs)
        model.fit(texts, ["good", "good", "bad", "bad"] * 5).predict(texts)


def train(estimator: str, n_jobs: int | None) -> None:
    """Train a graph within a budget by a loss of one's own, and leave it in training mode."""
    X = points()
    edges = hubs(X, 4, random_state=0)
    target = torch.tensor(Space(X).distances(np.arange(len(X))))
    graph = GraphEmbedding.from_candidates(edges, estimator=estimator, n_jobs=n_jobs)
    graph.importance = Importance()
    fit(graph, lambda model, s: (model(s) - target[s]).square().mean(1), 20, budget=Budget(4), random_state=0)
    graph.train()([0, 1])


FITS: dict[str, Callable[[int | None], None]] = {
    "compress-graph": lambda n_jobs: compress("graph", "budget", n_jobs),
    "compress-product": lambda n_jobs: compress("product", "budget", n_jobs),
    "compress-many": compress_many,
    "compress-l0": lambda n_jobs: compress("graph", "l0", n_jobs),
    "l0": compress_directly,
    "recommend-product": lambda n_jobs: recommend("product", n_jobs),
    "recommend-normal": lambda n_jobs: recommend("normal", n_jobs),
    "text": classify,
    "train-toggle": lambda n_jobs: train("toggle", n_jobs),
    "train-score": lambda n_jobs: train("score", n_jobs),
    "train-path": lambda n_jobs: train("path", n_jobs),
}


def live() -> int:
    """Return how many tensors, modules and graphs there are, after all that can be freed was freed."""
    gc.collect()
    counts = Counter(map(type, gc.get_objects()))
    return sum(count for kind, count in counts.items() if issubclass(kind, (torch.Tensor, torch.nn.Module, Graph)))


def memory() -> int:
    """Return the bytes of memory that this process has in use."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(run: Callable[[int | None], None], n_jobs: int | None, seconds: float) -> dict[str, Any]:
    """Run a fit for so long, but at least twice; return what grew in the later two thirds of the time."""
    repeat(run, n_jobs, seconds / 3)
    n_live, n_bytes, n_open = live(), memory(), open_ends()
    n_runs = repeat(run, n_jobs, 2 * seconds / 3)
    return {
        "runs": n_runs,
        "objects": live() - n_live,
        "threads and files": open_ends() - n_open,
        "kilobytes per fit": (memory() - n_bytes) / 1000 / n_runs,
        "growth": memory() / n_bytes - 1,
    }


def open_ends() -> int:
    """Return how many threads this process has, those of the core as well, and how many files it has open."""
    return len(os.listdir("/proc/self/task")) + len(os.listdir("/proc/self/fd")) + threading.active_count()


def repeat(run: Callable[[int | None], None], n_jobs: int | None, seconds: float) -> int:
    """Run a fit, and then again until the time is up; return how often."""
    n_runs, end = 0, time.perf_counter() + seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so little data converges to nothing
        while n_runs < 1 or time.perf_counter() < end:
            run(n_jobs)
            n_runs += 1
    return n_runs


def main() -> int:
    """Soak the fits that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--only", default=",".join(FITS), help="fits, separated by commas: " + ", ".join(FITS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most", type=float, default=20.0, help="kilobytes that a fit may leave behind")
    options = parser.parse_args()
    names = options.only.split(",")
    unknown = set(names) - set(FITS)
    if unknown:
        parser.error(f"no fit is called {', '.join(sorted(unknown))}; there are {', '.join(FITS)}")
    grows = False
    print("| fit | runs | objects left | threads and files left | kB per fit | growth |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in names:
        grown = soak(FITS[name], options.jobs, options.seconds / len(names))
        left = f"{grown['objects']} | {grown['threads and files']} | {grown['kilobytes per fit']:.1f}"
        print(f"| {name} | {grown['runs']} | {left} | {grown['growth']:.1%} |", flush=True)
        grows |= grown["objects"] > 0 or grown["threads and files"] > 0 or grown["kilobytes per fit"] > options.most
    return int(grows)


if __name__ == "__main__":
    sys.exit(main())
