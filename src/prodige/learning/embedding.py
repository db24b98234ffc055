"""GraphEmbedding: a graph whose edge weights and edge probabilities are learned.

Each candidate edge has two parameters: its weight is ``softplus(theta_w)``, never negative, and it is present with
probability ``sigmoid(theta_b)``, independently of the others. Distances are shortest-path lengths, so a loss on them
trains the weights exactly (the derivative of a path's length by its edges is one) and the probabilities through one of
the estimators of :mod:`prodige.learning.estimators`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.nn import functional

from prodige._validation import check_integer
from prodige.graph.engine import Forest
from prodige.graph.graph import Graph
from prodige.learning import compiled
from prodige.learning.autograd import Distances, Draw, Parameters, Paths, Sample, Search, above_baseline
from prodige.learning.engines import Engines, Prepared
from prodige.learning.estimators import Baseline, RunningMean, check_estimator, numpy_dtype
from prodige.learning.inputs import IntArray, check_candidates, check_values, check_vertices, warn_if_apart
from prodige.learning.softplus import inverse_softplus
from prodige.learning.sparsity import Importance, carry_over
from prodige.threads import count_threads

if TYPE_CHECKING:
    from prodige.metric.candidates import Candidates


class GraphEmbedding(compiled.Operable):
    """A learnable graph over items and hubs.

    In training mode every source searches a graph drawn at random for it alone; in evaluation mode the edges with
    probability 0.5 or more are there, and no other.

    Parameters
    ----------
    i, j : array-like of int, shape [E]
        Candidate edges: every pair once, no self-loops.
    weight : float or array-like, shape [E]
        Initial weights, 0 or more.
    probability : float or array-like, shape [E]
        Initial probabilities, in [0, 1]. Edges at exactly 1 are certain and stay so.
    n_vertices, n_items : int, optional
        As in :meth:`prodige.Graph.from_edges`.
    unreachable : float or "learn", optional
        Distance where there is no path; ten times the largest initial weight when left out. ``"learn"`` makes it a
        parameter that starts there.
    estimator : {"toggle", "score", "path"}
        How probabilities are trained; see :mod:`prodige.learning.estimators`. ``"score"`` needs :meth:`surrogate`.
    sparse : bool
        Make sparse gradients, for :class:`torch.optim.SparseAdam`.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out. Results do not depend on it.
    generator : torch.Generator, optional
        Where samples get their randomness; torch's global generator when left out.
    dtype : torch.dtype, optional
        float32 or float64.

    Shapes:
        - sources ``[S]``, targets ``[T]``: integer vertex ids; all items if ``targets`` is left out
        - output ``[S, T]``

    Examples
    --------
    Three items in a triangle learn that two of them are 3 apart:

    >>> import torch
    >>> from prodige import GraphEmbedding
    >>> embedding = GraphEmbedding([0, 0, 1], [1, 2, 2], weight=1.0, probability=1.0)
    >>> optimizer = torch.optim.Adam(embedding.parameters(), lr=0.1)
    >>> for step in range(200):
    ...     optimizer.zero_grad()
    ...     loss = (embedding([0])[0, 2] - 3.0) ** 2
    ...     loss.backward()
    ...     optimizer.step()
    >>> round(embedding([0], [2]).item(), 2)
    3.0
    """

    i: torch.Tensor
    j: torch.Tensor
    unreachable_constant: torch.Tensor
    _draws: list[Draw]
    _n_draws: int  # calls outside of `gathering` since the last surrogate
    _sources: IntArray | None  # those of `gathering`
    _is_gathering: bool

    def __init__(
        self,
        i: ArrayLike,
        j: ArrayLike,
        weight: ArrayLike = 1.0,
        probability: ArrayLike = 0.9,
        n_vertices: int | None = None,
        n_items: int | None = None,
        unreachable: float | str | None = None,
        estimator: str = "toggle",
        sparse: bool = False,
        n_jobs: int | None = None,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        tails, heads, self.n_vertices, self.n_items = check_candidates(i, j, n_vertices, n_items)
        dtype = torch.get_default_dtype() if dtype is None else dtype
        weights = check_values("weight", weight, tails.size, most=math.inf)
        probabilities = check_values("probability", probability, tails.size, most=1.0)
        self.register_buffer("i", torch.from_numpy(tails))
        self.register_buffer("j", torch.from_numpy(heads))
        theta = torch.from_numpy(inverse_softplus(weights)).to(dtype)
        numpy_dtype(theta)  # refuses what the core cannot work in
        self.theta_w = nn.Parameter(theta)
        self.theta_b = nn.Parameter(torch.logit(torch.from_numpy(probabilities)).to(dtype))

        start = 10 * max(weights.max(initial=0.0), 1e-3) if unreachable in (None, "learn") else unreachable
        if isinstance(start, str) or not (math.isfinite(start) and start > 0):
            raise ValueError(f"unreachable must be a finite number above 0 or 'learn', got {unreachable!r}")
        if unreachable == "learn":
            self.theta_u = nn.Parameter(torch.tensor(float(inverse_softplus(np.array(float(start)))), dtype=dtype))
        else:
            self.register_buffer("unreachable_constant", torch.tensor(float(start), dtype=dtype))
        self.estimator = check_estimator(estimator)
        self.sparse = sparse
        self.n_jobs = n_jobs
        self.generator = generator
        self.importance: Importance | None = None
        self.running_mean = RunningMean()
        self._engines = Engines(self.n_vertices, self.n_items)
        self.forget_draws()
        count_threads(n_jobs)  # refuses nonsense now rather than at the first search
        warn_if_apart(self.n_items, tails, heads, self.n_vertices)

    @classmethod
    def from_candidates(cls, candidates: Candidates, probability: ArrayLike = 0.9, **options: Any) -> Self:
        """Return an embedding of candidate edges as :mod:`prodige.metric.candidates` makes them.

        Parameters
        ----------
        candidates : prodige.metric.candidates.Candidates
            Edges, initial weights, and which vertices are items.
        probability : float or array-like, shape [E]
            Initial probabilities, in [0, 1].
        **options
            Of :class:`GraphEmbedding`; ``weight`` takes the place of the weights of the candidates.

        Examples
        --------
        >>> from prodige import GraphEmbedding
        >>> from prodige.metric import candidates
        >>> edges = candidates.complete([[0.0], [1.0], [3.0]])
        >>> GraphEmbedding.from_candidates(edges, probability=1.0)([0]).detach().round(decimals=3)
        tensor([[0., 1., 3.]])
        """
        if not all(hasattr(candidates, name) for name in ("i", "j", "weight", "n_vertices", "n_items")):
            raise TypeError(
                f"candidates must be edges as prodige.metric.candidates makes them, got {type(candidates).__name__}; "
                "edges of your own go into GraphEmbedding(i, j, weight)"
            )
        own: dict[str, Any] = {
            "weight": candidates.weight,
            "n_vertices": candidates.n_vertices,
            "n_items": candidates.n_items,
        }
        return cls(candidates.i, candidates.j, probability=probability, **(own | options))

    # -- what it holds -----------------------------------------------------------------------------------------------

    @property
    def n_edges(self) -> int:
        """Number of candidate edges."""
        return self.i.numel()

    @property
    def weight(self) -> torch.Tensor:
        """Edge weights, shape [E]."""
        return functional.softplus(self.theta_w, threshold=40)

    @property
    def probability(self) -> torch.Tensor:
        """Edge probabilities, shape [E]."""
        return torch.sigmoid(self.theta_b)

    @property
    def unreachable(self) -> torch.Tensor:
        """Distance that stands for "no path"."""
        if "theta_u" in self._parameters:
            return functional.softplus(self.theta_u, threshold=40)
        return self.unreachable_constant

    @property
    def numbers_per_item(self) -> float:
        """Memory of the graph :meth:`freeze` would give, as :attr:`prodige.Graph.numbers_per_item` counts it."""
        return (self.n_vertices + 2 * int((self.theta_b >= 0).sum())) / self.n_items

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        return (
            f"n_items={self.n_items}, n_hubs={self.n_vertices - self.n_items}, n_edges={self.n_edges}, "
            f"estimator={self.estimator!r}"
        )

    # -- distances ---------------------------------------------------------------------------------------------------

    def forward(self, sources: Any, targets: Any = None) -> torch.Tensor:
        """Return distances from sources to targets, shape [S, T], differentiable."""
        if torch.compiler.is_compiling():
            return self._call(sources, targets)
        vertices = self._vertices("sources", sources)
        return self._distances(self.search(vertices, targets, self.draw_seed()))

    def search(self, sources: Any, targets: Any, seed: int | None) -> Search:
        """Search from sources: over edges drawn by a seed, or without one over those of probability 0.5 or more.

        Examples
        --------
        >>> from prodige import GraphEmbedding
        >>> embedding = GraphEmbedding([0, 1], [1, 2], probability=1.0)
        >>> embedding.search([0], [2], seed=None).read()
        array([[2.]], dtype=float32)
        """
        vertices = self._vertices("sources", sources)
        kept = self._kept() if seed is None else None
        search = self._asked(self._search_drawn(vertices, kept, seed), kept, targets)
        if self.training:
            draw = Draw(vertices, search.forest, search.n_jobs)
            if self._is_gathering:
                self._draws.append(draw)
            else:  # the last is all that can be told apart, and to count the others costs no memory
                self._draws = [draw]
                self._n_draws += 1
        return search

    def draw_seed(self) -> int | None:
        """Return what the next random graphs are drawn by; None where no edge is random."""
        return None if not self.training or self._are_certain else self._next_seed()

    @property
    def _are_certain(self) -> bool:
        return bool((self.probability == 1).all())

    def _next_seed(self) -> int:
        return int(torch.randint(2**63 - 1, (), generator=self.generator))

    def sample(self, sources: Any, targets: Any = None, n_samples: int = 1) -> Sample:
        """Search ``n_samples`` random graphs from every source, each drawn for that source alone.

        Parameters
        ----------
        sources, targets
            As in :meth:`forward`.
        n_samples
            Graphs per source.

        Examples
        --------
        >>> import torch
        >>> from prodige import GraphEmbedding
        >>> generator = torch.Generator().manual_seed(0)
        >>> embedding = GraphEmbedding([0, 0, 1], [1, 2, 2], probability=0.5, generator=generator)
        >>> sample = embedding.sample([0, 1], n_samples=4)
        >>> sample.distances.shape, sample.log_prob.shape
        (torch.Size([4, 2, 3]), torch.Size([4, 2]))
        """
        vertices = self._vertices("sources", sources)
        check_integer("n_samples", n_samples, 1, 2**20)
        seed = None if self._are_certain else self._next_seed()
        search = self._asked(self._search_drawn(np.tile(vertices, n_samples), None, seed), None, targets)
        distances = self._distances(search)
        distances = distances.view(n_samples, vertices.size, distances.shape[1])
        draw = Draw(vertices, search.forest, search.n_jobs)
        if self._is_gathering:
            self._draws.append(draw)
        return Sample(self, distances, draw)

    @contextmanager
    def gathering(self, sources: Any) -> Iterator[None]:
        """Let all calls within this context make the losses of these sources, which :meth:`surrogate` gets next.

        It matters to the estimator ``"score"`` alone, which must know of every random graph that a loss has seen.

        Parameters
        ----------
        sources : array-like of int, shape [S]
            What the losses belong to. Calls on just these sources, in this order, are judged row by row: the loss of a
            source is taken to depend on its own row. Searches of all other calls are judged by all the losses, which
            is right whatever they were for, but noisier.

        Examples
        --------
        >>> import torch
        >>> from prodige import GraphEmbedding
        >>> embedding = GraphEmbedding([0, 0, 1], [1, 2, 2], probability=0.5, estimator="score")
        >>> with embedding.gathering([0, 1]):
        ...     losses = (embedding([0, 1]) - embedding([2])).square().mean(1)
        >>> embedding.surrogate(losses).backward()
        >>> embedding.theta_b.grad.shape
        torch.Size([3])
        """
        vertices = self._vertices("sources", sources)
        self.forget_draws()
        self._sources, self._is_gathering = vertices, True
        try:
            yield
        finally:
            self._is_gathering = False

    def forget_draws(self) -> None:
        """Forget the calls that wait for :meth:`surrogate`."""
        self._draws, self._n_draws, self._sources, self._is_gathering = [], 0, None, False

    def surrogate(self, losses: torch.Tensor, baseline: Baseline = "running-mean") -> torch.Tensor:
        """Return a scalar to call ``backward`` on, for the losses of the sources of the last call, shape [S].

        Losses that several calls went into need :meth:`gathering`. See :meth:`Sample.surrogate` for the rest.
        """
        if self._sources is None and not self._draws:
            raise RuntimeError("surrogate belongs to distances made in training mode: call the module on sources first")
        sources = self._sources
        if sources is None or (len(self._draws) == 1 and losses.shape == self._draws[0].sources.shape):
            sources = self._draws[-1].sources
        if losses.shape != sources.shape:
            raise ValueError(f"losses must have one entry per source, shape {sources.shape}, got {tuple(losses.shape)}")
        total = losses.mean()
        if self.estimator != "score":
            return total
        n_draws, self._n_draws = self._n_draws, 0
        if n_draws > 1:
            raise RuntimeError(
                f"{n_draws} calls in training mode since the last surrogate, and the score estimator must know "
                "which of them the losses depend on: make the losses within `with embedding.gathering(sources):`, "
                "and look at distances in evaluation mode"
            )
        if not self._draws:
            raise RuntimeError(
                "the losses were made without a call of the embedding in training mode: "
                "the score estimator has nothing to learn from"
            )
        above = above_baseline(self, sources, losses.detach().unsqueeze(0), baseline)[0]
        for draw in self._draws:
            own = draw.forest.n_sources == sources.size and np.array_equal(draw.sources, sources)
            factors = above / losses.numel() if own else above.mean().expand(draw.forest.n_sources)
            total = total + draw.score_term(self.theta_b, factors, self.sparse)
        return total

    def _call(self, sources: Any, targets: Any) -> torch.Tensor:
        """Return distances by the operator that ``torch.compile`` knows."""
        compiled.check_dense(self.sparse)
        inputs = [torch.as_tensor(ids).reshape(-1) for ids in (sources, targets) if ids is not None]
        parameters = Parameters(self.theta_w, self.theta_b, self.unreachable)
        n_columns = self.n_items if targets is None else inputs[1].shape[0]
        return compiled.call(self, inputs, parameters, (inputs[0].shape[0], n_columns))

    def _answer(
        self, inputs: Sequence[torch.Tensor], parameters: Parameters, seed: int | None, learning: bool
    ) -> tuple[torch.Tensor, compiled.Tape | None]:
        search = self.search(inputs[0], inputs[1] if len(inputs) > 1 else None, seed)
        distances, tape = compiled.read(search, parameters.unreachable)
        return distances, tape if learning else None

    def _holding(self, inputs: Sequence[torch.Tensor], parameters: Parameters, again: bool) -> Self:
        own = {"theta_w": self.theta_w, "theta_b": self.theta_b}
        if not again and compiled.are_same(zip(own.values(), parameters[:2], strict=True)):
            return self
        other = copy.copy(self)
        other._engines = self._engines
        given = (nn.Parameter(tensor.detach(), requires_grad=False) for tensor in parameters[:2])
        other._parameters = self._parameters | dict(zip(own, given, strict=True))
        return other

    def _search_drawn(self, sources: IntArray, kept: NDArray[np.int64] | None, seed: int | None) -> Forest:
        """Search a random graph for each source; without a seed, the one of the edges kept."""
        engine = self._prepare(kept).engine
        if seed is None:
            return engine.search(sources, self.n_jobs)
        return engine.search_sampled(sources, self._numpy(self.probability), seed, self.n_jobs)

    def _kept(self) -> NDArray[np.int64] | None:
        """Return the edges with probability 0.5 or more; None if that is all of them."""
        kept = (self._numpy(self.theta_b) >= 0).nonzero()[0]
        return None if kept.size == self.n_edges else kept

    def _prepare(self, edges: NDArray[np.int64] | None) -> Prepared:
        """Return an engine for these edges with the present weights."""
        numpy_dtype(self.theta_w)  # refuses half precision
        return self._engines.prepare(self.i.numpy(), self.j.numpy(), self._numpy(self.weight), edges, self.n_jobs)

    def _asked(self, forest: Forest, edges: NDArray[np.int64] | None, targets: Any) -> Search:
        """Return a search together with what is asked of it."""
        return Search(
            forest,
            edges,
            self.n_edges,
            None if targets is None else self._vertices("targets", targets),
            self.n_items,
            self.estimator,
            self.sparse,
            self.importance,
            self._prepare(edges).engine.threads(self.n_jobs, forest.n_sources),
        )

    def _distances(self, search: Paths) -> torch.Tensor:
        """Return the distances of a search, differentiable."""
        distances: torch.Tensor = Distances.apply(  # type: ignore[no-untyped-call]
            self.theta_w, self.theta_b, self.unreachable, search
        )
        return distances

    def prepared(self) -> Prepared | None:
        """Return an engine over the edges that are there for certain; None where searches draw them at random."""
        if self.training and not self._are_certain:
            return None
        return self._prepare(None if self.training else self._kept())

    # -- thinning ----------------------------------------------------------------------------------------------------

    def keep(self, mask: NDArray[np.bool_], optimizer: torch.optim.Optimizer | None = None) -> None:
        """Drop the candidate edges where ``mask`` is False, for good; the optimiser's state goes along."""
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.n_edges,):
            raise ValueError(
                f"mask must hold one bool per edge ({self.n_edges}), got shape {mask.shape} and dtype {mask.dtype}"
            )
        index = torch.from_numpy(np.flatnonzero(mask))
        if optimizer is not None:
            carry_over(optimizer, [self.theta_w, self.theta_b], index)
        for parameter in (self.theta_w, self.theta_b):
            parameter.data = parameter.data[index]
            parameter.grad = None
        self.i, self.j = self.i[index], self.j[index]
        if self.importance is not None:
            self.importance.keep(index.numpy())
        self._engines.clear()
        self.forget_draws()

    def prune(self, threshold: float = 0.5, optimizer: torch.optim.Optimizer | None = None) -> int:
        """Drop the edges with a probability below ``threshold``; return how many.

        Give the optimiser in use, and its state goes along; it fits no longer otherwise
        (:func:`prodige.learning.training.fit` then starts it anew).

        Examples
        --------
        >>> from prodige import GraphEmbedding
        >>> embedding = GraphEmbedding([0, 0, 1], [1, 2, 2], probability=[0.9, 0.2, 0.9])
        >>> embedding.prune()
        1
        >>> embedding.n_edges
        2
        """
        check_values("threshold", threshold, 1, most=1.0)
        mask = self._numpy(self.probability) >= threshold
        self.keep(mask, optimizer)
        return int((~mask).sum())

    def freeze(self) -> Graph:
        """Return the graph of the edges with probability 0.5 or more.

        Examples
        --------
        >>> from prodige import GraphEmbedding
        >>> GraphEmbedding([0, 1], [1, 2], weight=2.0).freeze().distance(0, 2)
        4.0
        """
        kept = self._numpy(self.theta_b) >= 0
        tails, heads = self.i.numpy()[kept], self.j.numpy()[kept]
        warn_if_apart(self.n_items, tails, heads, self.n_vertices)
        return Graph.from_edges(tails, heads, self._numpy(self.weight)[kept], self.n_vertices, self.n_items)

    # -- being a module ----------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        state = self.__dict__.copy()
        state |= {"_engines": Engines(self.n_vertices, self.n_items), "_waiting": {}}
        state |= {"_draws": [], "_n_draws": 0, "_sources": None, "_is_gathering": False}
        return state

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphEmbedding:
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        state = self.__getstate__()
        generator = state.pop("generator")
        other.__dict__.update(copy.deepcopy(state, memo))
        other.generator = None if generator is None else generator.clone_state()
        other._enroll()
        return other

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Take over the number of edges too: a state saved after pruning has fewer."""
        if prefix + "theta_w" in state_dict and prefix + "i" in state_dict:
            n_edges = state_dict[prefix + "theta_w"].numel()
            if n_edges != self.n_edges:
                self.importance = None
            for parameter in (self.theta_w, self.theta_b):
                if n_edges != parameter.numel():
                    parameter.data = parameter.data.new_zeros(n_edges)
                    parameter.grad = None
            for name in ("i", "j"):
                ends = getattr(self, name)
                if n_edges != ends.numel():
                    setattr(self, name, ends.new_zeros(n_edges))
            self._engines.clear()
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _vertices(self, name: str, values: Any) -> IntArray:
        return check_vertices(name, values, self.n_vertices, self.theta_w.device)

    @staticmethod
    def _numpy(tensor: torch.Tensor) -> NDArray[Any]:
        return tensor.detach().numpy()
