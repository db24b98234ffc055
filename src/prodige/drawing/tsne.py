"""t-SNE of a table of neighbours: near vertices attract each other, all vertices push each other away.

The descent is that of van der Maaten and Hinton (2008). Pushing is the costly part, as it concerns all pairs: here
every vertex is spread over the four points of a grid around it, and the forces between grid points are a convolution
(as in Linderman et al., 2019, with linear instead of cubic weights). An iteration then costs the same per vertex
whatever their number: 10,000 vertices with 30 neighbours take seconds where Barnes and Hut's tree takes a minute. All
of it runs in one thread, so the result is the same on any number of processors.
"""

from __future__ import annotations

import numpy as np
import scipy.fft
import scipy.sparse
from numpy.typing import NDArray

N_ITERATIONS = 350
EXAGGERATION = 12.0  # how much stronger attraction is at the beginning, while clusters find their places
N_EXAGGERATED = 100
SPREAD = 1e-4  # standard deviation of where it starts: as good as a point, so that nothing stands in the way

# The kernel 1 / (1 + d²) bends within a distance of 1: grid points must be closer than that.
SPACING = 0.5
MOST_CELLS = 384  # along one side; 384² points and as much room again take 10 ms to convolve


def descend(
    start: NDArray[np.float64],
    neighbors: NDArray[np.int64],
    distances: NDArray[np.float64],
    perplexity: float,
    n_iterations: int = N_ITERATIONS,
) -> NDArray[np.float64]:
    """Return places of vertices so that neighbours are near each other, shape [N, 2].

    Parameters
    ----------
    start : ndarray of float, shape [N, 2]
        Where they start; only the proportions count.
    neighbors : ndarray of int, shape [N, K]
        Which vertices should be near; -1 where there are fewer.
    distances : ndarray of float, shape [N, K]
        How far they are; not looked at where there is no neighbour.
    perplexity : float
        How many neighbours count, softly: those beyond have little weight.
    n_iterations : int
        Steps of the descent.

    Examples
    --------
    Two pairs:

    >>> import numpy as np
    >>> from prodige.drawing.tsne import descend
    >>> start = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> places = descend(start, np.array([[3], [2], [1], [0]]), np.ones((4, 1)), perplexity=1)
    >>> apart = np.linalg.norm(places[0] - places, axis=1)
    >>> bool(apart[3] < apart[1])
    True
    """
    attraction = joint_affinities(neighbors, distances, perplexity)
    rows = np.repeat(np.arange(len(start)), np.diff(attraction.indptr))
    places: NDArray[np.float64] = start - start.mean(axis=0)
    places *= SPREAD / max(float(places.std()), np.finfo(np.float64).tiny)
    # A step goes half of the way to the middle of the neighbours, so that nothing flies off. While attraction is
    # exaggerated, and for vertices with as many neighbours as others, this is about the rate N / 12 of Belkina et al.
    # (2019); later it is larger, and fewer steps are needed.
    rate = (0.5 / np.maximum(np.asarray(attraction.sum(axis=1)), 1 / len(start)))[:, None]
    speed, gain, grid = np.zeros_like(places), np.ones_like(places), Grid()
    for iteration in range(n_iterations):
        exaggerated = iteration < N_EXAGGERATED
        strength, momentum = (EXAGGERATION, 0.5) if exaggerated else (1.0, 0.8)
        gradient = strength * attracting(places, attraction, rows) - grid.repulsion(places)
        gain = np.maximum(np.where((speed > 0) == (gradient > 0), 0.8 * gain, gain + 0.2), 0.01)
        speed = momentum * speed - rate / strength * gain * gradient
        places = places + speed
        places -= places.mean(axis=0)
    return places


def joint_affinities(
    neighbors: NDArray[np.int64], distances: NDArray[np.float64], perplexity: float
) -> scipy.sparse.csr_array:
    """Return symmetric affinities that add up to 1, shape [N, N].

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.drawing.tsne import joint_affinities
    >>> joint_affinities(np.array([[1], [0]]), np.ones((2, 1)), 1).toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    n, k = neighbors.shape
    given = neighbors >= 0
    weights = np.where(given, affinities(np.where(given, distances, np.inf), perplexity), 0.0)
    rows = np.repeat(np.arange(n), k)[given.ravel()]
    matrix = scipy.sparse.csr_array((weights[given], (rows, neighbors[given])), shape=(n, n))
    matrix = scipy.sparse.csr_array(matrix + matrix.T)
    return matrix / max(float(matrix.sum()), np.finfo(np.float64).tiny)


def affinities(distances: NDArray[np.float64], perplexity: float, n_bisections: int = 40) -> NDArray[np.float64]:
    """Return how near each neighbour is: Gaussian, with the width that makes the perplexity, rows adding up to 1."""
    finite = np.isfinite(distances)
    nearest = np.where(finite, distances, np.finfo(np.float64).max).min(axis=1, keepdims=True)
    squares = np.where(finite, distances - nearest, 0.0) ** 2
    mean = squares.sum(axis=1, keepdims=True) / np.maximum(finite.sum(axis=1, keepdims=True), 1)
    squares = np.where(finite, squares / np.where(mean > 0, mean, 1.0), np.inf)
    target = np.log(perplexity)
    narrowest = np.full((len(squares), 1), 60.0)  # bounds of the logarithm of the precision
    widest = -narrowest
    for _ in range(n_bisections):
        middle = (narrowest + widest) / 2
        weights = gaussian(squares, middle)
        entropy = -(weights * np.log(np.maximum(weights, np.finfo(np.float64).tiny))).sum(axis=1, keepdims=True)
        wide = entropy > target
        widest, narrowest = np.where(wide, middle, widest), np.where(wide, narrowest, middle)
    return gaussian(squares, (narrowest + widest) / 2)


def gaussian(squares: NDArray[np.float64], log_precision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that add up to 1 in every row with a neighbour."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        weights = np.exp(-np.exp(log_precision) * squares)
    weights = np.where(np.isfinite(squares), weights, 0.0)
    shares: NDArray[np.float64] = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return shares


def attracting(
    places: NDArray[np.float64], attraction: scipy.sparse.csr_array, rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the sum of p_ij (y_i - y_j) / (1 + d²) over the neighbours of each vertex."""
    columns = attraction.indices
    squares = sum((axis[rows] - axis[columns]) ** 2 for axis in np.ascontiguousarray(places.T))
    pulls = scipy.sparse.csr_array((attraction.data / (1 + squares), columns, attraction.indptr), attraction.shape)
    forces: NDArray[np.float64] = np.asarray(pulls.sum(axis=1))[:, None] * places - pulls @ places
    return forces


class Grid:
    """How vertices push each other away, by way of a grid.

    Examples
    --------
    Two vertices at a distance of 1, with a kernel of one half each way:

    >>> import numpy as np
    >>> from prodige.drawing.tsne import Grid
    >>> Grid().repulsion(np.array([[0.0, 0.0], [1.0, 0.0]])).round(2)
    array([[-0.25,  0.  ],
           [ 0.25,  0.  ]])
    """

    def __init__(self) -> None:
        self._side = -1.0
        self._kernels: NDArray[np.complex128] = np.zeros((0, 0, 0), np.complex128)
        self._cells = 0

    def repulsion(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the force on each vertex: the sum of (y_i - y_j) / (1 + d²)² over the sum of 1 / (1 + d²)."""
        low = places.min(axis=0)
        self._fit(float((places - low).max()))
        n, cells = len(places), self._cells
        position = (places - low) * ((cells - 1) / self._side)
        corner = np.minimum(position.astype(np.int64), cells - 2)
        right = position - corner
        index = [(corner[:, 0] + x) * cells + corner[:, 1] + y for x in (0, 1) for y in (0, 1)]
        share = [abs(1 - x - right[:, 0]) * abs(1 - y - right[:, 1]) for x in (0, 1) for y in (0, 1)]
        charge = np.bincount(np.concatenate(index), np.concatenate(share), cells * cells).reshape(cells, cells)
        double = self._kernels.shape[1]
        waves = self._kernels * scipy.fft.rfft2(charge, s=(double, double))
        fields = scipy.fft.irfft2(waves, s=(double, double))[:, :cells, :cells].reshape(3, -1)
        felt = np.zeros((3, n))
        for where, weight in zip(index, share, strict=True):
            felt += fields[:, where] * weight
        # A vertex does not push itself: its own part of the sum, spread over the grid like the rest, is taken out.
        side, diagonal = (1 / (1 + k * (self._side / (cells - 1)) ** 2) for k in (1, 2))
        kernel = [[1, side, side, diagonal], [side, 1, diagonal, side], [side, diagonal, 1, side]]
        own = float(np.sum(share * (np.array([*kernel, kernel[0][::-1]]) @ np.array(share))))
        return felt[1:].T / max(float(felt[0].sum()) - own, np.finfo(np.float64).tiny)

    def _fit(self, extent: float) -> None:
        """Make the grid large enough; kernels are kept until the picture has grown or shrunk by a tenth."""
        if extent <= self._side <= 1.1 * extent:
            return
        self._side = max(1.05 * extent, 1e-9)
        self._cells = int(np.clip(self._side / SPACING, 32, MOST_CELLS))
        double = scipy.fft.next_fast_len(2 * self._cells, real=True)
        step = self._side / (self._cells - 1)
        apart = np.minimum(np.arange(double), double - np.arange(double)) * step
        sign = np.where(np.arange(double) <= double // 2, 1.0, -1.0)
        kernel = 1 / (1 + apart[:, None] ** 2 + apart[None] ** 2)
        along = kernel**2 * (apart * sign)[:, None]
        self._kernels = scipy.fft.rfft2(np.stack([kernel, along, along.T]))
