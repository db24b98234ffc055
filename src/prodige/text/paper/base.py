"""TextClassifier: what all classifiers by the paper's network have in common, whatever embeds their words."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from prodige._validation import check_integer
from prodige.progress import Callback, Record, Stopped, check_callbacks, tell
from prodige.text.estimator import TextEstimator
from prodige.text.labels import check_class_weight, check_labels
from prodige.text.paper.network import Corpus, Examples, TextNetwork, Training, gradients
from prodige.text.vocabulary import PADDING, Vocabulary, check_texts
from prodige.text.words import PPMI, GloVe, NoPairsError
from prodige.text.wordvectors import WordVectors
from prodige.threads import count_threads, one_thread, torch_threads

# Below so many texts none is set aside: what is left of a few says less than all of them.
_FEW = 40
# Rate of learning of vectors that others are made from. Twice as much was tried too: no difference beyond noise.
TEACHER_RATE = 1e-3
# Spread of the vectors at the start.
_SPREAD = 0.5


class TextClassifier(TextEstimator):
    """Vocabulary, validation part, classes and predictions; a new kind says how its network is fitted."""

    max_vocabulary: int
    vectors: str | WordVectors
    n_components: int
    n_filters: int
    kernel_size: int
    n_epochs: int
    validation_fraction: float
    class_weight: str | Mapping[Any, float] | None
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int
    callbacks: Sequence[Callback] | None

    vocabulary_: Vocabulary
    network_: TextNetwork
    history_: list[Record]
    stopped_: Stopped

    _class_weights: torch.Tensor
    _split_seed: int

    def fit(self, texts: Any, y: ArrayLike) -> Self:
        """Learn from texts and their classes.

        Parameters
        ----------
        texts : sequence of str
            Of any length; a text without known words is allowed.
        y : array-like, shape [N]
            Texts, numbers, truth values or dates, at least two different ones.

        Notes
        -----
        Ctrl-C ends the fit early: what has been learned so far becomes the model, ``stopped_`` says so, and a warning
        does. Where that is nothing yet, and after an error, the estimator is as it was before.
        """
        documents = check_texts(texts)
        labels, classes = check_labels(y, len(documents))
        self._check_parameters()
        # All is learned by a copy: a fit that fails leaves this model as it was.
        fitted = copy.copy(self)
        fitted.classes_ = labels
        fitted._class_weights = torch.tensor(check_class_weight(self.class_weight, labels, classes)).float()
        # The texts set aside must not change from one stage to the next, or the later one would learn from them.
        fitted._split_seed = check_random_state(self.random_state).randint(2**31 - 1)
        fitted.history_, fitted.stopped_ = [], "finished"
        fitted.vocabulary_ = Vocabulary.build(documents, self.max_vocabulary)
        corpus = Corpus(*fitted.vocabulary_.encode(documents))
        with one_thread(), gradients():
            fitted._fit(corpus, classes, check_random_state(self.random_state))
        self.__dict__.update({name: value for name, value in vars(fitted).items() if name not in self.get_params()})
        if self.stopped_ == "interrupt":
            warnings.warn("the fit was interrupted: the network is the best so far", ConvergenceWarning, stacklevel=2)
        return self

    @abstractmethod
    def _fit(self, corpus: Corpus, classes: NDArray[np.int64], random: np.random.RandomState) -> None:
        """Set ``network_``; on Ctrl-C make it of what there is, and say so in ``stopped_``."""

    def predict_proba(self, texts: Any) -> NDArray[np.float32]:
        """Return the probability of each class, in the order of ``classes_``, shape [N, C].

        Parameters
        ----------
        texts : sequence of str
            One without known words gets what the network answers to silence.
        """
        check_is_fitted(self, "network_")
        corpus = Corpus(*self.vocabulary_.encode(texts))
        with torch_threads(1):  # the last bits depend on how many there are; the convolution has its own
            return np.asarray(torch.softmax(self.network_.predict(corpus), dim=1).numpy())

    # -- parts of a fit ----------------------------------------------------------------------------------------------

    def _train(
        self,
        stage: str,
        network: TextNetwork,
        groups: list[dict[str, Any]],
        corpus: Corpus,
        classes: NDArray[np.int64],
        random: np.random.RandomState,
        warm: bool = False,
    ) -> TextNetwork:
        """Return a network, trained on all texts but some set aside for validation; the same ones in every stage."""
        train, held_out = split(classes, self.validation_fraction, self._split_seed)
        training = Training(
            Examples(corpus.take(train), classes[train]),
            Examples(corpus.take(held_out), classes[held_out]),
            self._class_weights,
            self.n_epochs,
            np.random.default_rng(random.randint(2**31 - 1)),
            stage,
            warm,
            verbose=self.verbose,
            report=self._report,
        )
        network = training.run(network, groups)
        if training.interrupted:
            self.stopped_ = "interrupt"
        return network

    def _report(self, record: Record) -> bool:
        self.history_.append(record)
        is_over = tell(check_callbacks(self.callbacks), record)
        if is_over:
            self.stopped_ = "callback"
        return is_over

    def _word_vectors(self, corpus: Corpus, random: np.random.RandomState, n_components: int) -> NDArray[np.float32]:
        """Return a vector for each token: learned from the texts, or those given."""
        if isinstance(self.vectors, WordVectors):
            return adopt(self.vectors, self.vocabulary_)
        kind = {"ppmi": PPMI, "glove": GloVe}[self.vectors]
        model = kind(
            min(n_components, len(self.vocabulary_)),
            random_state=random.randint(2**31 - 1),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        try:
            vectors = model.fit_ids(corpus.tokens, corpus.offsets, self.vocabulary_).vectors_
        except NoPairsError:
            vectors = random.normal(size=(len(self.vocabulary_), model.n_components)).astype(np.float32)
        return np.asarray(vectors, dtype=np.float32)

    def _train_on_vectors(
        self,
        vectors: NDArray[np.float32],
        corpus: Corpus,
        classes: NDArray[np.int64],
        random: np.random.RandomState,
        rate: float = TEACHER_RATE,
    ) -> TextNetwork:
        """Return a network over vectors, trained with them."""
        spread = vectors[PADDING + 1 :].std()
        start = torch.tensor(vectors / (spread if spread > 0 else 1.0) * np.float32(_SPREAD))
        start[PADDING] = 0
        generator = torch.Generator().manual_seed(random.randint(2**31 - 1))
        network = self._network(
            nn.Embedding(start.shape[0], start.shape[1], padding_idx=PADDING, _weight=start), generator
        )
        return self._train("vectors", network, [{"params": network.parameters(), "lr": rate}], corpus, classes, random)

    def _network(self, embedding: nn.Module, generator: torch.Generator | None = None) -> TextNetwork:
        """Return a network of the right size; without a generator for one that gets other weights at once."""
        generator = generator or torch.Generator()  # the global one is left alone
        return TextNetwork(embedding, self.classes_.size, self.n_filters, self.kernel_size, self.n_jobs, generator)

    def _check_parameters(self) -> None:
        for name in ("max_vocabulary", "n_components", "n_filters", "kernel_size", "n_epochs"):
            check_integer(name, getattr(self, name), 1, 2**31 - 1)
        if not isinstance(self.vectors, WordVectors) and self.vectors not in ("ppmi", "glove"):
            raise ValueError(f"vectors must be 'ppmi', 'glove' or WordVectors, got {self.vectors!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {self.validation_fraction!r}")
        count_threads(self.n_jobs)
        check_callbacks(self.callbacks)


def split(classes: NDArray[np.int64], fraction: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return texts to learn from and texts to validate on, with all classes in both where that is possible."""
    from sklearn.model_selection import train_test_split

    everything = np.arange(classes.size)
    if classes.size < _FEW:
        return everything, everything
    counts = np.bincount(classes)
    n_held_out = int(np.ceil(fraction * classes.size))
    stratify = classes if counts.min() >= 2 and min(n_held_out, classes.size - n_held_out) >= counts.size else None
    train, held_out = train_test_split(everything, test_size=fraction, random_state=seed, stratify=stratify)
    return np.sort(train), np.sort(held_out)


def adopt(words: WordVectors, vocabulary: Vocabulary) -> NDArray[np.float32]:
    """Return the vectors of a vocabulary's tokens; those without one get that of the unknown."""
    rows = np.array([words.vocabulary.index(token) for token in vocabulary.tokens[2:]], dtype=np.int64)
    return np.concatenate([words.vectors[:2], words.vectors[rows]])
