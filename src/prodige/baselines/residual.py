"""ResidualCoordinates: a few principal coordinates, and for the rest one number that says how much it is.

Of two items in many dimensions, what the first coordinates leave out is nearly orthogonal. So squared distances are
those of the coordinates plus an energy of either item: D_ij² ≈ |p_i − p_j|² + e_i + e_j. The energies that fit best
have a closed form, that of a star (:mod:`prodige.metric.star`). They also make up for what rounding does to the
coordinates, which is why a budget in bits goes a long way here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from prodige._validation import check_integer, check_number
from prodige.baselines.base import Items, Vectors, flat_space
from prodige.baselines.rounding import MOST_BITS, Columns, rounded, stored_bits
from prodige.metric.scaling import classical_scaling
from prodige.metric.space import Metric, Space, natural_unit
from prodige.metric.star import star_radii

# Of metrics that are not Euclidean, the items that coordinates are found from: their distances take 256 MiB at most.
N_LANDMARKS = 1000
_MOST_DISTANCES = 1 << 25

# Items that the bits of the energy are chosen by.
_JUDGES = 256

_FEWEST_ENERGY_BITS = 3


class ResidualCoordinates(Vectors):
    """Principal coordinates and a residual energy, for any metric, in numbers or in bits.

    Coordinates are those of PCA for Euclidean distances of dense rows, and of classical scaling from landmarks for all
    others. With a budget in bits, coordinates get as many each as lower the error most, and levels by Lloyd
    (:mod:`prodige.baselines.rounding`); energies are found after that, and have 3 to 8 bits, whichever is best.

    Parameters
    ----------
    n_components : int
        Numbers of an item: all but one of them are coordinates.
    metric : str or callable
        Any scikit-learn metric name, ``"precomputed"``, or a function of two rows.
    bits_per_item : float, optional
        Memory for an item, its share of the levels included. Replaces ``n_components``, which then follows from it.
    random_state : int, RandomState or None
        Draws landmarks; seed of scikit-learn's solver for data with very many columns. A seed gives the same result on
        the same machine, with any number of threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.

    Attributes
    ----------
    embedding_ : ndarray of float32, shape [N, K]
        The coordinates, rounded where there is a budget in bits.
    energy_ : ndarray of float32, shape [N]
        May be negative: what is kept of a squared distance can be too much.
    bits_ : list of int
        Of each coordinate and, at the end, of the energy: 32 without a budget in bits.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import PCA, ResidualCoordinates
    >>> points = np.random.default_rng(0).normal(size=(200, 30))
    >>> ResidualCoordinates(4).fit(points).score(points) > 0.1 * PCA(4).fit(points).score(points)
    True
    >>> small = ResidualCoordinates(bits_per_item=32).fit(points)
    >>> small.bits_per_item_ <= 32
    True
    """

    def __init__(
        self,
        n_components: int = 4,
        metric: Metric = "euclidean",
        *,
        bits_per_item: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.bits_per_item = bits_per_item
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def numbers_per_item(self) -> float:
        """The coordinates and the energy."""
        return float(self.n_components if self.bits_per_item is None else len(self.bits_))

    @property
    def bits_per_item_(self) -> float:
        """Memory for an item with its share of the levels."""
        if self.bits_per_item is None:
            return 32 * self.numbers_per_item
        return sum(stored_bits(bits, self.n_items_) for bits in self.bits_)

    def _fit(self, space: Space) -> None:
        n = space.n_items
        if self.bits_per_item is None:
            width = check_integer("n_components", self.n_components, 1, 2**15) - 1
        else:
            budget = check_budget(self.bits_per_item, n)
            width = math.floor(budget)  # a coordinate has a bit at least
        # Squares of all distances must fit into single precision.
        self._unit = natural_unit(space)
        space = space.in_unit(self._unit)
        if self.bits_per_item is None:
            check_width(space, width)
        coordinates, sums = principal_coordinates(space, width, check_random_state(self.random_state))
        if self.bits_per_item is None:
            self.bits_ = [32] * self.n_components
            self.embedding_ = coordinates.astype(np.float32)
            self.energy_ = energies(self.embedding_, sums).astype(np.float32)
        else:
            self._fit_bits(space, coordinates, sums, budget)

    def _fit_bits(
        self, space: Space, coordinates: NDArray[np.float64], sums: NDArray[np.float64], budget: float
    ) -> None:
        """Try every size of the energy; keep what is best on some items."""
        n = space.n_items
        judges = np.unique(np.linspace(0, n - 1, _JUDGES).astype(np.int64))
        true = space.distances(judges)
        best = math.inf
        columns = Columns(coordinates)
        for energy_bits in range(_FEWEST_ENERGY_BITS, MOST_BITS + 1):
            room = budget - stored_bits(energy_bits, n)
            if room < 0:
                break
            bits = columns.share(room)
            points = columns.take(bits).astype(np.float32)
            energy = rounded(energies(points, sums), energy_bits).astype(np.float32)
            predicted = combined(points, energy, judges, np.arange(n), self.n_jobs)
            predicted[np.arange(judges.size), judges] = 0
            error = float(np.square(predicted - true).mean(dtype=np.float64))
            if error < best:
                best = error
                self.embedding_, self.energy_ = points, energy
                self.bits_ = [*(share for share in bits if share), energy_bits]

    def _distances(self, rows: Items, columns: Items) -> NDArray[Any]:
        return combined(self.embedding_, self.energy_, rows, columns, self.n_jobs) * self._unit


def check_budget(bits: float, n_items: int) -> float:
    """Return a budget after making sure that an energy fits into it."""
    least = stored_bits(_FEWEST_ENERGY_BITS, n_items)
    if check_number("bits_per_item", bits) < least:
        raise ValueError(
            f"bits_per_item must be {least:.4g} or more for {n_items} items, got {bits}: an energy has "
            f"{_FEWEST_ENERGY_BITS} bits and levels at least"
        )
    return float(bits)


def check_width(space: Space, width: int) -> None:
    """Refuse more coordinates than rows have."""
    most = min(space.points.shape)
    if is_flat(space) and width > most:
        raise ValueError(
            f"n_components must be between 1 and {most + 1} for {space.n_items} items of {space.points.shape[1]} "
            f"columns, got {width + 1}: there are no more principal coordinates"
        )


def is_flat(space: Space) -> bool:
    """Whether distances are Euclidean ones of dense rows."""
    return space.measure == "euclidean" and isinstance(space.points, np.ndarray)


def principal_coordinates(
    space: Space, width: int, random: np.random.RandomState
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return centred coordinates, and the sum of all squared distances of each item.

    Parameters
    ----------
    space : Space
        The items; coordinates are principal components of dense rows with Euclidean distances, and from landmarks
        otherwise.
    width : int
        Coordinates, or as many as the rows have.
    random : RandomState
        Draws landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.residual import principal_coordinates
    >>> from prodige.metric.space import Space
    >>> coordinates, sums = principal_coordinates(Space([[0.0], [1.0], [5.0]]), 1, np.random.RandomState(0))
    >>> np.abs(coordinates[:, 0]), sums
    (array([2., 1., 3.]), array([26., 17., 41.]))
    """
    n = space.n_items
    if is_flat(space):
        points = (space.points - space.points.mean(axis=0, dtype=np.float64)) / space.unit
        squares = (points**2).sum(axis=1)
        return principal(points, min(width, *points.shape), random), n * squares + squares.sum()
    n_landmarks = min(n, max(width + 1, min(N_LANDMARKS, _MOST_DISTANCES // n)))
    landmarks = np.sort(random.choice(n, n_landmarks, replace=False))
    coordinates = classical_scaling(space.distances(landmarks).astype(np.float64), landmarks, width)
    sums = np.concatenate([np.square(block, dtype=np.float64).sum(axis=1) for _, block in space.blocks()])
    return coordinates - coordinates.mean(axis=0), sums


def principal(points: NDArray[np.float64], width: int, random: np.random.RandomState) -> NDArray[np.float64]:
    """Return the first principal coordinates of centred points, shape [N, width]."""
    from sklearn.decomposition import PCA as Projection  # noqa: N811 - as in prodige.baselines.pca

    if width == 0:
        return np.empty((len(points), 0))
    with np.errstate(invalid="ignore"):  # shares of the variance, which may be 0 and are not used
        return np.asarray(Projection(width, random_state=random).fit_transform(points), dtype=np.float64)


def energies(points: NDArray[Any], sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what brings squared distances of points closest to others, of which the sum for each item is given.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.residual import energies
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> energies(points, np.array([10.0, 5.0, 13.0]) + 2)  # every squared distance is larger by 1
    array([0.5, 0.5, 0.5])
    """
    centred = points - points.mean(axis=0, dtype=np.float64)
    squares = (centred**2).sum(axis=1)
    return star_radii(sums - len(points) * squares - squares.sum())


def combined(
    points: NDArray[np.float32], energy: NDArray[np.float32], rows: Items, columns: Items, n_jobs: int | None
) -> NDArray[np.float32]:
    """Return √(|p − q|² + e + f) of the points and energies of rows and columns; 0 where that is below 0."""
    block = flat_space(points, n_jobs).distances(rows, columns)
    np.square(block, out=block)
    block += energy[rows][:, None]
    block += energy[columns][None]
    return np.sqrt(np.maximum(block, 0, out=block), out=block)
