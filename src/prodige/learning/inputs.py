"""What learnable graphs are given: candidate edges, their initial values, and the vertices that are asked about."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from prodige import _core
from prodige._validation import MAX_EDGES, MAX_INT32, check_indices, check_integer, check_vector
from prodige.graph.edges import check_ends

IntArray = NDArray[np.int32]


def check_candidates(
    i: ArrayLike, j: ArrayLike, n_vertices: int | None, n_items: int | None
) -> tuple[IntArray, IntArray, int, int]:
    """Return both ends of the candidate edges, the number of vertices and that of items."""
    i, j = check_vector("i", i), check_vector("j", j)
    if i.size != j.size:
        raise ValueError(f"i and j must have the same length, got {i.size} and {j.size}")
    if i.size > MAX_EDGES:
        raise ValueError(f"{i.size} edges make more than 2**31 - 1 arcs; at most {MAX_EDGES} edges are possible")
    if n_vertices is not None:
        n_vertices = check_integer("n_vertices", n_vertices, 1, MAX_INT32 - 1)
    tails, heads = check_ends("i", i, n_vertices).copy(), check_ends("j", j, n_vertices).copy()
    if n_vertices is None:
        n_vertices = max(int(max(tails.max(initial=-1), heads.max(initial=-1))) + 1, n_items or 1)
    n_items = n_vertices if n_items is None else check_integer("n_items", n_items, 1, n_vertices)
    pairs = np.minimum(tails, heads).astype(np.int64) * n_vertices + np.maximum(tails, heads)
    loops = np.flatnonzero(tails == heads)
    if loops.size:
        raise ValueError(f"edge {loops[0]} joins vertex {tails[loops[0]]} to itself; remove self-loops")
    order = np.argsort(pairs, kind="stable")
    twice = np.flatnonzero(np.diff(pairs[order]) == 0)
    if twice.size:
        first, second = order[twice[0]], order[twice[0] + 1]
        raise ValueError(
            f"edges {first} and {second} both join {tails[first]} and {heads[first]} ({twice.size} such pairs); "
            "candidates must be unique: prodige.metric.candidates makes them so"
        )
    return tails, heads, n_vertices, n_items


def check_vertices(name: str, values: Any, n_vertices: int, device: torch.device) -> IntArray:
    """Return vertex ids, a tensor of which must be where the parameters are: on the CPU."""
    if isinstance(values, torch.Tensor) and values.device != device:
        raise ValueError(
            f"{name} are on device {values.device}, the embedding is on {device}; move them with {name}.to('{device}')"
        )
    if device.type != "cpu":
        raise ValueError(f"shortest paths are searched on the CPU, the embedding is on {device}")
    if isinstance(values, torch.Tensor):
        values = values.detach().numpy()
    return check_indices(name, values, n_vertices)


def check_values(name: str, values: ArrayLike, n_values: int, most: float, owner: str = "edge") -> NDArray[np.float64]:
    """Return one float64 per edge or other owner, each between 0 and ``most``; a single number stands for all."""
    array = np.asarray(values.detach() if isinstance(values, torch.Tensor) else values)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim == 0:
        array = np.broadcast_to(array, (n_values,))
    if array.shape != (n_values,):
        raise ValueError(f"{name} must be a number or have one entry per {owner} ({n_values}), got shape {array.shape}")
    bad = np.flatnonzero(~((array >= 0) & (array <= most) & np.isfinite(array)))
    if bad.size:
        limits = "finite and 0 or more" if math.isinf(most) else f"in [0, {most:g}]"
        raise ValueError(f"{name}[{bad[0]}] = {array[bad[0]]} ({bad.size} such entries) must be {limits}")
    return array.astype(np.float64)


def warn_if_apart(n_items: int, tails: IntArray, heads: IntArray, n_vertices: int) -> None:
    """Warn if the edges leave the items in several parts."""
    components = _core.Topology(n_vertices, tails, heads).components[:n_items]
    n_parts = np.unique(components).size
    if n_parts > 1:
        warnings.warn(
            f"the edges leave the items in {n_parts} parts; distances between parts are `unreachable`. "
            "Add candidates that join them: random edges or hubs.",
            stacklevel=3,
        )
