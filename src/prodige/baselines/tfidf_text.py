"""TfidfClassifier: counts of words and pairs of words, and logistic regression."""

from __future__ import annotations

from typing import Any

from prodige.baselines.linear_text import LinearTextClassifier


class TfidfClassifier(LinearTextClassifier):
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

    def _vectorizer(self, **tokens: Any) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(
            ngram_range=(1, 2 if self.pairs else 1), max_features=self.max_features, sublinear_tf=True, **tokens
        )

    @property
    def n_numbers(self) -> int:
        """Numbers that predicting takes: weights and bias, and how rare each feature is."""
        return super().n_numbers + int(self._pipeline[-1].n_features_in_)
