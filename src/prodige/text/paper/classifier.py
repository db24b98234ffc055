"""AnchorTextClassifier: texts into classes by the paper's network, with the words in a graph.

The paper's third task, as :class:`prodige.GraphTextClassifier` does it with ``architecture="paper"``. A network over
vectors is trained first; a graph that preserves what its filters see of the words takes the place of the vectors, and
all of it is trained on: see :mod:`prodige.text.paper.distillation` and
:mod:`prodige.learning.anchors_from_coordinates`. What is left at the end is a graph of one or two edges per word,
rounded to the bits that are saved.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from prodige._validation import check_integer
from prodige.graph import container
from prodige.graph.atomic import StrPath
from prodige.graph.graph import Graph
from prodige.graph.header import as_json, shortened
from prodige.graph.loadable import Loadable
from prodige.learning.anchors import AnchorEmbedding, FrozenAnchorEmbedding
from prodige.learning.anchors_from_coordinates import directions
from prodige.learning.anchors_from_vectors import share_budget
from prodige.progress import Callback
from prodige.text.labels import decode_classes, encode_classes
from prodige.text.paper import codec
from prodige.text.paper.base import TextClassifier
from prodige.text.paper.distillation import take_over, task_vectors, token_weights
from prodige.text.paper.network import Corpus, TextNetwork, gradients
from prodige.text.vocabulary import PADDING
from prodige.text.wordvectors import WordVectors

# Rates of learning of the graph and of the layers above it, which start close to where they should be. On blocks of
# IMDB's training part, which share few films with the rest, filters at 3e-4 or 1e-3 had a higher loss than at 1e-4.
_GRAPH_RATE = 2e-3
_RATE = 1e-4
# Of a small vocabulary, at most one token in so many becomes an anchor.
_TOKENS_PER_ANCHOR = 4

# Parameters that a file keeps; the others are of no use to a model that is fitted.
_SAVED = ("numbers_per_item", "n_anchors", "max_vocabulary", "n_components", "n_filters", "kernel_size", "n_epochs")


class AnchorTextClassifier(Loadable, TextClassifier):
    """Texts into classes by a convolution over the distances of words to anchors in a graph.

    Parameters
    ----------
    numbers_per_item : float
        Size of the graph for each token of the vocabulary, hubs and anchors included.
    n_anchors : int
        Coordinates of a token; fewer for a vocabulary of less than four times as many tokens.
    max_vocabulary : int
        Tokens to know beside padding and unknown, the most frequent.
    vectors : {"ppmi", "glove"} or WordVectors
        Word vectors to start from: learned from the texts, or given.
    n_components : int
        Length of the vectors that are learned.
    n_filters, kernel_size : int
        Of the convolution.
    n_epochs : int
        At most so many over vectors, and as many over the graph; each ends early when the validation loss rises.
    validation_fraction : float
        Share of the texts that is set aside to tell when to stop. Below 40 texts all serve for both.
    class_weight : "balanced", dict or None
        As in scikit-learn; weights are finite and above 0.
    random_state : int, RandomState or None
        The same seed gives the same model on the same machine with any number of threads.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out, and no more than there is work for.
    verbose : int
        Above 0 shows progress bars.
    callbacks : sequence of callable, optional
        Each is called with a :class:`prodige.progress.Record` after every epoch; one that returns True ends the fit.
        So does Ctrl-C once something has been learned, with a warning. The best so far is kept; where there is no
        graph yet, one is made of the vectors. A second Ctrl-C gives up.

    Attributes
    ----------
    classes_ : ndarray, shape [C]
    vocabulary_ : Vocabulary
    network_ : TextNetwork
    graph_ : Graph
        Tokens, hubs and anchors, in this order; tokens in alphabetical order after padding and unknown.
    history_ : list of prodige.progress.Record
        One for each epoch, with its stage (``"vectors"``, then ``"graph"``), validation loss and accuracy.
    stopped_ : {"finished", "callback", "interrupt"}

    Notes
    -----
    Lengths are rounded to 6 bits and filters to 8 at the end of the fit, so that a model predicts the same before and
    after it is saved.

    References
    ----------
    Mazur, Egiazarian, Morozov, Babenko: Beyond Vector Spaces: Compact Data Representation as Differentiable Weighted
    Graphs. NeurIPS 2019.

    Examples
    --------
    >>> from prodige.text.paper import AnchorTextClassifier
    >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 10
    >>> model = AnchorTextClassifier(random_state=0, n_jobs=1).fit(texts, ["good", "good", "bad", "bad"] * 10)
    >>> model.predict(["a funny film", "what a dull thing"])
    array(['good', 'bad'], dtype='<U4')
    """

    _kind = "text"

    def __init__(
        self,
        numbers_per_item: float = 5.0,
        n_anchors: int = 32,
        max_vocabulary: int = 32_000,
        vectors: str | WordVectors = "ppmi",
        n_components: int = 100,
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
        self.numbers_per_item = numbers_per_item
        self.n_anchors = n_anchors
        self.max_vocabulary = max_vocabulary
        self.vectors = vectors
        self.n_components = n_components
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
        check_integer("n_anchors", self.n_anchors, 1, 2**31 - 1)
        n_anchors = max(1, min(self.n_anchors, len(self.vocabulary_) // _TOKENS_PER_ANCHOR))
        # What cannot be made or saved is refused now, not after the fit.
        share_budget(len(self.vocabulary_), n_anchors, self.numbers_per_item)
        encode_classes(self.classes_)
        codec.check_tables(len(self.vocabulary_), n_anchors, self.n_filters, self.kernel_size, codec.MAX_TABLE)
        codec.check_words(self.vocabulary_)
        weights = token_weights(corpus, len(self.vocabulary_))
        teacher = self._train_on_vectors(self._word_vectors(corpus, random, self.n_components), corpus, classes, random)
        start = copy.deepcopy(random)
        try:
            with gradients():
                network = self._attach_to_graph(teacher, n_anchors, weights, random)
                if self.stopped_ == "finished":
                    network = self._train_on_graph(network, corpus, classes, random)
                self._take(*codec.encode(network, self.vocabulary_))
        except KeyboardInterrupt:  # once more, without training: there is no other graph of what has been learned
            self.stopped_ = "interrupt"
            network = self._attach_to_graph(teacher, n_anchors, weights, start)
            self._take(*codec.encode(network, self.vocabulary_))

    def _attach_to_graph(
        self, teacher: TextNetwork, n_anchors: int, weights: NDArray[np.float64], random: np.random.RandomState
    ) -> TextNetwork:
        """Return a network over a graph that answers as much like one over vectors as it can."""
        vectors = task_vectors(teacher, weights)[:, :n_anchors]
        embedding = AnchorEmbedding.from_coordinates(
            vectors @ directions(vectors.shape[1], n_anchors, random),
            self.numbers_per_item,
            sample_weight=weights,
            padding_idx=PADDING,
            random_state=random,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        embedding.graph.theta_b.requires_grad_(False)
        network = self._network(embedding)
        take_over(network, teacher, weights)
        return network

    def _train_on_graph(
        self, network: TextNetwork, corpus: Corpus, classes: NDArray[np.int64], random: np.random.RandomState
    ) -> TextNetwork:
        """Return a network over a graph, trained with it."""
        embedding = network.embedding
        assert isinstance(embedding, AnchorEmbedding)
        groups = [
            {"params": [embedding.graph.theta_w], "lr": _GRAPH_RATE},
            {"params": [*network.convolution.parameters(), *network.dense.parameters()], "lr": _RATE},
        ]
        return self._train("graph", network, groups, corpus, classes, random, warm=True)

    def _take(self, description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Make what a file holds the model in use."""
        self._stored = description, arrays
        self.network_, self.vocabulary_ = codec.decode(description, arrays, self.n_jobs)

    # -- what is learned ---------------------------------------------------------------------------------------------

    @property
    def graph_(self) -> Graph:
        """The graph of tokens, hubs and anchors."""
        check_is_fitted(self, "network_")
        embedding = self.network_.embedding
        assert isinstance(embedding, FrozenAnchorEmbedding)
        return embedding.graph

    @property
    def numbers_per_item_(self) -> float:
        """Numbers in the graph for each token."""
        return self.graph_.numbers_per_item

    @property
    def size_bytes(self) -> int:
        """Size of the file that :meth:`save` writes: vocabulary, graph and network."""
        check_is_fitted(self, "network_")
        return container.size("text", *self._encode(), compress=True)

    def save(self, path: StrPath) -> None:
        """Write the model to one file, without the texts it learned from.

        Parameters
        ----------
        path : str or path-like
            A file that is there is replaced in one step, or stays as it was.

        Examples
        --------
        >>> import tempfile
        >>> from prodige.text.paper import AnchorTextClassifier
        >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 10
        >>> model = AnchorTextClassifier(n_epochs=2, random_state=0, n_jobs=1).fit(texts, [1, 1, 0, 0] * 10)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save(f"{directory}/reviews.prodige")
        ...     loaded = AnchorTextClassifier.load(f"{directory}/reviews.prodige")
        >>> bool((loaded.predict_proba(texts) == model.predict_proba(texts)).all())
        True
        """
        check_is_fitted(self, "network_")
        container.write(path, "text", *self._encode(), compress=True)

    @classmethod
    def _from_contents(cls, contents: container.Contents, n_jobs: int | None) -> Self:
        """Return the model that a file holds; ValueError, TypeError or KeyError if its parts do not fit together."""
        content = contents.content
        if content["architecture"] != "paper":
            raise ValueError(f"its architecture is {shortened(content['architecture'])}, not 'paper'")
        model = cls(**check_saved(content["parameters"]), n_jobs=n_jobs)
        arrays = codec.split(contents.arrays)
        codec.check_arrays(arrays)
        codec.check_size(contents.n_bytes, arrays)
        n_classes = arrays["dense_bias"].size
        model.classes_ = decode_classes(content["class_type"], contents.arrays["classes"], n_classes)
        model._take(content["network"], arrays)
        return model

    def _encode(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a file holds, content and arrays."""
        network, arrays = self._stored
        class_type, classes = encode_classes(self.classes_)
        parameters = {name: as_json(getattr(self, name)) for name in _SAVED}
        content = {"architecture": "paper", "parameters": parameters, "class_type": class_type, "network": network}
        return content, {**codec.joined(arrays), "classes": classes}


def check_saved(parameters: Any) -> dict[str, Any]:
    """Return the parameters that a file holds."""
    if not isinstance(parameters, dict) or set(parameters) != set(_SAVED):
        raise ValueError(f"the parameters should be {', '.join(_SAVED)}")
    for name in _SAVED[1:]:
        check_integer(name, parameters[name], 1, 2**31 - 1)
    if type(parameters[_SAVED[0]]) not in (int, float):
        raise TypeError(f"{_SAVED[0]} must be a number, got {shortened(parameters[_SAVED[0]])}")
    return parameters
