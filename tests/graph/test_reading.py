"""What is no file is not opened, and errors travel."""

from __future__ import annotations

import os
import pickle
import socket
from pathlib import Path

import pytest

from prodige.graph.reading import FileFormatError, open_regular, refusal


def test_only_regular_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: a pipe that nobody writes to would be waited for."""
    monkeypatch.chdir(tmp_path)  # the names of sockets are short
    pipe, link, socket_path = Path("pipe"), Path("link"), Path("socket")
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(socket_path))
        for path in (pipe, link, socket_path, Path(os.devnull)):
            with pytest.raises(FileFormatError, match=f"'{path}' cannot be read as a file: it is a pipe or a device"):
                open_regular(path)
    with pytest.raises(FileFormatError, match="cannot be read as a file: it is a directory; give the name of a file"):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        open_regular(tmp_path / "nowhere")
    (tmp_path / "file").write_bytes(b"some bytes")
    (tmp_path / "other").symlink_to("file")
    for name in ("file", "other"):
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"some bytes"


def test_the_error_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(refusal("x", "it is empty", "fill it")))
    assert isinstance(error, FileFormatError)
    assert str(error) == "'x' cannot be read as a .prodige file: it is empty; fill it"
