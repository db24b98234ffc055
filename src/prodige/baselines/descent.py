"""The loop that moves vectors: whole rows of the distance matrix in small batches of sources.

One batch compares its sources with all items, so a step moves everything, and a thousand steps suffice for ten thousand
items. The true distances of a batch come from the data and are forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from prodige._validation import check_integer
from prodige.learning.training import check_finite, cosine, draw_batches
from prodige.metric.space import Space
from prodige.progress import Bar, Record


def descend(
    space: Space,
    distances: Callable[[torch.Tensor], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    unit: float,
    n_steps: int,
    batch_size: int,
    random: np.random.RandomState,
    began: float,
    verbose: int = 0,
) -> list[Record]:
    """Fit modelled distances to those of the space by the mean squared error.

    Parameters
    ----------
    space : Space
        The items.
    distances : callable
        ``distances(sources)`` returns the model's distances in multiples of ``unit``, shape [S, N].
    optimizer : torch.optim.Optimizer
        Its learning rates fall to 0 along a half cosine.
    unit : float
        The mean distance.
    n_steps, batch_size : int
        Steps, and sources in each.
    random : RandomState
        Draws the batches.
    began : float
        When the clock started, in seconds of :func:`time.perf_counter`.
    verbose : int
        Above 0 shows a progress bar.

    Returns
    -------
    list of Record
        One for each step; the loss is that of the batch, in squared units of the data.
    """
    n_steps = check_integer("n_steps", n_steps, 1, 2**31)
    batch_size = check_integer("batch_size", batch_size, 1, 2**31)
    rates = [group["lr"] for group in optimizer.param_groups]
    batches = draw_batches(np.arange(space.n_items), batch_size, random)
    history = []
    with Bar(total=n_steps, disable=verbose <= 0, unit="step") as bar:
        for step in range(n_steps):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * cosine(step / n_steps)
            sources = next(batches)
            predicted = distances(sources)
            target = torch.from_numpy(space.distances(sources.numpy())).to(predicted.dtype).div_(unit)
            optimizer.zero_grad()
            loss = (predicted - target).square().mean()
            value = float(loss.detach()) * unit**2
            check_finite("loss", value, step)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            rate = float(optimizer.param_groups[0]["lr"])
            history.append(Record(step, step / n_steps, value, time.perf_counter() - began, learning_rate=rate))
            bar.update()
            bar.set_postfix(loss=f"{value:.5g}", refresh=False)
    return history


def squared_distances(points: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor | None = None) -> torch.Tensor:
    """Return squared Euclidean distances, 0 or more, by one product of matrices; to all points without ``targets``.

    Examples
    --------
    >>> import torch
    >>> from prodige.baselines.descent import squared_distances
    >>> squared_distances(torch.tensor([[0.0], [1.0], [3.0]]), torch.tensor([1]))
    tensor([[1., 0., 4.]])
    """
    squares = points.square().sum(dim=1)
    others = slice(None) if targets is None else targets
    product = torch.addmm(squares[others][None], points[sources], points[others].T, alpha=-2)
    return (product + squares[sources][:, None]).clamp(min=0)


def check_rate(value: float) -> float:
    """Return a learning rate after making sure it is one."""
    if not 0 < value < np.inf:
        raise ValueError(f"learning_rate must be a finite number above 0, got {value}")
    return float(value)
