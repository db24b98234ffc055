"""Recommendation as in the paper: users and items alone are vertices, learned under a softmax.

Candidate edges join who and what interacted alike (:mod:`~prodige.recommendation.paper.candidates`). All items and some
users are the backbone (:mod:`~prodige.recommendation.paper.backbone`), which is thinned by importance; the other users
are attached to it (:mod:`~prodige.recommendation.paper.users`). :func:`fit_ranking` does both in turn.
"""

from prodige.recommendation.paper.fit import fit_ranking

__all__ = ["fit_ranking"]
