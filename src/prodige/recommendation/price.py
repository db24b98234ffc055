"""Price: what a bit of a code costs, so that a file is as large as it may be and no larger.

Codes are kept by an arithmetic coder (:mod:`prodige.graph.rows`), so a word that many rows have takes few bits. A row
has the words for which error and bits together cost least: entropy-constrained quantization (Chou, Lookabaugh and
Gray, 1989). Plans have more words than codes of equal length would leave room for, and the price is what makes them
fit: it goes up where the file is too large and down where there is room, until that is full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from prodige.graph.packing import number_bits
from prodige.graph.rows import pack_rows
from prodige.recommendation.sides import Floats, Sides

if TYPE_CHECKING:
    from prodige.recommendation.codes import Words

# By how much the logarithm of bits falls with that of the price, about; and the most that one step changes.
# Where words settle anew they fall more than where words stay.
_SLOPE, _SLOPE_AT_ONCE = 0.3, 0.1
_LONGEST_STEP = 1.5
_NEAR = 0.04  # the limit, as a logarithm, are bits of words that need not be settled again
_NEAREST = 0.1  # to an end of what is between a price too low and one too high, the next one is
_LEAST_SHARE = 1e-4  # of the first price: less is as good as none


class Price:
    """What a bit costs, in the unit of the error of a row.

    Parameters
    ----------
    value : float
        To begin with.
    limit : float
        Bits that a file may have.
    measure : callable
        Returns the bits of a file of words of users, None where it has none, and of items.
    item_share : float
        What a bit of an item costs where one of a user costs 1: the share of users that are looked at.
    left : float
        Of the limit, that may stay unused.
    most_tries : int
        After which something that fits is good enough.

    Examples
    --------
    >>> from prodige.recommendation.price import Price
    >>> price = Price(0.01, limit=1000.0, measure=lambda users, items: 1200.0)
    >>> price.suits(1200.0), round(price.of_user, 4)
    (False, 0.0184)
    """

    def __init__(
        self,
        value: float,
        limit: float,
        measure: Callable[[Words | None, Words], float],
        item_share: float = 1.0,
        left: float = 0.004,
        most_tries: int = 6,
    ) -> None:
        self.of_user = value
        self.limit = limit
        self.measure = measure
        self.item_share = item_share
        self.left = left
        self.most_tries = most_tries
        self._least = value * _LEAST_SHARE
        # Logarithms of a price and of its bits, where these are too many and where they are not.
        self._ends: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None)

    @property
    def of_item(self) -> float:
        """What a bit of an item costs."""
        return self.of_user * self.item_share

    @property
    def is_least(self) -> bool:
        """Whether bits are as good as free."""
        return self.of_user <= self._least

    def suits(self, bits: float) -> bool:
        """Whether so many bits are near the limit; else go to a price for which they may be."""
        share = math.log(bits / self.limit)
        if abs(share) <= _NEAR or (share < 0 and self.is_least):
            return True
        self._go_to(math.log(self.of_user) + share / _SLOPE)
        return False

    def narrow(self, bits: float) -> None:
        """Go on between the highest price that is too low and the lowest that is not, where bits fall."""
        place, wanted = math.log(self.of_user), math.log((1 - self.left / 2) * self.limit)
        size = math.log(bits)
        self._ends = (self._ends[0], (place, size)) if bits <= self.limit else ((place, size), self._ends[1])
        low, high = self._ends
        if low is None or high is None:
            self._go_to(place + (size - wanted) / _SLOPE_AT_ONCE)
            return
        share = (low[1] - wanted) / max(low[1] - high[1], 1e-12)
        self._go_to(low[0] + min(max(share, _NEAREST), 1 - _NEAREST) * (high[0] - low[0]))

    def _go_to(self, place: float) -> None:
        now = math.log(self.of_user)
        step = min(max(place - now, -_LONGEST_STEP), _LONGEST_STEP)
        self.of_user = max(self._least, math.exp(now + step))


def first_price(sides: Sides, users: Floats, items: Floats, alpha: float, rates: NDArray[np.float64]) -> float:
    """Return about what a bit is worth where directions have so many each.

    The error of a direction is its variance times its weight in the squared error of a row, and a bit makes it a
    quarter: the slope is 2 ln 2 times the error. It is about the same for all directions that have bits.

    Parameters
    ----------
    users, items : ndarray of float32, shapes [U, d] and [I, d]
        Balanced.
    alpha : float
        Weight of a pair that says nothing.
    rates : ndarray of float64, shape [d]
    """
    spectrum = np.square(items, dtype=np.float64).sum(axis=0)
    # Weights of the squares of each direction of a user: of all items, and of those it met on average.
    weights = alpha * spectrum + sides.items.totals @ np.square(items, dtype=np.float64) / len(users)
    errors = weights * np.square(users, dtype=np.float64).mean(axis=0) * 4.0**-rates
    kept = rates > 0
    return float(2 * math.log(2) * errors[kept].mean()) if kept.any() else 1.0


def word_prices(codes: NDArray[np.uint16], books: Sequence[Floats], price: float) -> tuple[Floats, ...]:
    """Return what each word costs by how many rows have it.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.price import word_prices
    >>> word_prices(np.array([[0], [0], [1], [2]], np.uint16), [np.zeros((3, 1), np.float32)], 0.5)
    (array([0.5, 1. , 1. ], dtype=float32),)
    """
    return tuple(
        (price * np.log2(len(column) / np.maximum(np.bincount(column, minlength=len(book)), 0.5))).astype(np.float32)
        for column, book in zip(codes.T, books, strict=True)
    )


def coded_bits(codes: NDArray[np.uint16], n_words: Sequence[int]) -> float:
    """Return the bits of rows in a file, which has them coded where that is shorter.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.price import coded_bits
    >>> codes = np.random.default_rng(0).binomial(15, 0.5, (1000, 2)).astype(np.uint16)
    >>> 6000 < coded_bits(codes, [16, 16]) < 7000  # 4 bits each would be 8000
    True
    """
    plain = float(len(codes) * sum(map(number_bits, n_words)))
    packed = pack_rows(np.ascontiguousarray(codes), np.array(n_words, np.int32))
    return plain if packed is None else min(plain, 8.0 * len(packed[1]))
