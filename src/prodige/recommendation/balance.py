"""Balance: a teacher's scores as products of two sides with the same spectrum, and a bias of each item.

Of the score u·v, the part u·v̄ with the mean item is the same for all items and changes no order: it is left out. The
part ū·(v − v̄) of the mean user is the same for all users: it becomes the bias of the item. What is left, (u − ū)·(v −
v̄), is turned so that both sides have the same diagonal spectrum: an error in a coordinate then costs as much as the
coordinate is worth, whichever side makes it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prodige.recommendation.sides import Floats, gram
from prodige.recommendation.teacher import Teacher

# Directions with less than this share of the largest are noise of float32.
_LEAST = 1e-5


@dataclass(frozen=True)
class Balanced:
    """Both sides of a teacher, and what its scores are made of.

    Attributes
    ----------
    users, items : ndarray of float32, shapes [U, d] and [I, d]
        ``users.T @ users`` and ``items.T @ items`` are both diag(spectrum).
    spectrum : ndarray of float64, shape [d]
        Falling.
    bias : ndarray of float32, shape [I]
        Higher is better; its mean is 0.
    level : float
        The score of the mean user for the mean item.
    stretch : float
        How much longer the squares of users' vectors are with the teacher: its ridge is on that scale.
    """

    users: Floats
    items: Floats
    spectrum: NDArray[np.float64]
    bias: Floats
    level: float
    stretch: float

    def take(self, columns: NDArray[np.int64]) -> Balanced:
        """Return some of the directions, in this order."""
        return Balanced(
            np.ascontiguousarray(self.users[:, columns]),
            np.ascontiguousarray(self.items[:, columns]),
            self.spectrum[columns],
            self.bias,
            self.level,
            self.stretch,
        )


def balance(teacher: Teacher) -> Balanced:
    """Return the balanced sides of a teacher.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.balance import balance
    >>> from prodige.recommendation.teacher import Teacher, TeacherSettings
    >>> random = np.random.RandomState(0)
    >>> users, items = (random.standard_normal((n, 8)).astype(np.float32) for n in (30, 20))
    >>> balanced = balance(Teacher(users, items, TeacherSettings()))
    >>> scores = users @ items.T
    >>> found = balanced.users @ balanced.items.T + balanced.bias
    >>> np.allclose(found - found.mean(1, keepdims=True), scores - scores.mean(1, keepdims=True), atol=1e-4)
    True
    """
    mean_user = teacher.users.mean(axis=0, dtype=np.float64)
    mean_item = teacher.items.mean(axis=0, dtype=np.float64)
    users = teacher.users - mean_user.astype(np.float32)
    items = teacher.items - mean_item.astype(np.float32)
    root_users, back_users = roots(gram(users))
    root_items, back_items = roots(gram(items))
    left, spectrum, right = np.linalg.svd(root_users @ root_items)
    kept = spectrum > _LEAST * max(spectrum[0], np.finfo(np.float32).tiny)
    kept[0] = True  # one direction at least, even where all users or all items are alike
    scale = np.sqrt(spectrum[kept])
    return Balanced(
        (users @ (back_users @ left[:, kept] * scale)).astype(np.float32),
        (items @ (back_items @ right[kept].T * scale)).astype(np.float32),
        spectrum[kept],
        (items @ mean_user).astype(np.float32),
        float(mean_user @ mean_item),
        float(np.square(users, dtype=np.float64).sum() / max(spectrum.sum(), np.finfo(np.float32).tiny)),
    )


def roots(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the symmetric root of a positive semidefinite matrix, and its pseudo-inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.balance import roots
    >>> root, inverse = roots(np.diag([4.0, 0.0]))
    >>> root.tolist(), inverse.tolist()
    ([[2.0, 0.0], [0.0, 0.0]], [[0.5, 0.0], [0.0, 0.0]])
    """
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _LEAST**2 * max(values[-1], 0.0)
    root = np.sqrt(np.where(kept, values, 0.0))
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T
