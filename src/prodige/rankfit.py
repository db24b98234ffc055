r"""Ranking the way of the paper: users and items are the vertices of one graph, and there are no others.

The distances from a user :math:`u` to all items are learned by a softmax (equation 6 of the paper, with all items as
negatives; one search gives all distances, so they are free), over the items :math:`P_u` that the user met:

.. math:: L_u = \operatorname{mean}_{x \in P_u} d(u, x) + \log \sum_x e^{-d(u, x)}

*Skeleton.* For most users it is enough that ways begin there; they need not lead through. So the graph has two parts.
The skeleton joins all items, by edges between them and over some users, the connectors. Every other user hangs on one
or a few vertices of it, its anchors, and d(u, x) is the least w(u, a) + d(a, x). A user ranks items the same if all its
edges grow by as much; so they are made long enough that no way of others leads through it. That leaves little to
search, and one search from an anchor serves all users that hang on it.

*Anchors* are chosen, not thinned out. With the skeleton fixed, what a user's loss would be with any anchors is known
without trying. One anchor predicts x with probability :math:`e^{-d(a, x)} / Z_a`; several predict with the greatest of
theirs, each times the share :math:`m_a` of the positives that it predicts best. The negative logarithm of that is a
distance again, over edges of weight :math:`\log Z_a - \log m_a`.

*Skeleton edges* are thinned out by importance: how far distances would move without an edge, times the absolute
gradient of the loss. With the sign kept, edges towards negatives look harmful one by one, and dropping them together
wrecks the ranking. The weights of those that stay are learned by gradient descent.

*Positives with an edge of their own* say nothing: the edge is the way, and what is asked for later has no such edge.
Hiding some at random would make the others as trivial as before, and leave the graph in use another than the one
learned. Instead a positive never counts where its own edge is among those judged, and no search from an anchor passes
through the user that hangs on it. As a user has few edges and many positives, nearly all of them remain to learn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, diags_array
from scipy.special import entr, expit
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd

from prodige import _core
from prodige.candidates import Candidates, bipartite
from prodige.engine import Engine, count_threads
from prodige.fitting import spanning_tree
from prodige.graph import Graph
from prodige.interactions import check_interactions, parts
from prodige.pace import Pace

# Steps of a whole run, the shares of it between which the skeleton is thinned, and those after which users choose
# anchors again: late, when searches are fast. What is left of the run learns weights, in ever smaller steps.
N_STEPS = 96
THINNING = 0.08
THINNED = 0.6
CHOICES = [0.4, 0.6]

# Candidates of the paper: nearest users of a user and nearest items of an item; random edges of a vertex.
_N_NEIGHBORS = 16
_N_RANDOM = 50

# Edges of the skeleton to begin with: for each vertex of the graph, and of those it is to have in the end.
_START_EDGES = 2.5
_START_ROOM = 1.25

# They are the shortest among several times as many candidates, where few candidates are shorter than this: as random
# ones, which mostly say nothing. More users to look at make slower searches, so there is a limit to it.
_SHORT = 1.2
_SHORT_SHARE = 0.6
_MOST_CROWDED = 4.0

# Edges beyond those that connect the graph: the part of them that goes into the skeleton. The others are for users.
_SKELETON_SHARE = 0.9

# Anchors that a user chooses from and may have, and positives that it looks at. They bound the memory of a choice.
_N_OPTIONS = 24
_MOST_ANCHORS = 4
_N_POSITIVES = 24

# Sources of a step, and its rate in nats.
_N_SOURCES = 256
_RATE = 0.04

# The space that weights start from: its dimensions; weight of an edge to a right angle; and how much farther an item
# is for each factor e that it is rarer than the most popular one.
_N_DIMENSIONS = 32
_SPREAD = 2.0
_RARITY = 0.125

# No weight starts below this: the slope of softplus would be lost.
_SHORTEST = 0.02

# Numbers in a block of rows: 16 MiB as float32.
_BLOCK = 1 << 22

CandidateEdges = Literal["normal", "bipartite", "random"]
Ids = NDArray[np.int32]
Vertices = NDArray[np.int64]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


def fit_ranking(
    user_items: Any,
    edges: CandidateEdges = "normal",
    numbers_per_item: float = 4.0,
    *,
    pace: Pace | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Graph:
    """Fit a graph of users and items in which the items nearest to a user are those to recommend.

    Parameters
    ----------
    user_items : sparse matrix or array-like, shape [U, I]
        Above 0 where a user met an item; how far above does not matter.
    edges : {"normal", "bipartite", "random"}
        Candidates: the 16 users nearest to each user and the 16 items nearest to each item, by the cosine of their
        interactions, and all pairs of ``user_items``; those pairs alone; or 50 random edges of each vertex.
    numbers_per_item : float
        Memory: one number per vertex and two per edge, divided by the vertices, which are users and items.
    pace : Pace, optional
        How long to take, with callbacks and progress; :data:`N_STEPS` steps when left out. The loss it records is that
        of the step's sources, in nats.
    random_state : int, RandomState or None
        A seed gives the same graph with any number of threads, unless ``pace`` goes by time.
    n_jobs : int, optional
        Threads; all available processors when left out.

    Returns
    -------
    Graph
        Users are vertices 0 to U - 1, items U to U + I - 1. It connects what the candidates connect: with
        ``"bipartite"``, users and items without an interaction stay alone. Ctrl-C ends a run early, but not without a
        graph once the first step has begun.

    Raises
    ------
    ValueError
        If the budget is too small to connect what the candidates connect, or if there is nothing to learn from.

    Examples
    --------
    Two groups of users, with a taste for odd or for even items:

    >>> import numpy as np
    >>> from prodige.pace import Pace
    >>> from prodige.rankfit import fit_ranking
    >>> rng = np.random.default_rng(0)
    >>> taste = np.arange(60)[:, None] % 2 == np.arange(20) % 2
    >>> graph = fit_ranking(taste & (rng.random((60, 20)) < 0.5), numbers_per_item=4, pace=Pace(16), random_state=0)
    >>> graph.n_items, graph.numbers_per_item
    (80, 4.0)
    >>> distances = graph.distances(np.arange(60), np.arange(60, 80))
    >>> bool(distances[taste].mean() < distances[~taste].mean())
    True
    """
    random = check_random_state(random_state)
    pace = Pace(N_STEPS) if pace is None else pace
    met = check_interactions(user_items)
    met.data[:] = 1
    joined = join(met, edges, random)
    run = Run(met, joined, edges_allowed(numbers_per_item, joined), random, count_threads(n_jobs))
    try:
        for progress in pace.run():
            loss = run.step(progress)
            pace.record(progress, loss, run.n_kept, 1 + 2 * run.n_kept / joined.n_vertices)
    except KeyboardInterrupt:
        pace.stopped = "interrupt"
    return run.finish()


def edges_allowed(numbers_per_item: float, joined: Candidates) -> int:
    """Return how many edges a budget allows; refuse one that cannot connect what the candidates connect."""
    n = joined.n_vertices
    n_needed = n - _core.Topology(n, joined.i, joined.j).n_components
    least = 1 + 2 * n_needed / n
    if not (math.isfinite(numbers_per_item) and numbers_per_item >= least - 1e-9):
        raise ValueError(
            f"numbers_per_item must be finite and enough to connect users and items, got {numbers_per_item}: "
            f"{n} of them need {n_needed} edges; give at least {math.ceil(least * 1000) / 1000:.4g}"
        )
    return min(int((numbers_per_item - 1) * n / 2 + 1e-9), joined.n_edges)


# -- candidates ------------------------------------------------------------------------------------------------------


def join(met: csr_array, edges: CandidateEdges, random: np.random.RandomState) -> Candidates:
    """Return the candidate edges of a variant, with the weights they start from."""
    if edges not in get_args(CandidateEdges):
        raise ValueError(f"edges must be one of {', '.join(map(repr, get_args(CandidateEdges)))}, got {edges!r}")
    n_users, n_items = map(int, met.shape)
    n = n_users + n_items
    tail: Vertices
    head: Vertices
    if edges == "random":
        tail = np.repeat(np.arange(n), _N_RANDOM)
        head = random.randint(n, size=tail.size)
    else:
        pairs = bipartite(met)
        tail, head = pairs.i.astype(np.int64), pairs.j.astype(np.int64)
    if edges == "normal":
        users = cosine_neighbors(met, _N_NEIGHBORS)
        items = n_users + cosine_neighbors(csr_array(met.T), _N_NEIGHBORS)
        tail, head = np.concatenate([[tail, head], users, items], axis=1)
    pair = np.unique(np.minimum(tail, head) * n + np.maximum(tail, head))
    tail, head = pair // n, pair % n
    return Candidates.make(tail, head, start_weights(met, embed(met, random), tail, head), n, n)


def cosine_neighbors(rows: csr_array, n_neighbors: int) -> Vertices:
    """Return each row with the rows that have the highest cosine with it, as pairs, shape [2, P].

    Rows that share nothing are no neighbours. The product is made by blocks of rows, and it is sparse.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from prodige.rankfit import cosine_neighbors
    >>> cosine_neighbors(csr_array([[1.0, 1, 0], [1, 1, 1], [0, 0, 1]]), 1)
    array([[0, 1, 2],
           [1, 0, 1]])
    """
    norms = np.sqrt(np.maximum(rows.multiply(rows).sum(axis=1), np.finfo(np.float32).tiny))
    unit = csr_array(diags_array(1 / norms) @ rows)
    columns = csr_array(unit.T)
    # What the product of a row holds at most, on average: the sizes of its columns, added up.
    n_shared = float((np.diff(rows.tocsc().indptr).astype(np.float64) ** 2).sum()) / rows.shape[0]
    pairs = []
    for part in parts(rows.shape[0], int(_BLOCK / max(n_shared, 1))):
        product = csr_array(unit[part] @ columns)
        for row, begin, end in zip(range(part.start, part.stop), product.indptr[:-1], product.indptr[1:], strict=True):
            other, cosine = product.indices[begin:end].astype(np.int64), product.data[begin:end]
            other, cosine = other[other != row], cosine[other != row]
            if other.size > n_neighbors:
                other = other[np.argpartition(-cosine, n_neighbors)[:n_neighbors]]
            pairs.append(np.stack([np.full(other.size, row), other]))
    return np.concatenate(pairs, axis=1)


def embed(met: csr_array, random: np.random.RandomState) -> Floats:
    """Return places of users and items on a sphere, shape [U + I, K], near where they met and met alike.

    From a truncated singular value decomposition. Its first component is left out: it is how often they met at all.
    """
    of_users, of_items = (np.maximum(met.sum(axis=axis), 1) ** -0.5 for axis in (1, 0))
    scaled = csr_array(diags_array(of_users) @ met @ diags_array(of_items))
    n_components = min(_N_DIMENSIONS, *met.shape)
    users, values, items = randomized_svd(scaled, n_components, n_iter=3, random_state=random)
    place = (np.concatenate([users, items.T]) * np.sqrt(values))[:, int(n_components > 1) :]
    return np.asarray(place / np.maximum(np.linalg.norm(place, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def start_weights(met: csr_array, place: Floats, tail: Vertices, head: Vertices) -> Floats:
    """Return weights to begin with: the angle between the ends, and more for rare items.

    An edge between items stands for two, one to a user who met both and one from there, so it is twice as long.
    """
    n_users, n_items = map(int, met.shape)
    count = np.maximum(np.bincount(met.indices, minlength=n_items), 1)
    rarity = np.concatenate([np.zeros(n_users), _RARITY * np.log(count.max() / count)])
    weight = rarity[tail] + rarity[head]
    for part in parts(tail.size, _BLOCK // place.shape[1]):
        i, j = tail[part], head[part]
        n_edges = 1 + ((i >= n_users) & (j >= n_users))
        weight[part] += _SPREAD * n_edges * (1 - np.einsum("ed,ed->e", place[i], place[j]))
    return np.asarray(np.maximum(weight, _SHORTEST), dtype=np.float32)


# -- the skeleton ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Skeleton:
    """What ways lead through; replaced as a whole, so that an interrupt never finds half of a change.

    Attributes
    ----------
    members : ndarray of int64, shape [M]
        Its vertices in the whole graph, in order: connectors, then all items.
    tail, head : ndarray of int32, shape [E]
        Ends of the edges, as places among the members.
    theta : ndarray of float32, shape [E]
        Weights are softplus(theta).
    mean, square : ndarray of float32, shape [E]
        Running means of Adam.
    worth : ndarray of float64, shape [E]
        Importance, as a running sum.
    """

    members: Vertices
    tail: Ids
    head: Ids
    theta: Floats
    mean: Floats
    square: Floats
    worth: NDArray[np.float64]

    @classmethod
    def of(cls, joined: Candidates, inside: Mask, edges: Mask) -> Skeleton:
        """Return the skeleton of some vertices and some candidates between them."""
        place = (np.cumsum(inside) - 1).astype(np.int32)
        weight = np.maximum(joined.weight[edges], np.float32(_SHORTEST))
        theta = weight + np.log(-np.expm1(-weight))
        nothing = np.zeros_like(theta)
        ends = place[joined.i[edges]], place[joined.j[edges]]
        return cls(np.flatnonzero(inside), *ends, theta, nothing, nothing, np.zeros(theta.size))

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.tail.size

    @property
    def weight(self) -> Floats:
        """Weights of the edges."""
        return np.logaddexp(np.float32(0), self.theta)

    @property
    def degree(self) -> Vertices:
        """Edges of each member."""
        return np.bincount(np.concatenate([self.tail, self.head]), minlength=self.members.size)

    def keep(self, mask: Mask) -> Skeleton:
        """Return the skeleton with the edges where the mask is True."""
        names = ("tail", "head", "theta", "mean", "square", "worth")
        return replace(self, **{name: getattr(self, name)[mask] for name in names})

    def thin(self, n_edges: int) -> Skeleton:
        """Return the most important edges: a spanning forest, then as many as there is room for."""
        if self.n_edges <= n_edges:
            return self
        order = np.lexsort((self.theta, -self.worth))  # of two equally important edges the shorter one
        rank = np.empty(self.n_edges)
        rank[order] = -np.arange(self.n_edges)
        mask = spanning_tree(self.tail, self.head, rank, self.members.size)
        others = order[~mask[order]]
        mask[others[: max(n_edges - int(mask.sum()), 0)]] = True
        return self.keep(mask)

    def release(self, n_users: int) -> Skeleton:
        """Return the skeleton without users that no way leads through any more: they shall choose anchors freely."""
        skeleton = self
        while True:
            is_end = (skeleton.degree == 1) & (skeleton.members < n_users)
            tail, head = is_end[skeleton.tail], is_end[skeleton.head]
            leaves = tail ^ head  # two ends of one edge have nothing else to hang on
            if not leaves.any():
                return skeleton
            gone = np.where(tail, skeleton.tail, skeleton.head)[leaves]
            stays = np.ones(skeleton.members.size, dtype=bool)
            stays[gone] = False
            place = (np.cumsum(stays) - 1).astype(np.int32)
            kept = skeleton.keep(~leaves)
            skeleton = replace(kept, members=kept.members[stays], tail=place[kept.tail], head=place[kept.head])


def choose_skeleton(joined: Candidates, n_users: int, n_edges: int, random: np.random.RandomState) -> tuple[Mask, Mask]:
    """Return the vertices and the edges of a skeleton to begin with, as masks of all vertices and of the candidates.

    Users are drawn at random, and of the edges between them and the items the shortest are taken, about as many as
    asked for. Where that leaves apart what the candidates connect, what connects it comes in too.
    """
    n = joined.n_vertices
    turn = np.full(n, -1)
    turn[:n_users] = random.permutation(n_users)
    enters = np.maximum(turn[joined.i], turn[joined.j])  # when both its ends are in, an edge is
    share = max(float((joined.weight < _SHORT).mean()), 1e-9) if joined.n_edges else 1.0
    last = int(np.clip(_SHORT_SHARE / share, 1, _MOST_CROWDED) * n_edges)
    limit = np.partition(enters, last)[last] if last < enters.size else n_users
    drawn = enters < limit
    order = np.argsort(np.where(drawn, joined.weight, np.inf), kind="stable")
    edges: Mask = np.zeros(joined.n_edges, dtype=bool)
    edges[order[: min(n_edges, int(drawn.sum()))]] = True
    # Edges taken come first in the tree, then those that lead out: nearly all other users become its leaves.
    ends = np.concatenate([joined.i[edges], joined.j[edges]])
    inside = (np.bincount(ends, minlength=n) > 0) | (np.arange(n) >= n_users)
    worth = inside[joined.i].astype(np.float32) + inside[joined.j] + edges
    edges |= spanning_tree(joined.i, joined.j, worth - joined.weight / (1 + joined.weight.max(initial=0)), n)
    tail, head = joined.i[edges], joined.j[edges]
    inside = (np.bincount(np.concatenate([tail, head]), minlength=n) > 1) | (np.arange(n) >= n_users)
    inside[tail[~inside[tail] & ~inside[head]]] = True  # one of two that have only each other
    return inside, edges & inside[joined.i] & inside[joined.j]


# -- anchors ---------------------------------------------------------------------------------------------------------


class Options(NamedTuple):
    """What users may hang on, and how well they would be predicted from there.

    Shapes: H users, K options of each, T positives of each.
    """

    users: Vertices  # [H]
    anchors: Vertices  # [H, K], members of the skeleton; -1 where there are fewer
    targets: Vertices  # [H, T], items
    seen: Mask  # [H, T], False where there are fewer
    partition: Floats  # [H, K], log Z of the anchor
    surprise: Floats  # [H, K, T], -log p of the target, from the anchor alone; inf where there is none


class Anchors(NamedTuple):
    """Edges between users and the members of the skeleton that they hang on, and what they want from there."""

    users: Vertices  # [A]
    members: Vertices  # [A]
    weight: Floats  # [A]
    wanted: csr_array  # [M, I], the part of the loss that asks for an item from a member


def rank_options(surprise: Floats, seen: Mask, most: int) -> tuple[Vertices, NDArray[np.float64]]:
    """Return which options to take first, second, and so on, and what the loss falls by with each, both [H, most].

    Each is the best there is beside those taken before. The loss is the mean surprise under the best of the anchors
    taken, and the entropy of their shares. Gains are -inf where a user has fewer options.

    Examples
    --------
    The second option predicts both targets well, the first only one of them:

    >>> import numpy as np
    >>> from prodige.rankfit import rank_options
    >>> rank_options(np.array([[[0.5, 9.0], [1.0, 1.0]]], dtype=np.float32), np.ones((1, 2), dtype=bool), 1)[0]
    array([[1]])
    """
    n_users, n_options, n_targets = surprise.shape
    n_seen = np.maximum(seen.sum(axis=1), 1)[:, None]
    rows = np.arange(n_users)
    best = np.full((n_users, n_targets), np.inf, dtype=np.float32)
    holder = np.full((n_users, n_targets), -1)
    missing: Mask = np.asarray(np.isinf(surprise).any(axis=2))
    loss = np.full(n_users, np.inf)
    picks = np.zeros((n_users, most), dtype=np.int64)
    gains = np.full((n_users, most), -np.inf)
    for turn in range(min(most, n_options)):
        better = (surprise < best[:, None]) & seen[:, None]
        after = np.where(seen[:, None], np.minimum(surprise, best[:, None]), 0).sum(axis=2) / n_seen
        after += entr(better.sum(axis=2) / n_seen)
        for earlier in range(turn):
            left = (holder == earlier)[:, None] & ~better & seen[:, None]
            after += entr(left.sum(axis=2) / n_seen)
        after[missing] = np.inf
        pick = after.argmin(axis=1)
        found = np.isfinite(after[rows, pick])
        picks[:, turn] = pick
        gains[found, turn] = loss[found] - after[rows, pick][found]
        loss = after[rows, pick]
        missing[rows, pick] = True  # none is taken twice
        taken = better[rows, pick]
        best = np.where(taken, surprise[rows, pick], best)
        holder[taken] = turn
    return picks, gains


def allot(gains: NDArray[np.float64], n_edges: int) -> Mask:
    """Return which gains are worth an edge, shape [H, most]: the first of each user, then the largest ones in order.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.rankfit import allot
    >>> allot(np.array([[np.inf, 0.1, 0.0], [np.inf, 0.3, 0.2]]), 4)
    array([[ True, False, False],
           [ True,  True,  True]])
    """
    taken = np.zeros(gains.shape, dtype=np.bool_)
    taken[:, 0] = True
    later = np.minimum.accumulate(gains[:, 1:], axis=1)  # none is taken before an earlier one
    order = np.argsort(-later, axis=None, kind="stable")[: max(n_edges - len(gains), 0)]
    user, turn = np.unravel_index(order[later.flat[order] > -np.inf], later.shape)
    taken[user, 1 + turn] = True
    return taken


# -- learning --------------------------------------------------------------------------------------------------------


class Run:
    """The moving parts of one call of :func:`fit_ranking`."""

    def __init__(
        self, met: csr_array, joined: Candidates, n_edges: int, random: np.random.RandomState, n_jobs: int
    ) -> None:
        self.met = met
        self.joined = joined
        self.n_edges = n_edges
        self.random = random
        self.n_jobs = n_jobs
        self.n_users, self.n_items = map(int, met.shape)
        n_start = max(_START_EDGES * joined.n_vertices, _START_ROOM * (n_edges - self.n_users))
        self.skeleton = Skeleton.of(joined, *choose_skeleton(joined, self.n_users, int(n_start), random))
        self.n_start = self.skeleton.n_edges
        self.anchors: Anchors | None = None
        self._has_edges = np.bincount(np.concatenate([joined.i, joined.j]), minlength=joined.n_vertices) > 0
        self._prepared: tuple[Skeleton, Engine] | None = None
        self._order = np.empty(0, dtype=np.int32)
        self._n_steps = 0
        self._choices = list(CHOICES)

    @property
    def n_connectors(self) -> int:
        """Users in the skeleton."""
        return self.skeleton.members.size - self.n_items

    @property
    def n_kept(self) -> int:
        """Edges of the graph as it is."""
        return self.skeleton.n_edges + (0 if self.anchors is None else self.anchors.users.size)

    @property
    def engine(self) -> Engine:
        """The skeleton, ready to be searched."""
        skeleton, last = self.skeleton, self._prepared
        if last is not None and last[0] is skeleton:
            return last[1]
        if last is not None and last[0].tail is skeleton.tail:  # only weights have changed
            engine = last[1].with_weights(skeleton.weight, self.n_jobs)
        else:
            n = skeleton.members.size
            topology = _core.Topology(n, skeleton.tail, skeleton.head)
            engine = Engine(topology, skeleton.weight, n, None, self.n_jobs)
        self._prepared = (skeleton, engine)
        return engine

    @property
    def items(self) -> Ids:
        """The items among the members."""
        return np.arange(self.n_connectors, self.skeleton.members.size, dtype=np.int32)

    def step(self, progress: float) -> float:
        """Take one step; return the loss of its sources in nats."""
        if self._n_steps == 0:
            self._choose(most=1, judge=False)
            self._calibrate()
        if progress >= THINNING:
            share = min((progress - THINNING) / (THINNED - THINNING), 1)
            self.skeleton = self.skeleton.thin(round(self.n_start ** (1 - share) * self._final_size() ** share))
        if self._choices and progress >= self._choices[0]:
            del self._choices[0]
            self._choose(most=1)
        late = max(progress - THINNED, 0) / (1 - THINNED)
        return self._learn(_RATE * (1 - late), judge=progress < THINNED)

    def finish(self) -> Graph:
        """Return the graph within the budget, with the anchors that suit it."""
        self.skeleton = self.skeleton.thin(self._final_size())
        anchors = self._choose(_MOST_ANCHORS)
        skeleton, n = self.skeleton, self.joined.n_vertices
        return Graph.from_edges(
            np.concatenate([skeleton.members[skeleton.tail], anchors.users]),
            np.concatenate([skeleton.members[skeleton.head], skeleton.members[anchors.members]]),
            np.concatenate([skeleton.weight, anchors.weight]),
            n_vertices=n,
            n_items=n,
        )

    def _final_size(self) -> int:
        """Return how many edges the skeleton is to have in the end."""
        n_forest = self.skeleton.members.size - self.engine.topology.n_components
        n_hanging = int(self._has_edges.sum()) - int(self._has_edges[self.skeleton.members].sum())
        return int(n_forest + _SKELETON_SHARE * max(self.n_edges - n_hanging - n_forest, 0))

    # -- weights ---------------------------------------------------------------------------------------------------

    def _draw_sources(self, n_sources: int) -> Ids:
        """Return members to search from; every one that is asked comes once before any comes again."""
        assert self.anchors is not None
        if self._order.size == 0:
            asked = np.flatnonzero(np.diff(self.anchors.wanted.indptr))
            self._order = self.random.permutation(asked).astype(np.int32)
        sources, self._order = self._order[:n_sources], self._order[n_sources:]
        return sources

    def _learn(self, rate: float, judge: bool) -> float:
        """Take a step of Adam on the weights, and look at what edges are worth; return the loss."""
        assert self.anchors is not None
        sources, skeleton, items = self._draw_sources(_N_SOURCES), self.skeleton, self.items
        self._n_steps += 1
        forest = self.engine.search(sources, self.n_jobs)
        distance, cut_off, far = reach(forest.distances(items, items.size, self.n_jobs))
        loss, gradient = softmax_loss(distance, self.anchors.wanted[sources])
        gradient[cut_off] = 0  # no weight can help there
        slope = forest.backward(gradient, items, self.n_jobs) * expit(skeleton.theta)  # through softplus
        mean = 0.9 * skeleton.mean + 0.1 * slope
        square = 0.99 * skeleton.square + 0.01 * slope**2
        unbiased = math.sqrt(1 - 0.99**self._n_steps) / (1 - 0.9**self._n_steps)
        theta = skeleton.theta - np.float32(rate * unbiased) * mean / (np.sqrt(square) + np.float32(1e-9))
        worth = skeleton.worth
        if judge:
            # Losing the only way must never look cheap, whatever stands for it in the loss.
            cost = forest.removal_cost(np.abs(gradient), np.zeros_like(gradient), items, 2 * far, self.n_jobs)
            n_asked = max(int(np.count_nonzero(np.diff(self.anchors.wanted.indptr))), 1)
            worth = math.exp(-sources.size / n_asked) * worth + cost
        self.skeleton = replace(skeleton, theta=theta, mean=mean, square=square, worth=worth)
        return loss

    def _calibrate(self) -> None:
        """Multiply all weights by what suits the softmax best: the start knows near from far, but not the unit."""
        assert self.anchors is not None
        sources, skeleton = self._draw_sources(_N_SOURCES), self.skeleton
        distance, _, _ = reach(self.engine.distances(sources, self.items, self.n_jobs))
        wanted = self.anchors.wanted[sources]
        found = minimize_scalar(
            lambda log_scale: softmax_loss(distance * np.float32(math.exp(log_scale)), wanted)[0],
            bounds=(-2.5, 2.5),
            method="bounded",
            options={"xatol": 0.02},
        )
        weight = np.maximum(skeleton.weight * np.float32(math.exp(found.x)), np.float32(_SHORTEST))
        self.skeleton = replace(skeleton, theta=weight + np.log(-np.expm1(-weight)))

    # -- anchors ---------------------------------------------------------------------------------------------------

    def _choose(self, most: int, judge: bool = True) -> Anchors:
        """Let all users outside the skeleton choose anchors, up to so many each, as far as they fit in.

        To begin with, while searches are slow and weights are not learned, they take the nearest without judging.
        """
        self.skeleton = self.skeleton.release(self.n_users)
        targets, seen = self._draw_positives()
        options = self._options(targets, seen, judge)
        picks = np.zeros((options.users.size, most), dtype=np.int64)
        gains = np.full(picks.shape, -np.inf)
        for part in parts(options.users.size, _BLOCK // math.prod(options.surprise.shape[1:])):
            picks[part], gains[part] = rank_options(options.surprise[part], options.seen[part], most)
        taken = allot(gains, self.n_edges - self.skeleton.n_edges)
        self.anchors = self._hang(options, picks, taken, targets, seen)
        self._order = np.empty(0, dtype=np.int32)
        return self.anchors

    def _draw_positives(self) -> tuple[Vertices, Mask]:
        """Return some items that each user met, shape [U, T], and which of them are real."""
        sizes = np.diff(self.met.indptr)
        row = np.repeat(np.arange(self.n_users), sizes)
        shuffled = np.lexsort((self.random.random_sample(row.size), row))
        place = np.arange(row.size) - self.met.indptr[row]
        drawn = place < _N_POSITIVES
        targets = np.zeros((self.n_users, min(_N_POSITIVES, int(sizes.max()))), dtype=np.int64)
        targets[row[drawn], place[drawn]] = self.met.indices[shuffled[drawn]]
        return targets, np.arange(targets.shape[1]) < sizes[:, None]

    def _options(self, targets: Vertices, seen: Mask, judge: bool) -> Options:
        """Return what users may hang on: the nearest of their candidates, by the weights these started from."""
        joined, members = self.joined, self.skeleton.members
        place = np.full(joined.n_vertices, -1)
        place[members] = np.arange(members.size)
        user, anchor = np.concatenate([[joined.i, joined.j], [joined.j, joined.i]], axis=1)
        weight = np.concatenate([joined.weight, joined.weight])
        leads_in = (place[user] < 0) & (place[anchor] >= 0)
        user, anchor, weight = user[leads_in], anchor[leads_in], weight[leads_in]
        order = np.lexsort((anchor, weight, user))
        user, anchor = user[order], anchor[order]
        users, first, row = np.unique(user, return_index=True, return_inverse=True)
        column = np.arange(user.size) - first[row]
        near = column < (_N_OPTIONS if judge else 1)
        anchors = np.full((users.size, int(column[near].max(initial=0)) + 1), -1)
        anchors[row[near], column[near]] = place[anchor[near]]
        targets, seen = targets[users], seen[users]
        if judge:
            return self._judge(users, anchors, targets, seen)
        nothing = np.zeros((*anchors.shape, targets.shape[1]), dtype=np.float32)
        return Options(users, anchors, targets, seen, nothing[:, :, 0], nothing)

    def _judge(self, users: Vertices, anchors: Vertices, targets: Vertices, seen: Mask) -> Options:
        """Search from all that users may hang on."""
        partition = np.full(anchors.shape, np.inf, dtype=np.float32)
        surprise = np.full((*anchors.shape, targets.shape[1]), np.inf, dtype=np.float32)
        place = np.argsort(anchors, axis=None, kind="stable")
        place = place[anchors.flat[place] >= 0]
        found, first = np.unique(anchors.flat[place], return_index=True)
        ends = np.append(first, place.size)
        for part in parts(found.size, _BLOCK // self.n_items):
            distance, _, _ = reach(self.engine.distances(found[part].astype(np.int32), self.items, self.n_jobs))
            here = place[ends[part.start] : ends[part.stop]]
            row, column = np.divmod(here, anchors.shape[1])
            source = np.searchsorted(found[part], anchors[row, column])
            log_z = log_partition(distance)[source]
            partition[row, column] = log_z
            surprise[row, column] = distance[source[:, None], targets[row]] + log_z[:, None]
            # Of a target that an option leads to, its edge says nothing: it counts as the mean of the others.
            own = (self.items[targets[row]] == anchors[row, column, None]) & seen[row]
            others = seen[row] & ~own
            mean = surprise[row, column].sum(axis=1, where=others) / np.maximum(others.sum(axis=1), 1)
            surprise[row, column] = np.where(own, mean[:, None], surprise[row, column])
        return Options(users, anchors, targets, seen, partition, surprise)

    def _hang(self, options: Options, picks: Vertices, taken: Mask, targets: Vertices, seen: Mask) -> Anchors:
        """Return the edges of the options taken, with their weights, and what is wanted of every member."""
        users, n_seen = options.users, np.maximum(options.seen.sum(axis=1), 1)[:, None]
        anchors = np.take_along_axis(options.anchors, picks, axis=1)
        surprise = np.take_along_axis(options.surprise, picks[:, :, None], axis=1)
        surprise[~taken] = np.inf
        holder = surprise.argmin(axis=1)
        share = np.stack([((holder == k) & options.seen).sum(axis=1) for k in range(picks.shape[1])], axis=1) / n_seen
        # An edge that is best for no positive at all still gets half of one.
        weight = np.take_along_axis(options.partition, picks, axis=1) - np.log(np.maximum(share, 0.5 / n_seen))
        weight[~taken] = np.inf
        weight += np.maximum(_SHORTEST - weight.min(axis=1, keepdims=True), 0)
        self._lengthen(anchors, weight)

        is_own = (self.items[options.targets][:, None] == anchors[:, :, None]) & taken[:, :, None]
        row, column = np.nonzero(options.seen & ~is_own.any(axis=1))
        source, target = anchors[row, holder[row, column]], options.targets[row, column]
        part = 1 / n_seen[row, 0]
        connector, place, free = self._free_positives(targets, seen)
        wanted = csr_array(
            (
                np.concatenate([part, free]).astype(np.float32),
                (np.concatenate([source, connector]), np.concatenate([target, place])),
            ),
            shape=(self.skeleton.members.size, self.n_items),
        )
        row, column = np.nonzero(taken)
        return Anchors(users[row], anchors[row, column], weight[row, column].astype(np.float32), wanted)

    def _free_positives(self, targets: Vertices, seen: Mask) -> tuple[Vertices, Vertices, NDArray[np.float64]]:
        """Return what connectors want: their positives without an edge to them, and the part of each in the loss."""
        skeleton, n = self.skeleton, self.skeleton.members.size
        connectors = skeleton.members[: self.n_connectors]
        row, column = np.nonzero(seen[connectors])
        target = targets[connectors[row], column]
        edge = np.minimum(skeleton.tail, skeleton.head).astype(np.int64) * n + np.maximum(skeleton.tail, skeleton.head)
        free = ~np.isin(row * n + self.items[target], edge)
        n_seen = seen[connectors].sum(axis=1)
        return row[free], target[free], 1 / n_seen[row[free]]

    def _lengthen(self, anchors: Vertices, weight: NDArray[Any]) -> None:
        """Make all edges of a user longer by as much, until no way from one of its anchors to another leads through."""
        n, is_edge = self.skeleton.members.size, np.isfinite(weight)
        earlier = np.triu(np.ones((anchors.shape[1], anchors.shape[1]), dtype=bool), 1)
        row, one, other = np.nonzero(is_edge[:, :, None] & is_edge[:, None] & earlier)
        source, target = anchors[row, one], anchors[row, other]
        order = np.argsort(source, kind="stable")
        found, first = np.unique(source[order], return_index=True)
        ends = np.append(first, order.size)
        lift = np.zeros(len(weight))
        everything = np.arange(n, dtype=np.int32)
        for part in parts(found.size, _BLOCK // n):
            distance = self.engine.distances(found[part].astype(np.int32), everything, self.n_jobs)
            here = order[ends[part.start] : ends[part.stop]]
            between = distance[np.searchsorted(found[part], source[here]), target[here]]
            lack = (between - weight[row[here], one[here]] - weight[row[here], other[here]]) / 2
            np.maximum.at(lift, row[here], np.where(np.isinf(lack), 0, lack))
        weight += lift[:, None]


def reach(distance: Floats) -> tuple[Floats, Mask, float]:
    """Return distances with a finite one where there is no path, which these are, and what stands for them."""
    cut_off = np.isinf(distance)
    far = 1.2 * float(distance.max(initial=1.0, where=~cut_off))
    return np.where(cut_off, np.float32(far), distance), cut_off, far


def log_partition(distance: Floats) -> Floats:
    """Return log Σ exp(-d) of each row."""
    nearest = distance.min(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(nearest - distance).sum(axis=1)) - nearest[:, 0])


def softmax_loss(distance: Floats, wanted: csr_array) -> tuple[float, Floats]:
    """Return the mean of d(x) + log Σ exp(-d) over what is wanted, and its gradient by the distances.

    Examples
    --------
    Two items equally far away, of which one is wanted:

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.rankfit import softmax_loss
    >>> loss, gradient = softmax_loss(np.ones((1, 2), dtype=np.float32), csr_array([[1.0, 0.0]], dtype=np.float32))
    >>> round(loss, 4), gradient  # log 2
    (0.6931, array([[ 0.5, -0.5]], dtype=float32))
    """
    log_z = log_partition(distance)
    row = np.repeat(np.arange(len(distance)), np.diff(wanted.indptr))
    total = np.bincount(row, wanted.data, minlength=len(distance)).astype(np.float32)
    scale = np.float32(1 / max(float(total.sum()), 1e-12))
    gradient = np.exp(-distance - log_z[:, None]) * (-total * scale)[:, None]
    gradient[row, wanted.indices] += wanted.data * scale
    loss = float(wanted.data @ distance[row, wanted.indices] + total @ log_z) * float(scale)
    return loss, gradient


__all__ = ["fit_ranking"]
