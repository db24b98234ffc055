"""Candidates: which users and items may be joined, and how far apart they start.

Users and items are alike if they interacted alike. That gives neighbours, by the cosine of their interactions, and
places on a sphere, by a truncated singular value decomposition; the angle between two places is the weight that an edge
starts from.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from sklearn.utils.extmath import randomized_svd

from prodige.metric.candidates import Candidates, bipartite
from prodige.progress import Monitor
from prodige.recommendation.interactions import parts

# No weight starts below this: the slope of softplus would be lost.
SHORTEST = 0.02

# Candidates of the paper: nearest users of a user and nearest items of an item; random edges of a vertex.
_N_NEIGHBORS = 16
_N_RANDOM = 50

# The space that weights start from: its dimensions; weight of an edge to a right angle; and how much farther an item
# is for each factor e that it is rarer than the most popular one.
_N_DIMENSIONS = 32
_SPREAD = 2.0
_RARITY = 0.125

# Shares of a time limit that may be over when items and users have found their neighbours.
_ITEMS_JOINED = 0.1
_USERS_JOINED = 0.2

# Numbers in a block of rows: 16 MiB as float32.
_BLOCK = 1 << 22

CandidateEdges = Literal["normal", "bipartite", "random"]
Vertices = NDArray[np.int64]
Floats = NDArray[np.float32]


def join(
    interacted: csr_array, edges: CandidateEdges, random: np.random.RandomState, monitor: Monitor | None = None
) -> Candidates:
    """Return the candidate edges of a variant, with the weights they start from.

    Where the time runs out, only some users and items get neighbours.
    """
    if edges not in get_args(CandidateEdges):
        raise ValueError(f"edges must be one of {', '.join(map(repr, get_args(CandidateEdges)))}, got {edges!r}")
    n_users, n_items = map(int, interacted.shape)
    n = n_users + n_items
    tail: Vertices
    head: Vertices
    if edges == "random":
        tail = np.repeat(np.arange(n), _N_RANDOM)
        head = random.randint(n, size=tail.size)
    else:
        pairs = bipartite(interacted)
        tail, head = pairs.i.astype(np.int64), pairs.j.astype(np.int64)
    if edges == "normal":
        # Items first: there are fewer of them, and they are in every graph.
        items = n_users + cosine_neighbors(csr_array(interacted.T), _N_NEIGHBORS, monitor, _ITEMS_JOINED)
        users = cosine_neighbors(interacted, _N_NEIGHBORS, monitor, _USERS_JOINED)
        tail, head = np.concatenate([[tail, head], users, items], axis=1)
    pair = np.unique(np.minimum(tail, head) * n + np.maximum(tail, head))
    tail, head = pair // n, pair % n
    return Candidates.make(tail, head, start_weights(interacted, embed(interacted, random), tail, head), n, n)


def cosine_neighbors(rows: csr_array, n_neighbors: int, monitor: Monitor | None = None, share: float = 1.0) -> Vertices:
    """Return each row with the rows that have the highest cosine with it, as pairs, shape [2, P].

    Rows that share nothing are no neighbours. The product is made by blocks of rows, and it is sparse. When this share
    of the time is over, the rows that are left get no neighbours.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.paper.candidates import cosine_neighbors
    >>> cosine_neighbors(csr_array([[1.0, 1, 0], [1, 1, 1], [0, 0, 1]]), 1)
    array([[0, 1, 2],
           [1, 0, 1]])
    """
    norms = np.sqrt(np.maximum(rows.multiply(rows).sum(axis=1), np.finfo(np.float32).tiny))
    unit = csr_array(diags_array(1 / norms) @ rows)
    columns = csr_array(unit.T)
    # What the product of a row holds at most, on average: the sizes of its columns, added up.
    n_shared = float((np.diff(rows.tocsc().indptr).astype(np.float64) ** 2).sum()) / rows.shape[0]
    pairs = [np.empty((2, 0), dtype=np.int64)]
    for part in parts(rows.shape[0], int(_BLOCK / max(n_shared, 1))):
        if monitor is not None and monitor.due(share):
            break
        product = csr_array(unit[part] @ columns)
        for row, begin, end in zip(range(part.start, part.stop), product.indptr[:-1], product.indptr[1:], strict=True):
            other, cosine = product.indices[begin:end].astype(np.int64), product.data[begin:end]
            other, cosine = other[other != row], cosine[other != row]
            if other.size > n_neighbors:
                other = other[np.argpartition(-cosine, n_neighbors)[:n_neighbors]]
            pairs.append(np.stack([np.full(other.size, row), other]))
    return np.concatenate(pairs, axis=1)


def embed(interacted: csr_array, random: np.random.RandomState) -> Floats:
    """Return places of users and items on a sphere, shape [U + I, K], near where they interacted and interacted alike.

    From a truncated singular value decomposition. Its first component is left out: it is how often they interacted at
    all.
    """
    of_users, of_items = (np.maximum(interacted.sum(axis=axis), 1) ** -0.5 for axis in (1, 0))
    scaled = csr_array(diags_array(of_users) @ interacted @ diags_array(of_items))
    n_components = min(_N_DIMENSIONS, *interacted.shape)
    users, values, items = randomized_svd(scaled, n_components, n_iter=3, random_state=random)
    place = (np.concatenate([users, items.T]) * np.sqrt(values))[:, int(n_components > 1) :]
    return np.asarray(place / np.maximum(np.linalg.norm(place, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def start_weights(interacted: csr_array, place: Floats, tail: Vertices, head: Vertices) -> Floats:
    """Return weights to begin with: the angle between the ends, and more for rare items.

    An edge between items stands for two, one to a user who interacted with both and one from there, so it is twice as
    long.
    """
    n_users, n_items = map(int, interacted.shape)
    count = np.maximum(np.bincount(interacted.indices, minlength=n_items), 1)
    rarity = np.concatenate([np.zeros(n_users), _RARITY * np.log(count.max() / count)])
    weight = rarity[tail] + rarity[head]
    for part in parts(tail.size, _BLOCK // place.shape[1]):
        i, j = tail[part], head[part]
        n_edges = 1 + ((i >= n_users) & (j >= n_users))
        weight[part] += _SPREAD * n_edges * (1 - np.einsum("ed,ed->e", place[i], place[j]))
    return np.asarray(np.maximum(weight, SHORTEST), dtype=np.float32)
