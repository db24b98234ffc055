"""Digests of small fits of all tasks: equal before and after a change that must not change results.

A seed gives the same bits on one machine, whatever the number of threads, but not on two: compare digests of the same
machine. ``python tools/digests.py > before``, then the same after the change, and ``diff``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from prodige import AnchorEmbedding, DistanceCompressor, Graph, GraphEmbedding, GraphRecommender, GraphTextClassifier
from prodige.recommendation.parameters import EDGES
from prodige.text.paper import AnchorTextClassifier
from prodige.text.words import PPMI, GloVe


def main(n_jobs: int = 2) -> None:
    """Print a line for each fit."""
    for name, arrays in fits(n_jobs):
        print(f"{digest(arrays)}  {name}", flush=True)


def digest(arrays: list[NDArray[np.generic]]) -> str:
    """Return a number that differs where a bit, a type or a shape does."""
    state = hashlib.sha256()
    for array in arrays:
        state.update(f"{array.dtype.str}{array.shape}".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()[:16]


def fits(n_jobs: int) -> Iterator[tuple[str, list[NDArray[np.generic]]]]:
    """Yield the names of fits and the arrays they end with."""
    random = np.random.default_rng(0)
    digits = load_digits().data[:600]
    points = random.normal(size=(400, 2))
    for name, X, options in (
        ("compressor, hubs", digits, {}),
        ("compressor, hubs, 8 numbers", digits, {"numbers_per_item": 8}),
        ("compressor, cosine", digits, {"metric": "cosine"}),
        ("compressor, cityblock", digits, {"metric": "cityblock"}),
        ("compressor, precomputed", cdist(digits, digits), {"metric": "precomputed"}),
        ("compressor, neighbours", points, {"numbers_per_item": 6}),
        ("compressor, copies", np.concatenate([digits, digits[:50]]), {}),
        ("compressor, l0", points[:80], {"method": "l0", "numbers_per_item": 6}),
    ):
        model = DistanceCompressor(structure="graph", random_state=0, n_jobs=n_jobs, **options).fit(X)
        yield name, [*model.graph_.edges, model.transform(X[:20])]
    for name, options in (
        ("compressor, product", {"bits_per_item": 64}),
        ("compressor, product, cityblock, near pairs", {"metric": "cityblock", "objective": "neighbors"}),
    ):
        model = DistanceCompressor(structure="product", random_state=0, n_jobs=n_jobs, **options).fit(digits)
        product = model.graph_
        tables = [factor.distances() for factor in product.factors]
        yield name, [*tables, product.codes, product.lengths, np.array([product.power]), model.transform(digits[:20])]

    own = np.arange(300)[:, None] % 5 == np.arange(80) % 5
    tastes = csr_array(random.random((300, 80)) < np.where(own, 0.5, 0.02))
    for edges in EDGES:
        recommender = GraphRecommender(edges=edges, random_state=0, n_jobs=n_jobs).fit(tastes)
        graph = recommender.graph_
        parts = graph.edges if isinstance(graph, Graph) else (graph.codes, graph.lengths)
        yield f"recommender, {edges}", [*parts, *recommender.recommend(np.arange(300), tastes)]

    words = np.array([f"word{number}" for number in range(300)])
    labels = np.arange(200) % 2
    texts = [" ".join(words[(random.zipf(1.5, 30) * (1 + label)) % 300]) for label in labels]
    classifier = GraphTextClassifier(n_jobs=n_jobs).fit(texts, labels)
    yield "text classifier", [*classifier.graph_.edges, classifier.predict_proba(texts)]
    network = AnchorTextClassifier(n_epochs=2, random_state=0, n_jobs=n_jobs).fit(texts, labels)
    yield "text network", [*network.graph_.edges, network.predict_proba(texts)]
    for kind in (PPMI, GloVe):
        yield f"word vectors, {kind.__name__}", [kind(8, random_state=0, n_jobs=n_jobs).fit(texts).vectors_]

    vectors = random.normal(size=(500, 6)).astype(np.float32)
    makers: list[Callable[..., AnchorEmbedding]] = [AnchorEmbedding.from_vectors, AnchorEmbedding.from_coordinates]
    for maker in makers:
        layer = maker(vectors, random_state=0, n_jobs=n_jobs)
        yield f"anchors, {maker.__name__}", [layer(torch.arange(500)).detach().numpy()]
    yield "learned by gradients", list(learned(n_jobs).edges)


def learned(n_jobs: int) -> Graph:
    """Return a graph learned by the training loop."""
    from prodige.learning.training import fit

    target = torch.rand((40, 40), generator=torch.Generator().manual_seed(0))
    i, j = np.triu_indices(40, 1)
    embedding = GraphEmbedding(i, j, 1.0, probability=0.9, n_jobs=n_jobs)
    fit(embedding, lambda model, rows: (model(rows) - target[rows]).square().mean(1), n_steps=50, random_state=0)
    return embedding.freeze()


if __name__ == "__main__":
    main()
