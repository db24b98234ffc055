"""Checks on what users pass in. Every message names the argument, shows the offending value and says what to do."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_INT32 = 2**31 - 1
MAX_EDGES = MAX_INT32 // 2  # an edge is two arcs, and arcs are counted in 32 bits

# Vertices without edges cost nothing to ask for, and memory at the first question: a bound for those of a graph beyond
# two vertices for each edge. So many take a fifth of a gigabyte.
MAX_ISOLATED = 2**22
_VERTEX_BYTES = 50  # of a graph that has been asked, as measured


def find_isolated(n_vertices: int, n_edges: int) -> str | None:
    """Say what so many vertices for so few edges would take, if it is too much.

    Examples
    --------
    >>> from prodige._validation import find_isolated
    >>> find_isolated(1000, 0)
    >>> find_isolated(2**31 - 2, 1)
    '2147483646 vertices for 1 edges would take 107.4 GB; at most 4194304 more than two for each edge are possible'
    """
    if n_vertices <= 2 * n_edges + MAX_ISOLATED:
        return None
    return (
        f"{n_vertices} vertices for {n_edges} edges would take {n_vertices * _VERTEX_BYTES / 1e9:.1f} GB; "
        f"at most {MAX_ISOLATED} more than two for each edge are possible"
    )


def check_integer(name: str, value: Any, least: int, most: int) -> int:
    """Return ``value`` as an int between ``least`` and ``most``."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be between {least} and {most}, got {number}")
    return number


def check_number(name: str, value: Any, least: float = 0.0, above: bool = False) -> float:
    """Return ``value`` as a finite float of at least ``least``, or ``above`` it.

    Examples
    --------
    >>> from prodige._validation import check_number
    >>> check_number("lambda_", 2)
    2.0
    >>> check_number("learning_rate", 0, above=True)
    Traceback (most recent call last):
        ...
    ValueError: learning_rate must be a finite number above 0, got 0
    """
    if not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    number = float(value)
    if not (math.isfinite(number) and (number > least if above else number >= least)):
        raise ValueError(
            f"{name} must be a finite number {f'above {least:g}' if above else f'of {least:g} or more'}, got {value}"
        )
    return number


def check_vector(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return ``values`` as a one-dimensional array, a single number as a vector of one."""
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}; flatten it first")
    return array


def check_indices(name: str, values: ArrayLike, n_vertices: int | None = None) -> NDArray[np.int32]:
    """Return vertex ids as contiguous int32; below ``n_vertices`` where that is known."""
    array = check_vector(name, values)
    if array.size == 0:
        return np.empty(0, np.int32)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must hold integers (vertex ids), got dtype {array.dtype} such as {array[0]!r}; "
            f"convert with {name}.astype(np.int64) if these are ids"
        )
    limit = MAX_INT32 if n_vertices is None else n_vertices
    bad = np.flatnonzero((array < 0) | (array >= limit))
    if bad.size:
        where = f"{name}[{bad[0]}] = {array[bad[0]]}"
        if n_vertices is None:
            raise ValueError(f"{where} is not a vertex id: ids are from 0 to {MAX_INT32 - 1}")
        raise IndexError(f"{where} is not a vertex: the graph has vertices 0 to {n_vertices - 1}")
    return np.ascontiguousarray(array, dtype=np.int32)


def kept_items(items: ArrayLike, n_items: int) -> NDArray[np.int64]:
    """Return the items that are left when some are removed, ascending; one at least.

    Examples
    --------
    >>> from prodige._validation import kept_items
    >>> kept_items([1, 1], 4)
    array([0, 2, 3])
    """
    is_kept = np.ones(n_items, dtype=bool)
    is_kept[check_indices("items", items, n_items)] = False
    if not is_kept.any():
        raise ValueError(f"items are all {n_items} items there are; leave one at least")
    return np.flatnonzero(is_kept)


def check_ids(name: str, values: ArrayLike, n: int, kind: str) -> NDArray[np.int64]:
    """Return ids of items or users, after making sure that they are.

    Examples
    --------
    >>> from prodige._validation import check_ids
    >>> check_ids("users", 3, 10, "user")
    array([3])
    >>> check_ids("users", [3, 10], 10, "user")
    Traceback (most recent call last):
        ...
    IndexError: users[1] = 10 is not a user: the model was fitted to users 0 to 9
    """
    array = check_vector(name, values)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers ({kind} ids), got dtype {array.dtype} such as {array[0]!r}")
    bad = np.flatnonzero((array < 0) | (array >= n))
    if bad.size:
        raise IndexError(
            f"{name}[{bad[0]}] = {array[bad[0]]} is not {'an' if kind[0] in 'aeio' else 'a'} {kind}: "
            f"the model was fitted to {kind}s 0 to {n - 1}"
        )
    return array.astype(np.int64)


def check_weights(name: str, values: ArrayLike) -> NDArray[np.float32]:
    """Return edge weights as contiguous float32, finite and not negative."""
    array = check_vector(name, values)
    if array.size == 0:
        return np.empty(0, np.float32)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype} such as {array[0]!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        weights = np.ascontiguousarray(array, dtype=np.float32)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(
            f"{name}[{bad[0]}] = {array[bad[0]]} cannot be an edge weight ({bad.size} such entries): "
            "weights must be finite, not negative, and fit into float32"
        )
    return weights


def check_radius(name: str, value: Any) -> float:
    """Return a distance bound; infinity is allowed."""
    try:
        radius = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if not radius >= 0:
        raise ValueError(f"{name} must be 0 or more, got {radius}")
    return radius
