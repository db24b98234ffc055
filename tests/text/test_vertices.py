"""Vertices of some candidates: their order, their names, and the texts they are found in."""

from __future__ import annotations

import numpy as np
import pytest

from corpora import draw
from prodige.text.ngrams import Candidates
from prodige.text.tokens import alphabet, prepare
from prodige.text.vertices import Vertices


def test_vertices_are_found_where_their_candidates_are() -> None:
    texts, _ = draw(80)
    documents = prepare(texts)
    candidates = Candidates.find(documents, 2)
    columns = np.sort(np.random.default_rng(0).permutation(candidates.features.n_columns)[:150])
    vertices, order = Vertices.choose(candidates, columns)
    assert sorted(order) == columns.tolist()
    assert vertices.names == candidates.names(order)
    assert len(vertices) == 150
    kept, lookup = candidates.features.keep(order), vertices.lookup()
    for text, document in enumerate(documents):
        own = kept.columns[kept.offsets[text] : kept.offsets[text + 1]]
        assert sorted(lookup.find([document], alphabet())) == sorted(own)
    values = np.random.default_rng(1).normal(size=(150, 2))
    for n_jobs in (1, 2):
        sums, counts = lookup.sum(documents, alphabet(), values, n_jobs)
        np.testing.assert_allclose(sums, kept.sums(values), atol=1e-12)
        np.testing.assert_array_equal(counts, kept.lengths)


def test_words_are_in_groups_and_in_order() -> None:
    texts, _ = draw(80)
    candidates = Candidates.find(prepare(texts), 3)
    vertices, _ = Vertices.choose(candidates, np.arange(candidates.features.n_columns))
    keys = list(zip(vertices.groups.tolist(), [word.encode() for word in vertices.words], strict=True))
    assert keys == sorted(keys)
    for rows in (vertices.pairs.tolist(), vertices.triples.tolist(), vertices.skips.tolist()):
        assert rows == sorted(rows)


def test_a_vertex_twice() -> None:
    none = np.zeros((0, 3), np.int32)
    twice = Vertices(["a", "b"], np.array([True, True]), [], np.array([[0, 1], [0, 1]], np.int32), none, none[:, :2])
    with pytest.raises(ValueError, match="sequences must be different"):
        twice.lookup()
    with pytest.raises(ValueError, match="words must be different"):
        Vertices(["a", "a"], np.array([True, True]), [], none[:, :2], none, none[:, :2]).lookup()
