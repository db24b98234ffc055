"""How soon the viewer shows a graph and how smoothly it moves, in Chromium without a graphics card.

The graph is random: items on their nearest hubs, hubs on each other, as compression makes them. Measured in the page:
milliseconds from opening the file to the first picture, and frames a second while the picture is moved. "layout" is the
time to place the vertices, on one core, which happens once, before the page is written.

    python benchmarks/viewer.py [--items 9650] [--hubs 350] [--edges 35000] [--seconds 3] [--screenshot F.png] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from prodige import Graph
from prodige.drawing.layout import place
from prodige.provenance import provenance

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))


def clusters(n_items: int, n_hubs: int, n_edges: int, seed: int = 0) -> tuple[Graph, NDArray[np.int64]]:
    """Return a graph and the cluster of each item."""
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(12, 6)) * 2
    hub_points = np.repeat(centers, -(-n_hubs // 12), axis=0)[:n_hubs] + rng.normal(size=(n_hubs, 6))
    cluster = rng.integers(0, 12, n_items)
    points = centers[cluster] + rng.normal(size=(n_items, 6))
    per_item = n_edges // n_items + 1
    finder = NearestNeighbors().fit(hub_points)
    far, hub = finder.kneighbors(points, per_item)
    hub_far, other = finder.kneighbors(hub_points, 9)
    i = np.concatenate([np.repeat(np.arange(n_items), per_item), n_items + np.repeat(np.arange(n_hubs), 8)])
    j = np.concatenate([n_items + hub.ravel(), n_items + other[:, 1:].ravel()])
    weight = np.concatenate([far.ravel(), hub_far[:, 1:].ravel()])
    # All items on their nearest hub, and as many others as are wanted; edges between hubs come from both ends.
    nearest = np.arange(n_items) * per_item
    others = rng.permutation(np.setdiff1d(np.arange(i.size), nearest))
    twice = i >= n_items
    others = others[~(twice[others] & (i[others] > j[others]))]
    keep = np.concatenate([nearest, others[: n_edges - n_items]])
    return Graph.from_edges(i[keep], j[keep], weight[keep], n_items + n_hubs, n_items), cluster


def measure(n_items: int, n_hubs: int, n_edges: int, seconds: float, screenshot: str | None) -> dict[str, Any]:
    """Place, write, open, move."""
    from browser import Browser

    graph, cluster = clusters(n_items, n_hubs, n_edges)
    began = time.process_time()
    positions = place(graph, n_jobs=1)
    figures: dict[str, Any] = {
        "vertices": graph.n_vertices,
        "edges": graph.n_edges,
        "layout_seconds": time.process_time() - began,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.html")
        graph.to_html(path, groups=cluster, positions=positions)
        figures["bytes"] = path.stat().st_size
        browser = Browser(Path(folder, "profile"))
        try:
            paints = []
            for _ in range(3):
                browser.open(path)
                paints.append(browser.wait("window.prodige && window.prodige.firstPaint"))
            figures["first_paint_ms"] = min(paints)  # what else the machine does only makes it slower
            script = "const done = arguments[1]; prodige.benchmark(arguments[0]).then(done)"
            runs = [browser.driver.execute_async_script(script, seconds)["framesPerSecond"] for _ in range(3)]
            figures["frames_per_second"] = max(runs)
            figures["slowness"] = browser.slowness()
            if screenshot:
                browser.press("0")
                browser.wait("!prodige.state.busy")
                browser.driver.save_screenshot(screenshot)
        finally:
            browser.quit()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=9_650)
    parser.add_argument("--hubs", type=int, default=350)
    parser.add_argument("--edges", type=int, default=35_000)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long the picture is moved")
    parser.add_argument("--screenshot", help="file for a picture of the page")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    figures = measure(options.items, options.hubs, options.edges, options.seconds, options.screenshot)
    if options.json:
        command = f"python benchmarks/viewer.py --items {options.items} --hubs {options.hubs} --edges {options.edges}"
        print(json.dumps({**figures, **provenance(command)}))
        return
    table = Table(title=f"{figures['vertices']:,} vertices, {figures['edges']:,} edges", show_header=False)
    for name, value in (
        ("layout, one core", f"{figures['layout_seconds']:.1f} s"),
        ("size of the file", f"{figures['bytes']:,} bytes"),
        ("first paint", f"{figures['first_paint_ms']:.0f} ms"),
        ("while moving", f"{figures['frames_per_second']:.0f} frames/s"),
        ("this machine is", f"{figures['slowness']:.1f} × slower than one that is not busy"),
    ):
        table.add_row(name, value)
    Console().print(table)


if __name__ == "__main__":
    main()
