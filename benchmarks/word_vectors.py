"""How long word vectors take, and how good they are.

Counts which words stand near each other, beside the usual way of doing that with scipy, then learns GloVe and PPMI
vectors. The ratio says how many times longer scipy takes. How good vectors are is the accuracy of a logistic regression
on the mean vector of a text, on the test part of IMDB. Without the data, texts of random words with the frequencies of
a language stand in, and there is no accuracy. On a machine that does other things as well, seconds of the processor say
more than those of the clock.

    python benchmarks/word_vectors.py [--texts imdb|random] [--components 100] [--epochs 25] [--jobs 2] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import coo_array, csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prodige.datasets import load_texts
from prodige.provenance import provenance
from prodige.text.vocabulary import SPECIAL, Vocabulary
from prodige.text.words import PPMI, GloVe, WordModel, count_cooccurrences

Encoded = tuple[NDArray[np.int32], NDArray[np.int64]]


def random_texts(n_texts: int, length: int = 230, n_words: int = 80_000, seed: int = 0) -> list[str]:
    """Return texts of random words; the n-th most frequent has a share of 1 / n, as Zipf's law says."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, n_words + 1)
    drawn = rng.choice(n_words, (n_texts, length), p=shares / shares.sum())
    return [" ".join(f"w{number}" for number in row) for row in drawn.tolist()]


def count_with_scipy(ids: NDArray[np.int32], offsets: NDArray[np.int64], n_tokens: int, window: int) -> csr_array:
    """Count pairs of each distance as a sparse matrix, and add them up."""
    documents = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    total = csr_array((n_tokens, n_tokens), dtype=np.float32)
    for distance in range(1, window + 1):
        one, other = ids[:-distance], ids[distance:]
        is_pair = (documents[:-distance] == documents[distance:]) & (np.minimum(one, other) >= len(SPECIAL))
        weights = np.full(int(is_pair.sum()), 1 / distance, dtype=np.float32)
        counts = coo_array((weights, (one[is_pair], other[is_pair])), shape=total.shape).tocsr()
        total = total + counts + counts.T
    return total


def accuracy(model: WordModel, train: Encoded, y: NDArray[Any], test: Encoded, y_test: NDArray[Any]) -> float:
    """Return how often a logistic regression on mean vectors is right."""

    def means(encoded: Encoded) -> NDArray[np.float32]:
        ids, offsets = encoded
        bags = csr_array((np.ones(ids.size, np.float32), ids, offsets), shape=(offsets.size - 1, len(model.vectors_)))
        return np.asarray(bags @ model.vectors_ / np.maximum(np.diff(offsets), 1)[:, None])

    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return float(classifier.fit(means(train), y).score(means(test), y_test))


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return a result with the seconds of the clock and of the processor that it took."""
    began, spent = time.perf_counter(), time.process_time()
    result = work()
    return result, {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - spent}


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Do everything once."""
    rows: list[dict[str, Any]] = []

    def step(name: str, work: Callable[[], Any]) -> Any:
        result, times = timed(work)
        rows.append({"step": name, **times})
        return result

    data = load_texts("imdb", options.data_dir) if options.texts == "imdb" else None
    texts = random_texts(options.n_texts) if data is None else data.train[: options.n_texts]
    vocabulary = step("vocabulary", lambda: Vocabulary.build(texts))
    train = step("encode", lambda: vocabulary.encode(texts))
    ids, offsets = train
    n_tokens = len(vocabulary)
    counts = step("count", lambda: count_cooccurrences(ids, offsets, n_tokens, 10, n_jobs=options.jobs))
    if not options.no_peer:
        peer = step("count, scipy", lambda: count_with_scipy(ids, offsets, n_tokens, 10))
        np.testing.assert_allclose(peer.sum(), counts.sum(), rtol=1e-3)
        rows[-1]["ratio"] = rows[-1]["cpu_seconds"] / rows[-2]["cpu_seconds"]
    rows[2]["pairs"] = counts.nnz
    models: dict[str, WordModel] = {
        "GloVe": GloVe(options.components, n_epochs=options.epochs, random_state=0, n_jobs=options.jobs),
        "PPMI": PPMI(options.components, random_state=0, n_jobs=options.jobs),
    }
    for name, model in models.items():
        step(name, lambda model=model: model.fit_ids(ids, offsets, vocabulary))  # type: ignore[misc]
        if data is not None:
            y = data.train_labels[: len(texts)]
            rows[-1]["accuracy"] = accuracy(model, train, y, vocabulary.encode(data.test), data.test_labels)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", choices=["imdb", "random"], default="random")
    parser.add_argument("--data-dir", help="folder of the reviews")
    parser.add_argument("--n-texts", type=int, default=25_000)
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=GloVe().n_epochs)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-peer", action="store_true", help="leave out scipy, which takes long")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    rows = measure(options)
    if options.json:
        command = (
            f"python benchmarks/word_vectors.py --texts {options.texts} --n-texts {options.n_texts} "
            f"--components {options.components} --epochs {options.epochs} --jobs {options.jobs}"
        )
        print(json.dumps({"rows": rows, **provenance(command)}))
        return
    table = Table(title=f"Word vectors of {options.n_texts:,} texts ({options.texts}), {options.jobs} threads")
    for place, header in enumerate(["", "seconds", "of processors", "× core", "accuracy"]):
        table.add_column(header, justify="right" if place else "left")
    for row in rows:
        ratio, correct = (
            f"{row[key]:{form}}" if key in row else "" for key, form in (("ratio", ".1f"), ("accuracy", ".4f"))
        )
        table.add_row(row["step"], f"{row['seconds']:.1f}", f"{row['cpu_seconds']:.1f}", ratio, correct)
    Console().print(table)


if __name__ == "__main__":
    main()
