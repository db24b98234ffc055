"""Compression as in the paper: edges with probabilities, under an L0 penalty.

Neighbours and random edges are the candidates (:mod:`~prodige.compression.paper.candidates`). Each is present with a
probability (:mod:`~prodige.compression.paper.bernoulli`), and what ends above one half is kept (:func:`fit_l0`).
"""

from prodige.compression.paper.l0 import fit_l0

__all__ = ["fit_l0"]
