"""Reading files with suspicion: from front to back, never more than there is, with a checksum at the end."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from io import BufferedReader
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.graph.atomic import StrPath, as_text

DIGEST_BYTES = hashlib.sha256().digest_size

NEWER = "upgrade prodige to read it"
DAMAGED = "the file is damaged or was not written by prodige: restore a copy, or save it again"


class FileFormatError(ValueError):
    """A file is not a sound ``.prodige`` file; the message says which, what is wrong, and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from prodige import Graph
    >>> from prodige.graph import reading
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "notes.txt")
    ...     _ = path.write_text("Not a graph.")
    ...     try:
    ...         Graph.load(path)
    ...     except reading.FileFormatError as error:
    ...         print(str(error).partition(": ")[2])
    it does not start like one; check that this is the right file
    """


class NewerError(ValueError):
    """A sound file has something that this version does not know; the message says what.

    Examples
    --------
    >>> from prodige.graph.reading import NewerError
    >>> raise NewerError("its gauge, 'logarithm', is unknown to this version")
    Traceback (most recent call last):
        ...
    prodige.graph.reading.NewerError: its gauge, 'logarithm', is unknown to this version
    """


class Reader:
    """A file from front to back: knows how much is left before it reads, hashes what it has read."""

    def __init__(self, file: BufferedReader, name: str, n_bytes: int) -> None:
        self._file = file
        self._name = name
        self._digest = hashlib.sha256()
        self.n_bytes = n_bytes
        self.left = n_bytes - DIGEST_BYTES

    def refusal(self, problem: str, remedy: str) -> FileFormatError:
        """Return the error that says why this file is not read."""
        return refusal(self._name, problem, remedy)

    def take(self, n_bytes: int) -> bytes:
        """Return the next bytes."""
        return self._fill(np.empty(self._claim(n_bytes), np.uint8)).tobytes()

    def column(self, dtype: str, size: int) -> NDArray[Any]:
        """Return the next bytes as an array of native numbers."""
        native = np.dtype(dtype)
        self._claim(size * native.itemsize)
        column = np.empty(size, native.newbyteorder("<"))
        self._fill(column.view(np.uint8))
        return column.astype(native, copy=False)

    def skip(self) -> None:
        """Pass over everything before the checksum, in little memory."""
        while self.left > 0:
            self.take(min(self.left, 2**20))

    def finish(self) -> None:
        """Compare the checksum."""
        if self._file.read(DIGEST_BYTES + 1) != self._digest.digest():
            raise self.refusal("its checksum does not match its contents", DAMAGED)

    def _claim(self, n_bytes: int) -> int:
        if n_bytes > self.left:
            raise self.refusal(f"it ends too early, after {self.n_bytes} bytes", DAMAGED)
        self.left -= n_bytes
        return n_bytes

    def _fill(self, target: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self._file.readinto(target.data) != target.size:
            raise self.refusal("it became shorter while it was read", "try again when nobody writes to it")
        self._digest.update(target.data)
        return target


def refusal(name: str, problem: str, remedy: str) -> FileFormatError:
    """Return the error that says why a file is not read."""
    return FileFormatError(f"{name!r} cannot be read as a .prodige file: {problem}; {remedy}")


def open_regular(path: StrPath) -> BufferedReader:
    """Open a file for reading; what is no file is refused at once, also a pipe that nobody writes to.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    FileFormatError
        If it is a directory, a pipe or a device.

    Examples
    --------
    >>> import os
    >>> from prodige.graph import reading
    >>> try:
    ...     reading.open_regular(os.devnull)
    ... except reading.FileFormatError as error:
    ...     print(str(error).partition(": ")[2])
    it is a pipe or a device; give the name of a file
    """
    name = as_text(path)
    at_once = getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer, opened in the usual way, would wait for one
    kind = "a pipe or a device"
    try:
        file = open(name, "rb", opener=lambda name, flags: os.open(name, flags | at_once))  # noqa: SIM115
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
    except IsADirectoryError:
        kind = "a directory"
    except OSError as error:
        if error.errno != errno.ENXIO:  # that of a socket, or of a device that is not there
            raise
    raise FileFormatError(f"{name!r} cannot be read as a file: it is {kind}; give the name of a file")
