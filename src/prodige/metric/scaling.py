"""Classical scaling from landmarks: coordinates out of distances, for any metric.

Landmarks are placed by the eigenvectors of their double-centred squared distances, all other items by their distances
to the landmarks (de Silva and Tenenbaum, 2004). For Euclidean distances this is PCA of the landmarks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Items that are placed at a time.
_BLOCK = 1 << 14


def classical_scaling(
    distances: NDArray[Any], landmarks: NDArray[np.int64], n_components: int, unit: float = 1.0, exponent: float = 1.0
) -> NDArray[np.float64]:
    """Return coordinates of all items, 0 in directions that the landmarks do not span, shape [N, K].

    Parameters
    ----------
    distances : ndarray of float, shape [L, N]
        From every landmark to every item.
    landmarks : ndarray of int64, shape [L]
        Which items the landmarks are.
    n_components : int
        K, the number of coordinates.
    unit, exponent : float
        Distances are divided by the one, and then taken to the other.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.scaling import classical_scaling
    >>> distances = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0]])
    >>> np.abs(np.diff(classical_scaling(distances, np.array([0, 1]), 1)[:, 0])).round(6)
    array([1., 2.])
    """

    def squared(some: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(((some.astype(np.float64) / unit) ** exponent) ** 2)

    among = squared(distances[:, landmarks])
    mean = among.mean(axis=1)
    centred = (mean[:, None] + mean[None] - among - mean.mean()) / 2
    values, vectors = np.linalg.eigh(centred)
    values, vectors = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    # Distances in single precision leave directions of rounding, which would be divided by next to nothing.
    real = values > 1e-6 * max(values[0], np.finfo(np.float64).tiny)
    basis = vectors[:, real] / np.sqrt(values[real])
    embedding = np.zeros((distances.shape[1], n_components))
    for begin in range(0, len(embedding), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        embedding[part, : basis.shape[1]] = (mean[:, None] - squared(distances[:, part])).T @ basis / 2
    return embedding
