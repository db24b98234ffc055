"""A data set with a metric becomes a small graph.

:class:`DistanceCompressor` is what users hold, and :mod:`~prodige.compression.run` is one fit of it. That measures
distances to landmarks, fits a product of graphs (:mod:`~prodige.compression.products`), a graph of hubs
(:mod:`~prodige.compression.hubs`) or of neighbours (:mod:`~prodige.compression.neighbors`), and keeps the best
(:mod:`~prodige.compression.selection`). Of many items a sample is fitted (:mod:`~prodige.compression.sampling`), and
the others are placed in what came of it (:mod:`~prodige.compression.streaming`). What graphs have in common while they
are fitted is in :mod:`~prodige.compression.fitting`; what the paper does in :mod:`~prodige.compression.paper`.
"""

from prodige.compression.compressor import DistanceCompressor

__all__ = ["DistanceCompressor"]
