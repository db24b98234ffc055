"""Data as learned weighted graphs: the distance between two items is the length of their shortest path."""

from importlib.metadata import version as _version

from prodige.graph import Graph

__version__ = _version("prodige")
__all__ = ["Graph", "__version__"]
