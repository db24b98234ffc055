"""Edges in few bits: ends without loss, weights rounded to a few steps.

Edges in order of their smaller ends need not name them: a one for every edge and a zero after those of each vertex say
the same in E + V bits. Larger ends are mostly hubs, which are few and come last, so that their numbers are short. And
weights survive rounding: with 8 bits the error of a compressed data set hardly changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prodige._validation import check_integer

if TYPE_CHECKING:
    from prodige.graph.edges import Edges

MOST_BITS = 16  # of a weight; one that needs more is better kept as it is
_FIELDS = ("j_bits", "j_least", "weight_bits", "least", "greatest")
_BLOCK = 2**16  # numbers that are packed at a time; a multiple of 8, so that each block ends with a byte


@dataclass(frozen=True)
class Packing:
    """What it takes to unpack edges again.

    Attributes
    ----------
    n_vertices, n_edges : int
    j_bits, j_least : int
        Larger ends are kept in so many bits each, less the least of them.
    weight_bits : int
        A weight is one of 2**bits steps, evenly spaced.
    least, greatest : float
        The first and the last of the steps, which float32 can hold.
    """

    n_vertices: int
    n_edges: int
    j_bits: int
    j_least: int
    weight_bits: int
    least: float
    greatest: float

    @classmethod
    def of(cls, edges: Edges, n_vertices: int, bits: int) -> Packing:
        """Return the way to pack edges with weights of so many bits."""
        check_integer("bits", bits, 1, MOST_BITS)
        _, j, weight = edges
        j_least = int(j.min(initial=n_vertices)) if j.size else 0
        return cls(
            n_vertices,
            j.size,
            max(1, (int(j.max(initial=0)) - j_least).bit_length()),
            j_least,
            int(bits),
            float(weight.min(initial=np.inf)) if j.size else 0.0,
            float(weight.max(initial=0.0)),
        )

    @classmethod
    def from_fields(cls, fields: Any, n_vertices: int, n_edges: int) -> Packing:
        """Return what a file says; ValueError if it could not have been written by :meth:`fields`."""
        if not isinstance(fields, dict) or set(fields) != set(_FIELDS):
            raise ValueError(f"packed edges need {', '.join(_FIELDS)} and nothing else")
        packing = cls(
            n_vertices,
            n_edges,
            whole(fields["j_bits"], 1, 31),
            whole(fields["j_least"], 0, n_vertices),
            whole(fields["weight_bits"], 1, MOST_BITS),
            length(fields["least"]),
            length(fields["greatest"]),
        )
        if packing.least > packing.greatest:
            raise ValueError(f"the least weight, {packing.least}, is above the greatest, {packing.greatest}")
        return packing

    def fields(self) -> dict[str, Any]:
        """Return what a file has to say for edges to be unpacked, beside their number and that of vertices."""
        return {name: getattr(self, name) for name in _FIELDS}

    def lengths(self) -> dict[str, int]:
        """Return the bytes that each of the arrays takes."""
        n_bits = {
            "degree": self.n_vertices + self.n_edges,
            "j": self.j_bits * self.n_edges,
            "weight": self.weight_bits * self.n_edges,
        }
        return {name: (n + 7) // 8 for name, n in n_bits.items()}

    def pack(self, edges: Edges) -> list[bytes]:
        """Return the bytes of the arrays."""
        i, j, weight = edges
        # The edge at place e comes after e edges and i[e] vertices.
        ones = np.zeros(self.n_vertices + self.n_edges, dtype=np.uint8)
        ones[i.astype(np.int64) + np.arange(i.size)] = 1
        return [
            pack_bits(ones, 1),
            pack_bits(j - self.j_least, self.j_bits),
            pack_bits(self.codes(weight), self.weight_bits),
        ]

    def unpack(
        self, arrays: Sequence[NDArray[np.uint8]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Return the edges; ValueError if arrays are not what :meth:`pack` makes."""
        ones, j, codes = (
            unpack_bits(data, bits, size)
            for data, bits, size in zip(
                arrays,
                (1, self.j_bits, self.weight_bits),
                (self.n_vertices + self.n_edges, self.n_edges, self.n_edges),
                strict=True,
            )
        )
        places = np.flatnonzero(ones)
        if places.size != self.n_edges or (ones.size and ones[-1]):
            raise ValueError(f"its degrees are not those of {self.n_vertices} vertices and {self.n_edges} edges")
        if self.n_edges and j.max() + self.j_least >= self.n_vertices:  # would wrap around in 32 bits
            raise ValueError(f"an edge goes to {j.max() + self.j_least}, and there are {self.n_vertices} vertices")
        i = places - np.arange(self.n_edges)
        return i.astype(np.int32), (j + self.j_least).astype(np.int32), self.weights(codes)

    def codes(self, weight: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the number of the nearest step for each weight."""
        if self.greatest == self.least:
            return np.zeros(weight.size, dtype=np.int64)
        share = (weight.astype(np.float64) - self.least) / (self.greatest - self.least)
        return np.asarray(np.rint(share * (2**self.weight_bits - 1)), dtype=np.int64)

    def weights(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weights of steps. The first and the last are exact, so rounding twice changes nothing more."""
        share = codes / (2**self.weight_bits - 1)
        return np.asarray(self.least * (1 - share) + self.greatest * share, dtype=np.float32)


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
    packing = Packing.of(edges, 0, bits)
    return packing.weights(packing.codes(edges.weight))


def pack_bits(values: NDArray[Any], bits: int) -> bytes:
    """Return whole numbers in so many bits each, lowest bit first, with zeros up to the end of the last byte.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.packing import pack_bits, unpack_bits
    >>> data = pack_bits(np.array([5, 0, 7]), bits=3)
    >>> len(data), unpack_bits(np.frombuffer(data, np.uint8), bits=3, size=3)
    (2, array([5, 0, 7]))
    """
    places = np.arange(bits)
    parts = []
    for first in range(0, values.size, _BLOCK):
        block = (values[first : first + _BLOCK, None] >> places) & 1
        parts.append(np.packbits(block.astype(np.uint8).ravel(), bitorder="little").tobytes())
    return b"".join(parts)


def unpack_bits(data: NDArray[np.uint8], bits: int, size: int) -> NDArray[np.int64]:
    """Return what :func:`pack_bits` packed; ValueError if there is anything behind it."""
    places = np.arange(bits)
    values = np.zeros(size, dtype=np.int64)
    per_block = _BLOCK * bits // 8
    for number, first in enumerate(range(0, size, _BLOCK)):
        taken = np.unpackbits(data[number * per_block : (number + 1) * per_block], bitorder="little")
        n_here = min(_BLOCK, size - first)
        if taken[n_here * bits :].any():
            raise ValueError("there are bits behind the last number")
        values[first : first + n_here] = (taken[: n_here * bits].reshape(-1, bits).astype(np.int64) << places).sum(
            axis=1
        )
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
