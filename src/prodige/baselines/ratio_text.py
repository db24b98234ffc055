"""RatioClassifier: logistic regression over all words, pairs and triples, scaled by log-count ratios."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from prodige.text.labels import check_labels
from prodige.text.learning import find_candidates
from prodige.text.ngrams import Candidates, Orders
from prodige.text.ratios import Linear, Penalty, find_temperature, log_count_ratios, loss_and_slopes, regress
from prodige.text.selection import folds
from prodige.text.tokens import alphabet, prepare
from prodige.text.vertices import Vertices
from prodige.threads import one_thread

_PENALTIES = tuple(Penalty(ridge) for ridge in (3e-5, 1e-5, 3e-6, 1e-6))


class RatioClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What :class:`prodige.GraphTextClassifier` goes back to, without any limit on its size: a weight for each feature.

    Wang, Manning: Baselines and Bigrams (ACL 2012). How much weights are penalised is decided on texts set aside.

    Parameters
    ----------
    longest : int
        Most words of a sequence, 1 to 3.
    beginnings : bool
        Whether beginnings of words count as well.
    n_jobs : int, optional
        Threads.

    Examples
    --------
    >>> from prodige.baselines import RatioClassifier
    >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 5
    >>> RatioClassifier().fit(texts, [1, 1, 0, 0] * 5).predict(["a funny film", "what a dull thing"])
    array([1, 0])
    """

    def __init__(self, longest: int = 3, beginnings: bool = False, n_jobs: int | None = None) -> None:
        self.longest = longest
        self.beginnings = beginnings
        self.n_jobs = n_jobs

    def fit(self, texts: Any, y: ArrayLike) -> Self:
        """Learn from texts and their classes."""
        documents = prepare(texts)
        labels, classes = check_labels(y, len(documents))
        with one_thread():
            candidates = find_candidates(documents, labels.size)
            columns = candidates.columns(Orders(self.longest, self.beginnings, skips=False))
            penalty = self._choose(candidates, columns, classes, labels.size)
            linear = self._regress(candidates, columns, classes, labels.size, np.arange(classes.size), [penalty])[0]
        vertices, order = Vertices.choose(candidates, columns)
        weights = linear.weights[np.searchsorted(columns, order)]
        self.__dict__.update(
            classes_=labels, penalty_=penalty, _vertices=vertices, _linear=Linear(weights, linear.bias)
        )
        return self

    def _choose(
        self, candidates: Candidates, columns: NDArray[np.int64], classes: NDArray[np.int64], n_classes: int
    ) -> Penalty:
        """Return the penalty with the least loss on texts set aside."""
        first = next(folds(classes), None)
        if first is None:
            return _PENALTIES[0]
        learned, held_out = first
        features, weights = candidates.features.keep(columns).take(held_out), np.ones(held_out.size)
        losses = []
        for linear in self._regress(candidates, columns, classes, n_classes, learned, _PENALTIES):
            scores = linear.scores(features, self.n_jobs)
            factor = find_temperature(scores, classes[held_out], weights)
            losses.append(loss_and_slopes(factor * scores, classes[held_out], weights)[0])
        return _PENALTIES[int(np.argmin(losses))]

    def _regress(
        self,
        candidates: Candidates,
        columns: NDArray[np.int64],
        classes: NDArray[np.int64],
        n_classes: int,
        texts: NDArray[np.int64],
        penalties: Any,
    ) -> list[Linear]:
        features, weights = candidates.features.keep(columns).take(texts), np.ones(texts.size)
        scale = log_count_ratios(features, classes[texts], n_classes, weights, self.n_jobs)
        found = [Linear(np.zeros(scale.shape), np.zeros(scale.shape[1]))]
        for penalty in penalties:
            found.append(
                regress(features, classes[texts], weights, scale, penalty, found[-1], self.n_jobs, lambda: False)
            )
        return found[1:]

    def predict(self, texts: Any) -> NDArray[Any]:
        """Return the most probable class of each text."""
        check_is_fitted(self, "classes_")
        lookup = self._vertices.lookup()
        sums, counts = lookup.sum(prepare(texts), alphabet(), np.ascontiguousarray(self._linear.weights), 1)
        scores = sums / np.sqrt(np.maximum(counts, 1))[:, None] + self._linear.bias
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.int64)
        return np.asarray(self.classes_[best])

    @property
    def n_numbers(self) -> int:
        """Numbers that predicting takes: weights and bias."""
        check_is_fitted(self, "classes_")
        return int(self._linear.weights.size + self._linear.bias.size)
