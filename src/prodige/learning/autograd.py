"""Distances as autograd sees them: a search forward, a walk over its trees backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from prodige.graph.engine import Forest
from prodige.learning.estimators import (
    Asked,
    Baseline,
    Estimator,
    LogProbability,
    ScoreTerm,
    as_gradient,
    leave_one_out,
    presence_gradient,
)

if TYPE_CHECKING:
    from prodige.learning.embedding import GraphEmbedding


class Observer(Protocol):
    """Whoever is told of every backward pass, as :class:`prodige.learning.sparsity.Importance` is."""

    def observe(self, search: Search, gradient: NDArray[Any], unreachable: float) -> None:
        """Take in a search and the gradient of the loss by its distances."""


class Parameters(NamedTuple):
    """What distances are differentiated by."""

    theta_w: torch.Tensor
    theta_b: torch.Tensor
    unreachable: torch.Tensor


class Paths(Protocol):
    """Shortest paths that were found, as far as autograd needs to know them."""

    @property
    def sparse(self) -> bool:
        """Whether gradients are to be sparse."""

    def read(self) -> NDArray[Any]:
        """Return the distances, infinite where there is no path."""

    def gradients(
        self, incoming: NDArray[Any], parameters: Parameters, needs: tuple[bool, bool]
    ) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Return the gradients of theta_w and theta_b where they are needed, and where there are any."""


@dataclass(frozen=True)
class Search:
    """A finished search, and what its backward pass needs to know.

    It does not hold the embedding: autograd holds the search, and nothing would ever free a ring through autograd.
    """

    forest: Forest
    edges: NDArray[np.int64] | None  # candidate edges behind those of the forest; None: the same
    n_edges: int  # candidate edges
    targets: NDArray[np.int32] | None  # vertices of the columns; None: the items
    n_items: int
    estimator: Estimator
    sparse: bool
    observer: Observer | None
    n_jobs: int

    @property
    def n_columns(self) -> int:
        """Number of targets."""
        return self.n_items if self.targets is None else self.targets.size

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the forest's edges as values of all candidate edges."""
        return spread(values, self.edges, self.n_edges)

    def read(self) -> NDArray[Any]:
        """Return the distances, infinite where there is no path, shape [S, T]."""
        return self.forest.distances(self.targets, self.n_columns, self.n_jobs)

    def gradients(
        self, incoming: NDArray[Any], parameters: Parameters, needs: tuple[bool, bool]
    ) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Walk the trees; return the gradients of theta_w and theta_b that are needed, None where there is none."""
        theta_w, theta_b, unreachable = parameters
        forest, by_w, by_b = self.forest, None, None
        sampled = forest.asked_offsets[-1] > 0 or forest.asked_all
        if needs[0]:
            by_weight = forest.backward(incoming, self.targets, self.n_jobs)
            by_w = self.spread(by_weight) * torch.sigmoid(theta_w).numpy()
        if needs[1] and sampled:
            by_b = presence_gradient(
                self.estimator,
                forest,
                incoming,
                self.targets,
                torch.sigmoid(theta_b).numpy(),
                float(unreachable),
                self.n_jobs,
            )
        if self.observer is not None:
            self.observer.observe(self, incoming, float(unreachable))
        return by_w, by_b


def spread(values: NDArray[Any], edges: NDArray[np.int64] | None, n_edges: int) -> NDArray[Any]:
    """Return values of some edges as values of all candidate edges; None stands for all of them."""
    if edges is None:
        return values
    everything = np.zeros(n_edges, values.dtype)
    everything[edges] = values
    return everything


@dataclass(frozen=True)
class Draw:
    """Random graphs that were searched: what the log-derivative term needs to know of them.

    Attributes
    ----------
    sources : ndarray of int32, shape [S]
    forest : Forest
        A search for each sample of each source, in the order K, S.
    n_jobs : int
    """

    sources: NDArray[np.int32]
    forest: Forest
    n_jobs: int

    def score_term(self, theta_b: torch.Tensor, factors: torch.Tensor, sparse: bool) -> torch.Tensor:
        """Return zero, with the gradient of the log-probability of each search times its factor."""
        term: torch.Tensor = ScoreTerm.apply(  # type: ignore[no-untyped-call]
            theta_b, factors, self.forest, sparse, self.n_jobs
        )
        return term


class Distances(torch.autograd.Function):
    """Lengths of the shortest paths of a search, ``unreachable`` where there is none.

    The derivative by an edge weight is the sum of the incoming gradient over all that is below the edge in the
    search tree: exact, and linear in the size of the tree. Where a loss has equal shortest paths to choose from it is
    the derivative along the one the search took.
    """

    @staticmethod
    def forward(
        ctx: Any, theta_w: torch.Tensor, theta_b: torch.Tensor, unreachable: torch.Tensor, search: Paths
    ) -> torch.Tensor:
        """Read the distances off the trees."""
        ctx.search = search
        ctx.save_for_backward(theta_w, theta_b, unreachable)
        distances, ctx.missing = fill(search.read(), unreachable)
        return distances

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Walk the trees."""
        search: Paths = ctx.search
        parameters = Parameters(*ctx.saved_tensors)
        by_w, by_b = search.gradients(gradient.contiguous().numpy(), parameters, ctx.needs_input_grad[:2])
        return (
            None if by_w is None else as_gradient(by_w, parameters.theta_w, search.sparse),
            None if by_b is None else as_gradient(by_b, parameters.theta_b, search.sparse),
            gradient_of_missing(gradient, ctx.missing) if ctx.needs_input_grad[2] else None,
            None,
        )


def fill(found: NDArray[Any], unreachable: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return distances with ``unreachable`` where they are infinite, and where that is; None if nowhere."""
    distances = torch.from_numpy(found)
    missing = torch.isinf(distances)
    if not missing.any():
        return distances, None
    return torch.where(missing, unreachable.detach(), distances), missing


def gradient_of_missing(gradient: torch.Tensor, missing: torch.Tensor | None) -> torch.Tensor:
    """Return the gradient of ``unreachable``."""
    return gradient.new_zeros(()) if missing is None else gradient[missing].sum()


class Sample:
    """Distances in graphs drawn at random.

    Attributes
    ----------
    distances : Tensor, shape [K, S, T]
        K graphs for each of S sources; differentiable.
    asked : Asked
        The edges each search asked about.
    """

    def __init__(self, embedding: GraphEmbedding, distances: torch.Tensor, draw: Draw) -> None:
        self.distances = distances
        self._embedding = embedding
        self._draw = draw
        self._asked: Asked | None = None

    @property
    def asked(self) -> Asked:
        """Edges the searches asked about, in the order K, S; each at most once a search."""
        if self._asked is None:
            self._asked = Asked(self._draw.forest)
        return self._asked

    @property
    def present(self) -> torch.Tensor:
        """Whether each edge of :attr:`asked` was there, bool, shape [A]."""
        return self.asked.present

    @property
    def log_prob(self) -> torch.Tensor:
        """Log-probability of the answers each search got, shape [K, S]; differentiable in theta_b."""
        values: torch.Tensor = LogProbability.apply(  # type: ignore[no-untyped-call]
            self._embedding.theta_b, self._draw.forest, self._embedding.sparse, self._draw.n_jobs
        )
        return values.view(self.distances.shape[:2])

    def surrogate(self, losses: torch.Tensor, baseline: Baseline = "leave-one-out") -> torch.Tensor:
        """Return a scalar whose ``backward`` trains weights and probabilities, by the embedding's estimator.

        Its value is the mean of the losses. With the estimators ``"toggle"`` and ``"path"`` it is no more than that;
        for ``"score"`` it also carries the log-derivative term.

        Parameters
        ----------
        losses : Tensor, shape [K, S]
            The loss of each sample of each source, made from :attr:`distances`.
        baseline : {"leave-one-out", "running-mean", "none"}
            What is subtracted from the losses in the log-derivative term to lower its variance: the mean of the other
            samples of the source, or the mean of the source's earlier losses.
        """
        if losses.shape != self.distances.shape[:2]:
            raise ValueError(
                f"losses must have one entry per sample and source, shape {tuple(self.distances.shape[:2])}, "
                f"got {tuple(losses.shape)}"
            )
        total = losses.mean()
        if self._embedding.estimator != "score":
            return total
        factors = above_baseline(self._embedding, self._draw.sources, losses.detach(), baseline) / losses.numel()
        return total + self._draw.score_term(self._embedding.theta_b, factors.flatten(), self._embedding.sparse)


def above_baseline(
    embedding: GraphEmbedding, sources: NDArray[np.int32], losses: torch.Tensor, baseline: Baseline
) -> torch.Tensor:
    """Return by how much losses of sources, shape [K, S], are above their baseline."""
    if baseline == "leave-one-out":
        return losses - leave_one_out(losses)
    if baseline == "running-mean":
        return losses - embedding.running_mean(sources, losses)
    if baseline == "none":
        return losses
    raise ValueError(f"baseline must be 'leave-one-out', 'running-mean' or 'none', got {baseline!r}")
