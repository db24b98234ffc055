"""Grids: numbers are as near as their bits allow, the same everywhere, and never change."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from prodige.graph import Grid

NUMBERS = arrays_of.arrays(
    np.float32, arrays_of.array_shapes(max_dims=2, max_side=6), elements=st.floats(-(2.0**40), 2.0**40, width=32)
)


@given(values=NUMBERS, bits=st.integers(1, 16))
def test_rounding_is_off_by_half_a_step(values: Any, bits: int) -> None:
    grid = Grid.round(values, bits)
    assert (grid.shape, grid.bits) == (values.shape, bits)
    assert grid.levels.dtype == np.uint16
    assert grid.values.dtype == np.float32
    exact = values.astype(float)
    step = (exact.max() - exact.min()) / (2**bits - 1)
    tiny = float(np.finfo(np.float32).smallest_subnormal)  # no step is nearer to the right one than half of it
    assert np.abs(grid.values.astype(float) - exact).max() <= grid.step / 2 + 1e-6 * np.abs(exact).max()
    assert grid.least == exact.min()
    assert grid.step == pytest.approx(step, rel=1e-6, abs=tiny)
    assert grid.values.min() == exact.min()
    assert grid.levels.min() == 0
    if step > 1e5 * tiny:
        assert grid.levels.max() == 2**bits - 1


def test_levels_reach_the_end_where_float32_has_few_numbers() -> None:
    """The nearest step of 13 bits is 1.4349e-42 instead of 1.4351e-42: 8,191 of them would end four steps early."""
    least = float(np.finfo(np.float32).tiny)
    for bits in (12, 13, 16):
        grid = Grid.round([least, 0.0], bits)
        assert abs(float(grid.values[0]) - least) <= grid.step / 2


@given(
    levels=st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=9),
    least=st.floats(-(2.0**20), 2.0**20, width=32),
    step=st.floats(0, 2.0**10, width=32),
)
def test_values_are_the_nearest_to_exact_ones(levels: list[int], least: float, step: float) -> None:
    """In float64 the product is exact, so there is next to nothing left to round before float32."""
    grid = Grid(levels, 16, least, step)
    for value, level in zip(grid.values.tolist(), levels, strict=True):
        exact = Fraction(least) + Fraction(step) * level
        nearest = min(
            (Fraction(float(np.nextafter(np.float32(value), np.float32(side)))) for side in (-np.inf, np.inf)),
            key=lambda other: abs(other - exact),
        )
        tolerance = Fraction(float(np.spacing(np.float64(abs(value) + abs(least)))))
        assert abs(Fraction(value) - exact) <= abs(nearest - exact) + tolerance


def test_equal_values() -> None:
    grid = Grid.round([2.5, 2.5], bits=3)
    assert (grid.least, grid.step, grid.values.tolist()) == (2.5, 0, [2.5, 2.5])
    assert Grid.round([-0.0], bits=1).values.tobytes() == np.zeros(1, np.float32).tobytes()
    assert Grid.round(np.zeros((0, 2)), bits=4).shape == (0, 2)


def test_objects() -> None:
    grid = Grid([[0, 3], [1, 2]], 2, 0.5, 0.1)
    assert repr(grid) == "Grid(shape=(2, 2), bits=2, least=0.5, step=0.1)"
    assert pickle.loads(pickle.dumps(grid)) == grid
    assert hash(pickle.loads(pickle.dumps(grid))) == hash(grid)
    assert copy.copy(grid) is copy.deepcopy(grid) is grid
    others = [
        Grid([[0, 3], [1, 1]], 2, 0.5, 0.1),
        Grid([[0, 3], [1, 2]], 3, 0.5, 0.1),
        Grid([[0, 3], [1, 2]], 2, 0.6, 0.1),
        Grid([[0, 3], [1, 2]], 2, 0.5, 0.2),
        Grid([0, 3, 1, 2], 2, 0.5, 0.1),
    ]
    assert grid not in others
    assert grid != "grid"


def test_grids_cannot_change() -> None:
    levels = np.array([0, 1], np.uint16)
    grid = Grid(levels, 1, 0.0, 1.0)
    levels[:] = 0
    assert grid.values.tolist() == [0, 1]
    for array in (grid.levels, grid.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        grid.bits = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([4], 2, 0, 1), ValueError, "levels of 2 bits must be from 0 to 3, got 4 to 4"),
        (([-1], 2, 0, 1), ValueError, "got -1 to -1"),
        (([0.5], 2, 0, 1), TypeError, "levels must hold integers, got dtype float64; Grid.round"),
        (([1], 0, 0, 1), ValueError, "bits must be between 1 and 16, got 0"),
        (([1], 17, 0, 1), ValueError, "bits must be between 1 and 16, got 17"),
        (([1], 2.0, 0, 1), TypeError, "bits must be an integer"),
        (([1], 2, np.nan, 1), ValueError, "least must be a finite number"),
        (([1], 2, "a", 1), TypeError, "least must be a number"),
        (([1], 2, 0, -1), ValueError, "step must be a finite number of 0 or more, got -1"),
        (([1], 2, 1e39, 1), ValueError, "least has 1e\\+39, which float32 cannot hold"),
        (([3], 2, 3e38, 3e37), ValueError, "lead to numbers that float32 cannot hold"),
    ],
)
def test_bad_grids(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Grid(*arguments)


@pytest.mark.parametrize(
    ("values", "bits", "error", "message"),
    [
        ([0.0, np.inf], 4, ValueError, "values must be finite"),
        ([np.nan], 4, ValueError, "values must be finite"),
        (["a"], 4, TypeError, "values must hold real numbers"),
        ([1e300], 4, ValueError, "values has 1e\\+300, which float32 cannot hold"),
        ([-3e38, 3e38], 1, ValueError, "the step between values has 6.*which float32 cannot hold"),
        ([1.0], 20, ValueError, "bits must be between 1 and 16"),
    ],
)
def test_bad_values(values: Any, bits: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Grid.round(values, bits)
