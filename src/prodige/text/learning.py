"""A graph of words from texts: candidates, the best settings, all texts; and what is left if that is cut short."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prodige.progress import Bar, Monitor, Record, tell
from prodige.text.fitting import Problem, Settings, adjust
from prodige.text.ngrams import Candidates, Orders
from prodige.text.ratios import Penalty, n_scores
from prodige.text.selection import Selection, Trial
from prodige.text.wordgraph import WordGraph

# Where the search begins; most data sets end near it.
_START = Settings(Orders(longest=3, beginnings=False, skips=False), Penalty(ridge=1e-5, dropout=1e-3), n_levels=12)
# What one text alone has is left out, unless there are hardly more texts than that.
_FEW_TEXTS = 200
# The most weights that are fitted at once, and the most with a score for each class, which are cheaper one by one.
_MOST_WEIGHTS = 700_000
_MOST_BY_CLASS = 2_500_000
# The last fit takes longer than a trial, which has fewer texts.
_LAST_FIT = 1.5
# Trials that a search takes, about: what a bar is drawn to.
_USUAL_TRIALS = 10


@dataclass(frozen=True)
class Learned:
    """A graph, and the trial its settings come from; None where there were too few texts to set any aside."""

    graph: WordGraph
    settings: Settings
    trial: Trial | None


def learn(
    documents: list[str],
    classes: NDArray[np.int64],
    n_classes: int,
    weights: NDArray[np.float64],
    room: int,
    monitor: Monitor,
    n_jobs: int | None,
) -> Learned:
    """Return the graph of texts that fits into ``room`` bytes.

    Ctrl-C and the end of the time leave the graph of the best trial, which has seen four texts in five; before there is
    one, Ctrl-C is passed on.
    """
    problem = Problem(
        find_candidates(documents, n_classes), classes, n_classes, weights, room, n_jobs, lambda: monitor.is_over
    )
    with Bar(total=_USUAL_TRIALS, disable=monitor.verbose <= 0, unit="trial") as bar:
        selection = Selection(problem, documents, lambda trial: report(trial, monitor, bar))
        try:
            selection.run(_START)
            best = selection.best
            if best is not None and (monitor.is_over or monitor.stopped != "finished"):
                return Learned(best.graph, best.settings, best)
            bar.set_description("all texts")
            graph = problem.fit(_START if best is None else best.settings)
        except KeyboardInterrupt:
            best = selection.best
            if best is None:
                raise
            monitor.stopped = "interrupt"
            return Learned(best.graph, best.settings, best)
    if best is None:
        return Learned(graph, _START, None)
    return Learned(adjust(graph, best.temperature, np.zeros(graph.bias.size)), best.settings, best)


def report(trial: Trial, monitor: Monitor, bar: Bar) -> bool:
    """Note a trial in the history; return whether the search has to end, also for lack of time for another trial."""
    last = monitor.history[-1].seconds if monitor.history else 0.0
    record = Record(
        len(monitor.history),
        min(len(monitor.history) / _USUAL_TRIALS, 1.0),
        trial.loss,
        monitor.seconds,
        n_edges=trial.graph.vertex.size,
        stage="validation",
        validation_loss=trial.loss,
        accuracy=trial.accuracy,
    )
    monitor.history.append(record)
    bar.set_postfix(loss=f"{trial.loss:.4g}", accuracy=f"{trial.accuracy:.4f}", refresh=False)
    bar.update()
    if tell(monitor.callbacks, record):
        monitor.stopped = "callback"
    seconds = record.seconds - last
    is_late = monitor.max_time is not None and record.seconds + (1 + _LAST_FIT) * seconds > monitor.max_time
    return is_late or monitor.stopped != "finished"


def find_candidates(documents: list[str], n_classes: int) -> Candidates:
    """Return the features of texts that may become vertices: as many as can be fitted at once, the most frequent."""
    min_texts = 1 if len(documents) < _FEW_TEXTS else 2
    candidates = Candidates.find(documents, min_texts)
    if not candidates.features.n_columns:
        raise ValueError(
            f"texts have no word that {min_texts} or more of the {len(documents)} texts have; give other texts"
        )
    most = _MOST_WEIGHTS if n_classes == 2 else _MOST_BY_CLASS // n_scores(n_classes)
    if candidates.features.n_columns <= most:
        return candidates
    frequencies = np.sort(candidates.features.frequencies)[::-1]
    return Candidates.find(documents, int(frequencies[most]) + 1)
