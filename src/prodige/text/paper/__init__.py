"""The paper's network over texts: distances to anchors, a convolution, the maximum over positions, a dense layer.

Tokens become vectors (:mod:`prodige.text.words`), and a network over them is trained
(:mod:`~prodige.text.paper.network`). :class:`AnchorTextClassifier` puts a graph in the place of the vectors, by what
the network sees of them (:mod:`~prodige.text.paper.distillation`), and trains on; :mod:`~prodige.text.paper.codec`
rounds it to the bits that are saved.
"""

from prodige.text.paper.classifier import AnchorTextClassifier

__all__ = ["AnchorTextClassifier"]
