"""Budgets: how large a graph may become, in numbers as the paper counts or in bits of its file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from prodige.graph.graph import Graph
from prodige.graph.product import ProductGraph

AnyGraph = Graph | ProductGraph

# What edges of a packed graph take beside the number of a hub: a weight, and a bit for the degree.
WEIGHT_BITS = 6
_EDGE_BITS = WEIGHT_BITS + 1

# Hubs that a graph of a usual budget ends up with have numbers of so many bits.
_HUB_BITS = 7

# A file's header and checksum, in bytes; and what the header says of places that copies share.
_HEADER = 420
_PLACES_HEADER = 64

# The budget where none is given, in numbers an item.
_NUMBERS = 4.0


@dataclass(frozen=True)
class Budget:
    """What an item may take: exactly one of the two is given.

    Attributes
    ----------
    numbers : float or None
        Numbers an item: vertices, two for every edge; codes, lengths and positions of hubs.
    bits : float or None
        Bits an item of the whole file.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.compression.budget import Budget
    >>> Budget(numbers=3).allows(Graph.from_edges([0, 1], [1, 2], 1.0))
    True
    """

    numbers: float | None = None
    bits: float | None = None

    @classmethod
    def asked(cls, numbers_per_item: float | None, bits_per_item: float | None) -> Budget:
        """Return the budget that a user asked for, 4 numbers an item where it is neither.

        Examples
        --------
        >>> from prodige.compression.budget import Budget
        >>> Budget.asked(None, None), Budget.asked(None, 64)
        (Budget(numbers=4.0, bits=None), Budget(numbers=None, bits=64))
        """
        is_given = numbers_per_item is not None or bits_per_item is not None
        return cls(numbers_per_item if is_given else _NUMBERS, bits_per_item)

    def allows(self, graph: AnyGraph) -> bool:
        """Whether a graph is within the budget."""
        if self.bits is not None:
            return graph.bits_per_item <= self.bits
        assert self.numbers is not None
        return graph.numbers_per_item <= self.numbers + 1e-9

    def numbers_of_edges(self, n_items: int) -> float:
        """Return the numbers an item of a graph whose packed edges are about within the budget.

        Examples
        --------
        >>> from prodige.compression.budget import Budget
        >>> Budget(bits=64).numbers_of_edges(10_000)
        9.95
        """
        if self.numbers is not None:
            return self.numbers
        assert self.bits is not None
        room = self.bits - 8 * _HEADER / n_items - 1
        return round(1 + 2 * room / (_HUB_BITS + _EDGE_BITS), 2)

    def without_copies(self, n_items: int, n_distinct: int) -> Budget:
        """Return what each distinct item may take where the others are copies of one.

        A copy costs one vertex and one edge, of length 0; what it does not need is there for the others.

        Examples
        --------
        >>> from prodige.compression.budget import Budget
        >>> Budget(numbers=4).without_copies(200, 100)
        Budget(numbers=5.0, bits=None)
        """
        n_copies = n_items - n_distinct
        if n_copies == 0:
            return self
        if self.numbers is not None:
            return Budget(numbers=(self.numbers * n_items - 3 * n_copies) / n_distinct)
        assert self.bits is not None
        copy_bits = bits_for(n_items) + max(bits_for(n_items), _HUB_BITS + _EDGE_BITS)
        room = self.bits * n_items - copy_bits * n_copies - 8 * _PLACES_HEADER
        return Budget(bits=room / n_distinct)

    def check(self, n_items: int) -> None:
        """Refuse budgets that make no sense or allow no graph."""
        if self.numbers is not None and self.bits is not None:
            raise ValueError(
                f"numbers_per_item = {self.numbers} and bits_per_item = {self.bits}: give one of the two, not both"
            )
        for name, value in (("numbers_per_item", self.numbers), ("bits_per_item", self.bits)):
            is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if value is not None and not (is_number and math.isfinite(value)):
                raise ValueError(f"{name} must be a finite number, got {value!r}")
        if self.bits is not None and self.bits <= 0:
            raise ValueError(f"bits_per_item = {self.bits} is too small: give a number above 0, such as 64")
        least = (n_items + 2 * (n_items - 1)) / n_items
        if self.numbers is not None and self.numbers < least - 1e-9:
            raise ValueError(
                f"numbers_per_item = {self.numbers} is too small: a connected graph of {n_items} items needs "
                f"{n_items - 1} edges, which is {least:.4g} numbers an item; give at least "
                f"{math.ceil(least * 1000) / 1000:.4g}"
            )

    def __str__(self) -> str:
        name, value = ("numbers_per_item", self.numbers) if self.bits is None else ("bits_per_item", self.bits)
        return f"{name} = {value}"


def bits_for(n: int) -> int:
    """Return the bits of a number below ``n``."""
    return max(1, math.ceil(math.log2(n))) if n > 1 else 0


def check_structure(structure: Any, n_hubs: Any, method: str) -> None:
    """Refuse kinds of graphs that are not known, or that contradict other parameters."""
    if structure not in ("auto", "graph", "product"):
        raise ValueError(f"structure must be 'auto', 'graph' or 'product', got {structure!r}")
    if structure == "product" and (n_hubs != "auto" or method == "l0"):
        other = f"n_hubs = {n_hubs!r}" if n_hubs != "auto" else f"method = {method!r}"
        raise ValueError(f"structure = 'product' contradicts {other}, which asks for a graph of another kind")
