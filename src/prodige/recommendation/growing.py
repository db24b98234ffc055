"""Growing: users and items that come later, or that are placed anew, in a graph that is there already."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack

from prodige._validation import MAX_INT32, check_ids
from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph
from prodige.recommendation.interactions import check_interactions
from prodige.recommendation.paths import Paths, attach_users, grow
from prodige.recommendation.placing import Placing
from prodige.recommendation.vectors import Vectors
from prodige.threads import count_threads

# What a row takes while it is placed: its id, its codes or its edge and its interactions, some of them more than once.
_BYTES_PER_ROW = 128
_MOST_BYTES = 1 << 30

Ids = NDArray[np.int64]


# -- products --------------------------------------------------------------------------------------------------------


def place_users(vectors: Vectors, n_users: int, users: Ids, rows: csr_array, n_jobs: int | None) -> Vectors:
    """Return a product of ``n_users`` in which some users are where their interactions put them."""
    if not vectors.stores_users:
        return vectors
    graph, before = vectors.graph, vectors.n_users
    placing = Placing(vectors.items, vectors.bias, vectors.constants)
    found, _ = placing.code(rows, vectors.books(of_users=True), count_threads(n_jobs))
    codes = np.zeros((n_users, graph.n_factors), np.int64)
    codes[:before] = graph.codes[:before]
    codes[users] = found
    levels = first_levels(graph)
    grid = Grid(np.concatenate([np.zeros(n_users, np.uint16), levels[before:]]), *grid_of(graph))
    return with_vertices(vectors, np.concatenate([codes, graph.codes[before:]]), grid, n_users)


def place_items(vectors: Vectors, n_items: int, items: Ids, rows: csr_array, n_jobs: int | None) -> Vectors:
    """Return a product of ``n_items`` in which some items are where those who interacted with them put them."""
    graph, n_users = vectors.graph, vectors.n_users
    partners = vectors.users(np.arange(n_users))
    level = np.full(n_users, vectors.constants.level, np.float32)
    placing = Placing(partners, level, vectors.constants)
    books = vectors.books(of_users=False)
    found, bias = placing.code(rows, books, count_threads(n_jobs), idle_at_mean=False)
    codes = np.zeros((n_items, graph.n_factors), np.int64)
    codes[: vectors.n_items] = vectors.item_codes
    codes[items] = found
    codes += np.array([factor.n_hubs for factor in graph.factors]) - np.array([len(book) for book in books])
    lengths = graph.lengths[n_users:]
    wish = np.zeros(n_items)
    wish[: vectors.n_items] = lengths
    # What nobody met is as far as any item.
    wish[items] = np.where(np.diff(rows.indptr) > 0, lengths.mean(dtype=np.float64) - bias, lengths.max())
    grid = graph.length_grid
    assert grid is not None
    levels = np.concatenate([np.zeros(n_users, np.uint16), grid.nearest(wish).levels])
    return with_vertices(
        vectors, np.concatenate([graph.codes[:n_users], codes]), Grid(levels, *grid_of(graph)), n_users
    )


def first_levels(graph: ProductGraph) -> NDArray[np.uint16]:
    """Return the levels of all lengths, which are on a grid."""
    assert graph.length_grid is not None
    return graph.length_grid.levels


def grid_of(graph: ProductGraph) -> tuple[int, float, float]:
    """Return bits, least number and step of the grid that lengths are on."""
    grid = graph.length_grid
    assert grid is not None
    return grid.bits, grid.least, grid.step


def with_vertices(vectors: Vectors, codes: NDArray[Any], lengths: Grid, n_users: int) -> Vectors:
    """Return the same factors with other vertices."""
    graph = vectors.graph
    product = ProductGraph.from_factors(graph.factors, codes, lengths, graph.power, graph.gauge)
    return Vectors(product, n_users, vectors.constants)


# -- graphs of the paper ---------------------------------------------------------------------------------------------


def attach_to_paths(paths: Paths, n_users: int, given: Ids, placed: Ids, rows: csr_array, n_jobs: int | None) -> Paths:
    """Return a graph in which some users are attached to the vertex from where their items are nearest."""
    graph, before = paths.graph, paths.n_users
    known = given[given < before]
    if known.size and not graph.n_hubs:
        raise ValueError(
            f"userids[{int((given < before).argmax())}] = {known[0]} is known, and the edges of known users "
            'are part of paths of others in a graph without hubs; fit anew, or use edges="product"'
        )
    shift = n_users - before
    anchors = paths.nearest_anchors(rows, n_jobs)
    anchors += np.where(anchors >= before, shift, 0)
    return Paths(attach_users(grow(graph, before, shift), n_users, placed, anchors), n_users)


# -- interactions that are kept --------------------------------------------------------------------------------------


def with_rows(rows: csr_array, n: int) -> csr_array:
    """Return rows with empty ones behind them, up to so many."""
    result = rows.copy()
    result.resize(n, rows.shape[1])
    return result


def replace_rows(kept: csr_array | None, n: int, places: Ids, rows: csr_array) -> csr_array | None:
    """Return interactions in which some rows are others; None where none are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.growing import replace_rows
    >>> replace_rows(csr_array(np.eye(2)), 3, np.array([0, 2]), csr_array([[0.0, 1.0], [1.0, 1.0]])).toarray()
    array([[0., 1.],
           [0., 1.],
           [1., 1.]])
    """
    if kept is None:
        return None
    order = np.arange(n)
    order[places] = kept.shape[0] + np.arange(places.size)
    return csr_array(vstack([kept, rows], format="csr")[order])


def replace_columns(kept: csr_array | None, n: int, places: Ids, rows: csr_array) -> csr_array | None:
    """Return interactions in which some columns are others, given as rows; None where none are kept."""
    found = replace_rows(None if kept is None else kept.T.tocsr(), n, places, rows)
    return None if found is None else found.T.tocsr()


# -- checks ----------------------------------------------------------------------------------------------------------


def check_new(name: str, ids: ArrayLike) -> Ids:
    """Return ids, which may be new, each of them once."""
    kind = name.removesuffix("ids")
    array = check_ids(name, ids, MAX_INT32 // 2, kind)
    values, counts = np.unique(array, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"{name} must name each {kind} once, got {values[counts > 1][0]} more than once")
    return array


def check_gap(name: str, ids: Ids, n: int, kind: str) -> None:
    """Refuse ids so far from those in use that what is between them would fill the memory."""
    n_skipped = int(ids.max(initial=-1)) + 1 - n - np.count_nonzero(ids >= n)
    n_bytes = n_skipped * _BYTES_PER_ROW
    if n_bytes > _MOST_BYTES:
        raise ValueError(
            f"{name}[{ids.argmax()}] = {ids.max()} skips {n_skipped} ids, which would be {kind} without "
            f"interactions and take about {n_bytes / 2**30:.1f} GiB; number new {kind} from {n} on"
        )


def check_rows(name: str, given: Any, n_rows: int, n_columns: int, rows: str, columns: str) -> csr_array:
    """Return interactions of some rows, of which any may be empty."""
    array = given if issparse(given) else np.asarray(given)
    if array.ndim == 1 and n_rows == 1:
        array = array.reshape(1, -1)
    if array.shape != (n_rows, n_columns):
        raise ValueError(
            f"{name} must have one row for each of the {n_rows} {rows} and a column for each of the {n_columns} "
            f"{columns}, got shape {array.shape}"
        )
    found = csr_array(array)
    return check_interactions(found, name) if found.count_nonzero() else csr_array(found.shape, dtype=np.float32)
