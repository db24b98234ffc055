"""What several tests share: a browser, and an ear for Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from browser import CHROMEDRIVER, CHROMIUM, Browser

# The same examples in every run, so that a change is judged by what it changes; `make search` looks for new ones.
# An example that takes long on a busy machine is no fault of what it tests.
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile("repeat")


@pytest.fixture(scope="session", autouse=True)
def _interrupts() -> None:
    """Hear Ctrl-C also where a shell started the tests in the background, which makes it deaf."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find data that whoever runs the tests keeps somewhere."""
    monkeypatch.delenv("PRODIGE_DATA", raising=False)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium without a window; one for all tests, as it takes seconds to start."""
    for program in (CHROMIUM, CHROMEDRIVER):
        if not Path(program).exists():
            pytest.skip(f"{program} is not there; tools/browser.sh installs it")
    chromium = Browser(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.quit()
