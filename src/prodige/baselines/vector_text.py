"""VectorTextClassifier: the same network over ordinary word vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from prodige import modelfile
from prodige._validation import check_integer
from prodige.distillation import take_over, task_vectors
from prodige.textmodel import TEACHER_RATE, TextClassifier
from prodige.textnet import Corpus
from prodige.vocabulary import PADDING
from prodige.wordvectors import WordVectors

_POWER = 0.75
# Rates of learning: of vectors that are trained directly, where 4e-3 was worse in 18 dimensions on texts held out of
# IMDB's training part; and of short ones that start close to where they should be, where of 1e-3 to 4e-3 this was the
# best in 8 dimensions on films held out as a whole.
_DIRECT_RATE = 2e-3
_RATE = 2e-3


class VectorTextClassifier(TextClassifier):
    """Texts into classes by a convolution over word vectors, which are trained with it.

    Parameters
    ----------
    n_components : int
        Length of the vectors.
    bits : {32, 8}
        How coordinates and filters are kept: as float32, or rounded to 8 bits at the end of the fit.
    distill : int, optional
        Train a network over vectors of this length first, keep the main directions of what its filters see of the
        words, and train on: what :class:`prodige.GraphTextClassifier` does, with vectors in the place of the graph.
        None trains the vectors directly.
    max_vocabulary, vectors, n_filters, kernel_size, n_epochs, validation_fraction, class_weight
        As in :class:`prodige.GraphTextClassifier`.
    random_state, n_jobs, verbose, callbacks
        As there.

    Examples
    --------
    >>> from prodige.baselines import VectorTextClassifier
    >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 10
    >>> model = VectorTextClassifier(n_components=4, random_state=0, n_jobs=1).fit(texts, [1, 1, 0, 0] * 10)
    >>> model.predict(["a funny film", "what a dull thing"])
    array([1, 0])
    """

    def __init__(
        self,
        n_components: int = 100,
        bits: int = 32,
        distill: int | None = None,
        max_vocabulary: int = 32_000,
        vectors: str | WordVectors = "ppmi",
        n_filters: int = 32,
        kernel_size: int = 5,
        n_epochs: int = 8,
        validation_fraction: float = 0.1,
        class_weight: str | Mapping[Any, float] | None = None,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] | None = (),
    ) -> None:
        self.n_components = n_components
        self.bits = bits
        self.distill = distill
        self.max_vocabulary = max_vocabulary
        self.vectors = vectors
        self.n_filters = n_filters
        self.kernel_size = kernel_size
        self.n_epochs = n_epochs
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def _fit(self, corpus: Corpus, classes: NDArray[np.int64], random: np.random.RandomState) -> None:
        if self.bits not in (8, 32):
            raise ValueError(f"bits must be 8 or 32, got {self.bits!r}")
        if self.distill is not None:
            check_integer("distill", self.distill, 1, 2**31 - 1)
        start = self._word_vectors(corpus, random, self.distill or self.n_components)
        rate = _DIRECT_RATE if self.distill is None else TEACHER_RATE
        network = self._train_on_vectors(start, corpus, classes, random, rate)
        if self.distill is not None and self.stopped_ != "interrupt":
            teacher = network
            weights = np.maximum(np.bincount(corpus.tokens, minlength=len(self.vocabulary_)), 1.0) ** _POWER
            weights[PADDING] = 0
            coordinates = torch.from_numpy(task_vectors(teacher, weights)[:, : self.n_components].copy())
            coordinates[PADDING] = 0
            shape = coordinates.shape
            network = self._network(nn.Embedding(shape[0], shape[1], padding_idx=PADDING, _weight=coordinates))
            take_over(network, teacher, weights)
            training = self._training("short vectors", corpus, classes, random, warm=True)
            network = training.run(network, [{"params": network.parameters(), "lr": _RATE}])
            if training.interrupted:
                self.stopped_ = "interrupt"
        embedding = network.embedding
        assert isinstance(embedding, nn.Embedding)
        if self.bits == 8:
            self._round(embedding.weight)
            self._round(network.convolution.weight)
        self.network_ = network.eval().requires_grad_(False)

    @property
    def size_bytes(self) -> int:
        """Size of all that predicting takes, packed as :meth:`prodige.GraphTextClassifier.save` packs its own."""
        check_is_fitted(self, "network_")
        state = {name: values.numpy() for name, values in self.network_.state_dict().items()}
        if self.bits == 8:
            for name in ("embedding.weight", "convolution.weight"):
                state[name], state[f"{name} steps"] = self._codes(state[name])
        order = np.argsort(np.array(self.vocabulary_.tokens[2:]))
        words = "\n".join(self.vocabulary_.tokens[2 + place] for place in order)
        return len(modelfile.pack({}, {**state, "tokens": np.frombuffer(words.encode(), np.uint8)}))

    @classmethod
    def _round(cls, weight: torch.Tensor) -> None:
        codes, steps = cls._codes(weight.detach().numpy())
        with torch.no_grad():
            weight.copy_(torch.from_numpy(codes * steps))

    @staticmethod
    def _codes(values: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Return values as whole numbers from -127 to 127, and the step of each coordinate."""
        steps = np.abs(values).max(axis=tuple(axis for axis in range(values.ndim) if axis != 1), keepdims=True)
        steps = (np.maximum(steps, 1e-30) / 127).astype(np.float32)
        return np.rint(values / steps).astype(np.int8), steps
