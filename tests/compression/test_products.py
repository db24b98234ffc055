"""Fits of products: what the core adds up, how well distances are kept, and what stops a fit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs

import prodige
from clusters import clusters
from prodige import DistanceCompressor, ProductGraph, _core
from prodige.compression.budget import Budget
from prodige.compression.coordinates import find_coordinates
from prodige.compression.objective import NearPairs
from prodige.compression.positions import as_places, distance_powers
from prodige.compression.products import ProductFit, fit_product
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.progress import Monitor

DIGITS = load_digits().data[:600]
RNG = np.random.default_rng(0)


# -- what the core adds up


class Task:
    """A small product with landmarks and near items, and what it takes to tell the core of it."""

    def __init__(self, quarters: int, n_near: int) -> None:
        random = np.random.default_rng(quarters)
        self.n_hubs = np.array([5, 9, 2], np.int32)
        self.tables = [random.random((n, n)).astype(np.float32) for n in self.n_hubs]
        self.tables = [(table + table.T) * (1 - np.eye(len(table), dtype=np.float32)) for table in self.tables]
        self.gauge = quarters / 4
        self.codes = np.stack([random.integers(0, n, 37) for n in self.n_hubs], axis=1).astype(np.uint16)
        self.lengths = random.random(37).astype(np.float32)
        self.sources = random.permutation(37)[:20].astype(np.int32)
        self.target = (0.5 + random.random((37, 20))).astype(np.float32)
        self.near = random.integers(-1, 37, (37, n_near)).astype(np.int32)
        self.near_target = (0.3 + random.random((37, n_near))).astype(np.float32)
        self.near_weight = random.random((37, n_near)).astype(np.float32)
        self.fit: Any = _core.CodeFit(self.sources, self.target, self.near, self.near_target, self.near_weight)

    def arguments(self) -> Any:
        return (
            self.n_hubs,
            np.concatenate([table.ravel() for table in self.tables]),
            round(4 * self.gauge),
            0.1,
            self.codes,
            self.lengths,
            np.ascontiguousarray(self.codes[self.sources].T),
            self.lengths[self.sources],
        )

    def pairs(self, item: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return partners, distances and weights of an item, near ones after landmarks."""
        is_near = self.near[item] >= 0
        partners = np.concatenate([self.sources, self.near[item][is_near]])
        distances = np.concatenate([self.target[item], self.near_target[item][is_near]]).astype(np.float64)
        weights = np.concatenate([self.sources != item, self.near_weight[item][is_near]]).astype(np.float64)
        return partners, distances, weights

    def sums(self, item: int, codes: NDArray[Any], length: float, partners: NDArray[Any]) -> NDArray[Any]:
        total: NDArray[Any] = length + self.lengths[partners].astype(np.float64)
        for table, code, others in zip(self.tables, codes, self.codes[partners].T, strict=True):
            total = total + table[code, others]
        return total

    def slopes(self, item: int) -> NDArray[Any]:
        """Return weights of residuals of targets, with everything as it is."""
        partners, distances, weights = self.pairs(item)
        if self.gauge == 2:
            slope = np.sqrt(self.sums(item, self.codes[item], self.lengths[item], partners)) + distances
        else:
            slope = self.gauge * np.maximum(distances, 0.1) ** (self.gauge - 1)
        result: NDArray[Any] = weights / np.maximum(slope, 0.1 if self.gauge == 2 else 0) ** 2
        return result


@pytest.mark.parametrize("n_near", [0, 3])
@pytest.mark.parametrize("quarters", [4, 5, 6, 7, 8])
def test_codes_are_the_best_by_enumeration(quarters: int, n_near: int) -> None:
    task = Task(quarters, n_near)
    items = np.arange(37, dtype=np.int32)
    codes, lengths, loss = task.fit.choose_codes(*task.arguments(), items, 0.0, 0.0, 0, 1, 1)
    expected_loss = 0.0
    for item in range(37):
        partners, distances, _ = task.pairs(item)
        weights, goal = task.slopes(item), distances**task.gauge
        now = task.codes[item].astype(int)
        before = task.sums(item, now, task.lengths[item], partners)
        expected_loss += float((weights * (before - goal) ** 2).sum())
        for m, n_hubs in enumerate(task.n_hubs):
            costs = []
            for hub in range(n_hubs):
                now[m] = hub
                costs.append((weights * (task.sums(item, now, task.lengths[item], partners) - goal) ** 2).sum())
            assert costs[codes[item, m]] == pytest.approx(min(costs), rel=1e-4, abs=1e-6)
            now[m] = codes[item, m]
        wish = task.lengths[item] - np.average(
            task.sums(item, now, task.lengths[item], partners) - goal, weights=weights
        )
        assert lengths[item] == pytest.approx(max(wish, 0), rel=1e-3, abs=1e-5)
    assert loss == pytest.approx(expected_loss, rel=1e-4)


def test_positions_say_the_same_as_tables() -> None:
    """Of 64 hubs in a plane costs follow from 14 features; of 9 hubs the table is as quick, and in use."""
    random = np.random.default_rng(3)
    n_hubs, positions = np.array([64, 9, 64], np.int32), [random.normal(size=(n, 2)) for n in (64, 9, 64)]
    codes = np.stack([random.integers(0, n, 300) for n in n_hubs], axis=1).astype(np.uint16)
    sources = np.arange(0, 300, 3, dtype=np.int32)
    target = cdist(random.normal(size=(300, 4)), random.normal(size=(100, 4))).astype(np.float32)
    nobody, nothing = np.full((300, 0), -1, np.int32), np.empty((300, 0), np.float32)
    fit: Any = _core.CodeFit(sources, target, nobody, nothing, nothing)
    tables = np.concatenate([distance_powers(some, 2.0).ravel() for some in positions]).astype(np.float32)
    lengths = random.random(300).astype(np.float32)
    arguments: Any = (n_hubs, tables, 8, 0.1, codes, lengths, np.ascontiguousarray(codes[sources].T), lengths[sources])
    rest: Any = (np.arange(300, dtype=np.int32), 0.0, 0.0, 0, 1, 1)
    by_table, _, _ = fit.choose_codes(*arguments, *rest)
    by_place, _, _ = fit.choose_codes(*arguments, *rest, *as_places(positions))
    assert (by_place == by_table).mean() > 0.995  # but for ties within rounding
    assert (by_place != codes).mean() > 0.5
    for n_dimensions, places in (
        (np.array([2, 2], np.int32), np.zeros(146, np.float32)),
        (np.array([2, 2, 2], np.int32), np.zeros(3, np.float32)),
        (np.array([2, -2, 2], np.int32), np.zeros(238, np.float32)),
    ):
        with pytest.raises(ValueError, match=r"dimensions|positions"):
            fit.choose_codes(*arguments, *rest, n_dimensions, places)


@pytest.mark.parametrize("quarters", [4, 6, 8])
def test_sums_of_a_factor_by_enumeration(quarters: int) -> None:
    task = Task(quarters, 3)
    items = np.array([1, 4, 5, 20, 36], np.int32)
    residuals, weights, _ = task.fit.measure_factor(*task.arguments(), items, 1, 2)
    expected = np.zeros((2, 9, 9))
    for item in items:
        partners, distances, _ = task.pairs(item)
        weight = task.slopes(item)
        residual = task.sums(item, task.codes[item], task.lengths[item], partners) - distances**task.gauge
        hubs = task.codes[partners, 1]
        np.add.at(expected[0, task.codes[item, 1]], hubs, weight * residual)
        np.add.at(expected[1, task.codes[item, 1]], hubs, weight)
    np.testing.assert_allclose([residuals, weights], expected, rtol=1e-4, atol=1e-5)


def test_lengths_stay_on_their_grid() -> None:
    task = Task(8, 0)
    items = np.arange(37, dtype=np.int32)
    _, free, _ = task.fit.choose_codes(*task.arguments(), items, 0.0, 0.0, 0, 1, 1)
    _, lengths, _ = task.fit.choose_codes(*task.arguments(), items, 0.1, 0.25, 4, 1, 1)
    grid = np.float32(0.1) + np.float32(0.25) * np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(lengths, grid[np.abs(free[:, None] - grid).argmin(axis=1)])


def test_the_core_refuses_what_would_crash_it() -> None:
    task = Task(8, 2)
    arguments: Any = list(task.arguments())
    choose: Any = task.fit.choose_codes
    measure: Any = task.fit.measure_factor
    items = np.arange(37, dtype=np.int32)
    for place, wrong in (
        (0, np.array([5, 9], np.int32)),
        (1, np.zeros(3, np.float32)),
        (2, 9),
        (4, np.full_like(task.codes, 40)),
        (5, np.zeros(3, np.float32)),
        (6, np.full((3, 20), 40, np.uint16)),
        (7, np.zeros(3, np.float32)),
    ):
        with pytest.raises((ValueError, IndexError)):
            choose(*arguments[:place], wrong, *arguments[place + 1 :], items, 0.0, 0.0, 0, 1, 1)
    with pytest.raises((ValueError, IndexError)):
        choose(*arguments, items + 1, 0.0, 0.0, 0, 1, 1)
    with pytest.raises((ValueError, IndexError)):
        measure(*arguments, items, 3, 1)
    others: Any = _core.CodeFit(task.sources, task.target, task.near + 36, task.near_target, task.near_weight)
    with pytest.raises(IndexError, match="near"):
        others.measure_factor(*arguments, items, 0, 1)


@pytest.mark.parametrize("first", [0, 11])
def test_the_core_has_rows_of_some_items(first: int) -> None:
    """Where processes share the items, each has the distances of its own, and sees the codes of all."""
    task, items = Task(6, 3), np.arange(first, 30, dtype=np.int32)
    rows = slice(first, 30)
    some: Any = _core.CodeFit(
        task.sources, task.target[rows], task.near[rows], task.near_target[rows], task.near_weight[rows], first
    )
    for found, expected in zip(
        some.choose_codes(*task.arguments(), items, 0.0, 0.0, 0, 2, 1),
        task.fit.choose_codes(*task.arguments(), items, 0.0, 0.0, 0, 2, 1),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(
        some.measure_factor(*task.arguments(), items, 1, 1),
        task.fit.measure_factor(*task.arguments(), items, 1, 1),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(IndexError):
        some.measure_factor(*task.arguments(), np.array([30], np.int32), 1, 1)
    if first:
        with pytest.raises(IndexError, match="distances of item 10 are not here"):
            some.measure_factor(*task.arguments(), np.array([10], np.int32), 1, 1)
    arguments: Any = list(task.arguments())
    arguments[4] = task.codes[:29]
    with pytest.raises(IndexError, match="more items"):
        some.measure_factor(*arguments, items, 1, 1)


# -- fits


def test_every_sweep_helps_and_rounding_costs_little() -> None:
    space = Space(DIGITS)
    landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    near = NearPairs.find(space, 0.0, landmarks.sources.size)
    monitor = Monitor(6)
    product = fit_product(landmarks, near, Budget(bits=96), monitor=monitor, random=np.random.RandomState(0))
    assert product is not None
    losses = [record.loss for record in monitor.history]
    assert losses[-1] < 0.97 * losses[0]
    assert all(after < 1.05 * before for before, after in pairwise(losses))
    error = ((product.distances() - cdist(DIGITS, DIGITS)) ** 2).sum() / (600 * 599)
    assert error < 1.1 * losses[-1]


def of_blobs(bits: float, monitor: Monitor | None = None) -> ProductGraph:
    """Return a product of items that many share the hubs of, so that codes take less than the bits of their hubs."""
    X = make_blobs([500, 100, 50, 50], 6, cluster_std=0.5, random_state=0)[0]
    landmarks = Landmarks.draw(Space(X), 4096, np.random.RandomState(0))
    near = NearPairs.find(Space(X), 0.0, landmarks.sources.size)
    product = fit_product(
        landmarks, near, Budget(bits=bits), monitor=monitor, random=np.random.RandomState(0), n_jobs=1
    )
    assert product is not None
    return product


def code_bits(product: ProductGraph) -> float:
    return float(np.log2([factor.n_hubs for factor in product.factors]).sum())


def test_what_coding_saves_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = of_blobs(32)
    monkeypatch.setattr("prodige.compression.products._FILLED", 0.0)
    unspent = of_blobs(32)
    assert unspent.bits_per_item + 1 < spent.bits_per_item <= 32
    assert code_bits(spent) > code_bits(unspent)


@pytest.mark.parametrize("is_ended", [False, True])
def test_files_that_become_too_large_are_fitted_again(is_ended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where codes are expected to take far less than they do in the end; also where a callback ends the fit."""
    frozen = []
    freeze = ProductFit.freeze

    def watched(fit: ProductFit) -> ProductGraph:
        frozen.append(freeze(fit))
        return frozen[-1]

    monkeypatch.setattr(ProductFit, "freeze", watched)
    monkeypatch.setattr("prodige.compression.products._FILLED", 1.3)
    product = of_blobs(32, Monitor(2, callbacks=[lambda record: is_ended]))
    assert frozen[0].bits_per_item > 32 >= product.bits_per_item
    assert product is frozen[-1]


def test_coordinates_are_those_of_the_data() -> None:
    X = RNG.normal(size=(300, 4)) * [4, 3, 2, 1]
    landmarks = Landmarks.draw(Space(X), 4096, np.random.RandomState(0))
    coordinates = find_coordinates(landmarks, (2.0, 2.0))
    assert coordinates.places.shape == (300, 4)
    np.testing.assert_allclose(pdist(coordinates.places) * landmarks.scale, pdist(X), rtol=1e-3)


@pytest.mark.parametrize("exponents", [(2.0, 2.0), (1.5, 1.5), (1.0, 1.0)])
def test_a_product_is_a_metric(exponents: tuple[float, float]) -> None:
    space = Space(DIGITS[:200])
    landmarks = Landmarks.draw(space, 4096, np.random.RandomState(0))
    near = NearPairs.find(space, 1.0, landmarks.sources.size)
    product = fit_product(landmarks, near, Budget(numbers=8), exponents, Monitor(3), np.random.RandomState(0))
    assert product is not None
    assert product.is_metric
    D = product.distances().astype(np.float64)
    assert (D == D.T).all()
    i, j, k = RNG.integers(0, 200, (3, 100_000))
    assert (D[i, k] <= (D[i, j] + D[j, k]) * (1 + 1e-6)).all()


@pytest.fixture(scope="module")
def fitted() -> DistanceCompressor:
    return DistanceCompressor(bits_per_item=64, structure="product", random_state=0, n_jobs=1).fit(DIGITS)


@pytest.mark.repeatable
def test_any_number_of_threads_gives_the_same_bits(fitted: DistanceCompressor) -> None:
    city = DistanceCompressor(structure="product", metric="manhattan", objective=0.5, random_state=0, n_jobs=1)
    for model, n_jobs in ((fitted, 2), (city.fit(DIGITS), 3)):
        again = clone(model).set_params(n_jobs=n_jobs).fit(DIGITS)
        assert again.graph_ == model.graph_
        assert again.insert(DIGITS[:40]) == model.insert(DIGITS[:40])


def test_more_bits_are_worth_it(fitted: DistanceCompressor) -> None:
    """From 32 bits to 64 and to 128 the error halves at least; every file is within its budget."""
    variance = pdist(DIGITS).var()
    shares = []
    for bits in (32, 64, 128):
        compressor = fitted if bits == 64 else clone(fitted).set_params(bits_per_item=bits).fit(DIGITS)
        assert compressor.graph_.bits_per_item <= bits
        shares.append(-compressor.score(DIGITS) / variance)
    assert shares[0] < 0.25
    assert shares[1] < 0.5 * shares[0]
    assert shares[2] < 0.5 * shares[1]


def test_what_is_saved_is_what_was_measured(fitted: DistanceCompressor, tmp_path: Any) -> None:
    path = tmp_path / "digits.prodige"
    fitted.graph_.save(path)
    assert path.stat().st_size * 8 / 600 == fitted.graph_.bits_per_item <= 64
    loaded: Any = prodige.load(path)
    assert isinstance(loaded, ProductGraph)
    np.testing.assert_array_equal(loaded.distances(), fitted.graph_.distances())


def recall(graph: ProductGraph, X: NDArray[Any], k: int = 10) -> float:
    truth = cdist(X, X)
    np.fill_diagonal(truth, np.inf)
    nearest = np.argsort(truth, axis=1)[:, :k]
    return float(np.mean([np.isin(*pair).mean() for pair in zip(graph.kneighbors(k=k)[1], nearest, strict=True)]))


def test_neighbors_are_kept_where_they_are_asked_for() -> None:
    """Along the front recall rises and so does the error."""
    fits = [
        DistanceCompressor(bits_per_item=24, structure="product", objective=objective, random_state=0).fit(DIGITS)
        for objective in ("distances", 0.5, "neighbors")
    ]
    recalls = [recall(fit.graph_, DIGITS) for fit in fits]
    errors = [-fit.score(DIGITS) for fit in fits]
    assert recalls[0] <= recalls[1] <= recalls[2]
    assert recalls[0] + 0.02 < recalls[2]
    assert errors[0] <= errors[1] <= errors[2] < 4 * errors[0]


def test_few_bits_say_which_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of items in clusters the number of the cluster says more than places along a few directions."""
    X = clusters(1000, 20, 30)
    spread = pdist(X).var()

    def error() -> float:
        fit = DistanceCompressor(bits_per_item=16, structure="product", random_state=0).fit(X)
        assert fit.graph_.bits_per_item <= 16
        return float(-fit.score(X) / spread)

    wide = error()
    monkeypatch.setattr("prodige.compression.plan._MOST_WIDE", 0)
    assert wide < 0.7 * error()


def test_metrics_that_are_not_euclidean() -> None:
    """Without the triangle inequality the error of city-block distances is no larger."""
    free = DistanceCompressor(
        bits_per_item=64, metric="manhattan", structure="product", metric_only=False, random_state=0
    ).fit(DIGITS)
    metric = DistanceCompressor(bits_per_item=64, metric="manhattan", structure="product", random_state=0).fit(DIGITS)
    assert metric.graph_.is_metric
    assert free.score(DIGITS) >= 1.02 * metric.score(DIGITS)
    assert free.graph_.power == 2
    assert -metric.score(DIGITS) < 0.15 * pdist(DIGITS, "cityblock").var()


def test_new_items_are_kept_nearly_as_well(fitted: DistanceCompressor) -> None:
    new = load_digits().data[600:900]
    graph = fitted.insert(new)
    assert graph.bits_per_item <= 64
    np.testing.assert_array_equal(graph.distances(np.arange(9), np.arange(600)), fitted.graph_.distances(range(9)))
    truth = cdist(new, DIGITS)
    error = ((graph.distances(np.arange(600, 900), np.arange(600)) - truth) ** 2).mean()
    assert error < 2.5 * -fitted.score(DIGITS)
    assert error < 0.1 * truth.var()


def test_copies_share_a_place() -> None:
    X = np.concatenate([DIGITS[:300], DIGITS[:50]])
    graph = DistanceCompressor(bits_per_item=64, structure="product", random_state=0).fit(X).graph_
    assert graph.bits_per_item <= 64
    distances = graph.distances()
    assert not distances[np.arange(50), np.arange(300, 350)].any()
    np.testing.assert_array_equal(distances[300:], distances[:50])
    assert (distances[:300, :300] + np.eye(300) > 0).all()


# -- stopping


@pytest.mark.parametrize("n_kept", [2, 0])
def test_an_interrupt_keeps_the_best_so_far(n_kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while exponents are tried: then it is the start."""
    sweep = ProductFit.sweep
    n_sweeps = []

    def interrupted(fit: ProductFit) -> float:
        if n_kept and fit.n_items < len(DIGITS):  # trials are let pass
            return sweep(fit)
        n_sweeps.append(1)
        if len(n_sweeps) == n_kept + 1:
            raise KeyboardInterrupt
        return sweep(fit)

    monkeypatch.setattr("prodige.compression.exponents._N_ITEMS", 200)
    monkeypatch.setattr(ProductFit, "sweep", interrupted)
    compressor = DistanceCompressor(numbers_per_item=8, structure="product", random_state=0)
    with pytest.warns(UserWarning, match="interrupted"):
        compressor.fit(DIGITS)
    assert (compressor.stopped_, len(compressor.history_)) == ("interrupt", n_kept)
    assert compressor.graph_.numbers_per_item <= 8
    assert -compressor.score(DIGITS) < 0.2 * pdist(DIGITS).var()


def test_callbacks_end_a_fit() -> None:
    compressor = DistanceCompressor(
        bits_per_item=64, structure="product", random_state=0, callbacks=[lambda record: record.step == 1]
    ).fit(DIGITS)
    assert (compressor.stopped_, len(compressor.history_)) == ("callback", 2)


def test_blobs_of_equal_items_are_no_trouble() -> None:
    """As many clusters as hubs and more, far apart."""
    X = make_blobs(400, 8, centers=40, cluster_std=1e-3, random_state=0)[0]
    compressor = DistanceCompressor(bits_per_item=64, structure="product", random_state=0).fit(X)
    assert -compressor.score(X) < 0.01 * pdist(X).var()
