"""Classical scaling from landmarks: coordinates out of distances, for any metric.

Landmarks are placed by the eigenvectors of their double-centred squared distances, all other items by their distances
to the landmarks (de Silva and Tenenbaum, 2004). For Euclidean distances this is PCA of the landmarks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def classical_scaling(distances: Floats, landmarks: NDArray[np.int64], n_components: int) -> Floats:
    """Return coordinates of all items, 0 in directions that the landmarks do not span, shape [N, K].

    Parameters
    ----------
    distances : ndarray of float64, shape [L, N]
        From every landmark to every item.
    landmarks : ndarray of int64, shape [L]
        Which items the landmarks are.
    n_components : int
        K, the number of coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.scaling import classical_scaling
    >>> distances = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0]])
    >>> np.abs(np.diff(classical_scaling(distances, np.array([0, 1]), 1)[:, 0])).round(6)
    array([1., 2.])
    """
    squares = distances**2
    return scaled(squares.T, *scaling_basis(squares[:, landmarks], n_components))


def scaling_basis(among: Floats, n_components: int) -> tuple[Floats, Floats]:
    """Return what places items: the mean square of each landmark, shape [L], and directions, shape [L, K].

    Parameters
    ----------
    among : ndarray of float64, shape [L, L]
        Squared distances between landmarks.
    n_components : int
        K; directions that the landmarks do not span are 0.
    """
    mean = among.mean(axis=1)
    centred = (mean[:, None] + mean[None] - among - mean.mean()) / 2
    values, vectors = np.linalg.eigh(centred)
    values, vectors = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    # Distances in single precision leave directions of rounding, which would be divided by next to nothing.
    real = values > 1e-6 * max(values[0], np.finfo(np.float64).tiny)
    basis = np.zeros((len(among), n_components))
    basis[:, : real.sum()] = vectors[:, real] / np.sqrt(values[real])
    return mean, basis


def scaled(squares: Floats, mean: Floats, basis: Floats) -> Floats:
    """Return the places of some items from their squared distances to landmarks, shape [N, L]; each by itself."""
    places: Floats = (mean - squares) @ basis / 2
    return places
