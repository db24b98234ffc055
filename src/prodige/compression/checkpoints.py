"""Checkpoints: a fit leaves behind what it takes to go on, so that nothing is lost when its processes are killed.

What a fit knows between two steps is small: positions of hubs, codes and lengths, and where its random numbers are.
Distances are measured again. Every so many seconds that goes to a file, in one step, so that there is always a whole
one. All ranks know the same between steps, so the first one writes for all, and any number of them can go on from it.

A file also says which fit it is of: the settings, and a digest of the data that does not depend on how many processes
share them. One of another fit is refused. A file that cannot be written, as on a full disk, is no reason to end a fit:
the one before stays, and a warning says so.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige._validation import check_number
from prodige.graph import container
from prodige.graph.atomic import StrPath, as_text
from prodige.graph.header import shortened
from prodige.graph.reading import NewerError
from prodige.ranks import ALONE, Ranks

VERSION = 1

# The state of random numbers before the fit: beside the arrays of a state.
_KEYS, _PLACE = "random keys", "random place"


class State(NamedTuple):
    """What a fit knows between two steps.

    Attributes
    ----------
    stage : str
        Which of its stages it is in.
    content : mapping
        What JSON can hold.
    arrays : mapping of str to ndarray
    """

    stage: str
    content: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


class Fit(NamedTuple):
    """Which fit a checkpoint is of.

    Attributes
    ----------
    settings : dict
        Parameters that the result depends on, by name.
    data : dict
        Numbers of items and features, and a digest.
    """

    settings: dict[str, Any]
    data: dict[str, Any]


class Checkpoint:
    """Where a fit goes on from, and what it leaves behind.

    Parameters
    ----------
    path : str or path-like, optional
        The file; nothing is written where it is left out.
    interval : float
        Seconds between two of them, at least; they are written between two steps.
    fit : Fit, optional
    ranks : Ranks, optional
    clock : callable
        Seconds.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from prodige.compression.checkpoints import Checkpoint, Fit, State
    >>> fit = Fit({"bits_per_item": 64}, {"n_items": 3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(f"{folder}/fit.checkpoint", 0.0, fit)
    ...     _ = checkpoint.begin(np.random.RandomState(0))
    ...     checkpoint.offer(lambda: State("sweeps", {"n_sweeps": 2}, {"codes": np.zeros(3)}))
    ...     again = Checkpoint(f"{folder}/fit.checkpoint", 0.0, fit)
    ...     _ = again.begin(np.random.RandomState(1), resume=True)
    >>> again.state("sweeps").content
    {'n_sweeps': 2}
    """

    def __init__(
        self,
        path: StrPath | None,
        interval: float,
        fit: Fit | None = None,
        ranks: Ranks = ALONE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.interval = interval
        self.fit = Fit({}, {}) if fit is None else fit
        self.ranks = ranks
        self._clock = clock
        self._last = clock()
        self._found: State | None = None
        self._seed: dict[str, NDArray[Any]] = {}

    @classmethod
    def none(cls) -> Checkpoint:
        """Return one that there is nothing in and nothing goes to."""
        return cls(None, 0.0)

    def begin(self, random: np.random.RandomState, resume: bool = False) -> np.random.RandomState:
        """Return the random numbers that the fit begins with: those of the first rank, or of the fit it goes on from.

        Parameters
        ----------
        random : RandomState
        resume : bool
            Whether to go on from the file, if it is there.

        Raises
        ------
        ValueError
            If the file is damaged, no checkpoint, or of another fit.
        """
        is_there = resume and self.path is not None and os.path.exists(self.path)
        self._found, self._seed = self.ranks.first(lambda: self._read() if is_there else (None, seed_of(random)))
        if self._found is None and self.ranks.size == 1:
            return random
        shared = np.random.RandomState()
        shared.set_state(("MT19937", self._seed[_KEYS], int(self._seed[_PLACE][0])))
        return shared

    def state(self, stage: str) -> State | None:
        """Return what the fit goes on from, if that is in a given stage."""
        return self._found if self._found is not None and self._found.stage == stage else None

    def offer(self, make: Callable[[], State]) -> None:
        """Write what the fit knows if it is time to; all ranks ask at the same steps.

        Parameters
        ----------
        make : callable
            Returns the state; called on all ranks, or on none.
        """
        if self.path is None or not self.ranks.first(lambda: self._clock() >= self._last + self.interval):
            return
        state = make()
        if self.ranks.rank == 0:
            self._write(self.path, state)
        self._last = self._clock()

    def _write(self, path: StrPath, state: State) -> None:
        content = {
            "version": VERSION,
            "settings": self.fit.settings,
            "data": self.fit.data,
            "stage": state.stage,
            "state": dict(state.content),
        }
        try:
            container.write(path, "checkpoint", content, {**state.arrays, **self._seed})
        except OSError as error:
            warnings.warn(
                f"checkpoint {as_text(path)!r} cannot be written ({error.strerror or error}); the one before stays as "
                "it was, and the fit goes on",
                UserWarning,
                stacklevel=2,
            )

    def _read(self) -> tuple[State, dict[str, NDArray[Any]]]:
        """Return what the file holds: the state, and the random numbers from before the fit."""
        assert self.path is not None
        fit, state, seed = container.open_as(self.path, "checkpoint", decode)
        self._compare(fit)
        return state, seed

    def _compare(self, fit: Fit) -> None:
        """Refuse a checkpoint of another fit, and say what differs."""
        for what, here, there in zip(Fit._fields, self.fit, fit, strict=True):
            for name in sorted({*here, *there}):
                if here.get(name) != there.get(name):
                    found, own = shortened(there.get(name)), shortened(here.get(name))
                    raise ValueError(
                        f"checkpoint {as_text(self.path or '')!r} is of another fit: {name} is {found} there and {own} "
                        f"here; give the same {what}, or another file"
                    )


def decode(contents: container.Contents) -> tuple[Fit, State, dict[str, NDArray[Any]]]:
    """Return what a file holds: which fit it is of, the state, and the random numbers from before the fit."""
    content, arrays = contents.content, dict(contents.arrays)
    if content["version"] != VERSION:
        raise NewerError(f"it is a checkpoint of version {shortened(content['version'])}, and {VERSION} is known here")
    seed = {name: arrays.pop(name) for name in (_KEYS, _PLACE)}
    if seed[_KEYS].shape != (624,) or seed[_PLACE].shape != (1,):
        raise ValueError("it does not say what random numbers it began with")
    if not isinstance(content["stage"], str) or not all(
        isinstance(content[name], dict) for name in ("settings", "data", "state")
    ):
        raise ValueError("it does not say where the fit was")
    return Fit(content["settings"], content["data"]), State(content["stage"], content["state"], arrays), seed


def seed_of(random: np.random.RandomState) -> dict[str, NDArray[Any]]:
    """Return the state of random numbers."""
    _, keys, place, *_ = random.get_state(legacy=True)
    return {_KEYS: np.asarray(keys, np.uint32), _PLACE: np.array([place], np.int64)}


def check_checkpoint(path: Any, interval: Any, resume: Any) -> None:
    """Refuse a place that no checkpoint can be written to, before the fit rather than after an hour of it."""
    if not isinstance(resume, (bool, np.bool_)):
        raise TypeError(f"resume must be True or False, got {resume!r}")
    check_number("checkpoint_interval", interval, 0)
    if path is None:
        if resume:
            raise ValueError("resume = True needs a checkpoint to go on from; give its path as checkpoint")
        return
    name = as_text(path)
    if os.path.isdir(name):
        raise ValueError(f"checkpoint = {name!r} is a directory; name a file in it")
    if not os.path.isdir(os.path.dirname(os.path.realpath(name))):
        raise ValueError(f"checkpoint = {name!r} is in no directory that is there; make it first")
