"""What the baselines for recommendation share: how they are fitted, and what they count as their size.

Their interface is :class:`~prodige.recommendation.interactions.Recommender`, that of the graph. Vectors of users and
items whose product is the score are common enough to have a class of their own.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.recommendation.interactions import Ids, Recommender, check_interactions
from prodige.threads import one_thread

if TYPE_CHECKING:
    from typing import Self


class RecommenderBaseline(Recommender):
    """A recommender to compare with; a new one implements ``_fit``, ``_scores`` and ``numbers_per_item``.

    A seed gives the same model on the same machine with any number of threads.

    Examples
    --------
    >>> from prodige.baselines import Popularity
    >>> Popularity().fit([[1, 1, 0], [0, 1, 0]]).numbers_per_item
    0.6
    """

    @property
    @abstractmethod
    def numbers_per_item(self) -> float:
        """Numbers kept, divided by users and items together, as the paper counts; of a fitted model."""

    def fit(self, user_items: Any, y: Any = None) -> Self:
        """Learn from interactions.

        Parameters
        ----------
        user_items : sparse matrix or array-like, shape [U, I]
            Above 0 where a user interacted with an item; see
            :func:`prodige.recommendation.interactions.check_interactions`.
        y : ignored
        """
        checked = check_interactions(user_items)
        # What is learned is put in place in one step, at the end: an error or Ctrl-C leaves what was there before.
        learner = copy.copy(self)
        with one_thread():
            learner._fit(checked)
        learner._remember(checked)
        self.__dict__.update(learner.__dict__)
        return self

    @abstractmethod
    def _fit(self, user_items: csr_array) -> None:
        """Check the parameters and learn; there are users, items and an interaction."""


class FactorModel(RecommenderBaseline):
    """Vectors of users and items whose product is the score.

    Attributes
    ----------
    user_factors_ : ndarray of float32, shape [U, n_factors]
    item_factors_ : ndarray of float32, shape [I, n_factors]
    """

    n_factors: int

    @property
    def numbers_per_item(self) -> float:
        """The factors."""
        return float(self.n_factors)

    def _scores(self, users: Ids) -> NDArray[np.float32]:
        return np.asarray(self.user_factors_[users] @ self.item_factors_.T)


def numbers_of(table: csr_array) -> int:
    """Return the size of a sparse table as the paper counts graphs: a number per row and two per entry.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from prodige.baselines.recommending import numbers_of
    >>> numbers_of(csr_array([[0, 1, 2], [0, 0, 3]]))
    8
    """
    return int(table.shape[0] + 2 * table.nnz)


@contextmanager
def import_implicit(module: str) -> Iterator[Any]:
    """Give a module of implicit, or say how to get it; while it works, linear algebra has one thread.

    Its own threads solve small systems side by side, and warn if those of BLAS get in their way.
    """
    from importlib import import_module

    from threadpoolctl import threadpool_limits

    try:
        found = import_module(f"implicit.cpu.{module}")
    except ImportError as error:
        raise ImportError(f"{module.upper()} needs implicit; pip install 'prodige[recommend]'") from error
    with threadpool_limits(1, "blas"):
        yield found


def check_positive(name: str, value: float) -> float:
    """Return a number after making sure it is finite and above 0."""
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value}")
    return float(value)


def check_nonnegative(name: str, value: float) -> float:
    """Return a number after making sure it is finite and not negative."""
    if not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number, 0 or more, got {value}")
    return float(value)
