"""The parts of a product of graphs: what they may be, and what is made of them.

A product is factors, a code of each vertex in each factor, a length of each vertex and, where items share vertices, the
vertex of each item. :class:`~prodige.graph.product.ProductGraph` holds them and says what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige._validation import check_indices, check_number, check_weights
from prodige.graph.factors import Factor, as_factor
from prodige.graph.graph import Graph
from prodige.graph.grid import Grid

MAX_FACTORS = 256
MAX_TABLES = 2**27  # numbers of all tables of distances: half a gigabyte
MAX_IDLE = 2**22  # codes of factors with one hub, which take no room in a file but some in memory

AnyFactor = Graph | Factor | Grid | ArrayLike


Lengths = NDArray[np.float32] | Grid


def check_exponent(name: str, value: float) -> float:
    """Return a power or a gauge."""
    number = check_number(name, value)
    if not 1 <= number <= 2:
        raise ValueError(f"{name} must be between 1 and 2, got {value}")
    return number


def check_factors(factors: Sequence[AnyFactor]) -> tuple[Factor, ...]:
    """Return the factors of a product, as many as are possible."""
    try:
        given = list(factors)
    except TypeError:
        raise TypeError(
            f"factors must be a list of graphs or positions, got {factors!r} of type {type(factors).__name__}"
        ) from None
    check_count(given)
    return tuple(as_factor(f"factors[{m}]", factor) for m, factor in enumerate(given))


def check_count(factors: Sequence[Any]) -> None:
    """Refuse no factors, and more than a product can have."""
    if not 1 <= len(factors) <= MAX_FACTORS:
        raise ValueError(f"factors must be 1 to {MAX_FACTORS} graphs, got {len(factors)}")


def check_codes(codes: ArrayLike, n_hubs: list[int]) -> NDArray[np.int32]:
    """Return the hubs of vertices as int32 of their own, shape [V, M]."""
    array = np.asarray(codes)
    if array.ndim != 2 or array.shape[1] != len(n_hubs):
        raise ValueError(f"codes must have the shape [V, {len(n_hubs)}], a hub in each factor, got {array.shape}")
    if not len(array):
        raise ValueError("codes must have a row for each vertex, got none")
    if array.dtype.kind not in "iu":
        raise TypeError(f"codes must hold integers (hubs), got dtype {array.dtype}")
    bad = np.argwhere((array < 0) | (array >= np.array(n_hubs)))
    if bad.size:
        v, m = bad[0].tolist()
        raise ValueError(
            f"codes[{v}, {m}] = {array[v, m]} is not a hub: factor {m} has hubs 0 to {n_hubs[m] - 1} "
            f"({len(bad)} such entries)"
        )
    return frozen(np.array(array, dtype=np.int32, order="C"))


def check_lengths(lengths: ArrayLike | Grid, n_vertices: int) -> NDArray[np.float32] | Grid:
    """Return what vertices add to distances: a grid as it is, others as float32 of their own."""
    array = check_weights("lengths", lengths.values if isinstance(lengths, Grid) else lengths)
    if array.size != n_vertices:
        raise ValueError(f"lengths must have one entry per vertex, got {array.size} for {n_vertices} rows of codes")
    return lengths if isinstance(lengths, Grid) else frozen(array + np.float32(0))  # -0 becomes 0


def check_places(places: ArrayLike, n_vertices: int) -> NDArray[np.int32]:
    """Return the vertex of each item as int32 of their own; every vertex has one at least."""
    try:
        array = check_indices("places", places, n_vertices)
    except IndexError as error:
        raise ValueError(str(error)) from None
    empty = np.flatnonzero(np.bincount(array, minlength=n_vertices) == 0)
    if empty.size:
        raise ValueError(f"places has no item at vertex {empty[0]} ({empty.size} such vertices); leave them out")
    return frozen(array.copy())


def check_sizes(factors: Sequence[Factor], n_vertices: int, longest: float, power: float) -> None:
    """Refuse what would take too much memory, or distances that are no numbers; ``longest`` is the longest length."""
    sizes = [factor.n_hubs for factor in factors]
    if sum(size**2 for size in sizes) > MAX_TABLES:
        raise ValueError(
            f"factors have {sizes} hubs, and tables of their distances would have more than {MAX_TABLES} numbers; "
            "take fewer hubs"
        )
    if (sizes.count(1) - 1) * n_vertices > MAX_IDLE:
        raise ValueError(
            f"factors: {sizes.count(1)} of them have one hub, which adds nothing to any distance; leave them out"
        )
    bound = 2 * longest + sum(factor.reach**power for factor in factors)
    if bound > float(np.finfo(np.float32).max) / 2:
        raise ValueError(
            f"factors and lengths add up to {bound:.4g} before the gauge, which float32 cannot hold; scale them"
        )


def values_of(lengths: Lengths) -> NDArray[np.float32]:
    """Return lengths as numbers, whether they are on a grid or not."""
    return lengths.values if isinstance(lengths, Grid) else lengths


def take_lengths(lengths: Lengths, vertices: NDArray[Any]) -> Lengths:
    """Return the lengths of some vertices, on the grid that all are on."""
    if isinstance(lengths, Grid):
        return Grid(lengths.levels[vertices], lengths.bits, lengths.least, lengths.step)
    some: NDArray[np.float32] = lengths[vertices]
    return some


def join_lengths(lengths: Lengths, more: ArrayLike | Grid) -> Lengths:
    """Return lengths and more of them, on a grid only where both are on the same.

    Examples
    --------
    >>> from prodige.graph.grid import Grid
    >>> from prodige.graph.product_parts import join_lengths
    >>> grid = Grid.round([0.0, 3.0], bits=2)
    >>> join_lengths(grid, grid.nearest([2.0]))
    Grid(shape=(3,), bits=2, least=0, step=1)
    >>> join_lengths(grid, [2.5])
    array([0. , 3. , 2.5], dtype=float32)
    """
    if isinstance(lengths, Grid) and isinstance(more, Grid) and lengths.nearest(more.values) == more:
        return Grid(np.concatenate([lengths.levels, more.levels]), more.bits, more.least, more.step)
    added = more.values if isinstance(more, Grid) else np.asarray(more, np.float32)
    return np.concatenate([values_of(lengths), added])


def by_first_item(
    codes: NDArray[np.int32], lengths: Lengths, places: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Lengths, NDArray[np.int32] | None]:
    """Return codes, lengths and places with vertices in the order of their first items.

    So equal products are written alike. There are no places where no two items share a vertex.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.product_parts import by_first_item
    >>> codes, lengths, places = by_first_item(np.array([[5], [7]]), np.array([0.5, 0.75]), np.array([1, 0, 1]))
    >>> codes.ravel(), lengths, places
    (array([7, 5]), array([0.75, 0.5 ]), array([0, 1, 0], dtype=int32))
    """
    order = np.argsort(np.unique(places, return_index=True)[1], kind="stable")
    ordered = take_lengths(lengths, order)
    number = np.empty(order.size, dtype=np.int32)
    number[order] = np.arange(order.size)
    return (
        frozen(codes[order]),
        ordered if isinstance(ordered, Grid) else frozen(ordered),
        None if order.size == places.size else frozen(number[places]),
    )


def step_tables(factors: Sequence[Factor], power: float) -> NDArray[np.float32]:
    """Return what going from one hub to another adds to a sum, [H, H] for each factor, one after the other."""
    ends = np.cumsum([factor.n_hubs**2 for factor in factors])
    tables = np.empty(ends[-1], dtype=np.float32)  # filled in place: tables may take half a gigabyte
    for factor, end in zip(factors, ends, strict=True):
        steps = factor.distances().ravel()
        tables[end - steps.size : end] = steps if power == 1 else steps.astype(np.float64) ** power
    return tables


def numbers_of_places(n_items: int, n_vertices: int) -> int:
    """Return the numbers that say where items are: two of each that shares a vertex, or one of every item."""
    return min(2 * (n_items - n_vertices), n_items)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that cannot be written to."""
    array.flags.writeable = False
    return array


def same(mine: NDArray[Any] | Grid | None, yours: NDArray[Any] | Grid | None) -> bool:
    """Whether two parts are equal, and of the same kind."""
    if isinstance(mine, np.ndarray) and isinstance(yours, np.ndarray):
        return np.array_equal(mine, yours)
    return type(mine) is type(yours) and bool(mine == yours)
