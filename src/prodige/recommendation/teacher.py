"""The teacher: users and items as vectors in floats, by alternating least squares with a ridge that knows its rows.

With w the weight of an interaction and ``alpha`` that of every pair, met or not,

    Σ_met w (u·v − 1)² + α Σ_all (u·v)² + λ Σ_u (w_u + α·I) |u|² + λ Σ_x (w_x + α·U) |v|²

where w_u and w_x are sums of weights of a user and of an item. The ridge that grows with what is known of a row is what
makes it strong (Rendle, Krichene, Zhang, Koren: Revisiting the performance of iALS on item recommendation benchmarks,
RecSys 2022). Codes are fitted to its scores, and not to interactions: few of them would be learned by heart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prodige.recommendation.sides import Floats, Side, Sides, gram

# Spread of the items' vectors at the start, over the root of the rank.
_SPREAD = 0.1


@dataclass(frozen=True)
class TeacherSettings:
    """What a teacher is fitted with.

    Attributes
    ----------
    rank : int
        Coordinates, a multiple of 8.
    alpha : float
        Weight of a pair that says nothing yet: its score should be 0.
    penalty : float
        λ, for each unit of weight that a row has.
    """

    rank: int = 64
    alpha: float = 0.015
    penalty: float = 0.015


@dataclass(frozen=True)
class Teacher:
    """Vectors of users and items; the score of a pair is their product.

    Attributes
    ----------
    users, items : ndarray of float32, shapes [U, rank] and [I, rank]
    settings : TeacherSettings
    """

    users: Floats
    items: Floats
    settings: TeacherSettings


def fit_teacher(
    sides: Sides,
    settings: TeacherSettings,
    n_alternations: int,
    random: np.random.RandomState,
    n_jobs: int,
) -> Teacher:
    """Return vectors after so many alternations, items last, then users once more.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.sides import Sides
    >>> from prodige.recommendation.teacher import TeacherSettings, fit_teacher
    >>> sides = Sides.of(csr_array(np.kron(np.eye(2), np.ones((6, 4)))))
    >>> teacher = fit_teacher(sides, TeacherSettings(rank=8), 5, np.random.RandomState(0), n_jobs=1)
    >>> scores = teacher.users @ teacher.items.T
    >>> bool(scores[0, 3] > 0.5 > scores[0, 4])
    True
    """
    n_items = sides.items.n_rows
    items = random.standard_normal((n_items, settings.rank)) * (_SPREAD / np.sqrt(settings.rank))
    teacher = Teacher(np.empty((0, settings.rank), np.float32), items.astype(np.float32), settings)
    for _ in range(n_alternations):
        teacher = alternate(sides, teacher, n_jobs)
    return Teacher(solve_side(sides.users, teacher.items, settings, n_jobs), teacher.items, settings)


def complete(sides: Sides, teacher: Teacher) -> Teacher:
    """Return the teacher with users of whom nothing is known where the others are on average."""
    idle = sides.users.totals == 0
    if not idle.any():
        return teacher
    users = teacher.users.copy()
    users[idle] = users[~idle].mean(axis=0, dtype=np.float64)
    return Teacher(users, teacher.items, teacher.settings)


def alternate(sides: Sides, teacher: Teacher, n_jobs: int) -> Teacher:
    """Return the teacher after one alternation: users given items, then items given users."""
    users = solve_side(sides.users, teacher.items, teacher.settings, n_jobs)
    return Teacher(users, solve_side(sides.items, users, teacher.settings, n_jobs), teacher.settings)


def solve_side(side: Side, partners: Floats, settings: TeacherSettings, n_jobs: int) -> Floats:
    """Return the best vectors of a side's rows given those of the other side."""
    ridge = settings.penalty * (side.totals + settings.alpha * side.n_partners)
    every = (settings.alpha * gram(partners)).astype(np.float32)
    solved: NDArray[np.float32] = side.fit.solve(partners, every, None, ridge.astype(np.float32), None, n_jobs)
    return solved
