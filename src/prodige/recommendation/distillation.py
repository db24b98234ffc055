"""Distillation: a product of bipartite graphs from interactions, by way of a good teacher.

Settings of the teacher and the shape of the product are chosen by interactions held out of the training data. Then the
teacher is fitted to all of them, its scores are balanced, and users and items get codes that keep these scores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.graph import file
from prodige.graph.bipartite import BipartiteFactor
from prodige.graph.factors import GeometricFactor
from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph
from prodige.graph.product_encoding import LEAST_CODED
from prodige.progress import Monitor
from prodige.recommendation.balance import Balanced, balance
from prodige.recommendation.codes import N_PRICES, Coding, Words
from prodige.recommendation.holding_out import HeldOut, hold_out
from prodige.recommendation.placing import Constants, Placing
from prodige.recommendation.plan import WORD_BITS, Budget, Grouping, Plan, least_plan, make_plan, rates, word_counts
from prodige.recommendation.price import Price, coded_bits, first_price
from prodige.recommendation.sides import Sides
from prodige.recommendation.teacher import Teacher, TeacherSettings, alternate, complete, fit_teacher
from prodige.recommendation.tuning import LEAST_GAIN, N_TEACHERS, Tuning
from prodige.threads import count_threads, one_thread

_N_TRIALS = 16  # at most
_LEAST_GAIN = 2e-4  # for which another shape is taken
_TUNING_RANK = 32  # at most, that a teacher's settings are chosen at in floats
_N_RUNNERS_UP, _NEARLY = 3, 2e-3  # settings nearly as good in floats that codes are tried with, and how nearly
_RANKS = (8, 16, 24, 32, 48, 64, 96, 128)
_RANK_SHARE = 0.6  # of the root of the number of users and items, at most, is the rank to begin with
_N_TRIAL_ALTERNATIONS = 7
_N_ALTERNATIONS = 12
_N_ROUNDS, _N_TRIAL_ROUNDS = 3, 2
N_STEPS = N_TEACHERS + _N_TRIALS + _N_ALTERNATIONS + N_PRICES * _N_ROUNDS  # at most
_WIDEST = 96  # rank to begin with
_HURRIED = 16  # directions and words where there is no time for more
# Times as long as the smallest alternation should a fit be that searches, and one that begins as usual.
_LONG, _USUAL = 300, 100
_BOOK_SHARE = 0.15  # of a budget that codebooks take in the first plan that is tried
# Times the budget is what codes of equal length would take; where that is more than once, bits have a price.
_STRETCHES = (1.0, 1.15, 1.4)
_MOST_FIXED = 0.6  # of a budget that all but codes takes then
_PRECISION, _TRIAL_PRECISION = (0.004, 6), (0.03, 2)  # of a budget, that codes may leave, and prices that are tried


@dataclass(frozen=True)
class Shape:
    """All that is chosen: how the teacher is fitted, and what its scores are kept in."""

    teacher: TeacherSettings
    user_words: int
    item_words: int
    grouping: Grouping = "consecutive"
    is_wide: bool = False
    stretch: float = 1.0


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
        self.balanced: Balanced | None = None
        self.price: float | None = None  # that suited the codes of a trial
        self.coding: Coding | None = None
        self.is_late: Callable[[], bool] = bool

    # -- steps -------------------------------------------------------------------------------------------------------

    def steps(self, monitor: Monitor) -> Iterator[float]:
        """Do one thing after the other; yield how good things are, as a loss."""
        self.is_late = lambda: monitor.due(0.9)
        if (length := self._length(monitor)) >= _LONG:
            yield from self._choose_shape(monitor)
        else:
            self.shape = replace(self.shape, stretch=1.0) if length >= _USUAL else hurried(self.shape)
        yield from self._teach(monitor)
        self.coding = self._start()
        for loss in self.coding.settle(_N_ROUNDS):
            yield loss
            if monitor.due(0.8):
                return

    def _length(self, monitor: Monitor) -> float:
        """Return how often the smallest alternation could be done in the time there is."""
        if monitor.max_time is None:
            return math.inf
        began = monitor.seconds
        fit_teacher(self.sides, TeacherSettings(rank=8), 1, np.random.RandomState(0), self.n_jobs)
        return monitor.max_time / (monitor.seconds - began)

    def _choose_shape(self, monitor: Monitor) -> Iterator[float]:
        """Try neighbouring shapes, one change at a time, for as long as one of them is better."""
        held = hold_out(self.interactions, self.random)
        if held is None:
            return
        trials = Trials(self, held)
        settings = replace(self.shape.teacher, rank=min(self.shape.teacher.rank, _TUNING_RANK))
        tuning = Tuning(settings, trials.judge_floats)
        for quality in tuning.steps():
            self.shape = taught(self.shape, tuning.best)
            yield -quality
            if monitor.due(0.3):
                return
        quality = -np.inf
        wide = taught(first_wide_shape(self.budget, self.interactions), tuning.best)
        starts = ((shape, _LEAST_GAIN) for shape in (self.shape, wide))
        others = ((shape, LEAST_GAIN) for shape in self._taught_otherwise(tuning))
        for shape, least_gain in itertools.chain(starts, others):
            if shape in trials.known:
                continue
            if (found := trials.judge(shape)) > quality + least_gain:
                self.shape, quality = shape, found
            yield -quality
            if monitor.due(0.45):
                return
        improved = True
        while improved:
            improved = False
            for change, direction in itertools.product(CHANGES, (1, -1)):
                while (changed := change(self, direction)) is not None and changed not in trials.known:
                    if len(trials.known) >= _N_TRIALS or monitor.due(0.45):
                        return
                    found = trials.judge(changed)
                    is_better = found > quality + _LEAST_GAIN
                    if is_better:
                        self.shape, quality, improved = changed, found, True
                    yield -quality
                    if not is_better:
                        break

    def _taught_otherwise(self, tuning: Tuning) -> Iterator[Shape]:
        """Yield the shape that is the best by then with settings that are nearly as good in floats."""
        for settings in tuning.runners_up(_N_RUNNERS_UP, _NEARLY):
            yield taught(self.shape, settings)

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
            self.shape = hurried(self.shape)
            self.teacher = fit_teacher(self.sides, self.shape.teacher, 3, self.random, self.n_jobs)
        self.balanced = balance(complete(self.sides, self.teacher))
        return self._code(self.balanced, self.shape)

    def _code(self, balanced: Balanced, shape: Shape) -> Coding:
        plan = plan_for(self.budget, balanced.spectrum, shape)
        random = np.random.RandomState(self.random.randint(2**31))

        def measure(users: Words | None, items: Words) -> float:
            return 8.0 * file.size(make_product(users, items, balanced.bias, plan))

        price = price_for(self.budget, self.sides, balanced, plan, shape, measure, self.price)
        store_users = self.budget.store_users
        return Coding(self.sides, balanced, plan, shape.teacher.alpha, store_users, random, self.n_jobs, price)

    def freeze(self) -> tuple[ProductGraph, Constants]:
        """Return the product as it is now, rounded as a file has it."""
        if self.coding is None:
            self.coding = self._start()
        assert self.balanced is not None
        balanced, found = self.balanced, self.coding.finish(self.is_late)
        if found is None:  # codes do not get short enough
            self.coding = self._code(balanced, replace(self.shape, stretch=1.0))
            self.coding.alternate()
            found = self.coding.finish()
            assert found is not None
        constants = constants_of(self.shape.teacher, balanced, self.scale)
        return make_product(*found, balanced.bias, self.coding.plan), constants


class Trials:
    """Shapes tried on interactions that were held out; the last two teachers are kept."""

    def __init__(self, fit: ProductFit, held: HeldOut) -> None:
        self.fit = fit
        self.held = held
        self.seed = fit.random.randint(2**31)
        self.chosen, self.thin = held.thinned(np.random.RandomState(self.seed))
        self.teachers: dict[TeacherSettings, Balanced] = {}
        self.known: dict[Shape, float] = {}

    def judge_floats(self, settings: TeacherSettings) -> float:
        """Return how well a teacher of these settings ranks what was held out, without codes."""
        found = self._teach(settings)
        return self.thin.judge(found.users, found.items, found.bias)

    def judge(self, shape: Shape) -> float:
        """Return how well a product of this shape ranks what was held out."""
        if shape.teacher not in self.teachers:
            best = self.fit.shape.teacher
            self.teachers = {settings: kept for settings, kept in self.teachers.items() if settings == best}
            self.teachers[shape.teacher] = self._teach(shape.teacher)
        self.known[shape] = self._distil(shape)
        return self.known[shape]

    def _teach(self, settings: TeacherSettings) -> Balanced:
        """Return a teacher of what was not held out, with the users that codes are tried on."""
        sides, random = self.held.sides, np.random.RandomState(self.seed)
        teacher = fit_teacher(sides, settings, _N_TRIAL_ALTERNATIONS, random, self.fit.n_jobs)
        found = balance(complete(sides, teacher))
        return replace(found, users=np.ascontiguousarray(found.users[self.chosen]))

    def _distil(self, shape: Shape) -> float:
        fit, balanced, thin = self.fit, self.teachers[shape.teacher], self.thin
        plan = planned(fit.budget, balanced.spectrum, shape)
        if plan is None:
            return -np.inf
        random, alpha = np.random.RandomState(self.seed), shape.teacher.alpha
        bias_levels = Grid.round(balanced.bias, plan.length_bits).levels

        def measure(users: Words | None, items: Words) -> float:
            return expected_bits(fit.budget, plan, users, items, bias_levels)

        share = len(self.chosen) / fit.budget.n_users
        price = price_for(fit.budget, thin.sides, balanced, plan, shape, measure, fit.price, share, _TRIAL_PRECISION)
        coding = Coding(thin.sides, balanced, plan, alpha, fit.budget.store_users, random, fit.n_jobs, price)
        for _ in coding.settle(_N_TRIAL_ROUNDS):
            pass
        if price is not None:
            fit.price = price.of_user
        found = coding.finish()
        if found is None:
            return -np.inf
        users, items = found
        bias = Grid.round(balanced.bias, plan.length_bits).values
        if users is not None:
            return thin.judge(users.vectors(), items.vectors(), bias)
        placing = Placing(items.vectors(), bias, constants_of(shape.teacher, balanced, 1.0))
        return thin.judge(placing.solve(thin.train, fit.n_jobs)[0], items.vectors(), bias)


# -- shapes ----------------------------------------------------------------------------------------------------------


def taught(shape: Shape, settings: TeacherSettings) -> Shape:
    """Return the shape with a teacher of these settings, but of its own rank."""
    return replace(shape, teacher=replace(settings, rank=shape.teacher.rank))


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


def change_stretch(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape with more, or fewer, words than codes of equal length have room for."""
    place = _STRETCHES.index(fit.shape.stretch) + direction
    if not may_code(fit.budget) or not 0 <= place < len(_STRETCHES):
        return None
    return replace(fit.shape, stretch=_STRETCHES[place])


def may_code(budget: Budget) -> bool:
    """Whether codes may be coded: not where numbers count, or where there are few rows."""
    return budget.bits is not None and budget.n_stored >= LEAST_CODED


def change_width(fit: ProductFit, direction: int) -> Shape | None:
    """Return the shape with all directions in words, or without those that deserve no bits."""
    return None if fit.shape.is_wide == (direction > 0) else replace(fit.shape, is_wide=direction > 0)


CHANGES = (
    change_rank,
    change_words,
    change_width,
    change_grouping,
    change_items,
    change_stretch,
)


def first_shape(budget: Budget, rank: int) -> Shape:
    """Return a shape whose codebooks take a fair share of the budget."""
    counts = word_counts(budget)
    best = counts[0]
    for n_words in counts[1:]:
        plan = make_plan(budget, np.ones(rank), n_words, n_words, "consecutive")
        unit = 1 if budget.bits is None else WORD_BITS
        if plan is not None and 2 * unit * n_words * rank <= _BOOK_SHARE * budget.total:
            best = n_words
    return Shape(TeacherSettings(rank=rank), best, best, stretch=_STRETCHES[-1] if may_code(budget) else 1.0)


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
        stretch=1.0,
        teacher=replace(shape.teacher, rank=min(shape.teacher.rank, _HURRIED)),
        user_words=min(shape.user_words, _HURRIED),
        item_words=min(shape.item_words, _HURRIED),
    )


def planned(budget: Budget, spectrum: NDArray[np.float64], shape: Shape) -> Plan | None:
    """Return the plan of a shape, None where there is no room for it."""
    larger = budget.stretched(shape.stretch)
    plan = make_plan(larger, spectrum, shape.user_words, shape.item_words, shape.grouping, shape.is_wide)
    if plan is None or shape.stretch == 1 or plan.fixed_bits <= _MOST_FIXED * budget.total:
        return plan
    return None


def price_for(
    budget: Budget,
    sides: Sides,
    balanced: Balanced,
    plan: Plan,
    shape: Shape,
    measure: Callable[[Words | None, Words], float],
    known: float | None = None,
    item_share: float = 1.0,
    precision: tuple[float, int] = _PRECISION,
) -> Price | None:
    """Return what a bit costs at first; None where codes have the bits of their hubs."""
    if shape.stretch == 1:
        return None
    if known is None:
        room = max(budget.total - plan.fixed_bits, 1.0) / budget.n_stored
        deserved = rates(balanced.spectrum, room)
        known = first_price(sides, balanced.users, balanced.items, shape.teacher.alpha, deserved)
    return Price(known, budget.total, measure, item_share, *precision)


def expected_bits(budget: Budget, plan: Plan, users: Words | None, items: Words, levels: NDArray[np.uint16]) -> float:
    """Return about the bits of a file, some of whose users have these words."""
    rows = np.concatenate([items.codes, levels[:, None]], axis=1)
    bits = plan.fixed_bits + coded_bits(rows, [*plan.item_words, 2**plan.length_bits])
    if users is not None:
        bits += budget.n_users / len(users.codes) * coded_bits(users.codes, plan.user_words)
    return bits


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
