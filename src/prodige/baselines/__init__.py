"""Other ways to keep distances or likings in a few numbers an item, so that a graph has company in every table.

For distances, all have the objective of the graph, the mean squared error of all pairwise distances, and one interface,
:class:`~prodige.baselines.base.Baseline`. :class:`Constant` and :class:`Star` are closed forms and the floor for
anything that is learned; :class:`PCA`, :class:`MDS` and :class:`PoincareMDS` are the vectors the paper compares with,
:class:`ResidualCoordinates` is the strongest closed form, :class:`Vivaldi` what predicts travel times in networks.

For recommendation, all have the interface of the graph, :class:`~prodige.recommendation.interactions.Recommender`.
:class:`Popularity` is the floor; :class:`SVD`, :class:`ALS` and :class:`MetricLearning` are the vectors the paper
compares with, :class:`BPR` another kind, :class:`IALS` the teacher of the graph; :class:`ItemKNN` and :class:`EASE`
compress nothing and are the ceiling.

For texts, :class:`VectorTextClassifier` is the network of the graph over ordinary word vectors, and
:class:`TfidfClassifier`, :class:`HashedClassifier` and :class:`RatioClassifier` are linear models of any size.
"""

from prodige.baselines.als import ALS
from prodige.baselines.base import Baseline
from prodige.baselines.bpr import BPR
from prodige.baselines.constant import Constant
from prodige.baselines.ease import EASE
from prodige.baselines.hashed_text import HashedClassifier
from prodige.baselines.ials import IALS
from prodige.baselines.item_knn import ItemKNN
from prodige.baselines.mds import MDS
from prodige.baselines.metric_learning import MetricLearning
from prodige.baselines.pca import PCA
from prodige.baselines.poincare import PoincareMDS
from prodige.baselines.popularity import Popularity
from prodige.baselines.ratio_text import RatioClassifier
from prodige.baselines.recommending import RecommenderBaseline
from prodige.baselines.residual import ResidualCoordinates
from prodige.baselines.star import Star
from prodige.baselines.svd import SVD
from prodige.baselines.tfidf_text import TfidfClassifier
from prodige.baselines.vector_text import VectorTextClassifier
from prodige.baselines.vivaldi import Vivaldi

__all__ = [
    "ALS",
    "BPR",
    "EASE",
    "IALS",
    "MDS",
    "PCA",
    "SVD",
    "Baseline",
    "Constant",
    "HashedClassifier",
    "ItemKNN",
    "MetricLearning",
    "PoincareMDS",
    "Popularity",
    "RatioClassifier",
    "RecommenderBaseline",
    "ResidualCoordinates",
    "Star",
    "TfidfClassifier",
    "VectorTextClassifier",
    "Vivaldi",
]
