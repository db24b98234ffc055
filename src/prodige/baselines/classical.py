"""Where baselines that descend start from: classical scaling from landmarks, for any metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prodige.metric.scaling import classical_scaling
from prodige.metric.space import Space
from prodige.metric.star import star_radii

N_LANDMARKS = 500

# Distances from landmarks to all items: 256 MiB as float64. With more items, fewer landmarks.
_MOST_DISTANCES = 1 << 25


@dataclass(frozen=True)
class ClassicalStart:
    """Where learning starts.

    Attributes
    ----------
    embedding : ndarray of float64, shape [N, K]
        Coordinates in units of the mean distance.
    mean_distance : float
        1 where all distances are 0.
    landmarks : ndarray of int64, shape [L]
        The items drawn.
    distances : ndarray of float32, shape [L, N]
        True distances from them to all items, in units of the mean distance.
    """

    embedding: NDArray[np.float64]
    mean_distance: float
    landmarks: NDArray[np.int64]
    distances: NDArray[np.float32]


def start(
    space: Space, n_components: int, random: np.random.RandomState, n_landmarks: int = N_LANDMARKS
) -> ClassicalStart:
    """Place all items by classical scaling, scaled to fit the distances, with a little noise.

    The noise, a hundredth of the mean distance, parts items that fall on one place, where gradients have no direction.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.classical import start
    >>> from prodige.metric.space import Space
    >>> found = start(Space([[0.0], [1.0], [3.0]]), 1, np.random.RandomState(0))
    >>> found.mean_distance
    2.0
    >>> np.abs(np.diff(found.embedding[:, 0])).round(1)
    array([0.5, 1. ])
    """
    n = space.n_items
    n_landmarks = max(n_components + 1, min(n_landmarks, _MOST_DISTANCES // n))
    landmarks = np.sort(random.choice(n, min(n_landmarks, n), replace=False))
    distances = space.distances(landmarks)
    # Without the zeros of the landmarks themselves.
    mean = float(distances.sum(dtype=np.float64) / (landmarks.size * (n - 1))) or 1.0
    distances /= np.float32(mean)
    embedding = classical_scaling(distances.astype(np.float64), landmarks, n_components)
    embedding *= best_scale(Space(embedding, n_jobs=space.n_jobs).distances(landmarks), distances)
    embedding += random.normal(scale=0.01, size=embedding.shape)
    return ClassicalStart(embedding, mean, landmarks, distances)


def landmark_star(distances: NDArray[np.float32], landmarks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the radii of the best star as far as distances from landmarks to all items tell.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.classical import landmark_star
    >>> landmark_star(np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]], dtype=np.float32), np.arange(3))
    array([1., 0., 2.])
    """
    n = distances.shape[1]
    others = np.full(n, len(landmarks))
    others[landmarks] -= 1
    return star_radii(distances.sum(axis=0, dtype=np.float64) * (n - 1) / others)


def best_scale(predicted: NDArray[np.float32], target: NDArray[np.float32]) -> float:
    """Return the factor that brings distances closest to the targets; 1 where they are all 0."""
    product, square = (float(np.vdot(predicted.ravel(), other.ravel())) for other in (target, predicted))
    return product / square if product > 0 else 1.0
