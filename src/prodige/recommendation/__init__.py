"""Users and items as vertices of one graph: the items nearest to a user are recommended.

Interactions are checked (:mod:`~prodige.recommendation.interactions`, which also has :class:`Recommender`, the
interface of every model and baseline). A teacher learns vectors from them (:mod:`~prodige.recommendation.teacher`,
:mod:`~prodige.recommendation.balance`), and :mod:`~prodige.recommendation.distillation` turns its scores into a product
of graphs: of a shape that fits the budget (:mod:`~prodige.recommendation.plan`), with the codes that lose the least
(:mod:`~prodige.recommendation.codes`). The paper's graphs are in :mod:`~prodige.recommendation.paper`.
:class:`GraphRecommender` holds either. How well it ranks is measured by :mod:`~prodige.recommendation.ranking` and
:mod:`~prodige.recommendation.lists`.
"""

from prodige.recommendation.interactions import Recommender, check_interactions
from prodige.recommendation.recommender import GraphRecommender

__all__ = ["GraphRecommender", "Recommender", "check_interactions"]
