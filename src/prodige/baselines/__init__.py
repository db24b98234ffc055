"""Other ways to keep distances in a few numbers an item, so that a graph has company in every table.

All of them have the objective of the graph, the mean squared error of all pairwise distances, and one interface,
:class:`~prodige.baselines.base.Baseline`. :class:`Constant` and :class:`Star` are closed forms and the floor for
anything that is learned; :class:`PCA`, :class:`MDS` and :class:`PoincareMDS` are the vectors the paper compares with.
"""

from prodige.baselines.base import Baseline
from prodige.baselines.constant import Constant
from prodige.baselines.mds import MDS
from prodige.baselines.pca import PCA
from prodige.baselines.poincare import PoincareMDS
from prodige.baselines.star import Star

__all__ = ["MDS", "PCA", "Baseline", "Constant", "PoincareMDS", "Star"]
