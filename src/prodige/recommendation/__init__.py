"""Users and items as vertices of one graph: the items nearest to a user are recommended.

Interactions are checked (:mod:`~prodige.recommendation.interactions`, which also has :class:`Recommender`, the
interface of every model and baseline). What users would like (:mod:`~prodige.recommendation.targets`) is fitted by a
graph of hubs (:mod:`~prodige.recommendation.hub_graph`) or by one of the paper's kinds
(:mod:`~prodige.recommendation.paper`), and held by :class:`GraphRecommender`. How well it ranks is measured by
:mod:`~prodige.recommendation.ranking`.
"""

from prodige.recommendation.interactions import Recommender, check_interactions
from prodige.recommendation.recommender import GraphRecommender

__all__ = ["GraphRecommender", "Recommender", "check_interactions"]
