"""Plans: what a budget buys, and how directions are shared out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from prodige import ProductGraph
from prodige.compression.budget import Budget
from prodige.compression.plan import Plan, deal, make_plan, plans_by_bits, rates, wide_plan
from prodige.graph.grid import Grid

SPECTRUM: NDArray[np.float64] = np.power(0.9, np.arange(60))


def product_of(plan: Plan, n_items: int) -> ProductGraph:
    random = np.random.default_rng(0)
    factors = [
        Grid.round(random.normal(size=(n_hubs, len(some))), plan.position_bits)
        for n_hubs, some in zip(plan.n_hubs, plan.directions, strict=True)
    ]
    codes = np.stack([random.integers(0, n_hubs, n_items) for n_hubs in plan.n_hubs], axis=1)
    return ProductGraph.from_factors(factors, codes, Grid.round(random.random(n_items), plan.length_bits))


@pytest.mark.parametrize("bits", [16, 24, 32, 48, 64, 96, 128])
@pytest.mark.parametrize("n_items", [300, 2000, 10_000])
def test_bits_are_kept_to_and_spent(bits: int, n_items: int) -> None:
    plan = make_plan(n_items, Budget(bits=bits), SPECTRUM)
    if plan is None:
        assert 8 * 450 / n_items > bits - 8  # the header leaves no room
        return
    product = product_of(plan, n_items)
    assert product.bits_per_item == plan.bits(n_items)
    assert 0.85 * bits - 3 < product.bits_per_item <= bits


@pytest.mark.parametrize("numbers", [3, 4, 5.5, 8, 16])
@pytest.mark.parametrize("n_items", [100, 2000])
def test_numbers_are_kept_to(numbers: float, n_items: int) -> None:
    plan = make_plan(n_items, Budget(numbers=numbers), SPECTRUM)
    assert plan is not None
    product = product_of(plan, n_items)
    assert product.numbers_per_item == pytest.approx(plan.numbers(n_items))
    assert product.numbers_per_item <= numbers


def test_no_room() -> None:
    assert make_plan(20, Budget(bits=32), SPECTRUM) is None  # the header alone takes more
    assert make_plan(5, Budget(numbers=2), SPECTRUM) is None


def test_few_directions_make_few_factors() -> None:
    plan = make_plan(10_000, Budget(bits=64), np.array([1.0, 0.5]))
    assert plan is not None
    assert plan.n_hubs == (1024, 1024)
    assert plan.directions == ((0,), (1,))


variances = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30).map(lambda some: -np.sort(-np.array(some)))


@given(variances, st.floats(0.5, 200))
def test_rates_add_up_and_level_out(variances: NDArray[np.float64], bits: float) -> None:
    rate = rates(variances, bits)
    assert rate.sum() == pytest.approx(bits, rel=1e-6)
    left = np.log2(variances) - rate  # what is left is level where there is a rate, and below it elsewhere
    level = left[rate > 0].max()
    assert np.ptp(left[rate > 1e-9]) < 1e-6
    assert (left <= level + 1e-6).all()


@given(variances, st.lists(st.integers(1, 8), min_size=1, max_size=12))
def test_every_direction_goes_to_one_factor(variances: NDArray[np.float64], widths: list[int]) -> None:
    n_hubs = tuple(2**width for width in widths[: variances.size])
    groups = deal(variances, n_hubs)
    taken = sorted(direction for group in groups for direction in group)
    assert taken == list(range(len(taken)))
    assert all(groups)


@given(st.floats(4, 40), st.integers(100, 100_000), st.integers(1, 4), st.integers(4, 9))
def test_wide_plans_share_all_directions_that_there_is_room_for(
    bits: float, n_items: int, n_factors: int, width: int
) -> None:
    plan = wide_plan(n_items, bits, SPECTRUM, n_factors, width)
    if plan is None:
        return
    taken = sorted(direction for group in plan.directions for direction in group)
    assert taken == list(range(len(taken)))
    assert all(plan.directions)
    assert plan.n_hubs == (2**width,) * n_factors
    # Coding saves a tenth of whole bits of codes; one more direction would not fit, unless there is none.
    spent = plan.least_bits(n_items) - 0.1 * n_factors * width
    assert spent <= bits + 1e-6
    assert len(taken) == SPECTRUM.size or spent + 2**width * plan.position_bits / n_items > bits - 1e-6


def test_no_room_for_a_wide_plan() -> None:
    assert wide_plan(2000, 10, SPECTRUM, 1, 6) is None
    assert wide_plan(100, 40, SPECTRUM, 1, 6) is None  # hardly more than an item for each hub


def test_wide_plans_are_for_few_bits() -> None:
    assert any(handicap > 1 for _, handicap in plans_by_bits(2000, 16, SPECTRUM))
    assert all(handicap == 1 for _, handicap in plans_by_bits(2000, 64, SPECTRUM))
