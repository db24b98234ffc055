from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax

from prodige import _core
from prodige.progress import Monitor
from prodige.recommendation.hub_graph import N_STEPS, Layers, choose_sizes, fit_hub_graph
from strategies import crowds, many


def random_layers(seed: int, n_user_clusters: int = 7, n_items: int = 30, n_item_clusters: int = 5) -> Layers:
    random = np.random.RandomState(seed)
    target = random.gamma(0.5, size=(n_user_clusters, n_items)).astype(np.float32)
    layers = Layers.start(
        target, np.arange(n_user_clusters) % 2, random.permutation(n_items) % n_item_clusters, n_item_clusters, 1
    )
    layers.choose_edges(12)
    return layers


def distances(layers: Layers) -> np.ndarray:
    """Of types to items, edge by edge."""
    _, reach = layers.reach()
    by_first = reach[:, layers.first] + layers.first_weight
    by_second = np.where(layers.second >= 0, reach[:, layers.second] + layers.second_weight, np.inf)
    return np.asarray(np.minimum(by_first, by_second))


def loss_of(layers: Layers) -> float:
    d = distances(layers)
    return float((layers.target * d).sum() + (layers.target.sum(axis=1) * logsumexp(-d, axis=1)).sum())


# -- flows -----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_flows_as_by_hand(seed: int) -> None:
    layers = random_layers(seed)
    _, reach = layers.reach()
    loss, target, given_, item_target, item_predicted = _core.measure_flows(
        reach.astype(np.float32),
        layers.first,
        layers.first_weight.astype(np.float32),
        layers.second,
        layers.second_weight.astype(np.float32),
        layers.target,
        2,
    )
    d = distances(layers)
    gives = layers.target.sum(axis=1, keepdims=True) * softmax(-d, axis=1)
    assert loss == pytest.approx(loss_of(layers), rel=1e-4)
    is_second = d < reach[:, layers.first] + layers.first_weight
    for t in range(len(d)):
        for x in range(d.shape[1]):
            g = layers.second[x] if is_second[t, x] else layers.first[x]
            target[t, g] -= layers.target[t, x]
            given_[t, g] -= gives[t, x]
            item_target[x, int(is_second[t, x])] -= layers.target[t, x]
            item_predicted[x, int(is_second[t, x])] -= gives[t, x]
    for left in (target, given_, item_target, item_predicted):
        assert np.abs(left).max() < 1e-3


def test_flows_do_not_depend_on_threads() -> None:
    random = np.random.RandomState(0)
    reach = random.rand(300, 20).astype(np.float32)
    first = random.randint(20, size=500).astype(np.int32)
    weight = random.rand(500).astype(np.float32)
    second = random.randint(-1, 20, size=500).astype(np.int32)
    target = random.rand(300, 500).astype(np.float32)
    one, two = (_core.measure_flows(reach, first, weight, second, weight, target, n_jobs) for n_jobs in (1, 2))
    assert one[0] == two[0]
    assert all((a == b).all() for a, b in zip(one[1:], two[1:], strict=True))


def test_core_refuses_what_does_not_fit() -> None:
    reach, one = np.zeros((2, 3), np.float32), np.zeros(4, np.float32)
    first = np.zeros(4, np.int32)
    with pytest.raises(IndexError, match="no community 3"):
        _core.measure_flows(reach, first + 3, one, first, one, np.ones((2, 4), np.float32), 1)
    with pytest.raises(ValueError, match="row for each type"):
        _core.measure_flows(reach, first, one, first, one, np.ones((3, 4), np.float32), 1)


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_second_edges_gain_what_they_say(seed: int) -> None:
    random = np.random.RandomState(seed)
    n_user_clusters, n_items, n_item_clusters = 6, 8, 4
    target = random.gamma(0.5, size=(n_items, n_user_clusters)).astype(np.float32)
    rate = random.rand(n_user_clusters).astype(np.float32)
    reach = (3 * random.rand(n_item_clusters, n_user_clusters)).astype(np.float32)
    first = random.randint(n_item_clusters, size=n_items).astype(np.int32)
    candidates = np.tile(np.arange(n_item_clusters, dtype=np.int32), (n_items, 1))
    offsets = np.array([0, 1], np.float32)
    item_cluster, offset, gain = _core.choose_second(target, rate, reach, first, candidates, offsets, 1)

    def loss(x: int, d: np.ndarray) -> float:
        return float(target[x] @ d + target[x].sum() * np.log(rate @ np.exp(-d)))

    for x in range(n_items):
        alone = loss(x, reach[first[x]])
        best = max(
            alone - loss(x, np.minimum(reach[first[x]], reach[g] + o)) for g in range(n_item_clusters) for o in (0, 1)
        )
        assert gain[x] == pytest.approx(max(best, 0), abs=1e-3)
        if item_cluster[x] >= 0:
            both = np.minimum(reach[first[x]], reach[item_cluster[x]] + offset[x])
            assert alone - loss(x, both) == pytest.approx(gain[x], abs=1e-3)


# -- layers ----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_improving_lowers_the_loss(seed: int) -> None:
    layers = random_layers(seed)
    before = loss_of(layers)
    assert layers.improve() == pytest.approx(before, rel=1e-4)
    for _ in range(20):
        layers.improve()
    assert loss_of(layers) <= before + 1e-3 * abs(before)


def test_items_are_given_as_much_as_they_are_wanted() -> None:
    layers = random_layers(0)
    for _ in range(60):
        layers.improve()
    gives = (layers.target.sum(axis=1, keepdims=True) * softmax(-distances(layers), axis=1)).sum(axis=0)
    assert gives == pytest.approx(layers.target.sum(axis=0), rel=0.05)


def test_chosen_edges_help_and_keep_to_their_number() -> None:
    bare, rich = random_layers(3), random_layers(3)
    bare.choose_edges(0)
    rich.choose_edges(12)
    assert rich.n_edges - bare.n_edges == 12
    for layers in (bare, rich):
        for _ in range(30):
            layers.improve()
    assert loss_of(rich) < loss_of(bare)


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_paths_of_the_graph_go_through_the_layers(seed: int) -> None:
    layers = random_layers(seed)
    for _ in range(5):
        layers.improve()
    n_user_clusters, n_items = layers.target.shape
    graph = layers.to_graph(np.arange(n_user_clusters), np.full(n_user_clusters, 0.5))
    found = graph.distances(np.arange(n_user_clusters), np.arange(n_user_clusters, n_user_clusters + n_items)).astype(
        np.float64
    )
    expected = distances(layers)
    # The same but for one constant.
    assert found - expected == pytest.approx(np.full(found.shape, found[0, 0] - expected[0, 0]), abs=1e-3)


# -- sizes and the whole ---------------------------------------------------------------------------------------------


@given(n_users=st.integers(1, 100_000), n_items=st.integers(1, 40_000), numbers=st.floats(3, 64))
def test_sizes_fit_the_budget(n_users: int, n_items: int, numbers: float) -> None:
    n = n_users + n_items
    if int((numbers - 3) * n / 2) < 5:
        with pytest.raises(ValueError, match=r"numbers_per_item = .* is too small"):
            choose_sizes(n_users, n_items, numbers)
        return
    sizes = choose_sizes(n_users, n_items, numbers)
    n_edges = n + sizes.n_user_clusters + sizes.n_parents * sizes.n_item_clusters + sizes.n_free
    assert sizes.n_free >= 0
    assert n + sizes.n_hubs + 2 * n_edges <= numbers * n + 1e-6
    assert 1 <= sizes.n_parents <= sizes.n_user_clusters <= max(1, n_users)


@pytest.mark.parametrize("numbers", [3.5, 4, 8])
def test_finds_the_crowds(numbers: float) -> None:
    interacted = crowds(200, 40)
    graph = fit_hub_graph(interacted, numbers, Monitor(N_STEPS), np.random.RandomState(0), n_jobs=1)
    assert graph.numbers_per_item <= numbers
    assert numbers > 4 or graph.numbers_per_item > numbers - 0.01  # so few items have no use for more
    assert graph.n_items == 240
    d = graph.distances(np.arange(200), np.arange(200, 240))
    own = (np.arange(200)[:, None] % 2) == (np.arange(40) % 2)
    nearer = [(row[mine][:, None] < row[~mine][None]).mean() for row, mine in zip(d, own, strict=True)]
    assert np.mean(nearer) > 0.9


def test_a_run_that_is_stopped_has_all_edges() -> None:
    monitor = Monitor(N_STEPS, callbacks=[lambda status: True])
    graph = fit_hub_graph(crowds(200, 40), 5, monitor, np.random.RandomState(0), n_jobs=1)
    assert len(monitor.history) == 1
    assert 4 < graph.numbers_per_item <= 5


def test_seeds_and_threads() -> None:
    """So large that BLAS and k-means would share out their sums."""
    graphs = [
        fit_hub_graph(
            many(2000, 500), 5, Monitor(N_STEPS, callbacks=[lambda _: True]), np.random.RandomState(0), n_jobs=n_jobs
        )
        for n_jobs in (1, 2, 3)
    ]
    assert graphs[0] == graphs[1] == graphs[2]
    other = fit_hub_graph(many(2000, 500), 5, Monitor(N_STEPS, callbacks=[lambda _: True]), np.random.RandomState(1))
    assert other != graphs[0]


def test_improving_leaves_the_arrays_it_began_with() -> None:
    """A shallow copy is what an interrupt falls back to."""
    layers = random_layers(5)
    kept = replace(layers)
    before = {name: np.copy(value) for name, value in vars(kept).items()}
    layers.improve()
    layers.choose_edges(9)
    assert loss_of(layers) != loss_of(kept)
    for name, value in before.items():
        np.testing.assert_array_equal(vars(kept)[name], value)


def test_a_single_item() -> None:
    graph = fit_hub_graph(csr_array(np.ones((30, 1), np.float32)), 4, Monitor(N_STEPS), np.random.RandomState(0))
    assert np.isfinite(graph.distances([0], [30])).all()
