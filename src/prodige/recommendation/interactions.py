"""Who interacted with what: interactions of users and items, and what every recommender does with them.

A recommender learns scores, and all the rest follows from them: which items to leave out, which are best, in what
order. So a model only says how it is fitted and what the scores of a few users are; :class:`Recommender` does the rest
by blocks of users, in bounded memory, with the conventions of the library ``implicit``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from prodige import _core
from prodige._validation import MAX_INT32, check_ids, check_integer

if TYPE_CHECKING:
    from typing import Self

# Scores of one block of users: 4 MiB as float32, so that they stay in the cache.
_BLOCK = 1 << 20

# Largest answer with room for more items than there are: 1 GiB.
_MOST_BYTES = 1 << 30

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]


class Recommender(BaseEstimator, ABC):  # type: ignore[misc]
    """The interface of all recommenders; a new one implements ``fit`` and ``_scores``.

    ``fit`` calls :func:`check_interactions` and ends with ``_remember``, which keeps the sizes.

    Attributes
    ----------
    n_users_, n_items_ : int
        Of the interactions it was fitted to.
    n_features_in_ : int
        The items, which are the columns of what it was fitted to.

    Shapes:
        - users ``[U]``, items ``[I]``: ids, which are rows and columns of the interactions
        - scores ``[U, I]``: float32, higher is better

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from prodige.baselines import Popularity
    >>> user_items = csr_array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]])
    >>> model = Popularity().fit(user_items)
    >>> ids, scores = model.recommend(0, user_items[[0]], N=2)
    >>> ids, scores
    (array([2, 3], dtype=int32), array([1., 1.], dtype=float32))
    """

    @abstractmethod
    def fit(self, user_items: Any, y: Any = None) -> Self:
        """Learn from interactions.

        Parameters
        ----------
        user_items : sparse matrix or array-like, shape [U, I]
            Above 0 where a user interacted with an item.
        y : ignored
        """

    @abstractmethod
    def _scores(self, users: Ids) -> NDArray[Any]:
        """Return a new array with the scores of valid users for all items, shape [U, n_items_]; never nan."""

    def _remember(self, user_items: csr_array) -> None:
        """Keep the sizes of what the model was fitted to."""
        self.n_users_, self.n_items_ = map(int, user_items.shape)
        self.n_features_in_ = self.n_items_

    def scores(self, userid: ArrayLike, items: ArrayLike | None = None) -> Scores:
        """Return the scores of users for items, for all items when ``items`` is left out.

        Parameters
        ----------
        userid, items : int or array-like of int
            Ids; they may repeat.

        Returns
        -------
        ndarray of float32, shape [U, I]
            Higher is better; ``-inf`` where a model is sure that an item is nothing for a user.

        Examples
        --------
        >>> from prodige.baselines import Popularity
        >>> Popularity().fit([[1, 1, 0], [0, 1, 0]]).scores([0, 1], items=[1, 2])
        array([[2., 0.],
               [2., 0.]], dtype=float32)
        """
        check_is_fitted(self)
        rows = check_ids("userid", userid, self.n_users_, "user")
        columns = None if items is None else check_ids("items", items, self.n_items_, "item")
        result = np.empty((rows.size, self.n_items_ if columns is None else columns.size), dtype=np.float32)
        for part, block in self._blocks(rows):
            result[part] = block if columns is None else block[:, columns]
        return result

    def recommend(
        self,
        userid: ArrayLike,
        user_items: Any = None,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        *,
        items: ArrayLike | None = None,
    ) -> tuple[NDArray[np.int32], Scores]:
        """Return the items with the highest scores, best first; of equal ones, the smaller id first.

        Parameters
        ----------
        userid : int or array-like of int
            Whom to recommend to.
        user_items : sparse matrix or array-like, shape [U, n_items]; also [n_items] for a single user
            What these users, in this order, have interacted with: ``train[userid]``. Only needed to leave that out.
        N : int
            How many items to recommend to each. More than there are items is refused where the answer would take more
            than 1 GiB.
        filter_already_liked_items : bool
            Leave out what a user has interacted with.
        filter_items : array-like of int, optional
            Items to leave out for everybody; they may repeat.
        items : array-like of int, optional
            The only items to choose from, all when left out; they may repeat.

        Returns
        -------
        ids : ndarray of int32, shape [U, N], or [N] for a single user
        scores : ndarray of float32 of the same shape
            Where fewer than N items are left, rows end with id -1 and score ``-inf``. Items with a score of ``-inf``
            are never recommended.

        Raises
        ------
        IndexError
            If a user or an item is none of those the model was fitted to.
        ValueError
            If ``user_items`` is missing or has another shape.

        Examples
        --------
        >>> from prodige.baselines import Popularity
        >>> user_items = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]]
        >>> model = Popularity().fit(user_items)
        >>> model.recommend([0, 1, 2], user_items, N=3, filter_items=[3])[0]
        array([[ 2, -1, -1],
               [ 0, -1, -1],
               [ 0,  2, -1]], dtype=int32)
        """
        check_is_fitted(self)
        rows = check_ids("userid", userid, self.n_users_, "user")
        n = check_length(N, rows.size, self.n_items_, "item")
        interacted = self._check_interacted(user_items, rows.size) if filter_already_liked_items else None
        columns = None if items is None else np.unique(check_ids("items", items, self.n_items_, "item"))
        dropped = None if filter_items is None else check_ids("filter_items", filter_items, self.n_items_, "item")

        choice = Choice(n, interacted, columns, dropped)
        ids, scores = choice.make(self._blocks(rows), rows)
        return (ids[0], scores[0]) if np.ndim(userid) == 0 else (ids, scores)

    def _blocks(self, users: Ids) -> Iterator[tuple[slice, Scores]]:
        """Yield places among the users with the scores for all items, which the caller may overwrite."""
        for part in parts(users.size, _BLOCK // self.n_items_):
            yield part, np.ascontiguousarray(self._scores(users[part]), dtype=np.float32)

    def _check_interacted(self, user_items: Any, n_users: int) -> csr_array:
        """Return what the users have interacted with, one row for each."""
        if user_items is None:
            raise ValueError(
                "user_items is needed to leave out what users have interacted with: pass their rows of the "
                "interactions, user_items=train[userid], or filter_already_liked_items=False"
            )
        given = user_items if issparse(user_items) else np.asarray(user_items)
        check_real("user_items", given.dtype)
        if given.dtype == np.float16:
            given = given.astype(np.float32)  # no sparse array has it
        if given.ndim == 1 and n_users == 1:  # a row of a sparse array has one axis, one of a sparse matrix has two
            given = given.reshape(1, -1)
        if given.shape != (n_users, self.n_items_):
            raise ValueError(
                f"user_items must have one row for each of the {n_users} users and a column for each of the "
                f"{self.n_items_} items, got shape {given.shape}; pass train[userid]"
            )
        interacted = csr_array(given)
        if interacted.data.size and not interacted.data.all():
            interacted = interacted.copy()  # of a CSR array it is the caller's own
            interacted.eliminate_zeros()
        return interacted


def parts(n: int, size: int) -> Iterator[slice]:
    """Yield slices of so many rows, at least 1, that cover ``n``; none where there are none.

    Examples
    --------
    >>> from prodige.recommendation.interactions import parts
    >>> list(parts(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    step = max(1, size)
    for begin in range(0, n, step):
        yield slice(begin, min(begin + step, n))


# -- checks ----------------------------------------------------------------------------------------------------------


def check_interactions(user_items: Any, name: str = "user_items") -> csr_array:
    """Return interactions in one form, whatever form they came in; the input is left as it is.

    Parameters
    ----------
    user_items : scipy sparse matrix or array of any format, or array-like, shape [U, I]
        Finite numbers, above 0 where a user interacted with an item. Pairs that occur more than once are added up.
    name : str
        What to call it in messages.

    Returns
    -------
    scipy.sparse.csr_array of float32, shape [U, I]
        With sorted indices, each pair once, and no zeros.

    Raises
    ------
    TypeError
        If it does not hold real numbers.
    ValueError
        If a number is negative or not finite, or if there is nothing to learn from.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> from prodige.recommendation.interactions import check_interactions
    >>> pairs = coo_array(([True, True, True], ([0, 1, 1], [2, 0, 0])), shape=(2, 3))
    >>> check_interactions(pairs).toarray()
    array([[0., 0., 1.],
           [2., 0., 0.]], dtype=float32)
    """
    given: Any = user_items if issparse(user_items) else np.asarray(user_items)
    if given.ndim != 2:
        raise ValueError(
            f"{name} must have two axes, users and items, got shape {given.shape}; "
            "make it of pairs by scipy.sparse.coo_array((counts, (users, items)))"
        )
    check_real(name, given.dtype)
    if 0 in given.shape:
        raise ValueError(f"{name} must have users and items, got shape {given.shape}")
    if issparse(given):
        pairs = given.tocoo()
        rows, columns, values = pairs.row, pairs.col, pairs.data
    else:
        rows, columns = given.nonzero()
        values = given[rows, columns]
    with np.errstate(over="ignore"):
        counts = values.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(counts) & (counts >= 0)))
    if bad.size:
        first = bad[0]
        raise ValueError(
            f"{name}[{rows[first]}, {columns[first]}] = {values[first]} says nothing about a user and an item "
            f"({bad.size} such entries): values must be finite, not negative, and fit into float32"
        )
    result = csr_array((counts, (rows, columns)), shape=given.shape)
    result.sum_duplicates()
    result.eliminate_zeros()
    if result.nnz == 0:
        raise ValueError(f"{name} of shape {given.shape} has no interaction: there is nothing to learn from")
    return result


def check_real(name: str, dtype: np.dtype[Any]) -> None:
    """Refuse interactions that are not numbers."""
    if dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {dtype}; give counts, or 1 for each pair")


def check_length(n: int, n_rows: int, n_columns: int, kind: str) -> int:
    """Return how many to recommend to each; refuse an answer that is large for no reason.

    Examples
    --------
    >>> from prodige.recommendation.interactions import check_length
    >>> check_length(2**31 - 1, n_rows=1, n_columns=40, kind="item")
    Traceback (most recent call last):
        ...
    ValueError: N = 2147483647 makes an answer of 16.0 GiB, and there are 40 items; N = 40 gives all of them
    """
    length = check_integer("N", n, 1, MAX_INT32)
    n_bytes = 8 * n_rows * length  # an id and a score, 4 bytes each
    if length > n_columns and n_bytes > _MOST_BYTES:
        raise ValueError(
            f"N = {length} makes an answer of {n_bytes / 2**30:.1f} GiB, and there are {n_columns} {kind}s; "
            f"N = {n_columns} gives all of them"
        )
    return length


def check_scores(scores: Scores, users: Ids) -> None:
    """Refuse scores that are not numbers: nothing can be said about their order."""
    is_nan = np.isnan(scores.max(axis=1))  # of all numbers and nan, nan is the largest
    if is_nan.any():
        row = int(is_nan.argmax())
        item = int(np.isnan(scores[row]).argmax())
        raise ValueError(
            f"the model gives nan as the score of user {users[row]} for item {item}; it must give a number, or -inf"
        )


# -- the best of a row -----------------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """What to choose the best of: how many, and which items to leave out."""

    n: int
    interacted: csr_array | None  # what each row has interacted with, to be left out
    columns: Ids | None  # the only items to choose from; each once, in order
    dropped: Ids | None  # items to leave out for everybody

    def make(self, blocks: Iterable[tuple[slice, Scores]], rows: Ids) -> tuple[NDArray[np.int32], Scores]:
        """Return the best of blocks of scores, which may be overwritten, of all these rows."""
        ids = np.full((rows.size, self.n), -1, dtype=np.int32)
        scores = np.full((rows.size, self.n), -np.inf, dtype=np.float32)
        for part, block in blocks:
            check_scores(block, rows[part])
            if self.interacted is not None:
                leave_out(block, self.interacted.indptr[part.start : part.stop + 1], self.interacted.indices)
            if self.dropped is not None:
                block[:, self.dropped] = -np.inf
            if self.columns is not None:
                if not self.columns.size:
                    continue  # nothing to choose from
                block = np.ascontiguousarray(block[:, self.columns])
            found, values = best(block, min(self.n, block.shape[1]))
            width = found.shape[1]
            ids[part, :width] = found if self.columns is None else np.where(found < 0, -1, self.columns[found])
            scores[part, :width] = values
        return ids, scores


def leave_out(scores: Scores, indptr: NDArray[Any], indices: NDArray[Any]) -> None:
    """Set the scores of some items of each row to ``-inf``: those of a CSR array, or of a few of its rows."""
    row = np.repeat(np.arange(len(scores)), np.diff(indptr))
    scores[row, indices[indptr[0] : indptr[-1]]] = -np.inf


def best(scores: Scores, n: int) -> tuple[NDArray[np.int32], Scores]:
    """Return columns and values of the ``n`` largest entries of each row, largest first, then by column.

    Entries of ``-inf`` do not count; where too few are left, rows end with column -1 and ``-inf``.

    Parameters
    ----------
    scores : ndarray of float32, shape [U, I], C-contiguous
    n : int
        From 1 to I.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.interactions import best
    >>> best(np.array([[1, 3, 2, 3], [-np.inf, -np.inf, 5, -np.inf]], dtype=np.float32), 2)[0]
    array([[ 1,  3],
           [ 2, -1]], dtype=int32)
    """
    return _core.find_best(scores, n, None, None, 1)


__all__ = ["Recommender", "best", "check_interactions"]
