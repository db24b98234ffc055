"""Small texts with classes: what tests of this room learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prodige.text.features import Features
from prodige.text.fitting import Problem
from prodige.text.ngrams import Candidates
from prodige.text.tokens import prepare
from prodige.text.vertices import Vertices
from prodige.text.wordgraph import WordGraph


def draw(n_texts: int, n_classes: int = 2, seed: int = 0, length: int = 12) -> tuple[list[str], NDArray[np.int64]]:
    """Return texts of frequent and rare words, of which some prefer a class, and the classes, which alternate."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n_classes).repeat(-(-n_texts // n_classes))[:n_texts]
    texts = []
    for label in classes:
        common = [f"common{number}" for number in rng.zipf(1.4, length) % 40]
        told = [f"told{label}{number}" for number in rng.integers(0, 4, rng.integers(0, 3))]
        words = rng.permutation([*common, *told, *(["not good"] if label else ["good not"])])
        texts.append(" ".join(words))
    return texts, classes


def sparse(dense: NDArray[np.bool_]) -> Features:
    """Return which text has which feature, of a matrix of truth values."""
    offsets = np.concatenate([[0], np.cumsum(dense.sum(axis=1))]).astype(np.int64)
    return Features(offsets, np.nonzero(dense)[1].astype(np.int32), dense.shape[1])


def random_graph(n_scores: int, n_vertices: int = 60, seed: int = 0) -> WordGraph:
    """A graph of random edges: one for each vertex with two classes, one or more with others."""
    rng = np.random.default_rng(seed)
    candidates = Candidates.find(prepare(draw(40)[0]), 2)
    columns = np.sort(rng.permutation(candidates.features.n_columns)[:n_vertices])
    vertices, _ = Vertices.choose(candidates, columns)
    has_edge = rng.random((n_vertices, n_scores)) < 0.3
    has_edge[np.arange(n_vertices), rng.integers(0, n_scores, n_vertices)] = True
    vertex, score = np.nonzero(has_edge)
    levels = np.sort(rng.normal(size=5)).astype(np.float32)
    bias = rng.normal(size=n_scores).astype(np.float32)
    return WordGraph(vertices, vertex, score, rng.integers(0, 5, vertex.size), levels, bias)


def make_problem(n_classes: int, room: int, n_texts: int = 300) -> tuple[Problem, list[str]]:
    """Return a problem, and its texts."""
    texts, classes = draw(n_texts, n_classes)
    documents = prepare(texts)
    weights = np.ones(classes.size)
    return Problem(Candidates.find(documents, 2), classes, n_classes, weights, room, 1, lambda: False), documents
