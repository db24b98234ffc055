"""VectorTextClassifier: the paper's network over ordinary word vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from prodige._validation import check_integer
from prodige.graph import container
from prodige.progress import Callback
from prodige.text.paper.base import TEACHER_RATE, TextClassifier
from prodige.text.paper.codec import alphabetical
from prodige.text.paper.distillation import take_over, task_vectors, token_weights
from prodige.text.paper.network import Corpus, TextNetwork
from prodige.text.vocabulary import PADDING, SPECIAL
from prodige.text.wordvectors import WordVectors

# Rates of learning: of vectors that are trained directly, where 4e-3 was worse in 18 dimensions on texts held out of
# IMDB's training part; and of short ones that start close to where they should be, where of 1e-3 to 4e-3 this was the
# best in 8 dimensions on blocks that share few films with the rest.
_DIRECT_RATE = 2e-3
_RATE = 2e-3
# Shares of the largest value that are tried as the largest that is kept.
_KEPT = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18)


class VectorTextClassifier(TextClassifier):
    """Texts into classes by a convolution over word vectors, which are trained with it.

    Parameters
    ----------
    n_components : int
        Length of the vectors.
    bits : int
        How coordinates are kept: as float32 (32), or rounded to 2 to 8 bits at the end of the fit, with filters in 8.
    distill : int, optional
        Train a network over vectors of this length first, keep the main directions of what its filters see of the
        words, and train on: what :class:`prodige.text.paper.AnchorTextClassifier` does, with vectors in the place of
        the graph. None trains the vectors directly.
    max_vocabulary, vectors, n_filters, kernel_size, n_epochs, validation_fraction, class_weight
        As in :class:`prodige.text.paper.AnchorTextClassifier`.
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
        callbacks: Sequence[Callback] | None = None,
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
        if self.bits not in (*range(2, 9), 32):
            raise ValueError(f"bits must be 2 to 8, or 32, got {self.bits!r}")
        if self.distill is not None:
            check_integer("distill", self.distill, 1, 2**31 - 1)
        start = self._word_vectors(corpus, random, self.distill or self.n_components)
        rate = _DIRECT_RATE if self.distill is None else TEACHER_RATE
        network = self._train_on_vectors(start, corpus, classes, random, rate)
        weights = token_weights(corpus, len(self.vocabulary_))
        if self.distill is not None:
            network = self._shorten(network, weights)
            if self.stopped_ == "finished":
                groups = [{"params": network.parameters(), "lr": _RATE}]
                network = self._train("short vectors", network, groups, corpus, classes, random, warm=True)
        embedding = network.embedding
        assert isinstance(embedding, nn.Embedding)
        self._codes: dict[str, NDArray[Any]] = {}
        if self.bits < 32:
            for name, layer, bits, share in (
                ("embedding", embedding.weight, self.bits, weights[:, None]),
                ("convolution", network.convolution.weight, 8, np.ones(1)),
            ):
                codes, steps = to_codes(layer.detach().numpy(), bits, share)
                self._codes |= {f"{name}.weight": codes, f"{name}.steps": steps}
                with torch.no_grad():
                    layer.copy_(torch.from_numpy(codes * steps))
        self.network_ = network.eval().requires_grad_(False)

    def _shorten(self, teacher: TextNetwork, weights: NDArray[np.float64]) -> TextNetwork:
        """Return a network over short vectors that answers as much like one over long vectors as it can."""
        coordinates = torch.tensor(task_vectors(teacher, weights)[:, : self.n_components])
        coordinates[PADDING] = 0
        shape = coordinates.shape
        network = self._network(nn.Embedding(shape[0], shape[1], padding_idx=PADDING, _weight=coordinates))
        take_over(network, teacher, weights)
        return network

    @property
    def size_bytes(self) -> int:
        """Size of all that predicting takes, packed as the model with a graph packs its own."""
        check_is_fitted(self, "network_")
        state: dict[str, NDArray[Any]] = {name: values.numpy() for name, values in self.network_.state_dict().items()}
        state |= self._codes
        order = alphabetical(self.vocabulary_)
        state["embedding.weight"] = state["embedding.weight"][order]
        words = "\n".join(self.vocabulary_.tokens[token] for token in order[len(SPECIAL) :])
        arrays = {**state, "tokens": np.frombuffer(words.encode(), np.uint8)}
        return container.size("text", {}, arrays, compress=True)


def to_codes(
    values: NDArray[np.float32], bits: int, share: NDArray[np.float64]
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return values as whole numbers of a few bits and the step of each coordinate, which is on axis 1.

    Where bits are few, the largest values are cut off for smaller steps if that lowers the weighted squared error.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines.vector_text import to_codes
    >>> codes, steps = to_codes(np.array([[-1.0], [0.5], [0.0]], np.float32), 3, np.ones((3, 1)))
    >>> codes.ravel(), steps.ravel()
    (array([-3,  2,  0], dtype=int8), array([0.33333334], dtype=float32))
    """
    most = 2 ** (bits - 1) - 1
    axes = tuple(axis for axis in range(values.ndim) if axis != 1)
    largest = np.maximum(np.abs(values).max(axis=axes, keepdims=True), 1e-30) / most

    def codes(steps: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(np.clip(np.rint(values / steps), -most, most))

    choices = np.stack([np.float32(kept) * largest for kept in (_KEPT if bits < 8 else _KEPT[:1])])
    errors = [(share * np.square(codes(steps) * steps - values)).sum(axis=axes, keepdims=True) for steps in choices]
    best = np.take_along_axis(choices, np.argmin(errors, axis=0)[None], axis=0)[0]
    return codes(best).astype(np.int8), best
