"""``prodige`` as a program: signals while it starts and works, streams that are closed or know no letters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import prodige
from prodige import Graph, __version__

PROGRAM = [sys.executable, "-m", "prodige"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph and a data set whose names are not English."""
    Graph.from_edges([0, 1, 2], [3, 3, 3], [1, 1, 2], n_items=3).save(tmp_path / "größe.prodige", {"größe": "naïve"})
    np.save(tmp_path / "größe.npy", np.random.default_rng(0).normal(size=(30, 4)))
    return tmp_path


def run(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([*PROGRAM, *arguments], cwd=folder, text=True, timeout=120, **options)


def test_it_is_the_command_line(folder: Path) -> None:
    result = run(folder, "--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"prodige {__version__}\n", "")
    assert run(folder, "info", "nowhere").returncode == 1
    assert run(folder, "nonsense").returncode == 2


# -- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}])
def test_streams_that_know_no_letters(folder: Path, environment: dict[str, str]) -> None:
    environment = {**os.environ, **environment, "PYTHONUTF8": "0"}
    result = run(folder, "info", "größe.prodige", env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert r"na\xefve" in result.stdout
    result = run(folder, "info", "ü", env=environment)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)


def test_work_is_not_lost_for_a_letter(folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = run(folder, "compress", "größe.npy", "-o", "ä.prodige", "--max-time", "0.5", "-j", "1", env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert ".prodige: " in result.stdout
    assert prodige.load(folder / "ä.prodige").n_items == 30


@pytest.mark.parametrize("arguments", [("info", "größe.prodige"), ("compress", "größe.npy", "-o", "new", "--json")])
def test_standard_output_is_closed(folder: Path, arguments: tuple[str, ...]) -> None:
    """Said before any work is done."""
    result = run(folder, *arguments, stdout=None, preexec_fn=lambda: os.close(1))
    message = "Error: standard output is closed; send it to a file or to /dev/null\n"
    assert (result.returncode, result.stderr) == (1, message)
    assert not (folder / "new").exists()


def test_no_stream_is_taken_for_a_file(folder: Path) -> None:
    """The first file that is opened would have the number of a stream that is closed."""
    code = """
        import os, sys
        from prodige.__main__ import occupy_descriptors
        occupy_descriptors()
        file = open(sys.argv[1])
        os._exit(file.fileno())
    """
    program = [sys.executable, "-c", textwrap.dedent(code), str(folder / "größe.npy")]
    result = subprocess.run(program, close_fds=True, preexec_fn=lambda: os.closerange(0, 3))
    assert result.returncode == 3


@pytest.mark.parametrize("arguments", [("info", "größe.prodige"), ("--help",)])
def test_a_full_disk(folder: Path, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        result = run(folder, *arguments, stdout=full)
    assert (result.returncode, result.stderr) == (1, "Error: No space left on device\n")


# -- signals ---------------------------------------------------------------------------------------------------------


def start(folder: Path, code: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start a program that is the command line after some lines of its own."""
    code = textwrap.dedent(code) + "\nfrom prodige.__main__ import main\nmain()"
    program = [sys.executable, *options, "-c", code, *arguments]
    return subprocess.Popen(program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stream(process: subprocess.Popen[str], name: str) -> IO[str]:
    found: IO[str] | None = getattr(process, name)
    assert found is not None
    return found


@pytest.mark.parametrize("n_modules", [1, 30, 300, 2000])
def test_an_interrupt_while_it_starts(folder: Path, n_modules: int) -> None:
    """Not a moment of the clock but one of the start: so many modules after the first line of our own."""
    with start(folder, "", "compress", "größe.npy", "-o", "new", "-j", "1", options=("-X", "importtime")) as process:
        errors = stream(process, "stderr")
        for line in errors:
            if line.rstrip().endswith("| prodige.__main__"):
                break
        for _ in range(n_modules):
            errors.readline()
        process.send_signal(signal.SIGINT)
        said = [line for line in errors if not line.startswith("import time:")]
        assert process.wait(60) == 130
    assert len(said) == 1
    assert said[0].startswith("Interrupted")
    assert os.listdir(folder) == ["größe.npy", "größe.prodige"] or n_modules > 300
    assert not list(folder.glob(".*"))


# The command stops for good at the end of the writing of its file, which is not yet in place.
WRITING = """
    import os, time
    def stop(descriptor):
        print("ready", flush=True)
        time.sleep(600)
    os.fsync = stop
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_while_a_file_is_written(folder: Path, number: signal.Signals, code: int) -> None:
    before = sorted(os.listdir(folder))
    with start(folder, WRITING, "view", "größe.prodige") as process:
        assert stream(process, "stdout").readline() == "ready\n"
        assert len(os.listdir(folder)) == len(before) + 1
        process.send_signal(number)
        assert stream(process, "stderr").read() == ""
        assert process.wait(60) == code
    assert sorted(os.listdir(folder)) == before


def test_a_program_that_ignores_interrupts_goes_on_doing_so(folder: Path) -> None:
    """As one that a shell starts in the background."""
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    sending = "\nimport os, prodige.cli; os.kill(os.getpid(), signal.SIGINT)"
    with start(folder, ignoring + sending, "info", "größe.prodige", "--json") as process:
        assert process.wait(60) == 0
