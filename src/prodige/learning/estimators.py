r"""How a loss on distances becomes a gradient of the edge probabilities.

The graph is drawn at random: edge :math:`e` is present with probability :math:`p_e = \sigma(\theta_e)`. What is wanted
is :math:`\nabla_\theta\, \mathbb{E}[L]`, and a search only shows one drawn graph. Three ways are offered. Below,
:math:`b_e` is 1 where the edge was present, :math:`\hat G_s` are the edges the search from source :math:`s` asked
about, and :math:`g` is the derivative of the loss by the distances.

``"score"``
    The log-derivative trick of the paper. With a baseline :math:`c_s` that does not depend on the drawn graph it is
    unbiased for any loss:

    .. math:: \sum_s (L_s - c_s) \sum_{e \in \hat G_s} (b_e - p_e)

    It needs the loss of each source, so it works through :meth:`prodige.Sample.surrogate`. Every search that a loss
    has seen has such a term; :meth:`prodige.GraphEmbedding.gathering` says which losses go with which.

``"toggle"``
    What flipping an edge would do, read off the same trees as the gradient of the weights. An edge on the tree, once
    removed, moves all that lies below it by :math:`\Delta`, the detour of the best other path in; a refused edge would
    have moved it closer by the :math:`\Delta` it fell short. The loss changes by about :math:`\Delta` times its
    gradient over the subtree, at one end of the shift. Weighted so that both ends count alike in expectation, this is
    the trapezoid rule, exact for losses that are quadratic in the distances:

    .. math:: -\tfrac12 \sum_s \bigl(b_e (1 - p_e) + (1 - b_e)\, p_e\bigr)\, \Delta_{se}
              \sum_{v \text{ below } e} g_{sv}

    Any loss, no baseline, little noise. Biased where parts of the subtree would find a shorter path of their own, since
    all of it is taken to move alike.

``"path"``
    Path likelihood: the gradient of :math:`-\operatorname{mean} \log p_e` over the edges of the shortest paths in use.
    It does not look at the loss at all; together with a penalty on the number of edges it keeps those that are used.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from prodige.graph.engine import Forest

Estimator = Literal["score", "toggle", "path"]
Baseline = Literal["leave-one-out", "running-mean", "none"]


def check_estimator(name: str) -> Estimator:
    """Return ``name`` if there is such an estimator."""
    if name not in get_args(Estimator):
        raise ValueError(f"estimator must be one of {', '.join(map(repr, get_args(Estimator)))}, got {name!r}")
    return name  # type: ignore[return-value]


def presence_gradient(
    estimator: Estimator,
    forest: Forest,
    gradient: NDArray[Any],
    targets: NDArray[np.int32] | None,
    probability: NDArray[Any],
    unreachable: float,
    n_jobs: int,
) -> NDArray[Any] | None:
    """Return the gradient of theta_b that goes with the derivative of the loss by the distances.

    Parameters
    ----------
    estimator
        ``"score"`` has none here: its gradient comes through the log-probability.
    forest
        Sampled search trees, one per row of ``gradient``.
    gradient
        Derivative of the loss by each distance, shape [S, T].
    targets
        Vertices of the columns; the items if None.
    probability
        Of each edge, shape [E].
    unreachable
        Distance that stands for "no path".
    n_jobs
        Threads.
    """
    if estimator == "toggle":
        of_present, of_refused = forest.toggle(gradient, targets, unreachable, n_jobs)
        return np.asarray(((1 - probability) * of_present + probability * of_refused) / 2)
    if estimator == "path":
        uses = forest.backward(np.ones_like(gradient), targets, n_jobs)
        return np.asarray(-uses * (1 - probability) / max(float(uses.sum()), 1.0))
    return None


class LogProbability(torch.autograd.Function):
    """Log-probability of what sampled searches were told about their edges, one value per search.

    The derivative by theta_b is ``b_e - p_e`` for the edges asked about and zero elsewhere.
    """

    @staticmethod
    def forward(ctx: Any, theta_b: torch.Tensor, forest: Forest, sparse: bool, n_jobs: int) -> torch.Tensor:
        """Sum over the edges each search asked about."""
        ctx.forest, ctx.sparse, ctx.n_jobs = forest, sparse, n_jobs
        ctx.save_for_backward(theta_b)
        present, refused = (functional.logsigmoid(logits).numpy() for logits in (theta_b.detach(), -theta_b.detach()))
        return torch.from_numpy(forest.sum_answers(present, refused, n_jobs))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Add up over the searches."""
        (theta_b,) = ctx.saved_tensors
        total = ctx.forest.score(gradients[0].contiguous().numpy(), ctx.n_jobs)
        return as_gradient(total, theta_b, ctx.sparse), None, None, None


class ScoreTerm(torch.autograd.Function):
    """Zero, with the gradient of a weighted sum of log-probabilities: what the log-derivative trick adds to a loss."""

    @staticmethod
    def forward(
        ctx: Any, theta_b: torch.Tensor, factors: torch.Tensor, forest: Forest, sparse: bool, n_jobs: int
    ) -> Any:
        """Remember the factor of each search."""
        ctx.factors, ctx.forest, ctx.sparse, ctx.n_jobs = factors, forest, sparse, n_jobs
        ctx.save_for_backward(theta_b)
        return theta_b.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Add up over the searches."""
        (theta_b,) = ctx.saved_tensors
        total = ctx.forest.score((ctx.factors * gradients[0]).contiguous().numpy(), ctx.n_jobs)
        return as_gradient(total, theta_b, ctx.sparse), None, None, None, None


class Asked:
    """Which edges each search asked about, and what it was told.

    Attributes
    ----------
    edges : Tensor of int64, shape [A]
    present : Tensor of bool, shape [A]
    rows : Tensor of int64, shape [A]
        The search that asked.
    n_searches : int
    """

    def __init__(self, forest: Forest) -> None:
        offsets = forest.asked_offsets
        self.n_searches = offsets.size - 1
        self.edges = torch.from_numpy(forest.asked.astype(np.int64))
        self.present = torch.from_numpy(forest.present == 1)
        self.rows = torch.from_numpy(np.repeat(np.arange(self.n_searches), np.diff(offsets)))


def as_gradient(values: NDArray[Any], like: torch.Tensor, sparse: bool) -> torch.Tensor:
    """Return a gradient of a parameter, as a torch sparse tensor of its non-zero entries if asked to."""
    dense = torch.from_numpy(values.astype(numpy_dtype(like), copy=False))
    if not sparse:
        return dense
    index = dense.nonzero().T
    return torch.sparse_coo_tensor(index, dense[index[0]], dense.shape, is_coalesced=True, check_invariants=False)


def numpy_dtype(tensor: torch.Tensor) -> type[np.floating[Any]]:
    """Return the floating-point type the core is to work in."""
    if tensor.dtype == torch.float32:
        return np.float32
    if tensor.dtype == torch.float64:
        return np.float64
    raise TypeError(f"a GraphEmbedding works in float32 or float64, got {tensor.dtype}; call .float() or .double()")


class RunningMean:
    """Baseline of the score estimator: for each source, the mean of its losses so far, older ones counting less."""

    def __init__(self, decay: float = 0.9) -> None:
        self.decay = decay
        self._means: dict[int, float] = {}
        self._overall: float | None = None

    def __call__(self, sources: NDArray[np.int32], losses: torch.Tensor) -> torch.Tensor:
        """Return the baselines of these losses, shape [K, S], then take the losses in."""
        fallback = float(losses.mean()) if self._overall is None else self._overall
        baseline = torch.tensor([self._means.get(int(s), fallback) for s in sources], dtype=losses.dtype)
        for source, loss in zip(sources.tolist(), losses.mean(0).tolist(), strict=True):
            self._means[source] = self.decay * self._means.get(source, loss) + (1 - self.decay) * loss
        self._overall = self.decay * fallback + (1 - self.decay) * float(losses.mean())
        return baseline.expand_as(losses)


def leave_one_out(losses: torch.Tensor) -> torch.Tensor:
    """Return for each sample of a source the mean loss of its other samples, shape [K, S]."""
    n_samples = losses.shape[0]
    if n_samples < 2:
        raise ValueError(
            "the leave-one-out baseline needs n_samples of 2 or more for each source; "
            "sample more, or use baseline='running-mean'"
        )
    return (losses.sum(0, keepdim=True) - losses) / (n_samples - 1)
