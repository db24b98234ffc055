"""Items, hubs, anchors: in this order everywhere."""

from __future__ import annotations

import numpy as np

from prodige import AnchorEmbedding
from prodige.learning.anchor_layout import AnchorLayout


def test_edges_are_of_two_kinds() -> None:
    layout = AnchorLayout(n_items=4, n_hubs=3, n_anchors=2)
    i, j = layout.join(np.array([0, 1, 2, 3, 3]), np.array([0, 1, 2, 0, 1]))
    of_items, between = layout.kinds(i, j)
    assert of_items.tolist() == [True] * 5 + [False] * 6
    np.testing.assert_array_equal(between, ~of_items)
    assert layout.n_vertices == 9
    assert layout.anchors.tolist() == [7, 8]
    assert j.max() == 8


def test_layers_are_laid_out_so() -> None:
    X = np.random.default_rng(0).normal(size=(200, 5))
    for layer in (
        AnchorEmbedding.from_vectors(X, n_anchors=6, n_steps=0, random_state=0),
        AnchorEmbedding.from_coordinates(X, n_steps=0, random_state=0),
    ):
        layout = AnchorLayout.of(layer.graph, layer.embedding_dim)
        assert layout.n_items == 200
        np.testing.assert_array_equal(layer.anchors, layout.anchors)
        of_items, between = layout.kinds(layer.graph.i.numpy(), layer.graph.j.numpy())
        assert (of_items | between).all()
        assert between.sum() == layout.n_hubs * layout.n_anchors
