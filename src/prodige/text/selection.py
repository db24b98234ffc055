"""Which sequences, how much regularisation and how many levels: decided on texts set aside.

Neighbours in a file often come from one source, such as reviews of one film, and a model that has seen the one knows
the other. So texts are set aside in blocks of neighbours, class by class. Where neighbours have nothing in common this
is as good as choosing at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prodige.text.fitting import Problem, Settings, adjust
from prodige.text.ratios import find_temperature, loss_and_slopes
from prodige.text.wordgraph import WordGraph

# One text in so many is set aside, in so many blocks of each class.
_SHARE = 5
_BLOCKS = 20
# Texts set aside that are enough to decide by; below, every text is set aside once.
_ENOUGH_TEXTS = 6000
# Factors between penalties that are tried, and what these lie between.
_RIDGE_STEP = 3.0
_RIDGES = (1e-7, 1e-1)
_DROPOUT_STEP = 4.0
_DROPOUTS = (1e-6, 1.0)
# Numbers of levels that are tried.
_LEVELS = (4, 6, 8, 12, 18, 27)

Change = Callable[[Settings, int], Settings | None]


@dataclass(frozen=True)
class Trial:
    """What came of some settings on texts set aside.

    Attributes
    ----------
    settings : Settings
    loss : float
        Cross-entropy, after the temperature.
    accuracy : float
    temperature : float
        What scores are to be multiplied with.
    graph : WordGraph
        Of the first fold, with its temperature.
    """

    settings: Settings
    loss: float
    accuracy: float
    temperature: float
    graph: WordGraph


class Selection:
    """A search among settings; ``best`` is the best so far at any time.

    Parameters
    ----------
    problem : Problem
        All texts to learn from.
    documents : list of str
        The texts themselves, as :func:`prodige.text.tokens.prepare` returns them.
    report : callable
        Gets every trial; returns True to end the search.
    """

    def __init__(self, problem: Problem, documents: list[str], report: Callable[[Trial], bool]) -> None:
        self.problem = problem
        self.report = report
        self.folds = [(problem.take(learned), held_out) for learned, held_out in folds(problem.classes)]
        self.documents = [[documents[text] for text in held_out] for _, held_out in self.folds]
        self.best: Trial | None = None
        self._tried: set[Settings] = set()
        self._is_over = not self.folds

    def run(self, start: Settings) -> None:
        """Look for the best settings, one kind of them after the other."""
        self._attempt(start)
        self._climb(next_dropout, 1, -1)
        self._climb(next_ridge, 1, -1)
        self._climb(other_beginnings, 1)
        self._climb(other_skips, 1)
        self._climb(next_order, -1)
        self._climb(next_dropout, 1, -1)
        self._climb(next_ridge, 1, -1)
        self._climb(next_levels, 1, -1)

    def _climb(self, change: Change, *directions: int) -> None:
        """Go on in a direction as long as it gets better; where it does not at once, try the next one."""
        for direction in directions:
            is_better = False
            while self.best is not None and self._attempt(change(self.best.settings, direction)):
                is_better = True
            if is_better:
                return

    def _attempt(self, settings: Settings | None) -> bool:
        """Fit settings to all folds; return whether they are the best."""
        if settings is None or settings in self._tried or self._is_over:
            return False
        self._tried.add(settings)
        graphs: list[WordGraph] = []
        for part, _ in self.folds:  # the first one says how many edges there is room for
            graphs.append(part.attempt(settings, graphs[0].vertex.size if graphs else None))
        n_jobs = self.problem.n_jobs
        scores = np.concatenate(
            [graph.scores(documents, n_jobs) for graph, documents in zip(graphs, self.documents, strict=True)]
        )
        held_out = np.concatenate([texts for _, texts in self.folds])
        trial = judge(settings, graphs[0], scores, self.problem.classes[held_out], self.problem.weights[held_out])
        is_best = self.best is None or trial.loss < self.best.loss
        if is_best:
            self.best = trial
        self._is_over = self.report(trial) or self.problem.is_over()
        return is_best


def judge(
    settings: Settings,
    graph: WordGraph,
    scores: NDArray[np.float64],
    classes: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> Trial:
    """Return what scores of texts set aside say of settings."""
    temperature = find_temperature(scores, classes, weights)
    loss, _ = loss_and_slopes(temperature * scores, classes, weights)
    found = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.int64)
    accuracy = float(np.mean(found == classes))
    return Trial(settings, loss, accuracy, temperature, adjust(graph, temperature, np.zeros(scores.shape[1])))


def folds(classes: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield texts to learn from and texts set aside: one time where they are many, five times where they are few.

    Every class is among those to learn from; one with a single text is never set aside.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.selection import folds
    >>> [held_out.tolist() for _, held_out in folds(np.repeat([0, 1], 5))]
    [[0, 5], [1, 6], [2, 7], [3, 8], [4, 9]]
    """
    order = np.argsort(classes, kind="stable")
    counts = np.bincount(classes)
    place = np.arange(classes.size) - np.repeat(np.cumsum(counts) - counts, counts)
    size = np.repeat(counts, counts)
    # The number of a text's block; blocks of a class are dealt out to the folds in turn.
    block = place * np.minimum(_BLOCKS, size) // size
    fold = np.empty(classes.size, dtype=np.int64)
    fold[order] = np.where(size > 1, block % _SHARE, -1)
    n_folds = int(np.clip(np.ceil(_ENOUGH_TEXTS * _SHARE / classes.size), 1, _SHARE))
    for number in range(n_folds):
        held_out = np.flatnonzero(fold == number)
        if held_out.size:
            yield np.flatnonzero(fold != number), held_out


# -- steps of the search; None where there is no further one ---------------------------------------------------------


def next_ridge(settings: Settings, direction: int) -> Settings | None:
    """Return settings with a stronger penalty on all weights, or a weaker one."""
    ridge = settings.penalty.ridge * _RIDGE_STEP**direction
    least, most = _RIDGES
    return replace(settings, penalty=settings.penalty._replace(ridge=ridge)) if least <= ridge <= most else None


def next_dropout(settings: Settings, direction: int) -> Settings | None:
    """Return settings with a stronger penalty on what scores vary by, or a weaker one."""
    dropout = settings.penalty.dropout * _DROPOUT_STEP**direction
    least, most = _DROPOUTS
    return replace(settings, penalty=settings.penalty._replace(dropout=dropout)) if least <= dropout <= most else None


def other_beginnings(settings: Settings, _: int) -> Settings:
    """Return settings with beginnings of words, or without."""
    return replace(settings, orders=settings.orders._replace(beginnings=not settings.orders.beginnings))


def other_skips(settings: Settings, _: int) -> Settings:
    """Return settings with skips, or without."""
    return replace(settings, orders=settings.orders._replace(skips=not settings.orders.skips))


def next_order(settings: Settings, direction: int) -> Settings | None:
    """Return settings with longer sequences, or shorter ones."""
    longest = settings.orders.longest + direction
    return replace(settings, orders=settings.orders._replace(longest=longest)) if 1 <= longest <= 3 else None


def next_levels(settings: Settings, direction: int) -> Settings | None:
    """Return settings with more levels, or fewer."""
    place = _LEVELS.index(settings.n_levels) + direction
    return replace(settings, n_levels=_LEVELS[place]) if 0 <= place < len(_LEVELS) else None
