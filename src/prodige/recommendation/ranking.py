"""How well a recommender ranks: one item of each user is held out, and looked for among others.

There are two ways to ask. The paper ranks the held-out item among a few sampled ones that the user has not interacted
with, which is easy on models and can reorder them; every figure of that kind says ``sampled``. Ranking it among all
items that the user has not interacted with is what a recommender does; those figures say ``full``. Ties count against
the model, so that giving all items the same score is worth nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from prodige._validation import MAX_INT32, check_ids, check_integer
from prodige.recommendation.interactions import check_interactions, check_scores, parts

# Scores of one block of users: 16 MiB as float32.
_BLOCK = 1 << 22

Ids = NDArray[np.int64]


class Model(Protocol):
    """Anything that gives the scores of some users for all items."""

    def scores(self, users: Ids, items: None = None, /) -> NDArray[np.float32]:
        """Return scores, shape [U, n_items]; higher is better."""


@dataclass(frozen=True)
class Ranking:
    """Figures of one way to rank, means over users.

    Attributes
    ----------
    hit_ratio : dict of float
        By k: the share of users whose held-out item is among the first k.
    ndcg : dict of float
        By k: 1 / log₂(1 + rank) of the held-out item, 0 beyond rank k.
    mrr : float
        Mean reciprocal rank.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.ranking import Ranking
    >>> Ranking.of(np.array([1, 3, 15, 1]), (2, 10)).to_dict()
    {'HR@2': 0.5, 'HR@10': 0.75, 'NDCG@2': 0.5, 'NDCG@10': 0.625, 'MRR': 0.6}
    """

    hit_ratio: dict[int, float]
    ndcg: dict[int, float]
    mrr: float

    @classmethod
    def of(cls, ranks: NDArray[Any], k: Iterable[int]) -> Ranking:
        """Return the figures of some ranks, which count from 1."""
        gain = 1 / np.log2(1 + ranks)
        hits = {size: ranks <= size for size in k}
        return cls(
            {size: float(hit.mean()) for size, hit in hits.items()},
            {size: float((gain * hit).mean()) for size, hit in hits.items()},
            float((1 / ranks).mean()),
        )

    def to_dict(self) -> dict[str, float]:
        """Return all figures by the names they have in tables."""
        return (
            {f"HR@{size}": value for size, value in self.hit_ratio.items()}
            | {f"NDCG@{size}": value for size, value in self.ndcg.items()}
            | {"MRR": self.mrr}
        )


@dataclass(frozen=True)
class RankingReport:
    """What :func:`evaluate_ranking` found.

    Attributes
    ----------
    sampled : Ranking or None
        Among the sampled negatives of each user, the protocol of the paper; None where there are none.
    full : Ranking
        Among all items that the user has not interacted with.
    n_users, n_items : int
        Users with a held-out item that were asked about, and items.
    n_negatives : int
        Sampled items that each held-out one is ranked among; 0 where there are none.

    Examples
    --------
    >>> from prodige.recommendation.ranking import Ranking, RankingReport
    >>> report = RankingReport(None, Ranking({10: 0.5}, {10: 0.25}, 0.2), n_users=4, n_items=20, n_negatives=0)
    >>> report.to_dict()["full"]
    {'HR@10': 0.5, 'NDCG@10': 0.25, 'MRR': 0.2}
    """

    sampled: Ranking | None
    full: Ranking
    n_users: int
    n_items: int
    n_negatives: int

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name, ready for JSON."""
        return {
            "sampled": None if self.sampled is None else self.sampled.to_dict(),
            "full": self.full.to_dict(),
            "n_users": self.n_users,
            "n_items": self.n_items,
            "n_negatives": self.n_negatives,
        }


# -- splits ----------------------------------------------------------------------------------------------------------


def split_leave_one_out(
    user_items: Any, random_state: int | np.random.RandomState | None = None
) -> tuple[csr_array, NDArray[np.int64]]:
    """Hold out one item of each user who has two or more.

    Parameters
    ----------
    user_items : sparse matrix or array-like, shape [U, I]
        Interactions.
    random_state : int, RandomState or None
        Seed of the choice; all items of a user are equally likely.

    Returns
    -------
    train : scipy.sparse.csr_array of float32, shape [U, I]
        The interactions without those held out.
    held_out : ndarray of int64, shape [U]
        The item held out; -1 for users with fewer than two, who keep what they have.

    Examples
    --------
    >>> from prodige.recommendation.ranking import split_leave_one_out
    >>> train, held_out = split_leave_one_out([[1, 1, 1], [0, 1, 0]], random_state=0)
    >>> held_out
    array([ 1, -1])
    >>> train.toarray()
    array([[1., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """
    whole = check_interactions(user_items)
    random = check_random_state(random_state)
    sizes = np.diff(whole.indptr)
    chosen = whole.indptr[:-1] + (random.random_sample(sizes.size) * sizes).astype(np.int64)
    chosen = chosen[sizes >= 2]
    held_out = np.full(sizes.size, -1, dtype=np.int64)
    held_out[sizes >= 2] = whole.indices[chosen]
    train = whole.copy()
    train.data[chosen] = 0
    train.eliminate_zeros()
    return train, held_out


def sample_negatives(
    user_items: Any,
    held_out: ArrayLike,
    n_negatives: int = 99,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.int64]:
    """Draw items that users have not interacted with, to rank the held-out one among.

    Parameters
    ----------
    user_items : sparse matrix or array-like, shape [U, I]
        Interactions, with or without those held out.
    held_out : array-like of int, shape [U]
        As from :func:`split_leave_one_out`.
    n_negatives : int
        Items for each user; no item twice, all of them equally likely.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    ndarray of int64, shape [U, n_negatives]
        -1 in the rows of users without a held-out item.

    Raises
    ------
    ValueError
        If there are not as many items that a user has not interacted with.

    Examples
    --------
    >>> from prodige.recommendation.ranking import sample_negatives
    >>> sample_negatives([[1, 1, 0, 0], [0, 1, 0, 0]], [2, -1], n_negatives=1)
    array([[ 3],
           [-1]])
    """
    interacted = check_interactions(user_items)
    n_users, n_items = interacted.shape
    held = check_held_out(held_out, n_users, n_items)
    n = check_integer("n_negatives", n_negatives, 1, MAX_INT32)
    if n >= n_items:  # before there is a table of them
        raise ValueError(f"n_negatives = {n} is too many: there are {n_items} items; sample fewer, or rank among all")
    random = check_random_state(random_state)
    negatives = np.full((n_users, n), -1, dtype=np.int64)
    is_new = np.ones(n_items, dtype=bool)
    for user in np.flatnonzero(held >= 0):
        known = interacted.indices[interacted.indptr[user] : interacted.indptr[user + 1]]
        is_new[known] = is_new[held[user]] = False
        new = np.flatnonzero(is_new)
        is_new[known] = is_new[held[user]] = True
        if new.size < n:
            raise ValueError(
                f"n_negatives = {n} is too many: there are {new.size} items that user {user} has not interacted with; "
                "sample fewer, or rank among all"
            )
        negatives[user] = new[sample_without_replacement(new.size, n, random_state=random)]
    return negatives


# -- evaluation ------------------------------------------------------------------------------------------------------


def evaluate_ranking(
    model: Model,
    train: Any,
    held_out: ArrayLike,
    negatives: ArrayLike | None = None,
    k: int | Iterable[int] = (5, 10),
    users: ArrayLike | None = None,
) -> RankingReport:
    """Rank the held-out items of users: 1 + the number of others whose score is as high or higher.

    Parameters
    ----------
    model
        Anything with ``scores(users, items=None)``, such as every
        :class:`prodige.recommendation.interactions.Recommender`.
    train : sparse matrix or array-like, shape [U, I]
        What users have interacted with before; not among the items to rank.
    held_out : array-like of int, shape [U]
        The item to look for; -1 for users to leave out.
    negatives : array-like of int, shape [U, n], optional
        Items to rank it among, as the paper does. Without them there is only the full ranking.
    k : int or iterable of int
        Lengths of the lists that hit ratio and NDCG look at.
    users : array-like of int, optional
        The users to ask about; all when left out.

    Raises
    ------
    ValueError
        If a held-out item is among what the user has interacted with or among the negatives, or if a score is nan.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import Popularity
    >>> from prodige.recommendation.ranking import evaluate_ranking
    >>> train = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]])
    >>> report = evaluate_ranking(Popularity().fit(train), train, [1, 2, -1], k=1)
    >>> report.full
    Ranking(hit_ratio={1: 1.0}, ndcg={1: 1.0}, mrr=1.0)
    """
    interacted = check_interactions(train, "train")
    n_users, n_items = interacted.shape
    held = check_held_out(held_out, n_users, n_items)
    sizes = [check_integer("k", size, 1, MAX_INT32) for size in (k if isinstance(k, Iterable) else [k])]
    if not sizes:
        raise ValueError("k must name at least one length, got none; (5, 10) is usual")
    asked = np.arange(n_users) if users is None else check_ids("users", users, n_users, "user")
    asked = asked[held[asked] >= 0]
    if not asked.size:
        raise ValueError("held_out has no item of any user that is asked about: all are -1")
    others = None if negatives is None else check_negatives(negatives, held, asked, n_items)

    full: list[Ids] = []
    sampled: list[Ids] = []
    for part in parts(asked.size, _BLOCK // n_items):
        rows = asked[part]
        scores = np.asarray(model.scores(rows), dtype=np.float32)
        if scores.shape != (rows.size, n_items):
            raise ValueError(
                f"model gives scores of shape {scores.shape} where {(rows.size, n_items)} were asked for; "
                "it must be fitted to the same users and items as train"
            )
        check_scores(scores, rows)
        target = np.take_along_axis(scores, held[rows, None], axis=1)
        full.append(full_ranks(scores, target, interacted[rows], held[rows], rows))
        if others is not None:
            sampled.append(1 + np.count_nonzero(np.take_along_axis(scores, others[rows], axis=1) >= target, axis=1))
    return RankingReport(
        sampled=Ranking.of(np.concatenate(sampled), sizes) if sampled else None,
        full=Ranking.of(np.concatenate(full), sizes),
        n_users=asked.size,
        n_items=n_items,
        n_negatives=0 if others is None else others.shape[1],
    )


def full_ranks(
    scores: NDArray[np.float32], target: NDArray[np.float32], interacted: csr_array, held: Ids, users: Ids
) -> NDArray[np.int64]:
    """Return the ranks among the items that are not in ``met``, whose rows are those of the scores."""
    row = np.repeat(np.arange(users.size), np.diff(interacted.indptr))
    is_held = interacted.indices == held[row]
    if is_held.any():
        user = users[row[is_held.argmax()]]
        raise ValueError(
            f"held_out[{user}] is among the items that user {user} has interacted with in train; take it out of train, "
            "as split_leave_one_out does"
        )
    is_ahead = scores[row, interacted.indices] >= target[row, 0]
    interacted_ahead = np.bincount(row[is_ahead], minlength=users.size)
    # The held-out item itself is counted, as the 1 that ranks begin with.
    return np.asarray(np.count_nonzero(scores >= target, axis=1) - interacted_ahead)


def check_held_out(values: ArrayLike, n_users: int, n_items: int) -> Ids:
    """Return held-out items, one of each user, -1 where there is none."""
    array = np.asarray(values)
    if array.shape != (n_users,):
        raise ValueError(f"held_out must have one item of each of the {n_users} users, got shape {array.shape}")
    return check_items("held_out", array, n_items)


def check_negatives(values: ArrayLike, held: Ids, asked: Ids, n_items: int) -> Ids:
    """Return negatives, shape [U, n], of which those of the users asked about are items."""
    array = np.asarray(values)
    if array.ndim != 2 or array.shape[0] != held.size or array.shape[1] == 0:
        raise ValueError(
            f"negatives must have a row of items for each of the {held.size} users, got shape {array.shape}"
        )
    array = check_items("negatives", array, n_items)
    bad = asked[((array[asked] < 0) | (array[asked] == held[asked, None])).any(axis=1)]
    if bad.size:
        raise ValueError(
            f"negatives[{bad[0]}] must be items other than the held-out one, {held[bad[0]]}, "
            f"got {array[bad[0]].tolist()}; sample_negatives draws such items"
        )
    return array


def check_items(name: str, array: NDArray[Any], n_items: int) -> Ids:
    """Return items, among which -1 stands for none."""
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers (item ids), got dtype {array.dtype}")
    wide = array.astype(np.int64)
    if (bad := np.argwhere((wide < -1) | (wide >= n_items))).size:
        where = tuple(bad[0].tolist())
        raise IndexError(
            f"{name}[{', '.join(map(str, where))}] = {wide[where]} is not an item: "
            f"there are items 0 to {n_items - 1}, and -1 for none"
        )
    return wide


__all__ = ["Ranking", "RankingReport", "evaluate_ranking", "sample_negatives", "split_leave_one_out"]
