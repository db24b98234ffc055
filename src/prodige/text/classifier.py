"""GraphTextClassifier: texts into classes by words and sequences of words in a graph whose anchors are the classes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from prodige._validation import check_integer, check_number
from prodige.graph import container
from prodige.graph.atomic import StrPath
from prodige.graph.graph import Graph
from prodige.graph.header import shortened
from prodige.graph.loadable import Loadable
from prodige.progress import Callback, Monitor, Record, Stopped, check_callbacks
from prodige.text import encoding
from prodige.text.estimator import TextEstimator
from prodige.text.fitting import RoomError, Settings
from prodige.text.labels import check_class_weight, check_labels, decode_classes, encode_classes
from prodige.text.learning import learn
from prodige.text.paper.classifier import AnchorTextClassifier
from prodige.text.tokens import prepare
from prodige.text.wordgraph import WordGraph
from prodige.threads import count_threads, one_thread

# Every class has a score for each vertex while a graph is fitted, so memory grows with their number.
MOST_CLASSES = 256
_MOST_BYTES = 2**24
_MOST_LEVELS = 256
# What the header of a file may take beyond that of an empty one.
_SLACK = 24


class Reason(NamedTuple):
    """What a vertex says of a text.

    Attributes
    ----------
    vertex : str
        A word, a pair or a triple; the beginning of a word ends with a dash, and a star is any one word.
    contribution : float
        How much it speaks for the class, in the logarithm of the odds; below 0, against it.
    path : tuple of str
        From the vertex over its hub to the class.
    lengths : tuple of float
        Of the edges of the path.
    """

    vertex: str
    contribution: float
    path: tuple[str, ...]
    lengths: tuple[float, ...]


class GraphTextClassifier(Loadable, TextEstimator):
    """Texts into classes by a graph of words and sequences of words.

    Every vertex hangs on one of a few hubs, hubs lie at graded distances from the classes, and a text is as near to a
    class as its vertices are in the mean.

    Parameters
    ----------
    max_bytes : int
        Size of the file that :meth:`save` writes, at most: as many vertices are kept as it has room for.
    architecture : {"ngrams", "paper"} or AnchorTextClassifier
        ``"paper"`` is the network of the paper, a convolution over distances of words to anchors; an
        :class:`prodige.text.paper.AnchorTextClassifier` is the same with settings of its own. It has its own measure of
        size, and ``max_bytes`` does not apply.
    class_weight : "balanced", dict or None
        As in scikit-learn; weights are finite and above 0.
    max_time : float, optional
        Seconds that a fit may take, about: fewer settings are tried then. The paper's network ends with an epoch.
    random_state : int, RandomState or None
        Of the paper's network; nothing else is left to chance.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out, and no more than there is work for. The model
        is the same to the bit.
    verbose : int
        Above 0 shows a progress bar.
    callbacks : sequence of callable, optional
        Each is called with a :class:`prodige.progress.Record` after every trial; one that returns True ends the fit. So
        does Ctrl-C once there is something, with a warning; the best so far is kept.

    Attributes
    ----------
    classes_ : ndarray, shape [C]
    word_graph_ : WordGraph
        Vertices, their hubs and the levels of these. Not with the paper's network.
    settings_ : Settings
        What validation decided: kinds of vertices, regularisation, levels.
    validation_accuracy_ : float or None
        On texts set aside, of a graph that has not seen them; None where there were too few.
    paper_ : AnchorTextClassifier
        With the paper's network alone.
    history_ : list of prodige.progress.Record
        One for each trial.
    stopped_ : {"finished", "callback", "interrupt"}

    References
    ----------
    Mazur, Egiazarian, Morozov, Babenko: Beyond Vector Spaces: Compact Data Representation as Differentiable Weighted
    Graphs. NeurIPS 2019.

    Wang, Manning: Baselines and Bigrams: Simple, Good Sentiment and Topic Classification. ACL 2012.

    Wager, Wang, Liang: Dropout Training as Adaptive Regularization. NIPS 2013.

    Examples
    --------
    >>> from prodige import GraphTextClassifier
    >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 10
    >>> model = GraphTextClassifier(n_jobs=1).fit(texts, ["good", "good", "bad", "bad"] * 10)
    >>> model.predict(["a funny film", "what a dull thing"])
    array(['good', 'bad'], dtype='<U4')
    """

    _kind = "text"

    word_graph_: WordGraph
    settings_: Settings
    validation_accuracy_: float | None
    paper_: AnchorTextClassifier
    history_: list[Record]
    stopped_: Stopped

    def __init__(
        self,
        max_bytes: int = 50_000,
        architecture: str | AnchorTextClassifier = "ngrams",
        class_weight: str | Mapping[Any, float] | None = None,
        *,
        max_time: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.max_bytes = max_bytes
        self.architecture = architecture
        self.class_weight = class_weight
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, texts: Any, y: ArrayLike) -> Self:
        """Learn from texts and their classes.

        Parameters
        ----------
        texts : sequence of str
            Of any length; a text without words is allowed.
        y : array-like, shape [N]
            Texts, numbers, truth values or dates, 2 to 256 different ones.

        Notes
        -----
        Texts that follow each other may share a source, such as a film they are about: leave them in their order, since
        texts are set aside for validation in blocks of neighbours.

        Ctrl-C ends the fit early: the best so far becomes the model, ``stopped_`` says so, and a warning does. Where
        there is nothing yet, and after an error, the estimator is as it was before.
        """
        self._check_parameters()
        fitted = self._fit_ngrams(texts, y) if self.architecture == "ngrams" else self._fit_paper(texts, y)
        for name in ("paper_", "word_graph_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted)
        if self.stopped_ == "interrupt":
            warnings.warn("the fit was interrupted: the graph is the best so far", ConvergenceWarning, stacklevel=2)
        return self

    def _fit_ngrams(self, texts: Any, y: ArrayLike) -> dict[str, Any]:
        monitor = Monitor(1, self.max_time, callbacks=self.callbacks, verbose=self.verbose)
        documents = prepare(texts)
        labels, classes = check_labels(y, len(documents))
        if labels.size > MOST_CLASSES:
            raise ValueError(
                f"y has {labels.size} classes, at most {MOST_CLASSES} are possible; join some of them, or leave out "
                "rare ones" + ("" if labels.dtype.kind in "Ub" else "; are they numbers to be predicted, not classes?")
            )
        weights = check_class_weight(self.class_weight, labels, classes)[classes]
        room = self.max_bytes - size_without_vertices(labels)
        try:
            with one_thread():
                learned = learn(documents, classes, labels.size, weights, room, monitor, self.n_jobs)
        except RoomError as error:
            raise ValueError(
                f"max_bytes = {self.max_bytes} is too small for a vertex for each of the {labels.size} classes; "
                f"{self.max_bytes + error.n_missing} would do"
            ) from None
        return {
            "classes_": labels,
            "word_graph_": learned.graph,
            "settings_": learned.settings,
            "validation_accuracy_": None if learned.trial is None else learned.trial.accuracy,
            "history_": monitor.history,
            "stopped_": monitor.stopped,
        }

    def _fit_paper(self, texts: Any, y: ArrayLike) -> dict[str, Any]:
        model = AnchorTextClassifier() if self.architecture == "paper" else clone(self.architecture)
        began = time.perf_counter()

        def is_late(_: Record) -> bool:
            return self.max_time is not None and time.perf_counter() - began >= self.max_time

        model.set_params(
            class_weight=self.class_weight,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            callbacks=[*check_callbacks(self.callbacks), is_late],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of the interrupt, which is told once
            model.fit(texts, y)
        model.set_params(callbacks=None)
        accuracy = max((record.accuracy or 0.0 for record in model.history_ if record.stage == "graph"), default=None)
        return {
            "classes_": model.classes_,
            "paper_": model,
            "validation_accuracy_": accuracy,
            "history_": model.history_,
            "stopped_": model.stopped_,
        }

    def _check_parameters(self) -> None:
        check_integer("max_bytes", self.max_bytes, 1, _MOST_BYTES)
        if self.architecture not in ("ngrams", "paper") and not isinstance(self.architecture, AnchorTextClassifier):
            raise ValueError(
                f"architecture must be 'ngrams', 'paper' or an AnchorTextClassifier, got {self.architecture!r}"
            )
        if self.max_time is not None:
            check_number("max_time", self.max_time, above=True)
        count_threads(self.n_jobs)
        check_callbacks(self.callbacks)

    # -- asking ------------------------------------------------------------------------------------------------------

    def predict_proba(self, texts: Any) -> NDArray[Any]:
        """Return the probability of each class, in the order of ``classes_``, shape [N, C].

        Parameters
        ----------
        texts : sequence of str
            One without known words gets what the bias says: how frequent classes are.
        """
        check_is_fitted(self, "classes_")
        if self._is_paper:
            return self.paper_.predict_proba(texts)
        scores = self.word_graph_.scores(prepare(texts), self.n_jobs)
        if scores.shape[1] > 1:
            return np.asarray(softmax(scores, axis=1))
        return np.concatenate([expit(-scores), expit(scores)], axis=1)

    def explain(self, text: str, label: Any = None, N: int = 10) -> list[Reason]:
        """Return the vertices that decided, those that say most first.

        Parameters
        ----------
        text : str
        label : optional
            The class to speak for or against; the predicted one when left out.
        N : int
            How many vertices to return at most.

        Examples
        --------
        >>> from prodige import GraphTextClassifier
        >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 10
        >>> model = GraphTextClassifier(n_jobs=1).fit(texts, ["good", "good", "bad", "bad"] * 10)
        >>> reason = model.explain("so warm")[0]
        >>> reason.vertex, reason.contribution > 0, reason.path[-1]
        ('warm', True, 'good')
        """
        check_is_fitted(self, "classes_")
        if self._is_paper:
            raise ValueError("the paper's network does not say why; fit architecture='ngrams' to explain")
        check_integer("N", N, 1, 2**31)
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {shortened(text)}")
        chosen = self.predict([text])[0] if label is None else label
        place = np.flatnonzero(self.classes_ == chosen)
        if place.size != 1:
            raise ValueError(f"label = {shortened(label)} is none of the {self.classes_.size} classes")
        return reasons(self.word_graph_, prepare([text])[0], int(place[0]), str(chosen), N)

    # -- what is learned ---------------------------------------------------------------------------------------------

    @property
    def _is_paper(self) -> bool:
        return "paper_" in self.__dict__

    @property
    def graph_(self) -> Graph:
        """The graph: vertices, hubs, classes; with the paper's network, tokens, hubs and anchors."""
        check_is_fitted(self, "classes_")
        return self.paper_.graph_ if self._is_paper else self.word_graph_.graph()

    @property
    def vertices_(self) -> list[str]:
        """The words, beginnings of words, pairs, triples and skips that the graph knows, in the order of its items."""
        check_is_fitted(self, "classes_")
        if self._is_paper:
            return list(self.paper_.vocabulary_.tokens)
        return list(self.word_graph_.vertices.names)

    @property
    def numbers_per_item_(self) -> float:
        """Numbers in the graph for each vertex, as the paper counts."""
        return self.graph_.numbers_per_item

    @property
    def size_bytes(self) -> int:
        """Size of the file that :meth:`save` writes."""
        check_is_fitted(self, "classes_")
        if self._is_paper:
            return self.paper_.size_bytes
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
        >>> from prodige import GraphTextClassifier
        >>> texts = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 10
        >>> model = GraphTextClassifier(n_jobs=1).fit(texts, [1, 1, 0, 0] * 10)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save(f"{directory}/reviews.prodige")
        ...     loaded = GraphTextClassifier.load(f"{directory}/reviews.prodige")
        >>> bool((loaded.predict_proba(texts) == model.predict_proba(texts)).all())
        True
        """
        check_is_fitted(self, "classes_")
        if self._is_paper:
            self.paper_.save(path)
            return
        container.write(path, "text", *self._encode(), compress=True)

    def _encode(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a file holds, content and arrays."""
        graph = self.word_graph_
        has_skips = len(graph.vertices.skips) > 0
        return describe(self.classes_, encoding.encode(graph), graph.levels, graph.bias, has_skips)

    @classmethod
    def _from_contents(cls, contents: container.Contents, n_jobs: int | None) -> Self:
        """Return the model that a file holds; ValueError, TypeError or KeyError if its parts do not fit together."""
        content, arrays = contents.content, contents.arrays
        if content["architecture"] == "paper":
            paper = AnchorTextClassifier._from_contents(contents, n_jobs)
            model = cls(architecture=clone(paper), n_jobs=n_jobs)
            model.__dict__.update(classes_=paper.classes_, paper_=paper)
            return model
        if content["architecture"] not in ("ngrams", "skipgrams"):
            raise ValueError(f"there is no architecture {shortened(content['architecture'])}")
        n_classes = check_integer("n_classes", content["n_classes"], 2, MOST_CLASSES)
        classes = decode_classes(content["class_type"], arrays["classes"], n_classes)
        levels, bias = split_numbers(arrays["numbers"], 1 if n_classes == 2 else n_classes)
        stream = arrays["vertices"]
        if stream.dtype != np.uint8 or stream.ndim != 1:
            raise ValueError("vertices should be one row of bytes")
        graph = encoding.decode(stream.tobytes(), levels, bias, content["architecture"] == "skipgrams")
        graph.lookup  # refuses vertices that are there twice  # noqa: B018
        model = cls(max_bytes=max(contents.n_bytes, 1), n_jobs=n_jobs)
        model.__dict__.update(classes_=classes, word_graph_=graph)
        return model


def reasons(graph: WordGraph, document: str, place: int, label: str, n: int) -> list[Reason]:
    """Return what the vertices of a text say of the class at a place, those that say most first."""
    found = graph.find(document)
    worth = graph.table[found]
    if worth.shape[1] == 1:
        said = worth[:, 0] if place == 1 else -worth[:, 0]
        hub = graph.hubs[found, 0]
    else:
        said = worth[:, place] - (worth.sum(axis=1) - worth[:, place]) / (worth.shape[1] - 1)
        hub = graph.hubs[found, place]
    said = said / np.sqrt(max(found.size, 1))
    distance = graph.distance(hub, np.full(hub.size, place))
    names = graph.vertices.names
    return [
        Reason(
            names[found[row]],
            float(said[row]),
            (names[found[row]], f"hub {hub[row]}", label),
            (graph.stem, float(distance[row])),
        )
        for row in np.argsort(-np.abs(said), kind="stable")[:n]
    ]


def describe(
    classes: NDArray[Any],
    stream: bytes,
    levels: NDArray[np.float32],
    bias: NDArray[np.float32],
    has_skips: bool = True,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return content and arrays of a file."""
    class_type, packed = encode_classes(classes)
    # Earlier versions know no skips, and refuse the second name.
    architecture = "skipgrams" if has_skips else "ngrams"
    content = {"architecture": architecture, "class_type": class_type, "n_classes": int(classes.size)}
    arrays = {
        "vertices": np.frombuffer(stream, np.uint8),
        "numbers": np.concatenate([bias, levels]),
        "classes": packed,
    }
    return content, arrays


def size_without_vertices(classes: NDArray[Any]) -> int:
    """Return the bytes of a file that has no vertex, and as many levels as there may be."""
    n = 1 if classes.size == 2 else classes.size
    parts = describe(classes, b"", np.linspace(0, 1, 27, dtype=np.float32), np.linspace(0, 1, n, dtype=np.float32))
    return container.size("text", *parts, compress=True) + _SLACK


def split_numbers(numbers: NDArray[Any], n_scores: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the levels and the bias of a file."""
    if numbers.dtype != np.float32 or numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError("levels and bias should be one row of finite numbers")
    levels, bias = numbers[n_scores:], numbers[:n_scores]
    if not 1 <= levels.size <= _MOST_LEVELS or (levels[:-1] >= levels[1:]).any():
        raise ValueError(f"{levels.size} levels should be at least 1 and at most {_MOST_LEVELS}, and rise")
    return levels, bias
