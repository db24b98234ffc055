"""The graph: distances to classes are what vertices are worth."""

from __future__ import annotations

import numpy as np
import pytest

from corpora import draw, random_graph
from prodige.text.tokens import prepare

DOCUMENTS = prepare(draw(40)[0])


@pytest.mark.parametrize("n_scores", [1, 3, 6])
def test_distances_to_classes(n_scores: int) -> None:
    words = random_graph(n_scores)
    graph, n = words.graph(), len(words.vertices)
    assert graph.n_items == n
    anchors = np.arange(graph.n_vertices - words.n_classes, graph.n_vertices)
    distances = np.array([[graph.distance(vertex, int(anchor)) for anchor in anchors] for vertex in range(n)])
    if n_scores == 1:
        np.testing.assert_allclose(distances[:, 0] - distances[:, 1], words.table[:, 0], atol=1e-5)
    else:
        np.testing.assert_allclose(words.stem + words.reach - distances, words.table, atol=1e-5)


@pytest.mark.parametrize("n_scores", [1, 3])
def test_scores(n_scores: int) -> None:
    words = random_graph(n_scores)
    scores = words.scores([*DOCUMENTS, ""], 1)
    for document, row in zip([*DOCUMENTS, ""], scores, strict=True):
        found = words.find(document)
        expected = words.table[found].sum(axis=0) / np.sqrt(max(found.size, 1)) + words.bias
        np.testing.assert_allclose(row, expected, atol=1e-12)
