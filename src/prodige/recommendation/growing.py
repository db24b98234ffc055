"""Growing: users and items that come later, or that are placed anew, in a graph that is there already."""

from __future__ import annotations

from typing import Any, NamedTuple

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


class Arrivals(NamedTuple):
    """Users, or items, that are to be placed, new ones or known ones."""

    n: int  # how many there are afterwards
    given: Ids  # those the caller named
    placed: Ids  # these, then new ones that were skipped
    rows: csr_array  # what those to be placed interacted with: nothing where they were skipped

    @classmethod
    def of(cls, ids: Ids, rows: csr_array, n_before: int) -> Arrivals:
        """Return who is to be placed, where there are so many already.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> from prodige.recommendation.growing import Arrivals
        >>> more = Arrivals.of(np.array([0, 4]), csr_array([[1.0, 0.0], [0.0, 1.0]]), n_before=3)
        >>> more.n, more.placed, more.rows.toarray().tolist()
        (5, array([0, 4, 3]), [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        """
        n = max(n_before, int(ids.max(initial=-1)) + 1)
        placed = np.concatenate([ids, np.setdiff1d(np.arange(n_before, n), ids)])
        all_rows = rows.copy()
        all_rows.resize(placed.size, rows.shape[1])
        return cls(n, ids, placed, all_rows)


def place_users(answers: Paths | Vectors, more: Arrivals, n_jobs: int | None) -> Paths | Vectors:
    """Return a graph in which some users are where their interactions put them."""
    if isinstance(answers, Paths):
        return attach_to_paths(answers, more, n_jobs)
    return code_users(answers, more, n_jobs) if answers.stores_users else answers


# -- products --------------------------------------------------------------------------------------------------------


def code_users(vectors: Vectors, more: Arrivals, n_jobs: int | None) -> Vectors:
    """Return a product in which some users have the codes that their interactions give them."""
    graph, before = vectors.graph, vectors.n_users
    found, _ = vectors.placing.code(more.rows, vectors.books(of_users=True), count_threads(n_jobs))
    codes = np.zeros((more.n, graph.n_factors), np.int64)
    codes[:before] = graph.codes[:before]
    codes[more.placed] = found
    levels = np.concatenate([np.zeros(more.n, np.uint16), grid_of(graph).levels[before:]])
    return with_vertices(vectors, np.concatenate([codes, graph.codes[before:]]), levels, more.n)


def place_items(vectors: Vectors, more: Arrivals, n_jobs: int | None) -> Vectors:
    """Return a product in which some items are where those who interacted with them put them."""
    graph, n_users = vectors.graph, vectors.n_users
    partners = vectors.users(np.arange(n_users))
    level = np.full(n_users, vectors.constants.level, np.float32)
    placing = Placing(partners, level, vectors.constants)
    books = vectors.books(of_users=False)
    found, bias = placing.code(more.rows, books, count_threads(n_jobs), idle_at_mean=False)
    codes = np.zeros((more.n, graph.n_factors), np.int64)
    codes[: vectors.n_items] = vectors.item_codes
    codes[more.placed] = found
    codes += np.array([factor.n_hubs for factor in graph.factors]) - np.array([len(book) for book in books])
    lengths = graph.lengths[n_users:]
    wish = np.zeros(more.n)
    wish[: vectors.n_items] = lengths
    # What nobody met is as far as any item.
    is_met = np.diff(more.rows.indptr) > 0
    wish[more.placed] = np.where(is_met, lengths.mean(dtype=np.float64) - bias, lengths.max())
    levels = np.concatenate([np.zeros(n_users, np.uint16), grid_of(graph).nearest(wish).levels])
    return with_vertices(vectors, np.concatenate([graph.codes[:n_users], codes]), levels, n_users)


def grid_of(graph: ProductGraph) -> Grid:
    """Return the grid that lengths are on."""
    assert graph.length_grid is not None
    return graph.length_grid


def with_vertices(vectors: Vectors, codes: NDArray[Any], levels: NDArray[np.uint16], n_users: int) -> Vectors:
    """Return the same factors, and the same grid of lengths, with other vertices."""
    graph, grid = vectors.graph, grid_of(vectors.graph)
    lengths = Grid(levels, grid.bits, grid.least, grid.step)
    return Vectors(graph.with_vertices(codes, lengths), n_users, vectors.constants)


# -- graphs of the paper ---------------------------------------------------------------------------------------------


def attach_to_paths(paths: Paths, more: Arrivals, n_jobs: int | None) -> Paths:
    """Return a graph in which some users are attached to the vertex from where their items are nearest."""
    graph, before = paths.graph, paths.n_users
    known = more.given[more.given < before]
    if known.size and not graph.n_hubs:
        raise ValueError(
            f"userids[{int((more.given < before).argmax())}] = {known[0]} is known, and the edges of known users "
            'are part of paths of others in a graph without hubs; fit anew, or use edges="product"'
        )
    shift = more.n - before
    anchors = paths.nearest_anchors(more.rows, n_jobs)
    anchors += np.where(anchors >= before, shift, 0)
    return Paths(attach_users(grow(graph, before, shift), more.n, more.placed, anchors), more.n)


# -- interactions that are kept --------------------------------------------------------------------------------------


def replace_rows(kept: csr_array | None, more: Arrivals) -> csr_array | None:
    """Return interactions in which some rows are others; None where none are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.growing import Arrivals, replace_rows
    >>> more = Arrivals.of(np.array([0, 2]), csr_array([[0.0, 1.0], [1.0, 1.0]]), n_before=2)
    >>> replace_rows(csr_array(np.eye(2)), more).toarray()
    array([[0., 1.],
           [0., 1.],
           [1., 1.]])
    """
    if kept is None:
        return None
    order = np.arange(more.n)
    order[more.placed] = kept.shape[0] + np.arange(more.placed.size)
    return csr_array(vstack([kept, more.rows], format="csr")[order])


def replace_columns(kept: csr_array | None, more: Arrivals) -> csr_array | None:
    """Return interactions in which some columns are others, given as rows; None where none are kept."""
    found = replace_rows(None if kept is None else kept.T.tocsr(), more)
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
