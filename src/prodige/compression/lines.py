"""Products of lines: every direction of the data is a factor of its own, with hubs on a line.

Items hang in a space of few directions (:mod:`prodige.compression.pendants`), and each is rounded in every direction,
which is transform coding. Two things decide how.

*Steps.* An error δ in a coordinate of item i changes its distance to j by (x_i − x_j) δ / |x_i − x_j|. So errors of a
direction matter by its influence, the mean of (x_i − x_j)² / |x_i − x_j|² over pairs, and steps are as long as the root
of a tolerance over the influence: then all directions matter alike. Lengths add to distances, and have an influence of
1.

*Prices.* Codes are kept by an arithmetic coder (:mod:`prodige.graph.rows`), so a hub that many items are at takes few
bits. An item is at the hub for which squared error and bits together cost least: entropy-constrained quantization
(Chou, Lookabaugh and Gray, 1989). Hubs are then moved amid their items.

The tolerance is found by trying: it is the least for which the file is within the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prodige.compression.filesize import expect_bits
from prodige.compression.pendants import Hung
from prodige.graph.grid import MOST_BITS, Grid
from prodige.graph.packing import number_bits
from prodige.graph.product import ProductGraph
from prodige.graph.product_parts import MAX_FACTORS
from prodige.progress import Monitor

Floats = NDArray[np.float64]

# What a bit costs, in squared steps: about twice the slope of a fine quantizer, ln(2) / 6; .15 and .35 are worse on
# digits, MNIST10k and deformed images.
PRICE = 0.25

# Of fewer bits than these, clusters may count for more than directions: factors of several directions are tried too.
LINE_BITS = 40

# Rounds of choosing hubs and counting how many items are at each.
_N_ROUNDS = 5

# Directions whose step is so many times their deviation have no second hub.
_LONGEST_STEP = 3.5

# Lines of codes with fewer bits than these are not worth their hubs, and hardly found again by other items.
_LEAST_BITS = 0.1

# Hubs of a line, at most about: what is finer than that is exact.
_MOST_HUBS = 1024

# Lines of more hubs than these are even: a position for each is not worth its bits.
_MANY_HUBS = 8

# Bits of a position beyond those that tell hubs apart.
_FINE_BITS = 3

# Tolerances that are tried, and what may be left of the budget.
N_TRIALS = 6
_LONGEST_TRY = 8.0  # of their logarithms
_LEFT = 0.003

# Items that a first guess is made with, and its halvings.
_N_GUESSED = 2048
_N_HALVINGS = 10

# Lengths outside this share of all of them go to the ends of their grid.
_ENDS = 0.0005


class Directions(Protocol):
    """Where items are along some directions, and how much these matter."""

    @property
    def places(self) -> Floats:
        """Of all items, shape [N, K]."""

    @property
    def variances(self) -> Floats:
        """Along each direction, descending."""

    @property
    def influences(self) -> Floats:
        """How much the squared error of a coordinate matters to that of distances, by directions."""


@dataclass(frozen=True)
class Line:
    """A direction, rounded.

    Attributes
    ----------
    codes : ndarray of int64, shape [N]
    positions : ndarray of float64, shape [H]
        Ascending.
    is_even : bool
        Whether steps between positions are equal.
    """

    codes: NDArray[np.int64]
    positions: Floats
    is_even: bool

    @property
    def bits(self) -> float:
        """Bits of a code on average, as frequencies have it."""
        share = np.bincount(self.codes) / self.codes.size
        return float(-(share[share > 0] * np.log2(share[share > 0])).sum())

    def grid(self) -> Grid:
        """Return positions in few bits; even ones take none."""
        n_hubs, positions = self.positions.size, self.positions[:, None]
        if self.is_even:
            return Grid(
                np.arange(n_hubs)[:, None], number_bits(n_hubs), positions[0, 0], positions[1, 0] - positions[0, 0]
            )
        return Grid.round(positions, _FINE_BITS + number_bits(n_hubs))


def fit_lines(
    hung: Hung,
    bits: float,
    scale: float,
    monitor: Monitor | None = None,
    n_items: int | None = None,
    n_jobs: int = 1,
) -> ProductGraph | None:
    """Return a product of lines whose file has so many bits an item, None where that is too few for one.

    Parameters
    ----------
    hung : Hung
        Where items hang, in units of ``scale``.
    bits : float
    scale : float
    monitor : Monitor, optional
        How many tolerances to try; :data:`N_TRIALS` when left out.
    n_items : int, optional
        Items that the file is to have in the end, where these are a sample of them.
    n_jobs : int
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.coordinates import find_coordinates
    >>> from prodige.compression.lines import fit_lines
    >>> from prodige.compression.pendants import PendantFit
    >>> from prodige.metric.landmarks import Landmarks
    >>> from prodige.metric.space import Space
    >>> space = Space(np.random.default_rng(0).normal(size=(2000, 5)))
    >>> landmarks = Landmarks.draw(space, 500, np.random.RandomState(0))
    >>> fit = PendantFit(landmarks, find_coordinates(landmarks, (2.0, 2.0)), n_jobs=1)
    >>> errors = fit.begin(5), fit.learn()
    >>> product = fit_lines(fit.hang(), 32, landmarks.scale)
    >>> product.n_factors, product.pendant, 31 < product.bits_per_item <= 32
    (5, True, True)
    """
    monitor = Monitor(N_TRIALS) if monitor is None else monitor
    best, most = None, 0.0  # its bits
    tolerance, tried = guess_tolerance(hung, bits), Tried((1 - _LEFT / 2) * bits)
    try:
        for progress in monitor.run():
            product = monitor.insist(partial(make_product, hung, tolerance, scale, n_jobs))
            if product is None:
                break
            monitor.record(progress, measure_error(product, hung, scale), None, product.numbers_per_item)
            found = expect_bits(product, n_items)
            if most < found <= bits:
                best, most = product, found
            if most >= (1 - _LEFT) * bits:
                break
            tolerance = tried.next(tolerance, found, product.n_factors)
    except KeyboardInterrupt:
        monitor.stopped = "interrupt"
    while (
        best is None and (product := monitor.insist(partial(make_product, hung, tolerance, scale, n_jobs))) is not None
    ):
        best = product if expect_bits(product, n_items) <= bits else None
        tolerance *= 1.5
    return best


class Tried:
    """Tolerances that were tried, as logarithms, and what came of them; the next one is where a line through two is.

    Parameters
    ----------
    wanted : float
        Bits.
    """

    def __init__(self, wanted: float) -> None:
        self.wanted = wanted
        self.last: tuple[float, float] | None = None

    def next(self, tolerance: float, bits: float, n_factors: int) -> float:
        """Return what to try after a tolerance that led to so many bits and factors."""
        now = float(np.log2(tolerance)), bits
        slope = -n_factors / 2  # half a bit in each direction for a tolerance twice as large
        if self.last is not None and now[0] != self.last[0]:
            slope = min((now[1] - self.last[1]) / (now[0] - self.last[0]), slope / 4)
        self.last = now
        return float(2 ** (now[0] + np.clip((self.wanted - now[1]) / slope, -_LONGEST_TRY, _LONGEST_TRY)))


def guess_tolerance(directions: Directions, bits: float) -> float:
    """Return a tolerance for which the codes of some items have so many bits, as frequencies of hubs have it."""
    places, influences = directions.places[:_N_GUESSED], directions.influences

    def bits_of(tolerance: float) -> float:
        return sum(line.bits for line in make_lines(places, directions.variances, tolerance / influences))

    high = 2.0 + np.log2(float((directions.variances * influences).max()))
    low = high - 2 * bits - 8  # more than enough for one direction
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if bits_of(2**middle) > bits else (low, middle)
    return float(2**high)


def count_lines(directions: Directions, bits: float) -> int:
    """Return how many directions have more than one hub where their codes have so many bits."""
    tolerance = guess_tolerance(directions, bits)
    return len(make_lines(directions.places[:_N_GUESSED], directions.variances, tolerance / directions.influences))


def make_product(hung: Hung, tolerance: float, scale: float, n_jobs: int = 1) -> ProductGraph | None:
    """Return the product of lines of a tolerance, in the unit of the data; None where no line has two hubs."""
    lines = make_lines(hung.places, hung.variances, tolerance / hung.influences)
    if not lines:
        return None
    grids = [line.grid() for line in lines]
    rounded = [grid.values[line.codes].astype(np.float64) for grid, line in zip(grids, lines, strict=True)]
    lengths = round_lengths(hung.lengths_of(np.concatenate(rounded, axis=1), n_jobs), float(np.sqrt(tolerance)))
    codes = np.stack([line.codes for line in lines], axis=1)
    return ProductGraph.from_factors([grid.times(scale) for grid in grids], codes, lengths.times(scale), pendant=True)


def make_lines(places: Floats, variances: Floats, squared_steps: Floats) -> list[Line]:
    """Round directions, the first ones first, until nearly all items are at one hub."""
    lines: list[Line] = []
    for along, variance, square in zip(places.T, variances, squared_steps, strict=True):
        if square > _LONGEST_STEP**2 * variance or len(lines) == MAX_FACTORS:
            break
        line = round_line(along, max(float(np.sqrt(square)), float(np.ptp(along)) / _MOST_HUBS))
        if line.positions.size < 2 or line.bits < _LEAST_BITS:
            break
        lines.append(line)
    return lines


def round_line(places: Floats, step: float) -> Line:
    """Put items at hubs of even steps, where squared error and bits together cost least.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.lines import round_line
    >>> line = round_line(np.array([-0.1, 0.1, 0.0, 0.4, 2.2]), 1.0)
    >>> line.codes, line.positions.round(2)
    (array([0, 0, 0, 0, 1]), array([0.1, 2.2]))
    """
    places_in_steps = places / step
    nearest = np.rint(places_in_steps).astype(np.int64)
    nearest -= (first := int(nearest.min()) - 1)  # a hub beyond either end, so that all have two beside them
    places_in_steps -= first
    level, n_levels = nearest, int(nearest.max()) + 2
    for _ in range(_N_ROUNDS):
        bits = hub_bits(level, n_levels)
        costs = [(places_in_steps - nearest - shift) ** 2 + PRICE * bits[nearest + shift] for shift in (-1, 0, 1)]
        level = nearest - 1 + np.argmin(costs, axis=0)
    if np.ptp(level) >= _MANY_HUBS:
        slope, start = np.polyfit(level, places, 1)
        codes = level - level.min()
        return Line(codes, start + slope * np.arange(level.min(), level.max() + 1), is_even=True)
    codes = np.unique(level, return_inverse=True)[1]
    return Line(codes, np.bincount(codes, places) / np.bincount(codes), is_even=False)


def hub_bits(codes: NDArray[Any], n_hubs: int) -> Floats:
    """Return the bits of the code of each hub, by how many items are there.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.lines import hub_bits
    >>> hub_bits(np.array([0, 0, 1, 2]), 3)
    array([1., 2., 2.])
    """
    bits: Floats = np.log2(codes.size / np.maximum(np.bincount(codes, minlength=n_hubs), 0.5))
    return bits


def round_lengths(lengths: Floats, step: float) -> Grid:
    """Return lengths on a grid of a step, or of a longer one where there would be too many levels."""
    low, high = np.quantile(lengths, [_ENDS, 1 - _ENDS])
    step = max(step, float(high - low) / (2**MOST_BITS - 1), float(np.finfo(np.float32).tiny))
    levels = np.rint((np.clip(lengths, low, high) - low) / step).astype(np.int64)
    return Grid(levels, max(1, number_bits(int(levels.max()) + 1)), low, step)


def measure_error(product: ProductGraph, hung: Hung, scale: float) -> float:
    """Return the mean squared error of distances between judges, in the unit of the data."""
    found = product.distances(hung.judges, hung.judges, n_jobs=1)
    return float(np.square(found - scale * hung.distances).mean(dtype=np.float64))
