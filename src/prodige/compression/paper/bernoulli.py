r"""Bernoulli edges: present with a probability, which is learned by the score function under a penalty.

The score function :math:`(L - c)(b_e - p_e)` of the paper, with the loss of a whole search as :math:`L`, charges every
edge with the noise of all others. Here a pair's loss is charged to the edges that decide it: those at its two ends, and
those between the random items that all are joined to (:mod:`prodige.compression.paper.candidates`). Paths lead over
these items, so this leaves out little: that an edge between neighbours may lie in the middle of a path of others. What
an item loses in one drawn graph is compared with its losses in the others (leave-one-out baseline).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from prodige.learning.adam import Weights

# Probability of every edge to begin with.
START = 0.9

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class BernoulliEdges:
    """Candidate edges with their parameters; replaced as a whole, so that an interrupt never finds half of a change.

    Attributes
    ----------
    tail, head : ndarray of int32, shape [E]
    weights : Weights
        In mean distances, with the state of Adam.
    theta : ndarray of float32, shape [E]
        Logits: probabilities are sigmoid(theta).
    """

    tail: Ids
    head: Ids
    weights: Weights
    theta: Floats

    @classmethod
    def start(cls, tail: Ids, head: Ids, weight: Floats) -> BernoulliEdges:
        """Return edges at their start: most of them are present."""
        logit = np.full(weight.size, math.log(START / (1 - START)))
        return cls(tail, head, Weights.of(weight), logit.astype(np.float32))

    @property
    def size(self) -> int:
        """Number of edges."""
        return self.tail.size

    @property
    def n_likely(self) -> int:
        """Number of edges with p ≥ 0.5."""
        return int((self.theta >= 0).sum())

    @property
    def weight(self) -> Floats:
        """Weights in mean distances."""
        return self.weights.value

    @property
    def probability(self) -> Floats:
        """Probabilities of the edges."""
        return np.asarray(expit(self.theta))

    def keep(self, mask: Mask) -> BernoulliEdges:
        """Return the edges where the mask is True."""
        return BernoulliEdges(self.tail[mask], self.head[mask], self.weights.keep(mask), self.theta[mask])

    def sample(self, random: np.random.RandomState) -> Mask:
        """Return which edges a drawn graph has."""
        return np.asarray(random.random_sample(self.size) < self.probability)


def estimate_importance(
    losses: NDArray[np.float64], drawn: Sequence[Mask], tail: Ids, head: Ids, p: Floats, is_random: Mask
) -> Floats:
    """Estimate by how much the expected error would fall with the probability of each edge: -dR/dp with no penalty.

    The score function, divided by p (1 - p). That is the Fisher information of a Bernoulli variable: divided by it, the
    gradient by theta is that by p, and edges that are nearly certain learn as fast as others.

    Parameters
    ----------
    losses : ndarray, shape [K, N]
        Mean squared error of the distances of each item, in each of K graphs.
    drawn : sequence of K ndarrays of bool, shape [E]
        Which edges each graph has.
    tail, head, p : ndarray, shape [E]
    is_random : ndarray of bool, shape [N]
    """
    of_item = leave_one_out(losses) * (2 / losses.shape[1])  # a pair counts for both its items
    of_item[:, is_random] = 0
    of_all = leave_one_out(losses.mean(axis=1))
    shared = is_random[tail] & is_random[head]
    importance = np.zeros(tail.size, dtype=np.float32)
    for own, common, present in zip(of_item.astype(np.float32), of_all.astype(np.float32), drawn, strict=True):
        importance -= (own[tail] + own[head] + common * shared) * (present - p)
    return np.asarray(importance / (len(drawn) * p * (1 - p)))


def leave_one_out(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much each loss is above the mean of the others of its column, shape [K, ...]."""
    n_samples = len(losses)
    return np.asarray((losses - losses.mean(axis=0)) * (n_samples / (n_samples - 1)))


def find_penalty(theta: Floats, rates: Floats, target: float) -> float:
    """Return the penalty x ≥ 0 with Σ sigmoid(theta - rates · x) = target; 0 where the sum is no more than that.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.paper.bernoulli import find_penalty
    >>> theta, rates = np.zeros(4, dtype=np.float32), np.ones(4, dtype=np.float32)
    >>> round(find_penalty(theta, rates, target=1.0), 3)  # sigmoid(-log 3) = 1/4
    1.099
    """

    def surplus(penalty: float) -> float:
        return float(expit(theta - rates * np.float32(penalty)).sum(dtype=np.float64)) - target

    if theta.size == 0 or surplus(0.0) <= 0:
        return 0.0
    most = 0.01 / float(rates.max())
    while surplus(most) > 0:
        most *= 2
    return float(brentq(surplus, 0.0, most, xtol=1e-4 * most))
