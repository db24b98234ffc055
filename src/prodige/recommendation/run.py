"""One run of a fit: from interactions and the parameters of a recommender to what answers its questions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from prodige.progress import Monitor
from prodige.recommendation.parameters import find_budget
from prodige.recommendation.paths import Paths
from prodige.recommendation.vectors import Vectors

if TYPE_CHECKING:
    from prodige.recommendation.recommender import GraphRecommender

# As in the paper, in numbers for each user and item, where its graphs are given no budget.
_NUMBERS = 4.0


def run(model: GraphRecommender, interactions: csr_array, start: float) -> tuple[Paths | Vectors, Monitor]:
    """Return what a fit learns from interactions, and how it went.

    Parameters
    ----------
    model : GraphRecommender
        Whose parameters it follows; it stays as it is.
    interactions : csr_array, shape [U, I]
        As :func:`prodige.recommendation.interactions.check_interactions` returns them.
    start : float
        When the fit began, by ``time.perf_counter``.
    """
    random = check_random_state(model.random_state)
    n_users, n_items = interactions.shape
    if model.edges == "product":
        from prodige.recommendation.distillation import N_STEPS, fit_product

        budget = find_budget(model, n_users, n_items)
        monitor = new_monitor(model, N_STEPS, start)
        product, constants = fit_product(interactions, budget, monitor, random, model.n_jobs)
        return Vectors(product, n_users if model.store_users else 0, constants), monitor
    from prodige.recommendation.paper.fit import N_STEPS, fit_ranking

    monitor = new_monitor(model, N_STEPS, start)
    numbers = _NUMBERS if model.numbers_per_item is None else model.numbers_per_item
    graph = fit_ranking(interactions, model.edges, numbers, monitor=monitor, random_state=random, n_jobs=model.n_jobs)
    return Paths(graph, n_users), monitor


def new_monitor(model: GraphRecommender, n_steps: int, start: float) -> Monitor:
    """Return what counts the steps of a run; the time since it began counts, too."""
    return Monitor(n_steps, model.max_time, time.perf_counter() - start, model.callbacks, model.verbose)
