"""What a command does when something goes wrong that users can put right: one line on stderr, no traceback.

Exit codes: 1 if a file or its contents are at fault or an optional package is missing, 2 for wrong usage (raise
:class:`typer.BadParameter`), 130 after Ctrl-C, 143 if asked to terminate. All other exceptions are mistakes of ours and
keep their traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from prodige.interrupts import working


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn expected errors into a message and an exit code; for a block, or as a decorator below ``app.command``.

    Examples
    --------
    >>> import typer
    >>> from prodige.cli.errors import clean_errors
    >>> @clean_errors()
    ... def command():
    ...     open("no such file")
    >>> try:
    ...     command()
    ... except typer.Exit as leaving:
    ...     print(leaving.exit_code)
    1
    """
    try:
        if sys.stdout is None:  # before the work: afterwards there would be nowhere to put the answer
            raise OSError("standard output is closed; send it to a file or to /dev/null")
        with working():
            yield
            sys.stdout.flush()  # a closed pipe shows here, not at the end of the process
    except BrokenPipeError:
        raise  # typer leaves quietly: whoever read our output has seen enough
    except KeyboardInterrupt:
        raise typer.Exit(130) from None  # 128 + SIGINT, as shells count
    except (OSError, ValueError, MemoryError, ImportError) as error:
        if isinstance(error, ImportError) and (error.name or "").split(".")[0] == "prodige":
            raise  # not a package to install but a part of this one
        typer.echo(f"Error: {printable(message(error))}", err=True)
        raise typer.Exit(1) from None


def message(error: Exception) -> str:
    """Say what happened, without Python's own words around it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "not enough memory"
    return str(error) or type(error).__name__


def printable(text: str) -> str:
    r"""Return text for one line of a terminal: line ends and control characters become escapes.

    Names and metadata come from files, and a terminal obeys what it is sent.

    Examples
    --------
    >>> from prodige.cli.errors import printable
    >>> print(printable("Ada\x1b[2J"))
    Ada\x1b[2J
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
