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

# Where random numbers were before the fit: beside the arrays of a state.
_SEED = "seed"


class State(NamedTuple):
    """What a stage of a fit knows between two steps.

    Attributes
    ----------
    content : mapping
        What JSON can hold.
    arrays : mapping of str to ndarray
    """

    content: Mapping[str, Any]
    arrays: dict[str, NDArray[Any]]


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
    ...     checkpoint.offer("sweeps", lambda: State({"n_sweeps": 2}, {"codes": np.zeros(3)}))
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
        self._stages: dict[str, State] = {}
        self._seed = np.empty(0, np.uint32)

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
        self._stages, self._seed = self.ranks.first(lambda: self._read() if is_there else ({}, pack_random(random)))
        return random if not self._stages and self.ranks.size == 1 else unpack_random(self._seed)

    def state(self, stage: str) -> State | None:
        """Return what a stage goes on from; None where it was not begun."""
        return self._stages.get(stage)

    def offer(self, stage: str, make: Callable[[], State], last: bool = False) -> None:
        """Write what the fit knows, if it is time to.

        Parameters
        ----------
        stage : str
            Which part of the fit it is that knows; what earlier ones knew when they ended is written as well.
        make : callable
            Returns what it knows, the same on all ranks.
        last : bool
            Whether this is the last step of the stage.
        """
        if self.path is None or self.ranks.rank != 0:
            return
        is_due = self._clock() >= self._last + self.interval
        if is_due or last:
            self._stages[stage] = make()
        if is_due:
            self._write(self.path)
            self._last = self._clock()

    def _write(self, path: StrPath) -> None:
        content = {
            "version": VERSION,
            "settings": self.fit.settings,
            "data": self.fit.data,
            "stages": {stage: dict(state.content) for stage, state in self._stages.items()},
        }
        arrays = {
            f"{stage}.{name}": array for stage, state in self._stages.items() for name, array in state.arrays.items()
        }
        try:
            container.write(path, "checkpoint", content, {**arrays, _SEED: self._seed})
        except OSError as error:
            warnings.warn(
                f"checkpoint {as_text(path)!r} cannot be written ({error.strerror or error}); the one before stays as "
                "it was, and the fit goes on",
                UserWarning,
                stacklevel=2,
            )

    def _read(self) -> tuple[dict[str, State], NDArray[np.uint32]]:
        """Return what the file holds: states by their stages, and the random numbers from before the fit."""
        assert self.path is not None
        fit, stages, seed = container.open_as(self.path, "checkpoint", decode)
        self._compare(fit)
        return stages, seed

    def _compare(self, fit: Fit) -> None:
        """Refuse a checkpoint of another fit, and say what differs."""
        for what, here, there in zip(Fit._fields, self.fit, fit, strict=True):
            for name in [*here, *(name for name in there if name not in here)]:
                if here.get(name) != there.get(name):
                    found, own = shortened(there.get(name)), shortened(here.get(name))
                    raise ValueError(
                        f"checkpoint {as_text(self.path or '')!r} is of another fit: {name} is {found} there and {own} "
                        f"here; give the same {what}, or another file"
                    )


def decode(contents: container.Contents) -> tuple[Fit, dict[str, State], NDArray[np.uint32]]:
    """Return what a file holds: which fit it is of, its states, and the random numbers from before the fit."""
    content, arrays = contents.content, dict(contents.arrays)
    if content["version"] != VERSION:
        raise NewerError(f"it is a checkpoint of version {shortened(content['version'])}, and {VERSION} is known here")
    seed = arrays.pop(_SEED)
    unpack_random(seed)
    if not all(isinstance(content[name], dict) for name in ("settings", "data", "stages")):
        raise ValueError("it does not say of which fit it is, and where that was")
    stages = {stage: State(known, {}) for stage, known in content["stages"].items()}
    for name, array in arrays.items():
        stage, _, rest = name.partition(".")
        stages[stage].arrays[rest] = array
    return Fit(content["settings"], content["data"]), stages, seed


def pack_random(random: np.random.RandomState) -> NDArray[np.uint32]:
    """Return where random numbers are, as an array."""
    _, keys, place, *_ = random.get_state(legacy=True)
    return np.append(np.asarray(keys, np.uint32), np.uint32(place))


def unpack_random(packed: NDArray[Any]) -> np.random.RandomState:
    """Return random numbers that go on where others were.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.compression.checkpoints import pack_random, unpack_random
    >>> random = np.random.RandomState(3)
    >>> unpack_random(pack_random(random)).randint(100) == random.randint(100)
    True
    """
    if packed.shape != (625,) or packed.dtype != np.uint32 or packed[-1] > 624:
        raise ValueError(f"where random numbers are must be 625 numbers of 32 bits, got {packed.dtype} {packed.shape}")
    random = np.random.RandomState()
    random.set_state(("MT19937", packed[:-1].copy(), int(packed[-1]), 0, 0.0))
    return random


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
