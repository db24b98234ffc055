"""The loss of a ranking: a softmax over the distances from where a user is (equation 6 of the paper).

All items are negatives. One search gives the distances to all of them, so they are free.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


def softmax_loss(distance: Floats, target: csr_array) -> tuple[float, Floats]:
    """Return the mean of d(x) + log Σ exp(-d) over the targets, and its gradient by the distances.

    Examples
    --------
    Two items equally far away, of which one is wanted:

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.paper.softmax import softmax_loss
    >>> loss, gradient = softmax_loss(np.ones((1, 2), dtype=np.float32), csr_array([[1.0, 0.0]], dtype=np.float32))
    >>> round(loss, 4), gradient  # log 2
    (0.6931, array([[ 0.5, -0.5]], dtype=float32))
    """
    log_z = log_partition(distance)
    row = np.repeat(np.arange(len(distance)), np.diff(target.indptr))
    total = np.bincount(row, target.data, minlength=len(distance)).astype(np.float32)
    scale = np.float32(1 / max(float(total.sum()), 1e-12))
    gradient = np.exp(-distance - log_z[:, None]) * (-total * scale)[:, None]
    gradient[row, target.indices] += target.data * scale
    loss = float(target.data @ distance[row, target.indices] + total @ log_z) * float(scale)
    return loss, gradient


def reach(distance: Floats) -> tuple[Floats, Mask, float]:
    """Return distances with a finite one where there is no path, which these are, and what stands for them."""
    cut_off = np.isinf(distance)
    far = 1.2 * float(distance.max(initial=1.0, where=~cut_off))
    return np.where(cut_off, np.float32(far), distance), cut_off, far


def log_partition(distance: Floats) -> Floats:
    """Return log Σ exp(-d) of each row."""
    nearest = distance.min(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(nearest - distance).sum(axis=1)) - nearest[:, 0])
