"""How far a fit has come, who hears of it, and when it ends.

A run counts its steps, so a seed gives the same graph on the same machine. Only where a time limit is given does the
clock decide instead; the schedule then stretches or shrinks with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tqdm.auto import tqdm

# Setting up takes a small part of a run that is worth its while: the rest takes this many times as long.
_HURRY = 3.0


@dataclass(frozen=True)
class Record:
    """One step of a fit: what its callbacks get and what its history is made of.

    Fields that a fit has nothing to say about are None.

    Attributes
    ----------
    step : int
        From 0 on; in fits that learn by epochs, the epoch. Where a fit has several stages, each counts anew.
    progress : float
        Share of the fit, or of its stage, that was over when the step began.
    loss : float
        Of this step: the mean squared error of distances, or the cross-entropy of recommendations or classes.
    seconds : float
        Since the fit, or its stage, began.
    n_edges : int or None
        Of a product of graphs there are none.
    numbers_per_item : float or None
    learning_rate : float or None
    lambda_ : float or None
        Penalty on the number of edges.
    stage : str or None
        Name of the stage.
    validation_loss, accuracy : float or None
        On examples set aside.

    Examples
    --------
    >>> from prodige.progress import Record
    >>> Record(step=0, progress=0.0, loss=2.0, seconds=0.1).known()
    {'step': 0, 'progress': 0.0, 'loss': 2.0, 'seconds': 0.1}
    """

    step: int
    progress: float
    loss: float
    seconds: float
    n_edges: int | None = None
    numbers_per_item: float | None = None
    learning_rate: float | None = None
    lambda_: float | None = None
    stage: str | None = None
    validation_loss: float | None = None
    accuracy: float | None = None

    def known(self) -> dict[str, Any]:
        """Return the fields that the fit has something to say about, for a table or a file."""
        return {name: value for name, value in vars(self).items() if value is not None}


# The stage in which items that a fit was not made of get their places.
ALL_ITEMS = "all items"

Callback = Callable[[Record], Any]
IsOver = Callable[[], bool]
Stopped = Literal["finished", "callback", "interrupt"]
Result = TypeVar("Result")


class Bar(tqdm):  # type: ignore[misc,type-arg,unused-ignore]
    """A bar of tqdm without its monitor, a thread that tqdm starts even for bars that are not shown.

    Examples
    --------
    >>> from prodige.progress import Bar
    >>> with Bar(total=2, disable=True) as bar:
    ...     bar.monitor_interval
    0
    """

    monitor_interval: Any = 0


class Monitor:
    """Steps of a run, its history, callbacks and progress bar.

    Parameters
    ----------
    n_steps : int
        Length of the run.
    max_time : float, optional
        Seconds; replaces the number of steps as the measure of progress.
    spent : float
        Seconds that went by before the run; they count.
    callbacks : sequence of callable, optional
        Each is called with a :class:`Record` after every step; one that returns True ends the run.
    verbose : int
        Above 0 shows a progress bar.

    Examples
    --------
    >>> from prodige.progress import Monitor
    >>> monitor = Monitor(n_steps=2)
    >>> [progress for progress in monitor.run()]
    [0.0, 0.5]
    """

    def __init__(
        self,
        n_steps: int,
        max_time: float | None = None,
        spent: float = 0.0,
        callbacks: Sequence[Callback] | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_steps = n_steps
        self.max_time = max_time
        self.callbacks = check_callbacks(callbacks)
        self.verbose = verbose
        self.history: list[Record] = []
        self.stopped: Stopped = "finished"
        self.spent = spent
        self.until = 1.0
        self._start = time.perf_counter() - spent

    @property
    def seconds(self) -> float:
        """Seconds since the run began, with those spent before."""
        return time.perf_counter() - self._start

    @property
    def is_over(self) -> bool:
        """Whether the time is up; never where steps are counted."""
        return self.max_time is not None and self.seconds >= self.max_time

    @property
    def in_a_hurry(self) -> bool:
        """Whether the time left is no more than a few times what was spent so far: enough for a start, not for more."""
        return self.max_time is not None and self.max_time < (1 + _HURRY) * self.seconds

    def due(self, share: float) -> bool:
        """Whether this share of the time is up, or the run was stopped: what only makes the result better can wait."""
        return self.stopped != "finished" or (self.max_time is not None and self.seconds >= share * self.max_time)

    def prepared(self, until: float = 1.0) -> None:
        """Count progress from now on, what went by being preparation, until this share of the time is up."""
        self.spent = self.seconds
        self.until = until

    def insist(self, function: Callable[[], Result]) -> Result:
        """Return what a function makes. Ctrl-C ends the run, but not without it: it is made once more, only once.

        Examples
        --------
        >>> from prodige.progress import Monitor
        >>> monitor, presses = Monitor(n_steps=2), [KeyboardInterrupt]
        >>> def work():
        ...     if presses:
        ...         raise presses.pop()
        ...     return "what the run was for"
        >>> monitor.insist(work), monitor.stopped
        ('what the run was for', 'interrupt')
        """
        if self.stopped == "interrupt":
            return function()
        try:
            return function()
        except KeyboardInterrupt:
            self.stopped = "interrupt"
            return function()

    def run(self, end: float = 1.0, step: int = 0) -> Iterator[float]:
        """Yield the progress before each step until ``end``, or until a callback or Ctrl-C stops the run.

        Where a run goes on from a checkpoint it begins with a later step.
        """
        with Bar(total=100, disable=self.verbose <= 0, unit="%", bar_format="{l_bar}{bar}| {elapsed}{postfix}") as bar:
            while self.stopped == "finished" and (progress := self._progress(step)) < end:
                yield progress
                step += 1
                if self.history:
                    last = self.history[-1]
                    bar.set_postfix(loss=f"{last.loss:.5g}", numbers=f"{last.numbers_per_item:.2f}", refresh=False)
                bar.update(round(100 * progress) - bar.n)
            bar.update(100 - bar.n)

    def _progress(self, step: int) -> float:
        if self.max_time is None:
            return step / self.n_steps
        room = self.until * self.max_time - self.spent
        return (self.seconds - self.spent) / room if room > 0 else 1.0

    def record(
        self, progress: float, loss: float, n_edges: int | None, numbers_per_item: float, lambda_: float | None = None
    ) -> None:
        """Note a step in the history and tell the callbacks."""
        record = Record(len(self.history), progress, loss, self.seconds, n_edges, numbers_per_item, lambda_=lambda_)
        self.history.append(record)
        if tell(self.callbacks, record):
            self.stopped = "callback"


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Return the callbacks; None stands for none.

    Examples
    --------
    >>> from prodige.progress import check_callbacks
    >>> check_callbacks([3])
    Traceback (most recent call last):
        ...
    TypeError: callbacks must be functions of a prodige.progress.Record, got 3
    """
    if callable(callbacks):
        raise TypeError("callbacks must be a sequence of functions, got one; put it into a list")
    found = () if callbacks is None else tuple(callbacks)
    for callback in found:
        if not callable(callback):
            raise TypeError(f"callbacks must be functions of a prodige.progress.Record, got {callback!r}")
    return found


def tell(callbacks: Sequence[Callback], record: Record) -> bool:
    """Call every callback, whatever others say; return whether one of them ends the fit."""
    answers = [callback(record) for callback in callbacks]
    return any(answers)


def never() -> bool:
    """Where no time limit is set, it is never over."""
    return False


def patience(monitor: Monitor | None, share: float) -> IsOver:
    """Return what tells whether this share of the time limit went by from now on, or all of it."""
    if monitor is None or monitor.max_time is None:
        return never
    end = min(monitor.seconds + share * monitor.max_time, monitor.max_time)
    return lambda: monitor.seconds >= end
