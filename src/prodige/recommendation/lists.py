"""How good lists of recommendations are, where users have any number of held-out items; and ways to hold them out.

Among all items that a user has not interacted with, Recall@k is the share of the held-out ones in the first k, of as
many as fit there, and NDCG@k weighs each by 1 / log₂(1 + rank), over the best that was possible. Both are means over
users, with the standard error of those means: users are what is sampled, and intervals are by users.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from prodige._validation import MAX_INT32, check_integer
from prodige.recommendation.interactions import best, check_interactions, check_scores, leave_out, parts
from prodige.recommendation.ranking import Model

_BLOCK = 1 << 22  # scores at a time
_NORMAL = 1.96  # standard errors on either side of a mean that an interval of 95 % takes


@dataclass(frozen=True)
class Mean:
    """A mean over users.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.lists import Mean
    >>> mean = Mean.of(np.array([0.0, 1.0, 1.0, 0.0]))
    >>> mean.value, round(mean.error, 3), [round(end, 2) for end in mean.interval]
    (0.5, 0.289, [-0.07, 1.07])
    """

    value: float
    error: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Mean:
        """Return the mean of values, one of each user, and its standard error."""
        spread = float(values.std(ddof=1)) if values.size > 1 else float("nan")
        return cls(float(values.mean()), spread / float(np.sqrt(values.size)))

    @property
    def interval(self) -> tuple[float, float]:
        """An interval that the mean over all users is in, 19 times of 20."""
        return self.value - _NORMAL * self.error, self.value + _NORMAL * self.error


@dataclass(frozen=True)
class ListReport:
    """What :func:`evaluate_lists` found.

    Attributes
    ----------
    recall, ndcg : dict of Mean
        By k.
    n_users : int
        Users with held-out items.
    """

    recall: dict[int, Mean]
    ndcg: dict[int, Mean]
    n_users: int

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name, each with its standard error, ready for JSON."""
        figures: dict[str, Any] = {"n_users": self.n_users}
        for name, means in (("Recall", self.recall), ("NDCG", self.ndcg)):
            for k, mean in means.items():
                figures |= {f"{name}@{k}": mean.value, f"{name}@{k} error": mean.error}
        return figures


def evaluate_lists(
    model: Model,
    train: Any,
    held_out: Any,
    recall_at: Iterable[int] = (20,),
    ndcg_at: Iterable[int] = (10, 20, 100),
) -> ListReport:
    """Recommend to all users with held-out items, among all items that they have not interacted with.

    Parameters
    ----------
    model
        Anything with ``scores(users, items=None)``.
    train, held_out : sparse matrix or array-like, shape [U, I]
        What users have interacted with before, and what to look for.
    recall_at, ndcg_at : iterable of int
        Lengths of lists.

    Examples
    --------
    >>> from prodige.baselines import Popularity
    >>> from prodige.recommendation.lists import evaluate_lists
    >>> train, held_out = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]], [[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]]
    >>> report = evaluate_lists(Popularity().fit(train), train, held_out, recall_at=[1], ndcg_at=[1])
    >>> report.n_users, report.recall[1].value
    (2, 1.0)
    """
    known = check_interactions(train, "train")
    wanted = check_interactions(held_out, "held_out")
    if wanted.shape != known.shape:
        raise ValueError(f"held_out must have the shape of train, {known.shape}, got {wanted.shape}")
    both = known.multiply(wanted)
    if both.nnz:
        user = int(both.tocoo().row[0])
        raise ValueError(f"held_out and train share an item of user {user}; take it out of one of them")
    sizes = {"recall": check_sizes("recall_at", recall_at), "ndcg": check_sizes("ndcg_at", ndcg_at)}
    longest = min(max(map(max, sizes.values())), known.shape[1])
    users = np.flatnonzero(np.diff(wanted.indptr))
    hits = np.zeros((users.size, longest), dtype=bool)
    for part in parts(users.size, _BLOCK // known.shape[1]):
        rows = users[part]
        scores = np.ascontiguousarray(model.scores(rows), dtype=np.float32).copy()
        check_scores(scores, rows)
        met = known[rows]
        leave_out(scores, met.indptr, met.indices)
        found, _ = best(scores, longest)
        is_wanted = wanted[rows].toarray() > 0
        hits[part] = np.take_along_axis(is_wanted, np.maximum(found, 0), axis=1) & (found >= 0)
    n_wanted = np.diff(wanted.indptr)[users]
    return ListReport(
        {k: Mean.of(hits[:, :k].sum(axis=1) / np.minimum(n_wanted, k)) for k in sizes["recall"]},
        {k: Mean.of(gains(hits, k, n_wanted)) for k in sizes["ndcg"]},
        int(users.size),
    )


def gains(hits: NDArray[np.bool_], k: int, n_wanted: NDArray[Any]) -> NDArray[np.float64]:
    """Return the NDCG of the first k of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.lists import gains
    >>> gains(np.array([[True, False, True]]), 3, np.array([2])).round(3)
    array([0.92])
    """
    weights = 1 / np.log2(2 + np.arange(max(k, hits.shape[1])))
    ideal = np.concatenate([[0.0], np.cumsum(weights)])[np.minimum(n_wanted, k)]
    return np.asarray((hits[:, :k] * weights[: hits[:, :k].shape[1]]).sum(axis=1) / ideal)


# -- splits ----------------------------------------------------------------------------------------------------------


def split_random(
    user_items: Any, share: float = 0.2, random_state: int | np.random.RandomState | None = None
) -> tuple[csr_array, csr_array]:
    """Hold out a share of all interactions, drawn at random; every user keeps one at least.

    Returns
    -------
    train, held_out : scipy.sparse.csr_array of float32, shape [U, I]

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.lists import split_random
    >>> train, held_out = split_random(np.ones((5, 10)), share=0.3, random_state=0)
    >>> train.nnz + held_out.nnz, held_out.nnz
    (50, 15)
    """
    whole = check_interactions(user_items)
    check_share(share)
    random = check_random_state(random_state)
    key = random.random_sample(whole.nnz)
    return take_out(whole, key, round(share * whole.nnz))


def split_by_time(user_items: Any, times: ArrayLike, share: float = 0.2) -> tuple[csr_array, csr_array]:
    """Hold out the latest interactions of all users together; every user keeps its first.

    Parameters
    ----------
    user_items : csr_array or array-like, shape [U, I]
        Interactions, each pair once.
    times : array-like of float, shape [n]
        When each took place, in the order of ``csr_array(user_items)`` with sorted indices.
    share : float
        Of all interactions.

    Examples
    --------
    >>> from prodige.recommendation.lists import split_by_time
    >>> train, held_out = split_by_time([[1, 1, 0], [1, 1, 1]], [5, 9, 1, 2, 8], share=0.4)
    >>> held_out.toarray()
    array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    whole = check_interactions(user_items)
    check_share(share)
    when = np.asarray(times, dtype=np.float64)
    if when.shape != (whole.nnz,) or not np.isfinite(when).all():
        raise ValueError(f"times must be {whole.nnz} finite numbers, one for each interaction, got shape {when.shape}")
    return take_out(whole, -when, round(share * whole.nnz))


def take_out(whole: csr_array, key: NDArray[np.float64], n: int) -> tuple[csr_array, csr_array]:
    """Return interactions without the ``n`` of least key, and those; the greatest of each user stays."""
    row = np.repeat(np.arange(whole.shape[0]), np.diff(whole.indptr))
    order = np.lexsort((key, row))
    last = order[whole.indptr[1:][np.diff(whole.indptr) > 0] - 1]
    is_free = np.ones(key.size, dtype=bool)
    is_free[last] = False
    ranked = np.argsort(key, kind="stable")
    chosen = ranked[is_free[ranked]][:n]
    held = np.zeros(key.size, dtype=bool)
    held[chosen] = True
    train, held_out = whole.copy(), whole.copy()
    train.data[held], held_out.data[~held] = 0, 0
    train.eliminate_zeros()
    held_out.eliminate_zeros()
    return train, held_out


def check_share(share: float) -> None:
    """Refuse a share that leaves nothing on one side."""
    if not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
        raise ValueError(f"share must be a number between 0 and 1, got {share!r}")


def check_sizes(name: str, sizes: Iterable[int]) -> list[int]:
    """Return lengths of lists."""
    found = [check_integer(name, size, 1, MAX_INT32) for size in sizes]
    if not found:
        raise ValueError(f"{name} must name at least one length, got none")
    return found


__all__ = ["ListReport", "Mean", "evaluate_lists", "split_by_time", "split_random"]
