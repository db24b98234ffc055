"""Wines as a graph: 178 wines of three growers, hung on hubs that the data choose.

Thirteen chemical measurements become five numbers a wine. The picture shows what these numbers are: hubs, and edges to
them. Who grew a wine was never told, yet most wines are nearest to wines of the same grower.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from prodige import DistanceCompressor

COLORS = np.array(["#0072B2", "#E69F00", "#009E73"])  # of the growers, for all kinds of colour vision


def main(folder: Path = Path("demo")) -> None:
    """Compress, ask for neighbours, draw hubs and edges."""
    # Measurements have different units, so each is scaled to variance 1 first.
    wines = load_wine()
    measurements = StandardScaler().fit_transform(wines.data)

    # Three numbers an item are the least a connected graph can have; five leave room for a second edge here and there.
    graph = DistanceCompressor(numbers_per_item=5, random_state=0).fit(measurements).graph_
    nearest = graph.kneighbors(k=1)[1][:, 0]
    agree = np.mean(wines.target[nearest] == wines.target)
    print(graph)
    print(f"The nearest wine is of the same grower for {agree:.0%} of the wines.")

    # A graph has no coordinates. Wines are drawn where PCA puts them, and each hub amid the wines that hang on it.
    places = np.zeros((graph.n_vertices, 2))
    places[: graph.n_items] = PCA(2).fit_transform(measurements)
    links = graph.to_scipy()[graph.n_items :, : graph.n_items] > 0
    places[graph.n_items :] = links @ places[: graph.n_items] / np.maximum(links.sum(axis=1), 1)[:, None]

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    edges = graph.edges
    axes.add_collection(
        LineCollection(list(places[np.stack([edges.i, edges.j], axis=1)]), colors="0.8", linewidths=0.6)
    )
    for grower, color in enumerate(COLORS):
        own = places[: graph.n_items][wines.target == grower]
        axes.scatter(*own.T, s=22, color=color, label=f"grower {grower + 1}", zorder=2)
    axes.scatter(*places[graph.n_items :].T, s=26, color="black", marker="D", label="hubs", zorder=3)
    axes.set_title(f"{graph.n_items} wines, {graph.n_hubs} hubs, {graph.n_edges} edges")
    axes.set_axis_off()
    axes.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-wine.png", dpi=110)


if __name__ == "__main__":
    main()
