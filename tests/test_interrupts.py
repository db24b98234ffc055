"""Signals: what they do while a command is loaded and while it works, and that everything is put back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from prodige.interrupts import loading, working

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in SIGNALS]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_loading_leaves_at_once(number: signal.Signals, code: int) -> None:
    program = """
import os, sys
from prodige.interrupts import loading
with loading():
    try:
        os.kill(os.getpid(), int(sys.argv[1]))
        while True: pass
    finally:
        print("went on")
"""
    arguments = [sys.executable, "-c", program, str(int(number))]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (code, "", 1)


def test_work_is_unwound() -> None:
    before = handlers()
    with pytest.raises(KeyboardInterrupt), working():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(SystemExit) as leaving, working():
        os.kill(os.getpid(), signal.SIGTERM)
    assert leaving.value.code == 143
    assert handlers() == before


def test_handlers_are_put_back() -> None:
    before = handlers()
    with loading():
        during = handlers()
        assert not set(during) & set(before)
        with working():
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert handlers() == during
    assert handlers() == before


def test_the_will_of_others_is_kept() -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for phase in (loading, working):
            with phase():
                assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_change_nothing() -> None:
    before, seen = handlers(), []

    def look() -> None:
        for phase in (loading, working):
            with phase():
                seen.append(handlers())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before, before]
