"""How large files of products are expected to be, and lengths that give way where they are too large."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prodige import ProductGraph
from prodige.compression.filesize import expect_bits, shorten
from prodige.graph.grid import Grid

RNG = np.random.default_rng(0)


def product(n: int) -> ProductGraph:
    codes = RNG.binomial(15, 0.4, (n, 3))
    positions: list[NDArray[np.float64]] = [np.sort(RNG.normal(size=16))[:, None] for _ in range(3)]
    return ProductGraph.from_factors(positions, codes, Grid.round(RNG.gamma(2.0, size=n), 8))


def test_what_all_share_weighs_less_in_larger_files() -> None:
    some = product(3000)
    assert expect_bits(some) == expect_bits(some, 3000) == some.bits_per_item
    assert 0.9 * some.bits_per_item < expect_bits(some, 10**6) < some.bits_per_item


def test_expected_bits_are_those_of_more_items() -> None:
    expected = expect_bits(product(2000), 8000)
    assert abs(expected - product(8000).bits_per_item) < 0.02 * expected


def test_lengths_are_rounded_until_a_file_is_small_enough() -> None:
    some = product(3000)
    assert shorten(some, some.bits_per_item) is some
    shorter = shorten(some, some.bits_per_item - 0.5)
    assert some.bits_per_item - 1.2 < shorter.bits_per_item <= some.bits_per_item - 0.5
    np.testing.assert_array_equal(shorter.codes, some.codes)
    assert np.abs(shorter.lengths - some.lengths).max() < 0.1 * np.ptp(some.lengths)
