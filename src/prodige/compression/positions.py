"""Positions of a factor's hubs, moved so that the distances between them come out right.

What the rest of a product leaves to a factor is one wish for each pair of hubs, and how much it matters: the mean
residual of the pairs of items that are there, and their weight. Hubs are moved by Levenberg and Marquardt's method,
all of them together, since near ones that move on their own push each other ever farther.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

Floats = NDArray[np.float64]

# How much a step is shortened to begin with, and the range within which that goes.
_DAMPING = 1e-3
_LEAST_DAMPING = 1e-6
_N_TRIALS = 6

# How closely a step is solved for: what it is a step towards is an approximation itself.
_PRECISION = 1e-3
_MOST_ITERATIONS = 60

# Squared distances below this part of the largest have no direction.
_TINY = 1e-12


def distance_powers(positions: Floats, power: float) -> Floats:
    """Return the distances between all positions to a power, shape [H, H]; 0 on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.positions import distance_powers
    >>> distance_powers(np.array([[0.0], [3.0]]), 2.0)
    array([[0., 9.],
           [9., 0.]])
    """
    squares = np.zeros((len(positions), len(positions)))
    for column in positions.T:
        squares += (column[:, None] - column) ** 2
    return squares if power == 2 else squares ** (power / 2)


def as_places(positions: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return dimensions and positions of all factors as ``choose_codes`` of the core wants them.

    Squared distances come out best about the mean, as the core multiplies in single precision.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.positions import as_places
    >>> as_places([np.array([[0.0], [3.0]]), np.array([[1.0, 2.0]])])
    (array([1, 2], dtype=int32), array([-1.5,  1.5,  0. ,  0. ], dtype=float32))
    """
    centred = [(some - some.mean(axis=0, dtype=np.float64)).astype(np.float32).ravel() for some in positions]
    sizes = np.array([some.shape[1] for some in positions], np.int32)
    return sizes, np.concatenate(centred)


def move_hubs(positions: Floats, residuals: Floats, weights: Floats, power: float, n_steps: int = 1) -> Floats:
    """Return positions whose distances to a power are closer to what was wished for.

    Parameters
    ----------
    positions : ndarray, shape [H, k]
    residuals : ndarray, shape [H, H]
        Sums of weight times (what came out − what should have) over pairs of items, by the hubs of both.
    weights : ndarray, shape [H, H]
        Sums of weights of the same pairs.
    power : float
        1 to 2.
    n_steps : int

    Examples
    --------
    Two hubs that are too close by 1:

    >>> import numpy as np
    >>> from prodige.compression.positions import move_hubs
    >>> ones = np.ones((2, 2))
    >>> moved = move_hubs(np.array([[0.0], [3.0]]), -1 * ones, ones, power=1.0, n_steps=3)
    >>> float(abs(moved[0, 0] - moved[1, 0]).round(3))
    4.0
    """
    weight = weights + weights.T
    residual = residuals + residuals.T
    np.fill_diagonal(weight, 0)
    wish = distance_powers(positions, power) - np.divide(residual, weight, out=np.zeros_like(weight), where=weight > 0)
    if not weight.any():
        return positions

    def loss(some: Floats) -> float:
        return float((weight * (distance_powers(some, power) - wish) ** 2).sum())

    best, damping = loss(positions), _DAMPING
    for _ in range(n_steps):
        gradient, stiffness = slopes(positions, weight, wish, power)
        for _ in range(_N_TRIALS):
            moved = positions - newton_step(positions, gradient, stiffness, damping)
            if (now := loss(moved)) < best:
                positions, best, damping = moved, now, max(damping / 4, _LEAST_DAMPING)
                break
            damping *= 8
        else:
            return positions
    return positions


def slopes(positions: Floats, weight: Floats, wish: Floats, power: float) -> tuple[Floats, Floats]:
    """Return the gradient of half the squared error by every coordinate, and how stiff each pair of hubs is.

    In the Gauss–Newton matrix a pair of hubs counts by its stiffness, along the line between the two.
    """
    squares = distance_powers(positions, 2.0)
    squares = np.maximum(squares, max(_TINY * squares.max(), np.finfo(np.float64).tiny))
    slope = power * squares ** (power / 2 - 1)
    np.fill_diagonal(slope, 0)
    pull = weight * (distance_powers(positions, power) - wish) * slope
    gradient = pull.sum(axis=1)[:, None] * positions - pull @ positions
    return gradient, weight * slope**2


def newton_step(positions: Floats, gradient: Floats, stiffness: Floats, damping: float) -> Floats:
    """Return the damped Gauss–Newton step, by conjugate gradients.

    The matrix is never made: it would have (H k)² numbers. A pair of hubs g, h adds K_gh u uᵀ to it, where K is the
    stiffness and u = x_g − x_h, so a product with it is one of K with a few columns.
    """
    n_hubs, n_dimensions = shape = positions.shape

    def outer(some: Floats) -> Floats:
        return (positions[:, :, None] * some[:, None, :]).reshape(n_hubs, -1)

    sums = stiffness @ np.concatenate([np.ones((n_hubs, 1)), positions, outer(positions)], axis=1)
    total, first, second = sums[:, 0], sums[:, 1 : 1 + n_dimensions], sums[:, 1 + n_dimensions :]
    second = second.reshape(n_hubs, n_dimensions, n_dimensions)
    # What a hub has with itself: the sum of K u uᵀ over all others.
    across = positions[:, :, None] * first[:, None, :]
    own = total[:, None, None] * outer(positions).reshape(second.shape) - across - across.swapaxes(1, 2) + second
    diagonal = np.einsum("haa->ha", own)
    damped = damping * (diagonal + diagonal.mean())  # hubs that nobody is at stay where they are
    inverse = np.linalg.inv(own + damped[:, :, None] * np.eye(n_dimensions))

    def times(flat: Floats) -> Floats:
        step = flat.reshape(shape)
        along = (positions * step).sum(axis=1)[:, None]
        columns = np.concatenate([along, step, along * positions, outer(step)], axis=1)
        sums = np.split(stiffness @ columns, np.cumsum([1, n_dimensions, n_dimensions]), axis=1)
        # By how much lines become longer, added up by hubs, alone and times where the other end is.
        longer = along * total[:, None] + sums[0]
        longer -= (positions * sums[1] + step * first).sum(axis=1)[:, None]
        ends = along * first + sums[2] - np.einsum("hab,hb->ha", sums[3].reshape(second.shape), positions)
        ends -= np.einsum("hab,hb->ha", second, step)
        return np.asarray((longer * positions - ends + damped * step).ravel())

    def blocks(flat: Floats) -> Floats:
        return np.asarray(np.einsum("hab,hb->ha", inverse, flat.reshape(shape)).ravel())

    size = (n_hubs * n_dimensions,) * 2
    step, _ = cg(
        LinearOperator(size, matvec=times, dtype=np.float64),
        gradient.ravel(),
        rtol=_PRECISION,
        maxiter=_MOST_ITERATIONS,
        M=LinearOperator(size, matvec=blocks, dtype=np.float64),
    )
    return np.asarray(step.reshape(shape))
