"""Products of lines: within the budget, as good as theory says, and found again by items that come later."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import load_digits

from prodige import DistanceCompressor, ProductGraph, load
from prodige.baselines import ResidualCoordinates
from prodige.compression import lines
from prodige.compression.coordinates import Coordinates, find_coordinates
from prodige.compression.lines import fit_lines, hub_bits, make_product, round_lengths, round_line
from prodige.compression.placing import LinearPlacing
from prodige.graph.factors import GeometricFactor
from prodige.graph.product_encoding import is_even
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.progress import Monitor

DIGITS: NDArray[np.float32] = load_digits().data[:900].astype(np.float32)
RNG = np.random.default_rng(0)
GAUSSIAN = (RNG.normal(size=(3000, 12)) * 0.8 ** np.arange(12)).astype(np.float32)


def start(X: NDArray[Any]) -> tuple[Coordinates, float, Landmarks]:
    landmarks = Landmarks.draw(Space(X), 4096, np.random.RandomState(0))
    return find_coordinates(landmarks, (2.0, 2.0)), landmarks.scale, landmarks


def error(graph: Any, X: NDArray[Any]) -> float:
    """Mean squared error of all pairs as a part of the variance."""
    true, i = pdist(X), np.triu_indices(len(X), 1)
    return float(((graph.distances()[i] - true) ** 2).mean() / true.var())


@pytest.mark.parametrize("bits", [16, 40, 100])
def test_files_are_as_large_as_they_may_be(bits: int) -> None:
    coordinates, scale, _ = start(DIGITS)
    product = fit_lines(coordinates, bits, scale)
    assert product is not None
    assert 0.97 * bits <= product.bits_per_item <= bits
    assert (product.power, product.gauge, product.is_metric) == (2, 2, True)


def test_rounding_costs_what_theory_says() -> None:
    """A Gaussian direction rounded to R bits leaves πe/6 4^-R of its variance where R is large, and less elsewhere."""
    places = RNG.normal(size=200_000)
    for step, least, most in ((0.1, 0.97, 1.05), (1.0, 0.6, 1.02)):
        line = round_line(places, step)
        left = float(((places - line.positions[line.codes]) ** 2).mean())
        theory = np.pi * np.e / 6 * 4.0**-line.bits
        assert least < left / theory < most


def test_hubs_are_amid_their_items_or_even() -> None:
    places = RNG.normal(size=5000)
    few, many = round_line(places, 1.0), round_line(places, 0.2)
    assert (few.is_even, many.is_even) == (False, True)
    for h, position in enumerate(few.positions):
        assert places[few.codes == h].mean() == pytest.approx(position)
    np.testing.assert_allclose(np.diff(many.positions), np.diff(many.positions)[0])
    assert is_even(GeometricFactor(many.grid()))
    assert not is_even(GeometricFactor(few.grid()))
    np.testing.assert_allclose(few.grid().values[:, 0], few.positions, atol=0.06)


def test_bits_of_hubs_add_up_to_the_entropy() -> None:
    line = round_line(RNG.normal(size=1000), 0.7)
    assert hub_bits(line.codes, line.positions.size)[line.codes].mean() == pytest.approx(line.bits)


def test_error_falls_with_bits_and_stays_below_residual_coordinates() -> None:
    coordinates, scale, _ = start(GAUSSIAN)
    errors = []
    for bits in (24, 48, 96):
        product = fit_lines(coordinates, bits, scale)
        assert product is not None
        errors.append(error(product, GAUSSIAN))
        rival = ResidualCoordinates(bits_per_item=bits, random_state=0).fit(GAUSSIAN)
        assert errors[-1] < -rival.score(GAUSSIAN) / pdist(GAUSSIAN).var()
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_lengths_keep_their_least_and_their_step() -> None:
    lengths = RNG.gamma(3.0, size=4000)
    grid = round_lengths(lengths, 0.25)
    inside = np.clip(lengths, *np.quantile(lengths, [0.0005, 0.9995]))
    assert np.abs(grid.values - inside).max() <= 0.1251
    assert round_lengths(np.full(5, 2.0), 0.1).values.tolist() == [2.0] * 5


def test_directions_that_say_nothing_are_left_out() -> None:
    coordinates, scale, _ = start(GAUSSIAN)
    assert make_product(coordinates, 1e6, scale) is None
    assert fit_lines(coordinates, 0.01, scale) is None
    coarse = make_product(coordinates, 0.3 * float((coordinates.variances * coordinates.influences)[0]), scale)
    assert coarse is not None
    assert coarse.n_factors < 12


# -- a run


def test_a_run_is_told_and_ends_when_asked() -> None:
    coordinates, scale, _ = start(DIGITS)
    monitor = Monitor(lines.N_TRIALS, callbacks=[lambda record: True])
    product = fit_lines(coordinates, 40, scale, monitor)
    assert product is not None
    assert product.bits_per_item <= 40
    assert (monitor.stopped, len(monitor.history)) == ("callback", 1)


@pytest.mark.parametrize("n_kept", [0, 1])
def test_an_interrupt_keeps_a_product_within_the_budget(n_kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n_made = []

    def interrupted(*arguments: Any) -> ProductGraph | None:
        n_made.append(1)
        if len(n_made) == n_kept + 1:
            raise KeyboardInterrupt
        return make_product(*arguments)

    monkeypatch.setattr(lines, "make_product", interrupted)
    compressor = DistanceCompressor(bits_per_item=64, structure="product", random_state=0)
    with pytest.warns(UserWarning, match="interrupted"):
        compressor.fit(DIGITS)
    assert compressor.stopped_ == "interrupt"
    assert compressor.graph_.bits_per_item <= 64


# -- as part of a compressor


@pytest.mark.repeatable
def test_lines_have_the_same_bits_for_any_jobs(tmp_path: Any) -> None:
    one, two = (DistanceCompressor(bits_per_item=48, random_state=0, n_jobs=n).fit(DIGITS).graph_ for n in (1, 3))
    assert one == two
    for name, graph in (("one", one), ("two", two)):
        graph.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_compressor_takes_lines_and_its_file_is_within_the_budget(tmp_path: Any) -> None:
    compressor = DistanceCompressor(bits_per_item=64, random_state=0).fit(DIGITS)
    assert compressor.structure_ == "product"
    assert all(factor.n_dimensions == 1 for factor in compressor.graph_.factors)
    path = tmp_path / "digits.prodige"
    compressor.graph_.save(path)
    loaded = load(path)
    assert loaded == compressor.graph_
    assert 8 * path.stat().st_size <= 64 * len(DIGITS)
    assert error(loaded, DIGITS) < 0.03


def test_clusters_may_have_factors_of_several_directions() -> None:
    """With few bits both kinds are fitted, and what is better on pairs set aside is taken."""
    centres = 4 * RNG.normal(size=(16, 20))
    X = (centres[RNG.integers(0, 16, 1200)] + 0.2 * RNG.normal(size=(1200, 20))).astype(np.float32)
    compressor = DistanceCompressor(bits_per_item=12, structure="product", random_state=0).fit(X)
    coordinates, scale, _ = start(X)
    assert error(compressor.graph_, X) < 0.7 * error(fit_lines(coordinates, 12, scale), X)
    assert any(factor.n_dimensions > 1 for factor in compressor.graph_.factors)


def test_fewer_lines_where_distances_are_not_euclidean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squares along all directions add up to more than they are."""
    space = Space(np.abs(RNG.normal(size=(600, 8))), "braycurtis")
    monkeypatch.setattr("prodige.compression.selection.Choice._fit_product", lambda choice, hurried: None)
    compressor = DistanceCompressor(bits_per_item=64, metric="braycurtis", structure="product", random_state=0)
    few = compressor.fit(space.X).graph_
    landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    many = fit_lines(find_coordinates(landmarks, (2.0, 2.0)), 64, landmarks.scale)
    assert many is not None
    assert few.n_factors < many.n_factors
    assert few.bits_per_item <= 64
    true = space.distances(np.arange(600))
    assert np.square(few.distances() - true).mean() < 0.5 * np.square(many.distances() - true).mean()


def test_places_of_new_items_are_as_good_as_those_of_the_fit() -> None:
    X, new = GAUSSIAN[:2000], GAUSSIAN[2000:]
    coordinates, scale, landmarks = start(X)
    product = fit_lines(coordinates, 48, scale)
    assert product is not None
    anchors = np.unique(landmarks.sources[:1024]).astype(np.int64)
    placing = LinearPlacing.make(product, anchors, cdist(X[anchors], X[anchors]).astype(np.float32))
    assert placing is not None
    assert placing.is_priced
    codes, lengths = placing.place(cdist(new, X[anchors]).astype(np.float32), 1)
    grid = product.length_grid
    assert grid is not None
    placed = ProductGraph.from_factors(product.factors, codes, grid.nearest(lengths))
    assert error(placed, new) < 2 * error(product, X)  # some are beyond the last hubs
    assert placed.bits_per_item < 1.1 * product.bits_per_item


def test_lines_of_another_number_of_anchors_are_found() -> None:
    """Anchors that are not the landmarks of the fit have other coordinates; the directions of lines are among them."""
    X = GAUSSIAN[:2000]
    coordinates, scale, _ = start(X)
    product = fit_lines(coordinates, 48, scale)
    assert product is not None
    anchors = np.arange(0, 2000, 9)
    placing = LinearPlacing.make(product, anchors, cdist(X[anchors], X[anchors]).astype(np.float32))
    assert placing is not None
    codes, _ = placing.place(cdist(X, X[anchors]).astype(np.float32), 1)
    assert (np.abs(codes.astype(int) - product.codes) <= 1).mean() > 0.97


def test_a_sample_of_lines_ends_within_the_budget() -> None:
    X = (RNG.normal(size=(9000, 10)) * 0.8 ** np.arange(10)).astype(np.float32)
    compressor = DistanceCompressor(bits_per_item=48, random_state=0, memory_limit="200MB", n_jobs=1)
    graph = compressor.fit(X).graph_
    assert graph.n_items == 9000
    assert 44 < graph.bits_per_item <= 48
    assert -compressor.score(X[:500]) < 0.02 * pdist(X[:500]).var()


def test_threads_may_fit_at_once() -> None:
    found: list[Any] = []

    def fit() -> None:
        found.append(DistanceCompressor(bits_per_item=48, random_state=0, n_jobs=1).fit(DIGITS[:300]).graph_)

    threads = [threading.Thread(target=fit) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
