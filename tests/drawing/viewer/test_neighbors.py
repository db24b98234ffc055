"""Pages of products: what is drawn are items and their nearest, and the page says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from prodige import ProductGraph
from prodige.drawing.viewer.neighbors import N_NEIGHBORS, neighbor_graph
from strategies import make_product, products


@given(product=products())
def test_edges_are_those_of_the_nearest(product: ProductGraph) -> None:
    graph = neighbor_graph(product)
    distances = product.distances()
    expected = set()
    for i, row in enumerate(distances.tolist()):
        others = sorted((d, j) for j, d in enumerate(row) if j != i and np.isfinite(d))
        expected |= {(min(i, j), max(i, j)) for _, j in others[:N_NEIGHBORS]}
    assert set(zip(graph.edges.i.tolist(), graph.edges.j.tolist(), strict=True)) == expected
    np.testing.assert_array_equal(graph.edges.weight, distances[graph.edges.i, graph.edges.j])
    assert graph.n_items == graph.n_vertices == product.n_items


def test_the_page_says_what_it_shows(tmp_path: Path) -> None:
    product = make_product(np.random.default_rng(0), 40, "pg")
    product.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Items of a product of 2 graphs (joined to their 5 nearest)" in page
    assert page.count("paths over these edges are not those of the product") == 2  # with JavaScript and without
    product.to_html(tmp_path / "page.html", title="Towns")
    assert "<title>Towns (joined to their 5 nearest)" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("codes", [[[0]], [[0], [1]]])
def test_few_items(tmp_path: Path, codes: list[list[int]]) -> None:
    product = ProductGraph.from_factors([[[0.0], [1.0]]], codes, [0.0] * len(codes))
    product.to_html(tmp_path / "page.html", labels=["some"] * len(codes))
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [({"title": 3}, TypeError, "title must be a str, got 3"), ({"labels": ["a"]}, ValueError, "labels")],
)
def test_bad_input(tmp_path: Path, arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    product = make_product(np.random.default_rng(0), 10, "p")
    with pytest.raises(error, match=match):
        product.to_html(tmp_path / "page.html", **arguments)
    assert not (tmp_path / "page.html").exists()
