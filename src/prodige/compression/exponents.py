"""Exponents of a product: how distances in its factors add up, chosen by what suits the data.

Euclidean distances add up as Pythagoras says, power 2 and gauge 2, if there are bits enough for all their directions.
What suits a data set and a budget is found by fitting small products to some of the items and asking for distances to
items that they were not fitted to.
"""

from __future__ import annotations

import numpy as np

from prodige.compression.budget import Budget
from prodige.compression.objective import NearPairs, Validation
from prodige.compression.products import fit_product
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space
from prodige.progress import Monitor
from prodige.ranks import ALONE, Ranks

Exponents = tuple[float, float]

PYTHAGOREAN: Exponents = (2.0, 2.0)

# Power and gauge of products that are metrics, and of others that may come closer to what is no Euclidean distance.
METRIC: tuple[Exponents, ...] = (PYTHAGOREAN, (1.5, 1.5), (1.0, 1.0))
OTHERS: tuple[Exponents, ...] = ((2.0, 1.5), (2.0, 1.0))

# Items and landmarks of a trial, and its sweeps. Its few items could not pay for a file's hubs, so numbers are counted
# where bits are: one for so many, and no fewer than the least product has.
_N_ITEMS = 2000
_N_LANDMARKS = 1024
_N_SWEEPS = 3
_BITS = 8.0
_LEAST_NUMBERS = 4.0

# Trials are not exact: what comes later must be better than all before by so much, and by more if it is no metric.
_MARGIN = 0.03
_MARGIN_OF_OTHERS = 0.07

# Of fewer items there is nothing to set aside.
_LEAST_ITEMS = 64


def choose_exponents(
    space: Space,
    budget: Budget,
    metric_only: bool = True,
    hurried: bool = False,
    seed: int = 0,
    ranks: Ranks = ALONE,
) -> Exponents:
    """Return the power and the gauge that suit a data set.

    Parameters
    ----------
    space : Space
    budget : Budget
    metric_only : bool
        Whether distances of the product are to be a metric.
    hurried : bool
        Whether there is no time for trials.
    seed : int
    ranks : Ranks, optional
        Processes that share the trials.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.budget import Budget
    >>> from prodige.compression.exponents import choose_exponents
    >>> from prodige.metric.space import Space
    >>> choose_exponents(Space(np.random.default_rng(0).normal(size=(100, 5))), Budget(bits=64))
    (2.0, 2.0)
    """
    candidates = METRIC if metric_only else METRIC + OTHERS
    if hurried or space.n_items < _LEAST_ITEMS:
        return PYTHAGOREAN
    random = np.random.RandomState(seed)
    some = space.take(np.sort(random.permutation(space.n_items)[:_N_ITEMS]))
    landmarks = Landmarks.draw(some, min(_N_LANDMARKS, some.n_items // 2), random)
    near = NearPairs.find(some, 0.0, landmarks.sources.size)
    validation = Validation(some, landmarks, near, 0.0, random)
    bits = 0.0 if budget.bits is None else budget.bits
    numbers = Budget(numbers=max(bits / _BITS, _LEAST_NUMBERS) if budget.numbers is None else budget.numbers)

    def error_of(exponents: Exponents) -> float:
        monitor = Monitor(_N_SWEEPS)
        trial = np.random.RandomState(seed)
        product = fit_product(landmarks, near, numbers, exponents, monitor, trial, space.n_jobs)
        if monitor.stopped == "interrupt":  # a product, but not the one that was asked for
            raise KeyboardInterrupt
        return np.inf if product is None else validation.measure(product, space.n_jobs).objective

    best, least = PYTHAGOREAN, np.inf
    for exponents, error in zip(candidates, ranks.in_parts(error_of, candidates), strict=True):
        margin = _MARGIN if exponents in METRIC else _MARGIN_OF_OTHERS
        if error < (1 - margin) * least:
            best, least = exponents, error
    return best


def trial_size(space: Space) -> int:
    """Return about how many distances the trials of :func:`choose_exponents` measure."""
    n_items = min(space.n_items, _N_ITEMS)
    return n_items * min(_N_LANDMARKS, n_items // 2)
