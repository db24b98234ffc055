"""Items that hang in a space of few directions: D(i, j) = |x_i − x_j| + e_i + e_j.

A direction that is left out makes all distances a little longer, by about the same for all pairs that an item is in. So
every item hangs on its place by a pendant edge, whose length e is what the directions that are there leave over.
Vivaldi (Dabek and others, 2004) keeps travel times like that. Near items differ by little but what is left over, and
their distances come out better than where squares of lengths add up under the root.

Places and lengths of the landmarks are learned together. They begin where classical scaling has them, a little nearer
to each other, and a few steps down the squared error of the distances between them are enough.
All other items, and new ones later, are hung by their distances to some of the landmarks: by Gauss–Newton steps that
share one curvature, the mean of that of the anchors, and have a length of their own each. Where near pairs count, all
items are moved once more, to suit these as well (:mod:`prodige.compression.near_places`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from prodige import _core
from prodige.compression.coordinates import Coordinates
from prodige.compression.near_places import NEAR, Beside, Neighborhood, suit_near
from prodige.metric.landmarks import Landmarks
from prodige.metric.scaling import Floats
from prodige.metric.star import star_radii_of_means
from prodige.progress import IsOver, never
from prodige.ranks import ALONE, Ranks, item_parts
from prodige.threads import in_parts

# Landmarks that other items are hung by.
_N_ANCHORS = 1024

# Sizes of the start that are tried, as parts of what classical scaling finds, with as many landmarks.
_SIZES = (0.6, 0.7, 0.8, 0.9, 1.0)
_N_TRIED = 512

# Steps that landmarks are moved by: more lower the error of places, which then take more bits. The longest of them.
_N_STEPS = 4
_LONGEST = 3.0

# Parts that landmarks are cut into, for threads, and the fewest in each; items that are hung at a time.
_N_PARTS = 8
_LEAST_PART = 512
_BLOCK = 1024

# Gauss–Newton steps after a good start, anchors that say how the error bends, and what is added to that, as a part.
_N_ROUNDS = 2
_N_BENT = 256
_DAMPING = 1e-3

Result = TypeVar("Result")


@dataclass(frozen=True)
class Hung:
    """Where items hang; distances are in units of their mean.

    Attributes
    ----------
    places : ndarray of float64, shape [N, K]
        Along their principal axes.
    anchors : ndarray of int64, shape [A]
    means : ndarray of float64, shape [N]
        Of the distances to the anchors.
    judges : ndarray of int64, shape [J]
    distances : ndarray of float64, shape [J, J]
        Between the judges.
    near : Neighborhood, optional
        Pairs that count beside all others.
    """

    places: Floats
    anchors: NDArray[np.int64]
    means: Floats
    judges: NDArray[np.int64]
    distances: Floats
    near: Neighborhood | None = None

    @cached_property
    def variances(self) -> Floats:
        """Along each direction, shape [K]."""
        found: Floats = self.places.var(axis=0)
        return found

    @cached_property
    def influences(self) -> Floats:
        """How much the squared error of a coordinate matters to that of distances, by directions."""
        some = self.places[self.judges]
        weights = 1 / np.maximum(squares_between(some, some), NEAR)
        np.fill_diagonal(weights, 0)
        total, sums = weights.sum(axis=1), weights @ some
        found: Floats = 2 * ((total[:, None] * some**2).sum(axis=0) - (some * sums).sum(axis=0)) / weights.size
        if self.near is None:
            return found
        near = self.near.influences(self.places, self.judges)
        return np.asarray((found + self.near.weight * near) / (1 + self.near.weight))

    def lengths_of(self, places: Floats, n_jobs: int = 1) -> Floats:
        """Return the lengths that suit other places of the items best, none of them below 0."""
        left = self.means - mean_distances(places, self.anchors, n_jobs)
        lengths: Floats = np.maximum(left - left[self.anchors].mean() / 2, 0)
        return lengths if self.near is None else self.near.suit_lengths(lengths, left, self.anchors, places)


@dataclass(frozen=True)
class Anchors:
    """Items whose places are known, by which others are hung.

    Attributes
    ----------
    places : ndarray of float32, shape [A, K]
    lengths : ndarray of float32, shape [A]
    """

    places: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @cached_property
    def solution(self) -> NDArray[np.float32]:
        """The inverse of how the error bends about an anchor, on average, shape [K + 1, K + 1]."""
        n, width = self.places.shape
        some = self.places[np.linspace(0, n - 1, min(n, _N_BENT)).astype(np.int64)].astype(np.float64)
        bent = np.zeros((width + 1, width + 1))
        for place in some:
            slopes = np.ones((n, width + 1))
            slopes[:, :width] = place - self.places
            slopes[:, :width] /= np.maximum(np.linalg.norm(slopes[:, :width], axis=1), NEAR)[:, None]
            bent += slopes.T @ slopes
        bent /= n * len(some)
        return np.linalg.inv(bent + _DAMPING * np.trace(bent) / (width + 1) * np.eye(width + 1)).astype(np.float32)

    def measure(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return distances from places to the anchors, lengths left out, shape [N, A]."""
        return np.maximum(_core.measure_rows(places, self.places, 1), np.float32(NEAR))

    def hang(
        self,
        target: NDArray[np.float32],
        start: NDArray[np.float32],
        n_rounds: int = _N_ROUNDS,
        beside: Beside | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return places and lengths of items by their distances to the anchors, each item by itself.

        Parameters
        ----------
        target : ndarray, shape [N, A]
        start : ndarray, shape [N, K]
        n_rounds : int
        beside : Beside, optional
            Near items that count as well.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige.compression.pendants import Anchors
        >>> random = np.random.default_rng(0)
        >>> anchors = Anchors(random.normal(size=(50, 2)).astype(np.float32), np.full(50, 0.5, np.float32))
        >>> target = np.linalg.norm(anchors.places - [1.0, 0.5], axis=1).astype(np.float32)[None] + 0.5 + 0.25
        >>> places, lengths = anchors.hang(target, np.zeros((1, 2), np.float32), n_rounds=9)
        >>> bool(np.abs(places - [[1.0, 0.5]]).max() < 0.05 > abs(lengths[0] - 0.25))
        True
        """
        places, columns = np.ascontiguousarray(start, np.float32), np.ascontiguousarray(self.places.T)
        rest: NDArray[np.float32] = (
            self.lengths - target
        )  # what distances have beside that of places and the item's length, negative
        distances = self.measure(places)
        lengths: NDArray[np.float32] = np.maximum(-(distances + rest).mean(axis=1, dtype=np.float32), np.float32(0))
        for _ in range(n_rounds):
            residuals = distances + rest
            residuals += lengths[:, None]
            pulls = residuals / distances
            slopes = np.empty((len(places), places.shape[1] + 1), np.float32)
            slopes[:, :-1] = places * pulls.sum(axis=1)[:, None] - _core.multiply_rows(pulls, columns, 1)
            slopes[:, -1] = residuals.sum(axis=1)
            if beside is not None:
                ways, flat = beside.measure(places)
                wrong = flat + lengths[:, None] + beside.lengths - beside.distances
                slopes[:, :-1] += np.einsum("nk,nkd->nd", beside.shares * wrong / flat, ways)
                slopes[:, -1] += (beside.shares * wrong).sum(axis=1)
            steps = _core.multiply_rows(slopes, self.solution, 1)
            along = np.ascontiguousarray(steps[:, :-1])
            # What a whole step would change all distances by, if they were straight; the step that suits them best.
            change = (along * places).sum(axis=1)[:, None] - _core.multiply_rows(along, self.places, 1)
            change /= distances
            change += steps[:, -1:]
            down, bend = (change * residuals).sum(axis=1), (change * change).sum(axis=1)
            if beside is not None:
                change = np.einsum("nkd,nd->nk", ways, along) / flat + steps[:, -1:]
                down += (beside.shares * change * wrong).sum(axis=1)
                bend += (beside.shares * change * change).sum(axis=1)
            size = down / np.maximum(bend, np.float32(1e-30))
            places = places - size[:, None] * along
            lengths = np.maximum(lengths - size * steps[:, -1], np.float32(0))
            distances = self.measure(places)
        return places, lengths


class Pull(NamedTuple):
    """A block of rows of the distances between landmarks, what is wrong with them, and where that pulls."""

    flat: torch.Tensor  # [rows, L]: lengths left out
    residuals: torch.Tensor  # [rows, L]
    slopes: torch.Tensor  # [rows, K + 1]: of half the mean squared error, by place and length
    error: float  # squared, summed


class PendantFit:
    """Landmarks while it is learned where they hang, and how all other items follow from them.

    Parameters
    ----------
    landmarks : Landmarks
    coordinates : Coordinates
        Where it begins: those of the power 2 and the gauge 2.
    n_jobs : int
        Threads; results do not depend on it.
    ranks : Ranks, optional
        Processes that share the items.
    near : Neighborhood, optional
        Pairs that count beside all others.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.coordinates import find_coordinates
    >>> from prodige.compression.pendants import PendantFit
    >>> from prodige.metric.landmarks import Landmarks
    >>> from prodige.metric.space import Space
    >>> space = Space(np.random.default_rng(0).normal(size=(500, 20)))
    >>> landmarks = Landmarks.draw(space, 400, np.random.RandomState(0))
    >>> fit = PendantFit(landmarks, find_coordinates(landmarks, (2.0, 2.0)), 1)
    >>> before, after = fit.begin(6), fit.learn()
    >>> after < before
    True
    >>> fit.hang().places.shape
    (500, 6)
    """

    def __init__(
        self,
        landmarks: Landmarks,
        coordinates: Coordinates,
        n_jobs: int,
        ranks: Ranks = ALONE,
        near: Neighborhood | None = None,
    ) -> None:
        self.landmarks, self.coordinates = landmarks, coordinates
        self.n_jobs, self.ranks, self.near = n_jobs, ranks, near
        self.ids = coordinates.landmarks
        unique, first = np.unique(landmarks.sources, return_index=True)
        self._first = first[np.searchsorted(unique, self.ids)]  # a column of each landmark
        self.among = self._among()
        n = self.ids.size
        self._rows = [
            slice(rows[0], rows[-1] + 1) for rows in np.array_split(range(n), min(_N_PARTS, -(-n // _LEAST_PART)))
        ]
        self.places = torch.empty(0)
        self.lengths = torch.empty(0)

    def _among(self) -> torch.Tensor:
        """Return the distances between landmarks, in units of the mean."""

        def rows(part: slice) -> NDArray[np.float32]:
            inside = self.ids[slice(*np.searchsorted(self.ids, [part.start, part.stop]))]
            some = self.landmarks.target[inside - self.landmarks.first][:, self._first]
            return some / np.float32(self.landmarks.scale)

        parts = item_parts(self.landmarks.n_items)
        return torch.from_numpy(np.concatenate(self.ranks.in_parts(rows, parts)))

    @property
    def n_directions(self) -> int:
        """Directions that landmarks hang in."""
        return int(self.places.shape[1])

    # -- landmarks ---------------------------------------------------------------------------------------------------

    def begin(self, n_directions: int) -> float:
        """Put landmarks where classical scaling has them, nearer to each other; return the squared error of some."""
        tried = np.linspace(0, self.ids.size - 1, min(_N_TRIED, self.ids.size)).astype(np.int64)
        between = self.among[tried][:, tried].numpy().astype(np.float64)
        whole = self.coordinates.places[self.ids, :n_directions]
        found: list[tuple[float, float]] = []
        for size in _SIZES:
            flat = np.sqrt(squares_between(size * whole[tried], size * whole[tried]))
            lengths = star_lengths((between - flat).sum(axis=1) / max(tried.size - 1, 1))
            residuals = flat + lengths + lengths[:, None] - between
            np.fill_diagonal(residuals, 0)
            found.append((float(np.square(residuals).mean()), size))
        error, size = min(found)
        self.places = torch.from_numpy((size * whole).astype(np.float32))
        self._suit_lengths()
        return error

    def _suit_lengths(self) -> None:
        """Let lengths be those that suit the places best."""
        n = self.ids.size
        flat = mean_distances(self.places.numpy(), np.arange(n), self.n_jobs)
        means = self.among.mean(dim=1, dtype=torch.float64).numpy() * (n / max(n - 1, 1))
        self.lengths = torch.from_numpy(star_lengths(means - flat).astype(np.float32))

    def learn(self, n_steps: int = _N_STEPS, is_over: IsOver = never) -> float:
        """Move landmarks down the squared error of the distances between them; return what it was before the last step.

        Steps are those of conjugate gradients, with the mean bend of the error about a landmark in the place of all.
        """
        error, self.places, self.lengths = self.ranks.first(lambda: self._learned(n_steps, is_over))
        return error

    def _learned(self, n_steps: int, is_over: IsOver) -> tuple[float, torch.Tensor, torch.Tensor]:
        n = self.ids.size
        error, along, before, rate = float("nan"), torch.empty(0), None, torch.empty(0)
        solution = torch.from_numpy(Anchors(self.places.numpy(), self.lengths.numpy()).solution)
        for _ in range(n_steps):
            if is_over():
                break
            parts = self._in_parts(self._pull)
            error = sum(part.error for part in parts) / n**2
            slopes = torch.cat([part.slopes for part in parts])
            held = (self.lengths <= 0) & (slopes[:, -1] > 0)  # no length goes below 0
            slopes[held, -1] = 0
            steps = slopes @ solution
            steps[held, -1] = 0
            if before is not None:  # Polak and Ribière's rule
                turned = ((slopes - before) * steps).sum() / rate
                along = turned.clamp(min=0) * along - steps
            if before is None or (along * slopes).sum() > 0:
                along = -steps
            before, rate = slopes, (slopes * steps).sum()
            changes = self._in_parts(partial(self._change, parts=parts, along=along))
            down, bend = (sum(change[c] for change in changes) for c in (0, 1))
            size = float(np.clip(-down / max(bend, 1e-30), 0, _LONGEST))
            self.places += size * along[:, :-1]
            self.lengths = (self.lengths + size * along[:, -1]).clamp_(min=0)
        return error, self.places, self.lengths

    def _in_parts(self, function: Callable[[int], Result]) -> list[Result]:
        """Return what a function makes of each block of rows, given by its number."""
        return in_parts(function, range(len(self._rows)), self.n_jobs)

    def _pull(self, number: int) -> Pull:
        """Return distances and residuals of a block of rows, and the slopes of half their squared error."""
        rows = self._rows[number]
        x, y = self.places[rows], self.places
        squares = torch.addmm((x**2).sum(dim=1)[:, None] + (y**2).sum(dim=1), x, y.T, alpha=-2)
        flat = squares.clamp_(min=NEAR**2).sqrt_()
        residuals = flat + self.lengths[rows][:, None]
        residuals += self.lengths
        residuals -= self.among[rows]
        residuals[torch.arange(len(x)), torch.arange(rows.start, rows.stop)] = 0  # an item from itself
        pulls = residuals / flat
        slopes = torch.empty(x.shape[0], x.shape[1] + 1)
        slopes[:, :-1] = x * pulls.sum(dim=1)[:, None] - pulls @ y
        slopes[:, -1] = residuals.sum(dim=1)
        error = float(residuals.square().sum(dtype=torch.float64))
        return Pull(flat, residuals, slopes / self.ids.size, error)

    def _change(self, number: int, parts: list[Pull], along: torch.Tensor) -> tuple[float, float]:
        """Return what a step changes distances of a block by, times residuals and squared, summed."""
        rows, (flat, residuals, *_) = self._rows[number], parts[number]
        moved, own = along[:, :-1], (along[:, :-1] * self.places).sum(dim=1)
        change = own[rows][:, None] + own - moved[rows] @ self.places.T - self.places[rows] @ moved.T
        change /= flat
        change += along[rows, -1:]
        change += along[:, -1]
        change[torch.arange(len(change)), torch.arange(rows.start, rows.stop)] = 0
        found = ((change * residuals).sum(dtype=torch.float64), change.square().sum(dtype=torch.float64))
        return float(found[0]), float(found[1])

    # -- all items ---------------------------------------------------------------------------------------------------

    def hang(self, is_over: IsOver = never) -> Hung:
        """Hang all items by their distances to some of the landmarks, and to near items where these count."""
        n, count = self.landmarks.n_items, min(_N_ANCHORS, self.ids.size)
        some = np.linspace(0, self.ids.size - 1, count).astype(np.int64)
        known, columns = self.places.numpy(), self._first[some]
        anchors = Anchors(np.ascontiguousarray(known[some]), self.lengths.numpy()[some])
        guess = linear_map(self.coordinates.places[self.ids], known)

        def target_of(part: slice, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
            return self.landmarks.rows(part)[:, columns[chosen]] / np.float32(self.landmarks.scale)

        def of_part(part: slice) -> tuple[NDArray[np.float32], Floats]:
            target = target_of(part, np.arange(count))
            start = (self.coordinates.places[part] @ guess[:-1] + guess[-1]).astype(np.float32)
            blocks = [anchors.hang(target[rows], start[rows])[0] for rows in blocks_of(len(target))]
            return np.concatenate(blocks), target.sum(axis=1, dtype=np.float64)

        places, sums = zip(*self.ranks.in_parts(of_part, item_parts(n), self.n_jobs), strict=True)
        found = np.concatenate(places)
        found[self.ids] = known
        means = np.concatenate(sums) / np.maximum(count - np.isin(np.arange(n), self.ids[some]), 1)
        judged = np.searchsorted(self.ids, self.coordinates.judges)
        distances = self.among[judged][:, judged].numpy().astype(np.float64)
        hung = Hung(found.astype(np.float64), self.ids[some], means, self.coordinates.judges, distances, self.near)
        if self.near is not None:
            lengths = hung.lengths_of(hung.places, self.n_jobs).astype(np.float32)
            found = suit_near(found, lengths, hung.anchors, target_of, self.near, self.n_jobs, self.ranks, is_over)
        return replace(hung, places=on_axes(found, found[self.ids])[0].astype(np.float64))


def star_lengths(left: Floats) -> Floats:
    """Return lengths of 0 or more that add up to what is left of the distances of each item on average."""
    return np.maximum(star_radii_of_means(left), 0)


def blocks_of(n_rows: int) -> Iterator[slice]:
    """Yield the blocks that rows are handled in."""
    for begin in range(0, n_rows, _BLOCK):
        yield slice(begin, min(begin + _BLOCK, n_rows))


def squares_between(some: Floats, others: Floats) -> Floats:
    """Return squared distances between places, none of them below 0."""
    squares = (some**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * some @ others.T
    found: Floats = np.maximum(squares, 0)
    return found


def mean_distances(places: NDArray[np.floating], anchors: NDArray[np.int64], n_jobs: int) -> Floats:
    """Return the mean distance of each place to those of the anchors, an anchor's from itself left out."""
    rows = np.ascontiguousarray(places, np.float32)
    columns = rows[anchors]
    sums = in_parts(
        lambda block: _core.measure_rows(rows[block], columns, 1).sum(axis=1, dtype=np.float64),
        blocks_of(len(rows)),
        n_jobs,
    )
    n_others = anchors.size - np.isin(np.arange(len(rows)), anchors)
    found: Floats = np.concatenate(sums) / np.maximum(n_others, 1)
    return found


def on_axes(places: NDArray[np.float32], known: NDArray[np.float32]) -> tuple[NDArray[np.float32], Floats]:
    """Return places along the principal axes of some that are known, about their mean, and these axes as columns."""
    centre = known.mean(axis=0, dtype=np.float64)
    wide = known - centre
    axes = np.linalg.eigh(wide.T @ wide)[1][:, ::-1]
    return ((places - centre) @ axes).astype(np.float32), axes


def linear_map(rows: Floats, values: NDArray[np.float32]) -> Floats:
    """Return what takes rows to values by least squares, the constant last, shape [K + 1, V]."""
    wide = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    found: Floats = np.linalg.lstsq(wide, values.astype(np.float64), rcond=None)[0]
    return found
