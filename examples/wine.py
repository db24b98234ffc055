"""Wines as a graph: 178 wines of three growers, attached to hubs that the data choose.

Thirteen chemical measurements become five numbers a wine. The picture shows what these numbers are: hubs, and edges to
them. Who grew a wine was never told, yet most wines are nearest to wines of the same grower.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from prodige import DistanceCompressor
from prodige.drawing import plot_graph


def main(folder: Path = Path("demo")) -> None:
    """Compress, ask for neighbours, draw hubs and edges."""
    # Measurements have different units, so each is scaled to variance 1 first.
    wines = load_wine()
    measurements = StandardScaler().fit_transform(wines.data)

    # Three numbers an item are the least a connected graph can have; five leave room for a second edge here and there.
    # A product of graphs would be closer to the distances, but has no edges to look at.
    compressor = DistanceCompressor(numbers_per_item=5, structure="graph", random_state=0)
    graph = compressor.fit(measurements).graph_
    nearest = graph.kneighbors(k=1)[1][:, 0]
    agree = np.mean(wines.target[nearest] == wines.target)
    print(graph)
    print(f"The nearest wine is of the same grower for {agree:.0%} of the wines.")

    # A graph has no coordinates: places are found from its distances, so that near wines are near in the picture.
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = plot_graph(graph, groups=[f"grower {grower + 1}" for grower in wines.target], ax=figure.subplots())
    axes.set_title(f"{graph.n_items} wines, {graph.n_hubs} hubs, {graph.n_edges} edges")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-wine.png", dpi=110)


if __name__ == "__main__":
    main()
