"""Log-count ratios, and logistic regression that starts from them.

How much more often a feature occurs in one class than in the others says most of what it is worth; a regression over
features scaled by the logarithm of that ratio, or by its root, learns the rest. Wang and Manning, "Baselines and
Bigrams" (ACL 2012). A feature that says nothing by itself has hardly any say, which is what keeps a model of more
features than texts from learning them by heart.

Beside the usual penalty on weights there is one on what the scores of texts would vary by if features were left out at
random: the square of a weight times the share of texts that have the feature. Wager, Wang and Liang, "Dropout Training
as Adaptive Regularization" (NIPS 2013).

Two classes have one score a text, that of the second class; more have one each. The score of a text is the sum over
its features, divided by the root of their number: ``z = sum(weights) / sqrt(length) + bias``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax

from prodige.text.features import Features

# What is added to every count: one text.
_SMOOTHING = 1.0
# Texts of a class that a feature should have, for it to say something that it has none.
_MISSED = 3.0
# Steps that L-BFGS remembers, and the least relative gain of the loss that is worth another one: in a model, and in a
# trial of settings, whose losses differ by far more than that.
_MEMORY = 8
GAIN, ROUGH_GAIN = 1e-6, 1e-5
_MOST_STEPS = 60
# The most that the loss of a text can bend, by its score.
_BEND = 0.25
# What a temperature may be.
_FACTORS = (0.05, 20.0)

IsOver = Callable[[], bool]


def n_scores(n_classes: int) -> int:
    """Return how many scores tell classes apart: one is enough for two of them."""
    return 1 if n_classes == 2 else n_classes


def log_count_ratios(
    features: Features, classes: NDArray[np.int64], n_classes: int, weights: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    """Return for each feature and score the logarithm of how much more frequent it is in a class than elsewhere.

    With more than two classes, it is 0 for a class that none of a feature's texts are of, unless so many should be that
    their absence says something: most features would otherwise speak of most classes.

    Parameters
    ----------
    features : Features
    classes : ndarray of int64, shape [N]
    n_classes : int
    weights : ndarray, shape [N]
        How much each text counts.
    n_jobs : int, optional

    Returns
    -------
    ndarray, shape [n_columns, n_scores]

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.features import Features
    >>> from prodige.text.ratios import log_count_ratios
    >>> features = Features(np.array([0, 1, 2, 3]), np.array([0, 0, 1], dtype=np.int32), 2)
    >>> np.exp(log_count_ratios(features, np.array([1, 1, 0]), 2, np.ones(3), 1)).ravel().round(3)
    array([2.25 , 0.375])
    """
    member = np.zeros((classes.size, n_classes))
    member[np.arange(classes.size), classes] = weights
    counts = features.column_sums(member, n_jobs)
    rest = counts.sum(axis=1, keepdims=True) - counts
    inside, outside = counts + _SMOOTHING, np.maximum(rest, 0) + _SMOOTHING
    ratios = np.log(inside / inside.sum(axis=0)) - np.log(outside / outside.sum(axis=0))
    if n_classes == 2:
        return np.asarray(ratios[:, 1:])
    expected = counts.sum(axis=1, keepdims=True) * member.sum(axis=0) / weights.sum()
    return np.where((counts > 0) | (expected >= _MISSED), ratios, 0.0)


@dataclass(frozen=True)
class Linear:
    """A linear model: a weight for each feature and score, and a bias for each score."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    def scores(self, features: Features, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the scores of texts, shape [N, n_scores]."""
        return features.sums(self.weights, n_jobs) / roots(features)[:, None] + self.bias


def roots(features: Features) -> NDArray[np.float64]:
    """Return the root of each text's number of features, 1 where it has none."""
    return np.sqrt(np.maximum(features.lengths, 1))


def loss_and_slopes(
    scores: NDArray[np.float64], classes: NDArray[np.int64], weights: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean cross-entropy of scores and its derivative by each of them; texts count by their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.ratios import loss_and_slopes
    >>> loss, slopes = loss_and_slopes(np.zeros((2, 1)), np.array([0, 1]), np.ones(2))
    >>> round(loss, 4), slopes.ravel()
    (0.6931, array([ 0.25, -0.25]))
    """
    share = weights / weights.sum()
    if scores.shape[1] == 1:
        sign = 2.0 * classes - 1
        margin = sign * scores[:, 0]
        return float(share @ np.logaddexp(0, -margin)), (-share * sign * expit(-margin))[:, None]
    rows = np.arange(classes.size)
    logarithms = log_softmax(scores, axis=1)
    slopes = np.exp(logarithms)
    slopes[rows, classes] -= 1
    return -float(share @ logarithms[rows, classes]), slopes * share[:, None]


def signed_root(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the roots of ratios, with their signs.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.ratios import signed_root
    >>> signed_root(np.array([-4.0, 0.0, 9.0]))
    array([-2.,  0.,  3.])
    """
    return np.asarray(np.sign(ratios) * np.sqrt(np.abs(ratios)))


class Penalty(NamedTuple):
    """What a regression adds to its mean loss for each weight ``w = scale u``: ``(ridge u² + dropout share w²) / 2``.

    Attributes
    ----------
    ridge : float
    dropout : float
        The share is that of the texts which have the feature.
    """

    ridge: float
    dropout: float = 0.0


def regress(
    features: Features,
    classes: NDArray[np.int64],
    weights: NDArray[np.float64],
    scale: NDArray[np.float64],
    penalty: Penalty,
    start: Linear,
    n_jobs: int | None,
    is_over: IsOver,
    gain: float = GAIN,
) -> Linear:
    """Return logistic regression over features times ``scale``, by L-BFGS.

    Parameters
    ----------
    features, classes, weights
        Texts, the class of each, and how much it counts.
    scale : ndarray, shape [n_columns, n_scores]
        Weights are these times what is penalised; 0 keeps a weight at 0.
    penalty : Penalty
    start : Linear
    n_jobs : int, optional
    is_over : callable
        Asked after each step; True ends the descent where it is.
    gain : float
        The least relative gain of the loss that is worth another step.
    """
    # Only weights that are not kept at 0 are descended over; with many classes these are few.
    where, divisors = np.flatnonzero(scale), roots(features)[:, None]
    factors, table = scale.ravel()[where], np.zeros(scale.shape)
    shares = np.repeat(features.frequencies / classes.size, scale.shape[1])[where]
    strength = penalty.ridge + penalty.dropout * shares * factors**2
    # Each step is measured by how much the loss can bend: rare features and frequent ones then need as many of them.
    spread = features.column_sums((weights / weights.sum())[:, None] / divisors**2, n_jobs)
    stretch = np.sqrt(strength + _BEND * np.repeat(spread, scale.shape[1])[where] * factors**2)
    factors, strength = factors / stretch, strength / stretch**2

    def objective(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        free, bias = point[: where.size], point[where.size :]
        table.ravel()[where] = factors * free
        loss, slopes = loss_and_slopes(features.sums(table, n_jobs) / divisors + bias, classes, weights)
        pull = strength * free
        gradient = factors * features.column_sums(slopes / divisors, n_jobs).ravel()[where] + pull
        loss += 0.5 * float(pull @ free)
        return loss, np.concatenate([gradient, slopes.sum(axis=0)])

    def stop(_: NDArray[np.float64]) -> None:
        if is_over():
            raise StopIteration

    found = minimize(
        objective,
        np.concatenate([start.weights.ravel()[where] / factors, start.bias]),
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxiter": _MOST_STEPS, "maxcor": _MEMORY, "ftol": gain, "gtol": 0.0},
    )
    table.ravel()[where] = factors * found.x[: where.size]
    return Linear(table, found.x[where.size :])


def find_temperature(scores: NDArray[np.float64], classes: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """Return the factor that makes scores of texts set aside most probable.

    However well they are told apart, one more text is taken to be of any class: a few texts that are all right are no
    reason to be certain.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.ratios import find_temperature
    >>> scores, classes = np.full((400, 1), 2.0), np.repeat([1, 1, 1, 0], 100)
    >>> round(2 * find_temperature(scores, classes, np.ones(400)), 1)  # log(3)
    1.1
    """
    logits = np.concatenate([np.zeros_like(scores), scores], axis=1) if scores.shape[1] == 1 else scores
    share = weights / weights.sum() * classes.size / (classes.size + 1)
    doubt = 1 / (classes.size + 1)

    def loss(logarithm: float) -> float:
        found = log_softmax(np.exp(logarithm) * logits, axis=1)
        return -float(share @ found[np.arange(classes.size), classes]) - doubt * float(found.mean())

    return float(np.exp(minimize_scalar(loss, bounds=np.log(_FACTORS), method="bounded").x))


def find_shift(
    scores: NDArray[np.float64], classes: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what to add to scores to make them most probable, shape [n_scores].

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.ratios import find_shift
    >>> find_shift(np.zeros((4, 1)), np.array([1, 1, 1, 0]), np.ones(4)).round(3)  # log(3)
    array([1.099])
    """

    def objective(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        loss, slopes = loss_and_slopes(scores + point, classes, weights)
        return loss, slopes.sum(axis=0)

    return np.asarray(minimize(objective, np.zeros(scores.shape[1]), jac=True, method="L-BFGS-B").x)
