"""A fit to a sample: tables of a product are learned from some of the items, then all others go by once.

What a product has to learn are a few hundred hubs in each factor, and tens of thousands of items say all there is to
know of these. Codes and lengths of all items follow in one pass (:mod:`prodige.compression.streaming`), so memory does
not grow with items times landmarks, and data need not be in memory at all. The plan, how many factors and hubs, is made
for all items: the more there are, the less hubs weigh.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige.compression.assignment import ProductOutOfSample
from prodige.compression.budget import Budget
from prodige.compression.memory import ANCHORS, Estimate
from prodige.compression.nearness import NearSample
from prodige.compression.out_of_sample import FromAnchors
from prodige.compression.selection import Choice, Selected, Selection
from prodige.compression.streaming import assign_blocks
from prodige.graph.product import ProductGraph
from prodige.metric.duplicates import find_copies_in_blocks
from prodige.metric.landmarks import Landmarks
from prodige.metric.sources import Source
from prodige.metric.space import Space
from prodige.progress import ALL_ITEMS, Bar, Record, tell


class Sampled(NamedTuple):
    """What came of a fit to a sample."""

    graph: ProductGraph  # of all items
    selected: Selected  # of the sample
    placing: ProductOutOfSample  # what gave all items their codes, and gives them to others
    anchors: NDArray[np.int64]  # its anchors among all items
    history: list[Record]


@dataclass(frozen=True)
class Sample:
    """Distinct items drawn from a source, and what is known of the others.

    Attributes
    ----------
    source : Source
    items : ndarray of int64, shape [S]
        Which items, ascending.
    first, copy_of : ndarray of int64
        The first item of each place, and for every item which of these it is.
    """

    source: Source
    items: NDArray[np.int64]
    first: NDArray[np.int64]
    copy_of: NDArray[np.int64]

    @classmethod
    def draw(cls, source: Source, n_sample: int, random: np.random.RandomState) -> Sample:
        """Look at all rows once, and draw from those that are different."""
        first, copy_of = find_copies_in_blocks(source)
        drawn = np.sort(random.permutation(first.size)[:n_sample])
        return cls(source, first[drawn], first, copy_of)

    @property
    def n_distinct(self) -> int:
        """Different items of the source."""
        return int(self.first.size)

    def rows(self) -> Any:
        """Return the rows of the sample."""
        return self.source.take(self.items)


def check_sampled(settings: Any, source: Source) -> None:
    """Refuse what a fit to a sample cannot do."""
    for name, value, other in (("structure", "graph", "a product"), ("method", "l0", "method='budget'")):
        if getattr(settings, name) == value:
            raise ValueError(
                f"{name} = {value!r} needs all {source.n_items:,} items in memory at once; give an array, or {other}"
            )
    if settings.n_hubs != "auto" or settings.metric == "precomputed":
        name = "metric" if settings.n_hubs == "auto" else "n_hubs"
        raise ValueError(
            f"{name} = {getattr(settings, name)!r} needs all {source.n_items:,} items in memory at once; give an array"
        )


def fit_sampled(
    how: Selection, sample: Sample, space: Space, sizes: Estimate, budget: Budget, random: np.random.RandomState
) -> Sampled:
    """Fit a product to a sample and give all items of its source a place in it.

    Parameters
    ----------
    how : Selection
        Its ``n_items`` is that of all different items of the source.
    sample : Sample
    space : Space
        The sample with its metric.
    sizes : Estimate
    budget : Budget
    random : RandomState
    """
    landmarks = Landmarks.draw(space, sizes.n_landmarks, random)
    selected = Choice(how, space, landmarks, budget, random).best()
    product = selected.graph
    assert isinstance(product, ProductGraph)
    anchors = np.unique(landmarks.sources[:ANCHORS]).astype(np.int64)
    del landmarks
    from_anchors = FromAnchors(anchors, space.X[anchors], space.metric, space.parameters, space.unit, how.n_jobs)
    near = NearSample(space, how.near_weight) if how.near_weight > 0 and not callable(space.metric) else None
    placing = ProductOutOfSample(product, from_anchors, near)
    history = list(selected.monitor.history)
    codes, lengths = place_all(sample, placing, how, history)
    graph = ProductGraph.from_factors(
        product.factors, codes, placing.on_grid(lengths), product.power, product.gauge, places_of(sample)
    )
    return Sampled(graph, selected, placing, sample.items[anchors], history)


def place_all(
    sample: Sample, placing: ProductOutOfSample, how: Selection, history: list[Record]
) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    """Return codes and lengths of all different items: as they were fitted, or as the pass finds them."""
    n, product = sample.source.n_items, placing.graph
    codes = np.empty((n, product.n_factors), dtype=np.uint16)
    lengths = np.empty(n, dtype=np.float32)
    say = teller(how, history, n)
    with Bar(total=n, disable=how.verbose <= 0, unit=" items", unit_scale=True) as bar:
        for begin, some_codes, some_lengths in assign_blocks(sample.source, placing):
            end = begin + len(some_codes)
            codes[begin:end], lengths[begin:end] = some_codes, some_lengths
            bar.update(end - begin)
            say(end)
    codes[sample.items], lengths[sample.items] = product.codes, product.lengths
    if sample.n_distinct == n:
        return codes, lengths
    return codes[sample.first], lengths[sample.first]


def teller(how: Selection, history: list[Record], n_items: int) -> Callable[[int], None]:
    """Return what tells callbacks how many items are done: a stage of its own, with the last loss of the fit."""
    began, loss, step = time.perf_counter(), history[-1].loss if history else 0.0, 0

    def say(n_done: int) -> None:
        nonlocal step
        record = Record(step, n_done / n_items, loss, time.perf_counter() - began, stage=ALL_ITEMS)
        tell(how.callbacks, record)  # it ends with the last item, whatever they say
        history.append(record)
        step += 1

    return say


def places_of(sample: Sample) -> NDArray[np.int64] | None:
    """Return which different item each is; None where all are different."""
    return None if sample.n_distinct == sample.source.n_items else sample.copy_of
