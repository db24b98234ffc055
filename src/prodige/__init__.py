"""Data as learned weighted graphs: the distance between two items is the length of their shortest path.

Names are imported when they are first used: a command that is interrupted while it starts has not come far.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prodige.anchors import AnchorEmbedding
    from prodige.classification import GraphTextClassifier
    from prodige.compression import DistanceCompressor
    from prodige.distances import Sample
    from prodige.embedding import GraphEmbedding
    from prodige.graph import Graph
    from prodige.recommendation import GraphRecommender

    __version__: str

__all__ = [
    "AnchorEmbedding",
    "DistanceCompressor",
    "Graph",
    "GraphEmbedding",
    "GraphRecommender",
    "GraphTextClassifier",
    "Sample",
    "__version__",
]

_LAZY = {
    "AnchorEmbedding": "prodige.anchors",
    "DistanceCompressor": "prodige.compression",
    "Graph": "prodige.graph",
    "GraphEmbedding": "prodige.embedding",
    "GraphRecommender": "prodige.recommendation",
    "GraphTextClassifier": "prodige.classification",
    "Sample": "prodige.distances",
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
