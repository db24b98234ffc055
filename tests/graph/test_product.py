"""ProductGraph: how one is made, what it says of itself, and every kind of bad input.

What it answers is in test_conformance.py.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from prodige import Graph, ProductGraph
from prodige.graph import GeometricFactor, GraphFactor, Grid
from strategies import make_product, products

LINE = [[0.0], [1.0], [2.0]]
PAIR = Graph.from_edges([0], [1], [3.0])


def simple(**changes: Any) -> ProductGraph:
    arguments: dict[str, Any] = {
        "factors": [LINE, PAIR],
        "codes": [[0, 0], [2, 0], [1, 1]],
        "lengths": [0.0, 0.5, 0.25],
        "power": 2.0,
        "gauge": 2.0,
        "places": None,
    }
    return ProductGraph.from_factors(**(arguments | changes))


def test_what_it_says_of_itself() -> None:
    product = simple()
    assert repr(product) == ("ProductGraph(n_items=3, n_factors=2, n_hubs=5, power=2, gauge=2, numbers_per_item=5.333)")
    assert (product.n_items, product.n_factors, product.n_hubs) == (3, 2, 5)
    assert product.factors == (GeometricFactor(LINE), GraphFactor(PAIR))
    # Six codes and three lengths; three positions; two vertices and an edge.
    assert product.numbers_per_item == (6 + 3 + 3 + (2 + 2)) / 3
    assert (product.power, product.gauge, product.is_metric) == (2, 2, True)
    assert product.codes.tolist() == [[0, 0], [2, 0], [1, 1]]
    assert product.codes.dtype == np.int32
    assert product.lengths.dtype == np.float32
    assert product.lengths.tolist() == [0, 0.5, 0.25]
    assert not product.pendant
    assert "gauge=2, pendant=True, numbers" in repr(simple(pendant=True))


def test_distances_by_hand() -> None:
    product = simple()
    assert product.distance(0, 1) == pytest.approx(np.sqrt(0 + 0.5 + 2**2 + 0))
    assert product.distance(1, 2) == pytest.approx(np.sqrt(0.5 + 0.25 + 1**2 + 3**2))
    assert simple(power=1, gauge=1).distance(1, 2) == pytest.approx(0.5 + 0.25 + 1 + 3)
    assert simple(power=1, gauge=1.5).distance(1, 2) == pytest.approx((0.5 + 0.25 + 1 + 3) ** (1 / 1.5))
    assert simple(pendant=True).distance(1, 2) == pytest.approx(0.5 + 0.25 + np.sqrt(1**2 + 3**2))


def test_one_factor_of_one_hub_is_a_star() -> None:
    star = ProductGraph.from_factors([[[0.0]]], np.zeros((4, 1), int), [1, 2, 3, 4], power=1, gauge=1)
    graph = Graph.from_edges(range(4), [4] * 4, [1, 2, 3, 4], n_items=4)
    np.testing.assert_array_equal(star.distances(), graph.distances())


def test_items_that_share_a_vertex() -> None:
    product = simple(places=[2, 0, 1, 0])
    vertices = [2, 0, 1, 0]
    truth = simple().distances()[np.ix_(vertices, vertices)]
    np.testing.assert_array_equal(product.distances(), truth)
    assert product.distance(1, 3) == 0
    assert product.kneighbors([1], k=1)[1].tolist() == [[3]]
    assert product.codes.tolist() == [[1, 1], [0, 0], [2, 0], [0, 0]]
    assert product.lengths.tolist() == [0.25, 0, 0.5, 0]
    assert product.numbers_per_item == (6 + 3 + 3 + 4 + 2) / 4
    assert product.path(1, 3) == [[0], [0]]


def test_places_without_twins_are_an_order() -> None:
    for lengths in ([0.0, 0.5, 0.25], Grid([0, 2, 1], 2, 0.0, 0.25)):
        product = simple(places=[2, 0, 1], lengths=lengths)
        assert product == simple(codes=[[1, 1], [0, 0], [2, 0]], lengths=reordered(lengths))
    assert simple(places=[0, 1, 2]) == simple()


def reordered(lengths: Any) -> Any:
    if isinstance(lengths, Grid):
        return Grid(lengths.levels[[2, 0, 1]], lengths.bits, lengths.least, lengths.step)
    return [lengths[2], lengths[0], lengths[1]]


def test_equality_sees_every_field() -> None:
    others = [
        simple(factors=[[[0.0], [1.0], [3.0]], PAIR]),
        simple(factors=[Grid.round(LINE, 1 + 1), PAIR]),
        simple(codes=[[0, 0], [2, 0], [1, 0]]),
        simple(lengths=[0.0, 0.5, 0.5]),
        simple(lengths=Grid([0, 2, 1], 2, 0.0, 0.25)),
        simple(power=1.5),
        simple(gauge=1.5),
        simple(pendant=True),
        simple(places=[0, 1, 2, 2]),
        simple(places=[0, 1, 2, 1]),
    ]
    assert simple() not in others
    assert len({simple(), *others}) == 11
    assert simple(places=[0, 1, 2, 1]) == simple(places=np.array([0, 1, 2, 1], np.uint8))


def test_products_cannot_change() -> None:
    codes, lengths, places = np.array([[0, 0], [2, 0], [1, 1]]), np.array([0.0, 0.5, 0.25], np.float32), np.arange(3)
    places = np.r_[places, 0]
    product = simple(codes=codes, lengths=lengths, places=places)
    before = product.distances()
    codes[:], lengths[:], places[:] = 0, 9, 0
    np.testing.assert_array_equal(product.distances(), before)
    for made in (product, simple()):
        for array in (made.codes, made.lengths):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


@given(product=products())
def test_numbers_are_counted(product: ProductGraph) -> None:
    n_vertices = len(product._codes)
    n_lengths = n_vertices - product.n_first
    n_numbers = n_vertices * product.n_factors + n_lengths + sum(factor.n_numbers for factor in product.factors)
    shared = min(product.n_items, 2 * (product.n_items - n_vertices))
    assert product.numbers_per_item == (n_numbers + shared) / product.n_items
    assert product.is_metric == (product.power <= product.gauge)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"factors": []}, ValueError, "factors must be 1 to 256 graphs, got 0"),
        ({"factors": [LINE] * 257}, ValueError, "factors must be 1 to 256 graphs, got 257"),
        ({"factors": PAIR}, TypeError, "factors must be a list of graphs or positions, got Graph.* of type Graph"),
        ({"factors": LINE}, ValueError, r"factors\[0\]: positions must have the shape"),
        ({"factors": [LINE, "a"]}, TypeError, r"factors\[1\]: positions must hold real numbers"),
        ({"factors": [LINE]}, ValueError, r"codes must have the shape \[V, 1\], a hub in each factor, got \(3, 2\)"),
        ({"codes": [0, 2, 1]}, ValueError, r"codes must have the shape \[V, 2\].*got \(3,\)"),
        ({"codes": np.zeros((0, 2), int)}, ValueError, "codes must have a row for each vertex, got none"),
        ({"codes": np.zeros((3, 2))}, TypeError, "codes must hold integers"),
        ({"codes": [[0, 0], [3, 0], [1, 2]]}, ValueError, r"codes\[1, 0\] = 3 is not a hub: factor 0 has hubs 0 to 2"),
        ({"codes": [[0, 0], [2, 0], [1, -1]]}, ValueError, r"codes\[2, 1\] = -1 is not a hub"),
        ({"codes": [[0, 0], [2, 0], [1, 2**40]]}, ValueError, r"codes\[2, 1\] = 1099511627776"),
        ({"lengths": [0.0, 0.5]}, ValueError, "lengths must have one entry per vertex, got 2 for 3 rows of codes"),
        ({"lengths": [0.0, -0.5, 0]}, ValueError, r"lengths\[1\] = -0.5"),
        ({"lengths": [0.0, np.nan, 0]}, ValueError, r"lengths\[1\] = nan"),
        ({"lengths": [0.0, np.inf, 0]}, ValueError, r"lengths\[1\] = inf"),
        ({"lengths": Grid([0, 1, 1], 1, -0.5, 1)}, ValueError, r"lengths\[0\] = -0.5"),
        ({"lengths": ["a"] * 3}, TypeError, "lengths must hold real numbers"),
        ({"power": 0.5}, ValueError, "power must be between 1 and 2, got 0.5"),
        ({"power": 3}, ValueError, "power must be between 1 and 2, got 3"),
        ({"gauge": np.nan}, ValueError, "gauge must be a finite number"),
        ({"gauge": "2"}, TypeError, "gauge must be a number"),
        ({"places": [0, 1, 3]}, ValueError, r"places\[2\] = 3 is not a vertex"),
        ({"places": [0, 1, -1]}, ValueError, r"places\[2\] = -1 is not a vertex"),
        ({"places": [0, 1, 1]}, ValueError, r"places has no item at vertex 2 \(1 such vertices\); leave them out"),
        ({"places": []}, ValueError, "places has no item at vertex 0"),
        ({"places": [0.0, 1.0, 2.0]}, TypeError, "places must hold integers"),
        ({"lengths": [3e38, 0, 0]}, ValueError, "factors and lengths add up to 6e.38 before the gauge"),
        ({"factors": [[[0.0], [1e20], [0.0]], PAIR]}, ValueError, "add up to 1e.40 before the gauge"),
    ],
)
def test_bad_parts(changes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        simple(**changes)


def test_tables_that_would_not_fit() -> None:
    large = np.zeros((4096, 1))
    with pytest.raises(ValueError, match=r"tables of their distances would have more than 134217728 numbers"):
        ProductGraph.from_factors([large] * 9, np.zeros((2, 9), int), [0, 0])
    idle = [[[0.0]]] * 3
    with pytest.raises(ValueError, match="3 of them have one hub, which adds nothing to any distance; leave them out"):
        ProductGraph.from_factors(idle, np.zeros((2**21 + 1, 3), np.uint8), np.zeros(2**21 + 1))


def test_many_hubs_and_factors() -> None:
    """More hubs than fit into a byte, more factors than anybody needs, and items of which most have none."""
    rng = np.random.default_rng(0)
    wide = ProductGraph.from_factors([rng.normal(size=(1000, 2))], rng.integers(0, 1000, (50, 1)), rng.random(50))
    positions = wide.factors[0].positions[wide.codes[:, 0]].astype(float)  # type: ignore[attr-defined]
    squares = ((positions[:, None] - positions) ** 2).sum(axis=2) + wide.lengths[:, None] + wide.lengths
    np.fill_diagonal(squares, 0)
    np.testing.assert_allclose(wide.distances(), np.sqrt(squares), rtol=1e-5)
    deep = make_product(rng, 20, "p" * 256)
    assert deep.distances().shape == (20, 20)


def test_interrupt_stops_a_long_call() -> None:
    code = textwrap.dedent("""
        import numpy as np
        from prodige import ProductGraph
        rng = np.random.default_rng(0)
        factors = [rng.normal(size=(64, 2)) for _ in range(8)]
        product = ProductGraph.from_factors(factors, rng.integers(0, 64, (300_000, 8)), rng.random(300_000))
        product.distance(0, 1)
        try:
            print("ready", flush=True)
            product.kneighbors(k=5, n_jobs=2)
        except KeyboardInterrupt:
            print("interrupted", product.distance(0, 0), flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted 0.0\n"
        assert time.monotonic() - start < 30  # the whole call takes minutes
        assert process.wait(30) == 0
