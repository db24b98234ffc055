"""Other representations in a given number of bits an item, with every split of dimensions and bits worth trying.

A method yields candidates for a budget, each with how its bits are spent and what it takes with all that is needed to
answer: levels of coordinates, codebooks. Which of them is best is for others to judge. Methods that learn do so once
for every dimension; rounding is done for every budget.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prodige import baselines
from prodige.baselines.base import Items, Vectors
from prodige.baselines.classical import best_scale, landmark_star
from prodige.baselines.residual import combined, energies, principal_coordinates
from prodige.baselines.rounding import MOST_BITS, Columns, rounded, stored_bits
from prodige.metric.evaluation import Model
from prodige.reproduce.families import Family
from prodige.reproduce.judging import Judge
from prodige.reproduce.quantisers import Quantiser

# Numbers of an item that are tried, by methods that learn coordinates: a budget has those with 2 bits or more for each.
DIMENSIONS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_FEWEST_BITS = 2
N_STEPS = 500

# Bits of heights and energies that are tried where they are not simply what is left.
HEIGHT_BITS = (3, 4, 5, 6)
_FEWEST_ENERGY_BITS = 4

# Principal coordinates that codes are made of, and bits of a code. Books are large, so they are made of fewer and
# smaller codewords where they count.
WIDTHS = {"pq": (64, 128), "opq": (64, 128), "rq": (64, 128, 256), "lsq": (64,)}
CODE_BITS = {"pq": (6, 8), "opq": (6, 8), "rq": (6, 8), "lsq": (8,)}
WHOLE_WIDTHS = {"pq": (16, 32, 64), "opq": (16, 32), "rq": (8, 16, 32, 64), "lsq": (16, 32)}
WHOLE_CODE_BITS = {"pq": (4, 5, 6, 7, 8), "opq": (4, 6, 8), "rq": (4, 5, 6, 7), "lsq": (4, 6)}


@dataclass(frozen=True)
class Candidate:
    """One way to spend a budget.

    Attributes
    ----------
    split : str
        How bits are spent.
    bits_per_item : float
        All that is counted.
    model : Model
        What answers distances.
    """

    split: str
    bits_per_item: float
    model: Model


@dataclass
class Bench:
    """A data set as methods see it, and what they keep from one budget to the next.

    Attributes
    ----------
    family : Family
    judge : Judge
        Its sources are the landmarks that heights and scales are fitted to.
    most_bits : int
        The largest budget.
    n_jobs : int, optional
        Threads.
    kept : dict
        What took long to learn, by method.
    """

    family: Family
    judge: Judge
    most_bits: int
    n_jobs: int | None = None
    kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.judge.space.n_items

    def coordinates(self, width: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return principal coordinates and the sum of all squared distances of each item."""
        key = ("coordinates", width, seed)
        if key not in self.kept:
            self.kept[key] = principal_coordinates(self.judge.space, width, np.random.RandomState(seed))
        coordinates, sums = self.kept[key]
        return coordinates, sums


class Method(Protocol):
    """Something that keeps distances in a given number of bits."""

    def candidates(self, bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        """Yield the ways to spend so many bits an item, none of which takes more."""


# -- coordinates -----------------------------------------------------------------------------------------------------


class Residual:
    """Principal coordinates and a residual energy; bits go to where they pay most."""

    def candidates(self, bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        """Yield the one that :class:`prodige.baselines.ResidualCoordinates` finds by itself."""
        options: dict[str, Any] = {"metric": bench.family.metric, "random_state": seed, "n_jobs": bench.n_jobs}
        model = baselines.ResidualCoordinates(bits_per_item=bits, **options).fit(bench.family.X)
        *coordinates, energy = model.bits_
        split = f"{in_short(coordinates)}, energy of {energy}"
        yield Candidate(split, model.bits_per_item_, model)


@dataclass(frozen=True)
class Rounded:
    """Coordinates that are learned, then rounded along their principal axes, evenly or to where bits pay most.

    Attributes
    ----------
    kind : callable
        :class:`prodige.baselines.MDS`, ``PoincareMDS`` or ``Vivaldi``.
    """

    kind: Callable[..., Vectors]

    def candidates(self, bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        """Yield all dimensions, rounded in every way."""
        for dimensions in DIMENSIONS:
            if bits < _FEWEST_BITS * dimensions:
                break
            if bits > MOST_BITS * dimensions and dimensions != DIMENSIONS[-1]:
                continue  # more bits than coordinates have use for
            model = learned(bench, self.kind, dimensions, seed)
            if isinstance(model, baselines.Vivaldi):
                yield from rounded_heights(bench, model, bits)
            else:
                yield from rounded_points(bench, model, bits)


def learned(bench: Bench, kind: Callable[..., Vectors], dimensions: int, seed: int) -> Vectors:
    """Return a model of so many numbers an item, learned at the first time it is asked for."""
    key = (kind, dimensions, seed)
    if key not in bench.kept:
        options: dict[str, Any] = {"n_steps": N_STEPS, "random_state": seed, "n_jobs": bench.n_jobs}
        bench.kept[key] = kind(dimensions, bench.family.metric, **options).fit(bench.family.X)
    model: Vectors = bench.kept[key]
    return model


def rounded_points(bench: Bench, model: Vectors, bits: int) -> Iterator[Candidate]:
    """Yield a model with coordinates rounded in two ways, and multiplied by what is best then."""
    is_curved = isinstance(model, baselines.PoincareMDS)
    room = bits - 32 / bench.n_items if is_curved else bits  # the scale; that of flat coordinates is in their levels
    columns = Columns(on_axes(to_tangent(model.embedding_) if is_curved else model.embedding_, centred=not is_curved))
    for way, shares in {
        "even": share_evenly(model.embedding_.shape[1], room, bench.n_items),
        "by variance": columns.share(room),
    }.items():
        kept = columns.take(shares)
        if kept.shape[1] == 0:
            continue
        other: Any = copy.copy(model)
        other.embedding_ = (from_tangent(kept) if is_curved else kept).astype(np.float32)
        scale = best_scale(other.distances(bench.judge.sources), bench.judge.true)
        if is_curved:
            other.scale_ *= scale
        else:
            other.embedding_ = other.embedding_ * np.float32(scale)
        spent = sum(stored_bits(share, bench.n_items) for share in shares) + bits - room
        yield Candidate(f"{in_short(shares)}, {way}", spent, other)


def rounded_heights(bench: Bench, model: baselines.Vivaldi, bits: int) -> Iterator[Candidate]:
    """Yield a model with rounded coordinates, and heights that are fitted to these."""
    columns = Columns(on_axes(model.embedding_, centred=True))
    for height_bits in HEIGHT_BITS:
        room = bits - stored_bits(height_bits, bench.n_items)
        if room < 0:
            continue
        shares = columns.share(room)
        other = copy.copy(model)
        other.embedding_ = columns.take(shares).astype(np.float32)
        other.height_ = np.zeros(bench.n_items, np.float32)
        left = bench.judge.true - other.distances(bench.judge.sources)
        other.height_ = rounded(landmark_star(left, bench.judge.sources), height_bits).astype(np.float32)
        spent = sum(stored_bits(share, bench.n_items) for share in [*shares, height_bits])
        yield Candidate(f"{in_short(shares)}, height of {height_bits}", spent, other)


def on_axes(points: NDArray[np.float32], centred: bool) -> NDArray[np.float64]:
    """Return points along their principal axes, about their mean or about the origin; distances stay."""
    wide = points.astype(np.float64)
    wide = wide - wide.mean(axis=0) if centred else wide
    _, axes = np.linalg.eigh(wide.T @ wide)
    return np.asarray(wide @ axes[:, ::-1])


def share_evenly(width: int, budget: float, n_items: int) -> list[int]:
    """Return the same number of bits for each coordinate, one more for the first if there is room.

    Examples
    --------
    >>> from prodige.reproduce.peers import share_evenly
    >>> share_evenly(3, 8.1, 10_000)
    [3, 3, 2]
    """
    bits = [0] * width
    for place in range(MOST_BITS * width):
        more = bits.copy()
        more[place % width] += 1
        if sum(stored_bits(share, n_items) for share in more) > budget:
            break
        bits = more
    return bits


def to_tangent(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return points of the Poincaré ball by direction and hyperbolic distance from the centre, where steps are even."""
    length = np.linalg.norm(points.astype(np.float64), axis=1, keepdims=True)
    factor = 2 * np.arctanh(np.minimum(length, 1 - 1e-12)) / np.maximum(length, 1e-300)
    return np.asarray(points * factor, dtype=np.float32)


def from_tangent(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points of the Poincaré ball that :func:`to_tangent` makes these of."""
    length = np.linalg.norm(points, axis=1, keepdims=True)
    # In single precision a point nearer to the rim would lie on it.
    return np.asarray(points * np.minimum(np.tanh(length / 2), 1 - 1e-6) / np.maximum(length, 1e-300))


def in_short(bits: list[int]) -> str:
    """Return how many coordinates have bits, and how many bits they have.

    Examples
    --------
    >>> from prodige.reproduce.peers import in_short
    >>> in_short([4, 3, 0]), in_short([2, 2]), in_short([])
    ('2 of 3 coordinates of 3 to 4 bits', '2 coordinates of 2 bits', 'no coordinates')
    """
    used = [share for share in bits if share]
    if not used:
        return "no coordinates"
    some = "" if len(used) == len(bits) else f" of {len(bits)}"
    few, many = min(used), max(used)
    return f"{len(used)}{some} coordinate{'s' * (len(bits) > 1)} of {few if few == many else f'{few} to {many}'} bits"


# -- codes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Words:
    """Codewords of items as points, with an energy each."""

    points: NDArray[np.float32]
    energy: NDArray[np.float32]
    n_jobs: int | None = None

    def distances(self, sources: Items, targets: None = None, /) -> NDArray[np.float32]:
        """Return distances to all items."""
        return combined(self.points, self.energy, sources, np.arange(len(self.points)), self.n_jobs)


@dataclass(frozen=True)
class Codes:
    """Codes of faiss, and distances between codewords.

    Attributes
    ----------
    kind : {"pq", "opq", "rq", "lsq"}
    energy : bool
        Whether every item also has a residual energy, of 4 to 8 bits: its squared distance from its codeword, or what
        fits best.
    whole : bool
        Whether codebooks count, of a byte for each number then; they are floats otherwise.
    """

    kind: str
    energy: bool
    whole: bool

    def candidates(self, bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        """Yield codes of different widths and bits, as many as there is room for."""
        widths = (WHOLE_WIDTHS if self.whole else WIDTHS)[self.kind]
        code_bits = (WHOLE_CODE_BITS if self.whole else CODE_BITS)[self.kind]
        coordinates, sums = bench.coordinates(max(*WIDTHS[self.kind], *WHOLE_WIDTHS[self.kind]), seed)
        key = (Quantiser, self.kind, seed)
        if key not in bench.kept:
            bench.kept[key] = Quantiser(self.kind, coordinates.astype(np.float32), seed)
        quantiser = bench.kept[key]
        for width in sorted({min(width, coordinates.shape[1]) for width in widths}):
            for size in code_bits:
                if 2**size < bench.n_items:
                    yield from self._coded(bench, quantiser, sums, bits, width, size)

    def _coded(
        self, bench: Bench, quantiser: Quantiser, sums: NDArray[np.float64], bits: int, width: int, size: int
    ) -> Iterator[Candidate]:
        """Yield codes of so many bits each, with the kinds of energy there are."""
        n = bench.n_items

        def cost(n_codes: int) -> float:
            return n_codes * size + (quantiser.book_bits(width, n_codes, size) / n if self.whole else 0)

        def most_codes(room: float) -> int:
            return max((m for m in range(1, width + 1) if cost(m) <= room), default=0)

        n_codes = most_codes(bits - stored_bits(_FEWEST_ENERGY_BITS, n) * self.energy)
        if n_codes == 0:
            return
        coded = quantiser.code(width, n_codes, size, in_bytes=self.whole, most_codes=most_codes(bench.most_bits))
        split = f"{n_codes} code{'s' * (n_codes > 1)} of {size} bits, {coded.vectors.shape[1]} dimensions"
        if not self.energy:
            yield Candidate(split, cost(n_codes), Words(coded.words, np.zeros(n, np.float32), bench.n_jobs))
            return
        spare = [b for b in range(_FEWEST_ENERGY_BITS, MOST_BITS + 1) if cost(n_codes) + stored_bits(b, n) <= bits]
        # What the sums say of squared lengths about the centre, also of metrics that have none.
        squares = (sums - sums.sum() / (2 * n)) / n - (coded.vectors.astype(np.float64) ** 2).sum(axis=1)
        lost = squares + ((coded.vectors - coded.words).astype(np.float64) ** 2).sum(axis=1)
        for name, energy in {"lost": lost, "fitted": energies(coded.words, sums)}.items():
            small = rounded(energy, spare[-1]).astype(np.float32)
            spent = cost(n_codes) + stored_bits(spare[-1], n)
            model = Words(coded.words, small, bench.n_jobs)
            yield Candidate(f"{split}, {name} energy of {spare[-1]} bits", spent, model)
