"""Parameters of the recommender: what they may be, and what budget they stand for."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import numpy as np

from prodige.progress import check_callbacks
from prodige.recommendation.plan import Budget, check_budget, least_bits
from prodige.threads import count_threads

EdgeKind = Literal["product", "normal", "bipartite", "random"]
EDGES: tuple[EdgeKind, ...] = ("product", "normal", "bipartite", "random")
OLD_EDGES = ("hubs",)  # of files that were written before

BITS = 64.0  # where no budget is given

# A matrix with so many more columns than rows may have items as rows.
_LOPSIDED = 20
_MANY_COLUMNS = 1000


def check_parameters(model: Any) -> None:
    """Refuse parameters of a recommender that cannot be right."""
    if model.edges not in EDGES:
        raise ValueError(f"edges must be one of {', '.join(map(repr, EDGES))}, got {model.edges!r}")
    for name in ("bits_per_item", "numbers_per_item"):
        value = getattr(model, name)
        if value is not None and (not is_number(value) or not 0 < value < math.inf):
            raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    if model.bits_per_item is not None and model.numbers_per_item is not None:
        raise ValueError(
            f"bits_per_item = {model.bits_per_item} and numbers_per_item = {model.numbers_per_item} are two budgets; "
            "give one of them"
        )
    if model.edges != "product":
        check_of_paper(model)
    for name in ("store_users", "keep_interactions"):
        if not isinstance(getattr(model, name), (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False, got {getattr(model, name)!r}")
    limit = model.max_time
    if limit is not None and not (is_number(limit) and 0 < limit < math.inf):
        raise ValueError(f"max_time must be a number of seconds above 0, got {limit!r}")
    count_threads(model.n_jobs)
    check_callbacks(model.callbacks)


def check_of_paper(model: Any) -> None:
    """Refuse what graphs of the paper cannot do."""
    if model.bits_per_item is not None:
        raise ValueError(
            f"bits_per_item = {model.bits_per_item}: graphs of the paper are as large as numbers_per_item says; "
            'give that, or use edges="product"'
        )
    if not model.store_users:
        raise ValueError('store_users = False: users are vertices of graphs of the paper; use edges="product"')


def is_number(value: Any) -> bool:
    """Whether a parameter is a number, and not a truth value."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def find_budget(model: Any, n_users: int, n_items: int) -> Budget:
    """Return the budget of a recommender, which something fits into."""
    bits, numbers = model.bits_per_item, model.numbers_per_item
    if bits is None and numbers is None:
        bits = max(BITS, least_bits(n_users, n_items, model.store_users))
    budget = Budget(bits, numbers, n_users, n_items, bool(model.store_users))
    check_budget(budget)
    return budget


def warn_of_sides(n_users: int, n_items: int) -> None:
    """Warn of a matrix that looks as if its rows were items."""
    if n_items > _MANY_COLUMNS and n_items > _LOPSIDED * n_users:
        warnings.warn(
            f"user_items has {n_users} rows and {n_items} columns; rows are users and columns are items. "
            "Pass user_items.T if it is the other way round",
            UserWarning,
            stacklevel=3,
        )
