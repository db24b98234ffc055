"""HashedClassifier: words and pairs of words in hashed buckets, and logistic regression.

fastText (Joulin, Grave, Bojanowski, Mikolov: Bag of Tricks for Efficient Text Classification, EACL 2017) averages a
vector for each word and each bucket of pairs, and classifies the mean by a linear layer. With two classes all that
comes out of both layers is one number for each word or bucket. That is what is learned here, by scikit-learn: no
vocabulary is kept, and what shares a bucket shares a weight.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from prodige._validation import check_integer
from prodige.text.labels import check_labels
from prodige.text.vocabulary import Vocabulary, check_texts
from prodige.threads import one_thread


class HashedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier over hashed words and pairs of words: a stand-in for fastText, which it is not.

    Parameters
    ----------
    n_buckets : int
        What words and pairs are hashed to; one weight each.
    C : float
        Inverse strength of regularisation.

    Examples
    --------
    >>> from prodige.baselines import HashedClassifier
    >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"]
    >>> HashedClassifier().fit(texts, [1, 1, 0, 0]).predict(["a funny film", "what a dull thing"])
    array([1, 0])
    """

    def __init__(self, n_buckets: int = 2**18, C: float = 10.0) -> None:
        self.n_buckets = n_buckets
        self.C = C

    def fit(self, texts: Any, y: ArrayLike) -> Self:
        """Learn from texts and their classes."""
        from sklearn.feature_extraction.text import HashingVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        check_integer("n_buckets", self.n_buckets, 2, 2**30)
        documents = check_texts(texts)
        labels, classes = check_labels(y, len(documents))
        pipeline = make_pipeline(
            HashingVectorizer(
                tokenizer=Vocabulary(["-"]).tokenize,
                token_pattern=None,
                lowercase=False,
                ngram_range=(1, 2),
                n_features=self.n_buckets,
                alternate_sign=False,
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
        """Numbers that predicting takes: weights and bias."""
        check_is_fitted(self, "classes_")
        regression = self._pipeline[-1]
        return int(regression.coef_.size + regression.intercept_.size)
