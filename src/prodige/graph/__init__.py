"""What users hold: graphs, the engines that answer their questions, and their files.

Edges become a :class:`Graph`. Its first question makes an :class:`~prodige.graph.engine.Engine`, which chooses a native
search by the graph's structure and answers all others. ``save`` packs edges into few bits
(:mod:`~prodige.graph.packing`) and writes them to a file that is read with suspicion
(:mod:`~prodige.graph.container`). Small graphs multiply to a :class:`ProductGraph`, which answers the same questions
(:mod:`~prodige.graph.queryable`) by adding up distances in its factors (:mod:`~prodige.graph.factors`).
"""

from prodige.graph.bipartite import BipartiteFactor
from prodige.graph.container import FileFormatError
from prodige.graph.edges import Edges
from prodige.graph.factors import GeometricFactor, GraphFactor
from prodige.graph.graph import Graph
from prodige.graph.grid import Grid
from prodige.graph.product import ProductGraph

__all__ = [
    "BipartiteFactor",
    "Edges",
    "FileFormatError",
    "GeometricFactor",
    "Graph",
    "GraphFactor",
    "Grid",
    "ProductGraph",
]
