"""Graphs that are learned by gradient descent, from any loss.

Candidate edges become a :class:`GraphEmbedding`. Calling it searches (:mod:`~prodige.learning.autograd`), and backward
walks over the trees of that search; how probabilities of edges get a gradient is a choice
(:mod:`~prodige.learning.estimators`). :func:`fit` is the training loop; a :class:`Budget` thins the graph on the way,
by the :class:`Importance` of its edges. :class:`AnchorEmbedding` is the same in the place of ``nn.Embedding``;
:class:`ProductEmbedding` adds up several. Inside of ``torch.compile`` searches are operators
(:mod:`~prodige.learning.compiled`).
"""

from prodige.learning.anchors import AnchorEmbedding, FrozenAnchorEmbedding
from prodige.learning.autograd import Sample
from prodige.learning.embedding import GraphEmbedding
from prodige.learning.product import ProductEmbedding
from prodige.learning.sparsity import Budget, Importance, l0_penalty
from prodige.learning.training import Result, fit

__all__ = [
    "AnchorEmbedding",
    "Budget",
    "FrozenAnchorEmbedding",
    "GraphEmbedding",
    "Importance",
    "ProductEmbedding",
    "Result",
    "Sample",
    "fit",
    "l0_penalty",
]
