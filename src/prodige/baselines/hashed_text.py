"""HashedClassifier: words and pairs of words in hashed buckets, and logistic regression.

fastText (Joulin, Grave, Bojanowski, Mikolov: Bag of Tricks for Efficient Text Classification, EACL 2017) averages a
vector for each word and each bucket of pairs, and classifies the mean by a linear layer. With two classes all that
comes out of both layers is one number for each word or bucket. That is what is learned here, by scikit-learn: no
vocabulary is kept, and what shares a bucket shares a weight.
"""

from __future__ import annotations

from typing import Any

from prodige._validation import check_integer
from prodige.baselines.linear_text import LinearTextClassifier


class HashedClassifier(LinearTextClassifier):
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

    def _vectorizer(self, **tokens: Any) -> Any:
        from sklearn.feature_extraction.text import HashingVectorizer

        n_buckets = check_integer("n_buckets", self.n_buckets, 2, 2**30)
        return HashingVectorizer(ngram_range=(1, 2), n_features=n_buckets, alternate_sign=False, **tokens)
