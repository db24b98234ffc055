"""HashedClassifier against the same regression over words and pairs counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from prodige.baselines import HashedClassifier

TEXTS = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"]
LABELS = ["good", "good", "bad", "bad"]


def test_as_by_hand() -> None:
    """With buckets enough none is shared, and the order of features does not matter."""
    model = HashedClassifier().fit(TEXTS, LABELS)
    counts = CountVectorizer(token_pattern=r"\w+", ngram_range=(1, 2))
    by_hand = LogisticRegression(C=10, max_iter=1000).fit(normalize(counts.fit_transform(TEXTS)), LABELS)
    others = ["a funny film", "what a dull thing", "", "long long warm"]
    np.testing.assert_array_equal(model.predict(others), by_hand.predict(normalize(counts.transform(others))))
    assert model.n_numbers == 2**18 + 1
    assert model.score(TEXTS, LABELS) == 1


def test_pairs_are_features_too() -> None:
    """Only the order of the words tells these apart; in two buckets it is lost."""
    texts, labels = ["good not bad", "bad not good"] * 2, [1, 0] * 2
    assert HashedClassifier().fit(texts, labels).score(texts, labels) == 1
    assert HashedClassifier(n_buckets=2).fit(texts, labels).n_numbers == 3


def test_bad_input() -> None:
    with pytest.raises(NotFittedError):
        HashedClassifier().predict(TEXTS)
    with pytest.raises(ValueError, match="one class only"):
        HashedClassifier().fit(TEXTS, [1] * 4)
    with pytest.raises(TypeError, match="texts"):
        HashedClassifier().fit("one text", [1])
    with pytest.raises(ValueError, match="n_buckets must be between 2"):
        HashedClassifier(n_buckets=1).fit(TEXTS, LABELS)
    assert clone(HashedClassifier(C=3)).C == 3
