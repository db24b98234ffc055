"""Codes: users and items as one word of each codebook, fitted to a teacher's scores.

The error of a row, given the other side's present words Y, is a quadratic form of its vector x: with a star on what is
the teacher's, A = α YᵀY + Σ_met w y yᵀ and t = α YᵀY* x* + Σ_met w s* y, it is xᵀA x − 2 t·x. The core compares all
words of a codebook at once by it, codebook after codebook. Words follow from sums of A and t over their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.graph.grid import Grid
from prodige.recommendation.balance import Balanced
from prodige.recommendation.plan import Plan
from prodige.recommendation.price import Price, word_prices
from prodige.recommendation.sides import Floats, Side, Sides, gram, padded

_START_ROUNDS = 6  # of k-means
_START_ROWS = 4096  # that k-means looks at, and as many more for each word
_ROWS_PER_WORD = 25
_N_SWEEPS = 2
_RIDGE = 0.01  # towards the old word
_STEP = 0.5

N_PRICES = 4  # that codes and words are settled with
_MOST_TRIES = 30  # of prices for the last codes, where none makes them fit

Codes = NDArray[np.uint16]


@dataclass(frozen=True)
class Words:
    """Codes of one side and its codebooks.

    Attributes
    ----------
    codes : ndarray of uint16, shape [rows, M]
    books : tuple of ndarray of float32, shapes [H, d_m]
    prices : tuple of ndarray of float32, shapes [H], optional
        What each word costs a row beside its error.
    """

    codes: Codes
    books: tuple[Floats, ...]
    prices: tuple[Floats, ...] = ()

    def priced(self, price: float) -> Words:
        """Return the same words where a bit costs so much."""
        return replace(self, prices=word_prices(self.codes, self.books, price))

    def vectors(self) -> Floats:
        """Return the vectors that words make, shape [rows, d]."""
        return np.concatenate([book[column] for book, column in zip(self.books, self.codes.T, strict=True)], axis=1)


@dataclass(frozen=True)
class Target:
    """What a side's scores should be: the teacher's of that side, and of its partners.

    Attributes
    ----------
    own, partners : ndarray of float32, shapes [rows, n] and [partners, n]
        Padded to a multiple of 8.
    scores : ndarray of float32, shape [interactions]
        Products of the two where they met, in the order of the side.
    alpha : float
    """

    own: Floats
    partners: Floats
    scores: Floats
    alpha: float


class Coding:
    """Codes of both sides in the making.

    Parameters
    ----------
    sides : Sides
    balanced : Balanced
        What a teacher thinks of them.
    plan : Plan
    alpha : float
        Weight of every pair, met or not.
    store_users : bool
        Otherwise users are vectors, and only items have codes.
    random : RandomState
    n_jobs : int
        Threads.
    price : Price, optional
        Of bits, where codes are coded.
    """

    def __init__(
        self,
        sides: Sides,
        balanced: Balanced,
        plan: Plan,
        alpha: float,
        store_users: bool,
        random: np.random.RandomState,
        n_jobs: int,
        price: Price | None = None,
    ) -> None:
        self.sides = sides
        self.plan = plan
        self.balanced = balanced.take(plan.columns)
        self.n_jobs = n_jobs
        self.price = price
        spectrum, sizes = self.balanced.spectrum, plan.sizes
        # All that the teacher knows, also in directions that no word has.
        self.targets = make_targets(sides, balanced, alpha, n_jobs)
        self.items = start_words(self.balanced.items, spectrum, sizes, plan.item_words, random, n_jobs)
        self.users: Words | None = None
        if store_users:
            self.users = start_words(self.balanced.users, spectrum, sizes, plan.user_words, random, n_jobs)

    def _user_step(self) -> tuple[Step, Words]:
        assert self.users is not None
        words = self.users if self.price is None else self.users.priced(self.price.of_user)
        return facing(self.sides.users, self.targets[0], self.items.vectors()), words

    def _item_step(self) -> tuple[Step, Words]:
        users = self.balanced.users if self.users is None else self.users.vectors()
        words = self.items if self.price is None else self.items.priced(self.price.of_item)
        return facing(self.sides.items, self.targets[1], users), words

    def alternate(self) -> float:
        """Choose codes and words of users, then of items; return the error of items, less what no words change."""
        if self.users is not None:
            self.users, _ = renew(*self._user_step(), _STEP, self.n_jobs)
        self.items, loss = renew(*self._item_step(), _STEP, self.n_jobs)
        return loss / len(self.items.codes)

    def settle(self, n_rounds: int) -> Iterator[float]:
        """Alternate so many times and yield errors; again, with another price, where bits are far from their limit."""
        start = self.users, self.items
        for _ in range(N_PRICES):
            self.users, self.items = start
            for _ in range(n_rounds):
                yield self.alternate()
            if self.price is None or self.price.suits(self.price.measure(self.users, self.items)):
                return

    def finish(self, is_late: Callable[[], bool] = bool) -> tuple[Words | None, Words] | None:
        """Return users and items with words as a file has them, and the best codes for those.

        Where bits have a price, codes are chosen until they fill what they may; None where they do not fit.
        """
        self.items = rounded(self.items, self.plan.word_bits)
        if self.users is not None:
            self.users = rounded(self.users, self.plan.word_bits)
        if (price := self.price) is None:
            return self._recoded(self.users, self.items)
        start, best, most = (self.users, self.items), None, 0.0
        for n_tried in range(_MOST_TRIES):
            # Always from the same codes, and so by the same frequencies: bits then fall where the price rises.
            found = self._recoded(*start)
            bits = price.measure(*found)
            if most < bits <= price.limit:
                best, most = found, bits
            is_full = most >= (1 - price.left) * price.limit or price.is_least
            if best is not None and (is_full or n_tried >= price.most_tries or is_late()):
                break
            price.narrow(bits)
        return best

    def _recoded(self, users: Words | None, items: Words) -> tuple[Words | None, Words]:
        self.users, self.items = users, items
        self.items = recode(*self._item_step(), self.n_jobs)
        if self.users is not None:
            self.users = recode(*self._user_step(), self.n_jobs)
        return self.users, self.items


def make_targets(sides: Sides, balanced: Balanced, alpha: float, n_jobs: int) -> tuple[Target, Target]:
    """Return the targets of users and of items."""
    users, items = padded(balanced.users), padded(balanced.items)
    return (
        Target(users, items, sides.users.fit.scores(users, items, n_jobs), alpha),
        Target(items, users, sides.items.fit.scores(items, users, n_jobs), alpha),
    )


def start_words(
    rows: Floats,
    spectrum: NDArray[np.float64],
    sizes: NDArray[np.int32],
    n_words: tuple[int, ...],
    random: np.random.RandomState,
    n_jobs: int,
) -> Words:
    """Return words by k-means in each group of directions, where an error costs what the spectrum says.

    It is the same step as later, for rows that met nothing: A is diag(spectrum), and words are means.
    """
    chosen = np.sort(random.permutation(len(rows))[: _START_ROWS + _ROWS_PER_WORD * max(n_words)])
    sample = np.ascontiguousarray(rows[chosen])
    first = sample[random.permutation(len(sample))[: max(n_words)]]
    parts = np.split(first, np.cumsum(sizes)[:-1], axis=1)
    books = tuple(np.ascontiguousarray(part[:n]) for part, n in zip(parts, n_words, strict=True))
    words = Words(np.zeros((len(sample), len(sizes)), np.uint16), books)
    weight = padded(np.diag(spectrum))
    weight = np.ascontiguousarray(np.pad(weight, ((0, weight.shape[1] - len(weight)), (0, 0))))
    for _ in range(_START_ROUNDS):
        words, _ = renew(alone(sample, weight), words, 1.0, n_jobs)
    return recode(alone(rows, weight), Words(np.zeros((len(rows), len(sizes)), np.uint16), words.books), n_jobs)


# Takes words, whether sums are wanted, and threads; gives codes, loss and sums.
Step = Callable[[Words, bool, int], tuple[Codes, float, NDArray[np.float64], NDArray[np.float64]]]


def alone(rows: Floats, weight: Floats) -> Step:
    """Return the step of rows that met nothing and should be what they are."""
    wide = padded(rows)
    fit = _core.RowFit(np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 1)
    nobody = np.zeros((1, wide.shape[1]), np.float32)
    extra = wide @ weight
    # Groups have nothing to do with each other: one sweep is enough.
    return lambda words, with_sums, n_jobs: choose(
        fit, nobody, weight, None, extra, words, with_sums, n_jobs, n_sweeps=1
    )


def facing(side: Side, target: Target, partners: Floats) -> Step:
    """Return the step of a side whose partners are where their words put them."""
    present = padded(partners)
    every = (target.alpha * gram(present)).astype(np.float32)
    mixed = (target.alpha * gram(target.partners, present)).astype(np.float32)
    extra = np.ascontiguousarray(target.own @ mixed)
    return lambda words, with_sums, n_jobs: choose(
        side.fit, present, every, target.scores, extra, words, with_sums, n_jobs
    )


def choose(
    fit: _core.RowFit,
    vectors: Floats,
    every: Floats,
    scores: Floats | None,
    extra: Floats,
    words: Words,
    with_sums: bool,
    n_jobs: int,
    n_sweeps: int = _N_SWEEPS,
) -> tuple[Codes, float, NDArray[np.float64], NDArray[np.float64]]:
    """Ask the core for the best words."""
    sizes = np.array([book.shape[1] for book in words.books], np.int32)
    n_words = np.array([len(book) for book in words.books], np.int32)
    entries = np.concatenate([book.ravel() for book in words.books])
    prices = np.concatenate(words.prices) if words.prices else None
    return fit.choose_words(
        vectors, every, scores, None, extra, sizes, n_words, entries, prices, words.codes, n_sweeps, with_sums, n_jobs
    )


def renew(step: Step, words: Words, share: float, n_jobs: int) -> tuple[Words, float]:
    """Return codes chosen anew with words moved by a share of the way to where their rows want them, and the loss."""
    codes, loss, matrices, rights = step(words, True, n_jobs)
    books = []
    for book in words.books:
        n, size = book.shape
        matrix, matrices = matrices[: n * size**2].reshape(n, size, size), matrices[n * size**2 :]
        right, rights = rights[: n * size].reshape(n, size), rights[n * size :]
        # A little of the mean matrix holds a word where it is, and one that no row has stays as it was.
        held = _RIDGE * (matrix.mean(axis=0) + np.eye(size) * (np.trace(matrix.mean(axis=0)) / size * 1e-3 + 1e-12))
        wish = np.linalg.solve(matrix + held, (right + book @ held)[:, :, None])[:, :, 0]
        books.append((book + share * (wish - book)).astype(np.float32))
    return replace(words, codes=codes, books=tuple(books)), loss


def rounded(words: Words, bits: int) -> Words:
    """Return words as they are after rounding to the grids of a file."""
    return replace(words, books=tuple(Grid.round(book, bits).values for book in words.books))


def recode(step: Step, words: Words, n_jobs: int) -> Words:
    """Return the best codes for words that stay as they are."""
    return replace(words, codes=step(words, False, n_jobs)[0])
