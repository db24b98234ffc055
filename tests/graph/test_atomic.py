"""Saving is all or nothing, and what killed processes leave is removed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prodige import Graph
from prodige.graph.atomic import replacing, sweep


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.prodige"


@pytest.fixture
def graph() -> Graph:
    return Graph.from_edges([0, 1, 2, 3, 0], [4, 4, 4, 4, 1], [1, 1, 2, 3, 0.5], n_items=4)


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException) -> Iterator[None]:
    """Let a call of the operating system fail while a file is saved."""

    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        if call == "write":
            # What a file is asked to write first is less than its buffer: the disk is full when that is emptied.
            original = open

            class Full:
                def __init__(self, *arguments: Any) -> None:
                    self.file = original(*arguments)
                    self.written = 0

                def __enter__(self) -> Any:
                    return self

                def __exit__(self, *arguments: Any) -> None:
                    self.file.close()

                def write(self, data: bytes) -> int:
                    self.written += 1
                    if self.written == 3:
                        raise error
                    return int(self.file.write(data))

            patch.setattr("builtins.open", Full)
        else:
            patch.setattr(os, call, fail)
        yield


FAILURES = [
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    OSError(errno.EIO, os.strerror(errno.EIO), "a name nobody knows"),
    KeyboardInterrupt(),
    MemoryError(),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: repr(error))
@pytest.mark.parametrize("call", ["write", "fsync", "replace", "chmod"])
def test_a_failed_save_leaves_the_old_file(
    path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    graph.save(path, {"which": "old"})
    old = path.read_bytes()
    other = Graph.from_edges([0], [1], [1])
    with failing(monkeypatch, call, error), pytest.raises(type(error)) as caught:
        other.save(path)
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == [path.name]
    if isinstance(caught.value, OSError):
        assert caught.value.filename == str(path)
    other.save(path)
    assert Graph.load(path) == other


def test_a_failed_first_save_leaves_nothing(path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("write", "fsync", "replace"):
        with failing(monkeypatch, call, FAILURES[0]), pytest.raises(OSError, match="No space left"):
            graph.save(path)
        assert os.listdir(path.parent) == []


def test_the_contents_are_on_the_disk_before_the_name(
    path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.save(path)
    size = path.stat().st_size
    events: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        state = os.fstat(descriptor)
        events.append(("fsync of the directory", 0) if stat.S_ISDIR(state.st_mode) else ("fsync", state.st_size))
        fsync(descriptor)

    def note_replace(source: str, target: str) -> None:
        assert os.path.dirname(source) == os.path.dirname(target)
        events.append(("replace", os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    graph.save(path)
    assert events == [("fsync", size), ("replace", size), ("fsync of the directory", 0)]


def test_a_full_disk_for_real(tmp_path: Path) -> None:
    """The file size limit of a process makes the system itself refuse to write."""
    program = """
        import resource, signal, sys
        from prodige import Graph
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        graph = Graph.from_edges(range(5000), range(1, 5001), 1.0)
        Graph.from_edges([0], [1], [1]).save(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
        try:
            graph.save(sys.argv[1])
        except OSError as error:
            print(error.filename == sys.argv[1], Graph.load(sys.argv[1]).n_edges)
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "x")]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert result.stdout == "True 1\n"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_permissions_are_those_of_open(tmp_path: Path, graph: Graph, umask: int) -> None:
    before = os.umask(umask)
    try:
        graph.save(tmp_path / "new")
        (tmp_path / "by open").write_bytes(b"")
        existing = tmp_path / "existing"
        existing.write_bytes(b"")
        existing.chmod(0o640)
        graph.save(existing)
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "by open").stat().st_mode
    assert stat.S_IMODE(existing.stat().st_mode) == 0o640
    assert Graph.load(existing) == graph


def test_a_file_that_may_not_be_written_is_not_replaced(
    path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"mine")
    monkeypatch.setattr(os, "access", lambda name, mode: mode != os.W_OK)  # root may write everywhere
    with pytest.raises(PermissionError, match="some"):
        graph.save(path)
    assert path.read_bytes() == b"mine"


def test_a_link_stays_a_link(tmp_path: Path, graph: Graph) -> None:
    (tmp_path / "data").mkdir()
    link = tmp_path / "latest.prodige"
    link.symlink_to(Path("data", "real.prodige"))
    for _ in range(2):  # where the link leads there is nothing at first
        graph.save(link)
        assert link.is_symlink()
        assert os.listdir(tmp_path / "data") == ["real.prodige"]
        assert Graph.load(link) == Graph.load(tmp_path / "data" / "real.prodige") == graph


# Writes half a file, says so, and goes on when it is told to.
SAVING = """
    import sys
    from prodige.graph.atomic import replacing
    with replacing(sys.argv[1]) as file:
        file.write(b"half")
        file.flush()
        print("writing", flush=True)
        sys.stdin.readline()
        file.write(b" and half")
"""


@contextmanager
def saving(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that is in the middle of writing a file."""
    program = [sys.executable, "-c", textwrap.dedent(SAVING), str(path)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_save_removes_what_a_killed_one_left(path: Path, graph: Graph, number: signal.Signals) -> None:
    with saving(path) as first, saving(path) as second:
        for process in (first, second):
            process.send_signal(number)
            assert process.wait(60) == -number
    assert len(os.listdir(path.parent)) == 2  # which are two drafts
    graph.save(path.with_name("another"))  # leaves alone what is not its own
    assert len(os.listdir(path.parent)) == 3
    graph.save(path)
    assert sorted(os.listdir(path.parent)) == ["another", path.name]
    assert Graph.load(path) == graph


def test_a_failed_save_removes_what_a_killed_one_left(path: Path) -> None:
    with saving(path) as process:
        process.kill()
    with pytest.raises(RuntimeError), replacing(str(path)):
        raise RuntimeError
    assert os.listdir(path.parent) == []


def test_saves_at_the_same_time_leave_each_other_alone(path: Path, graph: Graph) -> None:
    with saving(path) as first, saving(path) as second:
        graph.save(path)
        assert Graph.load(path) == graph
        assert len(os.listdir(path.parent)) == 3
        for process in (second, first):
            assert process.communicate("go on\n", timeout=60)[0] == ""
            assert process.returncode == 0
            assert path.read_bytes() == b"half and half"
    assert os.listdir(path.parent) == [path.name]


def test_many_threads_save_to_one_place(path: Path) -> None:
    graphs = [Graph.from_edges([0], [1], [weight]) for weight in range(8)]

    def save_often(graph: Graph) -> None:
        for _ in range(25):
            graph.save(path)
            assert Graph.load(path) in graphs

    with ThreadPoolExecutor(len(graphs)) as pool:
        list(pool.map(save_often, graphs))
    assert os.listdir(path.parent) == [path.name]
    assert Graph.load(path) in graphs


def test_a_draft_that_is_swept_before_it_is_locked_is_made_again(
    path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, swept = fcntl.flock, list[str]()

    def late(descriptor: int, how: int) -> None:
        if not swept:  # somebody else was faster
            swept.extend(os.listdir(path.parent))
            sweep(str(path.parent), ".prodige-")
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    graph.save(path)
    assert len(swept) == 1
    assert os.listdir(path.parent) == [path.name]
    assert Graph.load(path) == graph


def test_files_are_saved_where_there_are_no_locks(path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with saving(path) as process:
        process.kill()
    monkeypatch.setattr(fcntl, "flock", refuse)
    graph.save(path)
    assert Graph.load(path) == graph
    assert len(os.listdir(path.parent)) == 2  # nobody knows whether the other one is in use
