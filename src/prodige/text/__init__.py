"""Texts into classes, with words and sequences of words in a graph.

Texts become words (:mod:`~prodige.text.tokens`), words and their neighbours candidates (:mod:`~prodige.text.ngrams`). A
regression says what each is worth (:mod:`~prodige.text.ratios`); the best of them hang on hubs at a few levels
(:mod:`~prodige.text.fitting`, :mod:`~prodige.text.wordgraph`), as validation decides (:mod:`~prodige.text.selection`),
and go into a file of few bytes (:mod:`~prodige.text.encoding`). :class:`GraphTextClassifier` is what users hold. The
paper's network is in :mod:`prodige.text.paper`, over vectors of :mod:`~prodige.text.words`.
"""

from prodige.text.classifier import GraphTextClassifier
from prodige.text.vocabulary import Vocabulary
from prodige.text.words import PPMI, GloVe
from prodige.text.wordvectors import WordVectors

__all__ = ["PPMI", "GloVe", "GraphTextClassifier", "Vocabulary", "WordVectors"]
