"""What Ctrl-C and a request to terminate do to a command.

While a command is loaded there is nothing to lose, and an exception that begins in the middle of an import may be
swallowed, or be shown by whatever it met there: the process leaves at once. While a command works both signals become
exceptions, so that work can be kept and files that are half written are removed.

Only the command line changes what signals do, and fits that several processes share, for as long as they take
(:func:`deferred`); importing the library does not.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


def leave(number: int, frame: FrameType | None = None) -> None:
    """End the process with the code that shells give to a signal, and say so in one line."""
    os.write(2, b"Interrupted\n" if number == signal.SIGINT else b"Terminated\n")
    os._exit(128 + number)


def unwind(number: int, frame: FrameType | None = None) -> None:
    """End the process after whatever is open has been closed."""
    raise SystemExit(128 + number)


LEAVING: dict[signal.Signals, Handler] = {signal.SIGINT: leave, signal.SIGTERM: leave}
WORKING: dict[signal.Signals, Handler] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: unwind}
# Others are the will of somebody else: a program that ignores Ctrl-C in the background, or has handlers of its own.
_OURS = {leave, unwind, signal.default_int_handler, signal.SIG_DFL}


def handle(handlers: dict[signal.Signals, Handler]) -> dict[signal.Signals, Any]:
    """Set what signals do, and return what they did."""
    before = {number: signal.getsignal(number) for number in handlers}
    before = {number: handler for number, handler in before.items() if handler in _OURS}
    for number in before:
        signal.signal(number, handlers[number])
    return before


@contextmanager
def loading() -> Iterator[None]:
    """Leave at once if a signal comes while a command imports what it needs.

    Examples
    --------
    >>> from prodige.interrupts import loading
    >>> with loading():
    ...     import prodige.graph.graph
    """
    with handled(LEAVING):
        yield


@contextmanager
def working() -> Iterator[None]:
    """Let signals become exceptions: ``KeyboardInterrupt`` and ``SystemExit``.

    Examples
    --------
    >>> import signal
    >>> from prodige.interrupts import working
    >>> with working():
    ...     try:
    ...         signal.raise_signal(signal.SIGTERM)
    ...     except SystemExit as leaving:
    ...         print(leaving.code)
    143
    """
    with handled(WORKING):
        yield


@contextmanager
def deferred() -> Iterator[list[int]]:
    """Note Ctrl-C instead of raising it, for whoever asks at a better moment; one not asked for comes at the end.

    Examples
    --------
    >>> import signal
    >>> from prodige.interrupts import deferred
    >>> with deferred() as noted:
    ...     signal.raise_signal(signal.SIGINT)
    ...     noted.pop() == signal.SIGINT
    True
    """
    noted: list[int] = []
    with handled({signal.SIGINT: lambda number, frame: noted.append(number)}):
        yield noted
    if noted:
        raise KeyboardInterrupt


@contextmanager
def handled(handlers: dict[signal.Signals, Handler]) -> Iterator[None]:
    """Set what signals do for a while; not outside the main thread, which cannot."""
    from threading import current_thread, main_thread

    before = handle(handlers) if current_thread() is main_thread() else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
