"""The run report in a real browser: it is readable in light and dark, on wide and narrow windows, and is silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from browser import Browser
from prodige import DistanceCompressor
from prodige.compression import selection
from prodige.drawing import report
from prodige.drawing.report import write_report

pytestmark = pytest.mark.browser

X = np.random.default_rng(0).normal(size=(60, 8))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "run.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "N_STEPS", 24)
        patch.setattr(report, "N_MDS_STEPS", 20)
        compressor = DistanceCompressor(structure="graph", random_state=0, n_jobs=1).fit(X)
        notes = ["<script>alert(1)</script>"]
        write_report(path, compressor, X, name="<b>sixty</b> 🙂 points", notes=notes)
    return path


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(browser: Browser, page: Path, dark: bool) -> None:
    browser.open(page, dark=dark)
    assert browser.messages() == []
    assert browser.driver.title == "<b>sixty</b> 🙂 points as a graph"
    assert browser.run("document.scripts.length") == 0
    corner = browser.picture(2, 2, 4, 4).mean()
    assert corner < 60 if dark else corner > 200
    # Axes and their numbers stand out from the page.
    ink = browser.run("getComputedStyle(document.querySelector('svg text')).fill")
    brightness = np.mean([int(part) for part in ink[4:-1].split(",")])
    assert brightness > 200 if dark else brightness < 60
    assert ink == browser.run("getComputedStyle(document.body).color")
    drawn = browser.run("[...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().toJSON())")
    assert len(drawn) == 5
    assert all(box["width"] > 200 and box["height"] > 100 for box in drawn)


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_sticks_out(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, size=(width, 800))
    assert browser.messages() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    cells = browser.run("[...document.querySelectorAll('.figures td:first-child')].map(cell => cell.innerText)")
    assert cells == ["graph", "MDS", "star", "PCA", "residual coordinates"]
