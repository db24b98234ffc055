"""Linear classifiers of texts: words and pairs of them, counted in one way or another, and logistic regression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from prodige.text.labels import check_labels
from prodige.text.vocabulary import Vocabulary, check_texts
from prodige.threads import one_thread


class LinearTextClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What such classifiers have in common; ``C`` is the inverse strength of regularisation."""

    C: float

    @abstractmethod
    def _vectorizer(self, **tokens: Any) -> Any:
        """Return what counts, given how texts are cut into words."""

    def fit(self, texts: Any, y: ArrayLike) -> Self:
        """Learn from texts and their classes."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        documents = check_texts(texts)
        labels, classes = check_labels(y, len(documents))
        pipeline = make_pipeline(
            self._vectorizer(tokenizer=Vocabulary(["-"]).tokenize, token_pattern=None, lowercase=False),
            LogisticRegression(C=self.C, max_iter=1000),
        )
        with one_thread():
            pipeline.fit(documents, classes)
        self.__dict__.update(classes_=labels, _pipeline=pipeline)
        return self

    def predict(self, texts: Any) -> NDArray[Any]:
        """Return the most probable class of each text."""
        check_is_fitted(self, "classes_")
        return np.asarray(self.classes_[self._pipeline.predict(check_texts(texts))])

    @property
    def n_numbers(self) -> int:
        """Numbers that predicting takes: weights and bias."""
        check_is_fitted(self, "classes_")
        regression = self._pipeline[-1]
        return int(regression.coef_.size + regression.intercept_.size)
