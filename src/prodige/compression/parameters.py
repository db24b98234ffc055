"""Parameters and data of a compressor: what they may be, and which of them a result depends on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from prodige._validation import check_integer
from prodige.compression import saving
from prodige.compression.budget import Budget, check_structure
from prodige.compression.checkpoints import check_checkpoint
from prodige.compression.hubs import check_memory, most_hubs
from prodige.compression.objective import near_weight
from prodige.progress import check_callbacks
from prodige.threads import count_threads

if TYPE_CHECKING:
    from prodige.compression.compressor import DistanceCompressor


def check_data(model: DistanceCompressor, X: Any, reset: bool) -> Any:
    """Return rows as arrays of floats, after making sure that they suit the model, or with ``reset`` any."""
    return validate_data(
        model, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1
    )


def check_parameters(model: DistanceCompressor, n_items: int) -> None:
    """Refuse parameters of a compressor that cannot be right for so many items."""
    if model.method not in ("budget", "l0"):
        raise ValueError(f"method must be 'budget' or 'l0', got {model.method!r}")
    limit = model.max_time
    if limit is not None and not (isinstance(limit, (int, float, np.number)) and 0 < limit < math.inf):
        raise ValueError(f"max_time must be a number of seconds above 0, got {limit!r}")
    count_threads(model.n_jobs)
    check_callbacks(model.callbacks)
    check_structure(model.structure, model.n_hubs, model.method)
    near_weight(model.objective)
    check_checkpoint(model.checkpoint, model.checkpoint_interval, model.resume)
    if model.checkpoint is not None and (model.max_time is not None or model.method == "l0"):
        name = "max_time" if model.max_time is not None else "method"
        raise ValueError(
            f"checkpoint is of a product in steps that are counted, which {name} = "
            f"{getattr(model, name)!r} is not; leave one of the two out"
        )
    if not isinstance(model.metric_only, (bool, np.bool_)):
        raise TypeError(f"metric_only must be True or False, got {model.metric_only!r}")
    budget = find_budget(model)
    budget.check(n_items)
    if model.method == "l0" and model.bits_per_item is not None:
        raise ValueError("method 'l0' counts numbers, as the paper does; give numbers_per_item, not bits_per_item")
    numbers = budget.numbers_of_edges(n_items)
    if model.n_hubs != "auto":
        n_hubs = check_integer("n_hubs", model.n_hubs, 1, n_items)
        check_memory(min(n_hubs, most_hubs(n_items, numbers)))


def check_shared(model: DistanceCompressor) -> None:
    """Refuse parameters of a fit that processes cannot share."""
    for name, is_wrong, why in (
        ("metric", model.metric == "precomputed", "has a column for each item of all ranks; give their rows"),
        ("method", model.method == "l0", "is learned by one process; leave process_group out"),
        ("max_time", model.max_time is not None, "is up at other steps on other ranks; leave it out"),
    ):
        if is_wrong:
            raise ValueError(f"{name} = {getattr(model, name)!r} {why}")


def find_budget(model: DistanceCompressor) -> Budget:
    """Return the budget that was asked for.

    Examples
    --------
    >>> from prodige import DistanceCompressor
    >>> from prodige.compression.parameters import find_budget
    >>> find_budget(DistanceCompressor()), find_budget(DistanceCompressor(bits_per_item=64))
    (Budget(numbers=4.0, bits=None), Budget(numbers=None, bits=64))
    """
    return Budget.asked(model.numbers_per_item, model.bits_per_item)


def settings_of(model: DistanceCompressor) -> dict[str, Any]:
    """Return the parameters that the result depends on, as a file can hold them."""
    values = {name: getattr(model, name) for name in (*saving.PARAMETERS, "memory_limit", "random_state")}
    plain = (str, bool, int, float, type(None))
    # Of what is no plain value, such as a function or a generator, there is only the kind to compare.
    return {name: value if isinstance(value, plain) else type(value).__name__ for name, value in values.items()}
