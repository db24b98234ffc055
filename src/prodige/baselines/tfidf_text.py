"""TfidfClassifier: counts of words and pairs of words, and logistic regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from prodige.text.labels import check_labels
from prodige.text.vocabulary import Vocabulary, check_texts
from prodige.threads import one_thread


class TfidfClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier over tf-idf weights: what small text models should be honest about.

    Parameters
    ----------
    max_features : int
        Words, and pairs of neighbours, to keep.
    pairs : bool
        Whether pairs of neighbouring words count as well.
    C : float
        Inverse strength of regularisation.

    Examples
    --------
    >>> from prodige.baselines import TfidfClassifier
    >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"]
    >>> TfidfClassifier().fit(texts, [1, 1, 0, 0]).predict(["a funny film", "what a dull thing"])
    array([1, 0])
    """

    def __init__(self, max_features: int = 32_000, pairs: bool = True, C: float = 10.0) -> None:
        self.max_features = max_features
        self.pairs = pairs
        self.C = C

    def fit(self, texts: Any, y: ArrayLike) -> Self:
        """Learn from texts and their classes."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        documents = check_texts(texts)
        labels, classes = check_labels(y, len(documents))
        pipeline = make_pipeline(
            TfidfVectorizer(
                tokenizer=Vocabulary(["-"]).tokenize,
                token_pattern=None,
                lowercase=False,
                ngram_range=(1, 2 if self.pairs else 1),
                max_features=self.max_features,
                sublinear_tf=True,
            ),
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
        """Numbers that predicting takes: weights, and how rare each feature is."""
        check_is_fitted(self, "classes_")
        regression = self._pipeline[-1]
        return int(regression.coef_.size + regression.intercept_.size + regression.n_features_in_)
