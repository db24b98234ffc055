"""PooledConvolution: a convolution over texts and the maximum over their positions, without padding.

A filter's answer at a position is a sum of products, one for each token it sees. A batch of texts repeats its tokens
many times, so the products are made once for each distinct token and then only added up; of all positions the maximum
lets a gradient through to one per text and filter. The figures are those of :class:`torch.nn.Conv1d` with a maximum
over time, for a fraction of the work.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from prodige import _core
from prodige.threads import threads_for


class PooledConvolution(nn.Module):
    """One-dimensional convolution over token vectors, then the maximum over positions.

    Texts are padded with zero vectors to keep one position for every token; a text without tokens counts as one
    zero vector.

    Parameters
    ----------
    in_channels : int
        Length D of the token vectors.
    out_channels : int
        Number of filters F.
    kernel_size : int
        Tokens a filter sees at a time.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out, and no more than the texts are worth.
        Results do not depend on it.
    generator : torch.Generator, optional
        Where the first weights come from; torch's global generator when left out.

    Shapes:
        - vectors ``[U, D]``: float32, one for each distinct token
        - tokens ``[P]``: int32 rows of ``vectors``, the texts one after the other
        - offsets ``[B + 1]``: int64, where each text starts, and the end of the last
        - output ``[B, F]``

    Examples
    --------
    Two texts over three distinct tokens:

    >>> import numpy as np
    >>> import torch
    >>> from prodige.text.paper.convolution import PooledConvolution
    >>> convolution = PooledConvolution(4, 2, kernel_size=3)
    >>> tokens, offsets = np.array([0, 1, 2, 1, 0], np.int32), np.array([0, 3, 5])
    >>> convolution(torch.ones(3, 4), tokens, offsets).shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        n_jobs: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        # Named and started as those of Conv1d, which could take its place.
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, kernel_size))
        self.bias = nn.Parameter(torch.empty(out_channels))
        start(self, generator)
        self.n_jobs = n_jobs

    def forward(self, vectors: torch.Tensor, tokens: NDArray[np.int32], offsets: NDArray[np.int64]) -> torch.Tensor:
        """Return the highest answer of each filter on each text, shape [B, F]."""
        out_channels, in_channels, kernel_size = self.weight.shape
        by_position = self.weight.permute(1, 2, 0).reshape(in_channels, kernel_size * out_channels)
        threads = threads_for(self.n_jobs, tokens.size * kernel_size * out_channels)
        pooled: torch.Tensor = Pool.apply(  # type: ignore[no-untyped-call]
            vectors @ by_position, tokens, offsets, kernel_size, threads
        )
        return pooled + self.bias

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        out_channels, in_channels, kernel_size = self.weight.shape
        return f"{in_channels}, {out_channels}, kernel_size={kernel_size}"


def start(layer: nn.Module, generator: torch.Generator | None) -> None:
    """Draw the first weights of a layer as torch does itself, which knows no other than its global generator.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from prodige.text.paper.convolution import start
    >>> layers = [nn.utils.skip_init(nn.Linear, 3, 2) for _ in range(2)]
    >>> for layer in layers:
    ...     start(layer, torch.Generator().manual_seed(0))
    >>> torch.equal(layers[0].weight, layers[1].weight)
    True
    """
    weight, bias = layer.weight, layer.bias
    assert isinstance(weight, torch.Tensor)
    assert isinstance(bias, torch.Tensor)
    n_inputs = weight[0].numel()
    # One over the root of the inputs, in the steps that give it the last bit of torch's own.
    bound = math.sqrt(3) * (math.sqrt(2 / (1 + math.sqrt(5) ** 2)) / math.sqrt(n_inputs))
    with torch.no_grad():
        weight.uniform_(-bound, bound, generator=generator)
        bias.uniform_(-1 / math.sqrt(n_inputs), 1 / math.sqrt(n_inputs), generator=generator)


class Pool(torch.autograd.Function):
    """Sums of neighbouring tokens' products, and their maximum over positions."""

    @staticmethod
    def forward(
        ctx: Any,
        products: torch.Tensor,
        tokens: NDArray[np.int32],
        offsets: NDArray[np.int64],
        width: int,
        n_jobs: int,
    ) -> torch.Tensor:
        """Add up and take the maximum; remember where it was."""
        values, best = _core.pool(tokens, offsets, products.detach().contiguous().numpy(), width, n_jobs)
        ctx.tokens, ctx.offsets, ctx.best = tokens, offsets, best
        ctx.width, ctx.n_rows = width, products.shape[0]
        return torch.tensor(values)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Send the gradient to the tokens at the best positions."""
        products = _core.pool_backward(
            ctx.tokens, ctx.offsets, gradient.contiguous().numpy(), ctx.best, ctx.width, ctx.n_rows
        )
        # In memory of torch's own, which is aligned: the bits of the products that follow depend on it.
        return torch.tensor(products), None, None, None, None
