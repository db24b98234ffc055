"""Coordinates in a few bits: against k-means, and by what must hold for any values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from prodige.baselines.rounding import Columns, lloyd_levels, rounded, stored_bits

RNG = np.random.default_rng(7)


def error(values: NDArray[np.float64], kept: NDArray[np.float64]) -> float:
    return float(np.mean((values - kept) ** 2))


@pytest.mark.parametrize("bits", [1, 2, 3, 5])
def test_as_good_as_k_means(bits: int) -> None:
    values = RNG.normal(size=1500)
    peer = KMeans(2**bits, n_init=3, random_state=0).fit(values[:, None])
    assert error(values, rounded(values, bits)) < 1.03 * peer.inertia_ / values.size


def test_what_theory_says_of_normal_values() -> None:
    # Max (1960): the least error of 1, 2 and 3 bits as a share of the variance.
    values = RNG.normal(size=40_000)
    for bits, share in ((1, 0.3634), (2, 0.1175), (3, 0.03454)):
        assert error(values, rounded(values, bits)) == pytest.approx(share, rel=0.03)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(0, 8))
@example([699051.0019531718] * 3, 1)  # whose mean differs from them in the last bit
def test_any_values(given_: list[float], bits: int) -> None:
    values = np.array(given_)
    levels, kept = lloyd_levels(values, bits), rounded(values, bits)
    assert levels.size == 2**bits
    assert (np.diff(levels) >= 0).all()
    assert levels.min() >= values.min() - 1e-6
    assert levels.max() <= values.max() + 1e-6
    # Each value has the nearest level.
    nearest = np.abs(values[:, None] - levels).min(axis=1)
    np.testing.assert_allclose(np.abs(values - kept), nearest, atol=1e-6)
    # Levels are bytes between the first and the last.
    steps = 255 * (levels - levels[0]) / max(levels[-1] - levels[0], 1e-300)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3 if levels[-1] - levels[0] > 1e-3 else 255)


def test_more_bits_are_better() -> None:
    values = RNG.standard_t(4, size=3000)
    errors = [error(values, rounded(values, bits)) for bits in range(9)]
    assert errors[0] == pytest.approx(values.var())
    assert all(more < 0.7 * few for few, more in pairwise(errors[:7]))
    assert max(errors[7:]) < errors[6]


def test_what_is_stored() -> None:
    # 3 bits: 8 levels of a byte and two floats, shared by all items.
    assert stored_bits(3, 100) == 3 + (8 * 8 + 2 * 32) / 100
    assert stored_bits(8, 100) == 8 + 2 * 32 / 100  # every byte is a level


def test_the_error_of_products() -> None:
    values = RNG.normal(size=1500) * 2
    values -= values.mean()
    kept = rounded(values, 2)
    pairs = np.outer(values, values) - np.outer(kept, kept)
    columns = Columns(values[:, None])
    assert columns.product_error(0, 2) == pytest.approx(np.mean(pairs**2), rel=0.05)
    assert columns.product_error(0, 0) == pytest.approx(np.mean(np.outer(values, values) ** 2), rel=0.05)
    assert Columns(np.zeros((5, 1))).product_error(0, 3) == 0


def test_bits_are_shared_out_as_well_as_any_other_way() -> None:
    columns = Columns(RNG.normal(size=(5000, 3)) * [3.0, 2.0, 1.0])
    budget = 6 + 0.2  # a little for the levels
    found = columns.share(budget)
    assert sum(stored_bits(bits, 5000) for bits in found) <= budget
    errors = [[columns.product_error(column, bits) for bits in range(7)] for column in range(3)]
    ways = [(a, b, 6 - a - b) for a in range(7) for b in range(7 - a)]
    best = min(sum(errors[column][bits] for column, bits in enumerate(way)) for way in ways)
    assert sum(errors[column][bits] for column, bits in enumerate(found)) == pytest.approx(best)


def test_nothing_for_what_does_not_vary() -> None:
    columns = Columns(np.stack([RNG.normal(size=500), np.zeros(500)], axis=1))
    assert columns.share(100) in ([7, 0], [8, 0])
    assert columns.share(0.5) == [0, 0]
    assert columns.take([0, 0]).shape == (500, 0)
    assert Columns(np.empty((500, 0))).share(10) == []


def test_what_is_taken() -> None:
    points = RNG.normal(size=(300, 3))
    kept = Columns(points).take([2, 0, 3])
    np.testing.assert_array_equal(kept, np.stack([rounded(points[:, 0], 2), rounded(points[:, 2], 3)], axis=1))
