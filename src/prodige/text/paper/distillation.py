"""What a trained network over vectors can pass on to one over a graph.

All that a network sees of a token is its products with the filters. Most vectors differ in ways no filter looks at, so
the products are what a graph should preserve: few directions carry most of them. And once the graph is there, the
filters that answer most like the old ones follow from least squares: the new network starts where the old one ended.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from prodige.text.paper.network import Corpus, TextNetwork
from prodige.text.vocabulary import PADDING

# A token counts by this power of how often it occurs: all of the frequent ones matter, but not in proportion.
_POWER = 0.75
# Directions of the products that are kept.
_MOST_DIRECTIONS = 30
# How strongly least squares keeps the new filters small, relative to the mean square of the coordinates.
_RIDGE = 1e-3


def token_weights(corpus: Corpus, n_tokens: int) -> NDArray[np.float64]:
    """Return how much each token of a vocabulary counts, shape [V]: padding not at all.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.paper.distillation import token_weights
    >>> from prodige.text.paper.network import Corpus
    >>> token_weights(Corpus(np.array([2, 2, 0, 3]), np.array([0, 4])), 5).round(2)
    array([0.  , 1.  , 1.68, 1.  , 1.  ])
    """
    weights: NDArray[np.float64] = np.maximum(np.bincount(corpus.tokens, minlength=n_tokens), 1.0) ** _POWER
    weights[PADDING] = 0
    return weights


def products(network: TextNetwork) -> NDArray[np.float64]:
    """Return the products of all tokens with the filters, shape [V, kernel_size * F]."""
    with torch.no_grad():
        network.eval()
        vectors = network.embedding(torch.arange(int(network.embedding.num_embeddings)))  # type: ignore[arg-type]
        filters = network.convolution.weight.permute(1, 2, 0).flatten(start_dim=1)
        return np.asarray((vectors @ filters).double().numpy())


def task_vectors(network: TextNetwork, weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the main directions of the products, shape [V, at most 30], with a mean square of 1.

    Parameters
    ----------
    network : TextNetwork
        A trained one.
    weights : ndarray, shape [V]
        How much each token counts.
    """
    values = products(network)
    values -= np.average(values, axis=0, weights=weights)
    covariance = (values * (weights / weights.sum())[:, None]).T @ values
    _, directions = np.linalg.eigh(covariance)
    vectors = values @ directions[:, ::-1][:, :_MOST_DIRECTIONS]
    scale = np.sqrt(np.mean(vectors**2))
    return np.asarray(vectors / (scale if scale > 0 else 1.0), dtype=np.float32)


def take_over(student: TextNetwork, teacher: TextNetwork, weights: NDArray[np.float64]) -> float:
    """Set the student's filters and dense layer so that it answers as much like the teacher as its embedding allows.

    Returns
    -------
    float
        Share of the variance of the teacher's products that is met.
    """
    target = products(teacher)
    with torch.no_grad():
        coordinates = student.embedding(torch.arange(len(target))).double().numpy()
    share = weights / weights.sum()
    mean_x, mean_y = share @ coordinates, share @ target
    x, y = coordinates - mean_x, target - mean_y
    square = (x * share[:, None]).T @ x
    square[np.diag_indices_from(square)] += max(_RIDGE * np.trace(square) / len(square), 1e-12)
    solution = np.linalg.solve(square, (x * share[:, None]).T @ y)
    left, total = share @ ((x @ solution - y) ** 2).sum(axis=1), share @ (y**2).sum(axis=1)

    n_filters, n_coordinates, width = student.convolution.weight.shape
    constant = (mean_y - mean_x @ solution).reshape(width, n_filters).sum(axis=0)
    filters = solution.reshape(n_coordinates, width, n_filters).transpose(2, 0, 1)
    with torch.no_grad():
        student.convolution.weight.copy_(torch.from_numpy(filters))
        student.convolution.bias.copy_(teacher.convolution.bias + torch.from_numpy(constant))
        student.dense.load_state_dict(teacher.dense.state_dict())
    return 1.0 - float(left / total) if total > 0 else 1.0
