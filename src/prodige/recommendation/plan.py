"""Plan: how a budget is shared out among factors, hubs, codebooks and biases.

A direction of the balanced teacher with spectrum S_k deserves r_k = max(0, log₂(S_k / θ)) bits on either side, as a
Gaussian source of that standard deviation does; θ is where the budget ends. Directions are cut into groups of equal
summed rate, one for each factor: then a code of log₂ H bits serves each alike. Those of rate 0 are left out, or, in a
*wide* plan, get a little: words learn what they say of them, and where there are many rows for each word that gains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prodige.graph.packing import number_bits

Grouping = Literal["consecutive", "dealt"]

# Of an entry of a codebook, and of an item's length. Words of k-means lose nothing measurable with 5 bits, and what is
# saved buys more of them.
WORD_BITS = 5
LENGTH_BITS = 5
FREE_LENGTH_BITS = 10  # of lengths that hold the norm of a vector, too
_FACTOR_BYTES = 48  # of a factor in a header, with the ends of its two grids
_FILE_BYTES = 700  # of a file beside codes, codebooks and lengths

MOST_WORDS = 512
_LEAST_RATE = 0.25  # bits of a direction in a wide plan, where groups are cut
_MOST_FACTORS = 128


@dataclass(frozen=True)
class Budget:
    """How large a model may be: bits, or numbers as the paper counts, for each user and item; one of the two.

    Without ``store_users`` only items count, and only items are stored.

    Examples
    --------
    >>> from prodige.recommendation.plan import Budget
    >>> Budget(bits=64, numbers=None, n_users=300, n_items=100).total
    25600.0
    """

    bits: float | None
    numbers: float | None
    n_users: int
    n_items: int
    store_users: bool = True

    @property
    def n_stored(self) -> int:
        """Users and items that are stored."""
        return self.n_items + (self.n_users if self.store_users else 0)

    @property
    def total(self) -> float:
        """Bits or numbers of the whole model."""
        return float((self.bits if self.bits is not None else self.numbers or 0) * self.n_stored)

    def cost(self, plan: Plan) -> float:
        """Return an upper bound on the bits of a file of this shape, or its numbers."""
        n_users = self.n_users if self.store_users else 0
        if self.bits is None:
            return float(plan.n_factors * (n_users + self.n_items) + self.n_items + plan.n_entries)
        codes = self.n_items * sum(map(number_bits, plan.item_words))
        if self.store_users:
            codes += self.n_users * sum(map(number_bits, plan.user_words))
        return float(codes + self.n_items * plan.length_bits + plan.fixed_bits)

    def stretched(self, share: float) -> Budget:
        """Return so many times the budget; of bits alone, as numbers cannot be coded."""
        return self if self.bits is None else replace(self, bits=self.bits * share)


@dataclass(frozen=True)
class Plan:
    """The shape of a product for recommendation.

    Attributes
    ----------
    groups : tuple of tuple of int
        Directions of the balanced teacher in each factor.
    user_words, item_words : tuple of int
        Hubs of either side of each factor; 0 of users that are not stored.
    word_bits, length_bits : int
        Of an entry of a codebook, and of an item's length.
    """

    groups: tuple[tuple[int, ...], ...]
    user_words: tuple[int, ...]
    item_words: tuple[int, ...]
    word_bits: int = WORD_BITS
    length_bits: int = LENGTH_BITS

    @property
    def n_factors(self) -> int:
        """How many factors there are."""
        return len(self.groups)

    @property
    def n_directions(self) -> int:
        """How many directions are in groups."""
        return sum(map(len, self.groups))

    @property
    def n_entries(self) -> int:
        """Entries of all codebooks."""
        words = zip(self.sizes.tolist(), self.user_words, self.item_words, strict=True)
        return sum(size * (mine + theirs) for size, mine, theirs in words)

    @property
    def fixed_bits(self) -> int:
        """Bits of a file beside codes and lengths, at most: codebooks and header."""
        return self.word_bits * self.n_entries + 8 * (_FILE_BYTES + _FACTOR_BYTES * self.n_factors)

    @property
    def sizes(self) -> NDArray[np.int32]:
        """Directions of each factor."""
        return np.array([len(group) for group in self.groups], np.int32)

    @property
    def columns(self) -> NDArray[np.int64]:
        """All directions, factor by factor."""
        return np.concatenate([np.array(group, np.int64) for group in self.groups])


def make_plan(
    budget: Budget,
    spectrum: NDArray[np.float64],
    user_words: int,
    item_words: int,
    grouping: Grouping,
    is_wide: bool = False,
) -> Plan | None:
    """Return the plan with as many factors as a budget allows; None where there is not room for one.

    Parameters
    ----------
    budget : Budget
    spectrum : ndarray of float64, shape [d]
        Of the balanced teacher, falling.
    user_words, item_words : int
        Hubs of either side of a factor. What is left of a budget of bits doubles them in the first factors.
    grouping : {"consecutive", "dealt"}
    is_wide : bool
        Whether directions of rate 0 are in groups, too.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.plan import Budget, make_plan
    >>> budget = Budget(bits=64, numbers=None, n_users=30_000, n_items=10_000)
    >>> plan = make_plan(budget, 0.9 ** np.arange(32), 256, 256, "consecutive")
    >>> plan.n_factors, plan.user_words, round(budget.cost(plan) / 40_000, 1)
    (7, (512, 512, 512, 512, 256, 256, 256), 63.8)
    """
    bits = (np.log2(user_words) + np.log2(item_words)) / 2
    length_bits = LENGTH_BITS if budget.store_users else FREE_LENGTH_BITS
    for n_factors in range(min(_MOST_FACTORS, len(spectrum)), 0, -1):
        groups = group_directions(spectrum, n_factors, bits, grouping, _LEAST_RATE if is_wide else 0.0)
        if not sum(map(len, groups)):
            return None  # one word says nothing
        n = len(groups)
        plan = Plan(
            tuple(tuple(map(int, group)) for group in groups),
            (user_words if budget.store_users else 0,) * n,
            (item_words,) * n,
            WORD_BITS,
            length_bits,
        )
        if budget.cost(plan) <= budget.total:
            return plan if budget.bits is None else spend_rest(budget, plan)
    return None


def spend_rest(budget: Budget, plan: Plan) -> Plan:
    """Return the plan with twice as many words in as many of its first factors as what is left pays for."""
    most = max(word_counts(budget))
    for n_doubled in range(plan.n_factors, 0, -1):
        larger = replace(
            plan,
            user_words=doubled(plan.user_words, n_doubled, most),
            item_words=doubled(plan.item_words, n_doubled, most),
        )
        if budget.cost(larger) <= budget.total:
            return larger
    return plan


def doubled(words: tuple[int, ...], n_first: int, most: int) -> tuple[int, ...]:
    """Return numbers of words with the first few doubled, as far as there may be so many."""
    return tuple(min(2 * n, max(n, most)) if m < n_first else n for m, n in enumerate(words))


def least_plan(budget: Budget) -> Plan:
    """Return the smallest plan there is: one factor of one direction, with two hubs on either side."""
    if budget.store_users:
        return Plan(((0,),), (2,), (2,), WORD_BITS, LENGTH_BITS)
    return Plan(((0,),), (0,), (2,), WORD_BITS, FREE_LENGTH_BITS)


def least_bits(n_users: int, n_items: int, store_users: bool) -> float:
    """Return the bits a user and item of which the fixed parts of a file take a quarter.

    Examples
    --------
    >>> from prodige.recommendation.plan import least_bits
    >>> least_bits(30_000, 10_000, True), least_bits(40, 20, True)
    (0.64, 426.6666666666667)
    """
    return 4 * 8 * (_FILE_BYTES + 100) / (n_items + (n_users if store_users else 0))


def check_budget(budget: Budget) -> None:
    """Refuse a budget that not even the smallest plan fits into.

    Examples
    --------
    >>> from prodige.recommendation.plan import Budget, check_budget
    >>> check_budget(Budget(bits=1, numbers=None, n_users=300, n_items=100))
    Traceback (most recent call last):
        ...
    ValueError: bits_per_item = 1 is too little: the least for 300 users and 100 items is 17.3
    """
    least = budget.cost(least_plan(budget))
    if least > budget.total:
        name, value = ("bits", budget.bits) if budget.bits is not None else ("numbers", budget.numbers)
        stored = f"{budget.n_users} users and " if budget.store_users else ""
        raise ValueError(
            f"{name}_per_item = {value:g} is too little: the least for {stored}{budget.n_items} items is "
            f"{math.ceil(10 * least / budget.n_stored) / 10:g}"
        )


def word_counts(budget: Budget) -> list[int]:
    """Return numbers of words to choose from: powers of 2, as codes have whole bits; fewer than there are rows.

    Examples
    --------
    >>> from prodige.recommendation.plan import Budget, word_counts
    >>> word_counts(Budget(64, None, 3000, 40))
    [2, 4, 8, 16, 32]
    """
    most = min(budget.n_items, budget.n_users if budget.store_users else budget.n_items, MOST_WORDS)
    return [2**bits for bits in range(1, 11) if 2**bits <= most] or [1]


def rates(spectrum: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the bits of each direction, which add up to a total.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.plan import rates
    >>> rates(np.array([8.0, 4.0, 1.0]), 3.0)
    array([2., 1., 0.])
    """
    logs = np.log2(np.maximum(spectrum, np.finfo(np.float64).tiny))
    for n in range(len(logs), 0, -1):
        threshold = (logs[:n].sum() - total) / n
        if logs[n - 1] >= threshold:
            return np.asarray(np.maximum(logs - threshold, 0.0))
    return np.zeros(len(logs))


def group_directions(
    spectrum: NDArray[np.float64], n_groups: int, bits: float, grouping: Grouping, least_rate: float = 0.0
) -> list[NDArray[np.int64]]:
    """Return the directions of each group; those that deserve no bits are in none unless all get a little.

    Parameters
    ----------
    spectrum : ndarray of float64, shape [d]
        Falling.
    n_groups : int
        At most; there are fewer where too few directions deserve bits.
    bits : float
        Of a code.
    grouping : {"consecutive", "dealt"}
        Neighbours in the spectrum together, or one after the other to the group that has least.
    least_rate : float
        Bits that any direction counts for.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.plan import group_directions
    >>> spectrum = 2.0 ** -np.arange(6)
    >>> [group.tolist() for group in group_directions(spectrum, 2, 4.0, "consecutive")]
    [[0], [1, 2, 3]]
    >>> [group.tolist() for group in group_directions(spectrum, 2, 4.0, "dealt")]
    [[0, 3], [1, 2]]
    """
    deserved = np.maximum(rates(spectrum, n_groups * bits), least_rate)
    kept = np.flatnonzero(deserved > 0)
    n_groups = min(n_groups, kept.size)
    if grouping == "consecutive":
        return cut(deserved[kept], n_groups)
    loads = np.zeros(n_groups)
    groups: list[list[int]] = [[] for _ in range(n_groups)]
    for direction in kept:
        least = int(loads.argmin())
        groups[least].append(int(direction))
        loads[least] += deserved[direction]
    return [np.array(group, dtype=np.int64) for group in groups]


def cut(deserved: NDArray[np.float64], n_groups: int) -> list[NDArray[np.int64]]:
    """Return runs of directions with about the same summed rate, each with one direction at least."""
    middle = np.cumsum(deserved) - deserved / 2
    group = np.minimum((middle / deserved.sum() * n_groups).astype(np.int64), n_groups - 1)
    # No group stays empty: each begins where its share does, and at least one direction after the one before.
    starts = np.searchsorted(group, np.arange(n_groups))
    for g in range(1, n_groups):
        starts[g] = max(starts[g], starts[g - 1] + 1)
    for g in range(n_groups - 1, 0, -1):
        starts[g] = min(starts[g], len(deserved) - (n_groups - g))
    return [np.asarray(part, dtype=np.int64) for part in np.split(np.arange(len(deserved)), starts[1:])]
