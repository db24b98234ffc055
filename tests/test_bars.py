"""Progress bars."""

from __future__ import annotations

import threading

import pytest

from prodige.bars import Bar


def test_bars_start_no_thread(capsys: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    for disable in (True, False):
        with Bar(total=3, disable=disable) as bar:
            bar.update(3)
            assert threading.active_count() == before
    assert "3/3" in capsys.readouterr().err
