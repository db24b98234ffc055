"""Distillation: a product of bipartite graphs from interactions, by way of a good teacher.

Settings of the teacher and the shape of the product are chosen by interactions held out of the training data. Then the
teacher is fitted to all of them, its scores are balanced, and users and items get codes that keep these scores.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.graph.bipartite import BipartiteFactor
from prodige.graph.factors import GeometricFactor
from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph
from prodige.progress import Monitor
from prodige.recommendation.balance import Balanced, balance
from prodige.recommendation.codes import Coding, Words
from prodige.recommendation.holding_out import HeldOut, hold_out
from prodige.recommendation.placing import Constants, Placing
from prodige.recommendation.plan import WORD_BITS, Budget, Grouping, Plan, least_plan, make_plan, word_counts
from prodige.recommendation.sides import Sides
from prodige.recommendation.teacher import Teacher, TeacherSettings, alternate, complete, fit_teacher
from prodige.threads import count_threads, one_thread

_N_TRIALS = 16  # at most
_LEAST_GAIN = 2e-4  # for which another shape is taken
_RANKS = (8, 16, 24, 32, 48, 64, 96, 128)
_RANK_SHARE = 0.4  # of the root of the number of users and items, at most, is the rank to begin with
_N_TRIAL_ALTERNATIONS = 7
_N_ALTERNATIONS = 12
_N_ROUNDS = 3
N_STEPS = _N_TRIALS + _N_ALTERNATIONS + _N_ROUNDS  # at most
_WIDEST = 96  # rank to begin with
_HURRIED = 16  # directions and words where there is no time for more
_PATIENCE = 100  # times as long as the smallest alternation should a fit be that searches
_BOOK_SHARE = 0.15  # of a budget that codebooks take in the first plan that is tried


@dataclass(frozen=True)
class Shape:
    """All that is chosen: how the teacher is fitted, and what its scores are kept in."""

    teacher: TeacherSettings
    user_words: int
    item_words: int
    grouping: Grouping = "consecutive"
    is_wide: bool = False


class ProductFit:
    """A fit in steps, which can be frozen after any of them.

    Parameters
    ----------
    interactions : csr_array of float32
        How much each counts; the mean counts as 1.
    budget : Budget
    random : RandomState
    n_jobs : int
        Threads.
    """

    def __init__(self, interactions: csr_array, budget: Budget, random: np.random.RandomState, n_jobs: int) -> None:
        self.scale = float(interactions.data.mean(dtype=np.float64))
        self.interactions = (interactions / self.scale).astype(np.float32)
        self.budget = budget
        self.random = random
        self.n_jobs = n_jobs
        self.sides = Sides.of(self.interactions)
        self.shape = first_shape(budget, first_rank(budget, interactions))
        self.teacher: Teacher | None = None
        self.coding: Coding | None = None

    # -- steps -------------------------------------------------------------------------------------------------------

    def steps(self, monitor: Monitor) -> Iterator[float]:
        """Do one thing after the other; yield how good things are, as a loss."""
        if self._is_late(monitor):
            self.shape = hurried(self.shape)
        else:
            yield from self._choose_shape(monitor)
        yield from self._teach(monitor)
        self.coding = self._start()
        for _ in range(_N_ROUNDS):
            yield self.coding.alternate()
            if monitor.due(0.85):
                return

    def _is_late(self, monitor: Monitor) -> bool:
        """Whether a time limit leaves no room for a search, by how long the smallest alternation takes."""
        if monitor.max_time is None:
            return False
        began = monitor.seconds
        fit_teacher(self.sides, TeacherSettings(rank=8), 1, np.random.RandomState(0), self.n_jobs)
        return monitor.max_time < _PATIENCE * (monitor.seconds - began)

    def _choose_shape(self, monitor: Monitor) -> Iterator[float]:
        """Try neighbouring shapes, one change at a time, for as long as one of them is better."""
        held = hold_out(self.interactions, self.random)
        if held is None:
            return
        trials = Trials(self, held)
        quality = trials.judge(self.shape)
        yield -quality
        wide = first_wide_shape(self.budget, self.interactions)
        if wide != self.shape and (found := trials.judge(wide)) > quality + _LEAST_GAIN:
            self.shape, quality = wide, found
        yield -quality
        improved = True
        while improved:
            improved = False
            for change, direction in itertools.product(CHANGES, (1, -1)):
                while (shape := change(self, direction)) is not None and shape not in trials.known:
                    if len(trials.known) >= _N_TRIALS or monitor.due(0.45):
                        return
                    found = trials.judge(shape)
                    is_better = found > quality + _LEAST_GAIN
                    if is_better:
                        self.shape, quality, improved = shape, found, True
                    yield -quality
                    if not is_better:
                        break

    def _teach(self, monitor: Monitor) -> Iterator[float]:
        random = np.random.RandomState(self.random.randint(2**31))
        self.teacher = fit_teacher(self.sides, self.shape.teacher, 1, random, self.n_jobs)
        for _ in range(_N_ALTERNATIONS - 1):
            self.teacher = alternate(self.sides, self.teacher, self.n_jobs)
            yield self._surprise()
            if monitor.due(0.7):
                return

    def _surprise(self) -> float:
        """Return the mean squared error of the teacher where users and items met."""
        assert self.teacher is not None
        scores = self.sides.users.fit.scores(self.teacher.users, self.teacher.items, self.n_jobs)
        return float(np.mean((1 - scores.astype(np.float64)) ** 2))

    def _start(self) -> Coding:
        """Return codes to begin with; where the fit was stopped before there was a teacher, of a hasty one."""
        if self.teacher is None:
            self.teacher = fit_teacher(self.sides, self.shape.teacher, 3, self.random, self.n_jobs)
        balanced = balance(complete(self.sides, self.teacher))
        plan = plan_for(self.budget, balanced.spectrum, self.shape)
        random = np.random.RandomState(self.random.randint(2**31))
        alpha = self.shape.teacher.alpha
        return Coding(self.sides, balanced, plan, alpha, self.budget.store_users, random, self.n_jobs)

    def freeze(self) -> tuple[ProductGraph, Constants]:
        """Return the product as it is now, rounded as a file has it."""
        if self.coding is None:
            self.coding = self._start()
        balanced = self.coding.balanced
        users, items = self.coding.finish()
        constants = constants_of(self.shape.teacher, balanced, self.scale)
        return make_product(users, items, balanced.bias, self.coding.plan), constants


class Trials:
    """Shapes tried on interactions that were held out; the last two teachers are kept."""

    def __init__(self, fit: ProductFit, held: HeldOut) -> None:
        self.fit = fit
        self.held = held
        self.seed = fit.random.randint(2**31)
        self.chosen, self.thin = held.thinned(np.random.RandomState(self.seed))
        self.teachers: dict[TeacherSettings, Balanced] = {}
        self.known: dict[Shape, float] = {}

    def judge(self, shape: Shape) -> float:
        """Return how well a product of this shape ranks what was held out."""
        if shape.teacher not in self.teachers:
            best = self.fit.shape.teacher
            self.teachers = {settings: kept for settings, kept in self.teachers.items() if settings == best}
            self.teachers[shape.teacher] = self._teach(shape)
        self.known[shape] = self._distil(shape)
        return self.known[shape]

    def _teach(self, shape: Shape) -> Balanced:
        """Return a teacher of what was not held out, with the users that codes are tried on."""
        sides, random = self.held.sides, np.random.RandomState(self.seed)
        teacher = fit_teacher(sides, shape.teacher, _N_TRIAL_ALTERNATIONS, random, self.fit.n_jobs)
        found = balance(complete(sides, teacher))
        return replace(found, users=np.ascontiguousarray(found.users[self.chosen]))

    def _distil(self, shape: Shape) -> float:
        fit, balanced, thin = self.fit, self.teachers[shape.teacher], self.thin
        plan = planned(fit.budget, balanced.spectrum, shape)
        if plan is None:
            return -np.inf
        random, alpha = np.random.RandomState(self.seed), shape.teacher.alpha
        coding = Coding(thin.sides, balanced, plan, alpha, fit.budget.store_users, random, fit.n_jobs)
        coding.alternate()
        users, items = coding.finish()
        bias = Grid.round(balanced.bias, plan.length_bits).values
        if users is not None:
            return thin.judge(users.vectors(), items.vectors(), bias)
        placing = Placing(items.vectors(), bias, constants_of(shape.teacher, balanced, 1.0))
        return thin.judge(placing.solve(thin.train, fit.n_jobs)[0], items.vectors(), bias)


# -- shapes ----------------------------------------------------------------------------------------------------------


def change_alpha(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape whose teacher believes twice or half as much that pairs which did not meet should not."""
    teacher = fit.shape.teacher
    return replace(fit.shape, teacher=replace(teacher, alpha=teacher.alpha * 2.0**direction))


def change_penalty(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape whose teacher has twice or half the penalty."""
    teacher = fit.shape.teacher
    return replace(fit.shape, teacher=replace(teacher, penalty=teacher.penalty * 2.0**direction))


def change_rank(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape of the next larger or smaller rank."""
    ranks, teacher = [rank for rank in _RANKS if rank <= largest_rank(fit.interactions)], fit.shape.teacher
    place = ranks.index(teacher.rank) + direction
    return replace(fit.shape, teacher=replace(teacher, rank=ranks[place])) if 0 <= place < len(ranks) else None


def change_words(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape with twice or half as many words on both sides."""
    shape, counts = fit.shape, word_counts(fit.budget)
    users, items = counts.index(shape.user_words) + direction, counts.index(shape.item_words) + direction
    if min(users, items) < 0 or max(users, items) >= len(counts):
        return None
    return replace(shape, user_words=counts[users], item_words=counts[items])


def change_items(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape with twice or half as many words of items alone."""
    counts = word_counts(fit.budget)
    place = counts.index(fit.shape.item_words) + direction
    if not fit.budget.store_users or not 0 <= place < len(counts):
        return None
    return replace(fit.shape, item_words=counts[place])


def change_grouping(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape with the other way to group directions."""
    grouping: Grouping = "dealt" if direction > 0 else "consecutive"
    return None if fit.shape.grouping == grouping else replace(fit.shape, grouping=grouping)


def change_width(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape with all directions in words, or without those that deserve no bits."""
    return None if fit.shape.is_wide == (direction > 0) else replace(fit.shape, is_wide=direction > 0)


CHANGES = (change_width, change_words, change_rank, change_alpha, change_penalty, change_grouping, change_items)


def first_shape(budget: Budget, rank: int) -> Shape:
    """Return a shape whose codebooks take a fair share of the budget."""
    counts = word_counts(budget)
    best = counts[0]
    for n_words in counts[1:]:
        plan = make_plan(budget, np.ones(rank), n_words, n_words, "consecutive")
        unit = 1 if budget.bits is None else WORD_BITS
        if plan is not None and 2 * unit * n_words * rank <= _BOOK_SHARE * budget.total:
            best = n_words
    return Shape(TeacherSettings(rank=rank), best, best)


def first_wide_shape(budget: Budget, interactions: csr_array) -> Shape:
    """Return another shape to begin with: about twice the rank, and words for all of its directions.

    Where words are few and directions are many, one change at a time does not lead from one to the other.
    """
    rank = first_rank(budget, interactions)
    larger = [other for other in _RANKS if other <= min(2 * rank, largest_rank(interactions), _WIDEST)]
    return replace(first_shape(budget, max(larger, default=rank)), is_wide=True)


def hurried(shape: Shape) -> Shape:
    """Return a shape that takes little time."""
    return replace(
        shape,
        teacher=replace(shape.teacher, rank=min(shape.teacher.rank, _HURRIED)),
        user_words=min(shape.user_words, _HURRIED),
        item_words=min(shape.item_words, _HURRIED),
    )


def planned(budget: Budget, spectrum: NDArray[np.float64], shape: Shape) -> Plan | None:
    """Return the plan of a shape, None where there is no room for it."""
    return make_plan(budget, spectrum, shape.user_words, shape.item_words, shape.grouping, shape.is_wide)


def plan_for(budget: Budget, spectrum: NDArray[np.float64], shape: Shape) -> Plan:
    """Return the plan of a shape; with fewer words, or directions, where it does not fit."""
    while (plan := planned(budget, spectrum, shape)) is None:
        if max(shape.user_words, shape.item_words) <= 2:
            return least_plan(budget)
        shape = replace(shape, user_words=max(2, shape.user_words // 2), item_words=max(2, shape.item_words // 2))
    return plan


def largest_rank(interactions: csr_array) -> int:
    """Return the largest rank that is worth trying."""
    return max([rank for rank in _RANKS if rank <= min(interactions.shape) // 2], default=_RANKS[0])


def first_rank(budget: Budget, interactions: csr_array) -> int:
    """Return a rank to begin with: about a bit for each direction, and fewer where there are few users and items."""
    bits = 8 * (budget.numbers or 0) if budget.bits is None else budget.bits
    wish = min(bits, _RANK_SHARE * sum(interactions.shape) ** 0.5, largest_rank(interactions), 64)
    return max([rank for rank in _RANKS if rank <= wish], default=_RANKS[0])


def constants_of(settings: TeacherSettings, balanced: Balanced, scale: float) -> Constants:
    """Return what it takes to place others where a teacher would."""
    return Constants(settings.alpha, settings.penalty * balanced.stretch, balanced.level, scale)


# -- the result ------------------------------------------------------------------------------------------------------


def make_product(users: Words | None, items: Words, bias: NDArray[np.float32], plan: Plan) -> ProductGraph:
    """Return the product whose distances fall as scores rise: of users and items, or of items alone."""
    grids = [Grid.round(book, plan.word_bits) for book in items.books]
    if users is None:
        vectors = np.concatenate([grid.values[code] for grid, code in zip(grids, items.codes.T, strict=True)], axis=1)
        wish = 2 * bias.astype(np.float64) + np.square(vectors, dtype=np.float64).sum(axis=1)
        lengths = Grid.round(wish.max() - wish, plan.length_bits)
        return ProductGraph.from_factors([GeometricFactor(grid) for grid in grids], items.codes, lengths, 2, 2)
    factors = [
        # A side of users has two hubs at least, also where there is one user.
        BipartiteFactor(Grid.round(mine if len(mine) > 1 else np.repeat(mine, 2, axis=0), plan.word_bits), grid)
        for mine, grid in zip(users.books, grids, strict=True)
    ]
    n_users = len(users.codes)
    rounded = Grid.round(bias.max() - bias, plan.length_bits)
    levels = np.concatenate([np.zeros(n_users, np.uint16), rounded.levels])
    shift = np.array([factor.n_first for factor in factors])
    codes = np.concatenate([users.codes.astype(np.int64), items.codes + shift])
    return ProductGraph.from_factors(factors, codes, Grid(levels, rounded.bits, 0.0, rounded.step), 1, 1)


def fit_product(
    interactions: csr_array,
    budget: Budget,
    monitor: Monitor,
    random: np.random.RandomState,
    n_jobs: int | None,
) -> tuple[ProductGraph, Constants]:
    """Return the product fitted to interactions, and what it takes to place others."""
    with one_thread():
        fit = ProductFit(interactions, budget, random, count_threads(n_jobs))
        steps = fit.steps(monitor)
        numbers = budget.total / budget.n_stored if budget.bits is None else float("nan")
        try:
            for progress in monitor.run():
                loss = next(steps, None)
                if loss is None:
                    break
                monitor.record(progress, loss, None, numbers)
        except KeyboardInterrupt:
            if not monitor.history:
                raise
            monitor.stopped = "interrupt"
        return monitor.insist(fit.freeze)
