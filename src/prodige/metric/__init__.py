"""Data and their distances, by blocks: all pairs are never held.

Data and a metric become a :class:`Space`. From there come the items in the same place
(:mod:`~prodige.metric.duplicates`), the distances that a graph is fitted to (:class:`Landmarks`), the edges that it may
have (:mod:`~prodige.metric.candidates`), and at the end how well it keeps distances (:func:`evaluate`). What several
tasks start from stands here too: :mod:`~prodige.metric.neighbors`, :mod:`~prodige.metric.clusters` and the best
:mod:`~prodige.metric.star`.
"""

from prodige.metric.candidates import Candidates
from prodige.metric.evaluation import Report, evaluate, mean_squared_error
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Metric, Space

__all__ = ["Candidates", "Landmarks", "Metric", "Report", "Space", "evaluate", "mean_squared_error"]
