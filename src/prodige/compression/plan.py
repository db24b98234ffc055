"""Plans of products: how many factors and hubs a budget buys, and which directions of the data go into which factor.

A direction of variance λ that gets R bits leaves the squared error λ² (2·4⁻ᴿ − 16⁻ᴿ) in products of two items' places,
and so in their squared distance. So bits are shared out by log₂ λ, not by half of it as for the places themselves;
directions that would get next to nothing are left to the lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.compression.budget import Budget, bits_for
from prodige.graph import file
from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph

Floats = NDArray[np.float64]

# A direction that would get less than this, in bits, is left out: by the formula above the first bits of a direction
# gain nothing, and about one gains most for each bit. Codes of fewer bits than these follow clusters rather than
# directions, and gain by more of them.
_LEAST_RATE = 0.9
_FEW_BITS = 40

# Bits of a coordinate of a hub: one less is felt in every code, one more costs codes.
_POSITION_BITS = 7

# Bits of the largest codes that are tried, where several plans are.
_N_WIDTHS = 4

# Of factors that are wide: how many there are at most, bits of their codes, and of a coordinate and of a length. Whole
# bits of codes are a tenth more than what coding leaves of them.
_MOST_WIDE = 4
_WIDE_CODES = range(4, 10)
_WIDE_POSITION_BITS = 6
_WIDE_LENGTH_BITS = 5
_CODED = 0.9

# Sweeps gain more where factors are many, which few wide ones have to make up for.
_WIDE_HANDICAP = 1.1

# Hubs of a factor, at most, as bits of a code: of a million items so many cost next to nothing, and take 7 % off the
# error that codes of 8 bits leave in the sample. Where numbers are counted a further hub always costs some.
_MOST_BITS = 10
_MOST_HUBS = 512

# What a further bit of every code is worth, as a share of all bits of codes: fewer and larger factors fit better.
_WIDER = 0.055

# Factors, at most.
_MOST_FACTORS = 64

# A file of no more items is made to see how large it is; of more, what they add is known, and how many bytes longer the
# header may become by larger numbers.
_MOST_MADE = 1 << 16
_DIGITS = 64

# Where numbers are counted and not bits: enough for rounding not to matter, and still a small file.
_FINE_BITS = 10


@dataclass(frozen=True)
class Plan:
    """Sizes of a product.

    Attributes
    ----------
    n_hubs : tuple of int
        Hubs of each factor.
    directions : tuple of tuple of int
        For each factor the directions of the data that it begins with.
    position_bits, length_bits : int
        Bits of a coordinate of a hub, and of the length of an item.
    """

    n_hubs: tuple[int, ...]
    directions: tuple[tuple[int, ...], ...]
    position_bits: int
    length_bits: int

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Plan:
        """Return a plan from its fields, as a file has them.

        Examples
        --------
        >>> from dataclasses import asdict
        >>> from prodige.compression.plan import Plan
        >>> plan = Plan((4, 2), ((0, 2), (1,)), 7, 5)
        >>> Plan.from_json(asdict(plan)) == plan
        True
        """
        directions = tuple(tuple(group) for group in fields["directions"])
        return cls(tuple(fields["n_hubs"]), directions, fields["position_bits"], fields["length_bits"])

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.n_hubs)

    @property
    def code_bits(self) -> float:
        """Bits of an item's codes, as information."""
        return float(np.log2(self.n_hubs).sum())

    @property
    def n_positions(self) -> int:
        """Coordinates of all hubs."""
        return sum(n_hubs * len(some) for n_hubs, some in zip(self.n_hubs, self.directions, strict=True))

    def numbers(self, n_items: int) -> float:
        """Return the numbers an item: codes, a length, and its share of the positions."""
        return self.n_factors + 1 + self.n_positions / n_items

    def bits(self, n_items: int) -> float:
        """Return the bits an item of the file: to the last one, or a few bytes of the file too many."""
        n_made = min(n_items, _MOST_MADE)
        if n_made < n_items:
            more = self.item_bits * (n_items - n_made) + 8 * _DIGITS
            return (self.bits(n_made) * n_made + more) / n_items
        factors = [
            Grid(np.zeros((n_hubs, len(some)), np.uint16), self.position_bits, 0.0, 1.0)
            for n_hubs, some in zip(self.n_hubs, self.directions, strict=True)
        ]
        codes = np.zeros((n_items, self.n_factors), np.int32)
        lengths = Grid(np.zeros(n_items, np.uint16), self.length_bits, 0.0, 1.0)
        product = ProductGraph.from_factors(factors, codes, lengths)
        return 8 * file.size(product, coded=False) / n_items

    @property
    def item_bits(self) -> int:
        """Bits of an item: its codes and its length."""
        return sum(bits_for(n_hubs) for n_hubs in self.n_hubs) + self.length_bits

    def least_bits(self, n_items: int) -> float:
        """Return the bits an item of everything but the header, which is quicker than all of them."""
        return self.item_bits + self.n_positions * self.position_bits / n_items


def make_plan(n_items: int, budget: Budget, variances: Floats) -> Plan | None:
    """Return the plan with the longest codes that a budget allows, None where it allows none.

    Parameters
    ----------
    n_items : int
    budget : Budget
    variances : ndarray, shape [K]
        Of the data along its directions, descending.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.budget import Budget
    >>> from prodige.compression.plan import make_plan
    >>> plan = make_plan(10_000, Budget(bits=32), 0.9 ** np.arange(50))
    >>> plan.n_hubs
    (128, 128, 128, 64)
    """
    if not budget.bits:
        return plan_numbers(n_items, budget, variances)
    widths = promising_widths(n_items, budget.bits, variances)
    return largest_plan(n_items, budget.bits, variances, widths[0]) if widths else None


def promising_widths(n_items: int, bits: float, variances: Floats) -> list[int]:
    """Return how many bits the codes of factors may have at most, the most promising number first.

    Larger factors fit better at the same length of codes, but their positions leave less room for codes. Numbers that
    lead to the same plan are one.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.plan import promising_widths
    >>> promising_widths(10_000, 16, 0.9 ** np.arange(50))
    [6, 4, 3, 2, 1]
    """
    widths = {largest_plan(n_items, bits, variances, width): width for width in range(_MOST_BITS, 0, -1)}

    def worth(plan: Plan) -> float:
        return plan.code_bits * (1 + _WIDER * plan.code_bits / plan.n_factors)

    return [widths[plan] for plan in sorted((plan for plan in widths if plan is not None), key=worth, reverse=True)]


def plans_by_bits(n_items: int, bits: float, variances: Floats) -> list[tuple[Callable[[float], Plan | None], float]]:
    """Return what makes promising plans of a budget, each of one kind, from the bits that it may count.

    With each goes what its error is to be multiplied by before it is compared, where plans have only begun.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.plan import plans_by_bits
    >>> kinds = plans_by_bits(10_000, 16, 0.9 ** np.arange(50))
    >>> [plan.n_hubs for make, _ in kinds if (plan := make(16.0)) is not None][:5]
    [(64, 64), (16, 16, 16), (8, 8, 8, 8), (4, 4, 4, 4, 4, 4), (16,)]
    """
    kinds: list[tuple[Callable[[float], Plan | None], float]] = [
        (partial(largest_plan, n_items, variances=variances, width=width), 1.0)
        for width in promising_widths(n_items, bits, variances)[:_N_WIDTHS]
    ]
    if bits < _FEW_BITS:
        kinds += [
            (partial(wide_plan, n_items, variances=variances, n_factors=n_factors, width=width), _WIDE_HANDICAP)
            for n_factors in range(1, _MOST_WIDE + 1)
            for width in _WIDE_CODES
        ]
    return kinds


def largest_plan(n_items: int, bits: float, variances: Floats, width: int) -> Plan | None:
    """Return the plan with the longest codes whose factors have codes of so many bits at most."""
    length_bits = int(np.clip(round(1.5 * math.log2(max(bits, 1.0)) - 4.4), 3, 8))  # best for 24 to 128 bits
    most_factors = min(variances.size, _MOST_FACTORS)
    for code_bits in range(min(int(bits), width * most_factors), 0, -1):
        n_factors = math.ceil(code_bits / width)
        n_hubs = tuple(2 ** (code_bits // n_factors + (m < code_bits % n_factors)) for m in range(n_factors))
        plan = Plan(n_hubs, deal(variances, n_hubs), _POSITION_BITS, length_bits)
        if n_hubs[0] <= n_items and plan.least_bits(n_items) <= bits and plan.bits(n_items) <= bits:
            return plan
    return None


def wide_plan(n_items: int, bits: float, variances: Floats, n_factors: int, width: int) -> Plan | None:
    """Return the plan of a few large factors that has as many directions as a budget allows; None where that is few.

    Its codes have fewer bits than others, and its hubs have places in directions that deserve no bits of their own:
    where items are in clusters, the number of its cluster says more of an item than that.

    Parameters
    ----------
    n_items : int
    bits : float
        Less what coding saves.
    variances : ndarray, shape [K]
    n_factors, width : int
        Of hubs of a code of so many bits each.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.plan import wide_plan
    >>> wide_plan(2000, 16, np.ones(10), 2, 5).directions
    ((0, 2, 4, 6, 8), (1, 3, 5, 7, 9))
    """
    n_hubs = 1 << width
    room = bits - _CODED * n_factors * width - _WIDE_LENGTH_BITS
    n_directions = min(int(room * n_items / (n_hubs * _WIDE_POSITION_BITS)), variances.size)
    if n_directions < n_factors or n_hubs > n_items // 4:
        return None
    directions = tuple(tuple(range(m, n_directions, n_factors)) for m in range(n_factors))
    return Plan((n_hubs,) * n_factors, directions, _WIDE_POSITION_BITS, _WIDE_LENGTH_BITS)


def plan_numbers(n_items: int, budget: Budget, variances: Floats) -> Plan | None:
    """Return a plan within a budget of numbers; a code is a number, however many hubs there are."""
    assert budget.numbers is not None
    best: Plan | None = None
    for n_factors in range(1, min(math.floor(budget.numbers - 1), variances.size, _MOST_FACTORS) + 1):
        n_hubs = min(_MOST_HUBS, n_items // 4)
        while n_hubs >= 2:
            sizes = (n_hubs,) * n_factors
            plan = Plan(sizes, deal(variances, sizes), _FINE_BITS, _FINE_BITS)
            if plan.numbers(n_items) <= budget.numbers:
                if best is None or plan.code_bits > best.code_bits:
                    best = plan
                break
            n_hubs = n_hubs * 9 // 10
    return best


def deal(variances: Floats, n_hubs: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Share the directions worth their bits out over factors, each as much of the rate as its codes have bits.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.plan import deal
    >>> deal(np.array([8.0, 4.0, 4.0, 2.0, 0.1]), (16, 16))
    ((0, 3), (1, 2))
    """
    widths = np.log2(n_hubs)
    total = float(widths.sum())
    rate = rates(variances, total)
    least = _LEAST_RATE * min(total / _FEW_BITS, 1.0)
    n_taken = max(int((rate > least).sum()), len(n_hubs))
    filled = np.zeros(len(n_hubs))
    groups: list[list[int]] = [[] for _ in n_hubs]
    for direction in range(min(n_taken, variances.size)):
        empty = [m for m, group in enumerate(groups) if not group]
        m = empty[0] if empty else int((filled / widths).argmin())
        groups[m].append(direction)
        filled[m] += rate[direction]
    return tuple(tuple(group) for group in groups)


def rates(variances: Floats, bits: float) -> Floats:
    """Return the bits of each direction: log₂ λ above a level that the sum decides.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.plan import rates
    >>> rates(np.array([8.0, 4.0, 0.1]), 3.0)
    array([2., 1., 0.])
    """
    logs = np.log2(np.maximum(variances, 1e-30 * variances.max()))
    for n_taken in range(logs.size, 0, -1):  # descending: the first so many share all bits
        level = (logs[:n_taken].sum() - bits) / n_taken
        if logs[n_taken - 1] > level:
            break
    result: Floats = np.maximum(logs - level, 0.0)
    return result
