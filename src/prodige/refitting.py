"""Refitting: an estimator that learns anew keeps what it knew until all of the new is there."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Estimator = TypeVar("Estimator", bound=Any)


@contextmanager
def refitting(estimator: Estimator) -> Iterator[Estimator]:
    """Yield a copy that has learned nothing; what it learns becomes the estimator's own, all at once, at the end.

    An error or Ctrl-C leaves the estimator as it was.

    Examples
    --------
    >>> from prodige.baselines import Star
    >>> from prodige.refitting import refitting
    >>> star = Star().fit([[0.0], [1.0], [3.0]])
    >>> with refitting(star) as fresh:
    ...     hasattr(fresh, "radius_"), hasattr(star, "radius_")
    (False, True)
    >>> hasattr(star, "radius_")
    False
    """
    fresh = copy.copy(estimator)
    for name in [name for name in vars(fresh) if name.endswith("_")]:
        delattr(fresh, name)
    yield fresh
    estimator.__dict__ = vars(fresh)
