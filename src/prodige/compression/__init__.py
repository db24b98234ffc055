"""A data set with a metric becomes a small graph.

:class:`DistanceCompressor` measures distances to landmarks, fits a graph of hubs (:mod:`~prodige.compression.hubs`), of
neighbours (:mod:`~prodige.compression.neighbors`) or both, and keeps the better one. What both have in common while
they are fitted is in :mod:`~prodige.compression.fitting`; what the paper does in :mod:`~prodige.compression.paper`.
"""

from prodige.compression.compressor import DistanceCompressor

__all__ = ["DistanceCompressor"]
