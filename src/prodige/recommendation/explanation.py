"""Why an item is recommended: which factors speak for it, and which of the user's own items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prodige.recommendation.vectors import Vectors


@dataclass(frozen=True)
class Explanation:
    """What makes up the score of an item for a user.

    Attributes
    ----------
    score : float
        As of ``scores``: the distance, below 0.
    bias : float
        By how much the item is nearer to everybody than items are on average.
    factors : list of (int, float)
        Factors of the graph, and by how much the item is nearer to this user in each than items are on average; those
        that speak for it most come first. With the bias they add up to how much nearer it is in all.
    items : list of (int or str, float)
        Items that the user interacted with, by name where there are names, and what each adds to the score; those that
        speak for it most come first.

    Examples
    --------
    >>> from prodige.recommendation.explanation import Explanation
    >>> Explanation(-2.0, 0.1, [(0, 0.5)], [("tea", 0.4), ("milk", 0.1)]).items[0]
    ('tea', 0.4)
    """

    score: float
    bias: float
    factors: list[tuple[int, float]]
    items: list[tuple[int | str, float]]


def explain(
    vectors: Vectors,
    user: NDArray[np.float32],
    item: int,
    met: NDArray[np.int64],
    weights: NDArray[np.float32],
    labels: list[str] | None,
) -> Explanation:
    """Return the explanation of the score of an item for a user who is at some vector and met some items."""
    products = user.astype(np.float64) * (vectors.items[item] - vectors.items.mean(axis=0, dtype=np.float64))
    sizes = [book.shape[1] for book in vectors.books(of_users=False)]
    parts = [float(part.sum()) for part in np.split(products, np.cumsum(sizes)[:-1])]
    shares = vectors.placing.shares(met, weights, vectors.items[item].astype(np.float64))
    names = [labels[x] if labels is not None else int(x) for x in met]
    return Explanation(
        float(vectors.scores(user[None])[0, item]),
        float(vectors.bias[item]),
        sorted(enumerate(parts), key=lambda pair: -pair[1]),
        sorted(zip(names, map(float, shares), strict=True), key=lambda pair: -pair[1]),
    )
