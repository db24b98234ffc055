r"""Fewer edges: the L0 penalty, the importance of an edge, and a budget that is met exactly.

The paper adds :math:`\lambda \cdot \operatorname{mean}_e p_e` to the loss (its equation 4) and keeps what ends up with
:math:`p \ge 0.5`; the number of edges is then whatever :math:`\lambda` makes it. A budget turns this around: it names
the size, and drops the least important edges in many small steps until it is reached. That is the same penalty in its
deterministic limit, with :math:`\lambda` the importance of the last edge kept.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from prodige._validation import MAX_EDGES, check_integer, check_number
from prodige.graph.spanning import spanning_forest, without_leaves

if TYPE_CHECKING:
    from prodige.learning.autograd import Search
    from prodige.learning.embedding import GraphEmbedding


def l0_penalty(
    embedding: GraphEmbedding,
    lambda_: float,
    n_edges: int | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Return ``lambda_`` times the mean edge probability, over all edges or a random batch of them.

    A batch keeps gradients sparse where the embedding makes sparse ones, and has the same expectation.

    Examples
    --------
    >>> from prodige import GraphEmbedding
    >>> from prodige.learning.sparsity import l0_penalty
    >>> round(l0_penalty(GraphEmbedding([0, 1], [1, 2], probability=0.5), lambda_=0.1).item(), 4)
    0.05
    """
    lambda_ = check_number("lambda_", lambda_)
    if n_edges is not None:
        check_integer("n_edges", n_edges, 1, MAX_EDGES)
    theta = embedding.theta_b
    if n_edges is None or n_edges >= theta.numel():
        if not embedding.sparse:
            return lambda_ * torch.sigmoid(theta).mean()
        batch = torch.arange(theta.numel())
    else:
        batch = torch.randint(theta.numel(), (n_edges,), generator=generator)
    if embedding.sparse:
        logits: torch.Tensor = _Gather.apply(theta, batch)  # type: ignore[no-untyped-call]
    else:
        logits = theta[batch]
    return lambda_ * torch.sigmoid(logits).mean()


class _Gather(torch.autograd.Function):
    """Entries of a vector, with a sparse gradient."""

    @staticmethod
    def forward(ctx: Any, vector: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        ctx.index, ctx.size = index, vector.shape
        return vector[index]

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        gradient = torch.sparse_coo_tensor(ctx.index[None], gradients[0], ctx.size, check_invariants=False)
        return gradient, None


class Importance:
    """Running mean, over sources, of what the loss would rise by if an edge were removed.

    Set it as ``embedding.importance``: it is then told of every backward pass through distances.

    Parameters
    ----------
    curvature : float, optional
        Second derivative of the loss by one distance, where it is a constant: 2 / (S * T) for a mean squared error
        over S sources and T targets. The rise is then exact for shifts of any size. Without it the rise is taken as
        the shift times the absolute gradient: right for any loss, and safe for rankings, where single edges towards
        negatives look harmful one by one and are needed together.
    memory : float
        Number of sources the mean reaches back over. Too few make it noisy: a few thousand are right.
    """

    def __init__(self, curvature: float | None = None, memory: float = 4000.0) -> None:
        if curvature is not None:
            check_number("curvature", curvature)
        if not memory >= 1:
            raise ValueError(f"memory must be 1 source or more, got {memory}")
        self.curvature = curvature
        self.memory = memory
        self._sums: tuple[NDArray[np.float64], float] | None = None  # of rises, and of what they count

    @property
    def is_empty(self) -> bool:
        """Whether there was no backward pass yet."""
        return self._sums is None

    @property
    def values(self) -> NDArray[np.float64]:
        """Importance of each candidate edge, shape [E]."""
        if self._sums is None:
            raise RuntimeError("no importance yet: run a backward pass through the embedding's distances first")
        total, weight = self._sums
        return total / weight

    def observe(self, search: Search, gradient: NDArray[Any], unreachable: float) -> None:
        """Take in the searches of one backward pass; ``gradient`` is that of the loss by their distances."""
        if self.curvature is None:
            slope, curve = np.abs(gradient), np.zeros_like(gradient)
        else:
            slope, curve = gradient, np.full_like(gradient, self.curvature)
        # Losing the only path must never look cheap, whatever constant stands for it in the loss.
        farthest = float(search.forest.settled_distances.max(initial=0.0))
        cost = search.forest.removal_cost(slope, curve, search.targets, max(unreachable, 10 * farthest), search.n_jobs)
        rise = search.spread(cost).astype(np.float64)
        n_sources = search.forest.n_sources
        keep = math.exp(-n_sources / self.memory)
        total, weight = (np.zeros_like(rise), 0.0) if self._sums is None else self._sums
        self._sums = keep * total + rise, keep * weight + n_sources

    def keep(self, index: NDArray[np.int64]) -> None:
        """Forget the edges that were dropped."""
        if self._sums is not None:
            total, weight = self._sums
            self._sums = total[index], weight


class Budget:
    """A size in numbers per item, reached by dropping the least important edges in many small steps.

    Between ``start`` and ``end`` of a run the number of edges falls geometrically from what it is to exactly what the
    budget allows. Items are never disconnected: a spanning tree of the most important edges is always kept.

    Parameters
    ----------
    numbers_per_item : float
        Memory, counted as one number per vertex and two per edge, divided by the items.
    start, end : float
        Shares of the run between which edges are dropped.

    Examples
    --------
    >>> from prodige.learning.sparsity import Budget
    >>> Budget(4).n_edges(n_items=1000, n_vertices=1010)
    1495
    """

    def __init__(self, numbers_per_item: float, start: float = 0.2, end: float = 0.7) -> None:
        check_number("numbers_per_item", numbers_per_item, above=True)
        if not 0 <= start <= end <= 1:
            raise ValueError(f"start and end must be in order and in [0, 1], got {start} and {end}")
        self.numbers_per_item = numbers_per_item
        self.start = start
        self.end = end
        self._n_start: int | None = None

    def n_edges(self, n_items: int, n_vertices: int) -> int:
        """Return how many edges fit."""
        return math.floor((self.numbers_per_item * n_items - n_vertices) / 2 + 1e-9)

    def check(self, embedding: GraphEmbedding) -> None:
        """Refuse a budget that no connected graph of these candidates meets."""
        allowed = self.n_edges(embedding.n_items, embedding.n_vertices)
        needed = int(spanning_edges(embedding, np.zeros(embedding.n_edges)).sum())
        if allowed < needed:
            least = (embedding.n_vertices + 2 * needed) / embedding.n_items
            raise ValueError(
                f"numbers_per_item = {self.numbers_per_item} allows {max(allowed, 0)} edges, but connecting the items "
                f"takes {needed}; give at least {least:.4g}"
            )

    def step(self, embedding: GraphEmbedding, progress: float, optimizer: torch.optim.Optimizer | None = None) -> int:
        """Drop what is due when a share ``progress`` of the run is over; return how many edges went.

        A run begins where ``progress`` is no more than ``start``, so a budget can be used again.
        """
        if self._n_start is None or progress <= self.start:
            if self._n_start != embedding.n_edges:
                self.check(embedding)
            self._n_start = embedding.n_edges
        final = self.n_edges(embedding.n_items, embedding.n_vertices)
        if progress < self.start or embedding.n_edges <= final:
            return 0
        share = 1.0 if self.end <= self.start else min((progress - self.start) / (self.end - self.start), 1.0)
        target = final if share >= 1 else round(self._n_start * (final / self._n_start) ** share)
        n_dropped = embedding.n_edges - max(target, final)
        if n_dropped <= 0:
            return 0
        return drop_edges(embedding, n_dropped, optimizer)


def drop_edges(embedding: GraphEmbedding, n_dropped: int, optimizer: torch.optim.Optimizer | None = None) -> int:
    """Drop up to this many of the least important edges without disconnecting items; return how many went.

    Edges rank by the embedding's importance, by their probability where it keeps none or there was none to see yet.
    """
    importance = embedding.importance
    if importance is None or importance.is_empty:
        rank = embedding.theta_b.detach().double().numpy()
    else:
        rank = importance.values
    spare = np.flatnonzero(~spanning_edges(embedding, rank))
    # Ties (unused edges all have importance 0) go by weight: the longest are the least likely to be needed again.
    order = np.lexsort((-embedding.weight.detach().numpy()[spare], rank[spare]))
    mask = np.ones(embedding.n_edges, dtype=bool)
    mask[spare[order[:n_dropped]]] = False
    embedding.keep(mask, optimizer)
    return int((~mask).sum())


def spanning_edges(embedding: GraphEmbedding, rank: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which edges make up a spanning forest of the highest rank, without hubs that connect nothing in it."""
    tails, heads = embedding.i.numpy(), embedding.j.numpy()
    forest = spanning_forest(tails, heads, rank, embedding.n_vertices)
    return without_leaves(tails, heads, forest, may_go=np.arange(embedding.n_vertices) >= embedding.n_items)


def carry_over(optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter], index: torch.Tensor) -> None:
    """Keep, of the optimiser's state for these parameters, only the entries at ``index``."""
    for parameter in parameters:
        state = optimizer.state.get(parameter, {})
        for key, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                state[key] = value[index]


def drop_stale(optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter]) -> None:
    """Forget the optimiser's state for those of the parameters that were thinned without it."""
    for parameter in parameters:
        state = optimizer.state.get(parameter, {})
        shapes = {value.shape for value in state.values() if isinstance(value, torch.Tensor) and value.dim() > 0}
        if shapes - {parameter.shape}:
            del optimizer.state[parameter]
