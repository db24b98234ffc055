"""How fast texts are learned and classified, and how long a training step takes with a graph in place of word vectors.

Three measurements, each alone or all of them:

fit        seconds from texts to the fitted GraphTextClassifier: 40 texts, MR, IMDB.
predict    texts a second from raw strings to classes, on one thread: IMDB, or random texts of its length.
step       the network of the paper is trained on random texts with the frequencies of a language, once over
           ``nn.Embedding`` of 100 coordinates and once over an ``AnchorEmbedding``, step by step in turns: the ratio
           says how many times longer a step over the graph takes. The graph is made as the classifier makes it, and
           each side has the optimiser that the classifier gives it. Prediction is from token ids to logits.

Data sets are looked for where PRODIGE_DATA says; one that is not there is left out. Nothing is scored.
Times of steps are medians; on a machine that does other things as well, those of processors say more than those of the
clock.

    python benchmarks/text.py [--only fit] [--only predict] [--only step] [--jobs 2] [--json] [--bytes 50000]
                              [--tokens 32000] [--length 235] [--batch 64] [--steps 30] [--anchors 32] [--numbers 5]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from tqdm.auto import tqdm

from prodige import GraphTextClassifier, datasets
from prodige.learning.anchors import AnchorEmbedding
from prodige.provenance import provenance
from prodige.text.paper.classifier import _GRAPH_RATE, _RATE
from prodige.text.paper.network import Average, Corpus, Examples, TextNetwork, Training
from prodige.threads import torch_threads

N_TEXTS = 2_000
N_COORDINATES = 100
FEW_TEXTS = 40
N_ROUNDS = 5


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


Texts = tuple[list[str], Any]


def find_texts() -> dict[str, Texts]:
    """Return texts to learn from and their classes, of the sets that are there, and a few sentences of the first."""
    found: dict[str, Texts] = {}
    for name in ("mr", "imdb"):
        try:
            data = datasets.load_texts(name)
        except FileNotFoundError:
            continue
        found[name] = list(data.train), np.asarray(data.train_labels)
        if name == "mr":  # all sentences, as a user would have them; nothing is scored here
            found[name] = [*data.train, *data.test], np.concatenate([data.train_labels, data.test_labels])
    if not found:
        corpus = random_corpus(N_TEXTS, 235, 32_000)
        texts = [
            " ".join(f"word{token}" for token in corpus.tokens[begin:end])
            for begin, end in pairwise(corpus.offsets.tolist())
        ]
        found["random"] = texts, np.random.default_rng(1).integers(0, 2, len(texts))
    texts, classes = next(iter(found.values()))
    few = np.random.default_rng(0).permutation(len(texts))[:FEW_TEXTS]
    return {f"{FEW_TEXTS} texts": ([texts[place] for place in few], classes[few])} | found


def timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return the seconds of a call, by the clock and of processors, and what it returns."""
    began, spent = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - began, time.process_time() - spent, result


def measure_fits(options: argparse.Namespace) -> dict[str, Any]:
    """Fit the classifier to every set of texts."""
    figures: dict[str, Any] = {}
    for name, (texts, classes) in find_texts().items():
        model = GraphTextClassifier(options.bytes, n_jobs=options.jobs)
        seconds, spent, _ = timed(lambda model=model, texts=texts, classes=classes: model.fit(texts, classes))  # type: ignore[misc]
        figures[name] = {
            "texts": len(texts),
            "seconds": seconds,
            "cpu_seconds": spent,
            "trials": len(model.history_),
        }
    return {"fit": figures}


def measure_predictions(options: argparse.Namespace) -> dict[str, Any]:
    """Classify raw strings on one thread, by a model of some of them; the best of a few rounds."""
    name, (texts, classes) = list(find_texts().items())[-1]
    some = np.random.default_rng(0).permutation(len(texts))[:N_TEXTS]
    learned = [texts[place] for place in some]
    model = GraphTextClassifier(options.bytes, n_jobs=1).fit(learned, classes[some])
    rounds = [timed(lambda: model.predict(texts))[:2] for _ in range(N_ROUNDS)]
    return {
        "predict": {
            "texts": name,
            "letters_per_text": sum(map(len, texts)) / len(texts),
            "vertices": len(model.vertices_),
            "texts_per_second": len(texts) / min(seconds for seconds, _ in rounds),
            "texts_per_cpu_second": len(texts) / min(spent for _, spent in rounds),
        }
    }


def measure_steps(options: argparse.Namespace) -> dict[str, Any]:
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


def print_figures(figures: dict[str, Any], options: argparse.Namespace) -> None:
    """Show what was measured as tables."""
    console = Console()
    if "fit" in figures:
        table = Table("texts", "number", "seconds", "of processors", "trials", title="fit")
        for name, row in figures["fit"].items():
            table.add_row(
                name,
                f"{row['texts']:,}",
                f"{row['seconds']:.2f}",
                f"{row['cpu_seconds']:.2f}",
                str(row["trials"]),
            )
        console.print(table)
    if "predict" in figures:
        row = figures["predict"]
        console.print(
            f"predict: {row['texts_per_second']:,.0f} texts a second, {row['texts_per_cpu_second']:,.0f} a second of a "
            f"processor ({row['texts']}, {row['letters_per_text']:.0f} letters each, {row['vertices']:,} vertices)"
        )
    if "ratio" in figures:
        title = (
            f"{options.batch} texts of {figures['tokens_per_text']:.0f} tokens on average, {options.tokens:,} tokens"
        )
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
        console.print(table)


MEASUREMENTS = {"fit": measure_fits, "predict": measure_predictions, "step": measure_steps}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(MEASUREMENTS), help="may be given several times")
    parser.add_argument("--bytes", type=int, default=50_000, help="size of the classifier's file")
    parser.add_argument("--tokens", type=int, default=32_000)
    parser.add_argument("--length", type=int, default=235, help="tokens of a text, on average")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--anchors", type=int, default=32)
    parser.add_argument("--numbers", type=float, default=5.0, help="size of the graph for each token")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    what = options.only or list(MEASUREMENTS)
    figures: dict[str, Any] = {}
    with torch_threads(options.jobs):
        for name in what:
            figures |= MEASUREMENTS[name](options)
    if options.json:
        only = " ".join(f"--only {name}" for name in what)
        command = (
            f"python benchmarks/text.py {only} --bytes {options.bytes} --tokens {options.tokens} "
            f"--length {options.length} --batch {options.batch} --steps {options.steps} --jobs {options.jobs} "
            f"--anchors {options.anchors} --numbers {options.numbers}"
        )
        print(json.dumps({**figures, **provenance(command)}))
    else:
        print_figures(figures, options)


if __name__ == "__main__":
    main()
