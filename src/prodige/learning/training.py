"""The training loop: any model that owns a GraphEmbedding or a ProductEmbedding, any loss.

Each step draws a batch of sources, asks the caller's loss about them, and takes one optimiser step; a budget thins the
graph on the way, and the learning rate falls to its end. The loop counts steps, never seconds, so a seed gives the
same result on the same machine with any ``n_jobs`` of the embedding. What the loss itself computes is torch's: its last
bits may change with torch's own threads.

A step is taken whole or not at all, and what the caller lent comes back as it was: learning rates, modes, generator.
"""

from __future__ import annotations

import copy
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import nn

from prodige._validation import check_indices, check_integer, check_number
from prodige.learning.embedding import GraphEmbedding
from prodige.learning.estimators import Baseline
from prodige.learning.product import ProductEmbedding
from prodige.learning.sparsity import Budget, Importance, drop_stale, l0_penalty
from prodige.progress import Bar, Callback, Record, Stopped, check_callbacks, tell

Loss = Callable[[Any, torch.Tensor], torch.Tensor]


@dataclass
class Result:
    """How a run went. The model holds its best state.

    Attributes
    ----------
    history_ : list of prodige.progress.Record
        One for each step.
    best_loss_ : float
        Smoothed loss of the state that was kept.
    stopped_ : {"finished", "callback", "interrupt"}
        Why the run ended.
    """

    history_: list[Record] = field(default_factory=list)
    best_loss_: float = math.inf
    stopped_: Stopped = "finished"


def cosine(progress: float) -> float:
    """Learning-rate schedule that falls from 1 to 0 along a half cosine.

    Examples
    --------
    >>> from prodige.learning.training import cosine
    >>> [round(cosine(p), 2) for p in (0, 0.5, 1)]
    [1.0, 0.5, 0.0]
    """
    return (1 + math.cos(math.pi * progress)) / 2


def constant(progress: float) -> float:
    """Learning-rate schedule that stays."""
    return 1.0


def fit(
    model: nn.Module,
    loss: Loss,
    n_steps: int = 1000,
    batch_size: int = 32,
    optimizer: Literal["adam", "sparse-adam"] | torch.optim.Optimizer = "adam",
    learning_rate: float = 0.01,
    schedule: Callable[[float], float] = cosine,
    lambda_: float = 0.0,
    budget: Budget | None = None,
    baseline: Baseline = "running-mean",
    sources: Iterable[int] | None = None,
    callbacks: Sequence[Callback] | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> Result:
    """Train a model that owns a :class:`prodige.GraphEmbedding`, or a :class:`prodige.ProductEmbedding`.

    Parameters
    ----------
    model : nn.Module
        The embedding itself, or a module with one inside. All its parameters are trained.
    loss : callable
        ``loss(model, sources)`` returns a scalar, or the loss of each source, shape [S]. The estimator ``"score"``
        needs the latter; it may call the model several times (:meth:`prodige.GraphEmbedding.gathering` says how they
        count).
    n_steps, batch_size : int
        Steps, and sources in each.
    optimizer : {"adam", "sparse-adam"} or torch.optim.Optimizer
        ``"sparse-adam"`` goes with ``GraphEmbedding(sparse=True)``. An optimiser has its learning rates back after the
        run, and state that fits the parameters, however many edges went.
    learning_rate : float
        At the start; ignored when an optimiser is given.
    schedule : callable
        Factor on the learning rate by the share of the run that is over.
    lambda_ : float
        Weight of the mean edge probability in the loss, the paper's L0 penalty.
    budget : Budget, optional
        Size to thin the graph to on the way; not for a product.
    baseline : {"running-mean", "none"}
        Of the score estimator.
    sources : iterable of int, optional
        Vertices to draw batches from; all items when left out.
    callbacks : sequence of callable, optional
        Each is called with a :class:`prodige.progress.Record` after every step; one that returns True ends the run.
    random_state : int, RandomState or None
        Seed for batches and samples.
    verbose : int
        Above 0 shows a progress bar.

    Returns
    -------
    Result
        The model is left in its best state: that of the lowest smoothed loss, once the budget is met. Ctrl-C ends a
        run early but not without result: what is there is thinned to the budget.

    Raises
    ------
    FloatingPointError
        If a loss or gradient is not finite. After this as after any other error the model is as it was before the step.

    Examples
    --------
    >>> import torch
    >>> from prodige import GraphEmbedding
    >>> from prodige.learning.training import fit
    >>> target = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    >>> embedding = GraphEmbedding([0, 0, 1], [1, 2, 2], probability=1.0)
    >>> loss = lambda model, sources: ((model(sources) - target[sources]) ** 2).mean()
    >>> result = fit(embedding, loss, n_steps=300, batch_size=3, learning_rate=0.05, random_state=0)
    >>> embedding.eval()([1]).detach().round(decimals=1)
    tensor([[1., 0., 3.]])
    """
    n_steps = check_integer("n_steps", n_steps, 1, 2**31)
    batch_size = check_integer("batch_size", batch_size, 1, 2**31)
    callbacks = check_callbacks(callbacks)
    run = Run(model, loss, optimizer, learning_rate, schedule, lambda_, budget, baseline, random_state)
    batches = draw_batches(check_sources(sources, run.embedding), batch_size, run.random)
    result = Result()
    start = time.perf_counter()
    with run.lent():
        try:
            with Bar(total=n_steps, disable=verbose <= 0, unit="step") as bar:
                for step in range(n_steps):
                    value = run.step(step, n_steps, next(batches))
                    n_edges, numbers = run.embedding.n_edges, run.embedding.numbers_per_item
                    seconds = time.perf_counter() - start
                    record = Record(step, step / n_steps, value, seconds, n_edges, numbers, run.learning_rate())
                    result.history_.append(record)
                    run.keep_best(step, n_steps)
                    bar.update()
                    bar.set_postfix(loss=f"{run.smoothed:.5g}", edges=n_edges, numbers=f"{numbers:.2f}", refresh=False)
                    if tell(callbacks, record):
                        result.stopped_ = "callback"
                        break
        except KeyboardInterrupt:
            result.stopped_ = "interrupt"
        with uninterrupted():
            run.restore_best()
    result.best_loss_ = run.best_loss
    return result


class Run:
    """The moving parts of one call of :func:`fit`."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        optimizer: str | torch.optim.Optimizer,
        learning_rate: float,
        schedule: Callable[[float], float],
        lambda_: float,
        budget: Budget | None,
        baseline: Baseline,
        random_state: int | np.random.RandomState | None,
    ) -> None:
        self.model = model
        self.embedding = find_embedding(model)
        self.graphs = graphs_of(self.embedding)
        if not callable(loss):
            raise TypeError(f"loss must be a function of the model and its sources, got {loss!r}")
        self.loss = loss
        self.optimizer = make_optimizer(optimizer, model, learning_rate)
        self.start_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.schedule = schedule
        self.lambda_ = check_number("lambda_", lambda_)
        if not (budget is None or isinstance(budget, Budget)):
            raise TypeError(
                f"budget must be a prodige.learning.sparsity.Budget, got {budget!r}; write Budget({budget!r})"
            )
        self.budget = copy.copy(budget)  # the caller's learns nothing of this run
        if baseline not in ("running-mean", "none"):
            raise ValueError(f"baseline must be 'running-mean' or 'none', got {baseline!r}")
        self.baseline: Baseline = baseline
        self.random = check_random_state(random_state)
        self.smoothed = math.nan
        self._best: tuple[float, dict[str, Any] | None] = math.inf, None
        if budget is not None:
            if isinstance(self.embedding, ProductEmbedding):
                raise ValueError(
                    f"budget={budget!r} is for one graph, {type(model).__name__} has a product; leave it out"
                )
            budget.check(self.embedding)

    @property
    def best_loss(self) -> float:
        """Smoothed loss of the best state so far."""
        return self._best[0]

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Put the model into training mode with a generator of this run; give all back as it was in the end."""
        modes = {module: module.training for module in self.model.modules()}
        generators, recording = [graph.generator for graph in self.graphs], torch.is_grad_enabled()
        try:
            own = torch.Generator().manual_seed(int(self.random.randint(2**31)))
            for graph in self.graphs:
                graph.generator = own
            self.model.train()
            yield
        finally:
            for graph, generator in zip(self.graphs, generators, strict=True):
                graph.generator = generator
                graph.forget_draws()
            torch.set_grad_enabled(recording)  # off for good if Ctrl-C comes at the end of the optimiser's step
            for module, mode in modes.items():
                module.training = mode
            for group, rate in zip(self.optimizer.param_groups, self.start_rates, strict=False):
                group["lr"] = rate
            self.model.zero_grad()

    def learning_rate(self) -> float:
        """Return the present learning rate."""
        return float(self.optimizer.param_groups[0]["lr"])

    def step(self, step: int, n_steps: int, sources: torch.Tensor) -> float:
        """Thin, take one optimiser step, return the loss; where anything goes wrong all is as it was before."""
        before = Snapshot(self.model, self.graphs, self.optimizer)
        try:
            return self._step(step, n_steps, sources)
        except BaseException:
            with uninterrupted():
                before.restore()
            raise

    def _step(self, step: int, n_steps: int, sources: torch.Tensor) -> float:
        progress = step / n_steps
        smoothed = self.smoothed
        drop_stale(self.optimizer, self.thinned)
        if self.budget is not None and self.budget.step(self.graphs[0], progress, self.optimizer):
            smoothed = math.nan  # another graph: earlier losses say nothing about it
        factor = check_number(f"schedule({progress:g})", self.schedule(progress))
        for group, rate in zip(self.optimizer.param_groups, self.start_rates, strict=True):
            group["lr"] = rate * factor
        self.optimizer.zero_grad()
        # Factors of a product are asked about hubs, not items, and never by the estimator that must know.
        with self.embedding.gathering(sources) if isinstance(self.embedding, GraphEmbedding) else nullcontext():
            losses = check_losses(self.loss(self.model, sources))
        objective = self._objective(losses)
        value = float(losses.detach().mean())
        check_finite("loss", value, step)
        objective.backward()  # type: ignore[no-untyped-call]
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                check_finite(f"gradient of {name}", float(parameter.grad.sum()), step)
        self.optimizer.step()
        self.smoothed = value if math.isnan(smoothed) else 0.95 * smoothed + 0.05 * value
        return value

    @property
    def thinned(self) -> list[nn.Parameter]:
        """Parameters that have an entry for each edge."""
        return [theta for graph in self.graphs for theta in (graph.theta_w, graph.theta_b)]

    def _objective(self, losses: torch.Tensor) -> torch.Tensor:
        objective = losses.mean() if losses.ndim else losses
        if isinstance(self.embedding, GraphEmbedding) and self.embedding.estimator == "score":
            if losses.ndim == 0:
                raise ValueError(
                    "the score estimator needs the loss of each source: return a tensor of shape [S] from loss, "
                    "or use GraphEmbedding(estimator='toggle')"
                )
            objective = self.embedding.surrogate(losses, self.baseline)
        if not objective.requires_grad:
            raise ValueError(
                "the loss does not depend on any parameter of the model that can be trained: was the model called "
                "under torch.no_grad(), its result detached, or are all its parameters frozen?"
            )
        if self.lambda_:
            objective = objective + sum(self._penalties())
        return objective

    def _penalties(self) -> Iterator[torch.Tensor]:
        """Yield the shares of the graphs in the L0 penalty, by their edges."""
        for graph in self.graphs:
            if graph.n_edges:
                share = graph.n_edges / self.embedding.n_edges
                batch = 4096 if graph.sparse else None
                yield l0_penalty(graph, self.lambda_ * share, batch, graph.generator)

    def keep_best(self, step: int, n_steps: int) -> None:
        """Remember the state if it is the best so far; looks only every so often, and only at graphs of final size."""
        if self.budget is not None:
            graph = self.graphs[0]
            if graph.n_edges > self.budget.n_edges(graph.n_items, graph.n_vertices):
                return
        last = step + 1 == n_steps
        if (last or step % 20 == 19) and self.smoothed < self.best_loss:
            self._best = self.smoothed, copy.deepcopy(self.model.state_dict())

    def restore_best(self) -> None:
        """Go back to the best state; one too large for the budget is thinned to it."""
        _, best = self._best
        if best is not None:
            self.model.load_state_dict(best)
        elif self.budget is not None:
            self.budget.step(self.graphs[0], 1.0, self.optimizer)
        drop_stale(self.optimizer, self.thinned)


class Snapshot:
    """What a step changes, as it was before."""

    def __init__(self, model: nn.Module, graphs: list[GraphEmbedding], optimizer: torch.optim.Optimizer) -> None:
        self._model = model
        self._optimizer = optimizer
        self._parameters = copy.deepcopy(model.state_dict())
        self._moments = {parameter: copy.deepcopy(state) for parameter, state in optimizer.state.items()}
        self._importances = [(graph, graph.importance, seen_by(graph.importance)) for graph in graphs]

    def restore(self) -> None:
        """Bring all of it back."""
        self._model.load_state_dict(self._parameters)
        self._optimizer.state.clear()
        self._optimizer.state.update(self._moments)
        for graph, importance, seen in self._importances:
            if importance is not None:
                vars(importance).update(seen)
            graph.importance = importance


def seen_by(importance: Importance | None) -> dict[str, Any]:
    """Return what an importance has learned so far."""
    return {} if importance is None else dict(vars(importance))


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until what is within is done. It comes to the main thread only, so others need not wait.

    Examples
    --------
    >>> import signal
    >>> from prodige.learning.training import uninterrupted
    >>> try:
    ...     with uninterrupted():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("done")
    ... except KeyboardInterrupt:
    ...     print("stopped")
    done
    stopped
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        signal.raise_signal(signal.SIGINT)


def check_sources(sources: Iterable[int] | None, embedding: GraphEmbedding | ProductEmbedding) -> np.ndarray:
    """Return the vertices to draw batches from, all items where None are given."""
    if sources is None:
        return np.arange(embedding.n_items)
    if not isinstance(sources, Iterable):
        raise TypeError(f"sources must be a sequence of vertices, got {sources!r}")
    n_vertices = embedding.n_vertices if isinstance(embedding, GraphEmbedding) else embedding.n_items
    pool = check_indices("sources", np.asarray(list(sources)), n_vertices)
    if pool.size == 0:
        raise ValueError(
            "sources must hold at least one vertex to draw batches from, got none; leave out for all items"
        )
    return pool.astype(np.int64)


def check_losses(losses: Any) -> torch.Tensor:
    """Return what a loss gave, after making sure that it is one."""
    if not isinstance(losses, torch.Tensor):
        forgotten = "; does it end with `return`?" if losses is None else ""
        raise TypeError(
            f"loss must return a tensor, a scalar or one value per source, got {losses!r} "
            f"of type {type(losses).__name__}{forgotten}"
        )
    if losses.ndim > 1 or losses.numel() == 0:
        raise ValueError(f"loss must return a scalar or one value per source, got shape {tuple(losses.shape)}")
    if not losses.is_floating_point():
        raise TypeError(f"loss must return real numbers, got dtype {losses.dtype}")
    return losses


def find_embedding(model: nn.Module) -> GraphEmbedding | ProductEmbedding:
    """Return the one GraphEmbedding of a model, or its one ProductEmbedding."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch module that owns a GraphEmbedding, got {type(model).__name__}")
    found = [module for module in model.modules() if isinstance(module, (GraphEmbedding, ProductEmbedding))]
    factors = {graph for product in found if isinstance(product, ProductEmbedding) for graph in product.graphs}
    embeddings = [embedding for embedding in found if embedding not in factors]
    if len(embeddings) != 1:
        raise ValueError(
            "model must own exactly one GraphEmbedding or ProductEmbedding, "
            f"{type(model).__name__} has {len(embeddings)}"
        )
    return embeddings[0]


def graphs_of(embedding: GraphEmbedding | ProductEmbedding) -> list[GraphEmbedding]:
    """Return the graphs that are trained: one, or the factors of a product."""
    return embedding.graphs if isinstance(embedding, ProductEmbedding) else [embedding]


def make_optimizer(
    optimizer: str | torch.optim.Optimizer, model: nn.Module, learning_rate: float
) -> torch.optim.Optimizer:
    """Return the optimiser itself, or a new one by its name."""
    if isinstance(optimizer, torch.optim.Optimizer):
        return optimizer
    learning_rate = check_number("learning_rate", learning_rate, above=True)
    sparse = any(isinstance(module, GraphEmbedding) and module.sparse for module in model.modules())
    if optimizer in ("adam", "sparse-adam") and sparse != (optimizer == "sparse-adam"):
        raise ValueError(
            f"optimizer={optimizer!r} does not go with GraphEmbedding(sparse={sparse}): "
            "'sparse-adam' is for sparse gradients, 'adam' for dense ones"
        )
    if optimizer == "adam":
        return torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    if optimizer == "sparse-adam":
        return torch.optim.SparseAdam(list(model.parameters()), lr=learning_rate)
    raise ValueError(f"optimizer must be 'adam', 'sparse-adam' or a torch optimizer, got {optimizer!r}")


def draw_batches(pool: np.ndarray, batch_size: int, random: np.random.RandomState) -> Iterator[torch.Tensor]:
    """Yield batches without end; every source comes once before any comes again."""
    while True:
        order = random.permutation(pool)
        for begin in range(0, max(order.size - order.size % batch_size, 1), batch_size):
            yield torch.from_numpy(order[begin : begin + batch_size])


def check_finite(name: str, value: float, step: int) -> None:
    """Stop a run whose numbers have become meaningless."""
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the {name} is {value} at step {step}; the model keeps its state before this step. "
            "Lower the learning rate, or look for infinite or missing values in the data."
        )
