"""Edges in few bits: ends without loss, weights rounded to a few steps or as they are.

Edges in order of their smaller ends need not name them: a one for every edge and a zero after those of each vertex say
the same in E + V bits. Larger ends are mostly hubs, which are few and come last, so that their numbers are short. Edges
between items would make them long; where they are few they are kept apart. And weights survive rounding: with 8 bits
the error of a compressed data set hardly changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prodige._validation import check_integer

if TYPE_CHECKING:
    from prodige.graph.edges import Edges

MOST_BITS = 16  # of a weight that is rounded
FLOAT_BITS = 32  # of one that is not
APART = 128  # bytes that an array more takes in a header, at most
_BLOCK = 2**16  # numbers that are packed at a time; a multiple of 8, so that each block ends with a byte

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Steps:
    """Weights that are one of 2**bits steps, evenly spaced from the least to the greatest.

    Attributes
    ----------
    bits : int
    least, greatest : float
        The first and the last of the steps, which float32 can hold.
    """

    bits: int
    least: float
    greatest: float

    @classmethod
    def of(cls, weight: NDArray[np.float32], bits: int) -> Steps:
        """Return so many steps for some weights."""
        check_integer("bits", bits, 1, MOST_BITS)
        if not weight.size:
            return cls(int(bits), 0.0, 0.0)
        return cls(int(bits), float(weight.min()), float(weight.max()))

    def codes(self, weight: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the number of the nearest step for each weight."""
        if self.greatest == self.least:
            return np.zeros(weight.size, dtype=np.int64)
        share = (weight.astype(np.float64) - self.least) / (self.greatest - self.least)
        return np.asarray(np.rint(share * (2**self.bits - 1)), dtype=np.int64)

    def weights(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weights of steps. The first and the last are exact, so rounding twice changes nothing more."""
        share = codes / (2**self.bits - 1)
        return np.asarray(self.least * (1 - share) + self.greatest * share, dtype=np.float32)

    def keep(self, weight: NDArray[np.float32]) -> bool:
        """Whether all weights are steps, so that rounding changes none."""
        return np.array_equal(self.weights(self.codes(weight)), weight)


@dataclass(frozen=True)
class Packing:
    """What it takes to unpack edges again.

    Attributes
    ----------
    n_vertices, n_items, n_edges : int
    n_local : int
        Edges between items that are kept apart from the others: all of them or none.
    j_bits, j_least : int
        Larger ends of the others are kept in so many bits each, less the least of them.
    steps : Steps or None
        What weights are rounded to; None if they are kept as they are.
    """

    n_vertices: int
    n_items: int
    n_edges: int
    n_local: int
    j_bits: int
    j_least: int
    steps: Steps | None

    @classmethod
    def of(cls, edges: Edges, n_vertices: int, n_items: int, bits: int | None) -> Packing:
        """Return the shortest way to pack edges with weights of so many bits; as few as keep them if it is None."""
        steps = exact_steps(edges.weight) if bits is None else Steps.of(edges.weight, bits)
        is_local = edges.j < n_items
        together = cls(n_vertices, n_items, edges.j.size, 0, *width(edges.j), steps)
        apart = cls(n_vertices, n_items, edges.j.size, int(is_local.sum()), *width(edges.j[~is_local]), steps)
        if apart.n_local and sum(apart.lengths().values()) + APART < sum(together.lengths().values()):
            return apart
        return together

    @classmethod
    def from_fields(cls, fields: Any, n_vertices: int, n_items: int, n_edges: int) -> Packing:
        """Return what a file says; ValueError if it could not have been written by :meth:`fields`."""
        needed = ["j_bits", "j_least", "weight_bits"]
        rounded = isinstance(fields, dict) and fields.get("weight_bits") != FLOAT_BITS
        needed += ["least", "greatest"] if rounded else []
        needed += ["n_local"] if isinstance(fields, dict) and "n_local" in fields else []
        if not isinstance(fields, dict) or set(fields) != set(needed):
            raise ValueError(f"packed edges need {', '.join(needed)} and nothing else")
        return cls(
            n_vertices,
            n_items,
            n_edges,
            whole(fields["n_local"], 1, n_edges) if "n_local" in fields else 0,
            whole(fields["j_bits"], 1, 31),
            whole(fields["j_least"], n_items if "n_local" in fields else 0, n_vertices),
            steps_of(fields) if rounded else None,
        )

    def fields(self) -> dict[str, Any]:
        """Return what a file has to say for edges to be unpacked, beside their number and that of vertices."""
        fields: dict[str, Any] = {"j_bits": self.j_bits, "j_least": self.j_least}
        if self.steps is None:
            fields["weight_bits"] = FLOAT_BITS
        else:
            fields |= {"weight_bits": self.steps.bits, "least": self.steps.least, "greatest": self.steps.greatest}
        return fields | ({"n_local": self.n_local} if self.n_local else {})

    def lengths(self) -> dict[str, int]:
        """Return the bytes that each of the arrays takes."""
        n_others = self.n_edges - self.n_local
        weight_bits = FLOAT_BITS if self.steps is None else self.steps.bits
        lengths = {
            "degree": packed_length(self.n_vertices + n_others, 1),
            "j": packed_length(n_others, self.j_bits),
            "weight": packed_length(self.n_edges, weight_bits),
        }
        return lengths | ({"local": sum(self.local_lengths())} if self.n_local else {})

    def pack(self, edges: Edges) -> list[bytes]:
        """Return the bytes of the arrays."""
        others = edges.j >= self.n_items if self.n_local else np.ones(self.n_edges, dtype=bool)
        i, j = edges.i.astype(np.int64), edges.j.astype(np.int64)
        arrays = [
            pack_bits(unary(i[others], self.n_vertices), 1),
            pack_bits(j[others] - self.j_least, self.j_bits),
            self.pack_weights(edges.weight),
        ]
        return [*arrays, self.pack_local(i[~others], j[~others])] if self.n_local else arrays

    def unpack(
        self, arrays: Sequence[NDArray[np.uint8]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Return the edges; ValueError if arrays are not what :meth:`pack` makes."""
        n_others = self.n_edges - self.n_local
        i = from_unary(unpack_bits(arrays[0], 1, self.n_vertices + n_others), self.n_vertices, n_others)
        j = unpack_bits(arrays[1], self.j_bits, n_others) + self.j_least
        if n_others and j.max() >= self.n_vertices:  # would wrap around in 32 bits
            raise ValueError(f"an edge goes to {j.max()}, and there are {self.n_vertices} vertices")
        if self.n_local:
            i, j = merged((i, j), self.unpack_local(arrays[3]))
        return i.astype(np.int32), j.astype(np.int32), self.unpack_weights(arrays[2])

    def pack_weights(self, weight: NDArray[np.float32]) -> bytes:
        """Return the bytes of weights."""
        if self.steps is None:
            return weight.astype("<f4").tobytes()
        return pack_bits(self.steps.codes(weight), self.steps.bits)

    def unpack_weights(self, data: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the weights of their bytes."""
        if self.steps is None:
            return data.view("<f4").astype(np.float32)
        return self.steps.weights(unpack_bits(data, self.steps.bits, self.n_edges))

    # Ends of edges between items, in the manner of Elias and Fano: the high bits of smaller ends by ones and zeros as
    # above, with about as many zeros as there are edges, and their low bits as they are.

    @property
    def low_bits(self) -> int:
        """Low bits of the smaller end of an edge between items."""
        return max(0, (self.n_items // self.n_local).bit_length() - 1)

    @property
    def n_high(self) -> int:
        """Numbers that the high bits of an item can be."""
        return ((self.n_items - 1) >> self.low_bits) + 1

    def local_lengths(self) -> list[int]:
        """Return the bytes of high bits, low bits and larger ends of edges between items."""
        bits = [self.low_bits, number_bits(self.n_items)]
        return [packed_length(self.n_high + self.n_local, 1), *(packed_length(self.n_local, n) for n in bits)]

    def pack_local(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> bytes:
        """Return the ends of edges between items."""
        high, low = i >> self.low_bits, i & (2**self.low_bits - 1)
        parts = pack_bits(unary(high, self.n_high), 1), pack_bits(low, self.low_bits)
        return b"".join([*parts, pack_bits(j, number_bits(self.n_items))])

    def unpack_local(self, data: NDArray[np.uint8]) -> Ends:
        """Return the ends of edges between items."""
        parts = np.split(data, np.cumsum(self.local_lengths())[:-1])
        high = from_unary(unpack_bits(parts[0], 1, self.n_high + self.n_local), self.n_high, self.n_local)
        low = unpack_bits(parts[1], self.low_bits, self.n_local)
        j = unpack_bits(parts[2], number_bits(self.n_items), self.n_local)
        if j.max() >= self.n_items:
            raise ValueError(f"an edge between items goes to {j.max()}, and there are {self.n_items} items")
        return (high << self.low_bits) | low, j


def merged(others: Ends, local: Ends) -> Ends:
    """Return edges to hubs and edges between items in one order; ValueError if those between items had another."""
    i, j = np.concatenate([local[0], others[0]]), np.concatenate([local[1], others[1]])
    order = np.lexsort((j, i))
    if (np.diff(order[order < local[0].size]) < 0).any():
        raise ValueError("edges between items are out of order")
    return i[order], j[order]


def exact_steps(weight: NDArray[np.float32]) -> Steps | None:
    """Return the fewest steps that weights are on, None if rounding to any would change them.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.packing import exact_steps
    >>> exact_steps(np.array([1.0, 2.0, 4.0], np.float32))
    Steps(bits=2, least=1.0, greatest=4.0)
    >>> exact_steps(np.array([1.0, 1.7183, 3.1416], np.float32))
    """
    coarse = Steps.of(weight, 1)
    for bits in range(1, MOST_BITS + 1):
        steps = replace(coarse, bits=bits)
        if steps.keep(weight[:1024]) and steps.keep(weight):  # a few tell, mostly
            return steps
    return None


def steps_of(fields: dict[str, Any]) -> Steps:
    """Return the steps that a file says weights are on."""
    steps = Steps(whole(fields["weight_bits"], 1, MOST_BITS), length(fields["least"]), length(fields["greatest"]))
    if steps.least > steps.greatest:
        raise ValueError(f"the least weight, {steps.least}, is above the greatest, {steps.greatest}")
    return steps


def round_weights(edges: Edges, bits: int) -> NDArray[np.float32]:
    """Return weights as they come back from a file with so many bits.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.edges import Edges
    >>> from prodige.graph.packing import round_weights
    >>> edges = Edges(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([1.0, 1.7, 4.0], np.float32))
    >>> round_weights(edges, bits=2)
    array([1., 2., 4.], dtype=float32)
    """
    steps = Steps.of(edges.weight, bits)
    return steps.weights(steps.codes(edges.weight))


# -- numbers in few bits ---------------------------------------------------------------------------------------------


def number_bits(n: int) -> int:
    """Return the bits of a number below ``n``.

    Examples
    --------
    >>> from prodige.graph.packing import number_bits
    >>> [number_bits(n) for n in (1, 2, 3, 256, 257)]
    [0, 1, 2, 8, 9]
    """
    return (n - 1).bit_length()


def width(ends: NDArray[np.int32]) -> tuple[int, int]:
    """Return the bits of the ends of edges less the least of them, one at least, and the least."""
    if not ends.size:
        return 1, 0
    least = int(ends.min())
    return max(1, (int(ends.max()) - least).bit_length()), least


def packed_length(size: int, bits: int) -> int:
    """Return the bytes that so many numbers of so many bits take."""
    return (size * bits + 7) // 8


def unary(values: NDArray[np.int64], n: int) -> NDArray[np.uint8]:
    """Return for each number below ``n`` as many ones as it comes up, and a zero; values are in order."""
    ones = np.zeros(n + values.size, dtype=np.uint8)
    ones[values + np.arange(values.size)] = 1  # the value at place p comes after p others and as many zeros as it says
    return ones


def from_unary(ones: NDArray[np.int64], n: int, size: int) -> NDArray[np.int64]:
    """Return the values of :func:`unary`; ValueError if they are not so many."""
    places = np.flatnonzero(ones)
    if places.size != size or (ones.size and ones[-1]):
        raise ValueError(f"its degrees are not those of {n} vertices and {size} edges")
    return places - np.arange(size)


def pack_bits(values: NDArray[Any], bits: int) -> bytes:
    """Return whole numbers in so many bits each, 31 at most, lowest bit first, with zeros to the end of the last byte.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.packing import pack_bits, unpack_bits
    >>> data = pack_bits(np.array([5, 0, 7]), bits=3)
    >>> len(data), unpack_bits(np.frombuffer(data, np.uint8), bits=3, size=3)
    (2, array([5, 0, 7]))
    """
    parts = []
    for first in range(0, values.size, _BLOCK):
        words = np.ascontiguousarray(values[first : first + _BLOCK], dtype="<u4").view(np.uint8).reshape(-1, 4)
        block = np.unpackbits(words, axis=1, count=bits, bitorder="little")
        parts.append(np.packbits(block.ravel(), bitorder="little").tobytes())
    return b"".join(parts)


def unpack_bits(data: NDArray[np.uint8], bits: int, size: int) -> NDArray[np.int64]:
    """Return what :func:`pack_bits` packed; ValueError if there is anything behind it."""
    values = np.zeros(size, dtype=np.int64)
    per_block = _BLOCK * bits // 8
    for number, first in enumerate(range(0, size if bits else 0, _BLOCK)):
        taken = np.unpackbits(data[number * per_block : (number + 1) * per_block], bitorder="little")
        n_here = min(_BLOCK, size - first)
        if taken[n_here * bits :].any():
            raise ValueError("there are bits behind the last number")
        words = np.zeros((n_here, 32), dtype=np.uint8)
        words[:, :bits] = taken[: n_here * bits].reshape(-1, bits)
        values[first : first + n_here] = np.packbits(words, axis=1, bitorder="little").view("<u4").ravel()
    return values


def whole(value: Any, least: int, most: int) -> int:
    """Return a whole number of a header."""
    if type(value) is not int or not least <= value <= most:  # True is an int, too
        raise ValueError(f"{value!r} is not a whole number from {least} to {most}")
    return value


def length(value: Any) -> float:
    """Return a length of a header, one that float32 can hold."""
    if type(value) is not float or not math.isfinite(value) or math.copysign(1.0, value) < 0:
        raise ValueError(f"{value!r} is no length")
    if value > float(np.finfo(np.float32).max) or float(np.float32(value)) != value:
        raise ValueError(f"{value!r} is not a number of 32 bits")
    return value
