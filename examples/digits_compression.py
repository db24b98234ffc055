"""A data set in four numbers an item: the digits of scikit-learn as graphs, beside vectors of the same size.

1,797 images of 8 × 8 pixels. Asked of each method: how far are its distances off, and does it still know which images
are nearest to each other? The product of graphs is saved and read back, and the picture shows its distances beside the
true ones.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

from prodige import DistanceCompressor, ProductGraph
from prodige.baselines import MDS, PCA, Constant, ResidualCoordinates, Star
from prodige.drawing.plots import plot_distances
from prodige.metric.evaluation import evaluate
from prodige.metric.space import Space

NUMBERS = 4


def main(folder: Path = Path("demo"), n_images: int = 1797) -> None:
    """Fit, compare, save, ask, draw."""
    # Floors that anything learned should beat, vectors of the same size, a graph with hubs, and a product of graphs.
    console = Console()
    images = load_digits().data[:n_images] / 16
    space = Space(images)
    compressor = DistanceCompressor(NUMBERS, structure="product", random_state=0, verbose=1)
    methods: dict[str, Any] = {
        "constant": Constant(),
        "star": Star(),
        "PCA": PCA(NUMBERS),
        "MDS": MDS(NUMBERS, random_state=0),
        "residual coordinates": ResidualCoordinates(NUMBERS, random_state=0),
        "graph": DistanceCompressor(NUMBERS, structure="graph", random_state=0, verbose=1),
        "product of graphs": compressor,
    }

    # One table for all: size, error, and how many of the ten nearest images are still among the ten nearest.
    title = f"{len(images):,} digits of {images.shape[1]} pixels in {NUMBERS} numbers each"
    table = Table(title=title)
    for header in ("", "numbers per item", "mean squared error", "neighbour recall@10", "seconds"):
        table.add_column(header, justify="right" if header else "left")
    for name, method in methods.items():
        began = time.perf_counter()
        method.fit(images)
        seconds = time.perf_counter() - began
        model = getattr(method, "graph_", method)
        report = evaluate(model, space, random_state=0)
        figures = f"{model.numbers_per_item:.3g}", f"{report.mse:.4f}", f"{report.recall:.1%}", f"{seconds:.1f}"
        table.add_row(name, *figures, style="bold" if isinstance(method, DistanceCompressor) else None)
    console.print(table)

    # All that is needed later is one small file.
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "digits.prodige"
    compressor.graph_.save(output)
    product = ProductGraph.load(output)
    console.print(f"Saved as {output}, {output.stat().st_size:,} bytes; the images take {images.nbytes:,}.")
    paths = " and ".join(" → ".join(f"hub {hub}" for hub in hubs) for hubs in product.path(0, 1))
    found, true = product.distance(0, 1), space.distances([0])[0, 1]
    console.print(f"From image 0 to image 1: {paths}; {found:.3f}, in truth {true:.3f}.", soft_wrap=True)
    console.print(f"Ask it: prodige neighbors {output} 0")

    # All pairs at once: on the diagonal, distances would be kept exactly.
    figure = Figure(figsize=(5.5, 5), layout="constrained")
    plot_distances(product, images, ax=figure.subplots()).set_title(title)
    figure.savefig(folder / "gallery-digits_compression.png", dpi=110)


if __name__ == "__main__":
    main()
