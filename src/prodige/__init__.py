"""Data as learned weighted graphs: the distance between two items is the length of their shortest path.

Names are imported when they are first used: a command that is interrupted while it starts has not come far.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prodige.compression.compressor import DistanceCompressor
    from prodige.compression.memory import estimate_memory
    from prodige.graph.graph import Graph
    from prodige.graph.product import ProductGraph
    from prodige.learning.anchors import AnchorEmbedding
    from prodige.learning.autograd import Sample
    from prodige.learning.embedding import GraphEmbedding
    from prodige.learning.product import ProductEmbedding
    from prodige.loading import load
    from prodige.recommendation.recommender import GraphRecommender
    from prodige.text.classifier import GraphTextClassifier

    __version__: str

__all__ = [
    "AnchorEmbedding",
    "DistanceCompressor",
    "Graph",
    "GraphEmbedding",
    "GraphRecommender",
    "GraphTextClassifier",
    "ProductEmbedding",
    "ProductGraph",
    "Sample",
    "__version__",
    "estimate_memory",
    "load",
]

_LAZY = {
    "AnchorEmbedding": "prodige.learning.anchors",
    "DistanceCompressor": "prodige.compression.compressor",
    "Graph": "prodige.graph.graph",
    "GraphEmbedding": "prodige.learning.embedding",
    "GraphRecommender": "prodige.recommendation.recommender",
    "GraphTextClassifier": "prodige.text.classifier",
    "ProductEmbedding": "prodige.learning.product",
    "ProductGraph": "prodige.graph.product",
    "Sample": "prodige.learning.autograd",
    "estimate_memory": "prodige.compression.memory",
    "load": "prodige.loading",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("prodige")
    if name not in _LAZY:
        raise AttributeError(f"module 'prodige' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__
