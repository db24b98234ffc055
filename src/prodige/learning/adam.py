"""Weights that stay positive, moved by Adam: what is learned by gradient descent without autograd.

A weight is softplus(theta), so that no step makes it negative, and the search gives the derivative of a loss by the
weights themselves. With edges, their weights and the state of Adam come and go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from prodige.learning.softplus import inverse_softplus

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Weights:
    """Weights of edges; replaced as a whole, so that an interrupt never finds half of a change.

    Attributes
    ----------
    theta : ndarray of float32, shape [E]
        Weights are softplus(theta).
    mean, square : ndarray of float32, shape [E]
        Running means of the gradient and of its square.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.learning.adam import Weights
    >>> weights = Weights.of(np.array([0.5, 2.0], dtype=np.float32))
    >>> slope = np.array([1.0, -3.0], dtype=np.float32)  # the first is too long, the second too short
    >>> weights.descend(slope, rate=0.1, n_steps=1).value.round(2)
    array([0.46, 2.09], dtype=float32)
    """

    theta: Floats
    mean: Floats
    square: Floats

    @classmethod
    def of(cls, weight: Floats) -> Weights:
        """Return weights at their start; all above 0."""
        theta = inverse_softplus(weight)
        return cls(theta, np.zeros_like(theta), np.zeros_like(theta))

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.theta.size

    @property
    def value(self) -> Floats:
        """The weights."""
        return np.logaddexp(np.float32(0), self.theta)

    def keep(self, mask: NDArray[np.bool_]) -> Weights:
        """Return the weights where the mask is True."""
        return Weights(self.theta[mask], self.mean[mask], self.square[mask])

    def descend(self, slope: Floats, rate: float, n_steps: int, least: float = 1e-8) -> Weights:
        """Take a step against the derivative of the loss by the weights.

        Parameters
        ----------
        slope : ndarray of float32, shape [E]
            Derivative of the loss by each weight.
        rate : float
            About how far a theta moves.
        n_steps : int
            Steps taken, this one included: the running means start at 0, and this makes up for it.
        least : float
            Added to the root of the mean square; gradients far below it move nothing.
        """
        gradient = slope * expit(self.theta)  # through softplus
        mean = 0.9 * self.mean + 0.1 * gradient
        square = 0.99 * self.square + 0.01 * gradient**2
        unbiased = math.sqrt(1 - 0.99**n_steps) / (1 - 0.9**n_steps)
        theta = self.theta - np.float32(rate * unbiased) * mean / (np.sqrt(square) + np.float32(least))
        return Weights(theta, mean, square)
