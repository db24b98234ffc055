"""Texts into classes, with the words in a graph.

Texts become token ids (:class:`Vocabulary`), tokens vectors (:mod:`~prodige.text.words`), and a network over them is
trained (:mod:`~prodige.text.network`). :class:`GraphTextClassifier` puts a graph in the place of the vectors, by what
the network sees of them (:mod:`~prodige.text.distillation`), and trains on; :mod:`~prodige.text.codec` rounds it to the
bits that are saved.
"""

from prodige.text.classifier import GraphTextClassifier
from prodige.text.vocabulary import Vocabulary
from prodige.text.words import PPMI, GloVe
from prodige.text.wordvectors import WordVectors

__all__ = ["PPMI", "GloVe", "GraphTextClassifier", "Vocabulary", "WordVectors"]
