"""A road network as a metric: given nothing but travel times, the streets are found again.

A town of 144 crossings, streets of random length, and a river with two bridges. The distance between two crossings is
the time it takes to drive there, so the metric is ``"precomputed"``: no coordinates go in. As a table it has 144
numbers a crossing. Since the shortest path to a far crossing leads past near ones, a handful of edges say the same,
without any error.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from prodige import DistanceCompressor

SIDE = 12  # crossings along each side of the town
RIVER = 6  # runs between columns 5 and 6
BRIDGES = (2, 9)  # rows


def main(folder: Path = Path("demo")) -> None:
    """Lay streets, compress the travel times, draw the path over a bridge."""
    # Streets of a grid, each with its own travel time; the river cuts all but two of those that would cross it.
    random = np.random.default_rng(0)
    number = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    row, column = np.divmod(across[:, 1], SIDE)
    across = across[(column != RIVER) | np.isin(row, BRIDGES)]
    along = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    streets = np.concatenate([across, along])
    minutes = random.uniform(1, 4, len(streets))

    # The metric is all that is given to the compressor: from everywhere to everywhere, by the quickest path.
    town = csr_array((minutes, streets.T), shape=(number.size, number.size))
    travel_times = dijkstra(town, directed=False)

    # Streets that no quickest path needs are of no use to the metric, so fewer edges than streets may come back.
    graph = DistanceCompressor(numbers_per_item=5, metric="precomputed", random_state=0).fit(travel_times).graph_
    worst = np.abs(graph.distances() - travel_times).max()
    found = set(zip(graph.edges.i.tolist(), graph.edges.j.tolist(), strict=True))
    true = {(int(min(pair)), int(max(pair))) for pair in streets}
    print(graph)
    print(f"{len(found & true)} of {len(true)} streets found, {len(found - true)} edges that are no streets.")
    print(
        f"{graph.numbers_per_item:.2f} numbers a crossing instead of {number.size}; largest error {worst:.1e} minutes."
    )

    # From a corner to the crossing on the other bank: near as the crow flies, far by car.
    places = np.stack([number % SIDE, number // SIDE], axis=-1).reshape(-1, 2).astype(float)
    start, goal = int(number[5, RIVER - 1]), int(number[5, RIVER])
    path = graph.path(start, goal)

    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(RIVER - 0.65, RIVER - 0.35, color="#56B4E9", alpha=0.5, linewidth=0)
    ends = np.stack([graph.edges.i, graph.edges.j], axis=1)
    axes.add_collection(LineCollection(list(places[ends]), colors="0.6", linewidths=4 / graph.edges.weight))
    axes.plot(*places[path].T, color="#D55E00", linewidth=3, zorder=2)
    axes.scatter(places[:, 0], places[:, 1], s=10, color="0.3", zorder=3)
    axes.scatter(places[[start, goal], 0], places[[start, goal], 1], s=60, color="#D55E00", zorder=4)
    axes.set_title(f"Streets found from travel times; {graph.distance(start, goal):.0f} minutes to the other bank")
    axes.set_aspect("equal")
    axes.set_axis_off()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-road_network.png", dpi=110)


if __name__ == "__main__":
    main()
