"""Word vectors learned from texts: words that keep the same company get vectors that point the same way.

All there is to learn from is how often two words stand near each other. :class:`PPMI` factorises a table of what is
surprising about these counts, which takes seconds; :class:`GloVe` fits their logarithms pair by pair, which takes a
minute or two and is what the paper starts from.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from prodige import _core
from prodige._validation import MAX_INT32, check_integer
from prodige.progress import Bar
from prodige.text.vocabulary import SPECIAL, Vocabulary, check_texts
from prodige.text.wordvectors import WordVectors, fill_special
from prodige.threads import one_thread, threads_for

if TYPE_CHECKING:
    from typing import Self

# Beyond, words have nothing to do with each other; and the core keeps a weight for each distance.
_MOST_WINDOW = 10_000

# Products with the table of a randomised decomposition: more of them bring no better vectors.
_POWER_ITERATIONS = 4
_OVERSAMPLES = 20


class NoPairsError(ValueError):
    """No two words of the texts stand near each other: there is nothing to learn vectors from.

    Examples
    --------
    >>> from prodige.text.words import PPMI, NoPairsError
    >>> try:
    ...     PPMI().fit(["one", "two"])
    ... except NoPairsError as error:
    ...     print(error)
    texts have no two words within window=5 of each other; give longer texts or another vocabulary
    """


class WordModel(BaseEstimator, ABC):  # type: ignore[misc]
    """What all word vectors have in common; a new kind says how counts become vectors.

    Attributes
    ----------
    vocabulary_ : Vocabulary
    vectors_ : ndarray of float32, shape [V, n_components]
        Row i belongs to the token with id i. Padding (0) has zeros, the unknown (1) has the mean of the rarest tenth of
        the words: what is not in the vocabulary is rare as well.
    """

    n_components: int
    max_vocabulary: int
    window: int
    n_jobs: int | None
    verbose: int

    # Whether a pair counts the less the farther apart it is.
    _harmonic: bool

    def fit(self, texts: Any, y: Any = None, vocabulary: Vocabulary | None = None) -> Self:
        """Learn from texts.

        Parameters
        ----------
        texts : iterable of str
            Texts; no pair of words goes beyond one of them.
        y : ignored
        vocabulary : Vocabulary, optional
            The words; those of the texts when left out. Counts are taken from the texts either way.

        Raises
        ------
        TypeError
            If something among the texts is not text.
        NoPairsError
            If no two words stand near each other.
        """
        documents = check_texts(texts)
        if vocabulary is None:
            vocabulary = Vocabulary.build(documents, self.max_vocabulary)
        elif not isinstance(vocabulary, Vocabulary):
            raise TypeError(f"vocabulary must be a Vocabulary, got {vocabulary!r}; make one with Vocabulary.build")
        return self.fit_ids(*vocabulary.encode(documents), vocabulary)

    def fit_ids(self, ids: NDArray[np.int32], offsets: NDArray[np.int64], vocabulary: Vocabulary) -> Self:
        """Learn from texts that are encoded already, as :meth:`Vocabulary.encode` returns them."""
        check_integer("n_components", self.n_components, 1, MAX_INT32)
        counts = count_cooccurrences(ids, offsets, len(vocabulary), self.window, self._harmonic, self.n_jobs)
        if not counts.nnz:
            raise NoPairsError(
                f"texts have no two words within window={self.window} of each other; "
                "give longer texts or another vocabulary"
            )
        fitted = self._fit(counts)
        fill_special(fitted["vectors_"])
        self.__dict__.update(fitted, vocabulary_=vocabulary)  # all at once, when nothing can fail any more
        return self

    @abstractmethod
    def _fit(self, counts: csr_array) -> dict[str, Any]:
        """Check the parameters and return what is learned, a vector for each token above all.

        Counts are symmetric, some are above 0.
        """

    def most_similar(self, token: str, N: int = 10) -> list[tuple[str, float]]:
        """Return the tokens most like a token with their cosines; see :meth:`WordVectors.most_similar`."""
        return self._vectors().most_similar(token, N)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vectors in the standard text format; see :meth:`WordVectors.save`."""
        self._vectors().save(path)

    def _vectors(self) -> WordVectors:
        check_is_fitted(self)
        return WordVectors(self.vocabulary_, self.vectors_)


class GloVe(WordModel):
    """Global vectors: products of vectors are the logarithms of how often words stand near each other.

    Pennington, Socher, Manning, "GloVe: Global Vectors for Word Representation" (EMNLP 2014): weighted least squares
    by AdaGrad, one pair of words after the other.

    Parameters
    ----------
    n_components : int
        Numbers of a vector.
    max_vocabulary : int
        Words to keep, the most frequent.
    window : int
        How many words apart a pair may be; it counts 1 / distance.
    x_max, alpha : float
        A pair that counts x has the weight min(1, (x / x_max) ** alpha) in the loss. The paper's x_max of 100 is for
        billions of words; for some millions, 10 is better.
    n_epochs : int
        How often each pair is looked at.
    learning_rate : float
        Of AdaGrad.
    random_state : int, RandomState or None
        Seed of the first vectors and of the order of the pairs: it gives the same vectors on the same machine with any
        number of threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out, and no more than the pairs are worth.
    verbose : int
        Above 0 shows a progress bar.

    Attributes
    ----------
    vocabulary_ : Vocabulary
    vectors_ : ndarray of float32, shape [V, n_components]
        Vectors of words and of contexts added up, as in the paper. Rows 0 and 1 are padding (zeros) and unknown (the
        mean of the rarest tenth of the words).
    loss_curve_ : list of float
        Mean weighted squared error of the pairs in each epoch.

    Examples
    --------
    >>> from prodige.text.words import GloVe
    >>> texts = ["hot tea in a cup", "hot coffee in a cup", "a dog in the rain", "a cat in the rain"] * 5
    >>> model = GloVe(n_components=4, n_epochs=50, random_state=0).fit(texts)
    >>> model.vectors_.shape
    (12, 4)
    >>> model.loss_curve_[-1] < 0.1 * model.loss_curve_[0]
    True
    """

    _harmonic = True

    def __init__(
        self,
        n_components: int = 100,
        max_vocabulary: int = 32_000,
        window: int = 10,
        x_max: float = 10.0,
        alpha: float = 0.75,
        n_epochs: int = 25,
        learning_rate: float = 0.05,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.max_vocabulary = max_vocabulary
        self.window = window
        self.x_max = x_max
        self.alpha = alpha
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, counts: csr_array) -> dict[str, Any]:
        for name in ("x_max", "alpha", "learning_rate"):
            check_range(name, getattr(self, name), 0, np.inf)
        n_epochs = check_integer("n_epochs", self.n_epochs, 1, MAX_INT32)
        # In a round, threads share out the pairs of one block in n_blocks, which are 16 or more.
        threads = threads_for(self.n_jobs, counts.nnz // 16 * self.n_components)
        seed = int(check_random_state(self.random_state).randint(MAX_INT32))
        offsets = counts.indptr.astype(np.int64)
        glove = _core.Glove(
            offsets, counts.indices, counts.data, self.n_components, self.x_max, self.alpha, seed, threads
        )
        losses: list[float] = []
        with Bar(total=n_epochs, disable=self.verbose <= 0, unit="epoch") as bar:
            for epoch in range(n_epochs):
                losses.append(glove.run_epoch(self.learning_rate, threads))
                if not np.isfinite(losses[-1]):
                    raise ValueError(
                        f"learning_rate = {self.learning_rate} is too high: the loss was {losses[-1]} "
                        f"in epoch {epoch}; 0.05 is usual"
                    )
                bar.set_postfix(loss=f"{losses[-1]:.5g}", refresh=False)
                bar.update()
        return {"vectors_": glove.vectors(), "loss_curve_": losses}


class PPMI(WordModel):
    """Positive pointwise mutual information, decomposed: the quick way to good vectors.

    How much more often two words stand near each other than by chance, log(p(w, c) / (p(w) p(c))), is kept where it is
    above 0; a vector is the word's row of the best approximation of that table. Levy, Goldberg, Dagan, "Improving
    Distributional Similarity with Lessons Learned from Word Embeddings" (TACL 2015) name what matters: smoothed
    contexts and singular values to a power below 1.

    Parameters
    ----------
    n_components : int
        Numbers of a vector; those beyond the number of words are 0.
    max_vocabulary : int
        Words to keep, the most frequent.
    window : int
        How many words apart a pair may be; all pairs count alike.
    smoothing : float
        Contexts count with this power of their frequency, which keeps rare ones from looking surprising; 1 is as they
        are.
    shift : float
        Pairs must be so many times as frequent as by chance.
    weight : float
        Exponent of the singular values: vectors are U S^weight. 0 makes all components count alike.
    random_state : int, RandomState or None
        Seed of the decomposition; it hardly matters. It gives the same vectors on the same machine with any number of
        threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out. They count; the decomposition has one.
    verbose : int
        Above 0 shows a progress bar.

    Attributes
    ----------
    vocabulary_ : Vocabulary
    vectors_ : ndarray of float32, shape [V, n_components]
        Rows 0 and 1 are padding (zeros) and unknown (the mean of the rarest tenth of the words).
    singular_values_ : ndarray of float32, shape [n_components]

    Examples
    --------
    >>> from prodige.text.words import PPMI
    >>> texts = ["hot tea in a cup", "hot coffee in a cup", "a dog in the rain", "a cat in the rain"]
    >>> model = PPMI(n_components=4, random_state=0).fit(texts)
    >>> [model.most_similar(token, N=1)[0][0] for token in ("tea", "dog")]
    ['coffee', 'cat']
    """

    _harmonic = False

    def __init__(
        self,
        n_components: int = 100,
        max_vocabulary: int = 32_000,
        window: int = 5,
        smoothing: float = 0.75,
        shift: float = 1.0,
        weight: float = 0.5,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.max_vocabulary = max_vocabulary
        self.window = window
        self.smoothing = smoothing
        self.shift = shift
        self.weight = weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, counts: csr_array) -> dict[str, Any]:
        from sklearn.utils.extmath import randomized_svd

        check_range("smoothing", self.smoothing, 0, 1)
        check_range("shift", self.shift, 0, np.inf)
        if not 0 <= self.weight < np.inf:
            raise ValueError(f"weight must be a finite number, 0 or more, got {self.weight}; 0.5 is usual")
        random = check_random_state(self.random_state)
        with Bar(total=2, disable=self.verbose <= 0, unit="step") as bar:
            table = mutual_information(counts, self.smoothing, self.shift)
            bar.update()
            k = min(self.n_components, counts.shape[0])
            # The products with the sparse table, which take most of the time, have one thread anyway.
            with one_thread():
                left, values, _ = randomized_svd(
                    table, k, n_oversamples=_OVERSAMPLES, n_iter=_POWER_ITERATIONS, random_state=random
                )
            bar.update()
        # Rounding gives a factor that is not there a tiny value, which no power must make count.
        is_real = values > 1e-5 * values.max(initial=0)
        vectors = np.zeros((counts.shape[0], self.n_components), dtype=np.float32)
        vectors[:, :k] = left * np.power(values, self.weight, where=is_real, out=np.zeros_like(values))
        singular_values = np.zeros(self.n_components, dtype=np.float32)
        singular_values[:k] = np.where(is_real, values, 0)
        return {"vectors_": vectors, "singular_values_": singular_values}


def count_cooccurrences(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    n_tokens: int,
    window: int,
    harmonic: bool = True,
    n_jobs: int | None = None,
) -> csr_array:
    """Count how often tokens stand near each other in encoded texts.

    Parameters
    ----------
    ids, offsets
        As :meth:`Vocabulary.encode` returns them.
    n_tokens : int
        Ids are below; those of padding and unknown take up room but are not counted.
    window : int
        How many places apart a pair may be.
    harmonic : bool
        Whether a pair counts 1 / distance, or 1.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out, and no more than the texts are worth.
        They do not change a bit.

    Returns
    -------
    scipy.sparse.csr_array of float32, shape [V, V]
        Symmetric, with sorted indices. A token beside itself counts in both directions, so twice.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.words import count_cooccurrences
    >>> ids, offsets = np.array([2, 3, 3, 2], dtype=np.int32), np.array([0, 3, 4])
    >>> count_cooccurrences(ids, offsets, 4, window=2).toarray()[2:, 2:]
    array([[0. , 1.5],
           [1.5, 2. ]], dtype=float32)
    """
    check_integer("window", window, 1, _MOST_WINDOW)
    indptr, indices, data = _core.count_cooccurrences(
        np.ascontiguousarray(ids, dtype=np.int32),
        np.ascontiguousarray(offsets, dtype=np.int64),
        n_tokens,
        len(SPECIAL),
        window,
        harmonic,
        threads_for(n_jobs, len(ids) * window),
    )
    if data.size <= MAX_INT32:  # scipy would bring all indices to the wider type
        indptr = indptr.astype(np.int32)
    counts = csr_array((data, indices, indptr), shape=(n_tokens, n_tokens))
    counts.has_canonical_format = True
    return counts


def mutual_information(counts: csr_array, smoothing: float = 0.75, shift: float = 1.0) -> csr_array:
    """Return max(0, log(p(w, c) / (p(w) q(c))) - log(shift)), where q is p to the power of ``smoothing``, normalised.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from prodige.text.words import mutual_information
    >>> mutual_information(csr_array([[0.0, 3.0], [3.0, 3.0]]), smoothing=1.0).toarray().round(3)
    array([[0.   , 0.405],
           [0.405, 0.   ]])
    """
    totals = counts.sum(axis=1, dtype=np.float64)
    with np.errstate(divide="ignore"):  # tokens without pairs have no entries
        word = np.log(totals)
    context = smoothing * word
    context -= np.log(np.exp(context).sum())
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    # One step after the other in place: these arrays are the largest there are.
    values = np.log(counts.data)
    values -= (word + np.log(shift)).astype(values.dtype)[rows]
    values -= context.astype(values.dtype)[counts.indices]
    table = csr_array((np.maximum(values, 0, out=values), counts.indices, counts.indptr), shape=counts.shape, copy=True)
    table.eliminate_zeros()
    return table


def check_range(name: str, value: Any, above: float, most: float) -> float:
    """Return a finite number above ``above`` and not beyond ``most``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not above < value <= most or not np.isfinite(value):
        upper = f" and at most {most}" if np.isfinite(most) else ""
        raise ValueError(f"{name} must be a finite number above {above}{upper}, got {value}")
    return float(value)


__all__ = ["PPMI", "GloVe", "NoPairsError", "count_cooccurrences"]
