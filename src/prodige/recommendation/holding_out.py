"""Holding out: how good a model is, by interactions that it was not fitted to.

A few items of some users are left out, a model is fitted to the rest, and the held-out ones are looked for among all
items that their users have not met. What counts is how often an item would be found were it looked for among sampled
others, as the paper does it (the expected hit rates at 5 and at 10), and for a quarter whether and where it is found in
short lists of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import binom

from prodige.recommendation.sides import Floats, Sides

_N_HELD_OUT = 8000  # interactions that settings are judged by
_MOST_SHARE = 0.1  # of a user's interactions that are held out
_MOST_INTERACTIONS = 1_500_000  # of the users that are looked at
_MOST_USERS = 8000  # that codes are tried on
_BLOCK = 1 << 22  # scores at a time
_N_SAMPLED = 100
_LENGTHS = (5, 10)  # of sampled lists
_RECALL_LENGTH, _GAIN_LENGTH = 20, 10  # of lists of all items
_FULL_WEIGHT = 0.25  # of these beside sampled ones


@dataclass(frozen=True)
class HeldOut:
    """Interactions without some, and those.

    Attributes
    ----------
    sides : Sides
        Without those held out; of a sample of users where there are many.
    train : csr_array
        The same, as a matrix.
    users, items : ndarray of int64, shape [n]
        The pairs held out, in the order of the users.
    """

    sides: Sides
    train: csr_array
    users: NDArray[np.int64]
    items: NDArray[np.int64]

    def thinned(self, random: np.random.RandomState) -> tuple[NDArray[np.int64], HeldOut]:
        """Return some users, all that are asked about among them, and what is held out of these."""
        asked = np.unique(self.users)
        others = np.setdiff1d(np.arange(self.train.shape[0]), asked)
        chosen = np.sort(np.concatenate([asked, random.permutation(others)[: max(0, _MOST_USERS - asked.size)]]))
        train = self.train[chosen]
        return chosen, HeldOut(Sides.of(train), train, np.searchsorted(chosen, self.users), self.items)

    def judge(self, users: Floats, items: Floats, bias: Floats | None = None) -> float:
        """Return how well vectors of all users and items rank what was held out; higher is better."""
        total = 0.0
        step = max(1, _BLOCK // len(items))
        rates = expected_hits()
        for start in range(0, len(self.users), step):
            rows, held = self.users[start : start + step], self.items[start : start + step]
            scores = users[rows] @ items.T
            if bias is not None:
                scores += bias
            met = self.train[rows]
            row = np.repeat(np.arange(rows.size), np.diff(met.indptr))
            target = np.take_along_axis(scores, held[:, None], axis=1)
            scores[row, met.indices] = -np.inf
            ahead = np.count_nonzero(scores >= target, axis=1) - 1
            n_others = len(items) - 1 - np.diff(met.indptr)
            share = ahead / np.maximum(n_others, 1)
            sampled = float(np.interp(share, np.linspace(0, 1, rates.size), rates).sum())
            gain = float((1 / np.log2(2 + ahead))[ahead < _GAIN_LENGTH].sum())
            full = (gain + np.count_nonzero(ahead < _RECALL_LENGTH)) / 2
            total += (1 - _FULL_WEIGHT) * sampled + _FULL_WEIGHT * full
        return total / max(len(self.users), 1)


def expected_hits() -> NDArray[np.float64]:
    """Return how often an item is found among sampled ones, by the share of all items that are ahead of it.

    Examples
    --------
    >>> from prodige.recommendation.holding_out import expected_hits
    >>> hits = expected_hits()
    >>> float(hits[0]), float(hits[-1])
    (1.0, 0.0)
    """
    shares = np.linspace(0, 1, 2001)
    found = [binom.cdf(length - 1, _N_SAMPLED, shares) for length in _LENGTHS]
    return np.asarray(np.mean(found, axis=0))


def hold_out(interactions: csr_array, random: np.random.RandomState) -> HeldOut | None:
    """Return interactions without a few of some users; None where nobody has two.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.holding_out import hold_out
    >>> held = hold_out(csr_array(np.ones((5, 4), np.float32)), np.random.RandomState(0))
    >>> held.users, held.train.nnz
    (array([0, 1, 2, 3, 4]), 15)
    """
    sizes = np.diff(interactions.indptr)
    if interactions.nnz > _MOST_INTERACTIONS:
        order = random.permutation(sizes.size)
        chosen = np.sort(order[: np.searchsorted(np.cumsum(sizes[order]), _MOST_INTERACTIONS) + 1])
        interactions, sizes = interactions[chosen], sizes[chosen]
    able = np.flatnonzero(sizes >= 2)
    if not able.size:
        return None
    asked = np.sort(random.permutation(able)[:_N_HELD_OUT])
    wanted = -(-_N_HELD_OUT // asked.size)
    n_held = np.clip((sizes[asked] * _MOST_SHARE).astype(np.int64), 1, wanted)
    # Of each user's interactions the first few in a random order.
    row = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((random.random_sample(row.size), row))
    rank = np.arange(row.size) - np.repeat(interactions.indptr[:-1], sizes)
    most = np.zeros(sizes.size, np.int64)
    most[asked] = n_held
    places = np.sort(order[rank < most[row]])
    users, items = row[places], interactions.indices[places].astype(np.int64)
    train = interactions.copy()
    train.data[places] = 0
    train.eliminate_zeros()
    return HeldOut(Sides.of(train), train, users, items)
