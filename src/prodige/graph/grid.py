"""Grid: numbers on evenly spaced levels, a few bits each.

A product of graphs keeps its lengths and the positions of its hubs on grids. What a file holds are levels; the numbers
are computed from them in the same way everywhere, so that a graph answers alike before it is saved and after.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige._validation import check_integer, check_number

MOST_BITS = 16  # of a level


class Grid:
    """Numbers ``least + step * level``, with levels of so many bits; never changes.

    Parameters
    ----------
    levels : array-like of int
        From 0 to ``2**bits - 1``, of any shape.
    bits : int
        1 to 16.
    least, step : float
        The number of level 0, and what a level adds to it, 0 or more; both are rounded to float32.

    Attributes
    ----------
    levels : ndarray of uint16
    bits : int
    least, step : float
    values : ndarray of float32
        The numbers, in the shape of the levels.

    Examples
    --------
    >>> from prodige.graph.grid import Grid
    >>> Grid.round([0.0, 0.4, 3.0], bits=2)
    Grid(shape=(3,), bits=2, least=0, step=1)
    >>> Grid.round([0.0, 0.4, 3.0], bits=2).values
    array([0., 0., 3.], dtype=float32)
    """

    __slots__ = ("_bits", "_least", "_levels", "_step", "_values")

    def __init__(self, levels: ArrayLike, bits: int, least: float, step: float) -> None:
        given = np.asarray(levels)
        self._bits = check_integer("bits", bits, 1, MOST_BITS)
        if given.dtype.kind not in "iu" and given.size:
            raise TypeError(f"levels must hold integers, got dtype {given.dtype}; Grid.round makes them of numbers")
        if given.size and not 0 <= given.min() <= given.max() < 2**self._bits:
            raise ValueError(
                f"levels of {bits} bits must be from 0 to {2**self._bits - 1}, got {given.min()} to {given.max()}"
            )
        self._levels: NDArray[np.uint16] = given.astype(np.uint16)  # a copy: what was given may change
        self._least = as_float32("least", check_number("least", least, -math.inf))
        self._step = as_float32("step", check_number("step", step))
        # In float64 the product is exact and the sum is rounded once: the same numbers on every machine.
        with np.errstate(over="ignore"):
            self._values = np.asarray(self._least + self._step * self._levels.astype(np.float64), np.float32)
        if not np.isfinite(self._values).all():
            raise ValueError(f"least = {least} and step = {step} lead to numbers that float32 cannot hold; scale them")
        for array in (self._levels, self._values):
            array.flags.writeable = False

    @classmethod
    def round(cls, values: ArrayLike, bits: int) -> Grid:
        """Return the grid of so many bits from the least to the greatest of some numbers, and the nearest levels.

        Parameters
        ----------
        values : array-like of float
            Finite. Where all of them are equal the step is 0.
        bits : int
            1 to 16.

        Examples
        --------
        >>> from prodige.graph.grid import Grid
        >>> Grid.round([[1.0, 2.0], [1.4, 1.7]], bits=8).levels
        array([[  0, 255],
               [102, 178]], dtype=uint16)
        """
        given = np.asarray(values)
        bits = check_integer("bits", bits, 1, MOST_BITS)
        if given.dtype.kind not in "fiu":
            raise TypeError(f"values must hold real numbers, got dtype {given.dtype}")
        numbers = given.astype(np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError("values must be finite, and some are not; leave those out")
        least = as_float32("values", float(numbers.min(initial=np.inf))) if numbers.size else 0.0
        greatest = as_float32("values", float(numbers.max(initial=-np.inf))) if numbers.size else 0.0
        step = as_float32("the step between values", (greatest - least) / (2**bits - 1))
        # Among the least numbers of float32 the nearest step may be far too short for the last level to reach the end.
        if greatest - (least + step * (2**bits - 1)) > step / 2:
            step = float(np.nextafter(np.float32(step), np.float32(np.inf)))
        with np.errstate(over="ignore"):
            levels = np.rint((numbers - least) / step) if step > 0 else np.zeros(numbers.shape)
        return cls(np.clip(levels, 0, 2**bits - 1).astype(np.uint16), bits, least, step)

    def nearest(self, values: ArrayLike) -> Grid:
        """Return other numbers on the same grid, each the nearest to a given one.

        Examples
        --------
        >>> from prodige.graph.grid import Grid
        >>> Grid.round([0.0, 3.0], bits=2).nearest([0.9, 7.0]).values
        array([1., 3.], dtype=float32)
        """
        numbers = np.asarray(values, dtype=np.float64)
        levels = np.rint((numbers - self._least) / self._step) if self._step > 0 else np.zeros(numbers.shape)
        return Grid(np.clip(levels, 0, 2**self._bits - 1).astype(np.uint16), *self._numbers())

    def times(self, factor: float) -> Grid:
        """Return the grid whose numbers are so many times as large.

        Examples
        --------
        >>> from prodige.graph.grid import Grid
        >>> Grid.round([0.0, 3.0], bits=2).times(2.0).values
        array([0., 6.], dtype=float32)
        """
        return Grid(self._levels, self._bits, self._least * factor, self._step * factor)

    @property
    def levels(self) -> NDArray[np.uint16]:
        """Which of the numbers each one is; read-only."""
        return self._levels

    @property
    def bits(self) -> int:
        """Bits of a level."""
        return self._bits

    @property
    def least(self) -> float:
        """The number of level 0."""
        return self._least

    @property
    def step(self) -> float:
        """What a level adds."""
        return self._step

    @property
    def values(self) -> NDArray[np.float32]:
        """The numbers; read-only."""
        return self._values

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the levels and of the numbers."""
        return self._levels.shape

    def __repr__(self) -> str:
        return f"Grid(shape={self.shape}, bits={self.bits}, least={self.least:.4g}, step={self.step:.4g})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return self._numbers() == other._numbers() and np.array_equal(self.levels, other.levels)

    def __hash__(self) -> int:
        return hash((self._numbers(), self.levels.tobytes()))

    def __copy__(self) -> Grid:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Grid:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Grid, (self.levels, *self._numbers())

    def _numbers(self) -> tuple[int, float, float]:
        return self._bits, self._least, self._step


def as_float32(name: str, value: float) -> float:
    """Return the nearest number of 32 bits, and 0 for -0.

    Examples
    --------
    >>> from prodige.graph.grid import as_float32
    >>> as_float32("least", 0.1)
    0.10000000149011612
    """
    if abs(value) > float(np.finfo(np.float32).max):
        raise ValueError(f"{name} has {value}, which float32 cannot hold; scale it")
    return float(np.float32(value)) + 0.0
