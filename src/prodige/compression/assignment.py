"""New items of a product: rows that were not in the fit get codes and a length by their distances to anchors.

Where the factors have positions, these distances say where a row is (:mod:`prodige.compression.placing`). Elsewhere, or
where that does not suit the metric, codes are searched for: the last step of the fit itself, with anchors in place of
landmarks and tables that stay as they are. Every row is handled by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from prodige import _core
from prodige.compression.nearness import NearSample
from prodige.compression.out_of_sample import FromAnchors
from prodige.compression.pendants import Anchors
from prodige.compression.placing import LinearPlacing, NearTarget, PendantPlacing
from prodige.compression.positions import as_places
from prodige.graph.factors import GeometricFactor
from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph
from prodige.metric.space import in_units
from prodige.threads import count_threads

# Rounds over all factors: codes hardly change after so many, beginning with those of the nearest anchor, or with codes
# that are close already.
_N_ROUNDS = 6
_N_ROUNDS_AFTER = 2

# What a search takes ten times as long for: an error without it that is so many times as large.
_WORTH = 1.05

# Distances shorter than this part of the mean weigh no more than one of it, as in the fit.
_FLOOR = 0.1

# Distances of one block: 64 MiB as float32.
_BLOCK = 1 << 24


@dataclass(frozen=True)
class ProductOutOfSample:
    """A fitted product, and what distances of new rows to its anchors are measured by.

    Attributes
    ----------
    graph : ProductGraph
    from_anchors : FromAnchors
    near : NearSample, optional
        The items of the product, where rows are to be near their nearest: only while a fit gives items their places.
    """

    graph: ProductGraph
    from_anchors: FromAnchors
    near: NearSample | None = None

    @property
    def grid(self) -> tuple[float, float, int]:
        """The least length, the step between lengths, and how many there are; none where they are not on a grid."""
        grid = self.graph.length_grid
        return (0.0, 0.0, 0) if grid is None else (grid.least, grid.step, 2**grid.bits)

    @cached_property
    def floor(self) -> float:
        """Distances that are shorter weigh no more than one of this length: a part of the mean between anchors."""
        anchors = self.from_anchors.anchors
        return _FLOOR * (float(self.graph.distances(anchors, anchors, n_jobs=1).mean(dtype=np.float64)) or 1.0)

    def to_anchors(self, X: Any) -> NDArray[np.float32]:
        """Return the distances of rows to the anchors."""
        return self.from_anchors.measure(X)

    def on_grid(self, lengths: NDArray[np.float32]) -> NDArray[np.float32] | Grid:
        """Return lengths as those of the graph are kept."""
        grid = self.graph.length_grid
        return lengths if grid is None else grid.nearest(lengths)

    def distances(self, X: Any, items: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
        """Yield the distances of new rows to some items, a block of rows at a time."""
        n_jobs = self.from_anchors.n_jobs
        for part in gen_batches(X.shape[0], max(1, _BLOCK // max(items.size, self.from_anchors.anchors.size))):
            # Lengths off the grid: these rows are not kept, and may be farther away than any that are.
            graph = self.graph.with_items(*self.assign(X[part], (0.0, 0.0, 0)))
            yield graph.distances(np.arange(self.graph.n_items, graph.n_items), items, n_jobs=n_jobs)

    def assign(self, X: Any, grid: tuple[float, float, int]) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        """Return the codes of new rows, shape [M, factors], and their lengths, on a grid that has any levels."""
        target = self.to_anchors(X)
        if self.near is None:
            return self.choose(target, grid, self.n_rounds)
        n_jobs = count_threads(self.from_anchors.n_jobs)
        if self.hung is not None:
            near = NearTarget(self.hung, *self.near.find(X, n_jobs), self.near.weight)
            return self.choose(target, grid, 0, near)
        found = self.choose(target, grid, 0 if self.linear is not None else self.n_rounds)
        return self.search(target, *found, grid, _N_ROUNDS_AFTER, n_jobs, self.near.find(X, n_jobs))

    @cached_property
    def between(self) -> NDArray[np.float32]:
        """Distances of the anchors among themselves."""
        if self.from_anchors.metric == "precomputed":
            return in_units(self.from_anchors.rows, self.from_anchors.unit)
        distances = self.from_anchors.measure(self.from_anchors.rows)
        np.fill_diagonal(distances, 0)
        return distances

    @cached_property
    def linear(self) -> LinearPlacing | PendantPlacing | None:
        """What places items without a search, where that is possible."""
        if self.graph.pendant:
            return PendantPlacing.make(self.graph, self.from_anchors.anchors, self.between)
        return LinearPlacing.make(self.graph, self.from_anchors.anchors, self.between)

    @cached_property
    def hung(self) -> Anchors | None:
        """Where all items of a product of lines hang."""
        return self.linear.hang(self.graph) if isinstance(self.linear, PendantPlacing) else None

    @cached_property
    def n_rounds(self) -> int:
        """Rounds of choosing codes after the start: none where those do not pay.

        One half of the anchors is placed by the other, in both ways, and their distances among themselves decide.
        """
        if self.linear is None:
            return _N_ROUNDS
        if self.graph.pendant:  # a search would not heed the bits
            return 0
        anchors = self.from_anchors.anchors
        some, others = np.arange(0, anchors.size, 2), np.arange(1, anchors.size, 2)
        half = replace(self, from_anchors=self.from_anchors.take(some))
        half.__dict__["between"] = np.ascontiguousarray(self.between[np.ix_(some, some)])
        if half.linear is None:
            return _N_ROUNDS
        target = np.ascontiguousarray(self.between[np.ix_(others, some)])
        errors = []
        for n_rounds in (0, _N_ROUNDS_AFTER):
            codes, lengths = half.choose(target, self.grid, n_rounds)
            graph = self.graph.with_items(codes, self.on_grid(lengths))
            new = np.arange(self.graph.n_items, graph.n_items)
            residual = graph.distances(new, new, n_jobs=1) - self.between[np.ix_(others, others)]
            errors.append(float(np.square(residual, dtype=np.float64).mean()))
        return 0 if errors[0] <= _WORTH * errors[1] else _N_ROUNDS_AFTER

    def choose(
        self,
        target: NDArray[np.float32],
        grid: tuple[float, float, int],
        n_rounds: int,
        near: NearTarget | None = None,
    ) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        """Return codes and lengths of items by their distances to the anchors, after so many rounds of a search."""
        n_jobs = count_threads(self.from_anchors.n_jobs)
        if isinstance(self.linear, PendantPlacing):
            codes, lengths = self.linear.place(target, n_jobs, near)
        elif self.linear is not None:
            codes, lengths = self.linear.place(target, n_jobs)
        else:
            nearest = self.from_anchors.anchors[target.argmin(axis=1)]
            codes, lengths = self.graph.codes[nearest].astype(np.uint16), self.graph.lengths[nearest]
        if n_rounds:
            return self.search(target, codes, lengths, grid, n_rounds, n_jobs)
        return codes, lengths if not grid[-1] else self.on_grid(lengths).values  # type: ignore[union-attr]

    def search(
        self,
        target: NDArray[np.float32],
        codes: NDArray[np.uint16],
        lengths: NDArray[np.float32],
        grid: tuple[float, float, int],
        n_rounds: int,
        n_jobs: int,
        near: tuple[NDArray[np.int32], NDArray[np.float32]] | None = None,
    ) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        """Return codes and lengths that suit distances to the anchors, and to near items, better than those given."""
        graph, anchors, n = self.graph, self.from_anchors.anchors, len(target)
        n_near, weight = 0, 0.0
        if near is not None and self.near is not None:
            # Near items are looked up among all: the product's own come after the new ones, and do not move.
            n_near, weight = near[0].shape[1], self.near.weight * anchors.size / near[0].shape[1]
            padded = np.zeros((n + graph.n_items, anchors.size), np.float32)  # what is never touched takes no memory
            padded[:n] = target
            target = padded
            codes = np.concatenate([codes, graph.codes.astype(np.uint16)])
            lengths = np.concatenate([lengths, graph.lengths])
        near_items = np.full((len(target), n_near), -1, np.int32)
        near_distances = np.zeros((len(target), n_near), np.float32)
        if near is not None:
            near_items[:n], near_distances[:n] = near[0] + n, near[1]
        fit = _core.CodeFit(
            np.full(anchors.size, -1, np.int32),
            target,
            near_items,
            near_distances,
            np.full((len(target), n_near), weight, np.float32),
        )
        codes, lengths, _ = fit.choose_codes(
            np.array([factor.n_hubs for factor in graph.factors], np.int32),
            np.concatenate([(factor.distances() ** np.float32(graph.power)).ravel() for factor in graph.factors]),
            round(4 * graph.gauge),
            self.floor,
            codes,
            lengths,
            np.ascontiguousarray(graph.codes[anchors].T.astype(np.uint16)),
            graph.lengths[anchors],
            np.arange(n, dtype=np.int32),
            *grid,
            n_rounds,
            n_jobs,
            *places_of_hubs(graph),
        )
        return codes, lengths


def places_of_hubs(graph: ProductGraph) -> tuple[NDArray[np.int32], NDArray[np.float32]] | tuple[None, None]:
    """Return positions of all hubs as the core wants them, where tables are their squared distances."""
    positions = [factor.positions for factor in graph.factors if isinstance(factor, GeometricFactor)]
    return as_places(positions) if graph.power == 2 and len(positions) == graph.n_factors else (None, None)
