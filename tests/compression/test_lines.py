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
from prodige.compression.coordinates import find_coordinates
from prodige.compression.lines import fit_lines, hub_bits, make_product, round_lengths, round_line
from prodige.compression.pendants import Hung, PendantFit
from prodige.compression.placing import PendantPlacing, cheapest
from prodige.graph.factors import GeometricFactor
from prodige.graph.product_encoding import is_even
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.progress import Monitor

DIGITS: NDArray[np.float32] = load_digits().data[:900].astype(np.float32)
RNG = np.random.default_rng(0)
GAUSSIAN = (RNG.normal(size=(3000, 12)) * 0.8 ** np.arange(12)).astype(np.float32)


def start(X: NDArray[Any], n_lines: int, metric: str = "euclidean") -> tuple[Hung, float, Landmarks]:
    landmarks = Landmarks.draw(Space(X, metric), 4096, np.random.RandomState(0))
    fit = PendantFit(landmarks, find_coordinates(landmarks, (2.0, 2.0)), n_jobs=1)
    fit.begin(n_lines)
    fit.learn()
    return fit.hang(), landmarks.scale, landmarks


def error(graph: Any, X: NDArray[Any]) -> float:
    """Mean squared error of all pairs as a part of the variance."""
    true, i = pdist(X), np.triu_indices(len(X), 1)
    return float(((graph.distances()[i] - true) ** 2).mean() / true.var())


@pytest.mark.parametrize("bits", [16, 40, 100])
def test_files_are_as_large_as_they_may_be(bits: int) -> None:
    hung, scale, _ = start(DIGITS, 20)
    product = fit_lines(hung, bits, scale)
    assert product is not None
    assert 0.97 * bits <= product.bits_per_item <= bits
    assert (product.power, product.gauge, product.pendant, product.is_metric) == (2, 2, True, True)


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
    errors = []
    for bits, n_lines in ((24, 6), (48, 9), (96, 12)):
        hung, scale, _ = start(GAUSSIAN, n_lines)
        product = fit_lines(hung, bits, scale)
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
    hung, scale, _ = start(GAUSSIAN, 12)
    assert make_product(hung, 1e6, scale) is None
    assert fit_lines(hung, 0.01, scale) is None
    coarse = make_product(hung, 0.3 * float((hung.variances * hung.influences)[0]), scale)
    assert coarse is not None
    assert coarse.n_factors < 12


# -- a run


def test_a_run_is_told_and_ends_when_asked() -> None:
    hung, scale, _ = start(DIGITS, 14)
    monitor = Monitor(lines.N_TRIALS, callbacks=[lambda record: True])
    product = fit_lines(hung, 40, scale, monitor)
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
    rng = np.random.default_rng(1)
    centres = 4 * rng.normal(size=(16, 20))
    X = (centres[rng.integers(0, 16, 1200)] + 0.2 * rng.normal(size=(1200, 20))).astype(np.float32)
    compressor = DistanceCompressor(bits_per_item=12, structure="product", random_state=0).fit(X)
    hung, scale, _ = start(X, 4)
    assert error(compressor.graph_, X) < 0.7 * error(fit_lines(hung, 12, scale), X)
    assert any(factor.n_dimensions > 1 for factor in compressor.graph_.factors)


@pytest.mark.parametrize("metric", ["euclidean", "braycurtis"])
def test_the_number_of_lines_is_found(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a third of the lines nor twice as many would have been much better."""
    X = np.abs(RNG.normal(size=(600, 30)) * 0.9 ** np.arange(30)).astype(np.float32)
    monkeypatch.setattr("prodige.compression.selection.Choice._fit_product", lambda choice, hurried: None)
    found = DistanceCompressor(bits_per_item=48, metric=metric, structure="product", random_state=0).fit(X).graph_
    true = Space(X, metric).distances(np.arange(600))
    best = np.square(found.distances() - true).mean()
    errors = []
    for n_lines in (found.n_factors // 3, 2 * found.n_factors):
        hung, scale, _ = start(X, n_lines, metric)
        product = fit_lines(hung, 48, scale)
        assert product is not None
        errors.append(np.square(product.distances() - true).mean() / best)
    assert min(errors) > 0.98
    assert max(errors) > 1.1


@pytest.mark.parametrize("every", [1, 9])
def test_places_of_new_items_are_as_good_as_those_of_the_fit(every: int) -> None:
    X, new = GAUSSIAN[:2000], GAUSSIAN[2000:]
    hung, scale, landmarks = start(X, 9)
    product = fit_lines(hung, 48, scale)
    assert product is not None
    anchors = np.unique(landmarks.sources[:1024]).astype(np.int64)[::every]
    placing = PendantPlacing.make(product, anchors, cdist(X[anchors], X[anchors]).astype(np.float32))
    codes, lengths = placing.place(cdist(new, X[anchors]).astype(np.float32), 1)
    grid = product.length_grid
    assert grid is not None
    placed = product.with_vertices(codes, grid.nearest(lengths))
    assert error(placed, new) < 1.6 * error(product, X)  # some are beyond the last hubs
    assert placed.bits_per_item < 1.1 * product.bits_per_item


def test_places_of_new_items_do_not_depend_on_others() -> None:
    X, new = GAUSSIAN[:500], GAUSSIAN[500:640]
    hung, scale, _ = start(X, 6)
    product = fit_lines(hung, 32, scale)
    assert product is not None
    anchors = np.arange(0, 500, 3)
    placing = PendantPlacing.make(product, anchors, cdist(X[anchors], X[anchors]).astype(np.float32))
    target = cdist(new, X[anchors]).astype(np.float32)
    codes, lengths = placing.place(target, 2)
    for some in (slice(0, 1), slice(60, 140)):
        alone = placing.place(target[some], 1)
        assert np.array_equal(codes[some], alone[0])
        assert np.array_equal(lengths[some], alone[1])


def test_cheapest_hubs_are_those_of_a_search() -> None:
    for _ in range(20):
        positions, costs = np.sort(RNG.normal(size=9)), RNG.uniform(0, 0.5, 9)
        ends, hubs = cheapest(positions, costs)
        places = RNG.normal(size=500) * 1.5
        found = hubs[np.searchsorted(ends, places)]
        expected = ((places[:, None] - positions) ** 2 + costs).argmin(axis=1)
        assert (found == expected).mean() > 0.99  # ends are in single precision


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
