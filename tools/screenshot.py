"""A picture of the viewer: ``python tools/screenshot.py`` compresses digits, opens them in Chromium, chooses two.

It needs what the tests of the viewer need; ``tools/browser.sh`` installs the browser.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

from prodige import DistanceCompressor

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

# A one and a seven, and a window that fits into a page.
CHOSEN = (1, 7)
WINDOW = (1100, 720)


def main(path: Path = ROOT / "docs" / "figures" / "viewer.png") -> None:
    """Draw the graph of some digits with the shortest path between two of them."""
    from browser import Browser

    digits = load_digits()
    graph = DistanceCompressor(numbers_per_item=4, structure="graph", random_state=0).fit(digits.data / 16).graph_
    pictures = (255 - digits.images * (255 / 16)).astype("uint8")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "digits.html")
        graph.to_html(page, groups=digits.target, images=pictures, title="1,797 digits in 4 numbers each")
        browser = Browser(Path(folder, "profile"))
        try:
            browser.open(page, WINDOW)
            browser.wait("window.prodige && window.prodige.firstPaint")
            for vertex in CHOSEN:
                place = browser.run("prodige.screen(arguments[0])", vertex)
                browser.click(place["x"], place["y"])
            browser.wait("!prodige.state.busy")
            browser.driver.save_screenshot(str(path))
        finally:
            browser.quit()
    print(path)


if __name__ == "__main__":
    main()
