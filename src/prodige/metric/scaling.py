"""Classical scaling from landmarks: coordinates out of distances, for any metric.

Landmarks are placed by the eigenvectors of their double-centred squared distances, all other items by their distances
to the landmarks (de Silva and Tenenbaum, 2004). For Euclidean distances this is PCA of the landmarks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# An iteration finds so many times fewer directions than there are landmarks in a tenth of the time of all of them, as
# precisely as they are needed.
_FEW = 16
_PRECISION = 1e-4


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
        Squared distances between landmarks; used up, as it is large.
    n_components : int
        K; directions that the landmarks do not span are 0.
    """
    mean = among.mean(axis=1)
    centred = among  # in place
    centred -= mean[:, None]
    centred -= mean[None] - mean.mean()
    centred *= -0.5
    values, vectors = largest_eigenvectors(centred, n_components)
    # Distances in single precision leave directions of rounding, which would be divided by next to nothing.
    real = values > 1e-6 * max(values[0], np.finfo(np.float64).tiny)
    basis = np.zeros((len(among), n_components))
    basis[:, : real.sum()] = vectors[:, real] / np.sqrt(values[real])
    return mean, basis


def largest_eigenvectors(matrix: Floats, n_vectors: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of a symmetric matrix, falling, and their vectors, shape [L, K].

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.scaling import largest_eigenvectors
    >>> largest_eigenvectors(np.diag([1.0, -5.0, 3.0]), 2)[0]
    array([3., 1.])
    """
    if _FEW * n_vectors > len(matrix):
        values, vectors = np.linalg.eigh(matrix)
    else:
        from scipy.sparse.linalg import ArpackError, eigsh

        start = np.random.RandomState(0).standard_normal(len(matrix))
        try:
            values, vectors = eigsh(matrix, n_vectors, which="LA", v0=start, tol=_PRECISION)
        except ArpackError:  # such as of a matrix of zeros
            values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-values, kind="stable")[:n_vectors]
    return values[order], vectors[:, order]


def scaled(squares: Floats, mean: Floats, basis: Floats) -> Floats:
    """Return the places of some items from their squared distances to landmarks, shape [N, L]; each by itself."""
    places: Floats = (mean - squares) @ basis / 2
    return places
