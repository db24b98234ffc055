"""MetricLearning: users and items as points, a user nearest to the items the user interacted with.

It has the objective of the graph (the paper's equation 6) and the Euclidean distance in the place of shortest paths:
the softmax over −d(u, x) of each item a user interacted with, against all items. No temperature is needed, as points
that move apart by a factor have the same effect.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state, gen_batches

from prodige._validation import check_integer
from prodige.baselines.descent import check_rate
from prodige.baselines.recommending import RecommenderBaseline
from prodige.baselines.svd import SVD
from prodige.learning.training import check_finite, cosine
from prodige.progress import Bar, Record
from prodige.recommendation.interactions import Ids

# How far items are from the middle at the start. Units matter, as the softmax is over −d itself.
_RADIUS = 4.0

# Squared distances below this count as it, which keeps the gradient exact in float32 where points meet.
_NEAR = 1e-6


class MetricLearning(RecommenderBaseline):
    """Points of a Euclidean space, learned by the softmax of distances; scores are negative distances.

    Items start in the directions of their singular vectors, users in the middle of the items they interacted with. From
    random places, the same number of steps leads to far worse ones.

    Parameters
    ----------
    n_components : int
        Coordinates of a user and of an item.
    n_epochs : int
        Passes over the users.
    batch_size : int
        Users in a step.
    learning_rate : float
        Of Adam at the start; it falls to 0 along a half cosine.
    n_samples : int or None
        Items that stand for all in a step, drawn anew for each; None for all. Time grows with it.
    random_state : int, RandomState or None
        Seed.
    verbose : int
        Above 0 shows a progress bar.

    Attributes
    ----------
    user_points_ : ndarray of float32, shape [U, n_components]
    item_points_ : ndarray of float32, shape [I, n_components]
    history_ : list of prodige.progress.Record
        One for each epoch; the loss is the mean over users.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import MetricLearning
    >>> blocks = np.kron(np.eye(2), np.ones((4, 3)))  # two circles of users with 3 items each
    >>> model = MetricLearning(n_components=1, random_state=0).fit(blocks)
    >>> sorted(model.recommend(0, N=3, filter_already_liked_items=False)[0].tolist())
    [0, 1, 2]
    """

    def __init__(
        self,
        n_components: int = 4,
        n_epochs: int = 20,
        batch_size: int = 256,
        learning_rate: float = 0.3,
        n_samples: int | None = 1024,
        *,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_samples = n_samples
        self.random_state = random_state
        self.verbose = verbose

    @property
    def numbers_per_item(self) -> float:
        """The coordinates."""
        return float(self.n_components)

    def _fit(self, user_items: csr_array) -> None:
        began = time.perf_counter()
        n_items = user_items.shape[1]
        k = check_integer("n_components", self.n_components, 1, 2**15)
        n_epochs = check_integer("n_epochs", self.n_epochs, 1, 2**31)
        batch_size = check_integer("batch_size", self.batch_size, 1, 2**31)
        rate = check_rate(self.learning_rate)
        n_samples = None if self.n_samples is None else check_integer("n_samples", self.n_samples, 1, 2**31)
        random = check_random_state(self.random_state)
        active = np.flatnonzero(np.diff(user_items.indptr))  # nothing is known of the others

        users, items = (torch.nn.Parameter(torch.tensor(points)) for points in start(user_items, k, random))
        # A batch moves its users and no others, but all items.
        optimizers = [torch.optim.SparseAdam([users], lr=rate), torch.optim.Adam([items], lr=rate)]
        self.history_: list[Record] = []
        for epoch in Bar(range(n_epochs), disable=self.verbose <= 0, unit="epoch"):
            total = 0.0
            order = random.permutation(active)
            for part in gen_batches(order.size, batch_size):
                for optimizer in optimizers:
                    optimizer.param_groups[0]["lr"] = rate * cosine((epoch + part.start / order.size) / n_epochs)
                    optimizer.zero_grad()
                batch = order[part]
                points = torch.nn.functional.embedding(torch.from_numpy(batch), users, sparse=True)
                sample = None
                if n_samples is not None and n_samples < n_items:
                    sample = torch.from_numpy(random.choice(n_items, n_samples, replace=False))
                loss = softmax_loss(points, items, user_items[batch], sample)
                loss.backward()  # type: ignore[no-untyped-call]
                for optimizer in optimizers:
                    optimizer.step()
                total += float(loss.detach()) * batch.size
            check_finite("loss", total, epoch)
            last = float(optimizers[0].param_groups[0]["lr"])
            seconds = time.perf_counter() - began
            self.history_.append(Record(epoch, epoch / n_epochs, total / active.size, seconds, learning_rate=last))
        self.user_points_ = users.detach().numpy()
        self.item_points_ = items.detach().numpy()
        # Who interacted with nothing is in the middle of all others.
        self.user_points_[np.diff(user_items.indptr) == 0] = self.user_points_[active].mean(axis=0)

    def _scores(self, users: Ids) -> NDArray[np.float32]:
        points = torch.from_numpy(self.user_points_[users])
        return -distances(points, torch.from_numpy(self.item_points_)).numpy()


def start(
    user_items: csr_array, k: int, random: np.random.RandomState
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return points of users and items to begin with, shapes [U, k] and [I, k]."""
    n_items = user_items.shape[1]
    items = random.normal(size=(n_items, k))
    # The first singular vector says what all items have in common, and nothing about which are alike.
    n_factors = min(k + 1, *(size - 1 for size in user_items.shape))
    if n_factors > 1:
        factors = SVD(n_factors, random_state=random).fit(user_items).item_factors_[:, 1:]
        items[:, : n_factors - 1] = factors / np.maximum(np.linalg.norm(factors, axis=1, keepdims=True), 1e-12)
        items[:, : n_factors - 1] += random.normal(scale=0.1, size=factors.shape)  # equal items must be able to part
    items *= _RADIUS
    interacted = user_items.astype(bool).astype(np.float64)
    users = (interacted @ items) / np.maximum(np.diff(user_items.indptr), 1)[:, None]
    return users.astype(np.float32), items.astype(np.float32)


def softmax_loss(
    points: torch.Tensor, items: torch.Tensor, interacted: csr_array, sample: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the mean over users of the mean over items x they met of −log softmax(−d(u, ·))_x.

    Parameters
    ----------
    points : Tensor, shape [B, k]
        Users, each of whom interacted with an item or more.
    items : Tensor, shape [I, k]
        All items.
    met : csr_array, shape [B, I]
        Which items these users interacted with.
    sample : Tensor of int, shape [S], optional
        Items that the softmax is normalised over; all when left out.

    Examples
    --------
    >>> import torch
    >>> from scipy.sparse import csr_array
    >>> from prodige.baselines.metric_learning import softmax_loss
    >>> softmax_loss(torch.zeros(1, 1), torch.tensor([[1.0], [-1.0]]), csr_array([[1, 0]]))
    tensor(0.6931)
    """
    counts = np.diff(interacted.indptr)
    row = torch.from_numpy(np.repeat(np.arange(counts.size), counts))
    item = torch.from_numpy(interacted.indices.astype(np.int64))
    weight = torch.tensor(np.repeat(1 / counts, counts).astype(np.float32))  # aligned, for the product below
    steps = points.index_select(0, row) - items.index_select(0, item)
    attraction = steps.square().sum(dim=1).clamp(min=_NEAR).sqrt() @ weight
    others = items if sample is None else items.index_select(0, sample)
    partition: torch.Tensor = LogPartition.apply(points, others)  # type: ignore[no-untyped-call]
    loss: torch.Tensor = (attraction + partition.sum()) / counts.size
    return loss


class LogPartition(torch.autograd.Function):
    """log Σ_x exp(−d(u, x)) of every user, with its gradient.

    ∂/∂u is −Σ_x p_x (u − x) / d(u, x) with p the softmax, and so needs one table of users and items, p / d, where
    autograd would keep five.
    """

    @staticmethod
    def forward(ctx: Any, points: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Return the logarithms, shape [B]."""
        lengths = distances(points, items)
        nearest = lengths.amin(dim=1)
        share = torch.softmax(-lengths, dim=1)
        value = -nearest - share.amax(dim=1).log()
        ctx.save_for_backward(points, items, share.div_(lengths))
        return value

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients of points and items."""
        points, items, pull = ctx.saved_tensors
        pull = pull * gradient[:, None]
        at_points = pull @ items - points * pull.sum(dim=1, keepdim=True)
        at_items = pull.T @ points - items * pull.sum(dim=0)[:, None]
        return at_points, at_items


def distances(points: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
    """Return Euclidean distances, shape [B, I], by one product of matrices."""
    squares = items.square().sum(dim=1)
    product = torch.addmm(squares[None], points, items.T, alpha=-2)
    return product.add_(points.square().sum(dim=1, keepdim=True)).clamp_(min=_NEAR).sqrt_()
