"""A fit to a sample: tables of a product are learned from some of the items, then all others go by once.

What a product has to learn are a few hundred hubs in each factor, and tens of thousands of items say all there is to
know of these. Codes and lengths of all items follow in one pass (:mod:`prodige.compression.streaming`), so memory does
not grow with items times landmarks, and data need not be in memory at all. The plan, how many factors and hubs, is made
for all items: the more there are, the less hubs weigh.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige.compression.assignment import ProductOutOfSample
from prodige.compression.budget import Budget
from prodige.compression.checkpoints import Checkpoint, State
from prodige.compression.filesize import shorten
from prodige.compression.memory import ANCHORS, PENDANT_ANCHORS, Estimate
from prodige.compression.nearness import NearSample
from prodige.compression.out_of_sample import FromAnchors
from prodige.compression.selection import Choice, Selected, Selection
from prodige.compression.streaming import Assigned, assign_blocks
from prodige.graph.product import ProductGraph
from prodige.metric.duplicates import same_keys
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
    def draw(cls, source: Source, keys: NDArray[np.uint64], n_sample: int, random: np.random.RandomState) -> Sample:
        """Draw from those rows that are different, as their keys tell."""
        first, copy_of = same_keys(keys)
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
    landmarks = Landmarks.draw(space, sizes.n_landmarks, random, how.ranks, whole=False)
    selected = Choice(how, space, landmarks, budget, random).best()
    product = selected.graph
    assert isinstance(product, ProductGraph)
    # Landmarks, as all codes of the sample were chosen by distances to them. With as many other items in their place
    # codes were searched for, which took longer, and was no better.
    n_anchors = PENDANT_ANCHORS if product.pendant else ANCHORS
    anchors = np.unique(landmarks.sources[:n_anchors]).astype(np.int64)
    del landmarks
    from_anchors = FromAnchors(anchors, space.X[anchors], space.metric, space.parameters, space.unit, how.n_jobs)
    has_near = how.near_weight > 0 and not callable(space.metric)
    near = NearSample(space, how.near_weight) if has_near else None
    placing = ProductOutOfSample(product, from_anchors, near)
    history = list(selected.monitor.history)
    if selected.monitor.stopped != "finished":  # what goes on from a checkpoint would have gone on with the fit
        how = replace(how, checkpoint=Checkpoint.none())
    codes, lengths = place_all(sample, placing, how, history)
    graph = product.with_vertices(codes, placing.on_grid(lengths))
    if budget.bits is not None:
        graph = shorten(graph, budget.bits)
    if (places := places_of(sample)) is not None:
        graph = graph.with_places(places)
    return Sampled(graph, selected, placing, sample.items[anchors], history)


class Places:
    """Codes and lengths of all items of a source, as far as the pass has come.

    Parameters
    ----------
    n_items, n_factors : int
    """

    def __init__(self, n_items: int, n_factors: int) -> None:
        self.codes = np.zeros((n_items, n_factors), dtype=np.uint16)
        self.lengths = np.zeros(n_items, dtype=np.float32)
        self.is_known = np.zeros(n_items, dtype=bool)

    def put(self, block: Assigned) -> None:
        """Note what was found of some items."""
        begin, codes, lengths = block
        items = slice(begin, begin + len(codes))
        self.codes[items], self.lengths[items], self.is_known[items] = codes, lengths, True

    def missing(self) -> list[tuple[int, int]]:
        """Return the ranges of items that nothing is known of.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige.compression.sampling import Places
        >>> places = Places(9, 1)
        >>> places.put((3, np.zeros((2, 1), np.uint16), np.zeros(2, np.float32)))
        >>> places.missing()
        [(0, 3), (5, 9)]
        """
        edges = np.flatnonzero(np.diff(self.is_known, prepend=True, append=True))
        return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]

    def snapshot(self) -> State:
        """Return what is known, for a checkpoint."""
        known = np.packbits(self.is_known)
        return State({}, {"known": known, "codes": self.codes[self.is_known], "lengths": self.lengths[self.is_known]})

    def restore(self, state: State) -> None:
        """Go on from a checkpoint; ValueError where it is of other items."""
        is_known = np.unpackbits(state.arrays["known"], count=self.is_known.size).astype(bool)
        self.codes[is_known], self.lengths[is_known] = state.arrays["codes"], state.arrays["lengths"]
        self.is_known = is_known


def place_all(
    sample: Sample, placing: ProductOutOfSample, how: Selection, history: list[Record]
) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    """Return codes and lengths of all different items: as they were fitted, or as the pass finds them.

    Each rank finds those of its own rows. All of them get what one found after every block.
    """
    n, product = sample.source.n_items, placing.graph
    places = Places(n, product.n_factors)
    if (state := how.checkpoint.state("pass")) is not None:
        places.restore(state)
    say = teller(how, history, n)
    mine = chain.from_iterable(assign_blocks(sample.source, placing, *ends) for ends in places.missing())
    with Bar(total=n, disable=how.verbose <= 0, unit=" items", unit_scale=True) as bar:
        while any(found := how.ranks.gather(next(mine, None))):
            for block in found:
                if block is not None:
                    places.put(block)
            n_known = int(places.is_known.sum())
            bar.update(n_known - bar.n)
            say(n_known)
            how.checkpoint.offer("pass", places.snapshot)
    codes, lengths = places.codes, places.lengths
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
