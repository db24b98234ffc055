"""Prices of bits: words cost by how many rows have them, and files are filled up, but not overfilled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from prodige import GraphRecommender
from prodige.recommendation.price import Price, coded_bits, word_prices
from strategies import crowds


@pytest.mark.parametrize("exponent", [-0.05, -0.3, -0.9])
def test_narrowing_finds_a_price_whose_bits_fit(exponent: float) -> None:
    def bits(price: float) -> float:
        return float(1000 * price**exponent)

    price = Price(1e-3, limit=900.0, measure=lambda users, items: 0.0, left=0.01)
    for _ in range(20):
        if 0.99 * 900 <= bits(price.of_user) <= 900:
            return
        price.narrow(bits(price.of_user))
    pytest.fail(f"{bits(price.of_user)} bits")


def test_a_price_that_is_as_good_as_none_suits() -> None:
    price = Price(1.0, limit=900.0, measure=lambda users, items: 0.0, item_share=0.5)
    assert price.of_item == 0.5
    assert not price.suits(1000.0)
    assert price.of_user > 1
    assert price.suits(890.0)
    for _ in range(40):
        if price.suits(300.0):
            break
    assert price.is_least


def test_frequent_words_are_cheap() -> None:
    codes = np.array([[0, 1], [0, 1], [0, 0], [2, 1]], np.uint16)
    books = [np.zeros((3, 1), np.float32), np.zeros((2, 4), np.float32)]
    first, second = word_prices(codes, books, 2.0)
    np.testing.assert_allclose(first, 2 * np.log2([4 / 3, 8, 4]), rtol=1e-6)
    np.testing.assert_allclose(second, 2 * np.log2([4, 4 / 3]), rtol=1e-6)


def test_rows_are_never_longer_than_plain() -> None:
    codes = np.random.default_rng(0).integers(0, 16, (300, 4)).astype(np.uint16)
    assert coded_bits(codes, [16] * 4) == 300 * 16
    codes[:, :2] = 0
    assert coded_bits(codes, [16] * 4) < 300 * 9


@pytest.mark.parametrize("store_users", [True, False])
@pytest.mark.parametrize("bits", [30.0, 60.0])
def test_budgets_are_filled_and_kept(bits: float, store_users: bool) -> None:
    rng = np.random.default_rng(0)
    table = crowds(1500, 900).toarray() * (rng.random((1500, 900)) < 0.1)
    model = GraphRecommender(bits, store_users=store_users, random_state=0, n_jobs=1).fit(csr_array(table))
    assert 0.8 * bits < model.bits_per_item_ <= bits
