"""TfidfClassifier against the same pipeline by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from prodige.baselines import TfidfClassifier

TEXTS = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"]
LABELS = ["good", "good", "bad", "bad"]


def test_as_by_hand() -> None:
    model = TfidfClassifier(pairs=False).fit(TEXTS, LABELS)
    vectorizer = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True)
    by_hand = LogisticRegression(C=10, max_iter=1000).fit(vectorizer.fit_transform(TEXTS), LABELS)
    others = ["a funny film", "what a dull thing", ""]
    np.testing.assert_array_equal(model.predict(others), by_hand.predict(vectorizer.transform(others)))
    assert model.n_numbers == 9 + 1 + 9  # a weight and a rarity for each word, and an intercept
    assert model.score(TEXTS, LABELS) == 1


def test_pairs_are_features_too() -> None:
    """Only the order of the words tells these apart."""
    texts, labels = ["good not bad", "bad not good"] * 2, [1, 0] * 2
    assert TfidfClassifier().fit(texts, labels).score(texts, labels) == 1
    assert TfidfClassifier(pairs=False).fit(texts, labels).score(texts, labels) == 0.5
    assert TfidfClassifier(max_features=2).fit(texts, labels).n_numbers == 5


def test_bad_input() -> None:
    with pytest.raises(NotFittedError):
        TfidfClassifier().predict(TEXTS)
    with pytest.raises(ValueError, match="one class only"):
        TfidfClassifier().fit(TEXTS, [1] * 4)
    with pytest.raises(TypeError, match="texts"):
        TfidfClassifier().fit("one text", [1])
    assert clone(TfidfClassifier(C=3)).C == 3
