"""How long a training step takes with a graph in the place of word vectors, and how fast texts are classified.

The network of GraphTextClassifier is trained on random texts with the frequencies of a language, once over
``nn.Embedding`` of 100 coordinates and once over an ``AnchorEmbedding``, step by step in turns: the ratio says how many
times longer a step over the graph takes. The graph is made as the classifier makes it, and each side has the optimiser
that the classifier gives it. Prediction is from token ids to logits. Times are medians; on a machine that does other
things as well, those of processors say more than those of the clock.

    python benchmarks/text.py [--tokens 32000] [--length 235] [--batch 64] [--steps 30] [--jobs 2]
                              [--anchors 32] [--numbers 5] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from tqdm.auto import tqdm

from prodige.learning.anchors import AnchorEmbedding
from prodige.provenance import provenance
from prodige.text.paper.classifier import _GRAPH_RATE, _RATE
from prodige.text.paper.network import Average, Corpus, Examples, TextNetwork, Training
from prodige.threads import torch_threads

N_TEXTS = 2_000
N_COORDINATES = 100


def random_corpus(n_texts: int, length: int, n_tokens: int, seed: int = 0) -> Corpus:
    """Return texts of about this length; the n-th most frequent token has a share of 1 / n, as Zipf's law says."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(1, rng.lognormal(np.log(length) - 0.18, 0.6, n_texts).astype(np.int64))
    shares = 1 / np.arange(1, n_tokens + 1)
    tokens = rng.choice(n_tokens, int(lengths.sum()), p=shares / shares.sum())
    return Corpus(tokens.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]))


class Side:
    """A network over one kind of embedding, and steps of its training."""

    def __init__(self, embedding: nn.Module, groups: Callable[[TextNetwork], Any], corpus: Corpus, jobs: int) -> None:
        self.network = TextNetwork(embedding, 2, n_jobs=jobs)
        data = Examples(corpus, np.random.default_rng(1).integers(0, 2, len(corpus)))
        self.training = Training(data, data, torch.ones(2), 1, np.random.default_rng(2), "benchmark")
        self.optimizer = torch.optim.Adam(groups(self.network))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1.0)
        self.average = Average(self.network)
        self.bar = tqdm(disable=True)

    def step(self, rows: Any) -> tuple[float, float]:
        """Return the seconds of one step, by the clock and of processors."""
        began, spent = time.perf_counter(), time.process_time()
        self.training.step(self.network, rows, self.optimizer, self.schedule, self.average, self.bar)
        return time.perf_counter() - began, time.process_time() - spent

    def predict(self, corpus: Corpus) -> float:
        """Return texts a second."""
        self.network.predict(corpus)  # the first call makes the table of distances
        began = time.perf_counter()
        self.network.predict(corpus)
        return len(corpus) / (time.perf_counter() - began)


def graph_groups(network: TextNetwork) -> list[dict[str, Any]]:
    """Return what is trained over a graph: the lengths of its edges, and the layers above."""
    above = [*network.convolution.parameters(), *network.dense.parameters()]
    return [{"params": [network.embedding.graph.theta_w], "lr": _GRAPH_RATE}, {"params": above, "lr": _RATE}]  # type: ignore[union-attr]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Train both in turns, then let both predict."""
    corpus = random_corpus(N_TEXTS, options.length, options.tokens)
    coordinates = np.random.default_rng(3).normal(size=(options.tokens, options.anchors)).astype(np.float32)
    counts = np.bincount(corpus.tokens, minlength=options.tokens)
    layer = AnchorEmbedding.from_coordinates(
        coordinates,
        options.numbers,
        sample_weight=np.maximum(counts, 1.0) ** 0.75,
        padding_idx=0,
        random_state=0,
        n_jobs=options.jobs,
    )
    layer.graph.theta_b.requires_grad_(False)
    sides = {
        "vectors": Side(
            nn.Embedding(options.tokens, N_COORDINATES, padding_idx=0),
            lambda network: [{"params": network.parameters(), "lr": 1e-3}],
            corpus,
            options.jobs,
        ),
        "graph": Side(layer, graph_groups, corpus, options.jobs),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    rng = np.random.default_rng(4)
    for number in range(options.steps + 3):
        rows = rng.choice(N_TEXTS, options.batch, replace=False)
        for name, side in sides.items():
            seconds = side.step(rows)
            if number >= 3:  # the first ones set memory aside
                times[name].append(seconds)
    medians, spent = (
        {name: statistics.median(value[place] for value in values) for name, values in times.items()}
        for place in range(2)
    )
    return {
        "tokens_per_text": corpus.tokens.size / N_TEXTS,
        "numbers_per_item": layer.graph.numbers_per_item,
        "step_seconds": medians,
        "step_cpu_seconds": spent,
        "ratio": medians["graph"] / medians["vectors"],
        "cpu_ratio": spent["graph"] / spent["vectors"],
        "texts_per_second": {name: side.predict(corpus) for name, side in sides.items()},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=32_000)
    parser.add_argument("--length", type=int, default=235, help="tokens of a text, on average")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--anchors", type=int, default=32)
    parser.add_argument("--numbers", type=float, default=5.0, help="size of the graph for each token")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    with torch_threads(options.jobs):
        figures = measure(options)
    if options.json:
        command = (
            f"python benchmarks/text.py --tokens {options.tokens} --length {options.length} --batch {options.batch} "
            f"--steps {options.steps} --jobs {options.jobs} --anchors {options.anchors} --numbers {options.numbers}"
        )
        print(json.dumps({**figures, **provenance(command)}))
        return
    title = f"{options.batch} texts of {figures['tokens_per_text']:.0f} tokens on average, {options.tokens:,} tokens"
    table = Table(title=title)
    for place, header in enumerate(
        ["embedding", "ms a step", "× vectors", "of processors", "× vectors", "texts predicted a second"]
    ):
        table.add_column(header, justify="right" if place else "left")
    for name, speed in figures["texts_per_second"].items():
        cells = []
        for times in (figures["step_seconds"], figures["step_cpu_seconds"]):
            cells += [f"{1000 * times[name]:.1f}", f"{times[name] / times['vectors']:.2f}"]
        table.add_row(name, *cells, f"{speed:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
