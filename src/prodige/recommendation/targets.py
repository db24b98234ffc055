"""What users would want: their interactions, spread over the neighbourhood of the items they interacted with.

A few dozen interactions say little about thousands of items, and a graph fitted to them alone learns them by heart.
What other users did with the same items says more: an item is wanted as much as it is near, by cosine, to what was
interacted with. How strongly popularity is discounted, and how sharp preferences are, is measured on the data: every
interaction is predicted from the others of its user, as if it had never happened.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from prodige.progress import Monitor
from prodige.recommendation.interactions import parts

# What is tried: exponents of the popularity of an item in the cosine, and of the similarity in the preference.
DISCOUNTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
SHARPNESS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)

# The share of every preference that follows popularity alone: what nobody near has interacted with is not impossible.
BACKGROUND = 0.02

# What is usual, where there is nothing to measure or no time for it.
_USUAL = 0.5, 1.0

# Shares of a time limit that may be over when what is measured, and what groups want, is known. Where there is a limit,
# work is cut into pieces of so many users or groups, between which the clock is looked at.
_MEASURED = 0.4
_SPREAD = 0.55
_PIECE = 64

# Multiplications that a measurement may take, and the users that it needs at least.
_WORK = 4e9
_FEWEST_USERS = 200
_MOST_USERS = 1500

# Numbers in one block of intermediate results: 128 MiB as float32.
_BLOCK = 1 << 25

Rows = NDArray[np.float32]


class Preferences:
    """Preferences of groups of users for all items, as distributions.

    Parameters
    ----------
    user_items : csr_array, shape [U, I]
        Interactions; only whether there is one counts.
    random : RandomState
        Draws the users that are measured.
    monitor : Monitor, optional
        Where its time runs out, or it was stopped, less is measured, and groups want what they interacted with and no
        more.

    Attributes
    ----------
    popularity : ndarray of float32, shape [I]
        The share of all interactions; a little above 0 for items nobody has interacted with.
    discount, sharpness : float
        What was found best.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.targets import Preferences
    >>> interacted = csr_array(np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1]], dtype=np.float32))
    >>> preferences = Preferences(interacted, np.random.RandomState(0))
    >>> target = preferences.of_groups(csr_array(np.array([[0, 0, 1, 0]], dtype=np.float32)))  # of user 2
    >>> int(target[0].argmax())
    1
    """

    def __init__(self, user_items: csr_array, random: np.random.RandomState, monitor: Monitor | None = None) -> None:
        self._monitor = Monitor(0) if monitor is None else monitor
        self._interacted = csr_array((np.ones(user_items.nnz, np.float32), user_items.indices, user_items.indptr))
        self._interacted.resize(user_items.shape)
        counts = np.asarray(self._interacted.sum(axis=0)).ravel()
        smoothed = counts + 0.5
        self.popularity = (smoothed / smoothed.sum()).astype(np.float32)
        self._counts = np.maximum(counts, 1)
        self.discount, self.sharpness = self._measure(random)
        self._similarity = self._normalised(self.discount)

    def of_groups(self, groups: csr_array) -> Rows:
        """Return what groups of users want, shape [groups, I]; each row adds up to 1.

        Parameters
        ----------
        groups : csr_array, shape [groups, U]
            The weight of each user in each group.
        """
        profiles = csr_array(groups @ self._interacted)
        target = np.empty(profiles.shape, dtype=np.float32)
        for part in parts(profiles.shape[0], self._at_once()):
            late = self._monitor.due(_SPREAD)
            target[part] = profiles[part].toarray() if late else self._spread(profiles[part], self._similarity)
        # Relative to the largest of a row, so that no power underflows.
        target /= np.maximum(target.max(axis=1, keepdims=True), np.finfo(np.float32).tiny)
        np.power(target, self.sharpness, out=target)
        target /= np.maximum(target.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
        target *= 1 - BACKGROUND
        target += BACKGROUND * self.popularity
        target /= target.sum(axis=1, keepdims=True)  # rows without a neighbour follow popularity alone
        return target

    def _normalised(self, discount: float) -> csr_array:
        """Return interactions such that products of two columns are likenesses of items.

        A user counts once, however many items it interacted with: otherwise the busiest decide what is alike.
        """
        n_interacted = np.maximum(np.diff(self._interacted.indptr), 1)
        rows, columns = diags_array(n_interacted**-0.5), diags_array(self._counts**-discount)
        return csr_array(rows @ self._interacted @ columns).astype(np.float32)

    @staticmethod
    def _spread(profiles: csr_array, similarity: csr_array) -> Rows:
        """Return the similarity of all items to the items of each profile, an item not counting for itself."""
        # By way of the users: the matrix of all items would be large, and full.
        users = (similarity @ profiles.T).toarray()
        spread = np.ascontiguousarray((similarity.T @ users).T, dtype=np.float32)
        own = np.asarray(similarity.multiply(similarity).sum(axis=0)).ravel()
        spread -= (profiles @ diags_array(own)).toarray()
        return np.maximum(spread, 0, out=spread)

    def _measure(self, random: np.random.RandomState) -> tuple[float, float]:
        """Return the discount and the sharpness that predict interactions best from the others of a user."""
        n_users = int(np.clip(_WORK / (2 * len(DISCOUNTS) * self._interacted.nnz), _FEWEST_USERS, _MOST_USERS))
        able = np.flatnonzero(np.diff(self._interacted.indptr) > 1)  # with one item alone there are no others
        if able.size == 0:
            return _USUAL
        users = np.sort(random.permutation(able)[:n_users])
        ranks = np.zeros(len(DISCOUNTS))
        losses = np.zeros((len(DISCOUNTS), len(SHARPNESS)))
        n_judged = 0
        for part in parts(users.size, self._at_once()):
            judged = []
            for discount in DISCOUNTS:
                if self._monitor.due(_MEASURED):
                    break
                judged.append(self._judge(users[part], discount))
            if len(judged) < len(DISCOUNTS):
                break  # of these users, not all discounts can be compared
            ranks += [rank for rank, _ in judged]
            losses += [loss for _, loss in judged]
            n_judged += 1
        if not n_judged:
            return _USUAL
        # The order of items is what counts, and sharpness does not change it.
        row = int(ranks.argmin())
        return DISCOUNTS[row], SHARPNESS[int(losses[row].argmin())]

    def _at_once(self) -> int:
        """Return how many rows to work on at once."""
        most = _BLOCK // int(max(self._interacted.shape))
        return most if self._monitor.max_time is None else min(most, _PIECE)

    def _judge(self, users: NDArray[np.int64], discount: float) -> tuple[float, NDArray[np.float64]]:
        """Return the sums over users of the log rank of their own items, and of -log probability by sharpness."""
        interacted = self._interacted[users]
        n_interacted = np.diff(interacted.indptr)
        rows = np.repeat(np.arange(users.size), n_interacted)
        spread = self._spread(interacted, self._normalised(discount)).astype(np.float64)
        # That a user interacted with two items makes them alike; without it, as if the interaction had never happened.
        weight = self._counts[interacted.indices] ** -discount
        others = np.bincount(rows, weight)[rows] - weight
        scores = np.maximum(spread[rows, interacted.indices] - weight * others / n_interacted[rows], 0)
        spread[rows, interacted.indices] = 0  # only items that were not interacted with compete
        largest = np.maximum(spread.max(axis=1), np.finfo(np.float32).tiny)
        spread /= largest[:, None]
        scores /= largest[rows]
        spread.sort(axis=1)
        ahead = np.concatenate(
            [
                row.size - np.searchsorted(row, own)
                for row, own in zip(spread, np.split(scores, interacted.indptr[1:-1]), strict=True)
            ]
        )
        rank = (np.bincount(rows, np.log1p(ahead)) / n_interacted).sum()
        losses = []
        for sharpness in SHARPNESS:
            rivals = (spread**sharpness).sum(axis=1)[rows]
            powers = scores**sharpness
            probability = powers / np.maximum(rivals + powers, np.finfo(np.float32).tiny)
            loss = -np.log((1 - BACKGROUND) * probability + BACKGROUND * self.popularity[interacted.indices])
            losses.append((np.bincount(rows, loss) / n_interacted).sum())
        return float(rank), np.array(losses)


__all__ = ["Preferences"]
