"""Files that are replaced in one step: a reader never sees half of one.

Writing goes to a second file in the same directory, a draft, that takes the place of the first once it is complete and
on the disk. A draft is locked for as long as somebody writes to it; what killed processes leave is removed by the next
one that writes to the same place.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

StrPath = str | os.PathLike[str]


@contextmanager
def replacing(name: str) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``name`` when the block ends well, and leaves no trace when it does not.

    A process that is killed leaves a trace; the next one that writes to the same place removes it.

    Examples
    --------
    >>> import os, tempfile
    >>> from prodige.graph.atomic import replacing
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with replacing(f"{directory}/notes.txt") as file:
    ...         _ = file.write(b"All of it.")
    ...     os.listdir(directory)
    ['notes.txt']
    """
    target = os.path.realpath(name)  # a link stays a link, as with open()
    mode = mode_of_existing(name, target)
    try:
        with draft(target) as temporary:
            with open(temporary, "wb") as file:
                if mode is not None:
                    os.chmod(temporary, mode)  # while it is empty: what is private stays so
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from None  # the name the caller knows
    flush_directory(os.path.dirname(target))


@contextmanager
def draft(target: str) -> Iterator[str]:
    """Make an empty file beside another for as long as the block lasts, and remove what others have left behind.

    It is locked meanwhile. A lock ends with its process, however that ends: a draft without one belongs to nobody.
    """
    directory, base = os.path.split(target)
    prefix = (
        f".prodige-{hashlib.sha256(os.fsencode(base)).hexdigest()[:16]}-"  # the name itself may be as long as can be
    )
    path, descriptor = new_draft(directory, prefix)
    try:
        sweep(directory, prefix)
        yield path
    finally:  # an interrupt leaves nothing behind either
        with suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def new_draft(directory: str, prefix: str) -> tuple[str, int]:
    """Make and lock an empty file; return its path and the descriptor that holds the lock."""
    while True:
        path = os.path.join(directory, f"{prefix}{secrets.token_hex(8)}.tmp")
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        with suppress(OSError):  # where files cannot be locked nothing is swept either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # another process swept it before it was locked


def sweep(directory: str, prefix: str) -> None:
    """Remove drafts that nobody holds a lock on."""
    with suppress(OSError):
        for name in os.listdir(directory):
            if name.startswith(prefix) and name.endswith(".tmp"):
                remove_unlocked(os.path.join(directory, name))


def remove_unlocked(path: str) -> None:
    """Remove a file unless somebody holds a lock on it, or it may not be."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(descriptor)


def mode_of_existing(name: str, target: str) -> int | None:
    """Return the permissions of the file to be replaced, None if there is none; refuse what must not be replaced."""
    if not os.path.basename(name) or os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise ValueError(f"path {name!r} is a pipe or a device; save to a file instead")
    if not os.access(target, os.W_OK):  # a rename would not mind, the owner would
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return stat.S_IMODE(mode)


def flush_directory(directory: str) -> None:
    """Put the new name on the disk, where the system can; the file is in place, so that failing is no error."""
    if os.name != "posix":
        return
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def as_text(path: StrPath) -> str:
    """Return a path as a string."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(f"path must be a str or path-like, got {path!r} of type {type(path).__name__}") from None
