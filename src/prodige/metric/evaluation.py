"""How well a model keeps the distances of a data set: one report for graphs and vectors alike.

A model is anything with ``distances(sources, targets=None)``. True and modelled distances are compared block by block,
so nothing of the size of all pairs is ever held.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, gen_batches

from prodige._validation import check_integer
from prodige.metric.sources import Source
from prodige.metric.space import Space

# Up to here every item is a source; beyond, a sample of sources stands for all.
ALL_SOURCES = 20_000
SAMPLED_SOURCES = 5_000

# What a rank correlation and a recall need to be known to about half a per cent.
SPEARMAN_PAIRS = 100_000
RECALL_SOURCES = 1_000

# Pairs of one block where data are read by blocks: 16 MiB as float32.
_PAIRS = 1 << 22

Items = NDArray[np.int64]
Block = NDArray[np.float32]


class Model(Protocol):
    """Anything that gives distances from some items to all items."""

    def distances(self, sources: Items, targets: None = None, /) -> Block:
        """Return distances, shape [S, N]."""


class BlockModel(Protocol):
    """Anything that gives distances from some items to some items."""

    def distances(self, sources: Items, targets: Items, /) -> Block:
        """Return distances, shape [S, T]."""


@dataclass(frozen=True)
class Report:
    """What :func:`evaluate` found. Pairs are ordered pairs (source, other item), never an item and itself.

    Attributes
    ----------
    mse : float
        Mean of (d − D)² over the pairs, where d is the model's distance and D the true one.
    relative_error : float
        Mean of |d − D| over the mean of D: by what share a distance is off.
    variance : float
        Mean of (D − mean D)²: the error of predicting one constant.
    spearman : float
        Rank correlation of d and D over up to 100,000 of the pairs; nan where all distances are equal.
    recall : float
        Share of the true ``k`` nearest items that are among the model's ``k`` nearest, mean over up to 1,000 of the
        sources. Items as near as the k-th nearest count as true neighbours; where the model cannot tell items apart,
        what a random choice among them would find.
    k : int
        Neighbours asked for.
    n_items, n_sources, n_pairs : int
        Items, sources, and pairs: ``n_sources * (n_items - 1)``.

    Where the model has no path between two items (a distance of ``inf``), ``mse`` and ``relative_error`` are ``inf``;
    ranks and neighbours take such items as farthest.

    Examples
    --------
    >>> from prodige.metric.evaluation import Report
    >>> report = Report(0.25, 0.1, 1.0, 0.9, 0.5, k=10, n_items=100, n_sources=100, n_pairs=9900)
    >>> report.explained
    0.75
    >>> round(report.paper_mse, 4)
    0.2475
    """

    mse: float
    relative_error: float
    variance: float
    spearman: float
    recall: float
    k: int
    n_items: int
    n_sources: int
    n_pairs: int

    @property
    def explained(self) -> float:
        """Share of the variance of the distances that the model explains: 1 − mse / variance."""
        return 1 - self.mse / self.variance if self.variance > 0 else math.nan

    @property
    def paper_mse(self) -> float:
        """The error as the paper prints it: its mean is over all N² pairs, an item and itself among them."""
        return self.mse * (self.n_items - 1) / self.n_items

    def to_dict(self) -> dict[str, float]:
        """Return all figures by name."""
        return asdict(self) | {"explained": self.explained, "paper_mse": self.paper_mse}


def evaluate(
    model: Model,
    space: Space,
    n_sources: int | None = None,
    k: int = 10,
    random_state: int | np.random.RandomState | None = None,
) -> Report:
    """Compare the distances of a model with those of a data set.

    Parameters
    ----------
    model
        A :class:`prodige.Graph`, a baseline, or anything with ``distances(sources, targets=None)``.
    space : Space
        The items with their metric.
    n_sources : int, optional
        Items whose distances to all others are compared, drawn without replacement. When left out: all of them up to
        20,000 items, 5,000 beyond.
    k : int
        Neighbours asked for; all others where there are not as many.
    random_state : int, RandomState or None
        Seed of the samples. The error of all sources does not depend on it.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.metric.evaluation import evaluate
    >>> from prodige.metric.space import Space
    >>> graph = Graph.from_edges([0, 1], [1, 2], [1.0, 3.0])
    >>> report = evaluate(graph, Space([[0.0], [1.0], [3.0]]), k=1)
    >>> round(report.mse, 3), round(report.relative_error, 3), report.recall
    (0.667, 0.333, 1.0)
    """
    n = check_size(space)
    k = min(check_integer("k", k, 1, 2**31), n - 1)
    random = check_random_state(random_state)
    sources = draw_sources(n, n_sources, random)
    judged = np.isin(sources, random.choice(sources, min(sources.size, RECALL_SOURCES), replace=False))
    others = draw_others(sources, n, random)

    totals = np.zeros(4)
    pairs: list[NDArray[np.float32]] = []
    recalls: list[NDArray[np.float64]] = []
    done = 0
    for rows, true, predicted in compare(model, space, sources):
        part = slice(done, done + rows.size)
        done += rows.size
        totals += sums(true, predicted)
        pairs.append(np.stack([np.take_along_axis(block, others[part], axis=1).ravel() for block in (true, predicted)]))
        near, found = (without_self(block[judged[part]], rows[judged[part]]) for block in (true, predicted))
        recalls.append(neighbor_recall(near, found, k))

    n_pairs = sources.size * (n - 1)
    squared, absolute, mean, square = totals / n_pairs
    return Report(
        mse=float(squared),
        relative_error=float(absolute / mean) if mean > 0 else math.nan,
        variance=max(float(square - mean**2), 0.0),
        spearman=rank_correlation(*np.concatenate(pairs, axis=1)),
        recall=float(np.concatenate(recalls).mean()),
        k=k,
        n_items=n,
        n_sources=sources.size,
        n_pairs=n_pairs,
    )


def evaluate_blocks(
    model: BlockModel,
    source: Source,
    space: Space,
    sources: Items,
    k: int = 10,
    random_state: int | np.random.RandomState | None = None,
) -> Report:
    """Compare the distances of a model with those of data that are read by blocks.

    Parameters
    ----------
    model
        Anything with ``distances(sources, targets)``.
    source : Source
        All items; it is read twice.
    space : Space
        Those items whose distances to all others are compared, with their metric.
    sources : ndarray of int64, shape [S]
        Which items of the source these are.
    k : int
        Neighbours asked for.
    random_state : int, RandomState or None
        Seed of the pairs that a rank correlation is taken of.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige import Graph
    >>> from prodige.metric.evaluation import evaluate_blocks
    >>> from prodige.metric.sources import as_source
    >>> from prodige.metric.space import Space
    >>> rows, graph = np.array([[0.0], [1.0], [3.0]]), Graph.from_edges([0, 1], [1, 2], [1.0, 3.0])
    >>> round(evaluate_blocks(graph, as_source(rows), Space(rows), np.arange(3), k=1).mse, 3)
    0.667
    """
    n, random = source.n_items, check_random_state(random_state)
    k = min(check_integer("k", k, 1, 2**31), n - 1)
    columns = np.sort(random.permutation(n)[: max(1, SPEARMAN_PAIRS // sources.size)])
    totals, pairs = np.zeros(4), []
    nearest = np.full((2, sources.size, k), np.inf, dtype=np.float32)
    for items, true, predicted in compare_blocks(model, source, space, sources):
        is_self = sources[:, None] == items
        totals += sums(np.where(is_self, 0, true), np.where(is_self, 0, predicted))
        some = np.isin(items, columns)
        pairs.append(np.stack([block[:, some][~is_self[:, some]] for block in (true, predicted)]))
        for side, block in enumerate((true, predicted)):
            both = np.concatenate([nearest[side], np.where(is_self, np.inf, block)], axis=1)
            nearest[side] = np.partition(both, k - 1, axis=1)[:, :k]
    farthest, last = nearest.max(axis=2)[:, :, None]
    counts = np.zeros((4, sources.size))  # inside, inside and near, tied, tied and near: see neighbor_recall
    for items, true, predicted in compare_blocks(model, source, space, sources):
        is_other = sources[:, None] != items
        is_near, inside, tied = true <= farthest, (predicted < last) & is_other, (predicted == last) & is_other
        counts += [some.sum(axis=1) for some in (inside, inside & is_near, tied, tied & is_near)]
    inside, near_inside, tied, near_tied = counts
    recall = (near_inside + (k - inside) * near_tied / np.maximum(tied, 1)) / k
    n_pairs = sources.size * (n - 1)
    squared, absolute, mean, square = totals / n_pairs
    return Report(
        mse=float(squared),
        relative_error=float(absolute / mean) if mean > 0 else math.nan,
        variance=max(float(square - mean**2), 0.0),
        spearman=rank_correlation(*np.concatenate(pairs, axis=1)),
        recall=float(recall.mean()),
        k=k,
        n_items=n,
        n_sources=sources.size,
        n_pairs=n_pairs,
    )


def compare_blocks(
    model: BlockModel, source: Source, space: Space, sources: Items
) -> Iterator[tuple[Items, Block, Block]]:
    """Yield items with their true and modelled distances from the sources, block by block."""
    for begin, rows in source.blocks():
        for part in gen_batches(rows.shape[0], max(1, _PAIRS // sources.size)):
            items = np.arange(begin + part.start, begin + part.stop)
            yield items, np.ascontiguousarray(space.to_others(rows[part]).T), model.distances(sources, items)


def mean_squared_error(model: Model, space: Space) -> float:
    """Return the mean squared error over all pairs of different items, whatever their number.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.metric.evaluation import mean_squared_error
    >>> from prodige.metric.space import Space
    >>> mean_squared_error(Graph.from_edges([0], [1], [3.0]), Space([[0.0], [1.0]]))
    4.0
    """
    n = check_size(space)
    return float(sum(sums(true, predicted)[0] for _, true, predicted in compare(model, space, np.arange(n)))) / (
        n * (n - 1)
    )


def check_size(space: Space) -> int:
    """Return the number of items, after making sure that there are pairs."""
    if space.n_items < 2:
        raise ValueError(f"space must have 2 items or more, got {space.n_items}: there are no pairs to compare")
    return space.n_items


def draw_sources(n: int, n_sources: int | None, random: np.random.RandomState) -> Items:
    """Return the sources to compare, in order."""
    if n_sources is None:
        n_sources = n if n <= ALL_SOURCES else SAMPLED_SOURCES
    check_integer("n_sources", n_sources, 1, n)
    return np.arange(n) if n_sources == n else np.sort(random.choice(n, n_sources, replace=False))


def draw_others(sources: Items, n: int, random: np.random.RandomState) -> Items:
    """Return some other items for each source, shape [S, M]; all of them where that is not too many pairs."""
    if sources.size * (n - 1) <= SPEARMAN_PAIRS:
        steps = np.broadcast_to(np.arange(1, n), (sources.size, n - 1))
    else:
        steps = random.randint(1, n, size=(sources.size, max(1, SPEARMAN_PAIRS // sources.size)))
    return np.asarray((sources[:, None] + steps) % n)


def compare(model: Model, space: Space, sources: Items) -> Iterator[tuple[Items, Block, Block]]:
    """Yield sources with their true and modelled distances, block by block; 0 from an item to itself."""
    for rows, true in space.blocks(sources):
        predicted = np.array(model.distances(rows), dtype=np.float32)
        if predicted.shape != true.shape:
            raise ValueError(
                f"model gives distances of shape {predicted.shape} where {true.shape} were asked for; "
                f"it must stand for the same {space.n_items} items as the data"
            )
        if np.isnan(predicted).any():
            row, column = np.argwhere(np.isnan(predicted))[0]
            raise ValueError(f"model gives nan as the distance from item {rows[row]} to item {column}")
        predicted[np.arange(rows.size), rows] = 0
        yield rows, true, predicted


def sums(true: Block, predicted: Block) -> NDArray[np.float64]:
    """Return Σ (d − D)², Σ |d − D|, Σ D and Σ D² in float64."""
    residual = predicted - true
    return np.array(
        [
            np.square(residual, dtype=np.float64).sum(),
            np.abs(residual, out=residual).sum(dtype=np.float64),
            true.sum(dtype=np.float64),
            np.square(true, dtype=np.float64).sum(),
        ]
    )


def without_self(block: Block, rows: Items) -> Block:
    """Return the distances to the other items, shape [S, N − 1]."""
    is_other = np.arange(block.shape[1]) != rows[:, None]
    return np.asarray(block[is_other].reshape(rows.size, block.shape[1] - 1))


def neighbor_recall(true: Block, predicted: Block, k: int) -> NDArray[np.float64]:
    """Return the share of true neighbours among the model's, for each row; see :class:`Report` for ties.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.metric.evaluation import neighbor_recall
    >>> neighbor_recall(np.array([[1, 2, 3, 4]]), np.array([[1, 9, 9, 1]]), k=2)
    array([0.5])
    """
    is_near = true <= np.partition(true, k - 1, axis=1)[:, k - 1 : k]
    last = np.partition(predicted, k - 1, axis=1)[:, k - 1 : k]
    inside, tied = predicted < last, predicted == last
    left = k - inside.sum(axis=1)
    found = (inside & is_near).sum(axis=1) + left * (tied & is_near).sum(axis=1) / tied.sum(axis=1)
    return np.asarray(found / k)


def rank_correlation(true: Block, predicted: Block) -> float:
    """Return Spearman's coefficient, nan where one side is constant."""
    from scipy.stats import spearmanr

    if true.min() == true.max() or predicted.min() == predicted.max():  # scipy would warn
        return math.nan
    return float(spearmanr(true, predicted).statistic)


__all__ = ["Report", "evaluate", "evaluate_blocks", "mean_squared_error"]
