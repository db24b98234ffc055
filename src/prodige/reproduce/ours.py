"""Graphs in a given number of bits an item, as they come back from their files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prodige import loading
from prodige.compression.compressor import DistanceCompressor
from prodige.graph import file
from prodige.graph.graph import Graph
from prodige.reproduce.peers import Bench, Candidate

# Sizes of one graph that are tried, in numbers an item as the paper counts, and bits of its weights.
NUMBERS = (3.1, 3.5, 4, 5, 6, 8, 11, 14, 18)
WEIGHT_BITS = (4, 5, 6, 7, 8)

# Points between all distances and the nearest ones, and the budgets where all of them are fitted.
OBJECTIVES = (0.0, 0.25, 0.5, 0.75, 1.0)
FRONT_BUDGETS = (32, 64, 128)


class OneGraph:
    """One graph, of hubs or of neighbours, with weights of a few bits."""

    def candidates(self, bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        """Yield for every size of weights the largest graph whose file is small enough."""
        found: dict[int, Candidate] = {}
        for numbers in NUMBERS:
            graph = self._fitted(bench, numbers, seed)
            sizes = {b: 8 * file.size(graph, b) / bench.n_items for b in WEIGHT_BITS}
            if min(sizes.values()) > bits:
                break
            for weight_bits, size in sizes.items():
                if size <= bits:
                    split = f"{graph.numbers_per_item:.3g} numbers, weights of {weight_bits} bits"
                    found[weight_bits] = Candidate(split, size, graph.rounded(weight_bits))
        yield from found.values()

    def _fitted(self, bench: Bench, numbers: float, seed: int) -> Graph:
        key = (OneGraph, numbers, seed)
        if key not in bench.kept:
            bench.kept[key] = fitted(bench, seed, numbers_per_item=numbers, structure="graph").graph_
        graph: Graph = bench.kept[key]
        return graph


@dataclass(frozen=True)
class Bits:
    """What :class:`prodige.DistanceCompressor` makes of a budget in bits.

    Attributes
    ----------
    metric_only : bool
        Whether the triangle inequality must hold.
    """

    metric_only: bool

    def candidates(self, bench: Bench, bits: int, seed: int) -> Iterator[Candidate]:
        """Yield points of the front between all distances and the nearest ones; the first elsewhere."""
        for objective in OBJECTIVES if bits in FRONT_BUDGETS else OBJECTIVES[:1]:
            compressor = self._fitted(bench, bits, objective, seed)
            with TemporaryDirectory() as folder:
                path = Path(folder, "graph.prodige")
                compressor.graph_.save(path)
                size = 8 * path.stat().st_size / bench.n_items
                graph: Any = loading.load(path)
            yield Candidate(f"{compressor.structure_}, objective {objective:g}", size, graph)

    def _fitted(self, bench: Bench, bits: int, objective: float, seed: int) -> DistanceCompressor:
        """Return a compressor; one that was free to give up the metric, and did not, is the one that had to keep it."""
        options = {"bits_per_item": bits, "objective": objective}
        key = (Bits, bits, objective, seed)
        if key not in bench.kept:
            bench.kept[key] = fitted(bench, seed, metric_only=False, **options)
        free: DistanceCompressor = bench.kept[key]
        if not self.metric_only or getattr(free.graph_, "is_metric", True):
            return free
        return fitted(bench, seed, metric_only=True, **options)


def fitted(bench: Bench, seed: int, **options: Any) -> DistanceCompressor:
    """Return a compressor that was fitted to the items."""
    compressor = DistanceCompressor(metric=bench.family.metric, random_state=seed, n_jobs=bench.n_jobs, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a budget is not used up; here it is an upper bound
        compressor.fit(bench.family.X)
    if compressor.stopped_ == "interrupt":  # which leaves the best graph so far, no figure for a table
        raise KeyboardInterrupt
    return compressor
